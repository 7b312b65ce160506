"""`jbench report identity`: how much of the features of models is who was recorded, and how much the target."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench.cli import arguments, report_arguments
from jbench.cli import features as start
from jbench.plan import request
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.report.identity import Partition, Share
    from jbench.train.features import Features

DRAWS, SEED = 999, '33'
OF_START = ('weights', 'set', 'seed', 'data_dir', 'workdir', 'simulated')  # flags that say nothing of results
HEADS = ('model', 'windows', 'subjects', 'subject', 'chance', 'p', 'target', 'chance', 'p', 'rest', 'what it means')
LEGEND = (
    'subject, target, rest: % of the variance of the features; target: within subjects; chance: the mean share of '
    'shuffled windows; p: of as large a share by chance, not corrected for several models, and too small where windows '
    'of a subject are alike because they overlap or follow one another (docs/features.md)'
)


class ModelShares(NamedTuple):
    """The features of one model, and their partition."""

    model: str
    weights: str  # 'start' | 'trained', with the path
    where: str  # task, dataset
    layer: str
    width: int  # of the features of a window
    found: Partition


def main(argv: list[str]) -> int:
    """Print the table; returns the exit status. Raises: RequestError."""
    args = arguments.known(_parser(), argv)
    if bool(args.results) == bool(args.task):
        raise RequestError(
            'identity: expected either --task=TASK --model=MODEL,... (features at the weights that training starts '
            'from), or results (.../seed33.json: features of trained networks on their test windows)'
        )
    unused = [f'--{name}' for name in OF_START if getattr(args, name) not in (None, [])]
    if args.results and unused:
        raise RequestError(
            f'identity: {", ".join(unused)}: unused beside results, which say what they were made of; their data are '
            'those of the work folder that holds them'
        )
    if args.draws < 19:
        raise RequestError(f'--draws={args.draws}: fewer than 19 shuffles never give a p of 0.05')
    rows = list(_trained(args) if args.results else _started(args))
    if args.format == 'json':
        from jbench.report import text

        print(text.as_json([_plain(row) for row in rows]))
    else:
        _show(rows)
    return 0


def _parser() -> argparse.ArgumentParser:
    p = report_arguments.parser('identity', 'How much of the variance of features is the subject, how much the target.')
    p.add_argument('results', nargs='*', metavar='RESULT', help='of trained networks: .../seed33.json in a work folder')
    p.add_argument('--task', help='one task, as jbench has it')
    p.add_argument(
        '--model',
        help='networks, as jbench has them, estimators are left out [eegnet]; beside RESULT the file of your own',
    )
    p.add_argument('--weights', help="that pretrained models start from: FILE, a folder, or 'none'")
    p.add_argument('--seed', help=f'of random weights [{SEED}]')
    p.add_argument('--layer', default='penultimate', help='name of the feature [penultimate]')
    p.add_argument('--pooled', action='store_true', help='the mean over tokens')
    p.add_argument('--draws', type=int, default=DRAWS, help=f'shuffles of each null [{DRAWS}]')
    p.add_argument('--set', action='append', default=[], metavar='FIELD=VALUE', help='change a field of the task')
    p.add_argument('--data_dir', help='recordings [$JBENCH_DATA]')
    p.add_argument('--workdir', help='[$JBENCH_WORKDIR, ./jbench-work]')
    p.add_argument('--simulated', choices=('auto', 'yes', 'no'), help='stand-in for absent sets [auto]')
    report_arguments.output_format(p)
    return p


def _started(args: argparse.Namespace) -> Iterator[ModelShares]:
    """Models at the weights from which training starts."""
    flags = {
        'task': args.task,
        'model': args.model or 'eegnet',
        'weights': args.weights,
        'seeds': SEED if args.seed is None else args.seed,
    }
    flags |= {name: getattr(args, name) for name in ('data_dir', 'workdir', 'simulated')}
    given = [f'--{name}={value}' for name, value in flags.items() if value is not None]
    asked = arguments.parse([*given, *(f'--set={change}' for change in args.set)])
    if len(asked.seeds) > 1:
        raise RequestError(f'--seed={args.seed}: expected one integer')
    changes = request.changes(asked.set, None)
    plan = request.plan(
        request.Request(asked.task, asked.model, changes, asked.simulated, weights=asked.weights),
        asked.data_dir,
        asked.workdir,
    )
    networks = [cell for cell in plan.cells if cell.model.kind == 'network']
    if not networks:
        raise RequestError(f'--model={asked.model}: estimators have no features; only networks do')
    plan = plan._replace(cells=networks)
    found = start.of_plan(plan, asked.data_dir, asked.workdir, asked.seeds[0], layer=args.layer, pooled=args.pooled)
    for cell, features in zip(networks, found, strict=True):
        where = f'{cell.task.full_name}@{cell.task.version}/{cell.dataset.name}'
        yield _row(features, 'start', where + ' (simulated)' * cell.dataset.simulated, args.draws)


def _trained(args: argparse.Namespace) -> Iterator[ModelShares]:
    """Trained networks, on the windows that they were tested with: of others they know the subjects."""
    from jbench.trained import load_model

    for path in args.results:
        try:
            model = load_model(path, model=args.model)
        except FileNotFoundError as error:
            raise RequestError(f'{path}: no such result; expected the path of a seed33.json') from error
        cell = model.cell
        where = f'{cell.task.full_name}@{cell.task.version}/{cell.dataset.name}'
        features = model.features(layer=args.layer, pooled=args.pooled, split='test')
        yield _row(features, f'trained: {path}', where + ' (simulated)' * cell.dataset.simulated, args.draws)


def _row(features: Features, weights: str, where: str, draws: int) -> ModelShares:
    from jbench.report.identity import partition

    found = partition(features.values, features.subjects, features.y, draws)
    return ModelShares(features.model, weights, where, features.layer, features.values[0].size, found)


def _plain(row: ModelShares) -> dict[str, Any]:
    """A row as JSON has it."""
    found = row.found._asdict()
    for name in ('subject', 'target'):
        found[name] = found[name] and found[name]._asdict()
    return row._asdict() | {'found': found}


def _show(rows: list[ModelShares]) -> None:
    from jbench.report import text

    where = dict.fromkeys(f'{row.where}, layer {row.layer}' for row in rows)
    print('\n'.join(map(text.printable, where)))
    lines = [
        (
            text.printable(row.model) + ' (trained)' * row.weights.startswith('trained'),
            row.found.n_windows,
            row.found.n_subjects,
            *_cells(row.found.subject),
            *_cells(row.found.target),
            '-' if row.found.residual is None else f'{100 * row.found.residual:.1f}',
            row.found.meaning,
        )
        for row in rows
    ]
    print(text.table(HEADS, lines))
    print(textwrap.fill(LEGEND, text.WIDTH))


def _cells(share: Share | None) -> tuple[str, str, str]:
    """Share, chance and p of a table; '-' where there is none."""
    if share is None:
        return '-', '-', '-'
    p = '<0.001' if share.p < 0.001 else f'{share.p:.3f}'
    return f'{100 * share.share:.1f}', f'{100 * share.chance:.1f}', p
