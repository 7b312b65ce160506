"""Where a result lies, and of what work folder it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from jbench.results import place

CELL = Path('/w/results/p3@2/SimulatedP3/eegnet/0123')


@pytest.mark.parametrize('below', ['', 'folds/1_of_2', 'folds/7_2_of_2'])
def test_a_result_and_its_folds_are_of_one_work_folder(below: str) -> None:
    path = CELL / below / 'seed33.json'
    assert place.work_folder(path) == Path('/w') and place.cell_folder(path) == CELL
    assert place.is_fold(path) == bool(below)


def test_results_elsewhere_are_of_none() -> None:
    assert place.work_folder(Path('/seed33.json')) is place.work_folder(Path('/a/b/c/d/e/f/seed33.json')) is None


@pytest.mark.parametrize(('name', 'folder'), [('1/5', '1_of_5'), ('7:2/5', '7_2_of_5')])
def test_the_folder_of_a_fold(name: str, folder: str) -> None:
    assert place.fold_folder(CELL, name) == CELL / 'folds' / folder


def test_folds_are_in_their_order_and_of_the_same_seed(tmp_path: Path) -> None:
    names = [f'{k}_of_10' for k in range(1, 11)]
    for name in names:
        (tmp_path / 'folds' / name).mkdir(parents=True)
        (tmp_path / 'folds' / name / 'seed33.json').touch()
        (tmp_path / 'folds' / name / 'seed34.json').touch()
    found = place.folds(tmp_path / 'seed33.json')
    assert [p.parent.name for p in found] == names and {p.name for p in found} == {'seed33.json'}
