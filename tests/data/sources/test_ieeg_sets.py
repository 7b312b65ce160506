"""Readers of contacts in the brain, on small trees in the layout of the hosts, and the contract of their recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import mne
import numpy as np
import pytest

from jbench.data.discover import find_recordings
from jbench.data.formats import neuroprobe
from jbench.data.prepare import check_recording, convert
from jbench.data.recording import Finding, Recording, regions_of, set_names
from jbench.data.sources import brain_treebank, film_ieeg, simulated_ieeg
from jbench.plan import cells, select
from jbench.spec.errors import RequestError

TREEBANK, FILM = select.find_dataset('BrainTreebank'), select.find_dataset('ds003688')
LABELS = ['*T1a1', 'T1a2#', 'T1a3', 'DC1', 'T1b1', 'T1b2', 'P2a6']  # P2a6 is corrupted, T1b2 not of Neuroprobe
SETTINGS = """import os
ROOT_DIR = os.environ['ROOT_DIR_BRAINTREEBANK']
SAMPLING_RATE = 2048
NEUROPROBE_LITE_SUBJECT_TRIALS = [(1, 1), (2, 0), (2, 4)]
BRAINTREEBANK_SUBJECT_TRIAL_MOVIE_NAME_MAPPING = {"btbank1_1": "venom", "btbank2_0": "venom", "btbank2_4": "aquaman"}
NEUROPROBE_LITE_ELECTRODES = {"btbank1": ["T1b1", "T1a1", "T1a2", "P2a6"], "btbank2": ["T1a1", "T1a2"]}
"""
N_WORDS, SECONDS = 80, 130


def table(path: Path, columns: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [','.join(columns), *(','.join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_text('\n'.join(rows) + '\n')


def treebank(root: Path, subject: int, trial: int, film: str) -> None:
    """A session: words every second from 2.5 s on, of which the first stands in no table of the session; silence."""
    rng = np.random.default_rng(subject)
    root.mkdir(parents=True, exist_ok=True)
    with h5py.File(root / f'sub_{subject}_trial{trial:03}.h5', 'w') as file:
        for k in range(len(LABELS)):
            file[f'data/electrode_{k}'] = (100 * (k + 1) * rng.standard_normal(2048 * SECONDS)).astype('f4')
    (root / 'neuroprobe').mkdir(exist_ok=True)
    (root / 'neuroprobe' / 'config.py').write_text(SETTINGS)
    (root / 'electrode_labels' / f'sub_{subject}').mkdir(parents=True, exist_ok=True)
    (root / 'electrode_labels' / f'sub_{subject}' / 'electrode_labels.json').write_text(json.dumps(LABELS))
    (root / 'corrupted_elec.json').write_text(json.dumps({'sub_1': ['P2a6*'], 'sub_2': []}))
    places = {'Electrode': ['T1a1*', 'T1b1'], 'Subject': ['sub_1', 'sub_1'], 'X': [-40, -30], 'Y': [1, 2], 'Z': [3, 4]}
    table(root / 'localization' / 'elec_coords_full.csv', places)
    regions = {'Electrode': ['T1a1', 'T1b1*'], 'L': [90, 95], 'DesikanKilliany': ['ctx-lh-insula', 'ctx-lh-precuneus']}
    table(root / 'localization' / f'sub_{subject}' / 'depth-wm.csv', regions)
    start = 1.5 + np.arange(N_WORDS + 1) + 0.001
    features = {
        '': range(N_WORDS + 1),
        'text': [f'w{k}' for k in range(N_WORDS + 1)],
        'sentence': [f's{k // 4}' for k in range(N_WORDS + 1)],
        'is_onset': [int(k % 4 == 0) for k in range(N_WORDS + 1)],
        'idx_in_sentence': [k % 4 for k in range(N_WORDS + 1)],
        'face_num': rng.integers(0, 2, N_WORDS + 1),
        'bin_head': rng.integers(0, 2, N_WORDS + 1),
        'pos': rng.choice(['VERB', 'NOUN'], N_WORDS + 1),
        **{name: rng.standard_normal(N_WORDS + 1) for name in neuroprobe.NUMBERS.values() if name != 'enhanced_pitch'},
    }
    table(root / 'transcripts' / film / 'features.csv', features)
    here = {
        'original_index': range(1, N_WORDS + 1),
        'est_idx': [f'{round((t + 1) * 2048)}.0' for t in start[1:]],
        'est_end_idx': [f'{round((t + 1.4) * 2048)}.0' for t in start[1:]],
        'start': start[1:],
        'end': start[1:] + 0.4,
    }
    tables = root / 'neuroprobe' / 'braintreebank_features_time_alignment'
    table(tables / f'subject{subject}_trial{trial}_words_df.csv', here)
    silent = 90 + np.arange(30)
    table(tables / f'subject{subject}_trial{trial}_nonverbal_df.csv', {'start': silent, 'est_idx': 2048 * silent})
    pitch = {f'{t:.7f}': {'enhanced_pitch': float(k)} for k, t in enumerate(start)}
    path = root / 'neuroprobe' / 'pitch_volume_features' / f'{film}_pitch_volume_features.json'
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(pitch))


@pytest.fixture(scope='module')
def treebanks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp('data')
    treebank(root / TREEBANK.name, 1, 1, 'venom')
    treebank(root / TREEBANK.name, 2, 4, 'aquaman')
    (root / TREEBANK.name / 'sub_3_trial000.h5').touch()  # not one of Neuroprobe's sessions
    return root


def test_sessions_are_those_of_neuroprobe_that_are_there(treebanks: Path) -> None:
    refs = find_recordings(TREEBANK, treebanks)
    assert [(r.subject, r.session, dict(r.fields)) for r in refs] == [
        ('1', '1', {'film': 'venom'}),
        ('2', '4', {'film': 'aquaman'}),
    ]
    assert all(Path(f).exists() for r in refs for f in r.files)


def test_a_session_has_the_contacts_of_neuroprobe_by_their_place_among_all_labels(treebanks: Path) -> None:
    got = brain_treebank.read(find_recordings(TREEBANK, treebanks)[0])
    assert isinstance(got, Recording)
    raw = got.raw
    assert raw.ch_names == ['T1b1', 'T1a1', 'T1a2'] and set(raw.get_channel_types()) == {'seeg'} and not raw.preload
    with h5py.File(treebanks / TREEBANK.name / 'sub_1_trial001.h5') as file:
        stored = np.stack([file[f'data/electrode_{k}'][1000:1500] for k in (4, 0, 1)])
    np.testing.assert_allclose(raw.get_data(start=1000, stop=1500), stored * 1e-6, rtol=1e-6)
    np.testing.assert_allclose(raw.get_data(['T1a2', 'T1b1'], 1000, 1500), stored[[2, 0]] * 1e-6, rtol=1e-6)
    assert regions_of(raw) == {'T1a1': 'ctx-lh-insula', 'T1b1': 'ctx-lh-precuneus'}
    np.testing.assert_allclose(raw.info['chs'][1]['loc'][:3], [-0.04, 0.001, 0.003])
    assert check_recording.check(got, TREEBANK, 'x')[0].found == 'none of T1a2'
    assert [f.level for f in check_recording.check(got, TREEBANK, 'x')] == ['note']


def test_windows_are_where_the_words_of_the_session_are(treebanks: Path) -> None:
    """A second after a word as the session counts its samples; pitch rises from word to word."""
    refs = find_recordings(TREEBANK, treebanks)
    one, other = (brain_treebank.read(r).events for r in refs)
    mine = {k: v[one['type'] == 'Pitch'] for k, v in one.items()}
    assert len(mine['onset']) == 38 and set(mine['duration']) == {1.0}
    low, high = (mine['onset'][mine['label'] == c] for c in '01')
    np.testing.assert_allclose(high, 64.501 + np.arange(19), atol=1e-3)  # 61 of 80 words and more are below these
    assert set(np.round(low, 1)) <= set(np.round(3.5 + np.arange(20), 1)) and (np.diff(low) > 0).all()
    first = one['onset'][(one['type'] == 'Onset') & (one['label'] == '1')]
    np.testing.assert_allclose(
        first, 6.501 + 4 * np.arange(20), atol=1e-3
    )  # each fourth word of the film, from the fifth on
    quiet = one['onset'][(one['type'] == 'Onset') & (one['label'] == '0')]
    assert set(quiet) <= set(90.0 + np.arange(30)) and len(quiet) == 20
    assert set(one['cross_subject'][one['half'] == '1']) == {'valid'}
    assert set(one['cross_subject'][one['half'] == '2']) == {'test'}
    assert set(other['cross_subject']) == {'train'}


def test_what_misses_beside_a_session_is_named(treebanks: Path, tmp_path: Path) -> None:
    treebank(tmp_path / TREEBANK.name, 1, 1, 'venom')
    ref = find_recordings(TREEBANK, tmp_path)[0]
    Path(ref.files[9]).unlink()
    found = brain_treebank.read(ref)
    assert isinstance(found, Finding) and found.where.endswith('venom_pitch_volume_features.json')
    (tmp_path / TREEBANK.name / 'neuroprobe' / 'config.py').write_text('NEUROPROBE_LITE_SUBJECT_TRIALS = [(1, 1)]')
    with pytest.raises(RequestError, match='expected settings of Neuroprobe, NEUROPROBE_LITE_SUBJECT_TRIALS'):
        find_recordings(TREEBANK, tmp_path)


@pytest.mark.parametrize(
    ('number', 'content', 'words'),
    [
        (0, b'', 'sub_1_trial001.h5'),
        (4, b'Electrode,X,Y,Z\nT1a1,1,2,3\n', 'elec_coords_full.csv lacks the column Subject'),
        (5, b'Electrode,L\nT1a1,1\n', 'depth-wm.csv lacks the column DesikanKilliany'),
        (6, b'start,end\n1,2\n', 'subject1_trial1_words_df.csv lacks the column original_index, est_idx'),
        (7, b'start\n1\n', 'subject1_trial1_nonverbal_df.csv lacks the column est_idx'),
        (8, b',text\n1,w\n', 'features.csv'),
    ],
)
def test_a_damaged_file_of_a_session_is_named(tmp_path: Path, number: int, content: bytes, words: str) -> None:
    treebank(tmp_path / TREEBANK.name, 1, 1, 'venom')
    (ref,) = find_recordings(TREEBANK, tmp_path)
    damaged = Path(ref.files[number])
    damaged.write_bytes(content or damaged.read_bytes()[:100_000])  # truncated
    task = cells.apply(select.tasks()['ieeg/pitch'][-1], TREEBANK, ())
    (found,) = convert.make(task, TREEBANK, ref, tmp_path)['findings']
    assert found.level == 'fatal' and words in str(found) and '\n' not in str(found)


# ---- BIDS ----

CHANNELS = ['F01', 'F02', 'F03', 'A1', 'A2', 'EKG+']


def film(root: Path, subject: str, acq: str = 'clinical', mm: bool = True) -> Path:
    """A recording in BrainVision with its sidecars, as the host has them."""
    folder = root / f'sub-{subject}' / 'ses-iemu' / 'ieeg'
    folder.mkdir(parents=True, exist_ok=True)
    stem = f'sub-{subject}_ses-iemu_task-film_acq-{acq}_run-1'
    x = np.random.default_rng(int(subject)).normal(0, 40e-6, (len(CHANNELS), 512 * 100))
    raw = mne.io.RawArray(x, mne.create_info(CHANNELS, 512.0, 'eeg'), verbose='ERROR')
    mne.export.export_raw(folder / f'{stem}_ieeg.vhdr', raw, overwrite=True, verbose='ERROR')
    kinds = ['ECOG'] * 3 + ['SEEG'] * 2 + ['ECG']
    status = ['good', 'good', 'bad', 'good', 'good', 'good']
    rows = [f'{n}\t{k}\tµV\t{s}' for n, k, s in zip(CHANNELS, kinds, status, strict=True)]
    (folder / f'{stem}_channels.tsv').write_text('\n'.join(['name\ttype\tunits\tstatus', *rows]))
    (folder / f'{stem}_ieeg.json').write_text(
        json.dumps({'TaskName': 'film', 'SamplingFrequency': 512, 'PowerLineFrequency': 50, 'iEEGReference': 'n/a'})
    )
    unit = 'mm' if mm else 'm'
    electrodes = f'sub-{subject}_ses-iemu_acq-{acq}'
    places = [f'{n}\t{-40 - k}\t{k}.5\t30\t0' for k, n in enumerate(CHANNELS[:5])]
    (folder / f'{electrodes}_electrodes.tsv').write_text('\n'.join(['name\tx\ty\tz\tsize', *places]))
    (folder / f'{electrodes}_coordsystem.json').write_text(
        json.dumps({'iEEGCoordinateSystem': 'ACPC', 'iEEGCoordinateUnits': unit})
    )
    blocks = [f'{5 + 7 * k}\t7\t{("music", "speech")[k % 2]}\t{2 - k % 2}' for k in range(13)]
    (folder / f'sub-{subject}_ses-iemu_task-film_run-1_events.tsv').write_text(
        '\n'.join(['onset\tduration\ttrial_type\tvalue', '5\t0\tstart task\t9', *blocks, '96\t4\tend task\t4'])
    )
    return folder


@pytest.fixture
def films(tmp_path: Path) -> Path:
    root = tmp_path / FILM.name
    film(root, '02')
    film(root, '01')
    film(root, '01', 'HDgrid')
    (root / 'participants.tsv').write_text('participant_id\tage\nsub-01\t55\nsub-02\t9\n')
    return tmp_path


def test_a_film_has_its_contacts_their_places_and_its_blocks(films: Path) -> None:
    refs = find_recordings(FILM, films)
    assert [(r.subject, r.session, r.run) for r in refs] == [
        ('01', 'iemu', 'film_clinical_1'),
        ('02', 'iemu', 'film_clinical_1'),
    ]
    got = film_ieeg.read(refs[0])
    assert isinstance(got, Recording) and check_recording.check(got, FILM, 'x') == []
    kinds = dict(zip(got.raw.ch_names, got.raw.get_channel_types(), strict=True))
    assert [kinds[c] for c in CHANNELS] == ['ecog'] * 3 + ['seeg'] * 2 + ['ecg'] and got.raw.info['bads'] == ['F03']
    loc = {c['ch_name']: c['loc'][:3] for c in got.raw.info['chs']}
    np.testing.assert_allclose(loc['F02'], [-0.041, 0.0015, 0.03], atol=1e-9)
    assert got.events['label'].tolist() == (['music', 'speech'] * 7)[:13]
    assert got.events['block'].tolist() == [str(k) for k in range(13)]
    assert got.events['onset'].tolist() == [5.0 + 7 * k for k in range(13)] and set(got.events['type']) == {'Block'}


def test_places_in_another_unit_stop_the_preparation(films: Path) -> None:
    film(films / FILM.name, '01', mm=False)
    got = film_ieeg.read(find_recordings(FILM, films)[0])
    assert isinstance(got, Recording)
    found = [f for f in check_recording.check(got, FILM, 'x') if f.level == 'fatal']
    assert [f.rule for f in found] == ['contacts must lie in the head'] and 'farther than 0.3 m' in found[0].found


# ---- the stand-in ----


def test_each_person_has_contacts_of_his_own() -> None:
    """Different numbers of them, called by person in a set; other devices keep their names."""
    dataset = simulated_ieeg.DATASETS[0]
    refs = [r for r in simulated_ieeg.recordings(dataset, Path()) if r.session == '0'][1:3]
    raws = [simulated_ieeg.read(r).raw for r in refs]
    assert [len(r.ch_names) for r in raws] == [24, 16] and raws[1].ch_names == raws[0].ch_names[:16]
    names = [set_names(raw.ch_names, ref.subject, dataset) for raw, ref in zip(raws, refs, strict=True)]
    assert names[0][0] == 'S02/A1' and not set(names[0]) & set(names[1])
    assert set_names(['Cz'], 'S02', select.find_dataset('SimulatedP3')) == ('Cz',)
    assert set(regions_of(raws[1]).values()) == {'superiortemporal', 'middletemporal'}
