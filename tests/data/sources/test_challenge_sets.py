"""Readers of the challenges' recordings on small trees in the layout that their hosts serve, traps included."""

from __future__ import annotations

import random
import shutil
from importlib import import_module
from pathlib import Path

import edfio
import numpy as np
import pytest
import small_files as files
from small_files import tsv

from jbench import targets
from jbench.data import marks
from jbench.data.discover import find_recordings
from jbench.data.load import split_windows, streams
from jbench.data.prepare import check_recording, codec, convert
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.sources import hbn, hbn_challenge
from jbench.data.windows import index, possible
from jbench.plan import cells, select
from jbench.spec.errors import RequestError

COPY, MINI, PROTEUS, MUSE, POSE = map(
    select.find_dataset,
    ('Shirazi2024HbnL100', 'Shirazi2024HbnL100Mini', 'proteus', 'nm000287', 'emg2pose'),
)


def read(ref: RecordingRef) -> Recording:
    """What the source of its dataset reads; it meets the contract."""
    dataset = select.find_dataset(ref.dataset)
    got = import_module(dataset.source).read(ref)
    assert isinstance(got, Recording), got
    assert [f for f in check_recording.check(got, dataset, 'x') if f.level == 'fatal'] == []
    return got


def made(task: str, ref: RecordingRef, folder: Path) -> dict:
    """The part that a task makes of a recording."""
    dataset = select.find_dataset(ref.dataset)
    folder.mkdir(exist_ok=True)
    part = convert.make(cells.apply(select.tasks()[task][-1], dataset, ()), dataset, ref, folder)
    assert [f for f in part['findings'] if f.level == 'fatal'] == [], part['findings']
    return part


# ---- 2025: the copies at 100 Hz ----

PEOPLE = 'participant_id sex age ehq_total p_factor attention internalizing externalizing'
NAMES = [f'E{k}' for k in range(1, 129)] + ['Cz']
# two whole trials; one without a press; a press before the target alone; one that no end closes
TRIALS = """onset duration value
0.5 n/a contrastTrial_start
1.0 n/a left_target
1.2 n/a right_target
2.25 n/a left_buttonPress
2.5 n/a right_buttonPress
4.0 n/a contrastTrial_start
5.0 n/a right_target
6.0 n/a contrastTrial_start
6.5 n/a left_buttonPress
7.0 n/a left_target
8.0 n/a contrastTrial_start
9.0 n/a right_target
9.0 n/a right_buttonPress
12.0 n/a contrastTrial_start
13.0 n/a left_target
13.4 n/a left_buttonPress"""


