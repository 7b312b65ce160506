"""Cells: which dataset serves a task, what overrides make of it, which models fit."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Collection, Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from jbench.data.source import is_own
from jbench.plan import select
from jbench.plan.evaluations import evaluation
from jbench.plan.select import Pick
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import to_json
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.spec.objectives import OBJECTIVES
from jbench.spec.overrides import Override, override, paths
from jbench.spec.recipe import VARIANTS
from jbench.spec.task import ByGroup, SplitSpec, Task
from jbench.spec.validate import check

REASONS = 8  # tasks: of more of them, it is not said of each why a simulation serves it
SETTABLE = (
    'window',
    'target',
    'signal',
    'split',
    'recipe',
    'metric',
    'exclude_bad',
)  # what of a task `--set` may change


class Choice(NamedTuple):
    """One task on one dataset, and whether the user named the dataset."""

    task: Task
    dataset: Dataset
    named: bool
    reason: str = ''  # why a simulation stands in


class UnfitError(RequestError):
    """A named model cannot do a task: for its kind of target, the length of its windows, or where its channels lie."""


def fits(pick: Pick, task: Task) -> bool:
    """Whether a model runs on a task: one that is named on any paradigm, one of a group where it belongs.

    Raises: UnfitError for a named model that cannot.
    """
    from jbench.data.windows import n_samples

    model, kind, n_times = pick.spec, task.target.kind, n_samples(task.window.duration, task.signal.sfreq)
    reason = ''
    if n_times < model.least_times:
        reason = f'model {model.name!r} needs windows of at least {model.least_times} samples; those of task '
        least = math.ceil(10 * model.least_times / task.signal.sfreq) / 10
        reason += f'{task.full_name!r} have {n_times}: --set window.duration={least:g}'
    if n_times % model.times_multiple:
        whole = max(n_times // model.times_multiple, 1)
        near = (f'{k * model.times_multiple / task.signal.sfreq:g}' for k in (whole, whole + 1))
        reason = f'model {model.name!r} needs windows of a multiple of {model.times_multiple} samples; those of task '
        reason += f'{task.full_name!r} have {n_times}: --set window.duration={" or ".join(near)}'
    if model.targets and kind not in model.targets:
        reason = f'model {model.name!r} predicts targets of kind {", ".join(model.targets)}; that of task '
        reason += f'{task.full_name!r} is {kind!r}'
    if 'positions' in model.asks and task.device != 'eeg':
        reason = f'model {model.name!r} asks where channels lie on the scalp; those of task {task.full_name!r} '
        reason += f'({task.device}) have no place there'
    recipe = task.recipe
    if not model.head and (model.weights or recipe.adapts or recipe.together == 'yes' or kind in OBJECTIVES):
        reason = (
            f'model {model.name!r} has nothing before its last layer that another task could take, so that it takes '
        )
        reason += 'no pretraining, no pretrained weights, no probe or other adaptation, and no recipe.together=yes'
    elif recipe.adapts and model.family != 'foundation' and not model.weights:
        reason = f'model {model.name!r} is no encoder with a head, and recipe.adaptation={recipe.adaptation} with '
        reason += (
            f'recipe.layer={recipe.layer}, recipe.layer_decay={recipe.layer_decay:g} is for one (--model=foundation, '
            f'or a network with --weights=FILE or --weights={SCRATCH})'
        )
    if recipe.final == 'all' and not (model.kind == 'network' and model.trained):
        reason = f'model {model.name!r} learns for no number of epochs, and recipe.final=all repeats one'
    if recipe.together == 'yes' and not (model.kind == 'network' and model.trained):
        reason = f'model {model.name!r} learns no weights step by step, which recipe.together=yes shares between tasks'
    if reason and pick.named:
        raise UnfitError(f'{reason}; a group leaves out what does not fit, as in --model={model.family}')
    return not reason and (pick.named or not model.paradigms or task.paradigm in model.paradigms)


def choose_dataset(task: Task, named: Dataset | None, data_dir: Path | None, workdir: Path, simulated: str) -> Choice:
    """The dataset of a cell: the named one; else Core if it is on the machine; else the embedded simulation.

    Raises: RequestError where a named dataset is absent (it is never replaced), or nothing can stand in.
    """
    from jbench.data.discover import find_recordings
    from jbench.data.prepare.build_set import locate

    core = named or select.find_dataset(task.datasets[0])
    stand_in = select.datasets().get(task.simulated or '')
    if named is None and simulated == 'yes':
        if stand_in is None:
            raise RequestError(f'task {task.full_name!r} has no embedded simulation; run it without --simulated=yes')
        return Choice(task, stand_in, False, 'asked for by --simulated=yes')
    folder, _ = locate(apply(task, core, ()), core, data_dir, workdir)
    if folder is not None:
        return Choice(task, core, named is not None)
    lacking = _lacking(core, data_dir)
    others = [] if named or not data_dir else task.datasets[1:]
    with contextlib.suppress(RequestError):  # of a dataset that nobody asked for
        if there := [d for d in others if find_recordings(select.find_dataset(d), data_dir)]:
            lacking += f'; --task={task.full_name}/{there[0]} reads what is there'
    if named is not None or simulated == 'no' or stand_in is None:
        raise absent(task, core, data_dir, lacking)
    return Choice(task, stand_in, False, lacking)


def absent(task: Task, dataset: Dataset, data_dir: Path | None, lacking: str = '') -> RequestError:
    """The error of a dataset that is not on the machine; `lacking`: in these words."""
    hint = '' if data_dir else '; name the folder by --data_dir=DIR or JBENCH_DATA'
    where = f'put there: {dataset.layout} (from {dataset.host}){hint}'
    return RequestError(f'task {task.full_name!r}: {lacking or _lacking(dataset, data_dir)}; {where}')


def _lacking(dataset: Dataset, data_dir: Path | None) -> str:
    return f'{data_dir or "<data_dir>"}/{dataset.name} holds no recording'


def simulated(choices: Iterable[Choice]) -> str:
    """Which tasks run on generated recordings, and why, in words; '' if none does."""
    made = [c for c in choices if c.dataset.simulated]
    told = len(made) <= REASONS
    names = ', '.join(f'{c.task.full_name} ({c.reason})' if c.reason and told else c.task.full_name for c in made)
    if not told:
        names = f'{len(made)} tasks (--info=TASK says what each lacks): {names}'
    return f'simulated: generated recordings, not measured ones, serve {names}' if made else ''


def apply(task: Task, dataset: Dataset, user: tuple[Override, ...], model: ModelSpec | None = None) -> Task:
    """The task as it runs on a dataset with a model: the task's overrides for the dataset, then the dataset's recipe,
    then what the model wants otherwise, then the user's own.

    Each counts epochs where it sets their number and says nothing of steps (`spelled_out`)."""
    for owner, wanted in (
        (f'task {task.name!r}', dict(task.overrides).get(dataset.name, ())),
        (f'dataset {dataset.name!r}', dataset.recipe),
        (f'model {model.name!r}' if model else '', model.overrides if model else ()),
    ):
        for path, value in spelled_out(wanted):
            try:
                task = override(task, path, value)
            except KeyError:  # of a file of one's own
                raise unknown(f'field in the overrides of {owner}', path, options(task)) from None
    for path, value in spelled_out(user):
        if path == 'split':
            task = dataclasses.replace(task, split=evaluation(value, task))
            continue
        known = options(task)
        if path not in known:
            raise unknown('option', path, known)
        task = override(task, path, value)
    task = dataclasses.replace(task, split=_dealt(task.split, {path for path, _ in user}))
    check(task)
    return dataclasses.replace(task, overrides=())  # which are applied


def _dealt(split: SplitSpec, typed: Collection[str]) -> SplitSpec:
    """A split by folds without the shares of other splits, which it does not use; of two folds one validates by share
    and seed. Raises: RequestError for such a field that the user typed."""
    if not isinstance(split, ByGroup) or not (split.fold or split.folds):
        return split
    few = split.folds in ('2', 'all') or split.fold.endswith('/2')
    unused = ('test',) if few else ('test', 'valid', 'seed')
    if said := [name for name in unused if f'split.{name}' in typed]:
        raise RequestError(f'--set split.{said[0]}: unused, because split.fold or split.folds deals the groups')
    return dataclasses.replace(split, **{name: getattr(ByGroup(), name) for name in unused})


def spelled_out(fields: tuple[Override, ...]) -> tuple[Override, ...]:
    """The same fields, those that stand for several as these: NeuralBench's names of adaptations, and `in_epochs`.

    Raises: RequestError for a name beside a field that it sets.
    """
    said = dict(fields)
    variant = said.get('recipe.adaptation')
    if not isinstance(variant, str) or variant not in VARIANTS:
        return in_epochs(fields)
    meant = {f'recipe.{name}': value for name, value in VARIANTS[variant].items()}
    if twice := sorted({*meant} & {*said} - {'recipe.adaptation'}):
        raise RequestError(
            f'--set {twice[0]}={said[twice[0]]}: recipe.adaptation={variant} says {twice[0]}={meant[twice[0]]}; leave '
            'out one of them'
        )
    return in_epochs(tuple(sorted((said | meant).items())))


def in_epochs(fields: tuple[Override, ...]) -> tuple[Override, ...]:
    """The same fields, and no steps where they set epochs alone: 5 epochs are 5, whatever the recipe says in steps."""
    said = {path for path, _ in fields}
    pairs = (('recipe.max_epochs', 'recipe.least_steps'), ('recipe.patience', 'recipe.patience_steps'))
    return (*fields, *((steps, 0) for epochs, steps in pairs if epochs in said and steps not in said))


def options(task: Task) -> list[str]:
    """The paths that `--set` takes: what is asked and how it is learnt, but not what a task is called or made of."""
    return [path for path in paths(task) if path.partition('.')[0] in SETTABLE]


def parse_overrides(items: Iterable[str]) -> tuple[Override, ...]:
    """`--set a.b=c` items as (path, text), in canonical order. Raises RequestError without a '='."""
    pairs = []
    for item in items:
        path, eq, value = item.partition('=')
        if not eq or not path:
            raise RequestError(f'--set {item}: expected a field and a value, as in --set recipe.max_epochs=5')
        pairs.append((path.strip(), value.strip()))
    return tuple(sorted(dict(pairs).items()))


def make_cells(
    choices: list[Choice], models: list[Pick], user: tuple[Override, ...], debug: bool = False
) -> list[Cell]:
    """Every choice with every model that fits it, in order; what was asked twice comes once. Raises RequestError."""
    asked = (*user, ('recipe.max_epochs', 2)) if debug else user
    cells = []
    for c in choices:
        if dict(user).get('exclude_bad') and apply(c.task, c.dataset, user).exclude_bad and not is_own(c.dataset):
            raise RequestError(
                f"--exclude_bad: {c.dataset.name} is published as it is; recordings are left out of one's own data "
                'alone: repair the files that are named, or fetch them again'
            )
        for m in models:
            plain, own, task = (apply(c.task, c.dataset, some, m.spec) for some in ((), user, asked))
            if fits(m, task):
                changed = tuple(
                    (p, v if p == 'split' else to_json(attrgetter(p)(own)))  # the same, typed or from a file
                    for p, v in spelled_out(user)
                    if p not in paths(plain) or attrgetter(p)(plain) != attrgetter(p)(own)
                )
                cells.append(Cell(task=task, dataset=c.dataset, model=m.spec, overrides=changed, debug=debug))
    return list({c.key: c for c in cells}.values())
