"""The reader of datasets that MOABB serves: small files in the layout of several of them, true onsets, no network."""

from __future__ import annotations

import os
import socket
from importlib.util import find_spec
from pathlib import Path

import mne
import numpy as np
import pytest
from moabb_files import EEG, nakanishi, noise
from scipy.io import savemat

from jbench.data.discover import find_recordings
from jbench.data.formats import moabb_events
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording
from jbench.data.sources import moabb
from jbench.plan import select
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError, RequestError

needs_moabb = pytest.mark.skipif(
    find_spec('moabb') is None, reason="moabb is not installed: pip install 'jbench[moabb]'"
)
pytestmark = pytest.mark.filterwarnings('ignore')


def barachant(root: Path) -> dict[float, int]:
    """A FIF file that starts late, with a stimulus channel."""
    names = [f'E{k}' for k in range(16)]
    info = mne.create_info([*names, 'STI 014'], 512.0, ['eeg'] * 16 + ['stim'])
    x = np.concatenate([noise(16, 40 * 512) * EEG, np.zeros((1, 40 * 512))])
    at = {10 * 512 + 7: 2, 20 * 512: 3, 30 * 512 + 100: 4}
    for sample, code in at.items():
        x[16, sample : sample + 3] = code
    path = root / 'MNE-alexeeg-data' / 'zenodo' / '806023' / 'subject1.raw.fif'
    path.parent.mkdir(parents=True)
    mne.io.RawArray(x, info).crop(5.0).save(path)
    return {sample / 512 - 5: code for sample, code in at.items()}


def leeb(root: Path) -> dict[float, int]:
    """Two MATLAB files of runs, in the form of BNCI Horizon 2020."""
    trial, y = np.array([1001, 3001, 5001]), np.array([1, 2, 1])
    run = {'X': noise(10_000, 6) * EEG * 1e6, 'fs': 250, 'trial': trial, 'y': y, 'classes': ['left_hand', 'right_hand']}
    folder = root / 'MNE-bnci-data' / '~bci' / 'database' / '004-2014'
    folder.mkdir(parents=True)
    for letter in 'TE':
        runs = np.empty(1, object)
        runs[0] = {**run, 'artifacts': np.zeros(3), 'gender': 'male', 'age': 24}
        savemat(folder / f'B01{letter}.mat', {'data': runs})
    return {(t - 1) / 250: c for t, c in zip(trial.tolist(), y.tolist(), strict=True)}


def reichert(root: Path) -> dict[float, int]:
    """Two trials of displays, the first of who means yes (attends green), the second of who means no."""
    stim = np.zeros((2, 1000, 2))  # green on the left, green on the right
    stim[0, 100:110] = stim[1, 400:410] = 1
    experiment = {
        'data': noise(30, 1000, 2) * EEG * 1e6,
        'srate': 250.0,
        'label': [f'E{k}' for k in range(30)],
        'heog': np.zeros((1000, 2)),
        'veog': np.zeros((1000, 2)),
        'stim': stim,
        'intention': np.array(['yes', 'no'], object),
    }
    path = root / 'MNE-bnci-data' / 'database' / 'data-sets' / '002-2020' / 'P01.mat'
    path.parent.mkdir(parents=True)
    savemat(path, {'bciexp': experiment, 'subject': {'age': 30, 'sex': 'female'}})
    return {0.4: 1, 1.6: 2, 4.4: 2, 5.6: 1}


TREES = {
    'Barachant2012Robust': (barachant, [('0', '0')]),
    'Nakanishi2015Comparison': (nakanishi, [('0', '0')]),
    'Leeb2007Brain': (leeb, [('0train', '0'), ('1test', '0')]),
    'Reichert2020Impact': (reichert, [('0', '0')]),
}


def dataset_of(name: str) -> Dataset:
    return select.datasets()[name]


@pytest.fixture(scope='module', params=TREES)
def tree(request, tmp_path_factory) -> tuple[Dataset, Path, dict[float, int]]:
    """A dataset, the folder that holds its first subject and the list, and its events by onset."""
    data = tmp_path_factory.mktemp('data')
    root = data / request.param
    dataset, events = dataset_of(request.param), TREES[request.param][0](root)
    if find_spec('moabb') is not None:
        assert len(moabb.write_list(dataset, root)) == dataset.n_subjects - 1
    return dataset, data, events


