"""The arguments of `python -m jbench.launch`, checked."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from jbench.cli.arguments import Parser, known
from jbench.grid.launchers import kubernetes, skypilot, slurm
from jbench.grid.launchers.planned import Planned
from jbench.spec.errors import RequestError, unknown

ENGINES = {'slurm': slurm, 'kubernetes': kubernetes, 'skypilot': skypilot}
USAGE = 'python -m jbench.launch slurm|kubernetes|skypilot --plan=FILE ... (`slurm --help`: its flags)'
PATTERNS = {  # what would otherwise be refused, or misread, by the engine, far from here
    'time': (r'\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}', 'minutes, HH:MM:SS or DAYS-HH'),
    'accelerator': (r'none|[A-Za-z][\w./-]*(:[\w.-]+)*(:\d+)?', 'a name and how many, as gpu:1'),
    'memory': (r'\d+(G|Gi|GB)', 'gigabytes, as 16G'),
    'image': (r'[\w][\w./:@-]*', 'the name of an image, as ghcr.io/me/jbench:1'),
    'secret': (r'[a-z0-9]([a-z0-9.-]*[a-z0-9])?', 'the name of a Secret'),
    'queue': (r'[a-z0-9]([a-z0-9.-]*[a-z0-9])?', 'the name of a LocalQueue of Kueue'),
}


def parser(engine: str) -> argparse.ArgumentParser:
    """The command line of one engine."""
    p = Parser(
        prog=f'jbench.launch {engine}',
        description=f'A plan as text for {engine.capitalize()}, on stdout; nothing is started.',
        allow_abbrev=False,
    )
    usual = ENGINES[engine].Options._field_defaults
    p.add_argument(
        '--plan', required=True, metavar='FILE', help='as `python -m jbench.run --task=... --plan` writes it'
    )
    p.add_argument('--everything', action='store_true', help='cells that have their results, or run now, as well')
    p.add_argument('--out', metavar='FILE', type=Path, help='where the text goes [stdout]')
    name = usual['accelerator'].rpartition(':')[0]
    p.add_argument('--accelerator', help=f"of a cell, or 'none' [{name}:N, N as --gpus_per_cell of the plan]")
    p.add_argument('--memory', default='', help='of a job [the largest that the plan expects]')
    p.add_argument('--cpus', type=int, default=usual['cpus'], help=f'of a job [{usual["cpus"]}]')
    p.add_argument('--setup', default='', metavar='SHELL', help="before the command, as '. venv/bin/activate'")
    if engine != 'skypilot':
        p.add_argument('--at_once', type=int, default=0, metavar='N', help='jobs that run at once [as many as can]')
    if engine == 'slurm':
        p.add_argument(
            '--time', default=usual['time'], help='limit; a cell that reaches it goes on in a new turn [04:00:00]'
        )
        p.add_argument(
            '--array_size',
            type=int,
            default=usual['array_size'],
            help='of one array; MaxArraySize of Slurm less 1 [1000]',
        )
        p.add_argument(
            '--sbatch', action='append', default=[], metavar='OPTION', help='one more, as --sbatch=--partition=gpu'
        )
    else:
        image = 'with jbench in it' if engine == 'kubernetes' else "of Docker, with jbench in it [SkyPilot's own]"
        p.add_argument('--image', required=engine == 'kubernetes', default='', help=image)
        p.add_argument(
            '--volume', action='append', default=[], metavar='NAME:/FOLDER', help='that holds the folders of the plan'
        )
    if engine == 'kubernetes':
        p.add_argument('--secret', default='', help='its entries become environment variables: credentials of a store')
        p.add_argument('--queue', default='', help='of Kueue')
    if engine == 'skypilot':
        p.add_argument('--spot', choices=('yes', 'no'), default='yes', help='machines that may be taken away [yes]')
    return p


def parse(argv: list[str]) -> tuple[str, argparse.Namespace]:
    """The engine and its arguments. Raises: RequestError for what is wrong with them."""
    if argv and argv[0] in ('-h', '--help'):
        print(f'usage: {USAGE}')
        raise SystemExit(0)
    if not argv or argv[0].startswith('-'):
        raise RequestError(f'which engine? {USAGE}')
    if argv[0] not in ENGINES:
        raise unknown('engine', argv[0], ENGINES)
    args = known(parser(argv[0]), argv[1:])
    for name, (pattern, words) in PATTERNS.items():
        value = getattr(args, name, '')
        if value and not re.fullmatch(pattern, value):
            raise RequestError(f'--{name}={value}: expected {words}')
    for name, least in (('cpus', 1), ('array_size', 1), ('at_once', 0)):
        if getattr(args, name, least) < least:
            raise RequestError(f'--{name}={getattr(args, name)}: expected at least {least}')
    for option in getattr(args, 'sbatch', []):
        if not option.startswith('-') or not option.isprintable():
            raise RequestError(f'--sbatch={option}: expected an option of sbatch, as --sbatch=--partition=gpu')
    if hasattr(args, 'volume'):
        args.volume = tuple(map(_volume, args.volume))
    if argv[0] == 'skypilot' and not (args.image or args.setup):
        raise RequestError("skypilot: say what installs jbench on its machines: --setup='pip install ...', or --image")
    args.accelerator = '' if args.accelerator == 'none' else args.accelerator
    return argv[0], args


def _accelerator(engine: str, plan: Planned, asked: str | None) -> str:
    """What a cell is given, by default as many of the usual ones as the plan says."""
    name = str(ENGINES[engine].Options._field_defaults['accelerator']).rpartition(':')[0]
    return f'{name}:{max((job.devices for job in plan.cells), default=1)}' if asked is None else asked


def _volume(given: str) -> tuple[str, str]:
    """Name and folder of a volume. Raises: RequestError."""
    found = re.fullmatch(r'([a-z0-9][a-z0-9.-]*):(/[^:"\\]+)', given)
    if not found:
        raise RequestError(f'--volume={given}: expected a name and the folder that it is seen at, as work:/mnt/work')
    return found[1], found[2]


def text(engine: str, plan: Planned, args: argparse.Namespace) -> str:
    """What the engine is given. Raises: RequestError where it could not run the plan."""
    given: dict[str, Any] = {**vars(args), 'accelerator': _accelerator(engine, plan, args.accelerator)}
    shared = {name: given[name] for name in ('accelerator', 'memory', 'cpus', 'setup')}
    if engine == 'slurm':
        own = {name: given[name] for name in ('time', 'at_once', 'array_size')}
        return slurm.text(plan, slurm.Options(**shared, **own, more=tuple(args.sbatch)))
    if engine == 'kubernetes':
        own = {name: given[name] for name in ('at_once', 'image', 'secret', 'queue')}
        return kubernetes.text(plan, kubernetes.Options(**shared, **own, volumes=args.volume))
    more = {'image': args.image, 'volumes': args.volume, 'spot': args.spot == 'yes'}
    return skypilot.text(plan, skypilot.Options(**shared, **more))
