"""Originals of the open sets, as their repositories have them: small files of each format, made here, always; and
recordings that `--stage=download` brought, where JBENCH_TEST_ORIGINALS names their folder."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import ModuleType

import mne
import numpy as np
import pytest
from scipy.io import savemat

from jbench.data import recording
from jbench.data.discover import find_recordings
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, RecordingRef, digest
from jbench.data.sources import dreams, finger_tapping, haxby, kalunga, lower_limb_emg, muse, physionet, smni

RNG = np.random.default_rng(5)


def refs_of(module: ModuleType, root: Path) -> list[RecordingRef]:
    return find_recordings(module.DATASETS[0], root)


def read(module: ModuleType, ref: RecordingRef) -> Recording:
    got = module.read(ref)
    assert isinstance(got, Recording), got
    return got


def refusal(module: ModuleType, ref: RecordingRef) -> str:
    got = module.read(ref)
    assert isinstance(got, Finding), got
    return str(got)


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


# ---- small files of each format ----


def test_kalunga_is_read_without_compression(tmp_path: Path) -> None:
    folder = tmp_path / 'Kalunga2016Online' / 'subject01'
    folder.mkdir(parents=True)
    raw = mne.io.RawArray(RNG.normal(0, 8e-3, (8, 512)), mne.create_info(8, 256.0, 'eeg'))
    for name in ('record-[a]_raw.fif', 'record-[b]_raw.fif.gz'):
        raw.save(folder / name)
        mne.write_events(folder / f'{name.partition("_raw")[0]}-eve.fif', np.array([[64, 0, 4], [256, 0, 1]]))
    plain, packed = (read(kalunga, ref) for ref in refs_of(kalunga, tmp_path))
    assert digest(plain) == digest(packed) and plain.events['label'].tolist() == ['17', 'rest']
    np.testing.assert_allclose(plain.raw.get_data(), raw.get_data() * 1e-3, rtol=1e-6)


HEAD = 'timestamps,TP9,AF7,AF8,TP10,Right AUX,Marker0'


def muse_table(n: int) -> str:
    x = RNG.normal(0, 10, (n, 5)).round(3)
    rows = [','.join(map(str, (k / 256, *v, int(k in (64, 128)) * (1 + k // 128)))) for k, v in enumerate(x.tolist())]
    return '\n'.join([HEAD, *rows]) + '\n'


def test_muse_has_folders_or_long_names(tmp_path: Path) -> None:
    text, other = muse_table(512), muse_table(512)
    for root, zipped in (('plain', False), ('packed', True)):
        base = tmp_path / root / 'MuseERP' / 'N170'
        for subject, session, name, content in (('10', '2', 'a.csv', text), ('9', '1', 'b', other)):
            if zipped:
                base.mkdir(parents=True, exist_ok=True)
                packed = gzip.compress(content.encode())
                (base / f'subject{subject}_session{session}_{name.removesuffix(".csv")}.csv.gz').write_bytes(packed)
            else:
                write(base / f'subject{subject}' / f'session{session}' / f'{name}.csv', content)
    plain, packed = (refs_of(muse, tmp_path / root) for root in ('plain', 'packed'))
    assert [r._replace(files=()) for r in plain] == [r._replace(files=()) for r in packed]
    assert [(r.subject, r.session, r.run) for r in plain] == [('N170-10', '2', 'a'), ('N170-9', '1', 'b')]
    assert dict(plain[0].fields)['n170_recording'] == 'subject10_session2_a'
    for one, two in zip(plain, packed, strict=True):
        assert digest(read(muse, one)) == digest(read(muse, two))
    assert 'the file must begin as its format does' in refusal(muse, plain[0]._replace(files=(__file__,)))


SENSORS = ('FP1', 'CPZ', 'X', 'F7', 'nd', 'Y')
COLUMNS = (
    ',trial number,sensor position,sample num,sensor value,subject identifier,matching condition,channel,name,time'
)


def smni_table(x: np.ndarray, name: str = 'co2a0000364', trial: int = 7, condition: str = 'S1 obj') -> str:
    rows = [
        f'{k},{trial},{sensor},{k},{v},{name[3]},{condition},{c},{name},{k / 256}'
        for c, sensor in enumerate(SENSORS)
        for k, v in enumerate(x[c].tolist())
    ]
    return '\n'.join([COLUMNS, *rows]) + '\n'


@pytest.fixture
def trial(tmp_path: Path) -> tuple[RecordingRef, np.ndarray]:
    """A trial of few sensors, and its microvolts."""
    x = RNG.normal(0, 10, (len(SENSORS), 256)).round(3)
    write(tmp_path / smni.DATASETS[0].name / 'Data3.csv', smni_table(x, condition='"S2 nomatch,"'))
    (ref,) = refs_of(smni, tmp_path)
    return ref, x


def test_a_trial_of_smni_is_a_file_that_says_whose(trial: tuple[RecordingRef, np.ndarray]) -> None:
    ref, x = trial
    assert (ref.subject, ref.run, ref.fields) == ('co2a0000364', '007', (('group', 'alcoholic'),))
    raw, events = read(smni, ref)
    assert raw.ch_names == ['CPz', 'F7', 'Fp1', 'EOGx', 'EOGy', 'nd'] and events['label'].tolist() == ['S2 nomatch']
    assert raw.get_channel_types() == ['eeg'] * 3 + ['eog'] * 2 + ['misc'] and raw.info['sfreq'] == 256
    electrodes = x[[1, 3, 0]] * 1e-6
    np.testing.assert_allclose(raw.get_data('eeg'), electrodes - electrodes.mean(0), atol=1e-12)
    np.testing.assert_allclose(raw.get_data(['EOGx', 'nd']), x[[2, 4]] * 1e-6)


FAULTY = {
    'nothing': (lambda text: '', 'the file must not be empty'),
    'a column less': (lambda text: text.replace('sensor value', 'value', 1), 'expected sensor value'),
    'a row less': (lambda text: text.replace('\n9,', '\n', 1), 'samples must follow each other: found in line 11'),
    'half': (lambda text: text[: len(text) // 2].rpartition('\n')[0] + '\n', 'a file must hold one trial'),
    'a word': (lambda text: text.replace('CPZ,5,', 'CPZ,5,?', 1), 'samples must follow each other'),
    'another condition': (lambda text: text.replace('S2 nomatch', 'S3'), 'a file must hold one trial'),
    'two trials': (lambda text: text.replace(',7,nd', ',8,nd'), 'trial 8'),
}


@pytest.mark.parametrize('fault', FAULTY)
def test_a_trial_that_is_not_whole_is_told(trial: tuple[RecordingRef, np.ndarray], fault: str) -> None:
    ref, path = trial[0], Path(trial[0].files[0])
    change, said = FAULTY[fault]
    path.write_text(change(path.read_text()))
    assert said in refusal(smni, ref)
    assert len(refs_of(smni, path.parent.parent)) == 1, 'it is counted, whatever is in it'


def test_sheets_of_the_leg_are_told_by_their_names(tmp_path: Path) -> None:
    root = tmp_path / lower_limb_emg.DATASETS[0].name
    head = 'Recto Femoral,Biceps Femoral,Vasto Medial,EMG Semitendinoso,Flexo-Extension'
    for name in ('normal/11Ngait - 1Nmar.csv', 'Abnormal/1Asitting - Sheet1.csv', 'normal/1Ngait - Sheet1.csv'):
        x = RNG.normal(0, 0.05, (2000, 5)).round(4)
        write(root / name, '\n'.join([head, *(','.join(map(str, row)) for row in x.tolist())]))
    refs = refs_of(lower_limb_emg, tmp_path)
    assert [(r.subject, r.run, dict(r.fields)['group']) for r in refs] == [
        ('N01', 'gait', 'normal'), ('N11', 'gait', 'normal'), ('A01', 'sitting', 'abnormal'),
    ]  # fmt: skip
    raw = read(lower_limb_emg, refs[0]).raw
    assert raw.ch_names == ['RF', 'BF', 'VM', 'ST'] and raw.info['sfreq'] == 1000
    np.testing.assert_allclose(raw.get_data(), x[:, :4].T * 1e-3)
    write(root / 'normal/1Ngait - Sheet1.csv', 'time,' + head)
    assert 'the file must begin as its format does' in refusal(lower_limb_emg, refs[0])


def homer(path: Path, **changes: object) -> None:
    """A recording of 40 s: two pairs of source and detector 30 mm apart, three marks of which one is stray."""
    n = 200
    t, marks = (np.arange(n) + 1) * 0.2, np.zeros(n)
    marks[[75, 100, 135]] = 1  # the second is 5 s after the first
    probe = {
        'Lambda': [690, 830], 'SrcPos': [[0.0, 0, 0], [100, 0, 0]], 'DetPos': [[30.0, 0, 0], [100, 30, 0]],
        'MeasList': [[1, 1, 1, 1], [2, 2, 1, 1], [1, 1, 1, 2], [2, 2, 1, 2]], 'SpatialUnit': 'mm',
    }  # fmt: skip
    d = 1e4 * np.exp(0.01 * RNG.normal(size=(n, 4)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, 'wb') as file:  # savemat would add .mat
        savemat(file, {'t': t, 'd': d, 's': marks, 'SD': probe, 'aux': np.zeros((n, 8)), **changes})


def test_homers_own_files_become_haemoglobin(tmp_path: Path) -> None:
    root = tmp_path / finger_tapping.DATASETS[0].name
    for name in ('subj1/Fingertapping_08212013', 'subj2/20130905_FingerTapping', 'subj1/Fingertapping_08192013'):
        homer(root / f'{name}.nirs')
    refs = refs_of(finger_tapping, tmp_path)
    assert [(r.subject, r.session, r.run) for r in refs] == [
        ('1', '0', '08192013'), ('1', '1', '08212013'), ('2', '0', '20130905'),
    ]  # fmt: skip
    raw, events = read(finger_tapping, refs[0])
    assert raw.get_channel_types() == ['hbo'] * 2 + ['hbr'] * 2 and raw.info['sfreq'] == pytest.approx(5)
    assert [c.partition(' ')[0] for c in raw.ch_names] == ['S1_D1', 'S2_D2'] * 2
    tapping = events['onset'][events['label'] == 'tapping']
    np.testing.assert_allclose(tapping, [15, 27])  # samples 75 and 135; the stray one is none
    np.testing.assert_allclose(mne.preprocessing.nirs.source_detector_distances(raw.info), 0.03)
    assert 1e-9 < np.median(raw.get_data().std(1)) < 1e-4  # mol/l
    for changes in ({'d': np.ones((10, 4))}, {'SD': {'Lambda': [690]}}, {'t': []}):
        homer(Path(refs[0].files[0]), **changes)
        assert "the file must be one of Homer's" in refusal(finger_tapping, refs[0])


# ---- those of the repositories ----

MODULES = (kalunga, physionet, muse, dreams, smni, lower_limb_emg, finger_tapping, haxby)


@pytest.fixture(scope='session')
def originals() -> Path:
    """Recordings as `--stage=download` brings them."""
    path = os.environ.get('JBENCH_TEST_ORIGINALS', '')
    if not path or not Path(path).is_dir():
        pytest.skip('no originals: set JBENCH_TEST_ORIGINALS to the --data_dir of --task=open_sets --stage=download')
    return Path(path)


@pytest.mark.parametrize('module', MODULES, ids=lambda m: m.__name__.rpartition('.')[2])
def test_originals_are_what_the_facts_declare(originals: Path, module: ModuleType) -> None:
    dataset, refs = module.DATASETS[0], refs_of(module, originals)
    if not refs:
        pytest.skip(f'no originals of {dataset.name}')
    assert len(refs) == len({r.name for r in refs}) and len({r.subject for r in refs}) == dataset.n_subjects
    assert len(refs) == dataset.n_recordings or module is kalunga  # two of which are large
    still = [r for r in refs if r.name == 'Subject03_0_2']  # for a second, before its end
    for ref in (refs[0], refs[-1], *still):
        got = read(module, ref)
        assert [f for f in check_recording.check(got, dataset, 'x') if f.level == 'fatal'] == []
        assert len(recording.data_channels(got.raw, dataset)) == dataset.n_chans
        assert f'{got.raw.info["sfreq"]:g}' == f'{dataset.sfreq[0]:g}'
    assert read(module, refs[0]).raw.duration >= 0.99 * (dataset.seconds or 0)


def test_copies_are_parts_of_their_originals(originals: Path, data_dir: Path) -> None:
    """A trial, 4 s of walking, a session of tapping and a recording of a headband, each in both forms."""
    for module in (smni, lower_limb_emg, finger_tapping, muse):
        if not (originals / module.DATASETS[0].name).is_dir():
            pytest.skip(f'no originals of {module.DATASETS[0].name}')
    copy, whole = refs_of(smni, data_dir)[1], {(r.subject, r.run): r for r in refs_of(smni, originals)}
    one, two = read(smni, copy), read(smni, whole[copy.subject, '002'])
    assert one.raw.ch_names == two.raw.ch_names and one.events['label'] == two.events['label'] == 'S1 obj'
    np.testing.assert_allclose(one.raw.get_data('eeg'), two.raw.get_data('eeg'), atol=0.11e-6)
    copy, whole = refs_of(lower_limb_emg, data_dir)[0], refs_of(lower_limb_emg, originals)[0]
    assert copy[:4] == whole[:4]
    x, all_ = (read(lower_limb_emg, r).raw.get_data() for r in (copy, whole))
    start = (all_.shape[1] - x.shape[1]) // 2
    np.testing.assert_allclose(x, all_[:, start : start + x.shape[1]])
    for copy, whole in zip(refs_of(finger_tapping, data_dir), refs_of(finger_tapping, originals), strict=True):
        one, two = read(finger_tapping, copy), read(finger_tapping, whole)
        assert copy[:4] == whole[:4] and one.raw.ch_names == two.raw.ch_names
        np.testing.assert_allclose(one.raw.get_data(), two.raw.get_data(), atol=1e-10, rtol=1e-3)
        np.testing.assert_allclose(one.events['onset'] - two.events['onset'], 0.2, atol=0.01)  # a sample
    here = {r.name: r for r in refs_of(muse, originals)}
    copies = refs_of(muse, data_dir)
    assert {r.name for r in copies} <= here.keys()
    assert digest(read(muse, copies[0])) == digest(read(muse, here[copies[0].name]))
