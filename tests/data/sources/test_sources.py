"""Readers of real recordings: what they find, units, names, event codes and labels."""

from __future__ import annotations

import gzip
import shutil
from collections import Counter
from pathlib import Path

import mne
import numpy as np
import pytest

from jbench.data import recording
from jbench.data.discover import find_recordings
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.sources import kalunga, physionet
from jbench.spec.errors import RequestError

KALUNGA = kalunga.DATASETS[0]


def read(module, ref: RecordingRef) -> Recording:
    got = module.read(ref)
    assert isinstance(got, Recording), got
    return got


def test_kalunga_files_are_found_by_subject_and_date(data_dir: Path) -> None:
    refs = find_recordings(KALUNGA, data_dir)
    assert len(refs) == 14 and len({r.name for r in refs}) == 14
    assert list(dict.fromkeys(r.subject for r in refs)) == [f'{k:02d}' for k in range(1, 13)]
    assert [(r.subject, r.session) for r in refs if r.subject in ('03', '07')] == [
        ('03', '0'),
        ('03', '1'),
        ('07', '0'),
        ('07', '1'),
    ]
    assert all(Path(f).exists() for r in refs for f in r.files)


def test_kalunga_is_in_volts_with_its_32_cues(data_dir: Path) -> None:
    ref = find_recordings(KALUNGA, data_dir)[0]
    raw, events = read(kalunga, ref)
    stored = mne.io.read_raw_fif(ref.files[0], preload=True, verbose='ERROR').get_data()
    np.testing.assert_allclose(raw.get_data(), stored * 1e-3, rtol=1e-12)
    assert 3e-6 < np.median(raw.get_data().std(1)) < 50e-6
    assert raw.ch_names == ['Oz', 'O1', 'O2', 'PO3', 'POz', 'PO7', 'PO8', 'PO4'] and raw.info['sfreq'] == 256
    codes = mne.read_events(ref.files[1])[:, 2]
    assert list(events['code']) == list(codes)
    assert Counter(events['label']) == {'rest': 8, '13': 8, '21': 8, '17': 8}
    assert {(int(c), str(k)) for c, k in zip(events['code'], events['label'], strict=True)} == {
        (1, 'rest'),
        (2, '13'),
        (3, '21'),
        (4, '17'),
    }
    assert np.all(np.diff(events['onset']) > 5) and set(events['duration']) == {5.0}
    assert check_recording.check(Recording(raw, events), KALUNGA, 'x') == []


def test_the_flicker_of_kalunga_has_the_frequency_of_its_label(data_dir: Path) -> None:
    """The codes are not in the order of the frequencies: power at each label's frequency and its harmonic tells."""
    hits = []
    for ref in find_recordings(KALUNGA, data_dir)[::4]:
        raw, events = read(kalunga, ref)
        x = raw.get_data(['Oz', 'O1', 'O2', 'POz'])
        for onset, label in zip(events['onset'], events['label'], strict=True):
            if label == 'rest':
                continue
            at = round((onset + 1) * 256)
            spectrum = np.abs(np.fft.rfft(x[:, at : at + 1024] * np.hanning(1024), 4096)) ** 2
            power = {
                f: sum(
                    float(spectrum[:, 16 * f * h].sum() / spectrum[:, 16 * f * h - 80 : 16 * f * h + 80].sum())
                    for h in (1, 2)
                )
                for f in (13, 17, 21)
            }
            hits.append(max(power, key=power.__getitem__) == int(label))
    assert len(hits) == 96 and np.mean(hits) > 0.6


def test_one_kalunga_recording_stands_under_two_subjects(data_dir: Path) -> None:
    refs = find_recordings(KALUNGA, data_dir)
    digests = Counter(recording.digest(read(kalunga, r)) for r in refs if r.subject in ('03', '07'))
    assert sorted(digests.values()) == [1, 1, 2]


def test_plain_fif_files_are_read_too(data_dir: Path, tmp_path: Path) -> None:
    ref = find_recordings(KALUNGA, data_dir)[0]
    folder = tmp_path / KALUNGA.name / 'subject01'
    folder.mkdir(parents=True)
    plain = folder / Path(ref.files[0]).name.removesuffix('.gz')
    plain.write_bytes(gzip.decompress(Path(ref.files[0]).read_bytes()))
    shutil.copy(ref.files[1], folder)
    found = find_recordings(KALUNGA, tmp_path)
    assert [r.name for r in found] == [ref.name]
    assert recording.digest(read(kalunga, found[0])) == recording.digest(read(kalunga, ref))
    whole = plain.read_bytes()
    plain.write_bytes(whole[: len(whole) - 16])
    assert 'truncated' in str(kalunga.read(found[0]))


def test_zyma_has_36_subjects_at_rest_and_at_work(data_dir: Path) -> None:
    refs = find_recordings(physionet.ZYMA, data_dir)
    assert len(refs) == 72 and len({r.subject for r in refs}) == 36
    assert Counter(dict(r.fields)['task'] for r in refs) == {'rest': 36, 'mental_arithmetic': 36}
    assert dict(refs[0].fields) == {
        'task': 'rest',
        'age': '21',
        'gender': 'F',
        'count_quality': '',
    }
    assert dict(refs[1].fields)['count_quality'] == 'quality_0'
    assert Counter(dict(r.fields)['count_quality'] for r in refs) == {'': 36, 'quality_1': 26, 'quality_0': 10}
    raw, events = read(physionet, refs[0])
    assert raw.ch_names[:2] == ['Fp1', 'Fp2'] and set(raw.get_channel_types()) == {'eeg'} and len(raw.ch_names) == 19
    assert len(events['onset']) == 0 and 5e-6 < np.median(raw.get_data().std(1)) < 30e-6
    assert np.isfinite([raw.info['chs'][k]['loc'][:3] for k in range(19)]).all()


