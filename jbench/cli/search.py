"""`--stage=search`: trials of a space of fields, each a cell as a person would type it; validation alone decides.

A space is data: a field of `--set` -> what it may be. Optuna's sampler (TPE, a fixed seed) proposes; it is told the
mean over seeds of the validation score of the epoch that was kept, and nothing of the test part. Trials are asked for
in one order, and results that are there are read: the same command goes on where it was stopped.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import shlex
import statistics
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from jbench.plan import user_files
from jbench.plan.cells import options
from jbench.plan.request import Plan
from jbench.progress import say
from jbench.report import text as plain
from jbench.results import learnt, result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import MissingExtraError, RequestError, unknown
from jbench.spec.identity import spec_hash
from jbench.spec.metrics import METRICS
from jbench.spec.overrides import override

SEED = 33  # of the sampler
PREFIXES = ('recipe.', 'signal.')  # fields that leave the windows, their targets and parts as they are
# which change what is validated, or whether
KEPT = (
    'recipe.final',
    'recipe.published',
    'recipe.few_shot',
    'recipe.few_shot_draw',
)
EXPECTED = "expected a list of choices or {'low': 1e-5, 'high': 1e-2, 'log': True}"
RULE = 'the best mean over seeds of the validation score; test scores were not looked at'
Space = Mapping[str, Any]  # field -> a list of choices, or {'low', 'high'} with 'log' or 'step'
# (changed fields) -> the cells of such a request, and their results; None where a signal stopped it
Attempt = Callable[[dict[str, Any]], tuple[list[Cell], list[dict[str, Any]] | None]]


class Trial(NamedTuple):
    """A point of the space, and what validation says of it."""

    number: int  # 0: nothing changed
    values: dict[str, Any]
    key: str  # of the cell
    score: float | None  # mean over seeds; None: a seed failed


def require() -> None:
    """Raises: MissingExtraError where Optuna is not installed."""
    if importlib.util.find_spec('optuna') is None:
        raise MissingExtraError('optuna', 'search', '--stage=search')


def run(args: Namespace, plan: Plan, attempt: Attempt) -> int:
    """Try `args.trials` points of the space beside the request as it is, and show which was best; the exit status.

    Args:
        args: as parsed.
        plan: of the request as it is.
        attempt: trains one point.
    Raises: RequestError for a space that is none, several cells, or one without a validation score.
    """
    if len(plan.cells) != 1:
        raise RequestError(f'--stage=search: {len(plan.cells)} cells; name one task, on one dataset, and one model')
    (cell,) = plan.cells
    _check(cell)
    space = read(args.search, cell)
    home = args.workdir / 'finders' / result_file.result_dir('', cell).relative_to('results') / f'search-{of(space)}'
    trials: list[Trial] = []
    study = _study(cell)
    for number in range(args.trials + 1):
        asked = study.ask() if number else None
        values = {} if asked is None else {name: _suggested(asked, name, what) for name, what in space.items()}
        say(f'search: trial {number} of {args.trials}: {_set(values) or "nothing changed"}')
        cells, results = attempt(values)
        if results is None:
            return 75
        score = _score(cells[0], results, args.seeds)
        trials.append(Trial(number, values, cells[0].key, score))
        if asked is not None:
            _tell(study, asked, score)
        table = [_row(t, args.request, space) for t in trials]
        _write(home, table, cell, space, best(cell, trials), drawn=number == args.trials)
    print(_shown(cell, trials, home, args.format))
    return 0 if any(t.score is not None for t in trials) else 1


def _check(cell: Cell) -> None:
    """Refuse what has no validation score. Raises: RequestError."""
    recipe = cell.task.recipe
    why = ''
    if cell.model.kind != 'network' or not cell.model.trained:
        why = f'{cell.model.name} has none; name a network, as --model=eegnet'
    elif recipe.final == 'all' or recipe.adaptation == 'ridge_probe' or getattr(cell.task.split, 'folds', None):
        why = 'recipe.final=all, recipe.adaptation=ridge_probe and split.folds leave none in a result'
    if why:
        raise RequestError(f'{cell.title}: --stage=search: the validation score decides, and {why}')


def read(path: str, cell: Cell) -> Space:
    """The space of a file: `get()` gives {field: [choice, ...] or {'low': .., 'high': .., 'log': True or 'step': ..}}.

    Raises: RequestError for a field that is none, or may not be searched, and for what is no range.
    """
    fields = dict(user_files.space(path))
    for name, what in fields.items():
        where = f'--search={path}: {name}'
        if name not in options(cell.task):
            raise unknown(f'field of --search={path}', name, [o for o in options(cell.task) if o.startswith(PREFIXES)])
        if not name.startswith(PREFIXES) or name in KEPT:
            raise RequestError(f'{where}: validation scores would be of other windows; search recipe.* and signal.*')
        values = list(what) if isinstance(what, list | tuple) else _ends(what, where)
        if len(values) < 2:
            raise RequestError(f'{where}: {EXPECTED}')
        try:
            found = [override(cell.task, name, value) for value in values]
            for task in found:
                _check(dataclasses.replace(cell, task=task))
        except RequestError as error:
            raise RequestError(f'{where}: {error}') from None
        values = [attrgetter(name)(task) for task in found]  # of the type of the field
        fields[name] = {**what, 'low': values[0], 'high': values[1]} if isinstance(what, dict) else values
    if not fields:
        raise RequestError(f'--search={path}: no field to search')
    return fields


def _ends(what: Any, where: str) -> list[Any]:
    """Both ends of a range. Raises: RequestError for what is none."""
    if not isinstance(what, dict) or not {'low', 'high'} <= {*what} <= {'low', 'high', 'log', 'step'}:
        raise RequestError(f'{where}: {EXPECTED}')
    low, high, log, step = _range(what)
    numbers = [v for v in (low, high, step) if v is not None]
    if not all(isinstance(v, int | float) and math.isfinite(v) for v in numbers) or not low < high:
        raise RequestError(f'{where}: low and high must be two ascending numbers, found {low!r} and {high!r}')
    if log and (low <= 0 or step is not None):
        raise RequestError(f'{where}: with log, low must be above 0, and there is no step')
    if step is not None and (step <= 0 or (isinstance(low, int) and isinstance(high, int) and step != int(step))):
        raise RequestError(f'{where}: step must be above 0, and whole between whole numbers, found {step!r}')
    return [low, high]


def _range(what: Mapping[str, Any]) -> list[Any]:
    return [what.get(name) for name in ('low', 'high', 'log', 'step')]


def of(space: Space) -> str:
    """A name for a space: 8 digits that change with it."""
    return spec_hash({k: list(v) if isinstance(v, tuple) else v for k, v in space.items()})[:8]


def best(cell: Cell, trials: Sequence[Trial]) -> Trial | None:
    """The trial with the best validation score, the first of equals; None where none has one."""
    sign = 1.0 if METRICS[_monitor(cell)].better == 'higher' else -1.0
    known = [(sign * t.score, -t.number, t) for t in trials if t.score is not None]
    return max(known)[2] if known else None


def _monitor(cell: Cell) -> str:
    recipe, metric = cell.task.recipe, cell.task.metric
    return (METRICS[metric].monitor if recipe.published else '') or metric


def _study(cell: Cell) -> Any:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    up, down = optuna.study.StudyDirection.MAXIMIZE, optuna.study.StudyDirection.MINIMIZE
    direction = up if METRICS[_monitor(cell)].better == 'higher' else down
    return optuna.create_study(direction=direction, sampler=optuna.samplers.TPESampler(seed=SEED))


def _suggested(asked: Any, name: str, what: Any) -> Any:
    """A value of a field; fractions to three digits, as a person would type them."""
    if not isinstance(what, dict):
        return what[asked.suggest_int(name, 0, len(what) - 1)] if _ordered(what) else _chosen(asked, name, what)
    low, high, log, step = _range(what)
    if isinstance(low, int) and isinstance(high, int):
        return asked.suggest_int(name, low, high, log=bool(log), step=int(step or 1))
    value = asked.suggest_float(name, low, high, log=bool(log), step=step)
    return min(max(float(f'{value:.3g}'), low), high)


def _ordered(choices: Sequence[Any]) -> bool:
    """Whether choices are ascending numbers, of which near ones are alike."""
    numbers = all(isinstance(c, int | float) and not isinstance(c, bool) for c in choices)
    return numbers and list(choices) == sorted(choices)


def _chosen(asked: Any, name: str, choices: Sequence[Any]) -> Any:
    """One of several things of any type."""
    return choices[int(asked.suggest_categorical(name, [str(k) for k in range(len(choices))]))]


def _tell(study: Any, asked: Any, score: float | None) -> None:
    import optuna

    failed = score is None
    study.tell(asked, score, state=optuna.trial.TrialState.FAIL if failed else None)


def _score(cell: Cell, results: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> float | None:
    """The mean over seeds of the validation score of the epoch that was kept; None where a seed failed."""
    metric = _monitor(cell)
    kept = [(r['history'], learnt.best_epoch(r, metric)) for r in results if r['status'] != 'failed']
    each = [history[k]['monitor'] for history, k in kept if k is not None]
    return statistics.fmean(each) if len(each) == len(seeds) else None


def _set(values: Mapping[str, Any]) -> str:
    return ' '.join(shlex.quote(f'--set={name}={_typed(value)}') for name, value in values.items())


def _typed(value: Any) -> str:
    return ','.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _row(trial: Trial, request: str, space: Space) -> dict[str, Any]:
    """A row of the CSV; the command is that of the trial alone."""
    command = ' '.join(filter(None, (_alone(request), _set(trial.values))))
    values = {name: trial.values.get(name) for name in space}
    return {'trial': trial.number, **values, 'validation': trial.score, 'key': trial.key, 'command': command}


def _alone(request: str) -> str:
    """A command less what asks for a search: `--flag=value` or two words."""
    left, words = list[str](), iter(shlex.split(request))
    for word in words:
        flag, given, _ = word.partition('=')
        if flag not in ('--stage', '--search', '--trials', '--format'):
            left.append(word)
        elif not given:
            next(words, None)
    return shlex.join(left)


def _write(
    home: Path, table: list[dict[str, Any]], cell: Cell, space: Space, found: Trial | None, *, drawn: bool
) -> None:
    """The trials as CSV; once they are all there, the picture too."""
    from jbench import files
    from jbench.report.figures import search, style

    if not drawn:
        files.write_atomic(home / 'search.csv', style.as_csv(table, list(table[0])).encode())
        return
    title = f'search: {cell.title}' + ' (simulated)' * cell.dataset.simulated + ' (debug)' * cell.debug
    number = None if found is None else found.number
    look = search.Look(cell.model.full_name, title, _monitor(cell), number)
    style.save(search.search(table, fields=[*space], look=look), table, home / 'search')


def _shown(cell: Cell, trials: Sequence[Trial], home: Path, form: str) -> str:
    """What was found, as text or as JSON."""
    found, first, metric = best(cell, trials), trials[0].score, _monitor(cell)
    paths = [str(home / f'search.{ending}') for ending in ('png', 'svg', 'csv')]
    told = {'cell': cell.title, 'simulated': cell.dataset.simulated, 'debug': cell.debug, 'stage': 'search'}
    told |= {'metric': metric, 'trials': len(trials) - 1, 'best': None if found is None else found._asdict()}
    told |= {'unchanged': first, 'rule': RULE, 'files': paths}
    if form == 'json':
        return plain.as_json([told])
    marks = ', simulated' * cell.dataset.simulated + ', debug: few windows' * cell.debug
    lines = [f'search: {cell.title}{marks}']
    if found is None:
        lines.append('  no value: every trial failed')
    else:
        what = f'trial {found.number}, {_set(found.values)} (not applied)' if found.number else 'the recipe as it is'
        lines.append(f'  best validation {metric} {found.score:.4g}: {what}')
    lines.append(f'  the recipe as it is: {"failed" if first is None else f"{first:.4g}"}')
    lines += [f'  rule: {RULE}', f'  trials: {", ".join(paths)}']
    return '\n'.join(lines)
