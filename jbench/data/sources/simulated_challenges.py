"""Simulated stand-ins for the recordings of the EEG/EMG Foundation Challenge 2026, tracks 2 to 4 (that of track 1 is
`SimulatedImage`). The generator is that of the other simulated sets (simulated.py); departures from the real ones:

- mental commands: 25 of 41 electrodes; a session is one recording of both interfaces, 30 trials every 6 s (real: up to
  eight recordings); two sessions of each of 20 people;
- sleep: evenings of 5 to 13 minutes that end half a minute after the first N2 (real: five minutes after it), two of
  each of 30 people;
- pose: a minute of 20 people; four joints of a finger bend together, and a muscle is as active as its finger is bent;
  read at 1 kHz (real: 2 kHz).
"""

from __future__ import annotations

from typing import Any

from jbench.data.recording import Recording, RecordingRef
from jbench.data.sources import simulated
from jbench.data.sources.simulated import recordings
from jbench.spec.dataset import Dataset
from jbench.spec.overrides import Override

__all__ = ['DATASETS', 'read', 'recordings']

POSE: tuple[Override, ...] = (
    ('signal.sfreq', 1000.0),
    ('recipe.batch_size', 8),
    ('recipe.max_epochs', 10),
    ('recipe.patience', 5),
)


def _stand_in(track: str, what: str, size: tuple[int, int, int, float], event: str, **facts: Any) -> Dataset:
    """The stand-in of a track: `size` = (subjects, sessions of each, channels, Hz)."""
    n_subjects, n_sessions, n_chans, sfreq = size
    return Dataset(
        name=f'SimulatedChallenge{track.capitalize()}',
        title=f'Simulation of {what}',
        source=__name__,
        n_subjects=n_subjects,
        n_recordings=n_subjects * n_sessions,
        n_chans=n_chans,
        sfreq=(sfreq,),
        event_types=(event,),
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {simulated.VERSION}, population seed {simulated.SEED}',
        access='embedded',
        simulated=True,
        **{'recipe': simulated.RECIPE, **facts},
    )


DATASETS = (
    _stand_in(
        'bci',
        'three mental commands, in the layout of Dreyer2026Proteus',
        (20, 2, 25, 250.0),
        'Stimulus',
        event_id=(('mi', 0), ('sub', 1), ('word', 2)),
    ),
    _stand_in(
        'sleep',
        'people who fall asleep with a headband, in the layout of Interaxon2026Muse',
        (30, 2, 4, 128.0),
        'SleepOnset',
    ),
    _stand_in(
        'pose',
        'a hand that moves, in the layout of Salter2024Emg2pose',
        (20, 1, 16, 2000.0),
        'Emg',
        device='emg',
        recipe=POSE,
    ),
)


def read(ref: RecordingRef) -> Recording:
    """Generate a recording (V, joints in rad) and its events: the same bits for the same reference."""
    recording = simulated.read(ref)
    joints = [name for name in recording.raw.ch_names if name.startswith('joint')]
    recording.raw.set_channel_types(dict.fromkeys(joints, 'misc'), on_unit_change='ignore')
    return recording
