"""`python -m jbench.launch slurm --plan=FILE`: a plan as text for Slurm, Kubernetes or SkyPilot. Nothing is started.

Exit status: 0; 2 the request or the plan are wrong.
"""

from __future__ import annotations

import sys

if __name__ == '__main__' and not (sys.flags.safe_path or __file__.startswith(f'{sys.path[0]}/jbench/')):
    del sys.path[0]  # as in jbench/run.py

import os

from jbench import files
from jbench.cli import launch
from jbench.grid.launchers import planned
from jbench.progress import say
from jbench.spec.errors import RequestError


def main(argv: list[str] | None = None) -> int:
    """Write the text; returns the exit status."""
    try:
        engine, args = launch.parse(sys.argv[1:] if argv is None else argv)
        text = launch.text(engine, planned.read(args.plan, everything=args.everything), args)
        if args.out is None:
            print(text, end='')
            sys.stdout.flush()
        else:
            files.write_atomic(args.out, text.encode())
            say(f'written: {args.out}; its first lines say how it is started')
    except RequestError as error:
        say(f'jbench.launch: {error}')
        return 2
    except BrokenPipeError:  # the reader has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == '__main__':
    sys.exit(main())
