"""Readers of BIDS, and of a folder of one's own, on small trees in the layout that hosts serve, traps included."""

from __future__ import annotations

import json
import shutil
from importlib import import_module
from pathlib import Path

import mne
import numpy as np
import pytest
import small_files as files
from places import ROOT
from small_files import tsv

from jbench import run, targets
from jbench.data import windows
from jbench.data.discover import find_recordings
from jbench.data.formats import bids
from jbench.data.load import split_windows
from jbench.data.prepare import check_recording, convert
from jbench.data.recording import Finding, Recording, RecordingRef, event_table
from jbench.data.sources import hbn as hbn_source
from jbench.data.sources import mixture
from jbench.plan import cells, select
from jbench.spec.errors import RequestError
from jbench.spec.identity import canonical

NAMES = ['Fp1', 'Cz', 'O1', 'O2']
HBN, EEG1, MEG, DICE, CHB = map(
    select.find_dataset, ('HBN-EEG', 'THINGS-EEG1', 'THINGS-MEG1', 'Miltiadous2023Dice', 'CHB-MIT')
)


def read(ref: RecordingRef) -> Recording:
    """What the source of its dataset reads; it meets the contract."""
    dataset = select.find_dataset(ref.dataset)
    got = import_module(dataset.source).read(ref)
    assert isinstance(got, Recording), got
    assert [f for f in check_recording.check(got, dataset, 'x') if f.level == 'fatal'] == []
    return got


def finding(ref: RecordingRef) -> str:
    """What its source finds wrong with it."""
    got = import_module(select.find_dataset(ref.dataset).source).read(ref)
    assert isinstance(got, Finding), got
    return str(got)


# ---- what BIDS datasets share ----


@pytest.fixture
def tree(tmp_path) -> Path:
    """A person in two sessions, and one without a row in participants.tsv; a table of events for all at the root."""
    root = tmp_path / DICE.name
    tsv(root / 'participants.tsv', 'participant_id Gender Age Group MMSE\nsub-001 F 57 A 16\nsub-003 M n/a C 30')
    for name in ('sub-001/ses-2/eeg/sub-001_ses-2_task-rest', 'sub-002/eeg/sub-002_task-rest_run-01'):
        files.edf(root / f'{name}_eeg.edf', NAMES, 100, 4)
    return tmp_path


def refs(tree: Path) -> list[RecordingRef]:
    return bids.recordings(DICE, tree / DICE.name)


def raw_of(tree: Path) -> mne.io.BaseRaw:
    got = bids.read(refs(tree)[0])
    assert isinstance(got, mne.io.BaseRaw), got
    return got


def test_names_alone_tell_who_was_recorded_when_and_at_what(tree):
    first, second = refs(tree)
    assert (first.subject, first.session, first.run) == ('001', '2', 'rest')
    assert (second.subject, second.session, second.run, second.name) == ('002', '0', 'rest_01', '002_0_rest_01')
    assert first.fields == (('task', 'rest'), ('Gender', 'F'), ('Age', '57'), ('Group', 'A'), ('MMSE', '16'))
    assert second.fields == (('task', 'rest'), ('Gender', ''), ('Age', ''), ('Group', ''), ('MMSE', ''))


def test_only_the_first_part_of_a_split_recording_and_nothing_derived_is_found(tree):
    root = tree / DICE.name
    for name in ('sub-009/eeg/sub-009_task-rest_split-01_eeg', 'sub-009/eeg/sub-009_task-rest_split-02_eeg'):
        files.edf(root / f'{name}.edf', NAMES, 100, 4)
    files.edf(root / 'derivatives/x/sub-001/eeg/sub-001_task-rest_eeg.edf', NAMES, 100, 4)
    (root / 'sub-009/eeg/sub-009_task-rest_split-01_eeg.json').write_text('{}')
    assert [r.run for r in refs(tree)] == ['rest', 'rest_01', 'rest']


def test_the_nearest_table_that_fits_is_read(tree):
    root, folder = tree / DICE.name, tree / DICE.name / 'sub-001/ses-2/eeg'
    first = root / 'task-rest_events.tsv'
    tsv(first, 'onset duration\n1 0')
    tsv(root / 'task-other_events.tsv', 'onset duration\n2 0')
    tsv(root / 'events.tsv', 'onset duration\n2 0')
    assert [bids.sidecar(r, 'events.tsv') for r in refs(tree)] == [first, first]
    tsv(folder / 'sub-001_ses-2_task-rest_events.tsv', 'onset duration\n2 0')
    tsv(folder / 'sub-001_ses-2_task-rest_run-2_events.tsv', 'onset duration\n2 0')
    assert [bids.sidecar(r, 'events.tsv').name for r in refs(tree)] == [
        'sub-001_ses-2_task-rest_events.tsv',
        'task-rest_events.tsv',
    ]
    (root / 'task-rest_eeg.json').write_text('{"EEGReference": "Cz", "PowerLineFrequency": 50}')
    (folder / 'sub-001_ses-2_task-rest_eeg.json').write_text('{"PowerLineFrequency": 60}')
    assert bids.described(refs(tree)[0]) == {'EEGReference': 'Cz', 'PowerLineFrequency': 60}


def test_channels_have_the_types_and_status_of_their_table(tree):
    path = tree / DICE.name / 'sub-001/ses-2/eeg/sub-001_ses-2_task-rest_channels.tsv'
    plain = raw_of(tree)
    tsv(path, 'name type units status\nFp1 EOG µV good\nCz EEG µV bad\nO1 EEG µV good\nO2 EEG µV good', b'\xef\xbb\xbf')
    raw = raw_of(tree)
    assert raw.get_channel_types() == ['eog', 'eeg', 'eeg', 'eeg'] and raw.info['bads'] == ['Cz']
    np.testing.assert_array_equal(raw.get_data(), plain.get_data())  # in volts, whatever the unit of the file
    assert len(check_recording.check(Recording(raw, event_less()), DICE, 'x')) == 0