@pytest.fixture(scope='module')
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases R4, R5 and R10, whole and mini; somebody whom training leaves out is in R4 and R5."""
    home = tmp_path_factory.mktemp('copies')
    for name, ending in ((COPY.name, '_L100_bdf'), (MINI.name, '_mini_L100_bdf')):
        for release in ('R10', 'R4', 'R5') if name == COPY.name else ('R5',):
            root = home / name / f'{release}{ending}'
            tsv(
                root / 'participants.tsv', '\n'.join([PEOPLE, 'sub-NDARA F 9 1 0 0 0 0.5', 'sub-NDARB M 8 1 0 0 0 n/a'])
            )
            for p in ('NDARA', 'NDARB', *(['NDARWV769JM7'] if release in ('R4', 'R5') else [])):
                stem = root / f'sub-{p}/eeg/sub-{p}_task-contrastChangeDetection_run-1'
                files.edf(Path(f'{stem}_eeg.bdf'), NAMES if name == COPY.name and p == 'NDARA' else NAMES[-4:], 100, 16)
                tsv(Path(f'{stem}_events.tsv'), TRIALS)
    (home / COPY.name / 'ds005505').mkdir()  # an original
    return home


def test_each_set_has_the_releases_of_its_own(copies: Path) -> None:
    found = [(dict(r.fields)['release'], r.subject) for r in find_recordings(COPY, copies)]
    assert found == [
        ('R4', 'NDARA'),
        ('R4', 'NDARB'),
        ('R5', 'NDARA'),
        ('R5', 'NDARB'),
        ('R5', 'NDARWV769JM7'),  # the scorer leaves nobody out
        ('R10', 'NDARA'),
        ('R10', 'NDARB'),
    ]
    assert 'NDARWV769JM7' in hbn.LEFT_OUT
    assert [dict(r.fields)['release'] for r in find_recordings(MINI, copies)] == ['R5'] * 3


def test_trials_are_those_of_the_competition(copies: Path) -> None:
    raw, events = read(find_recordings(COPY, copies)[0])
    assert len(raw.ch_names) == 129 and raw.info['sfreq'] == 100 and set(raw.get_channel_types()) == {'eeg'}
    assert 19e-6 < raw.get_data().std() < 21e-6, 'volts, not referenced anew'
    np.testing.assert_allclose(events['onset'], [1.0, 9.0])
    np.testing.assert_allclose(events['reaction_time'], [1.25, 0.0])


def test_an_end_of_the_experiment_closes_the_last_trial() -> None:
    onset = np.array([0.0, 1.0, 2.0, 5.0])
    value = np.array(['contrastTrial_start', 'left_target', 'left_buttonPress', 'end_experiment'])
    assert [a.tolist() for a in hbn_challenge.trials(onset, value)] == [[1.0], [1.0]]
    assert [a.tolist() for a in hbn_challenge.trials(onset[:3], value[:3])] == [[], []]
    early = np.array([0.0, 6.0, 7.0, 5.0])  # an end before the last start closes nothing
    assert [len(a) for a in hbn_challenge.trials(early + [9, 0, 0, 0], value)] == [0, 0]
    assert [len(a) for a in hbn_challenge.trials(np.zeros(0), np.zeros(0, str))] == [0, 0]


def test_windows_follow_the_stimulus_and_lie_inside_the_file(copies: Path, tmp_path: Path) -> None:
    ref = find_recordings(COPY, copies)[0]
    part = made('challenge2025/response_time', ref, tmp_path / 'whole')
    assert part['windows']['onset'] == [1.5, 9.5] and part['windows']['target'] == ['1.25', '0.0']
    assert len(part['ch_names']) == 129
    short = tmp_path / 'short'
    shutil.copytree(copies / COPY.name / 'R4_L100_bdf', short / COPY.name / 'R4_L100_bdf')
    stem = short / COPY.name / 'R4_L100_bdf/sub-NDARB/eeg/sub-NDARB_task-contrastChangeDetection_run-1'
    files.edf(Path(f'{stem}_eeg.bdf'), NAMES[-4:], 100, 11)
    tsv(
        Path(f'{stem}_events.tsv'),
        TRIALS.rpartition('12.0')[0].replace('9.0 n/a right_b', '9.9 n/a right_b') + '10.5 0 end_experiment',
    )
    gone = find_recordings(COPY, short)[1]
    assert hbn_challenge.read(gone).events['type'].tolist() == [marks.PAST], 'a window past the end'
    files.edf(Path(f'{stem}_eeg.bdf'), NAMES[-4:], 100, 3)  # events, too, and as far as seconds could be samples
    assert hbn_challenge.read(gone).events['type'].tolist() == [marks.PAST]


def test_a_recording_that_ends_too_early_is_left_out_and_counted(copies: Path, tmp_path: Path) -> None:
    """Of challenge 1, whose windows would run off; challenge 2 has windows of the signal that is there."""
    shutil.copytree(copies / COPY.name / 'R4_L100_bdf', tmp_path / COPY.name / 'R4_L100_bdf')
    stem = tmp_path / COPY.name / 'R4_L100_bdf/sub-NDARA/eeg/sub-NDARA_task-contrastChangeDetection_run-1'
    files.edf(Path(f'{stem}_eeg.bdf'), NAMES, 100, 6)
    refs = find_recordings(COPY, tmp_path)
    assert [r.subject for r in refs] == ['NDARA', 'NDARB']
    parts = [made('challenge2025/response_time', ref, tmp_path / 'one') for ref in refs]
    assert [p['n_windows'] for p in parts] == [0, 2]
    kept, notes = check_recording.judge(COPY, refs, parts)
    assert kept == [0, 1] and [n for n in notes if n.startswith('past the end')] == [
        f'past the end: 1 of 2 recordings are left out, whose last windows run off their files: {refs[0].name}'
    ]
    other = [made('challenge2025/externalizing', ref, tmp_path / 'two') for ref in refs[:1]]
    assert [p['n_windows'] for p in other] == [2]
    assert not any('past the end' in n for n in check_recording.judge(COPY, refs[:1], other)[1])


def test_crops_are_drawn_as_the_scorer_draws_them(copies: Path, tmp_path: Path) -> None:
    """Windows of 400 samples every 200, in each 200 samples from a drawn one; a generator a recording."""
    ref = find_recordings(COPY, copies)[0]
    part = made('challenge2025/externalizing', ref, tmp_path)
    n_times, drawn = 1600, random.Random(42)
    expected = [start + drawn.randint(0, 200) for start in range(0, n_times - 400 + 1, 200)]
    assert len(expected) == 7
    np.testing.assert_allclose(np.array(part['windows']['onset']) * 100, expected, atol=1e-9)
    assert set(part['windows']['target']) == {'0.5'}
    nobody = made('challenge2025/externalizing', find_recordings(COPY, copies)[1], tmp_path)
    assert nobody['n_windows'] == 0, 'without the trait there is nothing to score'


# ---- track 2: PROTEUS ----

PLACES = ['C3', 'C4', 'Cz', 'Pz']
CUES = """onset duration trial_type value
1.0 0.002 start_trial 768
2.0 8.0 {a} 33026
5.0 0.002 start_feedback 781
10.0 0.002 end_trial 800
12.0 8.0 {b} 33024
22.0 0.002 OVTK_StimulationId_Train 33281"""
RUNS = {  # of a session, by number
    'BaselineOE_run-0': None,
    'AcquisitionGraz_run-1': ('mi', 'sub'),
    'AcquisitionBH_run-2': ('word', 'mi'),
    'OnlineRawBH_run-10': ('sub', 'word'),
    'OnlineRawGraz_run-3': ('mi', 'word'),
}


@pytest.fixture(scope='module')
def proteus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp('proteus')
    root = home / PROTEUS.name
    tsv(root / 'participants.tsv', 'participant_id age\nsub-P01 30\nsub-P02 30')
    for person, session in (('P02', '1'), ('P01', '2'), ('P01', '1')):
        for run, cues in RUNS.items():
            stem = root / f'sub-{person}/ses-{session}/eeg/sub-{person}_ses-{session}_task-{run}'
            marks = ((0.5, 0.0, 'start'), (23.5, 0.5, 'BAD_ACQ_SKIP'))
            files.edf(Path(f'{stem}_eeg.edf'), PLACES, 500, 24, marks)
            if cues:
                tsv(Path(f'{stem}_events.tsv'), CUES.format(a=cues[0], b=cues[1]))
    return home


def test_runs_come_in_the_order_of_their_numbers(proteus: Path) -> None:
    refs = find_recordings(PROTEUS, proteus)
    assert [(r.subject, r.session) for r in refs[::5]] == [('P01', '1'), ('P01', '2'), ('P02', '1')]
    assert [r.run.rpartition('_')[2] for r in refs[:5]] == ['0', '1', '2', '3', '10']
    interfaces = [dict(r.fields)['interface'] for r in refs[:5]]
    assert interfaces == ['', 'Graz', 'BrainHero', 'Graz', 'BrainHero']
    assert {name for r in refs for name, _ in r.fields} == {'task', 'interface'}


def test_cues_are_the_events_and_padding_is_marked(proteus: Path) -> None:
    rest, graz = (read(ref) for ref in find_recordings(PROTEUS, proteus)[:2])
    assert len(rest.events['onset']) == 0
    assert graz.events['onset'].tolist() == [2.0, 12.0] and graz.events['duration'].tolist() == [8.0, 8.0]
    assert graz.events['code'].tolist() == [0, 1] and graz.events['label'].tolist() == ['mi', 'sub']
    assert graz.raw.annotations.description.tolist() == ['BAD_ACQ_SKIP']


def test_a_run_without_its_table_is_told(proteus: Path, tmp_path: Path) -> None:
    shutil.copytree(proteus, tmp_path / 'x')
    ref = find_recordings(PROTEUS, tmp_path / 'x')[1]
    next(Path(ref.files[0]).parent.glob('*AcquisitionGraz*events.tsv')).unlink()
    found = import_module(PROTEUS.source).read(find_recordings(PROTEUS, tmp_path / 'x')[1])
    assert isinstance(found, Finding) and 'events must lie beside' in found.rule


def test_a_run_of_an_unknown_name_with_cues_is_told(proteus: Path, tmp_path: Path) -> None:
    shutil.copytree(proteus, tmp_path / 'x')
    for path in (tmp_path / 'x' / PROTEUS.name / 'sub-P01/ses-1/eeg').glob('*AcquisitionGraz*'):
        path.rename(path.with_name(path.name.replace('AcquisitionGraz', 'AcquisitionMaze')))
    found = [import_module(PROTEUS.source).read(ref) for ref in find_recordings(PROTEUS, tmp_path / 'x')[:5]]
    (bad,) = [f for f in found if isinstance(f, Finding)]
    assert 'known interface' in bad.rule and 'AcquisitionMaze' in bad.found and bad.level == 'fatal'


@pytest.mark.slow
def test_streams_are_sessions_and_cells_their_interfaces(proteus: Path, tmp_path: Path) -> None:
    task = cells.apply(select.tasks()['challenge2026/bci'][-1], PROTEUS, ())
    parts = [convert.make(task, PROTEUS, ref, tmp_path) for ref in find_recordings(PROTEUS, proteus)]
    assert [p['n_windows'] for p in parts[:5]] == [0, 2, 2, 2, 2]
    assert parts[1]['windows']['onset'] == [3.0, 13.0], 'a second after the cue'
    found = index([p for p in parts if p['n_windows']])
    events = {k[len('event.') :]: v for k, v in found.items() if k.startswith('event.')}
    windows = {k[len('window.') :]: v for k, v in found.items() if k.startswith('window.')}
    places = streams.places(events, windows, task.stream)
    assert list(dict.fromkeys(places.stream.tolist())) == ['P01/1', 'P01/2', 'P02/1']
    first = places.cell[places.stream == 'P01/1'].tolist()
    assert first == [
        f'P01/1/{name}' for name in ('Graz', 'Graz', *['BrainHero'] * 2, *['Graz'] * 2, *['BrainHero'] * 2)
    ]
    y = targets.encode(task.target, [str(t).strip('"') for t in windows['target']])
    assert y.classes == ('0', '1', '2')


# ---- track 3: Muse ----

HEADBAND = ['TP9', 'AF7', 'AF8', 'TP10']


def evening(root: Path, person: int, session: int, n2: float) -> None:
    """A recording that ends, unlike the real ones, 20 s after the first N2."""
    name = f'sub-{person:03d}_ses-{session:03d}_task-sleeponset'
    stem = root / f'sub-{person:03d}/ses-{session:03d}/eeg/{name}'
    files.brainvision(Path(f'{stem}_eeg.vhdr'), HEADBAND, 128, n2 + 20, ((int(n2 * 128) + 1, 'Stimulus', 'n2_onset'),))
    tsv(Path(f'{stem}_events.tsv'), f'onset duration trial_type value sample\n{n2} 0 n2_onset 1 {int(n2 * 128)}')


@pytest.fixture(scope='module')
def muse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight people: of the first three, the second recording is tested."""
    home = tmp_path_factory.mktemp('muse')
    root = home / MUSE.name
    tsv(
        root / 'participants.tsv', 'participant_id total_duration\n' + '\n'.join(f'sub-{p:03d} 99' for p in range(1, 9))
    )
    for person in range(1, 9):
        rows = ['session_id split duration n2_onset']
        for session in (1, 2) if person < 4 else (1,):
            evening(root, person, session, 30.25 + person)
            rows.append(f'ses-{session:03d} {"test" if session == 2 else "train"} 99 9')
        tsv(root / f'sub-{person:03d}/sub-{person:03d}_sessions.tsv', '\n'.join(rows))
    return home


