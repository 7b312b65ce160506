"""`jbench report robustness`: scores of trained networks by the share of channels that fail in the test.

One fit is tested at several shares. The same channels fail as with `recipe.mask_channels`, so that a point is what a
run with that field scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.cli import arguments, report_arguments
from jbench.cli.environment import without_triton
from jbench.results import place
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.report.figures.style import Table
    from jbench.trained import TrainedModel

SHARES = '0,0.1,0.2,0.3,0.5'
ABOUT = ('task', 'task_version', 'dataset', 'simulated', 'model', 'key', 'seed', 'split_hash')  # of a result


def main(argv: list[str]) -> int:
    """Print the table and draw the figure; returns the exit status. Raises: RequestError."""
    args = arguments.known(_parser(), argv)
    shares = _shares(args.share)
    without_triton()
    from jbench.report import marks, robustness, text
    from jbench.report.figures import robustness as figure
    from jbench.report.figures import style
    from jbench.trained import load_model

    style.require()
    rows = []
    for path in dict.fromkeys(args.results):
        try:
            rows += _curve(load_model(path, model=args.model), shares)
        except FileNotFoundError as error:
            raise RequestError(f'{path}: no such result; expected the path of a seed33.json') from error
    asked = list(dict.fromkeys((_task(r), f'scored by {r["metric"]}', f'split {r["split_hash"]}') for r in rows))
    if len(asked) > 1:
        one, other = (', '.join(words) for words in asked[:2])
        raise RequestError(f'robustness: results of {one} and of {other}; a figure is of one task, dataset and split')
    table = robustness.means(rows)
    title = marks.titled(asked[0][0], dict.fromkeys(w for r in table for w in filter(None, r['changes'].split(', '))))
    paths = figure.write(table, Path(args.out) if args.out else _home(args.results[0]), title)
    if args.format == 'json':
        print(text.as_json({'rows': table, 'files': [str(p) for p in paths]}))
        return 0
    unit, beside = style.factor(table[0]['metric']), robustness.keys(table)
    lines = [
        (f'{100 * r["share"]:g}', _number(r['score'], unit), _number(r['low'], unit), _number(r['high'], unit))
        for r in table
    ]
    named = [
        (text.printable(r['model'] + beside[r['model'], r['key']]), r['seeds'], r['n_subjects'], *line)
        for r, line in zip(table, lines, strict=True)
    ]
    print(title)
    heads = ('model', 'seeds', 'test subjects', '% of channels that fail', style.score_axis(table[0]['metric']))
    print(text.table((*heads, 'from', 'to (95 % over subjects)'), named))
    print('figure: ' + ', '.join(map(str, paths)))
    return 0


def _task(row: dict[str, Any]) -> str:
    return f'{row["task"]}@{row["task_version"]}/{row["dataset"]}'


def _curve(model: TrainedModel, shares: Sequence[float]) -> Table:
    """A row for each share of channels that fail: `share, score` and the ends `low, high` of the interval over test
    subjects, as result files have them, and what they are of.

    Raises: RequestError as `TrainedModel.masked`.
    """
    from jbench.report import marks
    from jbench.results.predictions import arrange, opened
    from jbench.targets import score

    task, result = model.cell.task, model.result
    rows = []
    for share in shares:
        found = opened(arrange(model.masked(share)))
        first = score.score(task.target.kind, task.metric, found, result['dummy'], task.level)['headline']
        low, high = first['interval'] or (None, None)
        about = {k: result[k] for k in ABOUT}
        about['changes'] = ', '.join(marks.of(w for w in result['warnings'] if w.startswith(marks.CHANGES)))
        scores = {'share': share, 'metric': task.metric, 'score': first['value'], 'low': low, 'high': high}
        rows.append({**about, **scores, 'n_subjects': first['n_subjects'], 'chance': result['chance']})
    return rows


def _shares(given: str) -> list[float]:
    """Ascending shares from 0 to below 1. Raises: RequestError."""
    try:
        found = sorted({float(word) for word in given.split(',')})
    except ValueError:
        found = [-1.0]
    if not all(0 <= share < 1 for share in found):
        raise RequestError(f'--share={given}: expected shares of the channels from 0 to below 1, as {SHARES}')
    return found


def _home(result: str) -> Path:
    """The folder `robustness` of the work folder that a result lies in."""
    return place.home(Path(result).absolute()) / 'robustness'


def _number(value: float | None, unit: float) -> str:
    return '-' if value is None else f'{unit * value:.2f}'


def _parser() -> argparse.ArgumentParser:
    p = report_arguments.parser(
        'robustness', 'Scores of trained networks while channels of the test windows fail; nothing is learnt again.'
    )
    p.add_argument('results', nargs='+', metavar='RESULT', help='of one task: .../seed33.json in a work folder')
    p.add_argument('--share', default=SHARES, help=f'of the channels of each window that fail [{SHARES}]')
    p.add_argument('--out', metavar='DIR', help='where PNG, SVG and CSV go [WORKDIR/robustness]')
    p.add_argument('--model', metavar='FILE:FUNCTION', help='the file of a network of your own')
    report_arguments.output_format(p)
    return p
