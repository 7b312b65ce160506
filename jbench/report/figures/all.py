"""Every figure that some scores allow, and which are left out and why."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.report import order
from jbench.report.aggregate import Score
from jbench.report.figures import brains, each_task, over_tasks, style
from jbench.report.figures.plan import Absent, Plan
from jbench.report.text import as_csv

INDEX, LEFT_OUT = 'index.csv', 'left_out.csv'
ENDINGS = ('png', 'svg', 'csv')


class Written(NamedTuple):
    """What `write` made."""

    figures: list[str]  # stems
    left_out: list[tuple[str, str]]  # stem, and why


def write(
    scores: Sequence[Score], folder: str | os.PathLike[str], aligned: Sequence[Mapping[str, Any]] = ()
) -> Written:
    """Write every figure as PNG, SVG and CSV; index.csv (stem, kind, origin, task, dataset, title), and left_out.csv
    (stem, reason). Figures that an earlier index.csv names and that are not made now are removed.

    Args:
        scores: of one protocol for each dataset of a task (`ranks.one_protocol`).
        aligned: results of alignment, each with its `path`.

    Raises: RequestError without matplotlib, and where the disk refuses.
    """
    style.require()
    home = files.make_dir(folder)
    made: list[Plan] = []
    left_out: list[tuple[str, str]] = []
    models = order.of_scores(scores)
    for plan in [*over_tasks.plans(scores, models), *each_task.plans(scores, models), *brains.plans(aligned)]:
        try:
            figure, table = plan.make()
        except Absent as reason:
            left_out.append((plan.stem, str(reason)))
            continue
        except (ValueError, KeyError, IndexError, TypeError, OSError) as error:  # a file that no run writes
            left_out.append((plan.stem, f'damaged: {type(error).__name__}: {error}'))
            continue
        style.save(figure, table, home / plan.stem)
        made.append(plan)
    _remove_old(home, {plan.stem for plan in made})
    heads = [name for name in Plan._fields if name != 'make']
    lines = [{name: getattr(plan, name) for name in heads} for plan in made]
    files.write_atomic(home / INDEX, as_csv(lines, heads).encode())
    reasons = [{'stem': stem, 'reason': reason} for stem, reason in left_out]
    files.write_atomic(home / LEFT_OUT, as_csv(reasons, ['stem', 'reason']).encode())
    return Written([plan.stem for plan in made], left_out)


def remove(folder: str | os.PathLike[str]) -> int:
    """Remove the figures that an earlier `write` left in a folder, and its lists of them. Returns: how many figures."""
    home = Path(folder)
    n = _remove_old(home, set())
    if n is None:
        return 0
    for name in (INDEX, LEFT_OUT):
        (home / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody's own files are there
        home.rmdir()
    return n


def _remove_old(home: Path, stems: set[str]) -> int | None:
    """Remove the figures of an earlier report that this one has not. Returns: how many; None where none made any."""
    try:
        text = (home / INDEX).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError):
        return None
    named = csv.DictReader(text.splitlines())
    if 'stem' not in (named.fieldnames or ()):
        return None
    old = {row.get('stem') or '' for row in named} - stems
    old = {stem for stem in old if stem and style.stem(stem) == stem}  # a name that `write` gives
    for stem in old:
        for ending in ENDINGS:
            with files.explained(home / f'{stem}.{ending}', 0):
                (home / f'{stem}.{ending}').unlink(missing_ok=True)
    return len(old)