def test_parts_are_told_and_nothing_else_of_the_tables(muse: Path) -> None:
    refs = find_recordings(MUSE, muse)
    assert [dict(r.fields)['split'] for r in refs] == [*['train', 'test'] * 3, *['train'] * 5]
    assert {name for r in refs for name, _ in r.fields} == {'task', 'split'}


def test_windows_end_before_the_first_n2(muse: Path, tmp_path: Path) -> None:
    ref = find_recordings(MUSE, muse)[0]
    raw, events = read(ref)
    assert raw.ch_names == HEADBAND and 19e-6 < raw.get_data().std() < 21e-6
    assert events['n2_onset'].tolist() == [31.25] and events['duration'].tolist() == [31.25]
    part = made('challenge2026/sleep', ref, tmp_path)
    assert part['windows']['onset'] == [0, 5, 10, 15, 20, 25]
    assert [float(t) for t in part['windows']['target']] == [26.25, 21.25, 16.25, 11.25, 6.25, 1.25]


def test_people_who_are_tested_do_not_validate(muse: Path, tmp_path: Path) -> None:
    task = cells.apply(select.tasks()['challenge2026/sleep'][-1], MUSE, ())
    found = index([convert.make(task, MUSE, ref, tmp_path) for ref in find_recordings(MUSE, muse)])
    events = {k[len('event.') :]: v for k, v in found.items() if k.startswith('event.')}
    windows = {k[len('window.') :]: v for k, v in found.items() if k.startswith('window.')}
    part, _, warnings = split_windows.divide(events, windows, task, MUSE.name)
    subject = events['subject'][windows['event']]
    assert set(subject[part == 'test']) == {'001', '002', '003'} < set(subject[part == 'train'])
    held = set(subject[part == 'valid'])
    assert len(held) == 1 and not held & {'001', '002', '003'}, 'a fifth of five'
    assert '' not in part and any('are in several splits' in w for w in warnings)


