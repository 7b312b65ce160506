"""Simulated stand-in for electrodes in the brain: a film of music and speech, as Neuroprobe and as a task of blocks.

Departures from the real sets: six people, each with two sessions of four minutes and a half; two or three shafts of
eight contacts at 256 Hz (real: some 120 contacts, 512 to 2048 Hz), read at 128 Hz; the features of a word are drawn
at random, but for its place in the sentence and the gap before it; regions are shafts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.recording import Recording, RecordingRef, with_regions
from jbench.data.sources import simulated
from jbench.spec.dataset import Dataset

if TYPE_CHECKING:
    import numpy as np

DATASETS = (
    Dataset(
        name='SimulatedIeegFilm',
        title='Simulation of a film that is watched with contacts in the brain, in the layout of Wang2024Brain',
        source=__name__,
        device='ieeg',
        n_subjects=6,
        n_recordings=12,
        n_chans=24,
        sfreq=(256.0,),
        event_types=('Block', 'Onset', 'Speech'),
        amplitude=(1e-6, 2e-3),
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {simulated.VERSION}, population seed {simulated.SEED}',
        access='embedded',
        simulated=True,
        recipe=(('signal.sfreq', 128.0), ('signal.band', (0.5, 60.0)), *simulated.RECIPE),
    ),
)
SHORT = 3  # each third person lacks the last shaft
TRAINED = ('S02', '1')  # the session that learns for other people
REGIONS = {'A': 'superiortemporal', 'B': 'middletemporal', 'C': 'insula'}
PLACES = {'A': (-0.06, -0.02, 0.0), 'B': (-0.06, 0.0, -0.02), 'C': (0.04, 0.01, 0.0)}  # of the first contact, m
STEP = 0.004  # m inwards from contact to contact


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """As those of the other simulated sets."""
    return simulated.recordings(dataset, root)


def read(ref: RecordingRef) -> Recording:
    """Generate a recording (V, with places in m and regions) and its events: the same bits for the same reference."""
    import numpy as np

    raw, events = simulated.read(ref)
    if int(ref.subject[1:]) % SHORT == 0:
        raw.drop_channels([name for name in raw.ch_names if name.startswith('C')])
    for channel in raw.info['chs']:
        x, y, z = PLACES[channel['ch_name'][0]]
        channel['loc'][:3] = (x - np.sign(x) * STEP * (int(channel['ch_name'][1:]) - 1), y, z)
    part = _cross_subject(ref, events['half'])
    regions = {name: REGIONS[name[0]] for name in raw.ch_names}
    return Recording(with_regions(raw, regions), events | {'cross_subject': part})


def _cross_subject(ref: RecordingRef, half: np.ndarray) -> np.ndarray:
    """The part of each window where one session learns for other people, as Neuroprobe has it."""
    import numpy as np

    if ref.subject == TRAINED[0]:
        return np.where(half == '', '', 'train' if ref.session == TRAINED[1] else '')
    return np.select([half == '1', half == '2'], ['valid', 'test'], '')
