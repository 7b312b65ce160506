"""The split that a message names is one that works: the test takes its words."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import tiny
from test_split_windows import PARTS, prepare, task

from jbench.data.load import prepared_set
from jbench.data.recording import RecordingRef
from jbench.plan import cells
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByBlock, ByGroup, Classes, Exclusion, Predefined, SplitSpec, Task, Where


@pytest.fixture(scope='module')
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One person, one recording, six windows."""
    return made(tmp_path_factory.mktemp('one'), tiny.ref(0))


@pytest.fixture(scope='module')
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release at hand: five people, all in R1, of whom the published split tests none."""
    fields = (('seconds', '20'), ('release', 'R1'), ('site', 'here'))
    return made(tmp_path_factory.mktemp('release'), *(tiny.ref(k)._replace(fields=fields) for k in range(5)))


def made(folder: Path, *refs: RecordingRef) -> Path:
    return prepare(folder, task(ByGroup()), [*refs])


def named(folder: Path, asked: Task) -> tuple[str, prepared_set.PreparedSet]:
    """The changes that a message names, and the set under them."""
    with pytest.raises(SplitError) as caught:
        prepared_set.open_set(folder, asked)
    changes = re.findall(r'--set (split\.\S*)', str(caught.value).partition('can be split with ')[2])
    changed = cells.apply(asked, tiny.DATASET, cells.parse_overrides(changes))
    return ' '.join(changes), prepared_set.open_set(folder, changed)


@pytest.mark.parametrize(
    ('split', 'changes'),
    [
        (ByGroup(), 'split.by=onset'),
        (ByGroup(stratify='code'), 'split.by=onset split.stratify=none'),
        (Predefined(field='session', test=('1',)), r'split.field=onset split.test=[\d.,]+ split.valid_by=onset'),
        (Predefined(field='onset', test=('1.0013',)), 'split.valid_by=_index'),
    ],
)
def test_one_recording_can_be_split_as_the_message_says(one: Path, split: SplitSpec, changes: str) -> None:
    found, data = named(one, task(split))
    assert re.fullmatch(changes, found) and {*data.split} == {*PARTS}


@pytest.mark.parametrize(
    ('split', 'changes'),
    [
        (ByGroup(by='release'), 'split.by=subject'),
        (Predefined(field='release', test=('R5',), valid_by='release'), r'split.field=subject .*valid_by=subject'),
        (Predefined(field='release', test=('R1',), valid_by='release'), r'split.field=subject .*valid_by=subject'),
    ],
)
def test_one_release_can_be_split_as_the_message_says(release: Path, split: SplitSpec, changes: str) -> None:
    found, data = named(release, task(split))
    assert re.fullmatch(changes, found)
    assert not {*data.subjects[data.split == 'test']} & {*data.subjects[data.split != 'test']}


@pytest.mark.slow
def test_what_leaves_one_class_to_learn_is_not_named(tmp_path: Path) -> None:
    """Three runs, each of one class: by run, the one that trains would teach nothing."""
    fields = [(('seconds', '20'), ('state', f's{k}')) for k in range(3)]
    refs = [tiny.ref(0, f'times{k + 1}')._replace(fields=fields[k]) for k in range(3)]
    asked = task(ByGroup(), target=Classes(field='state'))
    folder = prepare(tmp_path, asked, refs)
    assert named(folder, asked)[0] == 'split.by=onset'


@pytest.mark.slow
def test_what_is_dropped_counts(tmp_path: Path) -> None:
    """A split by session, of which one is dropped, leaves two."""
    refs = [tiny.ref(0, f'times{k + 1}')._replace(session=str(k)) for k in range(3)]
    asked = task(ByGroup())
    folder = prepare(tmp_path, asked, refs)
    assert named(folder, asked)[0] == 'split.by=session'
    asked = dataclasses.replace(asked, drop=(Where(field='session', values=('2',)),))
    found, data = named(folder, asked)
    assert found == 'split.by=onset' and {*PARTS} <= {*data.split}


def test_where_nothing_helps_that_is_said(one: Path) -> None:
    for split in (ByGroup(), ByBlock(n=3, gap=9.0)):
        asked = task(split, drop=(Where(field='code', values=('1', '2')),))
        with pytest.raises(RequestError, match='none that --set can name suits what is here'):
            prepared_set.open_set(one, asked)


def test_all_windows_can_be_seen_before_a_split_is_drawn(one: Path) -> None:
    left_out = dataclasses.replace(task(ByGroup()), exclude=(Exclusion(dataset='Tiny', subject='00', reason='x'),))
    data = prepared_set.open_set(one, left_out, divided=False)
    assert {*data.split} == {''} and len(data.rows('')) == len(data.y) == 6
