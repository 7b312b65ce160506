"""The table of results: one line a cell, its seeds side by side. Reads result dicts only."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from jbench.metrics import uncertainty
from jbench.report import matrix, order, overall, unlearnt
from jbench.report.marks import CHANGES
from jbench.report.scores import format_score
from jbench.report.text import printable
from jbench.results.learnt import ENDED_EARLY
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SAID = (*CHANGES, ENDED_EARLY)  # warnings that other notes tell
WORDS = ('task', 'task, dataset', 'dataset', 'model', 'metric')  # heads of columns that may fold
MANY = 20  # rows: of so many their means are shown as a matrix too
PLAIN: dict[str, Any] = {'highlight': False, 'markup': False, 'soft_wrap': True}
Row = dict[str, Any]


def rows(results: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row for each (task, version, dataset, model, key), sorted by those names.

    Args:
      results: dicts as `jbench.results.result_file.read` gives them.

    Returns: dicts of plain values, scores as fractions: `task, task_version, dataset, simulated, model, key, metric,
      better, scores {seed: score or None}, mean, sd` (ddof 1; None for one seed, or where all agree
      exactly), `interval` (95 % over test subjects: the seeds' own ends, averaged), `n_subjects, chance, normalised,
      windows {evaluated, prepared}, seconds` (fit and test, all seeds), `notes` (words, one a list item).
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for result in results:
        name = tuple(result[k] for k in ('task', 'task_version', 'dataset', 'model', 'key'))
        groups.setdefault(name, []).append(result)
    cells = [sorted(groups[name], key=lambda r: r['seed']) for name in sorted(groups)]
    table = [_row(cell) for cell in cells]
    below = unlearnt.far_below(table, [cell[0] for cell in cells])
    return [{**row, 'notes': [*row['notes'], *more]} for row, more in zip(table, below, strict=True)]


def show(table: Sequence[Row], console: Console) -> None:
    """Print rows so that they stay whole in narrow terminals and in plain logs.

    Of three layouts the widest that fits without a break inside a word; where none does, a few lines for each row.
    The overall score of 2025, where there is one, and notes follow; then, of MANY rows, their means as tasks by models.
    """
    from rich.text import Text

    if not table:
        console.print('no results')
        return
    notes = list(dict.fromkeys(note for row in table for note in row['notes']))
    seeds = sorted({int(seed) for row in table for seed in row['scores']})
    sign = '±' if console.encoding.lower().startswith('utf') else '+-'
    for layout in ('wide', 'stacked', 'narrow') if len(seeds) <= 5 else ('stacked', 'narrow'):
        lines = [_cells(row, seeds, notes, sign, layout) for row in table]
        least = {head: _least(head, (line[head] for line in lines), layout) for head in lines[0]}
        if sum(least.values()) + 2 * len(least) <= console.width:
            console.print(_grid(lines, least, layout), width=console.width)
            break
    else:
        console.print('\n\n'.join(_block(row, notes, sign, console.width) for row in table), **PLAIN)
        console.print()
    legend = (
        f'mean {sign} sd over seeds ({sign} only where they differ); interval over {_subjects(table)} test subjects; '
        'norm.: 0 chance, 1 perfect; windows: tested/prepared; seconds: fit and test of all seeds'
    )
    console.print(Text(legend))
    if ranked := overall.line({**row, 'changes': [n for n in row['notes'] if n.startswith(CHANGES)]} for row in table):
        console.print(Text(ranked))
    for i, note in enumerate(notes, 1):
        console.print(Text(f'[{i}] {printable(note)}'))
    if len(table) >= MANY:
        console.print('\n' + matrix.text(table, console.width, order.of_rows(table)), **PLAIN)


def _least(head: str, texts: Iterable[str], layout: str) -> int:
    """The width that a column needs so that no word and no number breaks: words of the narrow layout may fold."""
    folds = layout == 'narrow' and head.split('\n')[0] in WORDS
    return max(max(map(len, t.split() or [''])) if folds else _width(t) for t in (head, *texts))


def _grid(lines: Sequence[dict[str, str]], least: Mapping[str, int], layout: str) -> Table:
    """The rows as a table of rich."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    view = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    view.leading = int(layout != 'wide')
    for head, width in least.items():
        words = head.split('\n')[0] in WORDS
        justify: Literal['left', 'right'] = 'left' if words else 'right'
        view.add_column(Text(head), justify=justify, no_wrap=not words, min_width=width)
    for line in lines:
        view.add_row(*(Text(text) for text in line.values()))
    return view