def event_less() -> dict[str, np.ndarray]:
    return {'onset': np.zeros(0), 'duration': np.zeros(0), 'type': np.zeros(0, 'U1')}


@pytest.mark.parametrize('rows', ['Fp1 EEG', 'A EEG\nB EEG\nC EEG\nD EEG', 'Cz EEG\nCz EEG\nO1 EEG\nO2 EEG'])
def test_a_table_of_other_channels_gives_way_to_the_header_of_the_signal(tree, rows):
    tsv(tree / DICE.name / 'sub-001/ses-2/eeg/sub-001_ses-2_task-rest_channels.tsv', f'name type\n{rows}')
    assert raw_of(tree).ch_names == NAMES


def test_a_table_of_channels_without_types_is_refused(tree):
    path = tree / DICE.name / 'sub-001/ses-2/eeg/sub-001_ses-2_task-rest_channels.tsv'
    tsv(path, 'name units\nFp1 µV')
    assert str(bids.read(refs(tree)[0])).startswith(
        f'{path}: the table must have the columns name and type: found name'
    )


@pytest.mark.parametrize(
    ('name', 'text', 'said'),
    [
        ('channels', 'name type\nFp1', 'each line must have all columns: found a line of 1 values under 2 columns'),
        ('electrodes', '', 'the table must have the columns name and x and y and z: found an empty file'),
        ('space-CTF_electrodes', 'name x y z\nFp1', 'each line must have all columns: found a line of 1 values'),
    ],
)
def test_a_damaged_table_beside_a_signal_is_named(tree, name, text, said):
    folder = tree / DICE.name / 'sub-001/ses-2/eeg'
    (folder / 'sub-001_ses-2_coordsystem.json').write_text('{"EEGCoordinateSystem": "CTF"}')
    tsv(folder / f'sub-001_ses-2_{name}.tsv', text)
    assert str(bids.read(refs(tree)[0])).startswith(f'{folder}/sub-001_ses-2_{name}.tsv: {said}')


def test_electrodes_give_positions(tree):
    folder = tree / DICE.name / 'sub-001/ses-2/eeg'
    tsv(folder / 'sub-001_ses-2_electrodes.tsv', 'name x y z\nFp1 -29 83 -7\nCz 0 0 91\nO1 -29 -112 1\nO2 29 -112 1')
    (folder / 'sub-001_ses-2_coordsystem.json').write_text(
        json.dumps({'EEGCoordinateSystem': 'CTF', 'EEGCoordinateUnits': 'mm'})
    )
    places = raw_of(tree).get_montage().get_positions()['ch_pos']
    assert places['Cz'][2] == pytest.approx(0.091)


def test_reading_leaves_the_folder_as_it_is(tree):
    """mne-bids locks what it reads, by files beside it, where filelock is installed."""
    import filelock

    root = tree / DICE.name
    (root / 'task-rest_eeg.json').write_text('{"PowerLineFrequency": 50}')
    root.chmod(0o755)
    made = []
    original = filelock.SoftFileLock.acquire
    filelock.SoftFileLock.acquire = lambda self, *a, **k: made.append(self.lock_file) or original(self, *a, **k)
    try:
        raw = raw_of(tree)
    finally:
        filelock.SoftFileLock.acquire = original
    assert raw.info['line_freq'] == 50 and made == []


def test_events_are_in_time_order_and_missing_values_are_empty(tree):
    path = tree / 'events.tsv'
    tsv(path, 'onset duration trial_type\n2 n/a b\n1.5 0.5 n/a\nn/a 1 c', b'\xef\xbb\xbf')
    got = bids.events(path, raw_of(tree))
    assert [got[k].tolist() for k in ('onset', 'duration', 'trial_type')] == [[1.5, 2.0], [0.5, 0.0], ['', 'b']]


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('onset duration\n1 0\n150 0', 'onsets must be in seconds: found 150 in a recording of 4.0 s'),
        ('time duration\n1 0', 'the table must have the column onset: found time, duration'),
        ('onset duration\nsoon 0', "each onset must be a number: found could not convert string to float: 'soon'"),
        ('onset duration\n1 0 5', 'each line must have all columns: found a line of 3 values under 2 columns'),
    ],
)
def test_a_wrong_table_of_events_is_one_clear_finding(tree, text, said):
    tsv(tree / 'events.tsv', text)
    assert said in str(bids.events(tree / 'events.tsv', raw_of(tree)))


def test_an_event_just_after_the_end_is_in_seconds(tree):
    tsv(tree / 'events.tsv', 'onset duration\n1 0\n4.5 0')
    raw = raw_of(tree)
    got = bids.events(tree / 'events.tsv', raw)
    assert isinstance(got, dict) and got['onset'].tolist() == [1.0, 4.5]
    (found,) = check_recording.check(Recording(raw, got | {'type': np.full(2, 'Stimulus')}), DICE, 'x')
    assert 'events must lie inside the recording: found 1 outside, one at 4.5 s' in str(found)


@pytest.mark.parametrize('ending', ['edf', 'bdf'])
def test_a_truncated_file_is_named(tmp_path, ending):
    path = tmp_path / f'S01.{ending}'
    files.edf(path, NAMES, 100, 20)
    assert bids.check_signal(str(path)) is None
    path.write_bytes(path.read_bytes()[:-600])  # MNE reads it as a shorter one
    assert 'the file is truncated' in str(bids.check_signal(str(path)))


@pytest.mark.parametrize('ending', ['edf', 'bdf'])
def test_a_file_whose_recording_was_not_ended_says_no_number_of_records(tmp_path, ending):
    """MNE takes the records that are there."""
    path = tmp_path / f'S01.{ending}'
    files.edf(path, NAMES, 100, 20)
    whole = path.read_bytes()
    open_end = whole[:236] + b'-1      ' + whole[244:]
    path.write_bytes(open_end)
    assert bids.check_signal(str(path)) is None and mne.io.read_raw(path, verbose='ERROR').n_times == 2000
    for data in (open_end[:-600], open_end[: int(open_end[184:192])]):
        path.write_bytes(data)
        assert 'the file is truncated' in str(bids.check_signal(str(path)))


