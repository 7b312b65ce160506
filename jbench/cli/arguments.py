"""The command line as checked arguments."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import NoReturn

from jbench.spec.errors import RequestError, unknown
from jbench.stores import address, mirror
from jbench.version import __version__

FINDERS = ('find_lr', 'find_batch')
SEARCH = 'search'
STAGES = ('download', 'prepare', 'train', 'report', 'check', *FINDERS, SEARCH)
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
        help=f'only these of {",".join(STAGES)}; check: a page of what the data hold; find_lr, find_batch: '
        'a learning rate, a batch size, with its curve; search: trials of a space of fields (--search); report alone '
        'needs no --task [what is missing]',
    )
    p.add_argument(
        '--search', metavar='FILE', help='with --stage=search: a Python file, get() -> {FIELD: choices or range}'
    )
    p.add_argument('--trials', type=int, default=20, metavar='N', help='of a search, beside the recipe as it is [20]')
    p.add_argument(
        '--download', action='store_true', help='fetch what is missing first; --stage=download does that alone'
    )
    p.add_argument('--prepare', action='store_true', help='short for --stage=prepare')
    p.add_argument(
        '--data_dir',
        default=os.environ.get('JBENCH_DATA'),
        help='recordings: DIR/<dataset>/..., read, and written by --download alone; or s3://..., gs://..., az://... '
        '[$JBENCH_DATA, else WORKDIR/data where that is, or is made by --download]',
    )
    p.add_argument(
        '--workdir',
        default=os.environ.get('JBENCH_WORKDIR', './jbench-work'),
        help='everything that jbench writes; or s3://..., gs://..., az://... (docs/stores.md) [./jbench-work]',
    )
    p.add_argument(
        '--simulated', default='auto', choices=('auto', 'yes', 'no'), help='stand-in for absent Core datasets [auto]'
    )
    p.add_argument(
        '--set', action='append', default=[], metavar='FIELD=VALUE', help='change a field, e.g. recipe.max_epochs=5'
    )
    p.add_argument(
        '--cell',
        metavar='FILE',
        action='append',
        default=[],
        help='run what a JSON file says: a cell of --dry_run --format=json, or a result; several: once for each',
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
        '--delete_raw_after',
        choices=('prepared',),
        help='deletes the recordings of published datasets under DATA_DIR once their prepared sets are verified; asks '
        'nothing [never]',
    )
    p.add_argument(
        '--exclude_bad',
        action='store_true',
        help="leave out recordings of one's own data that are refused, and say so in the results",
    )
    p.add_argument('--list', action='store_true', help='tasks, datasets, models, suites')
    p.add_argument('--info', metavar='NAME', help='everything about one task, dataset or model')
    p.add_argument('--dry_run', action='store_true', help='show the plan and stop')
    p.add_argument(
        '--verbose', action='store_true', help='with --dry_run, --plan, --status: every cell, however many there are'
    )
    p.add_argument('--debug', action='store_true', help='two epochs on few windows, marked debug')
    p.add_argument('--device', choices=('cpu', 'gpu', 'tpu'), help='where to compute [what jax finds]')
    p.add_argument(
        '--distributed',
        action='store_true',
        help='one of several processes that share the work folder (TPU pod, Slurm, ...)',
    )
    p.add_argument(
        '--jobs',
        metavar='N|auto',
        help='so many cells at once, each a process; auto: one an accelerator, else one for every two cores',
    )
    p.add_argument(
        '--cluster',
        metavar='ADDRESS|local:N|FILE.py',
        help='cells on a Dask cluster: that of a scheduler, N processes here, or what get() of a file gives',
    )
    p.add_argument(
        '--gpus_per_cell',
        type=int,
        default=1,
        metavar='N',
        help='with --plan, --jobs, --cluster: GPUs that a cell splits each batch over [1]',
    )
    p.add_argument(
        '--plan', action='store_true', help='write the cells as commands, with what they will take, and stop'
    )
    p.add_argument(
        '--status', action='store_true', help='what is done, running, failed, missing; without --task: of all plans'
    )
    p.add_argument('--version', action='version', version=f'jbench {__version__}', help='show it and stop')
    p.add_argument('--format', default='table', choices=('table', 'json'), help='last output on stdout [table]')
    return p


def known(p: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """The arguments of a parser. Raises: RequestError for an unknown one, with the flag that was meant."""
    args, rest = p.parse_known_intermixed_args(argv)
    if rest:
        flags = [f for a in p._actions for f in a.option_strings]
        raise unknown('argument', rest[0].partition('=')[0], flags, listed_by='--help')
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
        raise RequestError(f'--cell={args.cell[0]} and {given[0]}: the cell says that already; leave one out')
    if args.verbose and not (args.dry_run or args.plan or args.status):
        raise RequestError('--verbose: unused without --dry_run, --plan or --status, which it has list every cell')
    # whatever lies in the work folder
    everything = (args.stage == 'report' or args.status) and not (args.task or args.cell)
    if everything and (
        chosen := [f for f in (*ASKED, '--weights', '--seeds') if f in (a.partition('=')[0] for a in argv)]
    ):
        what = '--status without --task shows every plan' if args.status else '--stage=report without --task shows'
        raise RequestError(f'{what}{"" if args.status else " every result"}; {chosen[0]} needs --task')
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
    if (found := [s for s in stages if s in FINDERS]) and (more := {*stages} - {*FINDERS, 'download', 'prepare'}):
        raise RequestError(
            f'--stage={args.stage}: {found[0]} shows a curve and changes nothing; ask for {min(more)} in another run'
        )
    _search(args, stages)
    if found and args.distributed:
        raise RequestError(f'--stage={args.stage}: {found[0]} runs in one process; leave --distributed out')
    if 'check' in stages:
        args.model = 'dummy'  # one that fits every target: the data are the same for all
    apart = [f'--{name}' for name in ('distributed', 'plan', 'jobs', 'cluster') if getattr(args, name)]
    if args.delete_raw_after and (apart or 'prepare' not in stages or 'check' in stages):
        what = f'--stage={",".join(stages)}: it needs a run with the stage prepare, and without check'
        if apart:
            what = f'{apart[0]}: leave out {apart[0]}; one process must prepare all sets and verify them'
        raise RequestError(f'--delete_raw_after=prepared and {what}')
    _places(args, stages)
    args.stages, args.keep_weights = stages, args.keep_weights == 'yes'
    args.request = shlex.join(['python', '-m', 'jbench.run', *argv])
    try:
        args.seeds = [int(s) for s in args.seeds.split(',')]
    except ValueError:
        raise RequestError(f'--seeds={args.seeds}: expected integers, e.g. --seeds=33,34,35') from None
    if len(set(args.seeds)) < len(args.seeds) or not 0 <= min(args.seeds) <= max(args.seeds) < 2**32:
        raise RequestError(f'--seeds: expected different integers from 0 to 2^32 - 1, got {args.seeds}')
    args.workdir = mirror.local(args.workdir, '--workdir')
    args.data_dir = _data_dir(args.data_dir, args.workdir, fetched='download' in stages and not args.dry_run)
    return args


def _search(args: argparse.Namespace, stages: list[str]) -> None:
    """Check what is asked of a search. Raises: RequestError."""
    if (args.search is not None) != (SEARCH in stages):
        raise RequestError('--search=FILE and --stage=search go together: the file says what each field may be')
    if SEARCH not in stages:
        return
    apart = [f'--{name}' for name in ('distributed', 'plan', 'jobs', 'cluster', 'dry_run') if getattr(args, name)]
    if len(stages) > 1 or apart or args.cell:
        other = '--cell' if args.cell else apart[0] if apart else f'--stage={",".join(stages)}'
        raise RequestError(f'--stage=search and {other}: a search trains its own trials, one after the other, alone')
    if args.trials < 1:
        raise RequestError(f'--trials={args.trials}: expected at least 1')


def _places(args: argparse.Namespace, stages: list[str]) -> None:
    """Check where cells are to run. Raises: RequestError for flags that exclude each other."""
    names = ('dry_run', 'plan', 'status', 'jobs', 'cluster', 'distributed')
    given = [f'--{name}' for name in names if getattr(args, name) not in (None, False)]
    if len(given) > 1 and given != ['--dry_run', '--distributed']:
        raise RequestError(f'{given[0]} and {given[1]} ask for different things: use one')
    if args.jobs is not None and args.jobs != 'auto' and not (args.jobs.isdecimal() and int(args.jobs)):
        raise RequestError(f'--jobs={args.jobs}: expected a number of processes, from 1, or auto')
    if args.gpus_per_cell > 1 and args.device in ('cpu', 'tpu'):
        raise RequestError(
            f'--gpus_per_cell={args.gpus_per_cell} and --device={args.device}: a cell there takes no GPU'
        )
    if args.gpus_per_cell < 1 or (args.gpus_per_cell > 1 and not _engine(args)):
        raise RequestError(
            f'--gpus_per_cell={args.gpus_per_cell}: expected a number of GPUs, from 1, together with --plan, --jobs or '
            '--cluster; a command without them uses all GPUs that it sees'
        )
    if args.cluster == '':
        raise RequestError('--cluster=: expected the address of a scheduler, local:N or FILE.py')
    if args.status and (args.stage or args.download or args.prepare):
        raise RequestError('--status looks at what is there, and runs no stage; leave the stage out')
    if _engine(args) and ({'check', *FINDERS} & {*stages} or not {'prepare', 'train'} & {*stages}):
        raise RequestError(
            f'{given[0]}: prepares and trains; --stage={",".join(stages)} needs no process for each cell'
        )


def _engine(args: argparse.Namespace) -> bool:
    """Whether cells become commands of their own."""
    return bool(args.plan or args.jobs or args.cluster)


def _data_dir(given: str | None, workdir: Path, *, fetched: bool) -> Path | None:
    """The folder of the recordings; None for none. Where they are `fetched` it is made later."""
    if not given:
        own = workdir / 'data'
        return own if fetched or own.is_dir() else None
    folder = mirror.local(given, '--data_dir')
    if fetched and address.is_address(given):
        raise RequestError(f'--data_dir={given}: files are fetched into a folder; name one, then copy it there')
    if not folder.is_dir() and not (fetched and not folder.exists()):
        raise RequestError(f'--data_dir={given}: no such folder')
    return folder
