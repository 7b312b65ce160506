"""A folder of one's own: names that tell the class, tables of other programs, other rates, and what is missing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_files as files
from places import ROOT
from small_files import tsv

import jbench
from jbench import run
from jbench.data.discover import find_recordings
from jbench.data.formats import bids
from jbench.data.prepare import build_set, findings
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.sources import folder
from jbench.plan import cells, select
from jbench.results import record
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Exclusion, SignalSpec

NAMES = ['Fp1', 'Cz', 'O1', 'O2']
EVENTS, RESTING = (ROOT / 'configs' / f'{name}.py' for name in ('local_folder', 'resting_folder'))


def dataset_of(path: Path) -> Dataset:
    ((_, dataset),) = select.select_tasks(str(path))
    assert dataset is not None
    return dataset


def ask(home: Path, *flags: str, task: Path = EVENTS) -> int:
    where = (f'--data_dir={home}', f'--workdir={home / "work"}')
    return run.main([f'--task={task}', *where, '--model=dummy', '--seeds=33', '--format=json', *flags])


# ---- the class from the name ----


@pytest.mark.parametrize(
    ('pattern', 'name', 'known'),
    [
        ('{subject}_{eyes}', 'S01_open', {'subject': 'S01', 'eyes': 'open'}),
        ('{subject}_{eyes}', 'S01_open_again', {'subject': 'S01', 'eyes': 'open_again'}),
        ('{subject}/{eyes}', 'S01/open', {'subject': 'S01', 'eyes': 'open'}),
        ('*_{subject}_r{run}', 'lab_2_S01_r3', {'subject': '2_S01', 'run': '3'}),
        ('{subject}.{eyes}', 'S01_open', {}),
        ('{subject}_{eyes}', 'S01', {}),
    ],
)
def test_a_pattern_tells_what_a_name_says(pattern, name, known):
    assert folder.named(pattern, name) == known


@pytest.mark.parametrize(('pattern', 'said'), [('{eyes}', 'no {subject}'), ('{subject}{type}', "field 'type'")])
def test_a_pattern_without_a_person_or_with_a_taken_field_is_refused(pattern, said):
    with pytest.raises(RequestError, match=said):
        folder.named(pattern, 'S01')


def resting(home: Path, n: int = 6) -> Path:
    """Two files a person without any event; those of the last one have another rate."""
    for k in range(1, n + 1):
        for eyes in ('open', 'closed'):
            files.edf(home / 'MyEyes2026' / f'S{k:02d}_{eyes}.edf', NAMES, 250 if k == n else 100, 12)
    return home


@pytest.mark.slow
def test_a_resting_folder_runs_without_events_and_at_two_rates(tmp_path, capsys):
    assert ask(resting(tmp_path), task=RESTING) == 0
    (path,) = tmp_path.glob('work/results/my_eyes_by_file@1/*/dummy/*/seed33.json')
    result = json.loads(path.read_text())
    assert result['classes'] == ['closed', 'open'] and result['warnings'] == []
    assert result['n_records']['evaluated'] == 2 * 2 * 6 and result['signal']['sfreq'] == 100  # 2 people, 2 files
    (manifest,) = tmp_path.glob('work/prepared/MyEyes2026/*/manifest.json')
    assert {r['sfreq'] for r in json.loads(manifest.read_text())['recordings']} == {100.0, 250.0}


def test_a_file_called_otherwise_is_named(tmp_path):
    files.edf(resting(tmp_path, 1) / 'MyEyes2026' / 'notes.edf', NAMES, 100, 5)
    with pytest.raises(
        RequestError, match=r"notes\.edf: not called '{subject}_{eyes}', as `names` of the dataset says"
    ):
        find_recordings(dataset_of(RESTING), tmp_path)


def test_folders_may_tell_who_it_is(tmp_path):
    dataset = replace(dataset_of(RESTING), names='{subject}/{session}/{eyes}')
    for name in ('S01/1/open', 'S01/1/closed', 'S02/1/open'):
        files.edf(tmp_path / dataset.name / f'{name}.edf', NAMES, 100, 5)
    found = find_recordings(dataset, tmp_path)
    assert [(r.subject, r.session, r.run, dict(r.fields)['eyes']) for r in found] == [
        ('S01', '1', 'closed', 'closed'),
        ('S01', '1', 'open', 'open'),
        ('S02', '1', 'open', 'open'),
    ]


# ---- BIDS ----


def in_bids(home: Path) -> Path:
    """A BrainVision recording with a marker, and no table of events."""
    signal = home / 'MyRest2026' / 'sub-01/eeg/sub-01_task-rest_eeg.vhdr'
    signal.parent.mkdir(parents=True)
    files.brainvision(signal, NAMES, 100, 20, ((501, 'Stimulus', 'S  1'), (901, 'New Segment', '')))
    return signal


@pytest.mark.slow
def test_bids_without_a_table_of_events_says_so(tmp_path, capsys):
    signal = in_bids(tmp_path)
    assert ask(tmp_path) == 2
    said = capsys.readouterr().err
    assert f'{signal}: events.tsv missing' in said and 'S  1' not in said
    tsv(signal.with_name('sub-01_task-rest_events.tsv'), 'onset duration trial_type\n1 8 open')
    (ref,) = find_recordings(dataset_of(EVENTS), tmp_path)
    got = folder.read(ref)
    assert isinstance(got, Recording) and 'open' in got.events['label'].tolist()


def test_rest_in_bids_needs_no_table(tmp_path):
    in_bids(tmp_path)
    (ref,) = find_recordings(replace(dataset_of(EVENTS), event_types=()), tmp_path)
    got = folder.read(ref)
    assert isinstance(got, Recording) and set(got.events['type'].tolist()) <= {'Bad'}
    assert got.events['onset'].tolist()[-1] == 9.0, 'where the recorder paused'


# ---- tables ----


@pytest.mark.parametrize(
    ('suffix', 'content'),
    [
        ('.tsv', b'"onset"\t"duration"\t"label"\n1\t8\t"ge\xc3\xb6ffnet"\n'),
        ('.tsv', 'onset\tduration\tlabel\n1\t8\tgeöffnet\n'.encode('latin-1')),
        ('.tsv', 'onset\tduration\tlabel\r\n1\t8\tgeöffnet\r\n'.encode('utf-16')),
        ('.csv', '"onset","duration","label"\n1,8,"geöffnet"\n'.encode()),
        ('.tsv', 'onset\tduration\tlabel\n1\t8\tgeöffnet\n'.encode('utf-8-sig')),
    ],
)
def test_tables_of_other_programs_are_read(tmp_path, suffix, content):
    (path := tmp_path / f'x{suffix}').write_bytes(content)
    assert bids.table(path) == {'onset': ['1'], 'duration': ['8'], 'label': ['geöffnet']}


@pytest.mark.parametrize(('name', 'mark'), [('a.csv', ';'), ('a.csv', '\t'), ('a.tsv', ','), ('a.tsv', ';')])
def test_a_table_with_another_mark_between_values_is_read(name, mark, tmp_path):
    path = tmp_path / name
    path.write_text(f'onset{mark}label\n1{mark}open\n')
    assert bids.table(path) == {'onset': ['1'], 'label': ['open']}


def test_a_quote_inside_a_plain_table_stays(tmp_path):
    (path := tmp_path / 'x.tsv').write_text('onset\tlabel\n1\tsay "a"\n2\t"b\n')
    assert bids.table(path)['label'] == ['say "a"', '"b']


def test_a_table_that_mne_bids_cannot_read_is_named(tmp_path):
    signal = in_bids(tmp_path)
    table = signal.with_name('sub-01_task-rest_channels.tsv')
    table.write_bytes(b'name\ttype\tunits\n' + b''.join(f'{n}\tEEG\t\xb5V\n'.encode('latin-1') for n in NAMES))
    (ref,) = find_recordings(replace(dataset_of(EVENTS), event_types=()), tmp_path)
    assert str(folder.read(ref)).startswith(f'{table}: the table must be text in UTF-8: found byte 0xb5')


# ---- messages ----


@pytest.mark.parametrize('different', [False, True])
def test_one_fault_of_many_files_is_one_line(different):
    found = [
        Finding(f'/d/S{k:02d}.edf', 'no event may be missing', f'{k * different}', '9', 'again') for k in range(60)
    ]
    found.append(Finding('/d/S01.edf', 'samples must be finite', '1', 'none', 'repair'))
    lines = [*findings.faults(found)]
    assert len(lines) == 2 and 'S00.edf' in lines[0] and len(lines[0]) < 400
    assert ('and 57 more' if different else 'and 50 more') in lines[0]


@pytest.mark.slow
def test_a_rate_of_its_own_names_what_to_do(tmp_path, capsys):
    for k in range(1, 4):
        path = tmp_path / 'MyRest2026' / f'S{k:02d}_rest'
        files.edf(path.with_suffix('.edf'), NAMES, 100 if k < 3 else 128, 20)
        tsv(path.with_name(f'{path.name}_events.tsv'), 'onset duration trial_type\n1 8 open\n10 8 closed')
    assert ask(tmp_path) == 2
    said = capsys.readouterr().err
    assert 'S03_rest.edf: the sampling rate must be that of the others' in said
    assert 'sfreq of the dataset' in said
    assert np.all([f'S{k:02d}_rest.edf: the' not in said for k in (1, 2)])


# ---- one bad recording ----


def with_a_bad_one(home: Path, n: int = 7) -> Path:
    """People of whom the third has a truncated file; returns that."""
    for k in range(1, n + 1):
        path = home / 'MyRest2026' / f'S{k:02d}_rest'
        files.edf(path.with_suffix('.edf'), NAMES, 100, 20)
        tsv(path.with_name(f'{path.name}_events.tsv'), 'onset duration trial_type\n1 8 open\n10 8 closed')
    bad = home / 'MyRest2026' / 'S03_rest.edf'
    bad.write_bytes(bad.read_bytes()[:-600])
    return bad


def result_of(home: Path) -> dict:
    (path,) = home.glob('work/results/*/*/dummy/*/seed33.json')
    return json.loads(path.read_text())


@pytest.mark.slow
def test_one_bad_recording_is_named_and_left_out_where_that_is_asked_for(tmp_path, capsys):
    bad = with_a_bad_one(tmp_path)
    assert ask(tmp_path) == 2
    said = capsys.readouterr().err
    assert f'{bad}: the file must hold what its header promises' in said and '--exclude_bad leaves out' in said
    made = {p: p.stat().st_mtime_ns for p in tmp_path.glob('work/prepared/**/*.json')}
    assert len(made) == 6
    assert ask(tmp_path, '--exclude_bad') == 0
    result = result_of(tmp_path)
    (text,) = result['protocol']['partial']
    assert text.startswith('1 of 7 recordings are bad and left out: S03_0_rest (the file must hold what its header')
    assert f'partial: {text}' in result['warnings'] and result['protocol']['custom'] == ['exclude_bad=True']
    assert all('S03' not in people for people in result['subjects'].values())
    capsys.readouterr()
    assert ask(tmp_path) == 2, 'it leaves the set only where that is asked for'


@pytest.mark.slow
def test_who_is_excluded_is_not_read(tmp_path):
    with_a_bad_one(tmp_path)
    path = tmp_path / 'mine.py'
    out = "exclude=(Exclusion('MyRest2026', 'S03', 'the file broke'),), paradigm="
    path.write_text(EVENTS.read_text().replace('paradigm=', out).replace('import Classes', 'import Exclusion, Classes'))
    assert ask(tmp_path, task=path) == 0
    result = result_of(tmp_path)
    assert 'excluded: subject S03, of whom nothing was read: the file broke' in result['warnings']
    assert result['protocol']['partial'] == [] and sum(map(len, result['subjects'].values())) == 6
    assert ask(tmp_path, '--stage=check', task=path) == 0


def test_nothing_but_bad_recordings_is_refused(tmp_path, capsys):
    with_a_bad_one(tmp_path, 3)
    for k in (1, 2):
        (tmp_path / 'MyRest2026' / f'S{k:02d}_rest.edf').write_bytes(b'')
    assert ask(tmp_path, '--exclude_bad') == 2
    assert '3 faults in 3 recordings' in capsys.readouterr().err


def test_a_published_set_is_taken_as_it_is(tmp_path):
    (task, dataset), *_ = select.select_tasks('ssvep/Kalunga2016Online')
    with pytest.raises(RequestError, match='--exclude_bad: Kalunga2016Online is published as it is'):
        cells.make_cells([cells.Choice(task, dataset, True)], select.select_models('dummy'), (('exclude_bad', 'yes'),))
    left = replace(task, exclude=(Exclusion(dataset.name, 'subject01', 'x'),))
    refs = [RecordingRef(dataset.name, 'subject01', '0', '0', ())]
    assert build_set.readable(left, dataset, refs) == refs, 'other tasks share it'
    assert build_set.stored_spec(left, dataset) == build_set.stored_spec(task, dataset)


# ---- what a signal cannot hold, and what a task is ----


def test_a_band_that_resampling_cuts_off_is_refused(tmp_path, capsys):
    home = resting(tmp_path, 3)
    assert ask(home, '--set=signal.band=1,60', task=RESTING) == 2
    assert (
        '--set signal.band: 60 Hz is past 50 Hz, where resampling to signal.sfreq=100 cuts off'
        in capsys.readouterr().err
    )
    cells.apply(select.select_tasks(str(RESTING))[0][0], dataset_of(RESTING), (('signal.band', '1,50'),))


@pytest.mark.slow
def test_a_band_above_what_a_recording_holds_is_refused_and_the_published_default_is_not(tmp_path, capsys):
    home = resting(tmp_path, 3)
    assert ask(home, '--set=signal.band=1,60', '--set=signal.sfreq=200', task=RESTING) == 2
    said = capsys.readouterr().err
    assert 'signal.band: 60 Hz is above 50 Hz, the highest of a recording at 100 Hz' in said and 'S03_' not in said
    assert SignalSpec().band[1] > 50  # kept, as published, at whatever rate
    assert ask(home, '--set=signal.band=0.1,75', '--set=signal.sfreq=200', '--stage=prepare', task=RESTING) == 0


def test_info_tells_windows_and_baselines_of_a_task_of_ones_own(tmp_path, capsys):
    resting(tmp_path, 1)
    assert run.main([f'--info={RESTING}', f'--data_dir={tmp_path}', '--format=json']) == 0
    facts = json.loads(capsys.readouterr().out)
    told = '0 to 2 s after the onset of an event of type Eeg, and one every 2 s as long as it lasts'
    assert facts['windows'] == told and facts['datasets'] == {'MyEyes2026': 'Core, 2 of 12 recordings here'}
    (pick,), group = select.select_models('dummy'), select.select_models('baselines')
    ((task, _),) = select.select_tasks(str(RESTING))
    assert (
        facts['baselines'] == [p.spec.name for p in group if cells.fits(p, task)]
        and pick.spec.name in facts['baselines']
    )


def test_info_tells_where_a_window_and_its_baseline_lie(capsys):
    assert run.main(['--info=p3', '--format=json']) == 0
    told = json.loads(capsys.readouterr().out)['windows']
    assert told.startswith('-0.2 to 0.8 s after the onset') and 'the mean from -0.2 to 0 s is subtracted' in told


@pytest.mark.slow
def test_a_batch_is_no_larger_than_its_part(tmp_path):
    splits = jbench.load(jbench.task(str(RESTING)), data_dir=resting(tmp_path), workdir=tmp_path / 'work')
    for part in (splits.train, splits.valid, splits.test):
        (first, *_) = part
        assert len(first['x']) == len(first['mask']) == min(64, part.n_windows) and part.n_windows == len(part.ids)
    assert splits.test.n_windows == 24


# ---- who is present, and who should be ----


@pytest.mark.slow
def test_a_task_that_asks_for_a_part_of_a_shared_set_counts_all_of_it(tmp_path, capsys):
    bad = with_a_bad_one(tmp_path)
    bad.unlink()
    bad.with_name('S03_rest_events.tsv').unlink()
    path = tmp_path / 'mine.py'
    some = "Window(where=(Where(field='file', values=('S01_rest', 'S02_rest', 'S04_rest')),), duration=2.0,"
    text = EVENTS.read_text().replace('Window(duration=2.0,', some).replace('import Classes', 'import Where, Classes')
    path.write_text(text.replace('import', 'import Exclusion,').replace('n_subjects=6', 'n_subjects=7'))
    assert ask(tmp_path, '--stage=check', '--format=table', task=path) == 0
    said = capsys.readouterr().out
    assert 'subjects    6 present, 7 expected; 3 have windows' in said
    assert 'recordings  6 present, 6 expected; 3 hold windows' in said


def test_who_is_excluded_is_not_expected():
    ((task, _),) = select.select_tasks('emg/lower_limb_activity')
    dataset = select.find_dataset(task.datasets[0])
    assert [e.subject for e in task.exclude] == ['N02']
    found = ['N01', 'N02', 'A01']
    here, declared = record.present(task, dataset, found)
    assert here == (2, 2) and declared.subjects == dataset.n_subjects - 1
    assert record.present(replace(task, exclude=()), dataset, found) == (
        (3, 3),
        (dataset.n_recordings, dataset.n_subjects),
    )


@pytest.mark.parametrize('after_split', [False, True])
def test_a_subject_to_exclude_who_is_not_there_is_refused(after_split):
    mine = replace(select.datasets()['SimulatedP3'], name='Mine', source='jbench.data.sources.folder')
    refs = [RecordingRef('Mine', name, '', '', (), ()) for name in ('01', '02')]
    task = replace(select.tasks()['p3'][-1], exclude=(Exclusion('Mine', 'sub-02', 'noisy', after_split),))
    with pytest.raises(RequestError, match=r"unknown subject of Mine to exclude 'sub-02'\n  available: 01, 02"):
        build_set.readable(task, mine, refs)
    assert build_set.readable(task, mine, []) == []  # a finished set without its files says nothing of them