def test_a_truncated_brainvision_file_is_named(tmp_path):
    """MNE reads each as a shorter one, without the markers that lie after its end."""
    path = tmp_path / 'S01.vhdr'
    files.brainvision(path, NAMES, 100, 20, ((1990, 'Stimulus', 'S  1'),))
    whole = path.with_suffix('.eeg').read_bytes()
    assert bids.check_signal(str(path)) is None
    for n_bytes, said in (
        (601, f'{path.with_suffix(".eeg")}: the signal must hold whole samples of all channels: found 31399 bytes'),
        (176, 'S01.eeg: the signal must reach to its last marker: found 1989 samples, expected at least 1990, as S01'),
    ):
        path.with_suffix('.eeg').write_bytes(whole[:-n_bytes])
        assert said in str(bids.check_signal(str(path)))
    path.with_suffix('.eeg').rename(tmp_path / 'other.eeg')
    assert 'the signal must lie beside its header: found no S01.eeg' in str(bids.check_signal(str(path)))
    path.write_bytes(path.read_bytes().replace(b'S01.eeg', b'other.eeg').replace('µ'.encode(), b'\xb5'))
    path.with_suffix('.vmrk').rename(tmp_path / 'other.vmrk')
    assert bids.check_signal(str(path)) is None  # nothing tells of markers


def test_a_file_whose_content_was_never_fetched_is_named(tree):
    path = Path(refs(tree)[0].files[0])
    path.unlink()
    path.symlink_to('.git/annex/objects/absent')
    assert 'a link to nothing' in str(bids.read(refs(tree)[0]))


# ---- datasets ----


def test_dementia_has_its_diagnosis_from_participants(tmp_path):
    root = tmp_path / DICE.name
    tsv(root / 'participants.tsv', 'participant_id Gender Age Group MMSE\nsub-001 F 57 A 16\nsub-037 M 70 F 22')
    for number in ('001', '037', '088'):
        for folder in (root, root / 'derivatives'):
            files.eeglab(folder / f'sub-{number}/eeg/sub-{number}_task-eyesclosed_eeg.set', NAMES, 500, 3)
    found = find_recordings(DICE, tmp_path)
    assert [(r.subject, dict(r.fields)['diagnosis'], dict(r.fields)['gender']) for r in found] == [
        ('001', 'alzheimers', 'female'),
        ('037', 'dementia', 'male'),
        ('088', '', ''),
    ]
    assert read(found[0]).raw.get_channel_types() == ['eeg'] * 4
    assert 'participants.tsv must have a row for each person: found none, expected sub-088' in finding(found[2])
    tsv(root / 'participants.tsv', 'participant_id Gender Age\nsub-001 F 57')
    with pytest.raises(
        RequestError, match=r'participants\.tsv: expected the columns Group, MMSE, found participant_id'
    ):
        find_recordings(DICE, tmp_path)


def test_other_diagnoses_are_read_from_the_files_of_their_hosts(tmp_path):
    mumtaz, singh, albrecht = map(
        select.find_dataset, ('Mumtaz2018Machine', 'Singh2021Timing', 'Albrecht2019Increased')
    )
    for name in ('MDD S2  EC', 'H S10 EO', 'H S2 TASK', 'H S2 EC', '6921143_H S15 EO', '6921959_H S15 EO'):
        files.edf(tmp_path / mumtaz.name / f'{name}.edf', ['EEG Fp1-LE', 'EEG A2-A1', 'EEG O2-LE'], 256, 3)
    found = find_recordings(mumtaz, tmp_path)
    assert [(r.subject, *dict(r.fields).values()) for r in found] == [
        ('H2', 'healthy', 'P300'),
        ('H2', 'healthy', 'eyeclosed'),
        ('H10', 'healthy', 'eyesopen'),
        ('H15', 'healthy', 'eyesopen'),
        ('MDD2', 'major_depressive_disorder', 'eyeclosed'),
    ]
    assert found[3].files == (str(tmp_path / mumtaz.name / '6921959_H S15 EO.edf'),)  # as published
    raw = read(found[0]).raw
    assert dict(zip(raw.ch_names, raw.get_channel_types(), strict=True)) == {'Fp1': 'eeg', 'A2-A1': 'misc', 'O2': 'eeg'}
    for name in ('PD1005', 'Control1025'):
        files.brainvision(tmp_path / singh.name / f'data/{name}.vhdr', NAMES, 500, 3, ((501, 'Stimulus', 'S  3'),))
    found = find_recordings(singh, tmp_path)
    assert [(r.subject, r.fields) for r in found] == [
        ('Control1025', (('diagnosis', 'Control'),)),
        ('PD1005', (('diagnosis', 'PD'),)),
    ]
    events = read(found[1]).events
    assert events['onset'].tolist() == [1.0] and events['label'].tolist() == ['Stimulus/S  3']
    marks = [{'latency': 1001.0, 'code': c, 'duration': 1, 'type': 'S 11'} for c in ('Stimulus', 'Response')]
    for name in ('101_P', '128_P', '149_N'):
        path = tmp_path / albrecht.name / f'data/CC_EEG_s{name}.mat'
        files.eeglab(path, [*NAMES, 'VEOG'], 1000, 3, event=marks)
    table = tmp_path / albrecht.name / 'MMN_ElectrodeCoords_MA2.ced'
    tsv(table, 'Number labels\n1 Fp1\n2 Cz\n3 O1\n4 O2\n5 VEOG')
    found = find_recordings(albrecht, tmp_path)
    assert [r.subject for r in found] == ['P128', 'P101', 'N149']
    raw, events = read(found[0])
    assert raw.get_channel_types() == ['eeg'] * 4 + ['eog'] and events['onset'].tolist() == [1.0]
    tsv(table, 'Number labels\n1 Fp1')
    assert 'each channel must have a name: found 5 channels' in finding(found[0])


CHB_HEAD = 'onset duration eventType confidence channels dateTime recordingDuration\n'