@pytest.mark.parametrize(
    ('change', 'says'),
    [
        (lambda text: text.replace('train', 'maybe'), "split of session 001 is 'maybe', expected train or test"),
        (lambda text: text.replace('split', 'part'), 'expected the columns split'),
        (lambda text: text.splitlines()[0] + '\n', "split of session 001 is 'missing'"),
    ],
)
def test_a_session_without_its_part_is_told(muse: Path, tmp_path: Path, change, says: str) -> None:
    shutil.copytree(muse, tmp_path / 'x')
    table = tmp_path / 'x' / MUSE.name / 'sub-001/sub-001_sessions.tsv'
    table.write_text(change(table.read_text()))
    with pytest.raises(RequestError, match=says):
        find_recordings(MUSE, tmp_path / 'x')


def test_a_recording_without_n2_is_told(muse: Path, tmp_path: Path) -> None:
    shutil.copytree(muse, tmp_path / 'x')
    table = next((tmp_path / 'x' / MUSE.name / 'sub-001/ses-001/eeg').glob('*_events.tsv'))
    table.write_text(table.read_text().replace('n2_onset', 'n3_onset'))
    found = import_module(MUSE.source).read(find_recordings(MUSE, tmp_path / 'x')[0])
    assert isinstance(found, Finding) and found.rule == 'the first N2 must be marked'


