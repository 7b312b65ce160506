"""Channels that are marked bad: told, and kept, dropped or interpolated as MNE does it."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest
import small_files as files
from places import ROOT
from small_files import tsv

from jbench.data.discover import find_recordings
from jbench.data.electrodes import montage
from jbench.data.prepare import bad_channels, build_set, check_recording, convert
from jbench.data.prepare.signal import process
from jbench.plan import cells, select
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec, Task

NAMES = ['Fp1', 'Fp2', 'Cz', 'C3', 'C4', 'O1', 'O2']
PLAIN = {'sfreq': 100.0, 'band': None, 'notch': (), 'scaler': 'none'}


def example(how: str) -> tuple[Task, Dataset]:
    ((task, dataset),) = select.select_tasks(str(ROOT / 'configs' / 'local_folder.py'))
    assert dataset is not None
    return cells.apply(task, dataset, (('signal.bads', how),)), dataset


def made(names: list[str] = NAMES, bads: tuple[str, ...] = ('Cz',)) -> mne.io.RawArray:
    x = np.random.default_rng(0).normal(0, 2e-5, (len(names), 1000))
    raw = mne.io.RawArray(x, mne.create_info(names, 100, 'eeg', verbose='ERROR'), verbose='ERROR')
    raw.info['bads'] = list(bads)
    return raw


def test_interpolation_is_that_of_mne():
    got, names = process(made(), SignalSpec(**PLAIN, bads='interpolate'))
    raw = made().set_montage(montage(), verbose='ERROR')
    expected = raw.interpolate_bads(verbose='ERROR').get_data()
    assert list(names) == NAMES
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-12)
    kept, _ = process(made(), SignalSpec(**PLAIN))
    np.testing.assert_array_equal(kept[[0, 1, 3]], got[[0, 1, 3]])
    assert np.abs(kept[2] - got[2]).max() > 1e-6


def test_dropped_channels_are_none_of_the_signal():
    for picks in (('eeg',), ('C3', 'Cz', 'O1')):
        _, names = process(made(), SignalSpec(**PLAIN, bads='drop', picks=picks))
        assert 'Cz' not in names and 'O1' in names


@pytest.mark.parametrize(
    ('how', 'names', 'bads', 'said'),
    [
        ('interpolate', [*NAMES, 'E99'], ('Cz',), 'no position of E99'),
        ('drop', NAMES, tuple(NAMES), 'every channel is marked bad'),
    ],
)
def test_what_cannot_be_done_is_refused(how, names, bads, said):
    with pytest.raises(RequestError, match=said):
        process(made(names, bads), SignalSpec(**PLAIN, bads=how))


def test_voxels_and_muscles_are_not_interpolated():
    raw = made(NAMES, ('Cz',)).set_channel_types(dict.fromkeys(NAMES, 'emg'), verbose='ERROR')
    with pytest.raises(RequestError, match='no electrodes on a head'):
        bad_channels.treat(raw, 'interpolate')


def tree(home: Path) -> Path:
    """Two people in BIDS, one of whom has a bad channel by channels.tsv."""
    for k in (1, 2):
        signal = home / 'MyRest2026' / f'sub-{k:02d}/eeg/sub-{k:02d}_task-rest_eeg.edf'
        files.edf(signal, NAMES, 100, 20)
        tsv(signal.with_name(f'sub-{k:02d}_task-rest_events.tsv'), 'onset duration trial_type\n1 8 open\n10 8 closed')
        rows = '\n'.join(f'{n} EEG µV {"bad" if (k, n) == (2, "Cz") else "good"}' for n in NAMES)
        tsv(signal.with_name(f'sub-{k:02d}_task-rest_channels.tsv'), f'name type units status\n{rows}')
    return home


@pytest.mark.parametrize(
    ('how', 'told', 'more'),
    [
        ('keep', 'kept (signal.bads=drop or interpolate changes that)', []),
        ('interpolate', 'interpolated', []),
        ('drop', 'dropped', ['channels: zeros for Cz in 1 of 2 recordings']),
    ],
)
def test_bad_channels_of_bids_are_told(tmp_path, how, told, more):
    task, dataset = example(how)
    refs = find_recordings(dataset, tree(tmp_path))
    parts = [convert.make(task, dataset, ref, tmp_path) for ref in refs]
    _, notes = check_recording.judge(dataset, refs, parts)
    assert f'channels marked bad are {told}: sub-02_task-rest_eeg.edf: Cz' in notes
    assert all(any(note.startswith(start) for note in notes) for start in more)
    assert (len(parts[1]['ch_names']), len(parts[0]['ch_names'])) == (7 - (how == 'drop'), 7)


def test_the_default_names_no_other_set_and_no_other_cell():
    keep, dataset = example('keep')
    model = select.select_models('dummy')[0].spec
    ((plain, _),) = select.select_tasks(str(ROOT / 'configs' / 'local_folder.py'))
    spec = build_set.stored_spec(keep, dataset)
    assert (
        'bads' not in spec['signal'] and build_set.stored_spec(example('drop')[0], dataset)['signal']['bads'] == 'drop'
    )
    keys = [Cell(task=t, dataset=dataset, model=model).key for t in (plain, keep, example('drop')[0])]
    assert keys[0] == keys[1] != keys[2]
