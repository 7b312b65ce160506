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
# # jbench in ten minutes
#
# One command tells how well a model decodes brain recordings. Here it runs one task, and we look at everything that it
# leaves behind: the table, a result file, a prepared window, and a run with another recipe.
#
# With `JBENCH_SMOKE=1` in the environment each run is a two-epoch try, marked `debug`.

# %%
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from jbench import results

WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
QUICK = ['--debug', '--seeds=33'] if os.environ.get('JBENCH_SMOKE') else []


def command(*flags: str) -> int:
    """Run jbench as in a terminal, showing what it says while it works; returns its exit status."""
    run = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', *flags]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
    return process.returncode


# %% [markdown]
# ## What there is

# %%
assert command('--list') == 0

# %% [markdown]
# ## Run a task
#
# `p3`: was a stimulus the one that the person attended to? Without recordings on this machine an embedded simulation
# stands in. It has known truth, and every table and every result says that it is simulated.

# %%
assert command('--task=p3', '--model=eegnet,dummy', *QUICK) == 0

# %% [markdown]
# The same command again computes nothing: finished seeds are skipped. A plan shows that, and what the data are.

# %%
assert command('--task=p3', '--model=eegnet,dummy', '--dry_run', *QUICK) == 0

# %% [markdown]
# ## Open a result
#
# One JSON file a seed, with the predictions beside it. Scores are fractions here, per cent in tables.

# %%
found = [r for r in results.load_all(WORKDIR) if r['model'] == 'eegnet' and not r['protocol']['custom']]
result = found[0]
for field in ('task', 'dataset', 'simulated', 'seed', 'status', 'headline', 'chance', 'warnings'):
    print(f'{field:10}', result[field])

# %% [markdown]
# Its scores can be computed again from the predictions, to the last digit.

# %%
path = next(p for p in Path(WORKDIR).glob('results/p3@2/SimulatedP3/eegnet/*/seed33.json') if result['key'] in str(p))
assert results.rescore(path)['headline'] == result['headline']

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout='constrained')
left.plot([epoch['monitor'] for epoch in result['history']], marker='.')
left.set(xlabel='epoch', ylabel='balanced accuracy, validation')
right.bar(list(result['per_subject']), list(result['per_subject'].values()))
right.axhline(result['chance'], color='grey', linestyle='--')
right.set(xlabel='test subject', ylabel='balanced accuracy', title='simulated' if result['simulated'] else 'measured')
plt.show()

# %% [markdown]
# ## Take the windows
#
# They were read, checked, filtered and cut once, and stored. Five lines of Python give them to any framework, without
# the benchmark.

# %%
import jbench

task = jbench.task('p3')
splits = jbench.load(task, workdir=WORKDIR)
for batch in splits.train:
    print({name: (value.shape, value.dtype) for name, value in batch.items()})
    break

# %%
print(splits.classes, splits.signal, f'simulated: {splits.simulated}', sep='\n')
print({part.name: part.n_windows for part in (splits.train, splits.valid, splits.test)})
pipeline = splits.train.grain().shuffle(seed=0).batch(32)  # a grain dataset, for a pipeline of your own
print(pipeline[0]['x'].shape)

# %%
x, y, subjects = splits.train.arrays()  # [windows, channels, samples], NumPy
seconds = task.spec.window.start + np.arange(splits.signal.n_times) / splits.signal.sfreq
channel = splits.signal.ch_names.index('Pz')
for k, label in enumerate(splits.classes):
    plt.plot(seconds, x[y == k, channel].mean(0), label=label)
plt.axvline(0, color='grey', linewidth=0.5)
plt.xlabel('time from the stimulus (s)')
plt.ylabel('Pz (robust units)')
plt.title('simulated' if splits.simulated else 'measured')
plt.legend()
plt.show()

# %% [markdown]
# ## Change the recipe
#
# Any field of a task can be set. The result has another key, and is marked `custom`: it is no longer the protocol.

# %%
assert command('--task=p3', '--model=eegnet', '--set=recipe.lr=0.003', *QUICK) == 0

# %% [markdown]
# ## Real recordings
#
# This says where the files of a dataset come from and where they belong.
# `--task=ssvep/Kalunga2016Online --download` fetches them and runs, and the word *simulated* is gone. A dataset
# that you name is never replaced by a simulation.

# %%
assert command('--info=Kalunga2016Online') == 0
