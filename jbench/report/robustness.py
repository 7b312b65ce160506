"""Scores of trained networks by the share of channels that fail in the test, averaged over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jbench.report.figures.style import Table


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


def keys(table: Table) -> dict[tuple[str, str], str]:
    """What stands behind the name of a model, by it and its key: the beginning of the key, if the model has several."""
    there = list(dict.fromkeys((row['model'], row['key']) for row in table))
    models = [model for model, _ in there]
    return {(model, key): f' {key[:6]}' * (models.count(model) > 1) for model, key in there}


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return float(np.mean(there)) if len(there) == len(values) else None
