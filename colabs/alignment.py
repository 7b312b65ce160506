# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # How brain-like is an image model?
#
# A model looks at the stimuli that were shown to neurons; from what it computes, the responses of the neurons to other
# stimuli are predicted. Nothing is downloaded here: images and neurons are made by the next cells, and every table says
# **simulated**. With recordings at hand the command is the same, and `--list` names the benchmarks that wait for them.

# %% [markdown]
# ## A recording
#
# A file says what was shown, what the neurons answered, and how a model is compared with that. These sixteen neurons
# are made: each answers to stripes of one orientation, wherever they lie, some of them to red as well. Their eight
# answers to each image differ, so there is a ceiling: what the best model could reach.

# %%
# %%writefile my_v1.py
# Images of stripes, and made neurons that answer to their orientation.

import numpy as np

from jbench.alignment import assembly, stimuli
from jbench.spec.benchmark import Benchmark

N_IMAGES, N_NEURONS, N_TRIALS, SIZE = 160, 16, 8, 64


def read(data_dir):
    """Stimuli and responses; yours come from files under `data_dir`."""
    draws = np.random.default_rng(0)
    angle, phase, red = draws.uniform(0, np.pi, N_IMAGES), draws.uniform(0, 2 * np.pi, N_IMAGES), draws.random(N_IMAGES)
    y, x = np.mgrid[:SIZE, :SIZE]
    images = []
    for a, p, r in zip(angle, phase, red, strict=True):
        stripes = 127 + 100 * np.sin(0.9 * (x * np.cos(a) + y * np.sin(a)) + p)
        tinted = stripes[..., None] * [1, 1 - r / 2, 1 - r / 2] + draws.normal(0, 10, (SIZE, SIZE, 3))
        images.append(np.clip(tinted, 0, 255).astype(np.uint8))
    likes = np.arange(N_NEURONS) * np.pi / N_NEURONS
    seen = np.exp(3 * np.cos(2 * (angle[:, None] - likes)) - 3) + red[:, None] * draws.uniform(0, 0.3, N_NEURONS)
    trials = seen + draws.normal(size=(N_TRIALS, *seen.shape)) * seen.std(0) / 2
    ids = [f'image{k:03d}' for k in range(N_IMAGES)]
    rows = {'stimulus_id': ids * N_TRIALS, 'repetition': np.repeat(np.arange(N_TRIALS), N_IMAGES)}
    neuroid = {'neuroid_id': [f'n{k}' for k in range(N_NEURONS)], 'region': ['V1'] * N_NEURONS}
    responses = assembly.neuroids(trials.reshape(-1, N_NEURONS), presentation=rows, neuroid=neuroid)
    return stimuli.of_arrays('stripes', {'stimulus_id': ids}, images), responses


READERS = {'Stripes2026': read}
BENCHMARKS = (
    Benchmark(
        identifier='Stripes2026.V1-ridge',
        parent='V1',
        title='made neurons that see orientations',
        procedure='neural',
        data='Stripes2026',
        region='V1',
        visual_degrees=8.0,
        metric='ridgecv',
        ceiling='internal_consistency',
        simulated=True,  # not of yours
        citation='',
    ),
)

# %%
import os
import runpy
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

from jbench import results

WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
SEEDS = '--seeds=33' if os.environ.get('JBENCH_SMOKE') else '--seeds=33,34,35'  # of random weights


def command(*flags: str) -> int:
    """Run jbench as in a terminal, showing what it says while it works; returns its exit status."""
    run = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', *flags]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
    return process.returncode


# %% [markdown]
# Six of the images.

# %%
recording = runpy.run_path('my_v1.py')
shown, responses = recording['read'](None)
print(len(shown), 'images;', dict(responses.sizes))
figure, axes = plt.subplots(1, 6, figsize=(9, 1.7), layout='constrained')
for ax, name in zip(axes, shown.ids, strict=False):
    ax.imshow(shown.image(name))
    ax.set_axis_off()
figure.suptitle('six of the images (simulated)')
plt.show()

# %% [markdown]
# ## Models that are there
#
# The image itself is the floor; energy of Gabor filters is what simple theories of V1 say; a ResNet-18 with random
# weights, one for each seed, has seen nothing yet. `--weights=FILE` gives it trained ones.

# %%
BENCHMARK = '--task=alignment/my_v1.py'
assert command(BENCHMARK, '--model=pixels,gabor,resnet18', SEEDS) == 0

# %% [markdown]
# ## A model of your own
#
# A function from images to the activations of its layers. This one has no opinion on orientation: it counts colours.

# %%
# %%writefile my_model.py
# Mean and spread of each colour.

import hashlib
from pathlib import Path

import jax.numpy as jnp

from jbench.alignment.image_model import ImageModel, Preprocess


def colours():
    """One layer: six numbers an image."""

    def apply(images):
        return {'colours': jnp.concatenate([images.mean((1, 2)), images.std((1, 2))], 1)}

    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return ImageModel('colours', ('colours',), Preprocess(32), apply, digest)


# %%
assert command(BENCHMARK, '--model=my_model.py:colours') == 0

# %% [markdown]
# ## Compare
#
# Every number comes from the result files. A score is explained variance beside its ceiling; of random weights there is
# one a seed.

# %%
found = {}
for r in results.load_all(WORKDIR):
    found.setdefault(r['model'].partition('@')[0], []).append(r['headline']['value'])
found = dict(sorted(found.items(), key=lambda item: np.mean(item[1])))
figure, ax = plt.subplots(figsize=(7, 2.4), layout='constrained')
for k, (name, scores) in enumerate(found.items()):
    ax.plot(scores, [k] * len(scores), 'o')
    print(f'{name:10}', *(f'{s:.3f}' for s in scores))
ax.set(yticks=range(len(found)), yticklabels=found, xlabel='explained variance, of its ceiling', title='V1 (simulated)')
ax.axvline(0, color='grey', linewidth=0.5)
plt.show()

# %% [markdown]
# ## Recordings of others
#
# What there is, and where its files come from. `--data_dir=DIR` is where they belong.

# %%
assert command('--info=alignment/Cowley2023.V4-pls') == 0