@needs_moabb
def test_recordings_are_listed_and_read_with_true_onsets(tree) -> None:
    dataset, data, events = tree
    refs = find_recordings(dataset, data)
    assert [(r.subject, r.session, r.run) for r in refs] == [('1', *run) for run in TREES[dataset.name][1]]
    for ref in refs:
        got = moabb.read(ref)
        assert isinstance(got, Recording), got
        assert dict(zip(got.events['onset'].round(9), got.events['code'], strict=True)) == {
            round(t, 9): code for t, code in events.items()
        }
        assert [dict(dataset.event_id)[label] for label in got.events['label']] == list(got.events['code'])
        assert set(got.events['type']) == {'Stimulus'} and len(got.raw.copy().pick('eeg').ch_names) == dataset.n_chans
        assert got.raw.info['sfreq'] in dataset.sfreq and 0.5 * EEG < got.raw.get_data('eeg').std() < 2 * EEG
        assert check_recording.check(got, dataset, 'x') == []


@needs_moabb
def test_onsets_are_those_of_the_pipeline_before_it_moves_them(tree, monkeypatch) -> None:
    """MOABB moves events by int(interval[0] * sfreq) samples; the interval is read from its own object."""
    dataset, data, _ = tree
    if dataset.name in moabb_events.OWN:
        pytest.skip('MOABB gives other events')
    monkeypatch.setenv('MOABB_DOWNLOAD_PROVIDER', 'upstream')  # its pipeline looks for a mirror first, for long
    ref = find_recordings(dataset, data)[0]
    with moabb._offline(data / dataset.name, []):
        source = moabb._source(dataset)
        moved = source.get_data([1])[1][ref.session][ref.run]
    marks, _ = mne.events_from_annotations(moved, dict(dataset.event_id))
    shift = int(source.interval[0] * moved.info['sfreq'])
    published = {'Barachant2012Robust': 0, 'Nakanishi2015Comparison': 38, 'Leeb2007Brain': 750}
    assert shift == published[dataset.name]
    got = moabb.read(ref)
    assert isinstance(got, Recording)
    np.testing.assert_array_equal(
        np.round(got.events['onset'] * moved.info['sfreq']), marks[:, 0] - moved.first_samp - shift
    )


@needs_moabb
def test_what_is_not_there_is_not_fetched(tree, monkeypatch) -> None:
    dataset, data, _ = tree
    monkeypatch.delenv('MNE_DATA', raising=False)
    monkeypatch.setenv('MNE_DATASETS_BNCI_PATH', str(data))
    before = dict(os.environ), socket.getaddrinfo, socket.socket.connect
    ref = find_recordings(dataset, data)[0]._replace(subject='2')
    got = moabb.read(ref)
    assert isinstance(got, Finding) and 'subject 2' in got.rule and 'asks' in got.found
    assert (dict(os.environ), socket.getaddrinfo, socket.socket.connect) == before


@needs_moabb
def test_a_run_that_the_list_invents_is_refused(tree) -> None:
    dataset, data, _ = tree
    got = moabb.read(find_recordings(dataset, data)[0]._replace(run='7'))
    assert isinstance(got, Finding) and 'remove recordings.csv' in got.remedy


@needs_moabb
def test_settings_of_the_user_do_not_lead_elsewhere(tree, tmp_path, monkeypatch) -> None:
    dataset, data, _ = tree
    for name in ('MNE_DATA', 'MNE_DATASETS_BNCI_PATH', 'MNE_DATASETS_ALEXEEG_PATH', 'MNE_DATASETS_NAKANISHI_PATH'):
        monkeypatch.setenv(name, str(tmp_path))
    moabb._runs.cache_clear()
    assert isinstance(moabb.read(find_recordings(dataset, data)[0]), Recording)
    assert not list(tmp_path.iterdir())


