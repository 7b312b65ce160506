"""Brier score, calibration error and AUROC beside the headline of every score, from the predictions that are there."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.report import calibrated
from jbench.report.aggregate import Score
from jbench.report.text import as_csv
from jbench.results import index
from jbench.results.index import Row
from jbench.spec.errors import RequestError

FILE = 'calibration.csv'
OF_SCORE = ('task', 'version', 'dataset', 'model', 'metric', 'mean')
VALUES = ('brier', 'ece', 'ece_mass', 'auroc')  # of `statistics.calibration.Calibration`
BESIDE = ('ece', 'brier', 'auroc')  # that tables of scores show


class Beside(NamedTuple):
    """What one result says beside its headline."""

    values: dict[str, float | None]  # VALUES
    without: str  # why there is no calibration; '' where there is


Found = Mapping[str, Beside]  # by path of the result


def of_rows(rows: Iterable[Row]) -> dict[str, Beside]:
    """The calibration of each result. Without predictions the AUROC of its windows is known, if the headline is of
    windows."""
    rows = list(rows)
    found = chain.from_iterable(index.in_shares([row.path for row in rows], _of_results))
    return {row.path: _of_row(row, said) for row, said in zip(rows, found, strict=True)}


def of_score(score: Score, found: Found) -> dict[str, float | None]:
    """VALUES of one of our scores, means over those of its seeds that have them; None where none has."""
    some = [found[path].values for path in score.paths if path in found]
    return {name: _mean(values[name] for values in some) for name in VALUES}


def lines(scores: Iterable[Score], found: Found) -> list[dict[str, Any]]:
    """Of each score with calibrated results: OF_SCORE, n_seeds, VALUES (means over these seeds), changes."""
    table = []
    for s in scores:
        there = [path for path in s.paths if path in found and not found[path].without]
        if there:
            words = {name: getattr(s, name) for name in OF_SCORE}
            means = of_score(s._replace(paths=tuple(there)), found)
            table.append({**words, 'n_seeds': len(there), **means, 'changes': '; '.join(s.changes)})
    return table


def write(scores: Iterable[Score], found: Found, folder: str | os.PathLike[str]) -> str:
    """Write calibration.csv. Returns: what is to be said of it, in one line. Raises: RequestError."""
    scores = list(scores)
    columns = [*OF_SCORE, 'n_seeds', *VALUES, 'changes']
    files.write_atomic(Path(folder, FILE), as_csv(lines(scores, found), columns).encode())
    asked = [found[path].without for s in scores for path in s.paths if path in found]
    without = Counter(why for why in asked if why)
    told = [f'{len(asked) - without.total()} of {len(asked)} results', *(f'{n} {why}' for why, n in without.items())]
    return f'{FILE}: {", ".join(told)}'


def _of_row(row: Row, found: dict[str, Any] | str) -> Beside:
    if not isinstance(found, str):
        return Beside({name: found[name] for name in VALUES}, '')
    values: dict[str, float | None] = dict.fromkeys(VALUES)
    if row.level == 'window':
        values['auroc'] = row.metrics.get('auroc')
    return Beside(values, found)


def _mean(values: Iterable[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return statistics.fmean(there) if there else None


def _of_results(paths: Sequence[str]) -> list[dict[str, Any] | str]:
    return [_of_result(path) for path in paths]


def _of_result(path: str) -> dict[str, Any] | str:
    """Calibration of a result, or why it has none."""
    if not Path(path).with_suffix('.npz').is_file():
        return 'without predictions beside them'
    try:
        found = calibrated.of_result(path)
    except (FileNotFoundError, RequestError, ValueError, KeyError):
        return 'damaged (jbench report verify says how)'
    return 'whose answers are not single classes' if found is None else found._asdict()
