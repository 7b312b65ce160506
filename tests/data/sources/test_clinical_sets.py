"""Sets whose recordings differ in channels, and readers of TUEV and of the PhysioNet challenge of 2018, on small trees
in their layouts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import edfio
import make_prepared_fixture
import numpy as np
import pytest
import tiny

from jbench.data import windows
from jbench.data.discover import find_recordings
from jbench.data.formats import wfdb
from jbench.data.prepare import build_set, check_recording
from jbench.data.prepare.convert import make
from jbench.data.recording import Finding, Recording, event_table
from jbench.data.sources import sleep, tuh
from jbench.plan import cells, select
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override

TUEV, CINC = map(select.find_dataset, ('TUEV', 'CinC2018'))


# ---- channels that not all recordings have ----


def judged(*names: list[str], n_chans: int = 2) -> tuple[list[int], list[str]]:
    """What is said of recordings that have these channels, and each the same flat one."""
    refs = [tiny.ref(k) for k in range(len(names))]
    parts = [
        {
            'findings': [
                check_recording.Finding(f'd/{k}.edf', 'channels should vary', 'flat: Oz', 'none', 'kept', 'note')
            ],
            'native': {'sfreq': 256.0, 'seconds': 1.0, 'digest': str(k)},
            'channels': own,
            'ch_names': own,
        }
        for k, own in enumerate(names)
    ]
    return check_recording.judge(dataclasses.replace(tiny.DATASET, n_chans=n_chans), refs, parts)


def test_what_a_recording_lacks_is_told_with_its_channels() -> None:
    """That it is zero there: tests/data/prepare/test_prepare.py."""
    _, notes = judged(['Oz', 'O1'], ['Oz', 'O1', 'Fz', 'Cz'], ['Oz', 'O1', 'Fz', 'Cz'], ['Cz', 'O1', 'Oz'])
    assert notes[:2] == [
        'channels: zeros for Fz in 2 of 4 recordings, which lack them: 00_0_, 03_0_',
        'channels: zeros for Cz in 1 of 4 recordings, which lack them: 00_0_',
    ]
    assert not any(n.startswith('channels: ') for n in judged(['Oz', 'O1'], ['O1', 'Oz'])[1])  # in another order


def test_channels_under_other_names_altogether_are_refused() -> None:
    with pytest.raises(
        RequestError, match=r'1 fault .*\n +Tiny/01_0_: channels must be called as in the others: found'
    ):
        judged(['Oz', 'O1'], ['OZ', 'o1'], ['Oz', 'Fz'], ['O1', 'Oz'])


def test_a_set_without_a_recording_of_the_declared_channels_is_partial() -> None:
    assert judged(['Oz'], ['Oz', 'O1'])[1][0].startswith('channels: zeros for O1')
    assert judged(['Oz'], ['Oz', 'O1'], n_chans=9)[1][0] == 'partial: number of channels: found 1 to 2, declared 9'


def test_a_finding_of_many_recordings_is_told_once() -> None:
    names = ', '.join(f'{k}.edf' for k in range(10))
    assert judged(*[['Oz', 'O1']] * 12) == ([*range(12)], [f'channels should vary: {names} and 2 more: flat: Oz'])


def test_equal_lists_of_channels_are_kept_once() -> None:
    lists: dict = {}
    a, b = (build_set._sharing({'channels': ['x'], 'ch_names': ('x',)}, lists) for _ in range(2))
    assert (
        a == {'channels': ['x'], 'ch_names': ['x']}
        and a['channels'] is b['ch_names']
        and build_set._sharing(None, lists) is None
    )


# ---- TUEV ----


NAMES = [f'EEG {c}-REF' for c in 'FP1 FP2 F3 F4 C3 C4 P3 P4 O1 O2 F7 F8 T3 T4 T5 T6 A1 A2 FZ CZ PZ'.split()]
REC = """1,10.0,11.0,6.0
1,11.0,12.0,6.0
1,11.5,12.5,6.0
2,10.0,11.0,6.0
2,11.0,12.5,6.0
3,10.0,11.0,1.0
3,20.0,21.0,1.0
4,30.04,31.04,4.0
4,31.0,32.0,4.0
5,39.0,40.0,5.0
5,40.0,41.0,5.0
"""


@pytest.fixture
def tuev(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    for name in ('train/aaaaaaar/aaaaaaar_00000001', 'eval/000/bckg_000_a_', 'eval/000/gped_000_a_1'):
        path = tmp_path / TUEV.name / 'edf' / f'{name}.edf'
        path.parent.mkdir(parents=True, exist_ok=True)
        signals = [edfio.EdfSignal(rng.normal(0, 20, 250 * 40), 250, label=n, physical_dimension='uV') for n in NAMES]
        edfio.Edf(signals).write(path)
        path.with_suffix('.rec').write_text(REC)
    return tmp_path


def test_files_of_tuev_are_found_by_both_of_their_forms(tuev) -> None:
    refs = find_recordings(TUEV, tuev)
    assert [(r.subject, r.session, r.run, dict(r.fields)) for r in refs] == [
        ('000', 'a', 'bckg', {'split': 'eval'}),
        ('000', 'a_1', 'gped', {'split': 'eval'}),
        ('aaaaaaar', '', '00000001', {'split': 'train'}),
    ]
    assert len({r.name for r in refs}) == 3 and all(Path(f).exists() for r in refs for f in r.files)


def test_seconds_of_tuev_become_events_and_two_may_begin_together(tuev, tmp_path) -> None:
    ref = find_recordings(TUEV, tuev)[0]
    got = tuh.read(ref)
    assert isinstance(got, Recording) and check_recording.check(got, TUEV, 'x') == []
    found = list(zip(*(got.events[k].tolist() for k in ('onset', 'duration', 'state')), strict=True))
    assert found == [
        (10.0, 1.0, 'spsw'),
        (10.0, 2.5, 'bckg'),
        (20.0, 1.0, 'spsw'),
        (30.0, 2.0, 'eyem'),
        (39.0, 2.0, 'artf'),
    ]
    task = cells.apply(select.tasks()['clinical_event'][-1], TUEV, ())
    table = event_table(got, ref, TUEV)
    rows = windows.triggers(table, task.window, task.target)
    assert sorted(table['onset'][rows].tolist()) == [10.0, 10.0, 20.0, 30.0, 39.0]
    with pytest.raises(RequestError, match=r'two ClinicalEvent events at 10\.000 s'):
        windows.triggers(table, task.window, dataclasses.replace(make_prepared_fixture.task().target, field='state'))
    (folder := tmp_path / 'parts').mkdir()
    part = make(task, TUEV, ref, folder)
    assert (
        part['ch_names'] == task.signal.picks and part['n_windows'] == 2 + 4 + 2 + 3 + 3
    )  # the last window begins with the recording's end
    assert json.loads(part['windows']['target'][0]) == ['bckg', 'spsw']


@pytest.mark.parametrize('table', ['', '1,10.0,11.0,7.0\n', '1,10.0,soon,6.0\n', '1;10;11;6\n'])
def test_a_table_of_tuev_that_cannot_be_read_is_named(tuev, table) -> None:
    ref = find_recordings(TUEV, tuev)[0]
    Path(ref.files[1]).write_text(table)
    assert isinstance(got := tuh.read(ref), Finding) and got.where == ref.files[1]


# ---- PhysioNet challenge 2018 ----


EEG = ['F3-M2', 'F4-M1', 'C3-M2', 'C4-M1', 'O1-M2', 'O2-M1']
OTHERS = ['E1-M2', 'Chin1-Chin2', 'ABD', 'CHEST', 'AIRFLOW', 'SaO2', 'ECG']
SECONDS = 400
# written by the package wfdb 4.3.1: its own note first, pauses of more than 1023 samples, one that goes back by one
BY_WFDB = bytes.fromhex(
    '005817fc23232074696d65207265736f6c7574696f6e3a203230300000ecffffffff0100005801fc570000ec00007017005802fc4e3100ec'
    '00007017005802fc4e32f45901f80dfc2861726f7573616c5f7265726100f4590dfc61726f7573616c5f72657261290000ec04001861005802'
    'f80efc28726573705f6879706f706e656100ec470060b700580efc726573705f6879706f706e6561290000'
)


def annotation(marks: list[tuple[int, str]]) -> bytes:
    """Marks at samples, as a file of annotations: each after a pause of 32 bits, with its text."""
    data, before = b'', 0
    for sample, text in marks:
        gap = (sample - before) & 0xFFFFFFFF
        data += (
            (59 << 10).to_bytes(2, 'little') + (gap >> 16).to_bytes(2, 'little') + (gap & 0xFFFF).to_bytes(2, 'little')
        )
        data += (22 << 10).to_bytes(2, 'little') + (63 << 10 | len(text)).to_bytes(2, 'little') + text.encode()
        data += b'\0' * (len(text) % 2)
        before = sample
    return data + b'\0\0'


MARKS = [
    (0, '## time resolution: 200'),
    (30 * 200, 'W'),
    (60 * 200, 'N1'),
    (70 * 200, '(resp_centralapnea'),
    (80 * 200, '(arousal_rera'),
    (85 * 200, 'resp_centralapnea)'),
    (90 * 200, 'arousal_rera)'),
    (120 * 200, 'N2'),
    (180 * 200, 'U'),
    (240 * 200, '(arousal_noise'),
    (250 * 200, 'arousal_noise)'),
    (300 * 200, 'R'),
]


@pytest.fixture
def challenge(tmp_path) -> Path:
    root, rng = tmp_path / CINC.name, np.random.default_rng(0)
    for name in ('training/tr03-0005/tr03-0005', 'test/te03-0001/te03-0001'):
        (path := root / f'{name}.hea').parent.mkdir(parents=True)
        units = ['uV'] * 11 + ['%', 'mV']
        gains = ['1'] * 12 + ['1000(7)']
        lines = [
            f'{path.stem}.mat 16+24 {g}/{u} 16 0 -31 -25 0 {c}'
            for g, u, c in zip(gains, units, EEG + OTHERS, strict=True)
        ]
        path.write_text('\n'.join([f'{path.stem} 13 200 {SECONDS * 200}', *lines, '# of whom?']) + '\n')
        steps = rng.normal(0, 20, (SECONDS * 200, 13)).astype('<i2')
        steps[0, :] = [-32768, *range(1, 12), 1007]
        path.with_suffix('.mat').write_bytes(b'\x14' * 24 + steps.tobytes())
    (root / 'training/tr03-0005/tr03-0005.arousal').write_bytes(annotation(MARKS))
    (root / 'training/tr03-0005/tr03-0005-arousal.mat').write_bytes(b'no record')
    return tmp_path


def test_a_night_of_the_challenge_has_its_signals_in_volts(challenge) -> None:
    (ref,) = find_recordings(CINC, challenge)  # the test part has no labels
    assert (ref.subject, ref.fields) == ('tr03-0005', (('split', 'train'),))
    got = sleep.read(ref)
    assert isinstance(got, Recording) and check_recording.check(got, CINC, 'x') == []
    raw = got.raw
    assert raw.ch_names == EEG + OTHERS and raw.info['sfreq'] == 200 and raw.n_times == SECONDS * 200
    assert raw.get_channel_types() == ['eeg'] * 6 + ['eog', 'emg', 'misc', 'misc', 'misc', 'misc', 'ecg']
    first = [-32768e-6, *(k * 1e-6 for k in range(1, 11)), 11, 1e-3]  # a sample at the rail is no gap
    np.testing.assert_allclose(raw.get_data()[:, 0], first, rtol=1e-12)


def test_stages_and_arousals_of_the_challenge(challenge) -> None:
    (ref,) = find_recordings(CINC, challenge)
    events = sleep.read(ref).events
    rows = list(
        zip(*(events[k].tolist() for k in ('type', 'onset', 'duration', 'stage', 'state', 'label')), strict=True)
    )
    published = [row for row in rows if row[0].endswith('Early')]  # from the first annotation on: 30 s too early
    moved = [
        (f'{kind}Early', onset - 30, *rest) for kind, onset, *rest in rows if kind in ('SleepStage', 'SleepArousal')
    ]
    assert [row for row in published if row[0] in ('SleepStageEarly', 'SleepArousalEarly')] == moved
    assert ('SleepOnsetEarly', 0, 90, '', '', '') in published
    assert [row for row in rows if row not in published] == [
        ('SleepStage', 30, 30, 'W', '', ''),
        ('SleepStage', 60, 60, 'N1', '', ''),
        ('SleepStage', 120, 60, 'N2', '', ''),
        ('SleepStage', 300, 30, 'R', '', ''),
        ('SleepOnset', 0, 120, '', '', ''),
        ('SleepArousal', 70, 15, '', 'central_apnea', 'arousal'),
        ('SleepArousal', 80, 10, '', 'rera', 'arousal'),
        ('SleepArousal', 240, 10, '', 'noise', ''),
    ]
    assert np.isnan(events['n2_onset']).sum() == 2 * 7 and set(events['n2_onset'][~np.isnan(events['n2_onset'])]) == {
        90,
        120,
    }


@pytest.mark.parametrize(('record', 'n2', 'published'), [('tr03-0005', 780, 420), ('tr03-0029', 2100, 1560)])
def test_sleep_begins_where_the_true_annotations_say(data_dir: Path, record, n2, published) -> None:
    path = data_dir / 'originals' / 'Ghassemi2018You' / f'{record}.arousal'
    events = sleep._scored([(sample / 200, text) for sample, text in wfdb.marks(path) if text[:2] not in ('', '##')])
    for kind, wanted in (('SleepOnset', n2), ('SleepOnsetEarly', published)):
        assert set(events['n2_onset'][events['type'] == kind]) == {wanted}


@pytest.mark.parametrize(('name', 'n_windows'), [('sleep_arousal', 26), ('sleep_stage', 6), ('sleep_onset', 24)])
def test_the_sleep_tasks_find_their_windows_in_the_challenge(challenge, tmp_path, name, n_windows) -> None:
    (ref,) = find_recordings(CINC, challenge)
    task = override(cells.apply(select.tasks()[name][-1], CINC, ()), 'signal.sfreq', 200.0)
    task = override(override(task, 'signal.band', None), 'signal.notch', ())
    (folder := tmp_path / 'parts').mkdir()
    part = make(task, CINC, ref, folder)
    assert part['findings'] == [] and part['n_windows'] == n_windows and list(part['ch_names']) == EEG
    if name == 'sleep_arousal':
        touched = [k for k, target in enumerate(part['windows']['target']) if json.loads(target)]
        assert touched == [4, 5]  # 60 to 90 s; noise is none


def test_annotations_of_wfdb_are_those_that_its_package_wrote(tmp_path) -> None:
    (path := tmp_path / 'a.arousal').write_bytes(BY_WFDB)
    found = [(sample, text) for sample, text in wfdb.marks(path) if text]
    assert found[0][1] == '## time resolution: 200' and found[1:] == [
        (0, 'W'),
        (6000, 'N1'),
        (12000, 'N2'),
        (12500, '(arousal_rera'),
        (13000, 'arousal_rera)'),
        (300000, '(resp_hypopnea'),
        (5000000, 'resp_hypopnea)'),
    ]


def test_a_damaged_record_of_the_challenge_is_named(challenge, tmp_path) -> None:
    (ref,) = find_recordings(CINC, challenge)
    task = cells.apply(select.tasks()['sleep_stage'][-1], CINC, ())
    mat, table, head = map(Path, ref.files)
    for path, change, said in (
        (table, lambda data: data[:-40], 'it breaks off after'),
        (table, lambda data: annotation([(0, '?')]), 'sleep stages must be there and known: found ?'),
        (mat, lambda data: data[:-1], 'bytes, expected'),
        (head, lambda data: data.replace(b'16+24', b'212'), 'not a header of WFDB'),
    ):
        whole = path.read_bytes()
        path.write_bytes(change(whole))
        (finding,) = make(task, CINC, ref, tmp_path)['findings']
        assert said in str(finding) and ref.files[0].rpartition('/')[0] in finding.where, str(finding)
        path.write_bytes(whole)