@needs_moabb
def test_the_command_writes_the_list(tmp_path, capsys) -> None:
    barachant(tmp_path / 'Barachant2012Robust')
    assert moabb.main(['alexmi', str(tmp_path)]) == 0
    assert 'subject 2: not there (MOABB asks zenodo.org for it)' in capsys.readouterr().err
    assert (tmp_path / 'Barachant2012Robust' / 'recordings.csv').read_text() == 'subject,session,run\n1,0,0\n'
    (tmp_path / 'Zhou2016Fully').mkdir()
    assert moabb.main(['Zhou2016', str(tmp_path)]) == 2
    assert 'no subject of Zhou2016Fully could be read' in capsys.readouterr().err
    assert not (tmp_path / 'Zhou2016Fully' / 'recordings.csv').exists()


@needs_moabb
def test_the_class_of_every_dataset_is_there_and_has_its_subjects_and_labels(tmp_path) -> None:
    """One of the 16 subjects of MartinezCagigal2024Dataset is not among the published 15; some have own events."""
    own = {*moabb_events.CYCLES, *moabb_events.OWN, 'MartinezCagigal2024Dataset'} - {'Reichert2020Impact'}
    more, found = {'MartinezCagigal2024Dataset': 16}, {}
    with moabb._offline(tmp_path, []):
        for dataset in moabb.DATASETS:
            source = moabb._source(dataset)
            found[dataset.name] = (
                len(source.subject_list) == more.get(dataset.name, dataset.n_subjects),
                dataset.name in own or set(source.event_id) == set(dict(dataset.event_id)),
                source.interval[0] < source.interval[1],
            )
    assert len(found) == 70 and {name: ok for name, ok in found.items() if not all(ok)} == {}


def test_what_is_wrong_with_the_list_or_the_request_is_said(tmp_path, capsys, monkeypatch) -> None:
    dataset = dataset_of('Barachant2012Robust')
    root = tmp_path / dataset.name
    root.mkdir()
    assert find_recordings(dataset, tmp_path) == []
    (root / 'recordings.csv').write_text('subject,session\n1,0\n')
    with pytest.raises(RequestError, match='each line needs subject, session, run'):
        find_recordings(dataset, tmp_path)
    assert moabb.main(['AlexMI']) == 2 and moabb.main(['AlexMy', 'x']) == 2
    assert "did you mean 'AlexMI'" not in (said := capsys.readouterr().err) and 'unknown dataset of MOABB' in said
    assert moabb.main(['AlexMI', str(tmp_path / 'absent')]) == 2 and 'no such folder' in capsys.readouterr().err
    (root / 'recordings.csv').write_text('subject,session,run\n1,0,0\n')
    monkeypatch.setattr(moabb, 'find_spec', lambda name: None)
    with pytest.raises(MissingExtraError, match=r'\[moabb\]'):
        moabb.read(find_recordings(dataset, tmp_path)[0])


def test_code_modulated_trials_make_an_event_of_every_whole_cycle() -> None:
    x = np.zeros((2, 60 * 100))
    for sample, symbol in ((500, 3), (1500, 0), (5800, 7)):
        x[1, sample] = 200 + symbol
    raw = mne.io.RawArray(x, mne.create_info(['Oz', 'stim_trial'], 100.0, ['eeg', 'stim']))
    onset, code, duration = moabb_events._cycles(raw, 2.1, 4)
    assert duration == 2.1 and list(code) == [3] * 4 + [0] * 4  # the last trial is cut off before a cycle ends
    np.testing.assert_allclose(onset, [5, 7.1, 9.2, 11.3, 15, 17.1, 19.2, 21.3])
    onset, code, _ = moabb_events._cycles(raw, 2.1, 1)
    assert list(onset) == [5, 15, 58] and list(code) == [3, 0, 7]  # the trial as a whole


def test_flights_last_from_their_trigger_to_the_end_of_the_last_one() -> None:
    class Content:
        trigger = np.array([0, 1, 1, 0, 16, 255, 255, 0, 0, 1, 0, 255, 0])
        subjective_report = np.array([[0, 0, 2], [0, 0, 0]])

    onset, code, duration = moabb_events._flights({'data': Content}, 2.0)
    assert (list(onset), list(code), list(duration)) == ([0.5, 4.5], [2, 0], [3.0, 1.5])
    Content.subjective_report = np.zeros((3, 3))
    with pytest.raises(RequestError, match='2 flights begin and 2 end, but 3 are judged'):
        moabb_events._flights({'data': Content}, 2.0)
