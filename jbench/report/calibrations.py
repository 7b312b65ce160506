"""Brier score, calibration error and AUROC beside the headline of every score whose predictions are there."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.report import calibrated
from jbench.report.aggregate import Score
from jbench.report.text import as_csv
from jbench.spec.errors import RequestError

FILE = 'calibration.csv'
OF_SCORE = ('task', 'version', 'dataset', 'model', 'metric', 'mean')
VALUES = ('brier', 'ece', 'ece_mass', 'auroc')  # of `statistics.calibration.Calibration`


class Found(NamedTuple):
    """Calibration of scores."""

    lines: list[dict[str, Any]]  # OF_SCORE, n_seeds, VALUES (means over the seeds), changes
    n_results: int  # that were asked
    without: dict[str, int]  # why results have none: how many


def of_scores(scores: Iterable[Score]) -> Found:
    """Means over the seeds of the calibration of each of our scores."""
    lines: list[dict[str, Any]] = []
    without: Counter[str] = Counter()
    n_results = 0
    for s in scores:
        n_results += len(s.paths)
        there: list[dict[str, Any]] = []
        for path in s.paths:
            found = _of_result(path)
            if isinstance(found, str):
                without[found] += 1
            else:
                there.append(found)
        if there:
            values = {name: [one[name] for one in there if one[name] is not None] for name in VALUES}
            means = {name: statistics.fmean(some) if some else None for name, some in values.items()}
            words = {name: getattr(s, name) for name in OF_SCORE}
            lines.append({**words, 'n_seeds': len(there), **means, 'changes': '; '.join(s.changes)})
    return Found(lines, n_results, dict(without))


def write(scores: Iterable[Score], folder: str | os.PathLike[str]) -> str:
    """Write calibration.csv. Returns: what is to be said of it, in one line. Raises: RequestError."""
    found = of_scores(scores)
    columns = [*OF_SCORE, 'n_seeds', *VALUES, 'changes']
    files.write_atomic(Path(folder, FILE), as_csv(found.lines, columns).encode())
    n_with = found.n_results - sum(found.without.values())
    told = [f'{n_with} of {found.n_results} results', *(f'{n} {why}' for why, n in found.without.items())]
    return f'{FILE}: {", ".join(told)}'


def _of_result(path: str) -> dict[str, Any] | str:
    """Calibration of a result, or why it has none."""
    if not Path(path).with_suffix('.npz').is_file():
        return 'without predictions beside them'
    try:
        found = calibrated.of_result(path)
    except (FileNotFoundError, RequestError, ValueError, KeyError):
        return 'damaged (jbench report verify says how)'
    return 'whose answers are not single classes' if found is None else found._asdict()
