"""From what the user typed to a list of cells: registries by file name, the selection grammar, overrides."""

from __future__ import annotations

import contextlib
import functools
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from jbench.checks import check
from jbench.models import MODELS, own
from jbench.overrides import override, paths
from jbench.own_files import own_tasks
from jbench.spec import Cell, Dataset, MissingExtraError, ModelSpec, Override, RequestError, Task, unknown
from jbench.tasks.suites import SUITES

GROUPS = ('classic', 'foundation', 'baselines')
SETTABLE = ('window', 'target', 'signal', 'split', 'recipe', 'metric')  # parts of a task that `--set` may change


class Choice(NamedTuple):
    """One task on one dataset, and whether the user named the dataset."""

    task: Task
    dataset: Dataset
    named: bool
    reason: str = ''  # why a simulation stands in


class Pick(NamedTuple):
    """One model, and whether the user named it (else: a group that holds it)."""

    spec: ModelSpec
    named: bool


@functools.cache
def tasks() -> dict[str, tuple[Task, ...]]:
    """All tasks by name, versions in ascending order."""
    return _versions(t for module in _modules('jbench.tasks') for t in getattr(module, 'TASKS', ()))


def _versions(found: Iterable[Task]) -> dict[str, tuple[Task, ...]]:
    """Tasks by name, versions in ascending order."""
    by_name: dict[str, list[Task]] = {}
    for task in sorted(found, key=lambda t: (t.full_name, t.version)):
        by_name.setdefault(task.full_name, []).append(task)
    return {name: tuple(v) for name, v in by_name.items()}


@functools.cache
def datasets() -> dict[str, Dataset]:
    """All datasets by name."""
    return {d.name: d for m in _modules('jbench.data.sources') for d in getattr(m, 'DATASETS', ())}


def _modules(package: str) -> Iterable:
    folder = import_module(package).__path__
    return [import_module(f'{package}.{m.name}') for m in pkgutil.iter_modules(folder)]


def find_dataset(name: str, known: Mapping[str, Dataset] | None = None) -> Dataset:
    """A dataset by name or alias, any case. Raises RequestError with suggestions."""
    known = datasets() if known is None else known
    for d in known.values():
        if name.lower() in (n.lower() for n in (d.name, *d.aliases)):
            return d
    raise unknown('dataset', name, known)


def select_tasks(text: str) -> list[tuple[Task, Dataset | None]]:
    """The grammar of --task: comma lists of names, name@version, name/dataset, device/name, categories, suites,
    suite/name, suite/name/dataset, `all`, and path/to/file.py[:name] of one's own tasks."""
    chosen: list[tuple[Task, Dataset | None]] = []
    for item in filter(None, (p.strip() for p in text.split(','))):
        chosen += _select(item)
    if not chosen:
        raise unknown('task', text, tasks())
    return list(dict.fromkeys(chosen))


def _select(item: str) -> list[tuple[Task, Dataset | None]]:
    if item.partition(':')[0].endswith('.py'):
        return _select_own(*item.partition(':')[::2])
    asked, item, known = item, item.removeprefix('eeg/'), tasks()
    categories = {t.category for v in known.values() for t in v}
    if item == 'all':
        return [(v[-1], None) for v in known.values()]
    if item.partition('/')[0] in SUITES:
        return _select_suite(*item.partition('/')[::2])
    if item in categories:
        return [(v[-1], None) for v in known.values() if v[-1].category == item]
    return _find(item, asked, known, datasets(), [*categories, *SUITES, 'all'])


