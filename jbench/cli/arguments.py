"""The command line as checked arguments."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NoReturn

from jbench.spec.errors import RequestError, unknown
from jbench.version import __version__

STAGES = ('download', 'prepare', 'train', 'report', 'check')
DEFAULT = STAGES[1:4]  # each does what is missing
ASKED = ('--task', '--model', '--set', '--config', '--debug', '--simulated', '--exclude_bad')  # what a cell says
IF_EXISTS = ('skip', 'resume', 'overwrite', 'fail')


class Parser(argparse.ArgumentParser):
    """argparse whose errors suggest the flag that was meant."""

    def error(self, message: str) -> NoReturn:
        raise RequestError(message)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog='jbench',
        description='How well does a model decode brain recordings?',
        allow_abbrev=False,
        epilog='example: python -m jbench.run --task=bci --model=eegnet; `jbench cite RESULT...`: BibTeX of results; '
        '`jbench report --help`: tables of many results',
    )
    p.add_argument(
        '--task',
        help='task[@version][/dataset], category, suite, comma list, or all; alignment/NAME: a model beside a brain',
    )
    p.add_argument(
        '--model',
        default='eegnet',
        help='model[:option=value], group (classic, foundation, baselines, all), path/to/file.py:function, comma list '
        '[eegnet]',
    )
    p.add_argument(
        '--weights',
        help="that pretrained models start from: FILE, a folder of MODEL/FILE, or 'none' (random ones) [the published "
        'ones, which --download fetches]',
    )
    p.add_argument('--seeds', default='33,34,35', help='model seeds [33,34,35]; data and split seeds stay 33')
    p.add_argument(
        '--stage',
        help=f'only these of {",".join(STAGES)}; check: a page of what the data hold; report alone needs no --task '
        '[what is missing]',
    )
    p.add_argument(
        '--download', action='store_true', help='fetch what is missing first; --stage=download does that alone'
    )
    p.add_argument('--prepare', action='store_true', help='short for --stage=prepare')
    p.add_argument(
        '--data_dir',
        default=os.environ.get('JBENCH_DATA'),
        help='recordings: DIR/<dataset>/..., read, and written by --download alone [$JBENCH_DATA, else WORKDIR/data '
        'where that is, or is made by --download]',
    )
    p.add_argument(
        '--workdir',
        default=os.environ.get('JBENCH_WORKDIR', './jbench-work'),
        help='everything that jbench writes [./jbench-work]',
    )
    p.add_argument(
        '--simulated', default='auto', choices=('auto', 'yes', 'no'), help='stand-in for absent Core datasets [auto]'
    )
    p.add_argument(
        '--set', action='append', default=[], metavar='FIELD=VALUE', help='change a field, e.g. recipe.max_epochs=5'
    )
    p.add_argument(
        '--cell', metavar='FILE', help='run what a JSON file says: a cell of --dry_run --format=json, or a result'
    )
    p.add_argument('--config', metavar='FILE', help='the same in a Python file: get() -> {FIELD: VALUE}')
    p.add_argument('--if_exists', default='resume', choices=IF_EXISTS, help='finished and half-done seeds [resume]')
    p.add_argument(
        '--keep_weights',
        default='yes',
        choices=('yes', 'no'),
        help='of tested networks, beside their results [yes]',
    )
    p.add_argument(
        '--exclude_bad',
        action='store_true',
        help="leave out recordings of one's own data that are refused, and say so in the results",
    )
    p.add_argument('--list', action='store_true', help='tasks, datasets, models, suites')
    p.add_argument('--info', metavar='NAME', help='everything about one task, dataset or model')
    p.add_argument('--dry_run', action='store_true', help='show the plan and stop')
    p.add_argument('--verbose', action='store_true', help='with --dry_run: every cell, however many there are')
    p.add_argument('--debug', action='store_true', help='two epochs on few windows, marked debug')
    p.add_argument('--device', choices=('cpu', 'gpu', 'tpu'), help='where to compute [what jax finds]')
    p.add_argument(
        '--distributed',
        action='store_true',
        help='one of several processes that share the work folder (TPU pod, Slurm, ...)',
    )
    p.add_argument('--version', action='version', version=f'jbench {__version__}', help='show it and stop')
    p.add_argument('--format', default='table', choices=('table', 'json'), help='last output on stdout [table]')
    return p


def known(p: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The arguments of a parser. Raises: RequestError for an unknown one, with the flag that was meant."""
    args, rest = p.parse_known_intermixed_args(argv)
    if rest:
        flags = [f for a in p._actions for f in a.option_strings]
        raise unknown('argument', rest[0].partition('=')[0], flags)
    return args


