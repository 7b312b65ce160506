"""Two models on the folds of one cross-validation: fold by fold, from the results that lie beside the whole one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.report.aggregate import Score
from jbench.report.statistics import paired
from jbench.report.statistics.folds import Resampled, corrected_t
from jbench.results import checked
from jbench.spec.errors import RequestError


def by_folds(a: Score, b: Score) -> Resampled | None:
    """The corrected resampled t test of two models, positive where A is better; None where their folds do not lie
    beside their results, or are not of the same windows. A fold's score is its headline, averaged over the seeds."""
    ours, theirs = _folds(a.paths), _folds(b.paths)
    if not ours or ours.keys() != theirs.keys():
        return None
    both = [(ours[name], theirs[name]) for name in sorted(ours)]
    if any(len({r['split_hash'] for r in (*x, *y)}) > 1 for x, y in both):
        return None
    x, y = (np.array([_value(side[k]) for side in both]) for k in (0, 1))
    sizes = [np.mean([r['n_records'][part] for side, _ in both for r in side]) for part in ('train', 'test')]
    return corrected_t(paired.differences(x, y, a.better), float(sizes[0]), float(sizes[1])) if all(sizes) else None


def _folds(paths: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Results of the folds beside results of some seeds, by the name of the fold; {} where one is not whole."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in map(Path, paths):
        for fold in sorted(path.parent.glob(f'folds/*/{path.name}')):
            try:
                found.setdefault(fold.parent.name, []).append(checked.read(fold))
            except (FileNotFoundError, RequestError):
                return {}
    whole = all(len(seeds) == len(paths) for seeds in found.values())
    return found if whole and all(r['status'] != 'failed' for seeds in found.values() for r in seeds) else {}


def _value(seeds: Sequence[dict[str, Any]]) -> float:
    """The mean headline of the seeds of a fold; NaN where one is not defined."""
    return float(np.mean([np.nan if r['headline']['value'] is None else r['headline']['value'] for r in seeds]))
