"""The table of alignment results: one line a benchmark and model. Reads result dicts only."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from jbench.report.text import table
from jbench.spec.benchmark import PREFIX

Row = dict[str, Any]
HEADS = ('benchmark', 'model', 'score', 'raw', 'ceiling', 'seeds', 'notes')


def rows(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each (benchmark, version, model, key), sorted by those names.

    Args:
        results: of kind 'alignment', as `jbench.results.result_file.read` gives them.

    Returns: dicts of plain values: `benchmark, version, model, key, metric, scores {seed: score or None}`, their means
        over seeds `score, raw, error, ceiling, ceiling_error` (None: not defined in one of them; an error is that of
        one seed), `notes`.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in results:
        groups.setdefault(tuple(result[k] for k in ('task', 'task_version', 'model', 'key')), []).append(result)
    return [_row(sorted(groups[name], key=lambda r: r['seed'])) for name in sorted(groups)]


def _row(seeds: list[Mapping[str, Any]]) -> Row:
    first = seeds[0]
    row = {
        'benchmark': first['task'].removeprefix(PREFIX),
        'version': first['task_version'],
        'model': first['model'],
        'key': first['key'],
        'metric': first['headline']['name'],
        'scores': {str(r['seed']): r['headline']['value'] for r in seeds},
        'score': _mean([r['headline']['value'] for r in seeds]),
    }
    for name in ('raw', 'error', 'ceiling', 'ceiling_error'):
        row[name] = _mean([r['metrics'].get(name) for r in seeds])
    return {**row, 'notes': list(dict.fromkeys(w for r in seeds for w in r['warnings']))}


def _mean(values: list[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return statistics.fmean(there) if len(there) == len(values) else None


def text(found: Iterable[Row]) -> str:
    """Rows as a table, their notes numbered below it."""
    lines = list(found)
    if not lines:
        return 'no results'
    notes = list(dict.fromkeys(note for row in lines for note in row['notes']))
    body = [
        (
            f'{row["benchmark"]}@{row["version"]}',
            row['model'],
            _number(row['score'], row['error']),
            _number(row['raw']),
            _number(row['ceiling'], row['ceiling_error']),
            len(row['scores']),
            ' '.join(f'[{notes.index(note) + 1}]' for note in row['notes']),
        )
        for row in lines
    ]
    legend = 'score: beside the ceiling where there is one, else raw; ±: error over splits; seeds: of the model'
    return '\n'.join([table(HEADS, body), legend, *(f'[{k}] {note}' for k, note in enumerate(notes, 1))])


def _number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return '-'
    return f'{value:.3f}' + (f' ± {error:.3f}' if error is not None else '')