def test_seizures_are_those_of_any_kind_and_most_recordings_have_none(tmp_path):
    stem = tmp_path / CHB.name / 'BIDS_CHB-MIT/sub-01/ses-02/eeg/sub-01_ses-02_task-szMonitoring_run-0'
    more = 'n/a n/a 2020-01-01 20\n'
    for run_, rows in ((0, f'0 20 bckg {more}'), (1, f'5 4.5 sz_foc_ia {more}12 2 sz {more}')):
        files.edf(Path(f'{stem}{run_}_eeg.edf'), ['FP1-F7', 'CZ-PZ'], 256, 20)
        tsv(Path(f'{stem}{run_}_events.tsv'), CHB_HEAD + rows)
    none, some = find_recordings(CHB, tmp_path)
    assert (none.subject, none.session, none.run) == ('01', '02', 'szMonitoring_00')
    raw, events = read(some)
    assert raw.ch_names == ['Fp1-F7', 'Cz-Pz'] and len(read(none).events['onset']) == 0
    assert [events[k].tolist() for k in ('onset', 'duration', 'state')] == [[5, 12], [4.5, 2], ['seiz', 'seiz']]
    assert list(event_table(read(none), none, CHB)['state']) == ['']
    tsv(Path(f'{stem}0_events.tsv'), CHB_HEAD + f'0 20 impd {more}')
    assert 'kinds of events must be known: found impd, expected sz..., bckg' in finding(none)


def test_pictures_of_things_in_eeg_are_at_their_samples(tmp_path):
    root = tmp_path / EEG1.name
    files.brainvision(root / 'sub-01/eeg/sub-01_task-rsvp_eeg.vhdr', NAMES, 1000, 5)
    tsv(
        root / 'sub-01/eeg/sub-01_task-rsvp_events.tsv',
        'onset duration eventnumber objectnumber stim isteststim istarget\n'
        '1200 50 0 0 stimuli\\aardvark\\aardvark_01b.jpg 0 0\n'
        '1300 51 1 -1 stimuli/coat_rack/coat_rack_13s.jpg 1 1',
    )
    (ref,) = find_recordings(EEG1, tmp_path)
    _, events = read(ref)
    assert events.pop('duration').tolist() == pytest.approx([0.05, 0.051])
    assert {k: v.tolist() for k, v in events.items()} == {
        'onset': [1.2, 1.3],
        'type': ['Image', 'Image'],
        'filepath': ['images/aardvark/aardvark_01b.jpg', 'images/coat_rack/coat_rack_13s.jpg'],
        'concept': ['aardvark', 'coat_rack'],
        'split': ['train', 'test'],
    }
    path = root / 'sub-01/eeg/sub-01_task-rsvp_events.tsv'
    tsv(path, 'onset duration stim\n1200 50 stimuli/aardvark/aardvark_01b.jpg')
    assert read(ref)[1]['split'].tolist() == ['train']  # the table of somebody who saw no test picture
    tsv(path, 'onset duration stim isteststim\n1200 50 stimuli/aardvark/aardvark_01b.jpg n/a')
    assert f'{path}: isteststim must tell the test pictures: found n/a, expected 0 or 1' in finding(ref)
    tsv(path, 'onset duration stim\n1200 50 stimuli/aardvark/aardvark_01b.jpg\n1300 50 n/a')
    assert f'{path}: each event must name its picture: found n/a, expected <concept>/<picture>.jpg' in finding(ref)


def test_pictures_of_things_in_meg_are_at_their_triggers(tmp_path):
    root = tmp_path / MEG.name
    stem = root / 'sub-BIGMEG1/ses-02/meg/sub-BIGMEG1_ses-02_task-main_run-03'
    files.ctf(Path(f'{stem}_meg.ds'), [64, 64, 64, 32], 1200, 6)
    tsv(
        Path(f'{stem}_events.tsv'), 'onset duration trial_type value\n1.15 0.5 exp 7\n2.15 0.5 catch 0\n3.15 0.5 test 9'
    )
    (ref,) = find_recordings(MEG, tmp_path)
    assert (ref.subject, ref.session, ref.run) == ('BIGMEG1', '02', 'main_03')
    assert f'{stem}_meg.ds/{stem.name}_meg.meg4' in ref.files
    assert 'the table of pictures must lie in sourcedata: found FileNotFoundError' in finding(ref)
    table = root / 'sourcedata/sample_attributes_P1.csv'
    table.parent.mkdir()
    head = 'trial_type,session_nr,run_nr,image_nr,things_image_nr,image_path,image_on,image_off\n'
    rows = [
        'exp,2,3,1,7,images_meg/aardvark/aardvark_01b.jpg,1.0,1.5',
        'catch,2,3,2,,images_catch_meg/12.jpg,2.0,2.5',
        'test,2,3,3,9,images_test_meg/coat_rack_13s.jpg,3.0,3.51',
        'exp,1,3,4,8,images_meg/zebra/zebra_01b.jpg,4.0,4.5',
    ]
    table.write_text(head + '\n'.join(rows) + '\n')
    raw, events = read(ref)
    assert raw.get_channel_types()[:2] == ['mag', 'mag'] and raw.info['sfreq'] == 1200
    assert events['onset'].tolist() == [1.0, 3.0] and events['split'].tolist() == ['train', 'test']
    assert events['filepath'].tolist() == ['images/aardvark/aardvark_01b.jpg', 'images/coat_rack/coat_rack_13s.jpg']
    table.write_text(head + '\n'.join(rows[:2]) + '\n')
    assert 'there must be a trigger for each picture of the table: found 3 of 64, 1 others' in finding(ref)


