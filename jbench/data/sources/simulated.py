"""Simulated stand-ins for six Core datasets: generated in memory, no download, known truth.

They make the whole benchmark run in minutes anywhere; they carry `simulated` everywhere and enter no leaderboard.
Class names, codes, session names and event times follow the real set; the generator (`jbench/data/simulate.py`,
`paradigms.py`) is ours. Departures from the real sets, on purpose and for speed:

- fewer channels (8 to 20), at most 256 Hz, one run a session; more subjects with fewer trials each;
- mental imagery: trials every 5 s, so the 3 s before the imagery hold the end of the previous one; session '0' holds
  more trials than session '1' (the real sessions are alike);
- SSVEP: 4 s of flicker after the 0.5 s cue (real: 5 s);
- c-VEP: four code cycles a trial (real: fifteen), electrodes O1, POz, Oz, Iz, O2, Fz, T7, T8; the window of the last
  cycle runs 1.9 s past the code;
- motor execution: all reaches share one desynchronisation, so classes differ below 6 Hz alone;
- P3: one run of 96 tones in 35 s (real: half an hour).

The recipe that each set carries learns in about 300 steps what the published one (learning rate 1e-4, thousands of
steps) learns on the real sets. SNR in the titles: variance of the signature over variance of everything else,
1-40 Hz, inside the windows, at the best electrode; mean over the first six subjects, who differ by up to 3.5 dB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jbench.data.recording import Recording, RecordingRef
from jbench.spec import Dataset, Override

SEED = 1  # the embedded population; amplitudes were set on another one (0)
VERSION = 1  # of the generator: a change of any sample is a new version
RECIPE: tuple[Override, ...] = (('recipe.lr', 1e-2), ('recipe.max_epochs', 20), ('recipe.patience', 10))
SESSIONS = {'mental_imagery': 2}  # one for all others

# The labels stand here a second time so that a list of datasets loads no numpy; a test compares them.
_REACHES = tuple(
    f'{way}_{speed}_{reach}'
    for way in ('up', 'down', 'left', 'right')
    for speed in ('slow', 'fast')
    for reach in ('near', 'far')
)
_FLICKERS = tuple(f'{hz + step / 5:g}' for step in range(5) for hz in range(8, 16))


def _dataset(name: str, real: str, what: str, snr: float, **facts: Any) -> Dataset:
    return Dataset(
        name=f'Simulated{name}',
        title=f'Simulation of {what}, in the layout of {real}, SNR {snr:g} dB',
        source=__name__,
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {VERSION}, population seed {SEED}',
        access='embedded',
        simulated=True,
        **{'recipe': RECIPE, **facts},
    )


def _codes(labels: tuple[str, ...], first: int = 1) -> tuple[tuple[str, int], ...]:
    return tuple((label, k) for k, label in enumerate(labels, first))


DATASETS: tuple[Dataset, ...] = (
    _dataset(
        'Cvep',
        'Thielen2021From',
        'code-modulated visual responses to 20 codes',
        -8.8,
        n_subjects=20,
        n_recordings=20,
        n_chans=8,
        sfreq=(256.0,),
        n_events=80,
        event_id=_codes(tuple(f'symbol_{k}' for k in range(20)), 0),
    ),
    _dataset(
        'MentalImagery',
        'Scherer2015Individually',
        'five mental tasks',
        -11.4,
        n_subjects=20,
        n_recordings=40,
        n_chans=20,
        sfreq=(256.0,),
        n_events=25,
        event_id=_codes(('math', 'letter', 'rotation', 'count', 'baseline')),
    ),
    _dataset(
        'MotorExecution',
        'Srisrisawang2024Simultaneous',
        '16 reaches of the right arm',
        -7.5,
        n_subjects=50,
        n_recordings=50,
        n_chans=20,
        sfreq=(250.0,),
        n_events=32,
        event_id=_codes(_REACHES),
    ),
    _dataset(
        'MotorImagery',
        'Stieger2021Continuous',
        'imagined movement of the right, left, both or no hands',
        -8.6,
        n_subjects=40,
        n_recordings=40,
        n_chans=20,
        sfreq=(250.0,),
        n_events=40,
        event_id=_codes(('right_hand', 'left_hand', 'both_hand', 'rest')),
    ),
    _dataset(
        'P3',
        'Schreuder2010New',
        'an auditory oddball',
        -11.8,
        n_subjects=30,
        n_recordings=30,
        n_chans=16,
        sfreq=(250.0,),
        n_events=96,
        event_id=_codes(('Target', 'NonTarget')),
    ),
    _dataset(
        'Ssvep',
        'Wang2017Benchmark',
        'responses to flicker at 40 frequencies',
        -2.5,
        n_subjects=40,
        n_recordings=40,
        n_chans=13,
        sfreq=(250.0,),
        n_events=40,
        event_id=_codes(_FLICKERS),
        recipe=(RECIPE[0], ('recipe.max_epochs', 30), RECIPE[2]),
    ),
)
PARADIGM = {
    'SimulatedCvep': 'cvep',
    'SimulatedMentalImagery': 'mental_imagery',
    'SimulatedMotorExecution': 'motor_execution',
    'SimulatedMotorImagery': 'motor_imagery',
    'SimulatedP3': 'p3',
    'SimulatedSsvep': 'ssvep',
}


def recordings(dataset: Dataset, root: Path | None) -> list[RecordingRef]:
    """The recordings of a simulated set: subjects 'S01', 'S02', ... and their sessions; `root` is unused."""
    sessions = SESSIONS.get(PARADIGM[dataset.name], 1)
    made_by = (('generator', f'version {VERSION}, seed {SEED}'),)  # counts as the content of a file does
    return [
        RecordingRef(dataset.name, f'S{subject + 1:02d}', str(session), '0', (), made_by)
        for subject in range(dataset.n_subjects)
        for session in range(sessions)
    ]


def read(ref: RecordingRef) -> Recording:
    """Generate a recording (V, with positions) and its events: the same bits for the same reference."""
    from jbench.data.simulate import simulate

    raw, events = simulate(PARADIGM[ref.dataset], int(ref.subject[1:]) - 1, SEED, session=int(ref.session))
    return Recording(raw, events)
