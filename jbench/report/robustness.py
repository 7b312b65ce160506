"""Scores of trained networks while channels of the test windows fail: one fit, tested at several shares.

The same channels fail as with `recipe.mask_channels`, so that a point is what a run with that field scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.report.figures.style import Table
from jbench.results.predictions import arrange
from jbench.targets import score
from jbench.trained import TrainedModel


def curve(model: TrainedModel, shares: Sequence[float]) -> Table:
    """A row for each share of channels that fail: `share, score` and the ends `low, high` of the interval over test
    subjects, as result files have them, and what they are of.

    Raises: RequestError as `TrainedModel.masked`.
    """
    task, result = model.cell.task, model.result
    rows = []
    for share in shares:
        found = arrange(model.masked(share))
        first = score.score(task.target.kind, task.metric, found, result['dummy'], task.level)['headline']
        low, high = first['interval'] or (None, None)
        about = {k: result[k] for k in ('task', 'task_version', 'dataset', 'simulated', 'model', 'key', 'seed')}
        scores = {'share': share, 'metric': task.metric, 'score': first['value'], 'low': low, 'high': high}
        rows.append({**about, **scores, 'n_subjects': first['n_subjects'], 'chance': result['chance']})
    return rows


def means(rows: Sequence[dict[str, Any]]) -> Table:
    """One row for each cell and share: scores and ends averaged over seeds; None where a seed has none."""
    groups: dict[tuple[Any, ...], Table] = {}
    for row in rows:
        groups.setdefault((row['model'], row['key'], row['share']), []).append(row)
    out = []
    for some in groups.values():
        averaged = {k: _mean([row[k] for row in some]) for k in ('score', 'low', 'high')}
        out.append({k: v for k, v in some[0].items() if k != 'seed'} | averaged | {'seeds': len(some)})
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if len(there) == len(values) else None