def test_a_table_of_subjects_that_lacks_a_column_is_refused(data_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / physionet.ZYMA.name
    folder.mkdir()
    shutil.copy(data_dir / physionet.ZYMA.name / 'Subject00_1.edf', folder)
    assert [dict(r.fields) for r in find_recordings(physionet.ZYMA, tmp_path)] == [{'task': 'rest'}]
    (folder / 'subject-info.csv').write_text('Subject;Age;Gender\nSubject00;21;F\n')
    with pytest.raises(RequestError, match=r'subject-info\.csv: each row needs Subject, Age, Gender'):
        find_recordings(physionet.ZYMA, tmp_path)
    (folder / 'subject-info.csv').write_bytes('\ufeffSubject,Age,Gender\nSubject00,21,F\n'.encode())
    assert dict(find_recordings(physionet.ZYMA, tmp_path)[0].fields)['age'] == '21'


def test_schalk_runs_have_the_labels_of_their_kind(data_dir: Path) -> None:
    refs = find_recordings(physionet.SCHALK, data_dir)
    assert [r.name for r in refs] == [f'S001_0_R{k}' for k in ('01', '02', '04', '08', '12')]
    for ref in refs:
        raw, events = read(physionet, ref)
        kinds, labels = set(events['type']), Counter(events['label'])
        if ref.run in ('R01', 'R02'):
            word = {'R01': 'open', 'R02': 'closed'}[ref.run]
            assert kinds == {'EyeState', 'EyeBlock'} and labels == {word: 6}
            assert events['block'].tolist() == ['', '0', '1', '2', '3', '4']
            assert events['onset'].tolist() == [0, 0, 12, 24, 36, 48]
        else:
            assert kinds == {'Action'} and labels['rest'] == 15
            assert labels['imagery_left_fist'] + labels['imagery_right_fist'] == 15 and len(labels) == 3
        assert check_recording.check(Recording(raw, events), physionet.SCHALK, 'x') == []
    assert len(raw.ch_names) == 64 and raw.info['sfreq'] == 160


def test_a_minute_and_a_second_are_five_blocks(data_dir: Path, tmp_path: Path) -> None:
    """The host's own files have a record more than those here: no block may begin in it."""
    ref = find_recordings(physionet.SCHALK, data_dir)[0]
    content = Path(ref.files[0]).read_bytes()
    n_bytes, n_records = int(content[184:192]), int(content[236:244])
    record = content[-((len(content) - n_bytes) // n_records) :]
    path = tmp_path / 'S001R01.edf'
    path.write_bytes(content[:236] + f'{n_records + 1:<8d}'.encode() + content[244:] + record)
    raw, events = read(physionet, ref._replace(files=(str(path),)))
    assert raw.n_times == 61 * 160 and events['block'].tolist() == ['', '0', '1', '2', '3', '4']


def test_schalk_channels_have_the_standard_names(data_dir: Path) -> None:
    ref = find_recordings(physionet.SCHALK, data_dir)[0]
    raw = mne.io.read_raw_edf(ref.files[0], verbose='ERROR')
    mne.datasets.eegbci.standardize(raw)
    assert read(physionet, ref).raw.ch_names == raw.ch_names


@pytest.mark.parametrize(
    ('run', 'kind', 'left', 'both'),
    [
        (3, 'motor', True, False),
        (4, 'imagery', True, False),
        (5, 'motor', False, True),
        (6, 'imagery', False, True),
        (13, 'motor', False, True),
        (14, 'imagery', False, True),
    ],
)
def test_what_t1_means_depends_on_the_run(data_dir: Path, run: int, kind: str, left: bool, both: bool) -> None:
    file = str(data_dir / 'Schalk2004Bci2000' / 'S001R04.edf')
    _, events = read(physionet, RecordingRef('Schalk2004Bci2000', 'S001', '0', f'R{run:02d}', (file,)))
    fists, feet = f'{kind}_left_fist' in events['label'], f'{kind}_bilateral_fist' in events['label']
    assert (fists, feet) == (left, both)


def test_unknown_annotations_are_refused(data_dir: Path) -> None:
    file = str(data_dir / 'Schalk2004Bci2000' / 'S001R04.edf')
    got = physionet.read(RecordingRef('Schalk2004Bci2000', 'S001', '0', 'R01', (file,)))
    assert isinstance(got, Finding) and got.found == 'T1, T2' and got.expected == 'T0'


def test_the_event_that_covers_a_recording_comes_first(data_dir: Path) -> None:
    ref = find_recordings(physionet.SCHALK, data_dir)[2]
    table = recording.event_table(read(physionet, ref), ref, physionet.SCHALK)
    assert list(table['type'][:2]) == ['Eeg', 'Action'] and table['onset'][1] == 0 and table['label'][0] == ''
    assert table['duration'][0] == 125 and set(table['subject']) == {'S001'} and set(table['run']) == {'R04'}
    assert np.all(np.diff(table['onset']) >= 0)
