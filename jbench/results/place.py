"""Where a result lies: <workdir>/results/<task>@<version>/<dataset>/<model>/<key>/seed<k>.json.

Those of the folds of a cross-validation lie below the one that they make together: <key>/folds/<k>_of_<n>/seed<k>.json
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jbench import files
from jbench.spec.cell import Cell
from jbench.spec.identity import from_json
from jbench.spec.task import ByGroup
from jbench.stores import address, mirror

FOLDS = 'folds'


def is_fold(path: Path) -> bool:
    """Whether a result lies among the folds of another one."""
    return path.parent.parent.name == FOLDS


def cell_folder(path: Path) -> Path:
    """The folder `<key>` of a result; of a fold, that of the result that it is a part of."""
    return path.parent.parent.parent if is_fold(path) else path.parent


def work_folder(path: Path) -> Path | None:
    """The work folder that a result lies in; None where it lies elsewhere."""
    above = cell_folder(path.absolute()).parents
    return above[4] if len(above) > 4 and above[3].name == 'results' else None


def home(path: Path) -> Path:
    """The work folder that a result lies in, else the folder that it lies in."""
    return work_folder(path) or path.parent


def local(folder: str | os.PathLike[str]) -> str:
    """Where a folder of results lies on this machine: of a store its copy."""
    text = os.fspath(folder)
    return str(mirror.local(text, '--results')) if address.is_address(text) else text


def fold_folder(cell_folder: Path, name: str) -> Path:
    """Where the results of a fold lie, by its name as `split.fold` has it: '1/5'."""
    return cell_folder / FOLDS / name.replace('/', '_of_').replace(':', '_')


def folds(path: Path) -> list[Path]:
    """The results of the folds that lie below a result, of the same seed."""
    return sorted(path.parent.glob(f'{FOLDS}/*/{path.name}'), key=lambda p: (len(p.parent.name), p.parent.name))


def expected(path: Path, result: Mapping[str, Any]) -> str:
    """Where a result belongs, if that is not where it lies; '' for one in its place.

    Args:
        path: of the result.
        result: as read; of a key that follows from its config.
    """
    task = files.slug(f'{result["task"]}@{result["task_version"]}')
    above, name = Path(task, *(files.slug(result[k]) for k in ('dataset', 'model'))), f'seed{result["seed"]}.json'
    places = [above / result['key'] / name]
    fold = result['config']['task']['split'].get('fold', '')
    if is_fold(path) and fold:
        places = [fold_folder(above / key, fold) / name for key in _whole(result['config'], fold)]
    there = any(path.absolute().parts[-len(place.parts) :] == place.parts for place in places)
    return '' if there else f'.../{places[0]}'


def _whole(config: Mapping[str, Any], fold: str) -> list[str]:
    """Keys of the cells that a fold may be a part of: of so many folds, or of all."""
    cell = from_json(Cell, config, 'config')
    assert isinstance(cell.task.split, ByGroup)  # which alone has folds
    splits = [dataclasses.replace(cell.task.split, fold='', folds=n) for n in (fold.rpartition('/')[2], 'all')]
    return [dataclasses.replace(cell, task=dataclasses.replace(cell.task, split=split)).key for split in splits]
