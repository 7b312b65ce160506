"""emg2qwerty in the BIDS form of NEMAR (nm000104), on small files."""

from __future__ import annotations

import json
from pathlib import Path

import edfio
import numpy as np
import pytest

from jbench import targets
from jbench.data.discover import find_recordings
from jbench.data.formats import edf
from jbench.data.prepare import check_recording
from jbench.data.prepare.convert import make
from jbench.data.recording import Finding, Recording
from jbench.data.sources import keystrokes
from jbench.plan import cells, select

EMG = select.find_dataset('emg2qwerty')
SECONDS = 13
TABLE = """onset\tduration\tsample\tvalue\tkey\tprompt_text
0.5\t0.03\t1000\tkeystroke_t\tt\tn/a
1.0\t5.5\t2000\tprompt\tn/a\tthe "quick" fox\\n
1.5\t0.03\t3000\tkeystroke_"\t"\tn/a
2.0\tn/a\t4000\tkeystroke_Key.space\tKey.space\tn/a
2.5\t0.03\t5000\tkeystroke_Key.tab\tKey.tab\tn/a
3.0\t0.03\t6000\tkeystroke_ \t \tn/a
4.0\t0.03\t8000\tkeystroke_"\t"\tn/a
12.9995\t0\t25999\tkeystroke_g\tg\tn/a
12.9995\t0\t25999\tkeystroke_a\ta\tn/a
"""


def write(path: Path, unit: str = 'uV') -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    names = [f'EMG{k}' for k in range(32)]
    signals = [
        edfio.BdfSignal(rng.normal(0, 20, 2000 * SECONDS), 2000, label=n, physical_dimension=unit) for n in names
    ]
    edfio.Bdf(signals).write(path)
    path.with_name(path.name.replace('emg.bdf', 'events.tsv')).write_text(TABLE)


@pytest.fixture
def tree(tmp_path) -> Path:
    root = tmp_path / EMG.name
    for subject, session in (('02', '1001'), ('01', '1002'), ('01', '0999')):
        write(root / f'sub-{subject}/ses-{session}/emg/sub-{subject}_ses-{session}_task-typing_emg.bdf')
    (root / 'sub-01/emg').mkdir()
    (root / 'sub-01/emg/sub-01_task-typing_emg.edf').touch()  # left there by its host
    return tmp_path


def test_recordings_are_counted_by_subject_and_session(tree) -> None:
    refs = find_recordings(EMG, tree)
    assert [(r.subject, r.session, dict(r.fields)) for r in refs] == [
        ('01', '0999', {'recording_index': '0'}),
        ('01', '1002', {'recording_index': '1'}),
        ('02', '1001', {'recording_index': '2'}),
    ]


@pytest.mark.parametrize('unit', ['uV', 'n/a'])
def test_a_recording_is_in_volts_and_has_the_keys_that_count(tree, unit) -> None:
    ref = find_recordings(EMG, tree)[0]
    write(Path(ref.files[0]), unit)
    assert edf.units(ref.files[0])[:32] == [unit] * 32
    got = keystrokes.read(ref)
    assert isinstance(got, Recording) and check_recording.check(got, EMG, 'x') == []
    assert got.raw.ch_names == [f'EMG{k}' for k in range(32)] and set(got.raw.get_channel_types()) == {'emg'}
    assert 19e-6 < got.raw.get_data().std() < 21e-6
    assert {k: v.tolist() for k, v in got.events.items()} == {
        'onset': [0.5, 1.5, 2.0, 4.0, 12.9995, 12.9995],
        'duration': [0.03, 0.03, 0.0, 0.03, 0.0, 0.0],
        'label': ['t', '"', 'Key.space', '"', 'g', 'a'],
        'type': ['Keystroke'] * 6,
    }


def test_windows_of_typing_hold_the_keys_of_their_core(tree, tmp_path) -> None:
    task = cells.apply(select.tasks()['emg/typing'][-1], EMG, ())
    ref = find_recordings(EMG, tree)[0]
    (folder := tmp_path / 'parts').mkdir()
    part = make(task, EMG, ref, folder)
    assert part['findings'] == [] and part['windows']['onset'] == [-0.9, 3.1, 7.1]
    raw = [json.loads(t) for t in part['windows']['target']]
    assert raw == [['t', '"', 'Key.space'], ['"'], []]
    encoded = targets.encode(task.target, raw)
    assert encoded.y.shape == (3, 128) and len(encoded.classes) == 99 and encoded.classes[:3] == ('"', 'Key.space', 't')
    assert make(task, EMG, ref._replace(fields=(('recording_index', '120'),)), folder)['n_windows'] == 0


def test_there_are_98_keys() -> None:
    assert len(keystrokes.KEYS) == 98


def test_a_damaged_recording_is_named(tree) -> None:
    ref = find_recordings(EMG, tree)[0]
    signal, table = map(Path, ref.files)
    whole = signal.read_bytes()
    for data, said in ((whole[:-9], 'truncated'), (b'0       ' + whole[8:], 'must begin as its format does')):
        signal.write_bytes(data)
        assert said in str(keystrokes.read(ref))
    signal.write_bytes(whole)
    for text, said in (
        ('', 'a table of keystrokes must lie beside'),
        (TABLE.replace('\tkey\t', '\tname\t'), 'a table of keystrokes must lie beside'),
        (TABLE.replace('2.0\tn/a', 'n/a\t0'), "numbers: found line 5: could not convert string to float: 'n/a'"),
        (TABLE.replace('2.0\tn/a', '2.0\tsoon'), "numbers: found line 5: could not convert string to float: 'soon'"),
        (TABLE[:77], 'each line must have all columns: found line 3 of 1 values under 6 columns'),
    ):
        table.write_text(text)
        assert isinstance(got := keystrokes.read(ref), Finding) and got.where == ref.files[1]
        assert said in str(got)
    table.write_text(TABLE.replace('2.0\tn/a', '2.0\t'))
    assert isinstance(got := keystrokes.read(ref), Recording) and got.events['duration'][2] == 0
    table.unlink()
    assert 'a table of keystrokes must lie beside' in str(keystrokes.read(ref))
