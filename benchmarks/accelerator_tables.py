"""The tables of docs/accelerator.md, from what `accelerator.py` found."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import marks
import products

from jbench.spec.errors import RequestError

Facts = dict[str, Any]  # {'head', 'rows', 'skipped': {part: why}}
NOTHING = '–'
NAMES = ('state', 'device', 'steps', 'seeds', 'command', 'precision')  # words and tables, in the order of the page
HEAD = {'device', 'backend', 'count', 'machine', 'jax', 'commit', 'date', 'toy'}  # fields of the head of figures
ROW = {'part', 'model', 'what', 'seeds'}


def line(row: dict[str, Any]) -> str:
    """A row as it is told while others are measured."""
    what = f'{row["part"]} {row["model"]} {row["what"]}' + (f' x {row["seeds"]}' if row['seeds'] > 1 else '')
    if 'failed' in row:
        return f'{what}: {row["failed"]}'
    if row['part'] == 'whole':
        return f'{what}: {row["first_s"]:.1f} s, again {row["again_s"]:.1f} s'
    if row['part'] == 'numerics':
        return f'{what}: default products {row["default"][0]:.1e} apart'
    return f'{what}: {row["ms"]:.3g} ms'


def stored(path: Path) -> Facts:
    """Figures that an earlier run kept. Raises: RequestError where a file is no such one, or not whole."""
    try:
        facts: Facts = json.loads(path.read_text(encoding='utf-8'))
        heads, rows = {*facts['head']}, [{*row} for row in facts['rows']]
        whole = heads >= HEAD and all(row >= ROW for row in rows) and isinstance(facts['skipped'], dict)
    except (OSError, ValueError, LookupError, TypeError):
        whole = False
    if not whole:
        raise RequestError(
            f'{path}: no figures that can be read; expected JSON as benchmarks/accelerator.py keeps it (head, rows, '
            'skipped); name another file with --json, or remove it'
        )
    return facts


def tables(facts: Facts) -> dict[str, str]:
    """What is written between the marks of the page, as Markdown, by its name."""
    rows = {(r['part'], r['model'], r['what'], r['seeds']): r for r in facts['rows']}
    models = list(dict.fromkeys(r['model'] for r in facts['rows'] if r['part'] in ('step', 'torch')))
    made = (
        state(facts),
        device(facts),
        steps(facts, rows, models),
        seeds(rows, models),
        command(facts),
        precision(facts),
    )
    return dict(zip(NAMES, made, strict=True))


def state(facts: Facts) -> str:
    """Whether there are figures, and of what."""
    head = facts['head']
    if head['toy'] or head['backend'] == 'cpu':
        what = 'at toy sizes' if head['toy'] else 'on a processor'
        return f'**No figure of an accelerator exists yet.** What follows was measured {what}.'
    late = '' if any(row['part'] == 'step' for row in facts['rows']) else ' Steps of jbench were not measured.'
    return f'Measured on {head["device"]}, {head["date"]}.{late}'


def device(facts: Facts) -> str:
    """What was measured, on what, and what its maker says that it can do."""
    head = facts['head']
    found = products.peak(head['device'])
    said = (
        f'{found.float32:.3g} / {found.tensorfloat:.4g} / {found.bfloat16:.4g} TFLOP/s '
        f'(float32, default products, bfloat16), {found.memory:.0f} GB/s'
        if found
        else f'not in the table of peaks (`benchmarks/products.py`): no shares for {head["device"]}'
    )
    failed = sum('failed' in r for r in facts['rows'])
    lines = [
        ('device', f'{head["device"]} ({head["count"]}; one is used), {head["machine"]}'),
        ('its peaks', said),
        ('with', f'jax {head["jax"]}, commit {head["commit"]}, {head["date"]}'),
        ('rows', f'{len(facts["rows"]) - failed} measured, {failed} failed' + ' (toy sizes: no figures)' * head['toy']),
        *((f'left out: {part}', why) for part, why in facts['skipped'].items()),
    ]
    return _table(('', ''), lines)


def steps(facts: Facts, rows: dict[Any, Any], models: list[str]) -> str:
    """ms a training step of one seed, beside torch's, and shares of the peaks."""
    peak = products.peak(facts['head']['device'])
    lines = []
    for m in models:
        ours = [rows.get(('step', m, what, 1)) for what in ('float32', 'default', 'bfloat16')]
        theirs = [rows.get(('torch', m, what, 1)) for what in ('float32', 'bfloat16', 'compiled')]
        shape = next((f'{r["batch"]} x {r["n_chans"]} x {r["n_times"]}' for r in ours if r and 'ms' in r), NOTHING)
        full, low = ours[0], ours[2]
        lines.append(
            (
                *(m, shape, *map(_ms, ours), *map(_ms, theirs), _ratio(theirs[0], full)),
                *(_shares(full, low, peak, 'operations'), _shares(full, low, peak, 'bytes')),
                f'{full["memory_gb"]:.2g}' if full and 'ms' in full else NOTHING,
            )
        )
    first = ('network', 'windows', 'float32', 'default products', 'bfloat16', 'torch', 'torch bfloat16')
    return _table((*first, 'torch compiled', 'torch / float32', 'of arithmetic', 'of bandwidth', 'GB'), lines)