# ---- track 4: emg2pose ----

JOINTS = [f'joint{k}' for k in range(20)]


def wrist(path: Path, unit: str = 'uV', of_joints: str = 'rad', zero: slice = slice(0)) -> None:
    """12 s, of which the last one fills the file up; angles are unknown from 6 to 6.5 s, and 0 where they shall be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rng, n = np.random.default_rng(1), 2000 * 12
    angles = np.linspace(-1, 1, n) + np.arange(20)[:, None] / 20
    angles[:, zero] = 0
    signals = [edfio.BdfSignal(rng.normal(0, 20, n), 2000, label=f'emg{k}', physical_dimension=unit) for k in range(16)]
    signals += [
        edfio.BdfSignal(a, 2000, label=j, physical_dimension=of_joints) for a, j in zip(angles, JOINTS, strict=True)
    ]
    marks = [edfio.EdfAnnotation(0, 11.0, 'stage'), edfio.EdfAnnotation(6, 0.5, 'BAD_IK')]
    edfio.Bdf(signals, annotations=marks).write(path)


@pytest.fixture(scope='module')
def pose(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp('pose')
    root = home / POSE.name
    tsv(root / 'participants.tsv', 'participant_id original_user\nsub-001 u1\nsub-002 u2')
    told = {'001': 'split generalization stage side', '002': 'source_file'}
    rows = {'001': ('train user Fist left', 'val user Fist left'), '002': ('a.hdf5', 'b.hdf5')}
    for person in told:
        lines = [f'filename {told[person]}']
        for run, row in enumerate(rows[person], 1):
            name = f'sub-{person}_ses-01_task-fist_run-{run}_recording-left_emg.bdf'
            wrist(root / f'sub-{person}/ses-01/emg/{name}')
            lines.append(f'emg/{name} {row}')
        tsv(root / f'sub-{person}/ses-01/sub-{person}_ses-01_scans.tsv', '\n'.join(lines))
    text = 'filename,split,generalization,stage,side\na,test,user_stage,Fist,right\nb,test,user,Fist,right\n'
    (root / 'emg2pose_metadata.csv').write_text(text)
    return home


def test_parts_come_from_either_table(pose: Path) -> None:
    found = [(r.subject, dict(r.fields)['split'], dict(r.fields)['side']) for r in find_recordings(POSE, pose)]
    assert found == [
        ('001', 'train', 'left'),
        ('001', 'valid', 'left'),
        ('002', 'test', 'right'),
        ('002', 'unscored', 'right'),
    ]


def test_angles_are_in_radians_and_nan_where_they_are_not_known(pose: Path) -> None:
    raw, events = read(find_recordings(POSE, pose)[0])
    assert raw.n_times == 22_000 and len(events['onset']) == 0
    assert raw.get_channel_types() == ['emg'] * 16 + ['misc'] * 20
    assert 19e-6 < raw.get_data('emg').std() < 21e-6
    angles = raw.get_data(JOINTS)
    assert np.isnan(angles[:, 12_000:13_000]).all() and np.isfinite(angles[:, :12_000]).all()
    np.testing.assert_allclose(angles[0, 0], -1, atol=1e-3)


def test_windows_whose_angles_are_known_are_made(pose: Path, tmp_path: Path) -> None:
    part = made('challenge2026/pose', find_recordings(POSE, pose)[0], tmp_path)
    assert part['windows']['onset'] == [0.0], 'the second one holds what is not known, the third is not whole'
    assert part['ch_names'] == tuple(f'emg{k}' for k in range(16))
    assert 'target' not in part['windows'], 'it is large, and lies in the shard'
    text = codec.targets_of(next(tmp_path.rglob('*.array_record')))[0].strip('"')
    encoded = targets.encode(select.tasks()['challenge2026/pose'][-1].target, [text])
    assert encoded.y.shape == (1, 200_000) and len(encoded.classes) == 1000
    joint = encoded.y.reshape(20, 10_000)
    np.testing.assert_allclose(joint[0], -1 + 2 / 24_000 * np.arange(10_000), atol=1e-3)
    np.testing.assert_allclose(joint[10] - joint[0], 0.5, atol=1e-3)


def test_joints_in_another_unit_are_told(pose: Path) -> None:
    ref = find_recordings(POSE, pose)[0]
    path = Path(ref.files[0]).parents[4] / 'other.bdf'
    wrist(path, of_joints='uV')
    found = import_module(POSE.source).read(ref._replace(files=(str(path),)))
    assert isinstance(found, Finding) and 'in radians' in found.rule and found.level == 'fatal'


def test_angles_that_are_all_zero_are_not_known(pose: Path) -> None:
    ref = find_recordings(POSE, pose)[0]
    path = Path(ref.files[0]).parents[4] / 'zero.bdf'
    wrist(path, zero=slice(2000, 4000))
    angles = read(ref._replace(files=(str(path),))).raw.get_data(JOINTS)
    assert np.isnan(angles[:, 2000:4000]).all() and np.isfinite(angles[:, 4000:12_000]).all()


def test_what_is_not_scored_is_not_read(pose: Path) -> None:
    window = select.tasks()['challenge2026/pose'][-1].window
    refs = find_recordings(POSE, pose)
    assert [possible(r.fields, window) for r in refs] == [True, True, True, False]


def test_the_table_of_the_authors_may_lie_in_sourcedata(pose: Path, tmp_path: Path) -> None:
    shutil.copytree(pose, tmp_path / 'x')
    root = tmp_path / 'x' / POSE.name
    (root / 'sourcedata').mkdir()
    table = (root / 'emg2pose_metadata.csv').rename(root / 'sourcedata/emg2pose_metadata.csv')
    assert dict(find_recordings(POSE, tmp_path / 'x')[2].fields)['split'] == 'test'
    table.unlink()
    with pytest.raises(RequestError, match=r'fetch https://fb-ctrl-oss\.s3\.amazonaws\.com/emg2pose/emg2pose_metadata'):
        find_recordings(POSE, tmp_path / 'x')
