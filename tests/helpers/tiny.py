"""A source of tiny recordings for tests: noise of whole numbers, the same bits anywhere.

The run of a reference says what is odd: 'permuted' (channels in another order), 'twice' (a name that occurs twice),
'loud' (fifty times as large in the second that follows an event of code 2), 'weak' (of the size of MEG, in T),
'half' (zeros in its second half), 'times7' (seven times as large).
"""

from __future__ import annotations

import dataclasses

import mne
import numpy as np

from jbench.data.recording import Recording, RecordingRef
from jbench.plan import select
from jbench.spec.dataset import Dataset

CHANNELS, SFREQ = ('Oz', 'O1', 'Fz'), 256.0
DATASET: Dataset = dataclasses.replace(
    select.datasets()['Kalunga2016Online'],
    name='Tiny',
    source=__name__,
    n_chans=len(CHANNELS),
    n_events=1,
    seconds=None,
    event_id=(),
)


def ref(subject: int, run: str = '', seconds: int | str = 20) -> RecordingRef:
    """A reference; the subject's number is the seed."""
    return RecordingRef('Tiny', f'{subject:02d}', '0', run, (), (('seconds', str(seconds)),))


def recordings(dataset: Dataset, root: object) -> list[RecordingRef]:
    """Three subjects."""
    return [ref(k) for k in range(3)]


def read(ref: RecordingRef) -> Recording:
    """Microvolts of noise with drift, and an event every 2.7 s that lies between samples."""
    seconds, names = int(dict(ref.fields)['seconds']), list(CHANNELS)
    steps = np.random.default_rng(int(ref.subject)).integers(-100, 101, (len(names), int(seconds * SFREQ)))
    x = (steps + steps.cumsum(1) // 16) * 1e-7
    if ref.run == 'permuted':
        names, x = names[::-1], x[::-1]
    if ref.run == 'twice':
        names[1] = names[0]
    onset = np.arange(1.0013, seconds - 3, 2.7)
    for start in onset[1::2] if ref.run == 'loud' else ():
        x[:, round(start * SFREQ) : round((start + 1) * SFREQ)] *= 50
    if ref.run == 'weak':
        x *= 1e-8
    if ref.run == 'half':
        x[:, x.shape[1] // 2 :] = 0
    if ref.run.startswith('times'):
        x *= float(ref.run.removeprefix('times'))
    info = mne.create_info([f'{n}-{k}' if names.count(n) > 1 else n for k, n in enumerate(names)], SFREQ, 'eeg')
    return Recording(
        mne.io.RawArray(x, info, verbose='ERROR'),
        {
            'onset': onset,
            'duration': np.full(len(onset), 1.0),
            'type': np.full(len(onset), 'Stimulus'),
            'code': np.arange(len(onset)) % 2 + 1,
        },
    )