def parse_cite(argv: list[str]) -> list[Path]:
    """The result files of `jbench cite RESULT...`, without the word `cite`. Raises RequestError."""
    p = Parser(prog='jbench cite', description='BibTeX of what results rest on, on stdout.', allow_abbrev=False)
    p.add_argument('results', nargs='+', metavar='RESULT', type=Path, help='result file, .../seed33.json')
    return p.parse_args(argv).results


def parse(argv: list[str]) -> argparse.Namespace:
    """Arguments, with unknown flags suggested and unused ones refused. Raises RequestError."""
    args = known(parser(), argv)
    given = [flag for flag in ASKED if flag in (a.partition('=')[0] for a in argv)]
    if args.cell and given:
        raise RequestError(f'--cell={args.cell} and {given[0]}: the cell says that already; leave one out')
    if args.verbose and not args.dry_run:
        raise RequestError('--verbose: unused without --dry_run, whose plan it lists cell by cell')
    everything = args.stage == 'report' and not (args.task or args.cell)  # whatever lies in the work folder
    if everything and (
        chosen := [f for f in (*ASKED, '--weights', '--seeds') if f in (a.partition('=')[0] for a in argv)]
    ):
        raise RequestError(f'--stage=report without --task shows every result; {chosen[0]} needs --task')
    if not (args.task or args.cell or args.list or args.info or everything):
        raise RequestError('--task is missing, e.g. --task=bci; --list shows the tasks')
    args.set += ['exclude_bad=yes'] * args.exclude_bad
    short = ['download'] * args.download + (['prepare'] if args.prepare else list(DEFAULT) * args.download)
    if args.stage and short:
        raise RequestError(f'--stage={args.stage} and --{short[0]} ask for different things: use one')
    stages = args.stage.split(',') if args.stage else short or list(DEFAULT)
    for s in stages:
        if s not in STAGES:
            raise unknown('stage', s, STAGES)
    if 'check' in stages and {'train', 'report'} & {*stages}:
        raise RequestError(f'--stage={args.stage}: check shows the data alone; train in another run')
    if 'check' in stages:
        args.model = 'dummy'  # one that fits every target: the data are the same for all
    args.stages, args.keep_weights = stages, args.keep_weights == 'yes'
    try:
        args.seeds = [int(s) for s in args.seeds.split(',')]
    except ValueError:
        raise RequestError(f'--seeds={args.seeds}: expected integers, e.g. --seeds=33,34,35') from None
    if len(set(args.seeds)) < len(args.seeds) or not 0 <= min(args.seeds) <= max(args.seeds) < 2**32:
        raise RequestError(f'--seeds: expected different integers from 0 to 2^32 - 1, got {args.seeds}')
    args.workdir = Path(args.workdir)
    args.data_dir = _data_dir(args.data_dir, args.workdir, fetched='download' in stages and not args.dry_run)
    return args


def _data_dir(given: str | None, workdir: Path, *, fetched: bool) -> Path | None:
    """The folder of the recordings; None for none. Where they are `fetched` it is made later."""
    if not given:
        own = workdir / 'data'
        return own if fetched or own.is_dir() else None
    folder = Path(given)
    if not folder.is_dir() and not (fetched and not folder.exists()):
        raise RequestError(f'--data_dir={given}: no such folder')
    return folder
