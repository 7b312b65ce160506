"""Write the leaderboard: a folder of pages that open from disk and ask no server for anything."""

from __future__ import annotations

import csv
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from jbench import files
from jbench.report import aggregate
from jbench.report.aggregate import Score
from jbench.report.figures.all import INDEX
from jbench.report.site import pages
from jbench.report.site.markup import Addresses, addresses
from jbench.report.site.pages import Figure
from jbench.report.summary import Report
from jbench.report.text import unharmed
from jbench.results import place
from jbench.results.index import LeftOut
from jbench.results.origin import believable
from jbench.spec.errors import RequestError

ASSETS = ('style.css', 'theme.js', 'table.js')
STEM = re.compile(r'[A-Za-z0-9@_-][A-Za-z0-9@._-]*')  # of a figure's files
MARK = 'assets/theme.js'  # a folder with this file is a site of ours, which may be replaced


def build(report: Report, out: str | os.PathLike[str]) -> Path:
    """Write the site at `<out>/site`, which is replaced; figures come from `<out>/figures`.

    Args:
        report: from `summary.collect`.
        out: the folder of the report.

    Returns: the path of the first page.

    Raises: RequestError where the folder holds something else, or the disk refuses.
    """
    home = Path(out) / 'site'
    if home.exists() and not (home / MARK).is_file() and not (home.is_dir() and not any(home.iterdir())):
        raise RequestError(f'{home}: holds something that is no site of jbench; remove it, or name another --out')
    scores = [*aggregate.averages(report.rows), *(s for s in report.scores if s.origin == 'published')]
    new = Path(out) / '.site.new'
    shutil.rmtree(new, ignore_errors=True)
    try:
        for folder in ('tasks', 'models', 'datasets', 'assets', 'figures'):
            files.make_dir(new / folder)
        figures = _copy_figures(Path(out) / 'figures', new / 'figures')
        content = pages.Content(
            scores,
            report.rows,
            _relative(report.left_out, report.folders),
            figures,
            _addresses(scores),
            _foot([row.date for row in report.rows] + [r['date'] for r in report.alignment]),
            report.beside,
            report.alignment,
        )
        for address, text in pages.every(content):
            (new / address).write_text(text, encoding='utf-8')
        for name in ASSETS:
            text = resources.files('jbench.report.site').joinpath(name).read_text(encoding='utf-8')
            (new / 'assets' / name).write_text(text, encoding='utf-8')
        shutil.rmtree(home, ignore_errors=True)
        new.rename(home)
    except OSError as error:
        raise RequestError(f'cannot write {home}: {error.strerror}') from error
    return home / 'index.html'


def _addresses(scores: Sequence[Score]) -> Addresses:
    return Addresses(
        addresses('tasks', (f'{s.task}@{s.version}' for s in scores)),
        addresses('models', (s.model for s in scores)),
        addresses('datasets', (s.dataset for s in scores)),
    )


def _copy_figures(source: Path, to: Path) -> list[Figure]:
    """Copy those figures, with their data, that the index of a folder names and that are there."""
    if not (source / INDEX).is_file():
        return []
    with open(source / INDEX, newline='', encoding='utf-8', errors='replace') as file:
        lines = [{k: unharmed(line.get(k) or '') for k in Figure._fields} for line in csv.DictReader(file)]
    found = [Figure(**line) for line in lines if STEM.fullmatch(line['stem'])]
    found = [f for f in found if all((source / f'{f.stem}.{ending}').is_file() for ending in ('svg', 'csv'))]
    for figure in found:
        for ending in ('svg', 'csv'):
            shutil.copyfile(source / f'{figure.stem}.{ending}', to / f'{figure.stem}.{ending}')
    return found


def _foot(dates: Sequence[str | None]) -> str:
    """When the newest result was made, of dates that can be believed: a site of the same results is the same."""
    newest = max((date for date in dates if date and believable(date)), default='')
    return 'Made by jbench from result files' + (f'; the newest is of {newest}' if newest else '')


def _relative(left_out: Iterable[LeftOut], folders: Sequence[str]) -> list[LeftOut]:
    """Paths from the name of the folder that was asked for, of a store too, so that nothing tells on which machine they
    lay."""
    here = {folder: place.local(folder) for folder in folders}
    names = {f'{at.rstrip(os.sep)}{os.sep}': f'{os.path.basename(os.path.abspath(f))}/' for f, at in here.items()}
    found = list(left_out)
    for folder in sorted(names, key=len, reverse=True):
        found = [LeftOut(*(text.replace(folder, names[folder]) for text in x)) for x in found]
    return found
