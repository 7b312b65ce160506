"""Splits that learn each person by himself: whose channels are there, and what of the fold that tests validates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from jbench.data.load import prepared_set
from jbench.data.load.shards import of_unit
from jbench.data.load.splits import assign
from jbench.data.prepare import build_set, contacts
from jbench.plan import cells, select
from jbench.spec.errors import SplitError
from jbench.spec.overrides import override
from jbench.spec.task import ByGroup, Task
from jbench.tasks.ieeg import CROSS_SESSION, CROSS_SUBJECT, WITHIN_SESSION


def table() -> dict[str, np.ndarray]:
    """Two people, two sessions, eight windows each in the order of their quarters, and a row that is no window."""
    rows = [(who, session, q) for who in 'ab' for session in '12' for q in (*'11223344', '')]
    who, session, quarter = (np.array(column) for column in zip(*rows, strict=True))
    half = np.where(quarter == '', '', np.where(np.isin(quarter, ['1', '2']), '1', '2'))
    return {
        'onset': np.tile(np.arange(9.0), 4),
        'subject': who,
        'session': session,
        'recording': np.repeat(np.arange(4), 9),
        'quarter': quarter,
        'half': half,
    }


def parts(split: ByGroup, fold: str) -> dict[str, list[str]]:
    """Person, session and quarter of the windows of each part."""
    events = table()
    found = assign(events, override(override(split, 'folds', ''), 'fold', fold))
    names = [''.join(row) for row in zip(events['subject'], events['session'], events['quarter'], strict=True)]
    windows = events['quarter'] != ''
    return {
        p: sorted({n for n, q, w in zip(names, found, windows, strict=True) if q == p and w})
        for p in sorted(set(found))
    }


def test_across_sessions_the_first_half_of_the_tested_one_validates() -> None:
    found = parts(CROSS_SESSION, '2:1/2')
    assert found['train'] == ['b21', 'b22', 'b23', 'b24']
    assert (found['valid'], found['test']) == (['b11', 'b12'], ['b13', 'b14'])
    assert [n[0] for n in found['']].count('a') == len(found[''])


def test_within_a_session_a_quarter_validates_and_a_quarter_tests() -> None:
    found = parts(WITHIN_SESSION, '3:2/2')
    assert (found['train'], found['valid'], found['test']) == (['b11', 'b12'], ['b13'], ['b14'])


def test_a_fold_of_one_value_cannot_validate() -> None:
    events = table() | {'quarter': np.full(36, '1')}
    with pytest.raises(SplitError, match="'quarter' needs two values in a fold, there is '1'"):
        assign(events, override(override(CROSS_SESSION, 'folds', ''), 'fold', '1:1/2'))


def test_channels_of_others_are_left_out() -> None:
    manifest = {
        'ch_names': ['a/1', 'a/2', 'b/1'],
        'recordings': [{'ch_names': ['a/1', 'a/2']}, {'ch_names': ['b/1']}, {'ch_names': ['a/1']}],
    }
    number, part = np.array([0, 0, 1, 2]), np.array(['train', 'test', '', 'valid'])
    found = of_unit(manifest, CROSS_SESSION, number, part)
    assert found['ch_names'] == ['a/1', 'a/2']
    assert [r['ch_names'] for r in found['recordings']] == [['a/1', 'a/2'], [], ['a/1']]
    assert of_unit(manifest, ByGroup(), number, part) is manifest
    alike = {'ch_names': ['x'], 'recordings': [{'ch_names': None}] * 3}
    assert of_unit(alike, CROSS_SESSION, number, part) is alike


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Task]:
    """Three people of the simulated film, prepared."""
    dataset = select.find_dataset('SimulatedIeegFilm')
    task = cells.apply(select.tasks()['ieeg/onset'][-1], dataset, ())
    workdir = tmp_path_factory.mktemp('work')
    folder, refs = build_set.locate(task, dataset, None, workdir)
    assert folder is not None
    build_set.prepare(task, dataset, folder, refs[:6], lambda *_: None)
    return folder, task


@pytest.mark.slow
def test_a_person_is_as_wide_as_his_recordings(folder: tuple[Path, Task]) -> None:
    """Two with 24 contacts and one with 16; all windows of a fold are of one of them, and nothing else is read."""
    path, task = folder
    for unit, n_chans in ((1, 24), (3, 16)):
        data = prepared_set.open_set(path, override(override(task, 'split.folds', ''), 'split.fold', f'{unit}:1/2'))
        assert data.signal.n_chans == n_chans and {n.partition('/')[0] for n in data.signal.ch_names} == {f'S0{unit}'}
        assert set(data.subjects[data.split != '']) == {f'S0{unit}'}
        for part in ('train', 'valid', 'test'):
            x = prepared_set.read(data, data.rows(part), None)
            assert (x.std((0, 2)) > 0.1).all() and np.isfinite(x).all()
        other = prepared_set.read(data, np.flatnonzero(data.split == '')[:2], None)
        assert not other.any()
    whole = prepared_set.open_set(path, override(task, 'split', ByGroup()), divided=False)
    assert whole.signal.n_chans == 24 + 24 + 16
    (said,) = [w for w in whole.warnings if w.startswith('channels')]
    assert said.startswith('channels: 64, each person beside the others; a recording has at most 24, and zeros')


def test_people_share_regions() -> None:
    """Then what is said of a set is what is said of any other one."""
    dataset = select.find_dataset('SimulatedIeegFilm')
    assert contacts.united([('insula', 'temporal'), ('temporal',)], dataset) is None
    assert contacts.united([('S01/A1',), ('S01/A1',)], dataset) == []
    assert contacts.united([('Cz',), ('Pz',)], select.find_dataset('SimulatedP3')) is None


@pytest.mark.slow
def test_the_published_split_across_people_is_given(folder: tuple[Path, Task]) -> None:
    path, task = folder
    data = prepared_set.open_set(path, override(task, 'split', CROSS_SUBJECT))
    assert set(data.subjects[data.split == 'train']) == {'S02'}
    assert set(data.subjects[data.split == 'test']) == set(data.subjects[data.split == 'valid']) == {'S01', 'S03'}
