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
# # Your own recordings in jbench
#
# A folder of files and their events, one file that says what is asked of them, one command that shows what they hold.
# No code is needed.
#
# The recordings of this notebook are made up, by the next cells: noise, with alpha waves while the eyes are closed.
# Put your own in their place. With `JBENCH_SMOKE=1` in the environment each run is a two-epoch try, marked `debug`.

# %%
import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np

DATA = Path('recordings')  # --data_dir
WORKDIR = os.environ.get('JBENCH_WORKDIR', 'jbench-work')  # everything that jbench writes
QUICK = ['--debug'] if os.environ.get('JBENCH_SMOKE') else []

# %% [markdown]
# ## A folder
#
# `recordings/MyRest2026/S00_raw.fif` and so on: the subject is what stands before the first `_`. What happened is in
# annotations here; a table `S00_events.tsv` beside each file, or a BIDS dataset, does as well.

# %%
(DATA / 'MyRest2026').mkdir(parents=True, exist_ok=True)
info = mne.create_info(['Fz', 'Cz', 'Pz', 'Oz'], 200.0, 'eeg')
t = np.arange(60 * 200) / 200
for k in range(6):
    rng = np.random.default_rng(k)
    alpha = np.sin(2 * np.pi * 10 * t) * ((t // 10) % 2) * np.array([[1], [2], [4], [8]])
    raw = mne.io.RawArray((rng.normal(0, 8, (4, len(t))) + alpha) * 1e-6, info, verbose='ERROR')  # volts
    raw.set_annotations(mne.Annotations(np.arange(0, 60, 10.0), np.full(6, 10.0), ['open', 'closed'] * 3))
    raw.save(DATA / 'MyRest2026' / f'S{k:02d}_raw.fif', overwrite=True, verbose='ERROR')
print(*sorted(p.name for p in (DATA / 'MyRest2026').iterdir()))

# %% [markdown]
# ## A file that says what they are, and what is asked

# %%
# %%writefile my_rest.py
"""Closed or open eyes, recorded by ourselves."""

from jbench.spec import Classes, Dataset, Recipe, Task, Window

DATASETS = (
    Dataset(
        name='MyRest2026',
        title='Eyes open and closed',
        source='jbench.data.sources.folder',
        n_subjects=6,  # what should be there: less is called partial
        n_recordings=6,
        n_chans=4,
        sfreq=(200.0,),  # Hz
        licence='mine',
        citation='me (2026)',
        host='our laboratory',
        layout='S<NN>_raw.fif with annotations',
    ),
)
TASKS = (
    Task(
        name='my_eyes',
        category='mine',
        paradigm='rstate',
        title='Whether the eyes are open',
        datasets=('MyRest2026',),
        window=Window(duration=2.0, stride=2.0),  # events of type Stimulus, in pieces of two seconds
        target=Classes(field='label'),  # a column of the events; annotations are called `label`
        recipe=Recipe(class_weights=True),
    ),
)


# %% [markdown]
# ## Look before you train
#
# Windows of each class and part, units, amplitudes, who is there, and what the contract found.


# %%
def command(*flags: str) -> int:
    """Run jbench as in a terminal, showing what it says while it works; returns its exit status."""
    run = [sys.executable, '-m', 'jbench.run', f'--workdir={WORKDIR}', f'--data_dir={DATA}', *flags]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
    return process.returncode


assert command('--task=my_rest.py', '--stage=check') == 0

# %% [markdown]
# The page that it saved has pictures. The mean spectrum of each class shows alpha (10 Hz), and more of it with closed
# eyes. In the spectrum of each channel a wrong unit, a line or a dead channel would be seen.

# %%
home = next(Path(WORKDIR).glob('check/my_eyes@1/*'))
figure, axes = plt.subplots(2, 1, figsize=(9, 7), layout='constrained')
for ax, name in zip(axes, ('class_spectrum', 'spectrum'), strict=True):
    ax.imshow(plt.imread(home / f'{name}.png'))
    ax.set_axis_off()
plt.show()

# %% [markdown]
# ## What is refused
#
# Microvolts that are called volts, as many a file has them. Every fault of every file comes in one message, and nothing
# is computed.

# %%
path = DATA / 'MyRest2026' / 'S05_raw.fif'
good = path.read_bytes()
raw = mne.io.read_raw_fif(path, preload=True, verbose='ERROR')
raw.apply_function(lambda x: x * 1e6, verbose='ERROR').save(path, overwrite=True, verbose='ERROR')
assert command('--task=my_rest.py', '--stage=check') == 2
_ = path.write_bytes(good)

# %% [markdown]
# ## Train, or take the windows

# %%
assert command('--task=my_rest.py', '--model=eegnet,dummy', '--seeds=33', *QUICK) == 0

# %%
import jbench

splits = jbench.load(jbench.task('my_rest.py'), data_dir=DATA, workdir=WORKDIR)
x, y, subjects = splits.train.arrays()
print(x.shape, splits.classes, *sorted(set(subjects)))
