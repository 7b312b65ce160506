"""Means of many rows of the table as a matrix, tasks by models, in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jbench.report import marks
from jbench.report.scores import format_score
from jbench.spec.metrics import METRICS


def text(rows: Sequence[Mapping[str, Any]], width: int, models: Sequence[str]) -> str:
    """Headline means of rows of `table.rows`: a line for each task and dataset, a column for each model; the other way
    round where this alone fits.

    Models that do not fit into `width` characters go on below. What ran under several keys (other settings) has its
    means side by side; '-': not run, or not defined. The `changes` of a row, if it has them, stand behind its task.

    Args:
        rows: of any order.
        width: characters of a line.
        models: of the rows, in their order (`jbench.report.order`).
    """
    cells: dict[tuple[str, str], list[str]] = {}
    datasets: dict[str, set[str]] = {}
    for row in rows:
        datasets.setdefault(_task(row), set()).add(row['dataset'])
    for row in rows:
        name = _task(row) + (f' {row["dataset"]}' if len(datasets[_task(row)]) > 1 else '')
        name = marks.titled(name, row.get('changes', ()))
        name += f', {row["metric"]}' + ' (%)' * (METRICS[row['metric']].unit == 'per cent')
        cells.setdefault((name, row['model']), []).append(format_score(row['mean'], row['metric']))
    names = list(dict.fromkeys(name for name, _ in cells))
    columns = [[model, *('/'.join(cells.get((name, model), ['-'])) for name in names)] for model in models]
    head = ['means', *names]
    if sum(_wide(c) + 2 for c in (head, *columns)) > width:  # lines of models, where these fit
        turned = [list(line) for line in zip(head, *columns, strict=True)]
        if sum(_wide(c) + 2 for c in turned) <= width:
            head, columns = turned[0], turned[1:]
    room = max(width - max(map(len, head)), 1)
    parts: list[list[list[str]]] = [[]]
    for column in columns:
        if parts[-1] and sum(_wide(c) + 2 for c in (*parts[-1], column)) > room:
            parts.append([])
        parts[-1].append(column)
    return '\n\n'.join(_lines(head, part) for part in parts)


def _task(row: Mapping[str, Any]) -> str:
    return f'{row["task"]}@{row["task_version"]}'


def _wide(column: Sequence[str]) -> int:
    return max(map(len, column))


def _lines(head: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    """A column of names and columns of numbers, as lines."""
    wide, lines = _wide(head), []
    for k, name in enumerate(head):
        numbers = ''.join(f'  {column[k]:>{_wide(column)}}' for column in columns)
        lines.append(f'{name:{wide}}{numbers}')
    return '\n'.join(lines)
