"""The order of models, the same in every table, figure and export: by mean rank over tasks, the best first; models with
scores on fewer than half of the datasets stand last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from jbench.report import alike, ranks
from jbench.report.aggregate import Score

UNKNOWN = Score._make(repeat(None, len(Score._fields)))


def of_scores(scores: Sequence[Score]) -> list[str]:
    """Models of scores of one protocol each, by their ranks among our own, else among published ones.

    Args:
        scores: of `ranks.one_protocol`, of any origin.
    """
    places: dict[str, tuple[bool, float, str]] = {}
    for origin in sorted({s.origin for s in scores}, reverse=True):  # 'own' last, which counts
        mine = [s for s in scores if s.origin == origin]
        few = alike.few(mine)
        for line in ranks.standings(mine, full=True):
            rank = math.inf if line.mean_rank is None else line.mean_rank
            places[line.model] = (line.model in few, rank, line.model)
    return sorted(places, key=lambda model: places[model])


def of_rows(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Models of rows of `table.rows`; of one that ran under several keys the first counts, and what has no mean is as
    not run."""
    scores: dict[tuple[str, str, str], Score] = {}
    names: dict[str, None] = {}
    for row in rows:
        names.setdefault(row['model'])
        task = f'{row["task"]}@{row["task_version"]}'
        plain = {k: row[k] for k in ('dataset', 'model', 'mean', 'better')}
        if row['mean'] is not None:
            one = UNKNOWN._replace(origin='own', task=task, protocol='', **plain)
            scores.setdefault((task, row['dataset'], row['model']), one)
    found = of_scores(list(scores.values()))
    return [*found, *(name for name in names if name not in found)]
