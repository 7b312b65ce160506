"""The score that ranked in the EEG Challenge 2025, from the headlines of its two tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jbench.metrics.challenges import SHARES_2025, overall_2025
from jbench.report import marks
from jbench.report.text import printable

PARTS = ('challenge2025/response_time', 'challenge2025/externalizing')
METRIC = 'normalized_rmse'


def line(rows: Iterable[Mapping[str, Any]]) -> str:
    """The overall score of each model that has both headlines, once each, on one dataset or on simulations, by one
    protocol, with its marks; else ''.

    Args:
        rows: `task, dataset, simulated, model, metric, mean` (over seeds), and `changes`, how the protocol departs
            from that of the task.
    """
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, list[float]]] = {}
    for row in rows:
        if row['task'] in PARTS and row['metric'] == METRIC and row['mean'] is not None:
            where = 'simulated' if row['simulated'] else row['dataset']
            on = (row['model'], where, tuple(mark for mark in marks.of(row['changes']) if mark != where))
            found.setdefault(on, {}).setdefault(row['task'], []).append(row['mean'])
    both = {on: [each.get(part, []) for part in PARTS] for on, each in found.items()}
    said = [
        f'{printable(model)} {overall_2025(*(mean for (mean,) in means))} ({", ".join([printable(where), *marked])})'
        for (model, where, marked), means in both.items()
        if all(len(mean) == 1 for mean in means)
    ]
    shares = ', '.join(f'{share:g} of {part}' for share, part in zip(SHARES_2025, PARTS, strict=True))
    return f'overall score of 2025 ({shares}; lower is better): {", ".join(said)}' if said else ''
