"""`python -m jbench.report`, the same as `jbench report`: tables of many results, and what else is made of them.

A subcommand is a function of its arguments that returns the exit status, and a line of COMMANDS.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from jbench.cli.arguments import Parser, known
from jbench.spec.errors import RequestError, unknown


def main(argv: list[str]) -> int:
    """Run what the arguments ask for; returns the exit status. Raises: RequestError."""
    if argv and not argv[0].startswith('-') and not Path(argv[0]).is_dir():
        if argv[0] not in COMMANDS:
            raise unknown('command of jbench report', argv[0], COMMANDS)
        return COMMANDS[argv[0]](argv[1:])
    return _report(argv)


def _report(argv: list[str]) -> int:
    """Tables of all results below some folders."""
    p = _parser('', 'Which model is best, over the results below some folders; nothing is trained.')
    p.epilog = f'commands instead of folders: {", ".join(COMMANDS)}; jbench report COMMAND --help'
    p.add_argument('folders', nargs='*', help=argparse.SUPPRESS)  # those that follow `--results=DIR`
    p.add_argument('--results', action='append', nargs='+', default=[], metavar='DIR', help='folders with results')
    p.add_argument('--out', metavar='DIR', help='write summary.json, models.csv, scores.csv, left_out.csv there')
    p.add_argument('--also', default='', help='count these too: simulated,partial,debug [none]')
    p.add_argument('--published', metavar='FILE', help='CSV file of published scores to stand beside')
    _format(p)
    args = known(p, argv)
    folders = [*(f for given in args.results for f in given), *args.folders]
    if not folders:
        raise RequestError('--results is missing, e.g. --results=jbench-work; a work folder or any folder of results')
    from jbench.report import summary, text

    found = summary.collect(folders, [word for word in args.also.split(',') if word], args.published)
    if not found.n_files:
        raise RequestError(f'no results under {", ".join(folders)}; expected .../seed33.json at any depth')
    if args.out:
        summary.write(found, args.out)
    if args.format == 'json':
        print(text.as_json(summary.as_dict(found)))
    else:
        from jbench.cli.console import Output

        summary.show(found, Output())
    return 0


def _published(argv: list[str]) -> int:
    """Ranks of published scores, and how they differ from the ranks that the file gives."""
    p = _parser('published', 'Models of published scores by rank, with the code that ranks our own.')
    p.add_argument('file', metavar='FILE', help='CSV file: device,task,dataset,model,category,metric,mean,std,n_seeds')
    _format(p)
    args = known(p, argv)
    from jbench.report import published_table, text

    found = published_table.as_dict(args.file)
    if args.format == 'json':
        print(text.as_json(found))
    else:
        from jbench.cli.console import Output

        published_table.show(found, Output())
    return 0


def _verify(argv: list[str]) -> int:
    """What speaks against the results below some folders, one line a problem; status 1 where there is any."""
    p = _parser('verify', 'Check results that somebody hands in: schema, digests, scores from predictions, place.')
    p.add_argument('folders', nargs='+', metavar='DIR', help='folders with results')
    args = known(p, argv)
    from jbench.report.text import printable
    from jbench.results import index, result_file

    paths = index.result_paths(args.folders)
    if not paths:
        raise RequestError(f'no results under {", ".join(args.folders)}; expected .../seed33.json at any depth')
    n_problems = n_wrong = 0
    for path in paths:
        problems = result_file.verify(path)
        for problem in problems:
            print(printable(problem))
        n_problems, n_wrong = n_problems + len(problems), n_wrong + bool(problems)
    print(f'{len(paths)} results, {n_wrong} with problems ({n_problems} in all)')
    return int(bool(n_problems))


def _autopsy(argv: list[str]) -> int:
    """The page of one run, and its findings on stdout."""
    p = _parser('autopsy', 'What the answers of one run rest on: a page with findings in words.')
    p.add_argument('result', metavar='RESULT', help='seed33.json in a work folder')
    p.add_argument('--out', metavar='DIR', help='where the page goes [WORKDIR/autopsy]')
    p.add_argument('--model', metavar='FILE:FUNCTION', help='the file of a network of your own')
    _format(p)
    args = known(p, argv)
    from jbench.cli import autopsy
    from jbench.report import text

    def say(what: str) -> None:
        print(f'autopsy: {what} ...', file=sys.stderr)

    try:
        page, found = autopsy.write(Path(args.result), args.out and Path(args.out), args.model, say)
    except FileNotFoundError as error:
        raise RequestError(f'{args.result}: no such result; expected the path of a seed33.json') from error
    if args.format == 'json':
        print(text.as_json({'page': str(page), 'findings': [one._asdict() for one in found]}))
    else:
        for one in found:
            print(f'- {text.printable(one.text)}')
        print(f'page: {page}')
    return 0


COMMANDS: dict[str, Callable[[list[str]], int]] = {'published': _published, 'verify': _verify, 'autopsy': _autopsy}


def _parser(command: str, words: str) -> Parser:
    """The parser of a command; all of them suggest the flag that was meant."""
    return Parser(prog=f'jbench report {command}'.strip(), description=words, allow_abbrev=False)


def _format(p: argparse.ArgumentParser) -> None:
    p.add_argument('--format', default='table', choices=('table', 'json'), help='on stdout [table]')