CCD = """onset duration value event_code feedback
0.5 n/a contrastChangeB1_start 94 n/a
1.0 n/a contrastTrial_start 5 n/a
2.0 n/a left_target 8 n/a
3.2 n/a left_buttonPress 12 smiley_face
5.0 n/a contrastTrial_start 5 n/a
6.0 n/a right_target 9 n/a
7.0 n/a right_buttonPress 13 smiley_face
8.5 n/a right_buttonPress 13 smiley_face
9.0 n/a contrastTrial_start 5 n/a
9.5 n/a left_buttonPress 12 non_target
10.0 n/a left_target 8 n/a
11.4 n/a left_buttonPress 12 sad_face
13.0 n/a contrastTrial_start 5 n/a
14.0 n/a right_target 9 n/a"""
PEOPLE = 'participant_id release_number sex age ehq_total p_factor attention internalizing externalizing'


@pytest.fixture(scope='module')
def hbn(tmp_path_factory) -> Path:
    """Three releases, one with a person of no row and one who is left out."""
    home = tmp_path_factory.mktemp('hbn')
    for release, people in (('ds005515', 'D'), ('ds005505', 'ABW'), ('ds005509', 'C')):
        root = home / HBN.name / release
        rows = [f'sub-NDAR{p} R F {k + 7.5} 1 0.1 n/a 0.3 -0.4' for k, p in enumerate(people) if p != 'B']
        tsv(root / 'participants.tsv', '\n'.join([PEOPLE, *rows]), b'\xef\xbb\xbf' if people == 'C' else b'')
        for task in ('contrastChangeDetection', 'RestingState', 'ThePresent'):
            (root / f'task-{task}_eeg.json').write_text('{"EEGReference": "Cz", "PowerLineFrequency": 60}')
        for p in people:
            name = f'sub-NDAR{"WV769JM7" if p == "W" else p}'
            folder = root / name / 'eeg'
            rest = folder / f'{name}_task-RestingState_eeg'
            if p == 'C':  # as the release of the challenge is served
                files.edf(rest.with_suffix('.bdf'), NAMES, 100, 16)
            else:
                files.eeglab(rest.with_suffix('.set'), NAMES, 100, 16)
            stem = folder / f'{name}_task-contrastChangeDetection_run-1'
            files.eeglab(Path(f'{stem}_eeg.set'), NAMES, 100, 16)
            tsv(Path(f'{stem}_events.tsv'), CCD)
    return home


def film(stem: Path, marks: str) -> None:
    """16 s with marks '<s> start' or '<s> stop', divided by commas."""
    files.eeglab(Path(f'{stem}_eeg.set'), NAMES, 100, 16)
    rows = [f'{at} n/a video_{what}' for at, what in (m.split() for m in marks.split(','))]
    tsv(Path(f'{stem}_events.tsv'), '\n'.join(['onset duration value', '0.5 n/a resting_start', *rows]))


def test_releases_are_in_their_order_and_people_have_their_traits(hbn):
    found = find_recordings(HBN, hbn)
    facts = [(dict(r.fields)['release'], r.subject, dict(r.fields)['age']) for r in found[::2]]
    assert facts == [('R1', 'NDARA', '7.5'), ('R1', 'NDARB', ''), ('R5', 'NDARC', '7.5'), ('R10', 'NDARD', '7.5')]
    assert [(r.run, dict(r.fields)['task']) for r in found[:2]] == [
        ('RestingState', 'task-RestingState'),
        ('contrastChangeDetection_1', 'task-contrastChangeDetection'),
    ]
    assert dict(found[0].fields)['attention'] == '' and len({r.name for r in found}) == len(found)


@pytest.mark.parametrize(
    ('text', 'said'),
    [('', 'the columns onset and value: found an empty file'), ('onset value\n1 a\n2', 'each line')],
)
def test_a_damaged_table_of_events_is_named_where_they_are_needed(hbn, tmp_path, text, said):
    rest, task = find_recordings(HBN, hbn)[:2]
    tsv(tmp_path / 'events.tsv', text)
    ones = [f for f in task.files if f.endswith('_events.tsv')]
    whole = Path(ones[0]).read_bytes()
    other = Path(rest.files[0].replace('_eeg.set', '_events.tsv'))
    try:
        for path in (Path(ones[0]), other):
            path.write_bytes((tmp_path / 'events.tsv').read_bytes())
        assert (got := finding(task)).startswith(f'{ones[0]}: ') and said in got
        assert read(find_recordings(HBN, hbn)[0]).raw.n_times == 1600
    finally:
        Path(ones[0]).write_bytes(whole)
        other.unlink()


def test_a_release_is_known_by_the_name_that_its_host_gives_it():
    names = ('ds005505', 'ds005512', 'ds005514', 'cmi_bids_R11', 'R5', 'R1_L100_bdf', 'cmi_bids_NC', 'ds005513', 'code')
    assert [hbn_source._release(name) for name in names] == [1, 8, 9, 11, 5, 1, 0, 0, 0]


def test_the_reference_is_the_channel_that_the_release_names(hbn):
    ref = find_recordings(HBN, hbn)[0]
    raw = read(ref).raw
    stored = mne.io.read_raw_eeglab(ref.files[0], verbose='ERROR').get_data()
    np.testing.assert_allclose(raw.get_data(), stored - stored[1], atol=1e-12)


def test_reaction_times_are_those_of_the_first_press_after_the_change(hbn):
    """Trial 2 has two presses, trial 3 one before the change, and trial 4 none."""
    _, events = read(find_recordings(HBN, hbn)[1])
    of = {kind: events['type'] == kind for kind in ('Stimulus', 'Keystroke')}
    target = np.char.endswith(events['value'], '_target')
    np.testing.assert_allclose(events['reaction_time'][target], [1.2, 1.0, 1.4, np.nan])
    np.testing.assert_allclose(events['reaction_time'][of['Keystroke']], [1.2, 1.0, 2.5, -0.5, 1.4])
    assert np.isnan(events['reaction_time'][of['Stimulus'] & ~target]).all() and of['Stimulus'].sum() == 8


