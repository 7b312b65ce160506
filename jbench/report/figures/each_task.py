"""Figures of each dataset of a task: bars, two models by subject, learning curves, answers of the best model, and the
page of the dataset.

Figures of single results read one file of a cell: seed 33, or the lowest that is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench import results, targets
from jbench.report import marks
from jbench.report.aggregate import Score
from jbench.report.figures import answers, curves, dataset, style, tasks
from jbench.report.figures.plan import Absent, Plan, there
from jbench.report.statistics import calibration
from jbench.results import checked
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jbench.report.figures.style import Table

MOST = 40  # datasets of tasks of an origin that get figures
CLASSES = 100  # of a confusion matrix
SEED = 33
Drawn = tuple['Figure', 'Table']
Cell = tuple[str, str, str]  # origin, task, dataset


def plans(scores: Sequence[Score], models: Sequence[str]) -> Iterator[Plan]:
    """The figures of each dataset of a task.

    Args:
        models: their order.
    """
    cells: dict[Cell, list[Score]] = {}
    for s in scores:
        cells.setdefault((s.origin, s.task, s.dataset), []).append(s)
    chosen = _chosen(cells)
    for (origin, task, data), mine in sorted(cells.items()):
        first, best = mine[0], _best(mine)
        where = f'{task}@{first.version}, {data}'
        by_best = f'{where}: {style.name(best.model)}, seed {min(_seeds(best), default=SEED, key=_preferred)}'
        for kind, words, make in (
            ('bars', where, partial(_bars, mine, models)),
            ('pair', where, partial(_pair, mine)),
            ('curves', where, partial(_curves, mine, models)),
            ('confusion', by_best, partial(_answers, best, _confusion)),
            ('reliability', by_best, partial(_answers, best, _reliability)),
            ('values', by_best, partial(_answers, best, _values)),
            ('retrieval', by_best, partial(_answers, best, _retrieval)),
            ('dataset', where, partial(_dataset, best)),
        ):
            if origin != 'own' and kind != 'bars':
                continue  # it has means alone
            title = marks.titled(words, first.changes)
            stem = style.stem(kind, task, data, *([origin] if origin != 'own' else []))
            drawn = make if (origin, task, data) in chosen else _one_too_many
            yield Plan(stem, kind, origin, task, data, title, partial(drawn, title))


def _chosen(cells: Mapping[Cell, Sequence[Score]]) -> set[Cell]:
    """The datasets of tasks that get figures: of each origin MOST, those with the most models first, then by name."""
    order = sorted(cells, key=lambda cell: (-len(cells[cell]), cell))
    return {cell for o in {cell[0] for cell in cells} for cell in [c for c in order if c[0] == o][:MOST]}


def _one_too_many(title: str) -> Drawn:
    raise Absent(f'figures are drawn of the {MOST} datasets of tasks with the most models')


def _best(scores: Sequence[Score]) -> Score:
    """The best score; of equal ones the first by name."""
    return _by_score(scores)[0]


def _by_score(scores: Sequence[Score]) -> list[Score]:
    return sorted(scores, key=lambda s: (s.mean if s.better == 'lower' else -s.mean, s.model))


def _bars(scores: Sequence[Score], models: Sequence[str], title: str) -> Drawn:
    table = tasks.bar_rows(scores, models)
    return tasks.bars(table, title=title, metric=scores[0].metric), table


def _pair(scores: Sequence[Score], title: str) -> Drawn:
    """The best two models that look at the signal."""
    first = [s for s in _by_score(scores) if s.model not in style.PLAIN][:2]
    if len(first) < 2:
        raise Absent('fewer than two models that look at the signal')
    table = there(tasks.pair_rows(*first), 2, 'fewer than two subjects that both models have')
    return tasks.pair(table, title=title, metric=first[0].metric), table


def path_of(score: Score) -> str:
    """The result of seed 33, or of the lowest seed. Raises: Absent where there is no file."""
    seeds = _seeds(score)
    if not seeds:
        raise Absent('no result file of it')
    return seeds[min(seeds, key=_preferred)]


def _seeds(score: Score) -> dict[int, str]:
    """Paths of result files by their seeds."""
    return {int(re.sub(r'\D', '', Path(path).stem)): path for path in score.paths}


def _preferred(seed: int) -> tuple[bool, int]:
    return seed != SEED, seed


def _curves(scores: Sequence[Score], models: Sequence[str], title: str) -> Drawn:
    table: Table = []
    metric = ''
    for score in sorted(scores, key=lambda s: models.index(s.model)):
        if score.paths:
            result = _read(path_of(score), checked.read)
            more = curves.rows(score.model, result)
            metric = curves.monitor(result) if more else metric
            table += more
    there(table, 1, 'no model learns in epochs')
    return curves.curves(table, title=title, metric=metric), table


def _read(path: str, read: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """A result. Raises: Absent where it is damaged."""
    try:
        return read(path)
    except FileNotFoundError:
        raise Absent(f'{path}: removed meanwhile') from None
    except RequestError as error:
        raise Absent(str(error)) from error


Answers = Mapping[str, Any]  # predictions of a result


def _answers(best: Score, draw: Callable[[str, dict[str, Any], Answers, str], Drawn], title: str) -> Drawn:
    """A figure of the answers of one result."""
    path = path_of(best)
    if not Path(path).with_suffix('.npz').is_file():
        raise Absent('no predictions beside the result')
    result = _read(path, results.read)
    try:
        predictions = results.load_predictions(path)
    except RequestError as error:
        raise Absent(str(error)) from error
    return draw(best.model, result, predictions, title)


def _kind(result: Mapping[str, Any]) -> targets.kind.Kind:
    return targets.of(result['config']['task']['target']['kind'])


def _counted(result: Mapping[str, Any]) -> str:
    return f'{result["headline"].get("level", "window")}s'


def _confusion(model: str, result: dict[str, Any], predictions: Answers, title: str) -> Drawn:
    if not _kind(result).single:
        raise Absent('its targets are not single classes')
    outputs, y = answers.units(result, predictions)
    names = result['classes']
    if len(names) > CLASSES:
        raise Absent(f'{len(names)} classes; at most {CLASSES} are drawn')
    table = answers.confusion_rows(outputs, y, names)
    return answers.confusion(table, what=_counted(result), title=title), table


def _reliability(model: str, result: dict[str, Any], predictions: Answers, title: str) -> Drawn:
    if not _kind(result).single:
        raise Absent('its targets are not single classes')
    found = calibration.calibration(*answers.units(result, predictions))
    if found is None:
        raise Absent('no answer is a number')
    table = answers.reliability_rows(found.width)
    return answers.reliability(table, error=found.ece, look=(model, _counted(result)), title=title), table


def _values(model: str, result: dict[str, Any], predictions: Answers, title: str) -> Drawn:
    if 'pearsonr' not in result['metrics']:
        raise Absent('its targets are not values')
    outputs, y = answers.units(result, predictions)
    table = answers.value_rows(outputs, y)
    head, n, drawn = result['headline'], len(y), len(table)
    words = f'{head["name"]} = {head["value"]:.3g}; ' if head['value'] is not None else ''
    words += f'{n} {_counted(result)}' + f', {drawn} of them drawn' * (drawn < n)
    return answers.values(table, model=model, caption=words, title=title), table


def _retrieval(model: str, result: dict[str, Any], predictions: Answers, title: str) -> Drawn:
    if 'vectors' not in predictions:
        raise Absent('its targets are not embeddings')
    table = answers.rank_rows(predictions)
    known = [(name, result['metrics'].get(name)) for name in ('window_top5_acc', 'top5_acc')]
    words = ', '.join(f'{name} = {100 * value:.3g} %' for name, value in known if value is not None)
    return answers.ranks(table, model=model, caption=f'{words}; each window by itself is drawn', title=title), table


def _dataset(best: Score, title: str) -> Drawn:
    path = path_of(best)
    try:
        cell, data = dataset.opened(_read(path, checked.read), path)
    except RequestError as error:
        raise Absent(str(error)) from error
    found = dataset.seen(cell, data)
    return dataset.page(found, title=title), dataset.rows(found)
