"""`python -m jbench.submit --results=FILE --track=2026-2 --out=ZIP`: the archive of a challenge, tried before it is
written. Exit status: 0; 2 the request is wrong, or the archive fails; 130
stopped."""

from __future__ import annotations

import os
import sys

if __name__ == '__main__' and not (sys.flags.safe_path or __file__.startswith(f'{sys.path[0]}/jbench/')):
    del sys.path[0]  # as in jbench/run.py

from jbench.cli import submit as command
from jbench.cli.environment import without_triton
from jbench.progress import say
from jbench.spec.errors import RequestError


def _print(line: str) -> None:
    """One line, at once; where the reader has left, as `head` does, the archive is still made."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(argv: list[str] | None = None) -> int:
    """Write the archive; returns the exit status."""
    try:
        args = command.parse(sys.argv[1:] if argv is None else argv)
        without_triton()
        from jbench.submit import make

        for line in make.twins() if args.list else make.make(args.results, args.track, args.out):
            _print(line)
    except RequestError as error:
        say(f'jbench.submit: {error}')
        return 2
    except KeyboardInterrupt:
        say('jbench.submit: stopped; nothing was written')
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