@pytest.mark.parametrize(
    ('marks', 'expected'),
    [
        ('2.5 start,10 stop', [(2.5, 7.5)]),
        ('1 start,3 start,9 stop,10 start', [(1, 2), (3, 6), (10, 6)]),  # begun anew, and never ended
        ('1 stop,20 start', []),  # past the end
    ],
)
def test_a_film_lasts_from_its_start_to_its_stop(hbn: Path, tmp_path: Path, marks: str, expected: list) -> None:
    shutil.copytree(hbn / HBN.name / 'ds005505', tmp_path / HBN.name / 'ds005505')
    film(tmp_path / HBN.name / 'ds005505/sub-NDARA/eeg/sub-NDARA_task-ThePresent', marks)
    (ref,) = [r for r in find_recordings(HBN, tmp_path) if dict(r.fields)['task'] == 'task-ThePresent']
    events = read(ref).events
    assert list(zip(events['onset'].tolist(), events['duration'].tolist(), strict=True)) == expected
    assert set(events['type'].tolist()) <= {'Film'} and set(events['film'].tolist()) <= {'ThePresent'}


def test_moments_of_a_film_are_those_of_all_who_see_it(hbn: Path, tmp_path: Path) -> None:
    """As prepared and divided: the film begins 2.5 and 4.5 s after the recordings of two people."""
    shutil.copytree(hbn, tmp_path / 'hbn')
    for release, person, marks in (('ds005505', 'A', '2.5 start,10 stop'), ('ds005509', 'C', '4.5 start,9 stop')):
        film(tmp_path / 'hbn' / HBN.name / release / f'sub-NDAR{person}/eeg/sub-NDAR{person}_task-ThePresent', marks)
    (task, dataset), *_ = select.select_tasks('pretrain/movies/HBN-EEG')
    assert dataset == HBN
    task = cells.apply(task, HBN, ())
    found = [ref for ref in find_recordings(HBN, tmp_path / 'hbn') if windows.possible(ref.fields, task.window)]
    assert [ref.subject for ref in found] == ['NDARA', 'NDARC'], 'nothing but films is read'
    made = [convert.make(task, HBN, ref, tmp_path) for ref in found]
    assert [f for p in made for f in p['findings'] if f.level == 'fatal'] == []
    table = windows.index(made)
    assert table['window.onset'].tolist() == pytest.approx([2.5, 4.5, 6.5, 4.5, 6.5])
    y = targets.encode(task.target, [json.loads(t) for t in table['window.target']]).y
    assert y.tolist() == [[0, 0], [1, 0], [2, 0], [0, 1], [1, 1]]
    assert (task.split.field, task.split.test) == ('release', ('R5',)), 'as of the other tasks on these people'
    ((mixed, both),) = select.select_tasks('pretrain/movies/SimulatedFilm+Shirazi2024Hbn')
    mixed = cells.apply(mixed, both, (('signal.picks', ('Cz',)),))
    refs = [r for r in find_recordings(both, tmp_path / 'hbn') if r.subject.startswith(HBN.name)]
    (first,) = [r for r in refs if windows.possible(r.fields, mixture.asked(mixed, both, r).window)][:1]
    part = convert.make(mixed, both, first, tmp_path)
    assert [json.loads(t) for t in part['windows']['target']] == [
        [f'Shirazi2024Hbn/ThePresent@{t:.1f}', 'Shirazi2024Hbn.NDARA'] for t in (0, 2, 4)
    ]


@pytest.mark.parametrize(
    ('name', 'onsets', 'targets'),
    [
        ('reaction_time@2', [2.5, 6.5, 10.5], [1.2, 1.0, 1.4]),  # after the change of contrast
        ('reaction_time@1', [3.7, 7.5, 9.0, 11.9], [1.2, 1.0, 2.5, 1.4]),  # after each key press
    ],
)
def test_windows_of_the_reaction_time_task(hbn, tmp_path, name, onsets, targets):
    """As prepared and divided: people of three releases, with and without a row in participants.tsv."""
    (task, _), *_ = select.select_tasks(name)
    task = cells.apply(task, HBN, ())
    found = find_recordings(HBN, hbn)
    made = [convert.make(task, HBN, ref, tmp_path) for ref in found]
    assert check_recording.judge(HBN, found, made)[0] == list(range(8)) and [p['n_windows'] for p in made[:2]] == [
        0,
        len(onsets),
    ]
    table = windows.index(made)
    assert table['window.onset'][: len(onsets)].tolist() == pytest.approx(onsets)
    assert [float(t) for t in table['window.target'][: len(onsets)]] == pytest.approx(targets)
    events, cuts = (
        {k.partition('.')[2]: v for k, v in table.items() if k.startswith(w)} for w in ('event.', 'window.')
    )
    part = split_windows.divide(events, cuts, task, HBN.name).part
    of = dict(zip(events['subject'][cuts['event']].tolist(), part.tolist(), strict=True))
    assert of['NDARC'] == 'test' and {of['NDARA'], of['NDARD']} == {'train', 'valid'} and of['NDARB'] == of['NDARA']


# ---- a folder of one's own ----

EXAMPLE = ROOT / 'configs' / 'local_folder.py'


def own_folder(home: Path, kind: str) -> Path:
    """Six people with open and closed eyes: EDF with tables, FIF with annotations, or BIDS."""
    root = home / 'MyRest2026'
    for k in range(1, 7):
        rows = [(1.0, 8.0, 'open'), (10.0, 8.0, 'closed')]
        text = '\n'.join(['onset duration trial_type', *(' '.join(map(str, row)) for row in rows)])
        if kind == 'bids':
            files.edf(root / f'sub-{k:02d}/eeg/sub-{k:02d}_task-rest_eeg.edf', NAMES, 100, 20)
            tsv(root / f'sub-{k:02d}/eeg/sub-{k:02d}_task-rest_events.tsv', text)
        elif kind == 'edf':
            files.edf(root / f'S{k:02d}_rest.edf', NAMES, 100, 20)
            (root / f'S{k:02d}_rest_events.csv').write_text('\ufeff' + text.replace(' ', ','))
        else:
            info = mne.create_info(NAMES, 100, 'eeg', verbose='ERROR')
            raw = mne.io.RawArray(files.noise(root / f'{k}', 4, 2100) * 1e-6, info, verbose='ERROR')
            raw.set_meas_date(0).set_annotations(
                mne.Annotations(*zip(*[(t + 1, d, n) for t, d, n in rows], strict=True), 0)
            )
            raw.crop(1.0).save(root / f'S{k:02d}_raw.fif', verbose='ERROR')
    return home


