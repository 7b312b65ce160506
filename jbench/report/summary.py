"""What results say about models over tasks: as a dict, as files, as a table on the console."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench import files
from jbench.report import (
    aggregate,
    alignment_table,
    alike,
    calibrations,
    marks,
    matrix,
    order,
    overall,
    published,
    ranks,
)
from jbench.report.aggregate import Score
from jbench.report.overlap import STATUSES, overlap, told
from jbench.report.text import as_csv, printable
from jbench.results import checked, index
from jbench.results.index import LeftOut, Row

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

RULES = (
    'rank: over the models of one protocol, 1 the best, ties get the better rank; a dataset of one model ranks nobody',
    'a model without a score on a dataset has no rank there: its means are over what it has, and the others are ranked '
    'among themselves; beside them the means over the datasets that all models have (complete), but for those on fewer '
    'than half of the datasets, which take no part in it',
    'normalised rank: (rank - 1) / (models of the table - 1); 0 best, 1 last',
    'normalised score: 0 at the floor (the dummy, else chance), 1 perfect',
    'a model with scores on fewer than half of the datasets of a table stands below the others, whatever its mean rank',
    'core: the first dataset of each task; full: all, averaged inside the task first; each by its own newest version',
)
# no columns of scores.csv
WIDE = ('per_subject', 'seconds', 'metrics', 'pretraining', 'seen_beside', 'paths', 'changes', 'interval')
COLUMNS = (  # of scores.csv
    *(name for name in Score._fields if name not in WIDE),
    *('low', 'high', 'rank', *calibrations.BESIDE, 'seconds_fit', 'seconds_test', 'overlap', 'changes'),
)
COUNTS = ('n_datasets', *(f'n_{status}' for status in STATUSES))  # of models.csv
PLAIN: dict[str, Any] = {'highlight': False, 'markup': False, 'soft_wrap': True}
MANY = 100  # datasets, whose scores are too many to print
FAMILIES = 6  # pairs of them, on the console
EXAMPLES = 3  # of a kind of what is left out, on the console


class Report(NamedTuple):
    """What a report is made of."""

    folders: tuple[str, ...]
    n_files: int  # that were found
    rows: list[Row]  # that count, of all protocols
    scores: list[Score]  # one protocol for each dataset of a task
    left_out: list[LeftOut]
    alignment: Sequence[dict[str, Any]] = ()  # result files of models beside brains, each with its `path`
    beside: calibrations.Found = MappingProxyType({})  # calibration of the rows; empty where it was not asked for


def collect(
    folders: Sequence[str | os.PathLike[str]], also: Collection[str] = (), publication: str | None = None
) -> Report:
    """The scores of all results below some folders, and what of them does not count.

    Args:
        folders: as of `index.scan`; so is `also`.
        publication: CSV file of published scores that stand beside them.

    Raises: RequestError, as `index.scan` and `published.read`.
    """
    others = published.as_ours(published.read(publication)) if publication else []
    found = index.scan(folders, also)
    rows = aggregate.comparable(found.rows)
    scores, left_out = ranks.one_protocol([*aggregate.averages(rows.rows), *others])
    aligned = [{**checked.read(x.path), 'path': x.path} for x in found.left_out if x.reason == index.ALIGNMENT]
    others_left = (x for x in found.left_out if x.reason != index.ALIGNMENT)
    told = sorted([*others_left, *rows.left_out, *left_out])
    n_files = len(found.rows) + len(found.left_out)
    return Report(tuple(map(str, folders)), n_files, rows.rows, scores, told, aligned)


def as_dict(report: Report) -> dict[str, Any]:
    """All that the report says, as plain values: the content of summary.json."""
    tables = [_table(scores, suite) for scores in _by_origin(report) for suite in ('core', 'full')]
    return {
        'folders': list(report.folders),
        'n_files': report.n_files,
        'n_scores': len(report.scores),
        'n_left_out': dict(_kinds(report.left_out)),
        'rules': list(RULES),
        'tables': tables,
        'core_against_full': [
            {'origin': scores[0].origin, **ranks.core_against_full(scores)} for scores in _by_origin(report)
        ],
        'variability': ranks.variability(report.scores),
        'best': [
            {
                **{k: getattr(s, k) for k in ('origin', 'task', 'dataset', 'model', 'metric', 'mean', 'normalised')},
                **_beside(s, report),
                'changes': list(s.changes),
            }
            for s in ranks.best(report.scores)
        ],
        'calibration': calibrations.lines(report.scores, report.beside),
        'alignment': alignment_table.rows(report.alignment),
        'alignment_tree': alignment_table.tree_rows(report.alignment),
    }


def write(report: Report, folder: str | os.PathLike[str]) -> list[Path]:
    """Write summary.json, models.csv, scores.csv and left_out.csv, each whole or absent. Raises: RequestError."""
    home = files.make_dir(folder)
    said, place = as_dict(report), ranks.ranks(report.scores)
    models = [{**m, 'table': t['table'], 'marks': '; '.join(m['marks'])} for t in said['tables'] for m in t['models']]
    scores = []
    for s in report.scores:
        low, high = s.interval or (None, None)
        plain = {k: v for k, v in s._asdict().items() if k not in WIDE} | {'low': low, 'high': high}
        fit = {f'seconds_{stage}': s.seconds.get(stage) for stage in ('fit', 'test')}
        rank = place.get((s.origin, s.task, s.dataset), {}).get(s.model)
        more = {**_beside(s, report), **fit, 'overlap': overlap(s), 'changes': '; '.join(s.changes)}
        scores.append({**plain, 'rank': rank, **more})
    texts = {
        'models.csv': as_csv(models, ['origin', 'table', *ranks.Standing._fields, *COUNTS, 'few', 'marks']),
        'scores.csv': as_csv(scores, COLUMNS),
        'left_out.csv': as_csv([x._asdict() for x in report.left_out], list(LeftOut._fields)),
        'summary.json': json.dumps(said, indent=1, allow_nan=False) + '\n',
    }
    if report.alignment:
        texts['alignment.csv'] = alignment_table.csv(said['alignment'])
        texts['alignment_tree.csv'] = as_csv(said['alignment_tree'], alignment_table.TREE)
    return [files.write_atomic(home / name, text.encode()) for name, text in texts.items()]


def _beside(s: Score, report: Report) -> dict[str, float | None]:
    """Calibration and AUROC of a score, as far as they are known."""
    values = calibrations.of_score(s, report.beside)
    return {name: values[name] for name in calibrations.BESIDE}


def show(report: Report, console: Console) -> None:
    """Print the models of each table, the means by task (of up to MANY datasets), and what was left out."""
    for scores in _by_origin(report):
        several = any(not s.core for s in scores)
        for suite in ('core', 'full') if several else ('core',):
            table = _table(scores, suite)
            if table['models']:
                counted = f'{table["n_tasks"]} tasks, {table["n_datasets"]} datasets'
                head = marks.titled(f'{scores[0].origin} results, {suite}: {counted}', table['marks'])
                console.print(head, **PLAIN)
                console.print(grid(table['models']))
                console.print(printable(told(table['models'])), **PLAIN)
        console.print('\n'.join(map(printable, _said(scores))), **PLAIN)
        if len({(s.task, s.dataset) for s in scores}) > MANY:
            continue  # scores.csv has them
        rows = [{**s._asdict(), 'task_version': s.version} for s in scores]
        console.print(
            '\n'
            + '\n'.join(map(printable, matrix.text(rows, console.width, order.of_scores(scores)).split('\n')))
            + '\n',
            **PLAIN,
        )
    if report.scores:
        console.print('\n'.join(RULES), **PLAIN)
    if report.alignment:
        console.print('\n'.join(map(printable, alignment_table.with_tree(report.alignment).split('\n'))), **PLAIN)
    if not (report.scores or report.alignment):
        console.print('no result counts')
    show_left_out(report, console)


def _said(scores: Sequence[Score]) -> list[str]:
    """What the scores of one origin come to, a line each: Core against Full, groups of models, families, the best, the
    overall score of 2025."""
    suite = 'core' if any(s.core for s in scores) else 'full'
    mine = [s for s in scores if s.core or suite == 'full']
    models = [line['model'] for line in standings(mine, full=True)]
    found = ranks.core_against_full(scores)
    both = f'Kendall tau = {_text(found["kendall_tau"], 2)}, Spearman rho = {_text(found["spearman_rho"], 2)}'
    both += f', {found["n_models"]} models'
    lines = [
        f'{suite}: {alike.words(alike.alike(mine, models), {s.model: s.title for s in mine})}',
        f'core against full: {found["reason"] or both}',
    ]
    gaps = ranks.gaps(mine, full=True)
    for gap in gaps[:FAMILIES]:
        won = f'better on {gap.n_first_better} of {gap.n_cells} datasets' + f', {gap.n_ties} ties' * bool(gap.n_ties)
        difference = gap.mean_difference
        mean = '' if difference is None else f', mean difference of the normalised score {difference:+.3f}'
        lines.append(f'best of {gap.families[0] or "-"} against best of {gap.families[1] or "-"}: {won}{mean}')
    lines += [f'and {len(gaps) - FAMILIES} more pairs of families'] * (len(gaps) > FAMILIES)
    best = [f'{marks.titled(s.task, s.changes)} {s.title}' for s in ranks.best(mine)]
    more = f'; and {len(best) - MANY} more' if len(best) > MANY else ''
    ranked = overall.line({**s._asdict(), 'simulated': 'simulated' in s.changes} for s in scores)
    return [*lines, f'best of each task, {suite}: {"; ".join(best[:MANY])}{more}', *filter(None, [ranked])]


def show_left_out(report: Report, console: Console) -> None:
    """Print how many results were left out and why, with examples of each kind."""
    if not report.left_out:
        console.print(f'{report.n_files} result files, none left out', **PLAIN)
        return
    console.print(f'\n{report.n_files} result files, {len(report.left_out)} left out:', **PLAIN)
    for kind, n in _kinds(report.left_out):
        console.print(f'{kind}: {n}', **PLAIN)
        same = [x for x in report.left_out if x.reason.partition(':')[0] == kind]
        for x in same[:EXAMPLES]:
            console.print(printable(f'  {x.path}: {x.reason.partition(": ")[2]}'), **PLAIN)
        if n > EXAMPLES:
            console.print(f'  and {n - EXAMPLES} more', **PLAIN)


def _by_origin(report: Report) -> list[list[Score]]:
    origins = sorted({s.origin for s in report.scores})
    return [[s for s in report.scores if s.origin == origin] for origin in origins]


def _kinds(left_out: Sequence[LeftOut]) -> list[tuple[str, int]]:
    """The first words of reasons, and how often each is given; the most frequent first."""
    return Counter(x.reason.partition(':')[0] for x in left_out).most_common()


def _table(scores: Sequence[Score], suite: str) -> dict[str, Any]:
    """The models of one origin over its Core datasets, or all."""
    full = suite == 'full'
    mine = [s for s in scores if full or s.core]
    return {
        'origin': scores[0].origin,
        'table': suite,
        'n_tasks': len({s.task for s in mine}),
        'n_datasets': len({(s.task, s.dataset) for s in mine}),
        'marks': marks.of_many(mine),
        'models': standings(mine, full=full),
        'alike': alike.plain(alike.alike(mine, [line.model for line in ranks.standings(mine, full=full)])),
        'by_category': ranks.by_category(mine, full=full),
        'families': [gap._asdict() for gap in ranks.gaps(mine, full=full)],
    }


def standings(scores: Sequence[Score], *, full: bool) -> list[dict[str, Any]]:
    """`ranks.standings` as plain values, with `n_datasets` of each model, how many of them its weights have not seen
    (`n_clean`), have (`n_overlap`) or may have (`n_unknown`), `few`: whether datasets are fewer than half of all (such
    models stand last), and `marks` of its scores (`marks.of_many`).

    Args:
        scores: of one origin.
        full: all datasets of a task, not the Core one alone.
    """
    table = [s for s in scores if full or s.core]
    counts, few = alike.counts(table), alike.few(table)
    seen = Counter({(s.model, s.task, s.dataset, overlap(s)) for s in table})
    said = Counter((model, status) for model, _, _, status in seen)
    lines = [
        {
            **line._asdict(),
            'n_datasets': counts[line.model],
            **{f'n_{status}': said[line.model, status] for status in STATUSES},
            'few': line.model in few,
            'marks': marks.of_many([s for s in table if s.model == line.model]),
        }
        for line in ranks.standings(table, full=full)
    ]
    return sorted(lines, key=lambda line: line['few'])


def grid(models: Sequence[Mapping[str, Any]]) -> Table:
    """Standings, as dictionaries, as a table of rich."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    view = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    heads = ('model', 'family', 'mean\nrank', 'norm.\nrank', 'norm.\nscore', 'wins', 'tasks', 'rank,\ncomplete', 'of')
    for k, head in enumerate(heads):
        view.add_column(head, justify='right' if k > 1 else 'left', no_wrap=k > 1, overflow='fold')
    few = False
    for m in models:
        if m['few'] and not few:
            view.add_row('---\non fewer than half\nof the datasets:')
        few = m['few']
        cells = [printable(m['title']), printable(m['family']), _text(m['mean_rank'], 2)]
        cells += [_text(m[k], 3) for k in ('mean_normalised_rank', 'mean_normalised_score')]
        cells += [str(m['wins']), str(m['n_tasks']), _text(m['mean_rank_complete'], 2), str(m['n_complete'])]
        view.add_row(*map(Text, cells))
    return view


def _text(value: float | None, digits: int) -> str:
    return '-' if value is None else f'{value:.{digits}f}'
