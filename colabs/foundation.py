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
# # Pretrained encoders in jbench
#
# Weights, fine-tuning, a probe, and what the features know of the subject. No recording and no file of weights is
# needed: the recordings are **simulated**, and the weights are made here, by training on another task. With weights
# from a hub (`--download`, or `--weights=FILE`) the commands are the same.
#
# With `JBENCH_SMOKE=1` in the environment each run is a two-epoch try, marked `debug`.

# %%
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import jbench
from jbench import results

WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
QUICK = ['--debug', '--seeds=33,34'] if os.environ.get('JBENCH_SMOKE') else []
MODEL = 'signal_jepa_post_local'  # the smallest: the least to wait for


def command(*flags: str) -> int:
    """Run jbench as in a terminal, showing what it says while it works; returns its exit status."""
    run = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', '--simulated=yes', *flags]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
    return process.returncode


# %% [markdown]
# ## Without weights
#
# An encoder starts from pretrained weights. Where they are not here, jbench says what to do, and what they may be used
# for.

# %%
assert command('--task=mental_imagery', f'--model={MODEL}', *QUICK) == 2

# %% [markdown]
# `--weights=none` trains it from random ones, and every table says so. Here it learns motor imagery; the weights of its
# best epoch stay beside the result.

# %%
FAST = ['--set', 'recipe.lr=1e-2'] + ([] if QUICK else ['--set', 'recipe.least_steps=600'])  # few recordings
assert command('--task=motor_imagery', f'--model={MODEL}', '--weights=none', *FAST, *QUICK) == 0
made = next(Path(WORKDIR).glob(f'results/motor_imagery*/*/{MODEL}*/*/seed33.safetensors'))

# %% [markdown]
# ## With weights
#
# A file of weights is read whole, or refused with every tensor that does not fit; the head is drawn anew. The name in
# the table ends in the digest of the file: other weights are another model. We fine-tune all of it (`full`, the
# default), and train a linear head on features that stay as they are (`probe`): the encoder runs once over each window,
# whatever the number of epochs.

# %%
same = ['--task=mental_imagery', f'--model={MODEL}']
assert command(*same, '--weights=none', *FAST, *QUICK) == 0
assert command(*same, f'--weights={made}', *FAST, *QUICK) == 0
assert command(*same, f'--weights={made}', '--set', 'recipe.adaptation=probe', *FAST, *QUICK) == 0

# %% [markdown]
# ## Compare
#
# Each point is a seed. Whether the weights have seen the test data stands in each result. A file that a run of jbench
# kept says itself which data sets it was learnt on: a test on one of them is an `overlap`, on others it is `clean`. Of
# a file that says nothing it is `unknown`.

# %%
found = [r for r in results.load_all(WORKDIR) if r['task'] == 'mental_imagery']
rows = {}
for r in found:
    start = 'random weights' if r['model'].endswith('=none') else 'weights of motor imagery'
    how = r['config']['task']['recipe']['adaptation']
    rows.setdefault(f'{start}, {how}', []).append(100 * r['headline']['value'])
    print(f'{start}, {how}: seed {r["seed"]}, overlap {r["overlap"]}')
figure, ax = plt.subplots(figsize=(7, 2.4), layout='constrained')
for k, scores in enumerate(rows.values()):
    ax.plot(scores, [k] * len(scores), 'o')
ax.axvline(100 * found[0]['chance'], color='grey', linewidth=0.5)
ax.set(yticks=range(len(rows)), yticklabels=rows, xlabel='balanced accuracy (%)', title='mental imagery (simulated)')
plt.show()

# %% [markdown]
# ## What the features know
#
# `jbench.features` gives what an encoder makes of every window, before any head, to whoever wants to look for himself;
# `jbench report identity` says how much of their variance is the subject's, and how much the target's.

# %%
features = jbench.features(MODEL, 'mental_imagery', weights=made, workdir=WORKDIR, simulated=True)
print(features.values.shape, 'windows by features;', len({*features.subjects}), 'subjects')