@pytest.mark.parametrize('kind', ['bids', 'edf', 'fif'])
def test_a_folder_of_ones_own_is_read_as_it_lies(tmp_path, kind):
    (_, dataset), *_ = select.select_tasks(str(EXAMPLE))
    found = find_recordings(dataset, own_folder(tmp_path, kind))
    assert [r.subject for r in found] == [f'{"" if kind == "bids" else "S"}{k:02d}' for k in range(1, 7)]
    raw, events = import_module(dataset.source).read(found[0])
    assert events['onset'].tolist() == [1.0, 10.0] and events['label'].tolist() == ['open', 'closed']
    assert check_recording.check(Recording(raw, events), dataset, 'x') == []
    assert kind == 'fif' or found[0].files[1].endswith(('_events.tsv', '_events.csv'))


@pytest.mark.parametrize('name', ['S01', 'S01_raw'])
@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('onset duration label\n1 8 open', ''),
        ('onset label\n1 open', 'the table must have the columns onset and duration: found onset, label'),
        ('onset duration label\n1 8 open\nn/a 8 open', 'each event must have an onset: found none in row 2'),
        (
            'onset duration label\n1,5 8 open',
            "each onset must be a number: found could not convert string to float: '1,",
        ),
    ],
)
def test_the_events_of_ones_own_file_are_whole_or_refused(tmp_path, name, text, said):
    (_, dataset), *_ = select.select_tasks(str(EXAMPLE))
    info = mne.create_info(NAMES, 100, 'eeg', verbose='ERROR')
    (root := tmp_path / dataset.name).mkdir()
    raw = mne.io.RawArray(files.noise(root, 4, 2000) * 1e-6, info, verbose='ERROR')
    raw.save(root / 'S01_raw.fif', verbose='ERROR')
    tsv(root / f'{name}_events.tsv', text)
    found = import_module(dataset.source).read(find_recordings(dataset, tmp_path)[0])
    if said:
        assert str(found).startswith(f'{root}/{name}_events.tsv: {said}')
    else:
        assert found.events['label'].tolist() == ['open']


def test_two_tables_of_one_file_are_refused(tmp_path):
    (_, dataset), *_ = select.select_tasks(str(EXAMPLE))
    for name in ('S01_events.tsv', 'S01_raw_events.tsv', 'S01_raw.fif'):
        tsv(tmp_path / dataset.name / name, 'onset duration label\n1 8 open')
    with pytest.raises(RequestError, match=r'S01_events.tsv and .*S01_raw_events.tsv: two tables of events of S01_raw'):
        find_recordings(dataset, tmp_path)


def test_the_parts_of_a_long_file_are_one_recording(tmp_path):
    """MNE goes on to the later ones by itself: as recordings of their own they would count twice."""
    (_, dataset), *_ = select.select_tasks(str(EXAMPLE))
    root, info = tmp_path / dataset.name, mne.create_info(NAMES, 100, 'eeg', verbose='ERROR')
    root.mkdir()
    raw = mne.io.RawArray(files.noise(tmp_path / 'x', 4, 150_000) * 1e-6, info, verbose='ERROR')
    for subject, naming in (('S01', 'neuromag'), ('S02', 'bids')):
        name, size = root / f'{subject}_rest_raw.fif', {'split_size': '2MB', 'buffer_size_sec': 1}
        raw.save(name, split_naming=naming, verbose='ERROR', **size)
    raw.crop(0, 10).save(root / 'S03_raw-2.fif', verbose='ERROR')  # no part: its first one is not there
    assert len(list(root.glob('*.fif'))) > 4
    found = find_recordings(dataset, tmp_path)
    assert [r.subject for r in found] == ['S01', 'S02', 'S03']
    assert import_module(dataset.source).read(found[0]).raw.n_times == 150_000


def test_two_files_of_one_name_are_refused(tmp_path):
    (_, dataset), *_ = select.select_tasks(str(EXAMPLE))
    for folder in ('S01', 'S02'):
        files.edf(tmp_path / 'MyRest2026' / folder / 'rest.edf', NAMES, 100, 3)
    with pytest.raises(RequestError, match='two files of one name; keep one, or call each <subject>_<anything>'):
        find_recordings(dataset, tmp_path)


def ask(home: Path, work: Path, *flags: str, task: Path | str = EXAMPLE) -> list[str]:
    return [f'--task={task}', f'--data_dir={home}', f'--workdir={work}', '--seeds=33', '--format=json', *flags]


@pytest.mark.slow
def test_it_runs_from_the_command_line(tmp_path, capsys):
    home = own_folder(tmp_path / 'data', 'edf')
    assert run.main(ask(home, tmp_path / 'work', '--model=dummy')) == 0
    assert 'my_eyes' in capsys.readouterr().out
    (path,) = tmp_path.glob('work/results/my_eyes@1/MyRest2026/dummy/*/seed33.json')
    result = json.loads(path.read_text())
    assert result['headline']['value'] == 0.5 and not result['simulated'] and result['warnings'] == []
    assert result['n_records']['evaluated'] == 16  # two people, two events of four windows


@pytest.mark.slow
def test_labels_that_are_written_in_two_ways_are_told_by_check_and_result(tmp_path, capsys):
    home = own_folder(tmp_path / 'data', 'edf')
    for k in range(1, 7):  # in every part, so that nothing else is odd
        table = home / 'MyRest2026' / f'S{k:02d}_rest_events.csv'
        table.write_text(table.read_text() + '\n19.0,1.0,Open')
    path, words = tmp_path / 'mine.py', "'Open' and 'open'; write them alike"
    path.write_text(EXAMPLE.read_text().replace('duration=2.0, stride=2.0', 'duration=1.0, stride=1.0'))
    assert run.main(ask(home, tmp_path / 'work', '--stage=check', task=path)) == 0
    assert words in json.dumps(json.loads(capsys.readouterr().out), ensure_ascii=False)
    assert run.main(ask(home, tmp_path / 'work', '--model=dummy', task=path)) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert any(words in note for note in row['notes'])


