"""The table of alignment results: one line a benchmark and model. Reads result dicts only."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from jbench.alignment import tree
from jbench.report.text import as_csv, table
from jbench.spec.benchmark import PREFIX

Row = dict[str, Any]
TREE = ('model', 'node', 'score', 'scored', 'children')
PLAIN = (
    'benchmark',
    'version',
    'model',
    'metric',
    'score',
    'error',
    'raw',
    'raw_error',
    'ceiling',
    'ceiling_error',
    'key',
    'notes',
)
HEADS = ('benchmark', 'model', 'score', 'raw', 'ceiling', 'seeds', 'notes')


def rows(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each (benchmark, version, model, key), sorted by those names.

    Args:
        results: of kind 'alignment', as `jbench.results.result_file.read` gives them.

    Returns: dicts of plain values: `benchmark, version, model, key, metric, scores {seed: score or None}`, their means
        over seeds `score, raw, raw_error, error, ceiling, ceiling_error` (None: not defined in one of them; an error is
        that of one seed), `notes`.
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
    for name in ('raw', 'raw_error', 'error', 'ceiling', 'ceiling_error'):
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
    legend = 'score: beside the ceiling where there is one, else raw; ±: its error, as the metric has it'
    return '\n'.join([table(HEADS, body), legend, *(f'[{k}] {note}' for k, note in enumerate(notes, 1))])


def tree_rows(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """The score of every inner node of the tree for each model: the mean of its children, over the benchmarks of the
    results; what is missing counts 0, as on Brain-Score's board, and how much is there stands beside it.

    Args:
        results: as of `rows`; simulated ones are no part of it.

    Returns: `model, node, score (None: nothing below it has one), scored, children`.
    """
    found = [r for r in results if not r['simulated']]
    parents = {r['task'].removeprefix(PREFIX): r['config']['benchmark']['parent'] for r in found}
    out: list[Row] = []
    lines = rows(found)
    for model in dict.fromkeys(line['model'] for line in lines):
        values = {line['benchmark']: line['score'] for line in lines if line['model'] == model}
        there = {name: value for name, value in values.items() if value is not None}
        for node in tree.scores(parents, there).values():
            score = None if math.isnan(node.score) else node.score
            facts = (model, node.name, score, node.n_scored, node.n_children)
            out.append(dict(zip(TREE, facts, strict=True)))
    return out


def with_tree(results: Iterable[Mapping[str, Any]]) -> str:
    """The table of results, and below it the tree: a row a model, a column a node."""
    found = list(results)
    nodes = tree_rows(found)
    names = list(dict.fromkeys(line['node'] for line in nodes))
    scores = {(line['model'], line['node']): line for line in nodes}
    body = []
    for model in dict.fromkeys(line['model'] for line in nodes):
        cells = [scores.get((model, name)) for name in names]
        body.append([model, *(f'{_number(c["score"])} ({c["scored"]}/{c["children"]})' if c else '-' for c in cells)])
    below = f'\n\n{table(("model", *names), body)}\nmeans over children, those without a score as 0' if body else ''
    return text(rows(found)) + below


def csv(lines: Iterable[Row]) -> str:
    """Rows as CSV."""
    return as_csv(
        [{k: '; '.join(v) if k == 'notes' else v for k, v in row.items() if k in PLAIN} for row in lines], PLAIN
    )


def _number(value: float | None, error: float | None = None) -> str:
    if value is None:
        return '-'
    return f'{value:.3f}' + (f' ± {error:.3f}' if error is not None else '')