def _block(row: Row, notes: Sequence[str], sign: str, width: int) -> str:
    """A row as a few lines of whole words."""
    cells = _cells(row, sorted(map(int, row['scores'])), notes, sign, 'wide')
    scores = '  '.join(f'{s}: {cells[s]}' for s in row['scores'])
    parts = (
        f'{cells["task"]} {cells["dataset"]}',
        f'{cells["model"]}, {cells["metric"]}: {cells[f"mean {sign} sd"]}  {cells["95 % interval"]}',
        f'seeds {scores}',
        f'chance {cells["chance"]}  norm. {cells["norm."]}  windows {cells["windows"]}  {cells["seconds"]} s  '
        + cells['notes'],
    )
    return '\n'.join(_wrapped(part, width, '  ' * (k > 0)) for k, part in enumerate(parts))


def _wrapped(text: str, width: int, indent: str) -> str:
    """Lines of whole words; what belongs together (two blanks apart from the rest) stays on one line if it fits."""
    lines = ['']
    for piece in text.strip().split('  '):
        joined = f'{lines[-1]}  {piece}' if lines[-1] else indent + piece
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines += textwrap.wrap(
                piece,
                width,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return '\n'.join(line for line in lines if line)


def _subjects(table: Sequence[Row]) -> str:
    """How many test subjects stand behind the intervals."""
    low, *_, high = sorted([row['n_subjects'] or 0 for row in table] * 2)
    return str(low) if low == high else f'{low} to {high}'


def as_json(table: Sequence[Row]) -> str:
    """Rows as JSON text; scores stay fractions."""
    return json.dumps(list(table), indent=1, sort_keys=True, allow_nan=False)


def _row(results: Sequence[Mapping[str, Any]]) -> Row:
    """The row of one cell, from the results of its seeds."""
    done = [r for r in results if r['headline']['value'] is not None]
    first = (done or results)[0]
    head, protocol = first['headline'], first['protocol']
    scores = [r['headline']['value'] for r in done]
    levels = [r['normalised'] for r in done if r['normalised'] is not None]
    ends = [r['headline']['interval'] for r in done if r['headline']['interval'] is not None]
    return {
        **{k: first[k] for k in ('task', 'task_version', 'dataset', 'simulated', 'model', 'key', 'chance')},
        'metric': head['name'],
        'better': head['better'],
        'scores': {str(r['seed']): r['headline']['value'] for r in results},
        'mean': statistics.fmean(scores) if scores else None,
        'sd': statistics.stdev(scores) if len({*scores}) > 1 else None,  # a baseline takes no seed: all agree
        'interval': [statistics.fmean(side) for side in zip(*ends, strict=True)] or None,
        'n_subjects': head['n_subjects'],
        'normalised': statistics.fmean(levels) if levels else None,
        'windows': {k: first['n_records'][k] for k in ('evaluated', 'prepared')},
        'seconds': sum(r['timings']['fit'] + r['timings']['test'] for r in results),
        'notes': [
            *(['simulated'] if first['simulated'] else []),
            *(['debug: a try, not a score'] if protocol['debug'] else []),
            *(f'partial: {reason}' for reason in dict.fromkeys(t for r in results for t in r['protocol']['partial'])),
            *([f'custom: {", ".join(protocol["custom"])}'] if protocol['custom'] else []),
            *(['as published (recipe.published)'] if first['config']['task']['recipe'].get('published') else []),
            *dict.fromkeys(
                w for r in results for w in r['warnings'] if not w.startswith(SAID) and r['status'] != 'failed'
            ),
            *unlearnt.ended_early(results),
            *_failures(results),
            *_about_subjects(done),
        ],
    }


def _failures(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Notes on seeds that count not, or not together."""
    failed = [r['seed'] for r in results if r['status'] == 'failed']
    undefined = [r['seed'] for r in results if r['status'] != 'failed' and r['headline']['value'] is None]
    notes = [f'failed: {_seeds(failed)} of {len(results)}'] if failed else []
    notes += [f'score not defined: {_seeds(undefined)} of {len(results)}'] if undefined else []
    if len({r['prepared_hash'] for r in results}) > 1:
        notes.append('seeds come from different prepared data: run again')
    return notes


def _seeds(seeds: Sequence[int]) -> str:
    return f'seed{"s" if len(seeds) > 1 else ""} {", ".join(map(str, seeds))}'


def _about_subjects(done: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the test subjects say about the interval and chance, where it is not simply 'better'."""
    heads = [r['headline'] for r in done]
    if not heads:
        return []
    n = heads[0]['n_subjects']
    if all(head['interval'] is None for head in heads):
        if done[0]['schema'] < 3:
            return ['no interval: an older result']
        few = n is not None and n < uncertainty.LEAST
        alike = len(set(done[0]['per_subject'].values())) == 1
        why = (
            f'{n} test subject{"s" * (n != 1)}' if few else 'all subjects are alike' if alike else 'none of this score'
        )
        return [f'no interval: {why}']
    notes = ['rough interval: fewer than ten test subjects'] if n < uncertainty.ROUGH else []
    if any(head['differs_from_chance'] is None for head in heads):
        return notes
    good = [(head['value'] > done[0]['chance']) == (head['better'] == 'higher') for head in heads]
    differ = [head['differs_from_chance'] for head in heads]
    for words, side in (([], True), (['worse than chance'], False)):
        if 2 * sum(d and g is side for d, g in zip(differ, good, strict=True)) > len(heads):
            return notes + words
    return [*notes, 'not different from chance']


def _cells(row: Row, seeds: Sequence[int], notes: Sequence[str], sign: str, layout: str) -> dict[str, str]:
    """The texts of a row under their column heads; all layouts but 'wide' put related ones under each other."""

    def text(value: float | None) -> str:
        return format_score(value, row['metric'])

    task = printable(f'{row["task"]}@{row["task_version"]}')
    dataset = printable(row['dataset']) + (' (simulated)' if row['simulated'] else '')
    per_cent = METRICS[row['metric']].unit == 'per cent'
    model, metric = printable(row['model']), row['metric'] + ' (%)' * per_cent
    mean = text(row['mean']) + ('' if row['sd'] is None else f' {sign} {text(row["sd"])}')
    interval = '-' if row['interval'] is None else f'[{text(row["interval"][0])}, {text(row["interval"][1])}]'
    level = '-' if row['normalised'] is None else f'{row["normalised"]:.3f}'
    chance, seconds = text(row['chance']), f'{row["seconds"]:.1f}'
    evaluated, prepared = (str(row['windows'][k]) for k in ('evaluated', 'prepared'))
    marks = [f'[{notes.index(note) + 1}]' for note in row['notes']]
    scores = {str(s): text(row['scores'][str(s)]) if str(s) in row['scores'] else '' for s in seeds}
    if layout == 'wide':
        cells = {'task': task, 'dataset': dataset, 'model': model, 'metric': metric, **scores}
        cells |= {f'mean {sign} sd': mean, '95 % interval': interval, 'chance': chance, 'norm.': level}
        return {**cells, 'windows': f'{evaluated}/{prepared}', 'seconds': seconds, 'notes': ' '.join(marks)}
    if layout == 'stacked':
        cells = {'task\ndataset': f'{task}\n{dataset}', 'model\nmetric': f'{model}\n{metric}'}
    else:
        cells = {'task, dataset\nmodel, metric': f'{task}\n{dataset}\n{model}, {metric}'}
    return {
        **cells,
        'seeds': '\n'.join(f'{s}: {v}' for s, v in scores.items() if v),
        f'mean {sign} sd\n95 % interval': f'{mean}\n{interval}',
        'chance\nnorm.': f'{chance}\n{level}',
        'windows\nseconds': f'{evaluated}/{prepared}\n{seconds} s',
        'notes': '\n'.join(marks),
    }


def _width(text: str) -> int:
    return max(map(len, text.split('\n')))
