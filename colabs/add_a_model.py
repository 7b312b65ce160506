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

# %%
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

if importlib.util.find_spec('jbench') is None:  # '..': a checkout; or the address of the repository, after `git+`
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--quiet', '..', 'matplotlib'], check=True)

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
import matplotlib.pyplot as plt

from jbench import results

WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
QUICK = ['--debug'] if os.environ.get('JBENCH_SMOKE') else []


def jbench(*flags: str) -> int:
    """Run the command as in a terminal; returns its exit status."""
    command = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stderr, done.stdout, sep='\n')
    return done.returncode


assert jbench('--task=p3', '--model=mynet.py:mynet,eegnet,cov_ts_lr', '--seeds=33', *QUICK) == 0

# %% [markdown]
# The name `mynet@...` ends in the digest of the file. Change the file and run again: it is another model, and what the
# old one scored stays with the old one.
#
# ## Compare
#
# Every number comes from the result files; the interval is over test subjects.

# %%
found = {r['model']: r for r in results.load_all(WORKDIR)}
for name, result in found.items():
    low, high = result['headline']['interval']
    print(f'{name:16} {result["headline"]["value"]:.3f} [{low:.3f}, {high:.3f}]')

# %%
for k, result in enumerate(found.values()):
    plt.bar(k, result['headline']['value'], color='lightgrey')
    plt.plot([k] * len(result['per_subject']), list(result['per_subject'].values()), 'k.')
plt.axhline(result['chance'], color='grey', linestyle='--')
plt.xticks(range(len(found)), list(found))
plt.ylabel('balanced accuracy; points: test subjects')
plt.title('simulated' if result['simulated'] else 'measured')
plt.show()

# %% [markdown]
# ## What is refused
#
# A network is tried on a few random windows first. This one forgets the mask, so rows of padding would change its
# statistics, and its score would depend on the size of the last batch. It is refused before anything is trained.

# %%
Path('wrong.py').write_text(Path('mynet.py').read_text().replace("batch['mask']", "batch['mask'] | True"))
assert jbench('--task=p3', '--model=wrong.py:mynet', '--seeds=33', *QUICK) == 2
