"""The arguments of `python -m jbench.submit`, checked."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from jbench.cli.arguments import Parser, known
from jbench.spec.errors import RequestError, unknown

TRACKS = ('2025', '2026-1', '2026-2', '2026-3', '2026-4')


def parser() -> argparse.ArgumentParser:
    """The command line."""
    p = Parser(
        prog='jbench.submit',
        description='The archive of an EEG challenge from the result of a trained network, tried before it is written.',
        allow_abbrev=False,
    )
    p.add_argument('--results', metavar='FILE[,FILE]', help='seed<k>.json of one seed; of 2025 two, C1 and C2')
    p.add_argument('--track', metavar='TRACK', help=', '.join(TRACKS))
    p.add_argument('--out', metavar='ZIP', type=Path, help='where the archive goes')
    p.add_argument('--list', action='store_true', help='the models that an archive can be made of, and nothing else')
    return p


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments. Raises: RequestError for what is wrong with them."""
    args = known(parser(), argv)
    if args.list:
        return args
    for name in ('results', 'track', 'out'):
        if not getattr(args, name):
            raise RequestError(f'--{name} is missing: python -m jbench.submit --results=FILE --track=2026-2 --out=ZIP')
    if args.track not in TRACKS:
        raise unknown('track', args.track, TRACKS)
    if args.out.suffix != '.zip':
        raise RequestError(f'--out={args.out}: expected a name that ends in .zip')
    if not args.out.parent.is_dir():
        raise RequestError(f'--out={args.out}: no folder {args.out.parent}')
    if args.out.is_dir():
        raise RequestError(f'--out={args.out}: a folder, expected the name of a file')
    if not os.access(args.out.parent, os.W_OK):
        raise RequestError(f'--out={args.out}: no permission to write in {args.out.parent}; choose another folder')
    args.results = [Path(name) for name in args.results.split(',')]
    return args
