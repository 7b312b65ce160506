"""What speaks against the folds of a cross-validation, of which a result was made that somebody hands in."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.results import place, pool, predictions, result_file
from jbench.spec.errors import RequestError
from jbench.spec.task import ByGroup, SplitSpec


def problems(path: Path, result: Mapping[str, Any]) -> list[str]:
    """One text a problem of a result with predictions, and the folds below it; none where it is not of folds, or those
    that lie there cannot be read, which they say themselves.

    Args:
        path: of the result that is of all folds.
        result: as read.
    """
    paths = place.folds(path)
    if not paths or result['predictions_sha256'] is None:
        return []
    asked = result['config']['task']['split'].get('folds', '')
    if not asked:
        return [f'{path}: folds lie below it, and it is none of them together (split.folds is not asked for)']
    n, names = len(paths), [p.parent.name for p in paths]
    if not _are_all(names, asked):
        return [f'{path}: its folds are {", ".join(names)}, expected all of {asked}']
    try:
        for fold in paths:
            result_file.read(fold)
        both = predictions.arrange(pool.joined([predictions.load_predictions(fold) for fold in paths]))
    except (FileNotFoundError, RequestError, KeyError, ValueError):
        return []
    ours = predictions.load_predictions(path)
    wrong = [k for k in ours if k not in both or not np.array_equal(ours[k], both[k])]
    return [f'{path}: {", ".join(wrong)}: its predictions are not those of its {n} folds together'] if wrong else []


def _are_all(names: Sequence[str], asked: str) -> bool:
    """Whether folders of folds, '1_of_2' or of a unit '7_1_of_2', are so many of each unit as asked for."""
    known = [re.fullmatch(r'(?:(.+)_)?([0-9]+)_of_([0-9]+)', name) for name in names]
    by_unit: dict[str | None, list[tuple[int, int]]] = {}
    for found in known:
        if found is None or asked not in (found[3], 'all'):
            return False
        by_unit.setdefault(found[1], []).append((int(found[2]), int(found[3])))
    return all(sorted(mine) == [(k + 1, mine[0][1]) for k in range(mine[0][1])] for mine in by_unit.values())


def one_of(whole: SplitSpec, given: SplitSpec) -> SplitSpec:
    """The split of a fold as its result has it, if it is one of those of the whole; else that of the whole."""
    if not isinstance(whole, ByGroup) or not isinstance(given, ByGroup) or not whole.folds:
        return whole
    fits = whole.folds in ('all', given.fold.rpartition('/')[2])
    return dataclasses.replace(whole, folds='', fold=given.fold) if given.fold and fits else whole
