"""Simulated stand-ins for the Core datasets of the tasks of NeuralBench: generated in memory, no download, known truth.

They make the whole benchmark run in minutes anywhere; they carry `simulated` everywhere and enter no leaderboard.
Class names, codes, event types and fields follow the real set; the generator (data/simulation/) is ours. Departures
from the real sets, on purpose and for speed:

- fewer channels (unless a task names them), at most 256 Hz, short recordings; more subjects with fewer trials each;
- labels of a subject (a diagnosis, an age, a release) follow from its number: classes are equally frequent;
- mental imagery: trials every 5 s, so the 3 s before the imagery hold the end of the previous one; session '0' holds
  more trials than session '1' (the real sessions are alike);
- SSVEP: 4 s of flicker after the 0.5 s cue (real: 5 s);
- c-VEP: four code cycles a trial (real: fifteen), electrodes O1, POz, Oz, Iz, O2, Fz, T7, T8; the window of the last
  cycle runs 1.9 s past the code;
- motor execution: all reaches share one desynchronisation, so classes differ below 6 Hz alone;
- P3: one run of 96 tones in 35 s (real: half an hour);
- HBN has five releases, a fifth of the subjects each; rest lasts 190 s;
- nights of some 14 minutes, evenings of 5 to 13 minutes; all stages come in all of them;
- artefacts are shallow dipoles; eyes, jaw and neck are where the nearest electrodes are;
- embeddings of stimuli, which are names, are generated too: `vectors` stands in for the encoders;
- MEG: 24 of Neuromag's 102 places, 128 Hz; the pictures and keys are those of the EEG sets;
- fMRI: 200 parcels, a picture every 4 to 6 s; EMG: half a minute of the home row, eight keys, read at 1 kHz.

The recipe that each set carries learns in some hundred steps what the published one (learning rate 1e-4, thousands of
steps) learns on the real sets. SNR in the titles: variance of what the paradigm adds or changes over variance of
everything else, 1-40 Hz (fMRI: all frequencies, EMG: 20-450 Hz), inside the windows, at the best sensor; mean of this
ratio over the first six subjects, who differ by several dB. Where a subject's traits are the signature, it is all that
they change.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.recording import Recording, RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.overrides import Override

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

SEED = 1  # the embedded population; amplitudes were set on another one (0)
VERSION = 1  # of the generator: a change of any sample is a new version
RECIPE: tuple[Override, ...] = (('recipe.lr', 1e-2), ('recipe.max_epochs', 20), ('recipe.patience', 10))
LONGER: tuple[Override, ...] = (RECIPE[0], ('recipe.max_epochs', 30), RECIPE[2])
LONGEST: tuple[Override, ...] = (RECIPE[0], ('recipe.max_epochs', 40), ('recipe.patience', 15))

# The labels stand here a second time so that a list of datasets loads no numpy; a test compares them.
_REACHES = tuple(
    f'{way}_{speed}_{reach}'
    for way in ('up', 'down', 'left', 'right')
    for speed in ('slow', 'fast')
    for reach in ('near', 'far')
)
_FLICKERS = tuple(f'{hz + step / 5:g}' for step in range(5) for hz in range(8, 16))


def _codes(labels: tuple[str, ...], first: int = 1) -> tuple[tuple[str, int], ...]:
    return tuple((label, k) for k, label in enumerate(labels, first))


SESSIONS = {  # one for all others
    'mental_imagery': 2,
    'mental_arithmetic': 2,
    'mental_workload': 3,
    'image': 2,
    'meg_image': 2,
    'fmri_image': 2,
}
PAIR = _codes(('Target', 'NonTarget'))


def _dataset(
    paradigm: str, real: str, what: str, snr: float, size: tuple[int, int, float], events: tuple[str, int], **facts: Any
) -> Dataset:
    """The stand-in of a task: `size` = (subjects, channels, Hz), `events` = (type, least number in a recording)."""
    n_subjects, n_chans, sfreq = size
    kind, n_events = events
    return Dataset(
        name='Simulated' + ''.join(word.capitalize() for word in paradigm.split('_')),
        title=f'Simulation of {what}, in the layout of {real}, SNR {snr:g} dB',
        source=__name__,
        n_subjects=n_subjects,
        n_recordings=n_subjects * SESSIONS.get(paradigm, 1),
        n_chans=n_chans,
        sfreq=(sfreq,),
        event_types=(kind,) if kind else (),
        n_events=n_events or None,
        licence='CC0-1.0',
        citation='jbench, simulated',
        host='generated',
        layout=f'nothing on disk: generator version {VERSION}, population seed {SEED}',
        access='embedded',
        simulated=True,
        **{'recipe': RECIPE, **facts},
    )


NONE = ('', 0)  # no event is declared
ERP_CORE = 'Kappenman2021Erp'
SIZES = {'mental': (30, 15, 128.0), 'erp': (30, 19, 128.0), 'clinic': (48, 19, 128.0), 'child': (60, 12, 128.0)}
READ = (12, 16, 128.0)
MEG: dict[str, Any] = {'device': 'meg', 'amplitude': (1e-14, 1e-10)}  # T, and T/m
EMG: tuple[Override, ...] = (
    ('signal.sfreq', 1000.0),
    ('recipe.batch_size', 4),
    ('recipe.max_epochs', 8),
    ('recipe.start_div', 25.0),
)
DATASETS: tuple[Dataset, ...] = (
    _dataset(
        'cvep',
        'Thielen2021From',
        'code-modulated visual responses to 20 codes',
        -8.1,
        (20, 8, 256.0),
        ('Stimulus', 80),
        event_id=_codes(tuple(f'symbol_{k}' for k in range(20)), 0),
    ),
    _dataset(
        'mental_imagery',
        'Scherer2015Individually',
        'five mental tasks',
        -10.6,
        (20, 20, 256.0),
        ('Stimulus', 25),
        event_id=_codes(('math', 'letter', 'rotation', 'count', 'baseline')),
    ),
    _dataset(
        'motor_execution',
        'Srisrisawang2024Simultaneous',
        '16 reaches of the right arm',
        -7.5,
        (50, 20, 250.0),
        ('Stimulus', 32),
        event_id=_codes(_REACHES),
    ),
    _dataset(
        'motor_imagery',
        'Stieger2021Continuous',
        'imagined movement of the right, left, both or no hands',
        -8.5,
        (40, 20, 250.0),
        ('Stimulus', 40),
        event_id=_codes(('right_hand', 'left_hand', 'both_hand', 'rest')),
    ),
    _dataset('p3', 'Schreuder2010New', 'an auditory oddball', -11.6, (30, 16, 250.0), ('Stimulus', 96), event_id=PAIR),
    _dataset(
        'ssvep',
        'Wang2017Benchmark',
        'responses to flicker at 40 frequencies',
        -2.3,
        (40, 13, 250.0),
        ('Stimulus', 40),
        event_id=_codes(_FLICKERS),
        recipe=LONGER,
    ),
    # evoked responses
    _dataset('n170', ERP_CORE + 'N170', 'faces and cars', -20.2, SIZES['erp'], ('Stimulus', 80), event_id=PAIR),
    _dataset(
        'mismatch_negativity', ERP_CORE + 'Mmn', 'rare tones', -20.4, SIZES['erp'], ('Stimulus', 120), event_id=PAIR
    ),
    _dataset('n400', ERP_CORE + 'N400', 'unrelated words', -13.1, SIZES['erp'], ('Stimulus', 80), event_id=PAIR),
    _dataset('n2pc', ERP_CORE + 'N2pc', 'search on two sides', -17.7, SIZES['erp'], ('Stimulus', 80), event_id=PAIR),
    _dataset('ern', ERP_CORE + 'Ern', 'wrong answers', -23.1, SIZES['erp'], ('Stimulus', 96), event_id=PAIR),
    _dataset('lrp', ERP_CORE + 'Lrp', 'presses of either hand', -19.8, SIZES['erp'], ('Stimulus', 80), event_id=PAIR),
    _dataset(
        'audiovisual_stimulus',
        'Mne2013SampleEeg',
        'tones and checkerboards on two sides (ten subjects, not one)',
        -18,
        (10, 19, 128.0),
        ('Stimulus', 96),
        event_id=_codes(('left_audio', 'left_visual', 'right_audio', 'right_visual')),
    ),
    _dataset(
        'reaction_time', 'Shirazi2024Hbn', 'reactions to a change of contrast', -7.9, (40, 19, 128.0), ('Keystroke', 32)
    ),
    # states
    _dataset(
        'emotion',
        'Chen2023Large',
        'nine emotions',
        -11.9,
        SIZES['mental'],
        ('Stimulus', 9),
        event_id=_codes(
            ('amusement', 'anger', 'disgust', 'fear', 'inspiration', 'joy', 'neutral', 'sadness', 'tenderness')
        ),
    ),
    _dataset('mental_arithmetic', 'Zyma2019Electroencephalograms', 'calculation and rest', -5.1, SIZES['mental'], NONE),
    _dataset('mental_workload', 'Hinss2023Open', 'a task of three difficulties', -10.4, SIZES['mental'], NONE),
    _dataset('sleep_stage', 'Kemp2000Analysis', 'five stages of sleep', -3.3, (30, 4, 100.0), ('SleepStage', 10)),
    _dataset('sleep_onset', 'Kemp2000Analysis', 'people who fall asleep', -6.2, (30, 4, 100.0), ('SleepStage', 3)),
    _dataset(
        'sleep_arousal',
        'Ghassemi2018You',
        'arousals from sleep',
        -6,
        (30, 4, 100.0),
        ('SleepArousal', 8),
        recipe=LONGEST,
    ),
    # clinical recordings
    _dataset('seizure', 'Dan2023Bids', 'generalised and focal seizures', 7.4, (30, 19, 128.0), ('Seizure', 2)),
    _dataset(
        'clinical_event',
        'Harati2015Tuev',
        'epileptiform discharges and artefacts',
        4.3,
        (32, 21, 128.0),
        ('ClinicalEvent', 30),
    ),
    _dataset('artifact', 'Hamid2020Tuar', 'five kinds of artefact', 3.6, (30, 19, 128.0), ('Artifact', 10)),
    _dataset('dementia_diagnosis', 'Miltiadous2023Dice', "Alzheimer's disease, dementia", -2.9, SIZES['clinic'], NONE),
    _dataset('depression_diagnosis', 'Mumtaz2018Machine', 'depression', -8.4, SIZES['clinic'], NONE),
    _dataset('parkinsons_diagnosis', 'Singh2021Timing', "Parkinson's disease", -6.7, (48, 60, 128.0), NONE),
    _dataset('schizophrenia_diagnosis', 'Albrecht2019Increased', 'schizophrenia', -5.7, SIZES['clinic'], NONE),
    _dataset('pathology', 'Lopez2017Tuab', 'abnormal recordings', -5.1, (48, 21, 128.0), NONE),
    # traits
    _dataset('age', 'Shirazi2024Hbn', 'people of 5 to 21 years', -9.6, SIZES['child'], NONE),
    _dataset('sex', 'Shirazi2024Hbn', 'girls and boys', -13, SIZES['child'], NONE),
    _dataset('psychopathology', 'Shirazi2024Hbn', 'externalizing behaviour', -10.8, SIZES['child'], NONE),
    # stimuli
    _dataset('image', 'Gifford2022Large', 'pictures', -7.4, READ, ('Image', 180)),
    _dataset('sentence', 'Hollenstein2018Zuco', 'sentences that are read', -4.3, READ, ('Sentence', 100)),
    _dataset('speech', 'Brennan2019Hierarchical', 'a story that is heard', -1.1, READ, ('Word', 255)),
    _dataset('typing', 'Levy2026NoninvasiveEeg', 'keys that are pressed', -4.4, (12, 20, 128.0), ('Keystroke', 300)),
    _dataset('video', 'Liu2024Eeg2video', 'films of two seconds', -7.9, READ, ('Video', 120)),
    _dataset('word', 'Nieuwland2018Large', 'words that are read', -5.7, READ, ('Word', 300)),
    # other devices
    _dataset('meg_image', 'Hebart2023ThingsMeg', 'pictures in MEG', -7.8, (12, 72, 128.0), ('Image', 180), **MEG),
    _dataset('meg_typing', 'Levy2026NoninvasiveMeg', 'keys in MEG', -5.5, (12, 72, 128.0), ('Keystroke', 300), **MEG),
    _dataset(
        'fmri_image',
        'Chang2019Bold5000',
        'pictures in fMRI',
        -2.7,
        (10, 200, 0.5),
        ('Image', 180),
        device='fmri',
        amplitude=(1.0, 200.0),  # scanner units
        recipe=(('recipe.lr', 1e-3), *RECIPE[1:]),
    ),
    _dataset(
        'emg_typing',
        'Sivakumar2024Emg2qwerty',
        'typing with a wristband on each arm',
        20.5,
        (20, 32, 2000.0),
        ('Keystroke', 90),
        device='emg',
        recipe=EMG,
    ),
)


def paradigm(dataset: str) -> str:
    """The paradigm that a simulated set shows: SimulatedMotorImagery -> motor_imagery."""
    return re.sub('(?<!^)(?=[A-Z])', '_', dataset.removeprefix('Simulated')).lower()


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """The recordings of a simulated set: subjects 'S01', 'S02', ... and their sessions; `root` is unused."""
    from jbench.data.simulation import PARADIGMS

    person = PARADIGMS[paradigm(dataset.name)].person
    made_by = ('generator', f'version {VERSION}, seed {SEED}')  # counts as the content of a file does
    return [
        RecordingRef(
            dataset.name,
            f'S{subject + 1:02d}',
            str(session),
            '0',
            (),
            (made_by, *person(subject, session).fields.items()),
        )
        for subject in range(dataset.n_subjects)
        for session in range(dataset.n_recordings // dataset.n_subjects)
    ]


def read(ref: RecordingRef) -> Recording:
    """Generate a recording (V, with positions) and its events: the same bits for the same reference."""
    from jbench.data.simulation.simulate import simulate

    population = int(dict(ref.fields).get('generator', str(SEED)).split()[-1])  # as its reference was made, anywhere
    return Recording(*simulate(paradigm(ref.dataset), int(ref.subject[1:]) - 1, population, session=int(ref.session)))


def vectors(names: Sequence[str], size: int) -> np.ndarray:
    """The embeddings of stimuli: f32 [N, size]; they stand in for those of an encoder."""
    import numpy as np

    from jbench.data.simulation.stimuli import embedding

    return np.stack([embedding(name, size) for name in names])
