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
# # Your own model in jbench
#
# A model is a function in a file: write it, name it to the command, and see where it stands beside others. Nothing of
# jbench is touched.
#
# With `JBENCH_SMOKE=1` in the environment each run is a two-epoch try, marked `debug`.

# %% [markdown]
# ## Write it
#
# `mynet` gets the shape of a window and the number of outputs. The module gets a batch: `batch['x']` is
# `f32[windows, channels, times]`, and rows where `batch['mask']` is false are padding. It returns logits; `sow` names a
# feature, which is computed only where somebody asks for it.

# %%
# %%writefile mynet.py
# Spatial filters, filters in time, means over time: a small network.

import flax.linen as nn

from jbench.models.layers import filters
from jbench.models.layers.blocks import BatchNorm, average_pool, dropout
from jbench.models.model import network


class MyNet(nn.Module):
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch, *, train, key):
        h = nn.Dense(16)(batch['x'].transpose(0, 2, 1))  # [windows, times, features]
        taps = self.param('taps', nn.initializers.normal(0.07), (16, 16, 13))
        h = filters.conv(h.transpose(2, 0, 1), taps, (6, 6))  # [features, windows, times]
        h = BatchNorm(16, axis_name=self.axis_name)(h, batch['mask'], train=train)
        h = dropout(average_pool(nn.elu(h), 12), 0.25, key, self.axis_name)
        h = h.transpose(1, 0, 2).reshape(h.shape[1], -1)
        self.sow('features', 'penultimate', h)
        return nn.Dense(self.n_out)(h)


def mynet(signal, n_out, *, axis_name=None):
    """My network."""
    return network(MyNet(n_out, axis_name), signal)


# %% [markdown]
# ## Run it
#
# Beside EEGNet and a baseline without a network, on the same windows, split in the same way. Without recordings on this
# machine an embedded simulation stands in, and every table says so.

# %%
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from jbench import results
from jbench.metrics import uncertainty

WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
QUICK = ['--debug', '--seeds=33,34'] if os.environ.get('JBENCH_SMOKE') else []


def command(*flags: str) -> int:
    """Run jbench as in a terminal, showing what it says while it works; returns its exit status."""
    run = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', *flags]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
    return process.returncode


assert command('--task=p3', '--model=mynet.py:mynet,eegnet,cov_ts_lr', *QUICK) == 0

# %% [markdown]
# The name `mynet@...` ends in the digest of the file. Change the file and run again: it is another model, and what the
# old one scored stays with the old one.
#
# ## Compare
#
# Every number comes from the result files. Two models are compared in pairs: the same seed, the same test subjects.
# What both share, such as a subject whom every model reads well, leaves the difference, so it is surer than two
# intervals side by side. It is the mean over seeds, with its 95 % interval over test subjects.

# %%
found = {}  # model: seed: result
for r in results.load_all(WORKDIR):
    found.setdefault(r['model'], {})[r['seed']] = r
mine = next(name for name in found if name.startswith('mynet@'))


def paired(first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of two models on the seeds and subjects that both have: two arrays [seeds, subjects]."""
    seeds = sorted(found[first].keys() & found[second].keys())
    a, b = ([found[name][seed]['per_subject'] for seed in seeds] for name in (first, second))
    subjects = sorted(a[0].keys() & b[0].keys())
    return tuple(np.array([[scores[s] for s in subjects] for scores in each]) for each in (a, b))


others = [name for name in found if name != mine]
for other in others:
    a, b = paired(mine, other)
    difference = a - b
    per_subject = difference.mean(0)
    ends = uncertainty.interval(lambda w, d=per_subject: w @ d / w.sum(1), len(per_subject), (-1.0, 1.0))
    low, high = ends or (np.nan, np.nan)  # fewer than four subjects
    print(f'{mine} - {other}: {per_subject.mean():+.3f} [{low:+.3f}, {high:+.3f}]')
    print('  of each seed:', *(f'{d:+.3f}' for d in difference.mean(1)))

# %% [markdown]
# Each point is a test subject under a seed. Above the line the model of this notebook is better.

# %%
figure, axes = plt.subplots(1, len(others), figsize=(8, 3.6), sharex=True, sharey=True, layout='constrained')
simulated = all(r['simulated'] for each in found.values() for r in each.values())
for ax, other in zip(axes, others, strict=True):
    a, b = paired(mine, other)
    for k, seed in enumerate(sorted(found[mine].keys() & found[other].keys())):
        ax.plot(b[k], a[k], '.', label=f'seed {seed}')
    ax.axline((0.5, 0.5), slope=1, color='grey', linewidth=0.5)
    ax.set(xlabel=other, ylabel='mynet', title='simulated' if simulated else 'measured')
axes[0].legend()
figure.suptitle('balanced accuracy of test subjects')
plt.show()

# %% [markdown]
# ## What is refused
#
# A network is tried on a few random windows first. This one forgets the mask, so rows of padding would change its
# statistics, and its score would depend on the size of the last batch. It is refused before anything is trained.

# %%
Path('wrong.py').write_text(Path('mynet.py').read_text().replace("batch['mask']", "batch['mask'] | True"))
assert command('--task=p3', '--model=wrong.py:mynet', '--seeds=33', *QUICK) == 2