def _find(
    item: str,
    asked: str,
    known: Mapping[str, tuple[Task, ...]],
    readable: Mapping[str, Dataset],
    others: Iterable[str] = (),
) -> list[tuple[Task, Dataset | None]]:
    """One task of the `known`: name[@version][/dataset]; `others` could have been meant too."""
    head, _, rest = item.partition('/')
    if head in {t.device for v in known.values() for t in v} and rest:
        name, _, rest = rest.partition('/')
        head = f'{head}/{name}'
    name, at, version = head.partition('@')
    name = next((n for n in known if n.lower() == name.lower()), name)
    if name not in known:
        served = [
            t
            for t, v in known.items()
            for d in readable.values()
            if d.name in (*v[-1].datasets, v[-1].simulated)
            and asked.rpartition('/')[2].lower() in (n.lower() for n in (d.name, *d.aliases))
        ]
        if served:
            raise RequestError(
                f'{asked!r} is a dataset: name the task before it, as in --task={served[0]}/{asked.rpartition("/")[2]}'
            )
        raise unknown('task', asked, [*known, *others])
    task = _version(known[name], name, version) if at else known[name][-1]
    if not rest:
        return [(task, None)]
    dataset = find_dataset(rest, readable)
    if dataset.name not in (*task.datasets, task.simulated):
        usable = ', '.join(filter(None, (*task.datasets, task.simulated)))
        raise RequestError(f'dataset {dataset.name} does not serve task {name}; it is served by: {usable}')
    return [(task, dataset)]


def _select_own(path: str, rest: str) -> list[tuple[Task, Dataset | None]]:
    """The tasks of one's own Python file, or the one that `rest` names, each on its first dataset or the named one."""
    tasks_, datasets_ = own_tasks(path)
    made, mine = _versions(tasks_), {d.name: d for d in datasets_}
    if taken := sorted({*made} & {*tasks()} | {*mine} & {*datasets()}):
        raise RequestError(f'--task={path}: {", ".join(taken)}: a name that jbench has already; choose another')
    readable = {**datasets(), **mine}
    for what, name, known in (
        *(('source', str(d.source), [m.__name__ for m in _modules('jbench.data.sources')]) for d in datasets_),
        *(('dataset', name, list(readable)) for t in tasks_ for name in t.datasets),
    ):
        if name not in known:
            raise unknown(f'{what} in {path}', name, known)
    chosen = _find(rest, rest, made, readable) if rest else [(v[-1], None) for v in made.values()]
    return [(task, dataset or readable[task.datasets[0]]) for task, dataset in chosen]


def _select_suite(suite: str, rest: str) -> list[tuple[Task, Dataset | None]]:
    """The pinned tasks of a suite, or the one (on a dataset) that `rest` names, with the choices of the suite."""
    members, full, published = SUITES[suite]
    pinned = dict(members)
    asked = next((name for name in pinned if f'{rest}/'.lower().startswith(f'{name}/')), None)
    if rest and asked is None:
        raise unknown(f'task of suite {suite!r}', rest, pinned)
    chosen = []
    for name in (asked,) if asked else pinned:
        item = f'{name}@{pinned[name]}{rest[len(name) :]}'
        for task, dataset in _select(item):
            more = [f'{item}/{d}' for d in task.datasets[1:]] if full and dataset is None else []
            chosen += [(task, dataset), *(choice for m in more for choice in _select(m))]
    return [(override(task, 'recipe.published', published), dataset) for task, dataset in chosen]


def _version(versions: tuple[Task, ...], name: str, version: int | str) -> Task:
    for task in versions:
        if str(task.version) == str(version):
            return task
    there = ', '.join(str(t.version) for t in versions)
    raise RequestError(f'task {name!r} has no version {str(version)!r}; it has {there}')


def select_models(text: str, device: str | None = None) -> list[Pick]:
    """The grammar of --model: names, groups, `all`, comma lists; `device` as --device."""
    chosen: dict[str, Pick] = {}
    for item in filter(None, (p.strip() for p in text.split(','))):
        if item in GROUPS or item == 'all':
            group = [m for m in MODELS.values() if item in ('all', m.family)]
            if not group:
                raise RequestError(f'--model={item}: no model of this family is in this version of jbench')
            for m in group:
                if not m.accelerator or device in ('gpu', 'tpu'):
                    chosen.setdefault(m.name, Pick(m, False))
        elif item.lower() in MODELS:
            chosen[item.lower()] = Pick(MODELS[item.lower()], True)
        elif own.named(item):
            mine = own.find(item)
            chosen[mine.name] = Pick(mine, True)
        else:
            raise unknown('model', item, [*MODELS, *GROUPS, 'all'])
    if not chosen:
        raise unknown('model', text, [*MODELS, *GROUPS, 'all'])
    for m, _ in chosen.values():
        if any(find_spec(package) is None for package in m.needs):
            raise MissingExtraError(' and '.join(m.needs), m.extra, f'model {m.name}')
    return list(chosen.values())


