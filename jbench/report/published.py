"""Published scores as ours are: rows of a CSV with one line a model and dataset."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence

from jbench.plan import select
from jbench.report.aggregate import Score, normalised
from jbench.report.ranks import Cell
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.task import full_name
from jbench.tasks.suites import SUITES

COLUMNS = ('device', 'task', 'dataset', 'model', 'category', 'metric', 'mean', 'std', 'n_seeds')
RANK = 'rank_published'  # a column that may be there
NAMES = {'full_retrieval/top5_acc_subject-agg': 'top5_acc'}  # metrics that are called otherwise here
FAMILIES = {'baseline': 'baselines'}
OURS = {'luna': 'luna_large', 'reve': 'reve_base'}  # names of models that have another one here
FLOORS = ('dummy', 'chance')  # models: the floor of a task is the score of the first that is there
VERSION = 1  # of the tasks: the published protocol


def read(path: str | os.PathLike[str]) -> list[Score]:
    """The scores of a CSV file with COLUMNS (a line a model and dataset; `mean` in per cent where METRICS says so; one
    without a number is missing), and `model_display`, how to call the model.

    Raises: RequestError for a file that is absent or lacks columns, and a line that is wrong.
    """
    scores = [s for where, line in _lines(path) if (s := _score(line, where)) is not None]
    cells: dict[tuple[str, str], dict[str, Score]] = {}
    for s in scores:
        if s.model in cells.setdefault((s.task, s.dataset), {}):
            raise RequestError(f'{path}: {s.model} on {s.task}/{s.dataset} stands there twice')
        cells[s.task, s.dataset][s.model] = s
    return [_with_floor(s, cells[s.task, s.dataset]) for s in scores]


def as_ours(scores: Sequence[Score]) -> list[Score]:
    """Scores of `read`, their models called as here (OURS), but for those whose name here another model of them has."""
    taken = {s.model for s in scores}
    return [s if (name := OURS.get(s.model, s.model)) in taken else s._replace(model=name) for s in scores]


def given_ranks(path: str | os.PathLike[str]) -> dict[Cell, dict[str, int]]:
    """The ranks that a CSV file gives in its column `rank_published`, as `ranks.ranks` has them; {} without it.

    They were made of means with more digits. Raises: as `read`.
    """
    found: dict[Cell, dict[str, int]] = {}
    for where, line in _lines(path):
        rank = _number((line.get(RANK) or '').strip(), f'{where}: {RANK}')
        s = None if rank is None else _score(line, where)
        if rank is not None and s is not None:
            found.setdefault((s.origin, s.task, s.dataset), {})[s.model] = int(rank)
    return found


def _lines(path: str | os.PathLike[str]) -> list[tuple[str, dict[str, str | None]]]:
    """The lines of a CSV file as dictionaries, and what messages call each. Raises: RequestError."""
    try:
        with open(path, newline='', encoding='utf-8') as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or ()
            lines = [(f'{path}: line {reader.line_num}', line) for line in reader]
    except OSError as error:
        raise RequestError(f'cannot read {path}: {error.strerror}') from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise RequestError(f'{path}: not a CSV file in UTF-8: {error}') from error
    absent = [name for name in COLUMNS if name not in columns]
    if absent:
        raise RequestError(f'{path}: lacks the column {absent[0]!r}; expected {", ".join(COLUMNS)}')
    return lines


def _score(line: Mapping[str, str | None], where: str) -> Score | None:
    """A line without its floor; None where it has no number. Raises: RequestError."""
    if short := [name for name in COLUMNS if line[name] is None]:
        raise RequestError(f'{where}: ends before the column {short[0]!r}')
    text = {name: str(line[name]).strip() for name in COLUMNS}
    name = text['metric'].removeprefix('test/')
    name = NAMES.get(name, name)
    if name not in METRICS:
        raise RequestError(f'{where}: unknown metric {text["metric"]!r}; known: {", ".join(METRICS)}')
    metric, unit = METRICS[name], 100 if METRICS[name].unit == 'per cent' else 1
    mean, sd = (_number(text[column], f'{where}: {column}') for column in ('mean', 'std'))
    n_seeds = _number(text['n_seeds'], f'{where}: n_seeds')
    if mean is None:
        return None
    task = full_name(text['device'], text['task'])
    known = select.tasks().get(task, ())
    core = not known or known[0].datasets[0] == text['dataset']
    suites = [s for s, suite in SUITES.items() if core and (task, VERSION) in suite.tasks]
    at = f'{task}@{VERSION}/{text["dataset"]}, {name}'
    return Score(
        device=text['device'],
        category=known[0].category if known else '',
        task=task,
        version=VERSION,
        dataset=text['dataset'],
        core=core,
        model=text['model'],
        title=(line.get('model_display') or text['model']).strip(),
        family=FAMILIES.get(text['category'], text['category']),
        origin='published',
        metric=name,
        better=metric.better,
        mean=mean / unit,
        sd=None if sd is None else sd / unit,
        n_seeds=int(n_seeds or 0),
        interval=None,
        n_subjects=None,
        chance=None,
        floor=None,
        normalised=None,
        per_subject={},
        seconds={},
        n_parameters=None,
        suite=suites[0] if suites else None,
        protocol=f'{at}, published',
        changes=(),
        metrics={},
        pretraining=(),
        seen_beside=False,
        date=None,
        paths=(),
    )


def _number(text: str, where: str) -> float | None:
    """A finite number; None for '', 'nan' and the like. Raises: RequestError for other words."""
    try:
        value = float(text or 'nan')
    except ValueError:
        raise RequestError(f'{where}: {text!r} is not a number') from None
    return value if math.isfinite(value) else None


def _with_floor(score: Score, models: Mapping[str, Score]) -> Score:
    """A score with the floor that the other models of the dataset give it."""
    floors = [models[name].mean for name in FLOORS if name in models]
    chance, floor = models['chance'].mean if 'chance' in models else None, floors[0] if floors else None
    return score._replace(chance=chance, floor=floor, normalised=normalised(score.mean, floor, score.metric))