def seeds(rows: dict[Any, Any], models: list[str]) -> str:
    """ms a step and seed of several at once, and how much longer torch takes for three."""
    counts = sorted({k[3] for k in rows if k[0] == 'step'} | {1, 3})
    lines = []
    for m in models:
        for what in ('float32', 'bfloat16'):
            found = [rows.get(('step', m, what, n)) for n in counts]
            if any(found[1:]):
                of_three, torch = rows.get(('step', m, what, 3)), rows.get(('torch', m, what, 1))
                cells = [_ms(r, n) for r, n in zip(found, counts, strict=True)]
                lines.append((m, what, *cells, _ratio(torch, of_three, 3)))
    heads = [f'{n} at once' if n > 1 else 'one' for n in counts]
    return _table(('network', 'precision', *heads, 'torch / 3 at once'), lines)


def command(facts: Facts) -> str:
    """Seconds of the whole command."""
    lines = []
    for r in (r for r in facts['rows'] if r['part'] == 'whole'):
        found = (f'{r["first_s"]:.1f} s', f'{r["again_s"]:.1f} s', f'{r["peak_mb"]:.0f} MB') if 'first_s' in r else None
        lines.append((r['model'], r['what'], *(found or (r['failed'], NOTHING, NOTHING))))
    return _table(('network', 'task (simulated)', 'prepared', 'prepared and compiled', 'memory of the host'), lines)


def precision(facts: Facts) -> str:
    """How far apart outputs / gradients are."""
    lines = []
    for r in (r for r in facts['rows'] if r['part'] == 'numerics'):
        told = [' / '.join(f'{v:.0e}' for v in r[k]) if k in r else NOTHING for k in ('default', 'bfloat16')]
        apart = ' / '.join(f'{v:.0e}' for v in r['processor']) if 'processor' in r else NOTHING
        lines.append((r['model'], *((apart, *told) if 'default' in r else (r['failed'], NOTHING, NOTHING))))
    return _table(('network', 'device, processor', 'default products', 'bfloat16'), lines)


def _table(head: Sequence[str], lines: list[Any]) -> str:
    if not lines:
        return '(none measured)'
    return marks.table(head, lines)


def _ms(row: dict[str, Any] | None, seeds: int = 1) -> str:
    if row is None:
        return NOTHING
    return f'{row["ms"] / seeds:.3g}' if 'ms' in row else row['failed'].replace('|', '/')


def _ratio(torch: dict[str, Any] | None, ours: dict[str, Any] | None, seeds: int = 1) -> str:
    """How many times as long torch takes, seed after seed."""
    both = torch and ours and 'ms' in torch and 'ms' in ours
    return f'**{seeds * torch["ms"] / ours["ms"]:.1f}**' if both else NOTHING


def _shares(full: dict[str, Any] | None, low: dict[str, Any] | None, peak: products.Peak | None, what: str) -> str:
    """Shares of a peak that a step in float32 / bfloat16 reaches."""
    told = []
    for row, name in ((full, 'float32'), (low, 'bfloat16')):
        if peak is None or row is None or not row.get(what):
            told.append(NOTHING)
            continue
        most = 1e12 * peak.of(name) if what == 'operations' else 1e9 * peak.memory
        told.append(f'{100 * row[what] / (row["ms"] / 1e3) / most:.2g} %')
    return ' / '.join(told)