class UnfitError(RequestError):
    """A named model cannot do a task: it predicts other kinds of target, or needs longer windows."""


def _fits(pick: Pick, task: Task) -> bool:
    """Whether a model runs on a task: one that is named on any paradigm, one of a group where it belongs.

    Raises: UnfitError for a named model that cannot.
    """
    from jbench.data.windows import n_samples

    model, kind, n_times = pick.spec, task.target.kind, n_samples(task.window.duration, task.signal.sfreq)
    reason = ''
    if n_times < model.least_times:
        reason = f'model {model.name!r} needs windows of at least {model.least_times} samples; those of task '
        reason += f'{task.full_name!r} have {n_times}'
    if model.targets and kind not in model.targets:
        reason = f'model {model.name!r} predicts targets of kind {", ".join(model.targets)}; that of task '
        reason += f'{task.full_name!r} is {kind!r}'
    if reason and pick.named:
        raise UnfitError(f'{reason}; a group leaves out what does not fit, as in --model={model.family}')
    return not reason and (pick.named or not model.paradigms or task.paradigm in model.paradigms)


def choose_dataset(task: Task, named: Dataset | None, data_dir: Path | None, workdir: Path, simulated: str) -> Choice:
    """The dataset of a cell: the named one; else Core if it is on the machine; else the embedded simulation.

    Raises: RequestError where a named dataset is absent (it is never replaced), or nothing can stand in.
    """
    from jbench.data.cache import locate
    from jbench.data.find import find_recordings

    core = named or find_dataset(task.datasets[0])
    stand_in = datasets().get(task.simulated or '')
    if named is None and simulated == 'yes':
        if stand_in is None:
            raise RequestError(f'task {task.full_name!r} has no embedded simulation; run it without --simulated=yes')
        return Choice(task, stand_in, False, 'asked for by --simulated=yes')
    folder, _ = locate(apply(task, core, ()), core, data_dir, workdir)
    if folder is not None:
        return Choice(task, core, named is not None)
    absent = f'{data_dir or "<data_dir>"}/{core.name} holds no recording'
    others = [] if named or not data_dir else task.datasets[1:]
    with contextlib.suppress(RequestError):  # of a dataset that nobody asked for
        if there := [d for d in others if find_recordings(find_dataset(d), data_dir)]:
            absent += f'; --task={task.full_name}/{there[0]} reads what is there'
    if named is not None or simulated == 'no' or stand_in is None:
        hint = '' if data_dir else '; name the folder by --data_dir=DIR or JBENCH_DATA'
        raise RequestError(f'task {task.full_name!r}: {absent}; put there: {core.layout} (from {core.host}){hint}')
    return Choice(task, stand_in, False, absent)


def simulated(choices: Iterable[Choice]) -> str:
    """Which tasks run on generated recordings, and why, in words; '' if none does."""
    made = [c for c in choices if c.dataset.simulated]
    names = ', '.join(f'{c.task.full_name} ({c.reason})' if c.reason else c.task.full_name for c in made)
    return f'simulated: generated recordings, not measured ones, serve {names}' if made else ''


def apply(task: Task, dataset: Dataset, user: tuple[Override, ...]) -> Task:
    """The task as it runs on a dataset: the task's overrides for it, then the dataset's recipe, then the user's own."""
    for path, value in (*dict(task.overrides).get(dataset.name, ()), *dataset.recipe):
        try:
            task = override(task, path, value)
        except KeyError:  # of a file of one's own
            raise unknown(f'field in the overrides of task {task.name!r}', path, options(task)) from None
    for path, value in user:
        known = options(task)
        if path not in known:
            raise unknown('option', path, known)
        task = override(task, path, value)
    check(task)
    return task


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
        plain, own = apply(c.task, c.dataset, ()), apply(c.task, c.dataset, user)
        changed = tuple((p, v) for p, v in user if p not in paths(plain) or attrgetter(p)(plain) != attrgetter(p)(own))
        task = apply(c.task, c.dataset, asked)
        cells += [
            Cell(task=task, dataset=c.dataset, spec=m.spec, overrides=changed, debug=debug)
            for m in models
            if _fits(m, task)
        ]
    return list({c.key: c for c in cells}.values())