@pytest.mark.parametrize(
    ('old', 'new', 'said'),
    [
        pytest.param(
            *(
                'Window(',
                "Window(trigger='Stimulas', ",
                'the task asks for events of type Stimulas, and there are Eeg, Stimulus',
            ),
            marks=pytest.mark.slow,
        ),
        ('sources.folder', 'sources.foldr', "did you mean 'jbench.data.sources.folder'"),
        ("datasets=('MyRest2026',)", "datasets=('MyRest',)", 'unknown dataset in'),
        ('TASKS = (', 'TASKS = (1, ', 'TASKS must be a tuple of jbench.spec.Task'),
        ('TASKS = (', 'TASK = (', 'expected TASKS'),
        ("name='my_eyes'", "name='p3'", 'p3: a name that jbench has already'),
        ('duration=2.0', "duration='long'", "Task 'my_eyes': window.duration: got 'long', expected a number"),
        ('duration=2.0', 'duration=-2.0', "Task 'my_eyes': window.duration: -2.0 must be above 0"),
        ('Window(duration=2.0, stride=2.0)', '2.0', "Task 'my_eyes'"),
        ('TASKS = (', 'TASKS = ((', 'was never closed'),
        ('Classes, Dataset', 'Clases, Dataset', "cannot import name 'Clases'"),
        ("name='my_eyes'", "name='../eyes'", "expected letters, digits, '_', '-' and '.' alone"),
        ("category='mine'", "category='mine', device='egg'", "unknown device 'egg'; did you mean"),
        ('paradigm=', "overrides=(('MyRest', ()),), paradigm=", "unknown dataset of its overrides 'MyRest'"),
        ('paradigm=', "overrides=(('MyRest2026', ()), ('MyRest2026', ())), paradigm=", 'a dataset stands twice'),
        ('paradigm=', "overrides=(('MyRest2026',),), paradigm=", "overrides: expected (('<dataset>', (('<field>',"),
        ('paradigm=', "overrides=(('MyRest2026', ('window.start',)),), paradigm=", "overrides: expected (('<dat"),
        ('paradigm=', "exclude=(Exclusion('MyRest', '1', ''),), paradigm=", "its exclude 'MyRest'; did you mean"),
        ("paradigm='rstate'", "paradigm='resting'", "unknown paradigm 'resting'"),
        ('duration=2.0', 'durtion=2.0', 'line 34: TypeError: Window.__init__() got an unexpected keyword'),
        (
            'paradigm=',
            "overrides=(('MyRest2026', (('window.strat', 0.5),)),), paradigm=",
            "'window.strat'; did you mean 'window.start'",
        ),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, capsys, old, new, said):
    path = tmp_path / 'mine.py'
    text = EXAMPLE.read_text()
    assert old in text
    path.write_text(text.replace(old, new).replace('import Classes', 'import Exclusion, Classes'))
    home = own_folder(tmp_path / 'data', 'edf')
    assert run.main(ask(home, tmp_path / 'work', '--model=dummy', task=path)) == 2
    error = capsys.readouterr().err
    assert said in error and 'Traceback' not in error
    assert not list(tmp_path.glob('work/results/**/*.json'))


@pytest.mark.parametrize(
    ('task', 'said'),
    [
        ('absent.py', '--task=absent.py: no such file'),
        (f'{EXAMPLE}:my_eye', "unknown task 'my_eye'; did you mean 'my_eyes'"),
        (f'{EXAMPLE}:my_eyes@3', "has no version '3'"),
        (f'{EXAMPLE}:my_eyes/MyRest2027', "did you mean 'MyRest2026'"),
    ],
)
def test_a_wrong_name_of_ones_own_task_is_suggested(task, said):
    with pytest.raises(RequestError) as error:
        select.select_tasks(task)
    assert said in str(error.value)


def test_tasks_of_a_file_are_named_like_others():
    (whole,), (named,) = select.select_tasks(str(EXAMPLE)), select.select_tasks(f'{EXAMPLE}:my_eyes@1/myrest2026')
    assert whole == named and whole[1].name == 'MyRest2026' and 'my_eyes' not in select.tasks()


def test_a_number_is_of_the_type_of_its_field(tmp_path):
    """Else 2 and 2.0 would be two tasks, with results of their own."""
    path = tmp_path / 'mine.py'
    path.write_text(EXAMPLE.read_text().replace('duration=2.0', 'duration=2').replace('(100.0,)', '(100,)'))
    assert canonical(select.select_tasks(str(path))) == canonical(select.select_tasks(str(EXAMPLE)))


@pytest.mark.slow
def test_all_that_is_wrong_with_a_folder_comes_in_one_message(tmp_path, capsys):
    home, path = own_folder(tmp_path / 'data', 'edf'), tmp_path / 'mine.py'
    path.write_text(EXAMPLE.read_text().replace("field='trial_type'", "field='trialtype'"))
    (home / 'MyRest2026' / 'S03_rest_events.csv').unlink()
    assert run.main(ask(home, tmp_path / 'work', '--model=dummy', task=path)) == 2
    said = capsys.readouterr().err
    assert 'S03_rest.edf: events of type Stimulus must be there: found none' in said
    assert said.count("unknown column of the event table 'trialtype'; did you mean 'trial_type'") == 1
    assert all(f'S0{k}_rest.edf' in said for k in (1, 2, 4, 5, 6)), 'what is wrong with many is said once'


def test_an_empty_folder_says_what_should_lie_there(tmp_path, capsys):
    (tmp_path / 'MyRest2026').mkdir()
    assert run.main(ask(tmp_path, tmp_path / 'work', '--model=dummy')) == 2
    assert 'MyRest2026 holds no recording; put there: S<NN>_rest.edf' in capsys.readouterr().err
