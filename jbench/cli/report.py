"""`python -m jbench.report`, the same as `jbench report`: tables of many results, and what else is made of them.

A subcommand is a function of its arguments that returns the exit status, and a line of COMMANDS.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.cli.arguments import known
from jbench.cli.report_arguments import also, flat, output_format, parser
from jbench.spec.errors import MissingExtraError, RequestError, unknown

if TYPE_CHECKING:
    from jbench.report.summary import Report


def main(argv: list[str]) -> int:
    """Run what the arguments ask for; returns the exit status. Raises: RequestError."""
    word = argv[0] if argv else ''
    if word in COMMANDS:  # a folder of that name is ./verify
        return COMMANDS[word](argv[1:])
    if word and not word.startswith('-') and Path(word).name == word and not Path(word).is_dir():
        raise unknown('command of jbench report', word, COMMANDS)
    return _report(argv)


def _report(argv: list[str]) -> int:
    """Tables of all results below some folders."""
    p = parser('', 'Which model is best, over the results below some folders; nothing is trained.')
    p.epilog = f'commands instead of folders: {", ".join(COMMANDS)} (./verify: a folder); jbench report COMMAND --help'
    p.add_argument('folders', nargs='*', help=argparse.SUPPRESS)  # those that follow `--results=DIR`
    p.add_argument('--results', action='append', nargs='+', default=[], metavar='DIR', help='folders with results')
    p.add_argument('--out', metavar='DIR', help='write summary.json and tables as CSV there')
    p.add_argument(
        '--figures', choices=('yes', 'no'), help='figures in DIR/figures [yes, where matplotlib is]; no: old ones go'
    )
    p.add_argument('--site', action='store_true', help='write a leaderboard there, too: site/index.html')
    also(p)
    p.add_argument('--published', metavar='FILE', help='CSV file of published scores to stand beside')
    output_format(p)
    args = known(p, argv)
    folders = [*flat(args.results), *args.folders]
    if not folders:
        raise RequestError('--results is missing, e.g. --results=jbench-work; a work folder or any folder of results')
    if args.site and not args.out:
        raise RequestError('--site writes a folder of pages: name it, e.g. --out=report')
    from jbench.report import calibrations, summary, text

    found = summary.collect(folders, args.also, args.published)
    if not found.n_files:
        raise RequestError(f'no results under {", ".join(folders)}; expected .../seed33.json at any depth')
    told = ''
    if args.out or args.format == 'json':
        found = found._replace(beside=calibrations.of_rows(found.rows))
    if args.out:
        summary.write(found, args.out)
        told = calibrations.write(found.scores, found.beside, args.out) + '\n'
    told += _figures(found, args)
    if args.site:
        from jbench.report.site import build

        build.build(found, args.out)
    if args.format == 'json':
        print(text.as_json(summary.as_dict(found)))
    else:
        from jbench.cli.console import Output

        summary.show(found, Output())
        if told:
            print(f'\n{told.strip()}')
    return 0


def _figures(found: Report, args: argparse.Namespace) -> str:
    """Draw what some results allow below `--out`; what is to be said of it. Raises: RequestError."""
    if args.figures == 'yes' and not args.out:
        raise RequestError('--figures=yes needs --out=DIR, where they are written')
    if not args.out:
        return ''
    from jbench.report.figures import all as every
    from jbench.report.figures import style

    place = Path(args.out, 'figures')
    if args.figures == 'no':
        return _removed(every.remove(place), place)
    try:
        style.require()
    except MissingExtraError as error:
        if args.figures == 'yes':
            raise
        return f'no figures: {error}. {_removed(every.remove(place), place)}'
    made = every.write(found.scores, place, found.alignment)
    return f'{len(made.figures)} figures in {place}; {len(made.left_out)} not drawn, with the reasons in left_out.csv'


def _removed(n: int, place: Path) -> str:
    """What is said of figures that were of other tables."""
    return f'{n} figures of an earlier report removed from {place}' if n else ''


def _published(argv: list[str]) -> int:
    """Ranks of published scores, and how they differ from the ranks that the file gives."""
    p = parser('published', 'Models of published scores by rank, with the code that ranks our own.')
    p.add_argument('file', metavar='FILE', help='CSV file: device,task,dataset,model,category,metric,mean,std,n_seeds')
    output_format(p)
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
    p = parser(
        'verify', 'Check results that somebody hands in: schema, digests, scores from predictions, protocol, place.'
    )
    p.add_argument('folders', nargs='+', metavar='DIR', help='folders with results')
    p.add_argument('--without_predictions', action='store_true', help='take scores as written: no .npz lies beside')
    args = known(p, argv)
    from jbench.report import verify
    from jbench.report.text import printable
    from jbench.results import index, place

    paths = index.result_paths(args.folders, parts=True)
    if not paths:
        raise RequestError(f'no results under {", ".join(args.folders)}; expected .../seed33.json at any depth')
    n_problems = n_wrong = 0
    for path in paths:
        problems = verify.problems(path, predictions=not args.without_predictions)
        for problem in problems:
            print(printable(problem))
        n_problems, n_wrong = n_problems + len(problems), n_wrong + bool(problems)
    n_folds = sum(place.is_fold(Path(path)) for path in paths)
    folds = f' ({n_folds} of them folds)' if n_folds else ''
    print(f'{len(paths)} results{folds}, {n_wrong} with problems ({n_problems} in all)')
    return int(bool(n_problems))


def _compare(argv: list[str]) -> int:
    """Two models, paired by subject."""
    p = parser('compare', 'Is A better than B? Paired by subject, task by task and over datasets.')
    p.add_argument('words', nargs='*', metavar='A B', help='each a model, a result file, or a folder with its results')
    where = os.environ.get('JBENCH_WORKDIR', './jbench-work')
    flag = '--results'
    p.add_argument(flag, action='append', nargs='+', default=[], metavar='DIR', help=f'folders with results [{where}]')
    also(p)
    output_format(p)
    args = known(p, argv)
    from jbench.report import compare_sides, text

    given = flat(args.results)
    missing = max(0, 2 - len(args.words))  # `--results DIR A B` took A and B for folders
    last = len(given) - (missing if args.results and len(args.results[-1]) > missing else 0)
    words = [*args.words, *given[last:]]
    folders = [*given[:last], *words[2:]] or [where]
    if len(words) < 2:
        raise RequestError(
            'two models, result files or folders are compared, e.g. jbench compare eegnet shallow_fbcsp_net'
        )
    if len(args.words) > 2 and (third := next((w for w in args.words[2:] if not Path(w).is_dir()), '')):
        raise RequestError(
            f'compare takes two models, result files or folders, and {third} is one more: compare it by itself; models '
            'are looked for in --results=DIR'
        )
    found = compare_sides.compared(words[0], words[1], folders, args.also)
    if args.format == 'json':
        from jbench.report import compare

        print(text.as_json(compare.plain(found)))
    else:
        from jbench.cli.console import Output
        from jbench.report import compare_table

        compare_table.show(found, Output())
    return 0


def _export(argv: list[str]) -> int:
    """Scores in the form of another place."""
    p = parser('export', 'Scores for another place: a tree as of MTEB, the model-index of a model card, a table.')
    p.add_argument('--to', required=True, choices=('mteb', 'huggingface', 'latex', 'markdown'), help='the form')
    p.add_argument('--results', action='append', nargs='+', required=True, metavar='DIR', help='folders with results')
    p.add_argument('--out', metavar='PATH', help='of mteb the folder; of the others a file [stdout]')
    also(p)
    args = known(p, argv)
    if args.to == 'mteb' and not args.out:
        raise RequestError('--to=mteb writes a folder of files: name it by --out=DIR')
    from jbench import files
    from jbench.report import exports, summary

    folders = flat(args.results)
    scores = summary.collect(folders, args.also).scores
    if not scores:
        raise RequestError(f'no score that counts under {", ".join(folders)}; jbench report --results=DIR says why')
    if args.to == 'mteb':
        print(f'{len(exports.mteb(scores, Path(args.out)))} files under {args.out}/results')
        return 0
    made = {'huggingface': exports.huggingface, 'latex': exports.latex, 'markdown': exports.markdown}[args.to](scores)
    if args.out:
        files.write_atomic(Path(args.out), made.encode())
    else:
        print(made, end='')
    return 0


def _sync(argv: list[str]) -> int:
    """Logs of epochs and results, replayed into a tracker."""
    p = parser('sync', 'Replay what was logged while networks trained, and their scores, into a tracker.')
    p.add_argument('--to', required=True, choices=('tensorboard', 'wandb'), help='the tracker')
    p.add_argument('--workdir', default=os.environ.get('JBENCH_WORKDIR', './jbench-work'), help='[./jbench-work]')
    p.add_argument('--out', metavar='DIR', help='files of the tracker [WORKDIR/tracking]')
    p.add_argument('--project', default='jbench', help='of wandb [jbench]')
    args = known(p, argv)
    from jbench.report import text, tracking

    workdir = Path(args.workdir)
    out = Path(args.out) if args.out else workdir / 'tracking'

    def say(what: str) -> None:
        print(f'jbench: {text.printable(what)}', file=sys.stderr)

    names = tracking.sync(workdir, args.to, out, project=args.project, say=say)
    print(f'{len(names)} runs in {out}')
    return 0


def _autopsy(argv: list[str]) -> int:
    """The page of one run, and its findings on stdout."""
    p = parser('autopsy', 'What the answers of one run rest on: a page with findings in words.')
    p.add_argument('result', metavar='RESULT', help='seed33.json in a work folder')
    p.add_argument('--out', metavar='DIR', help='where the page goes [WORKDIR/autopsy]')
    p.add_argument('--model', metavar='FILE:FUNCTION', help='the file of a network of your own')
    output_format(p)
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


def _identity(argv: list[str]) -> int:
    """What the variance of features is: the subject's, the target's, the rest."""
    from jbench.cli import identity

    return identity.main(argv)


def _robustness(argv: list[str]) -> int:
    """Scores of trained networks while channels fail."""
    from jbench.cli import robustness

    return robustness.main(argv)


COMMANDS: dict[str, Callable[[list[str]], int]] = {
    'published': _published,
    'autopsy': _autopsy,
    'verify': _verify,
    'compare': _compare,
    'export': _export,
    'sync': _sync,
    'identity': _identity,
    'robustness': _robustness,
}
