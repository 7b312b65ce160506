"""The grammar of --task and --model: registries by file name, and what a text chooses from them."""

from __future__ import annotations

import dataclasses
import functools
import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

from jbench.data.recording import EVENT_TYPE
from jbench.data.source import catalogue
from jbench.data.sources import mixture
from jbench.models import MODELS, options, user_model
from jbench.plan.user_files import user_tasks
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError, RequestError, unknown
from jbench.spec.model import ModelSpec
from jbench.spec.task import Task
from jbench.tasks import registered
from jbench.tasks.suites import SUITES

GROUPS = ('classic', 'foundation', 'baselines')


class Pick(NamedTuple):
    """One model, and whether the user named it (else: a group that holds it)."""

    spec: ModelSpec
    named: bool


@functools.cache
def tasks() -> dict[str, tuple[Task, ...]]:
    """All tasks by name, versions in ascending order."""
    return _versions(registered())


def _versions(found: Iterable[Task]) -> dict[str, tuple[Task, ...]]:
    """Tasks by name, versions in ascending order."""
    by_name: dict[str, list[Task]] = {}
    for task in sorted(found, key=lambda t: (t.full_name, t.version)):
        by_name.setdefault(task.full_name, []).append(task)
    return {name: tuple(v) for name, v in by_name.items()}


def datasets() -> dict[str, Dataset]:
    """All datasets by name."""
    return catalogue()


def sources() -> list[str]:
    """Names of the modules that read datasets."""
    return [m.__name__ for m in _modules('jbench.data.sources')]


def _modules(package: str) -> Iterable:
    folder = import_module(package).__path__
    return [import_module(f'{package}.{m.name}') for m in pkgutil.iter_modules(folder)]


def find_dataset(name: str, known: Mapping[str, Dataset] | None = None) -> Dataset:
    """A dataset by name or alias, any case; several, joined by '+', as one. Raises RequestError with suggestions."""
    known = datasets() if known is None else known
    if mixture.JOINED in name:
        return mixture.mixed([find_dataset(one, known) for one in name.split(mixture.JOINED)])
    for d in known.values():
        if name.lower() in (n.lower() for n in (d.name, *d.aliases)):
            return d
    raise unknown('dataset', name, known)


def select_tasks(text: str) -> list[tuple[Task, Dataset | None]]:
    """The grammar of --task: comma lists of names, name@version, name/dataset, device/name, challenge/name, categories,
    suites, suite/name, suite/name/dataset, `all`, and path/to/file.py[:name] of one's own tasks."""
    chosen: list[tuple[Task, Dataset | None]] = []
    for item in filter(None, (p.strip() for p in text.split(','))):
        chosen += _select(item)
    if not chosen:
        raise unknown('task', text, tasks())
    return list(dict.fromkeys(chosen))


def _select(item: str) -> list[tuple[Task, Dataset | None]]:
    if item.partition(':')[0].endswith('.py'):
        return _select_user(*item.partition(':')[::2])
    asked, item, known = item, item.removeprefix('eeg/'), tasks()
    categories = {t.category for v in known.values() for t in v}
    if item == 'all':
        return [(v[-1], None) for v in known.values() if v[-1].category != 'pretrain']
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
    heads = {n.partition('/')[0] for n in known if '/' in n} | {t.device for v in known.values() for t in v}
    if head in heads and rest:
        name, _, rest = rest.partition('/')
        head = f'{head}/{name}'
    name, at, number = head.partition('@')
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
    task = version(known[name], name, number) if at else known[name][-1]
    if not rest:
        return [(task, None)]
    dataset = find_dataset(rest, readable)
    if dataset.name not in (*task.datasets, task.simulated) and not _any_serves(task, dataset):
        usable = ', '.join(filter(None, (*task.datasets, task.simulated)))
        raise RequestError(f'dataset {dataset.name} does not serve task {name}; it is served by: {usable}')
    return [(task, dataset)]


def _any_serves(task: Task, dataset: Dataset) -> bool:
    """Whether a task of pretraining asks for recordings alone, so that every dataset of its device, and several as one,
    serve it; else several as one do of which each serves it."""
    if task.category != 'pretrain' or task.device != dataset.device:
        return False
    if task.window.trigger == EVENT_TYPE[task.device]:
        return True
    parts = mixture.parts(dataset)
    return len(parts) > 1 and all(one.name in (*task.datasets, task.simulated) for one in parts)


def _select_user(path: str, rest: str) -> list[tuple[Task, Dataset | None]]:
    """The tasks of one's own Python file, or the one that `rest` names, each on its first dataset or the named one."""
    tasks_, datasets_ = user_tasks(path)
    made, mine = _versions(tasks_), {d.name: d for d in datasets_}
    if taken := sorted({*made} & {*tasks()} | {*mine} & {*datasets()}):
        raise RequestError(f'--task={path}: {", ".join(taken)}: a name that jbench has already; choose another')
    readable = {**datasets(), **mine}
    for what, name, known in (
        *(('source', str(d.source), sources()) for d in datasets_),
        *(('dataset', name, list(readable)) for t in tasks_ for name in t.datasets),
    ):
        if name not in known:
            raise unknown(f'{what} in {path}', name, known)
    chosen = _find(rest, rest, made, readable) if rest else [(v[-1], None) for v in made.values()]
    return [(task, dataset or readable[task.datasets[0]]) for task, dataset in chosen]


def _select_suite(suite: str, rest: str) -> list[tuple[Task, Dataset | None]]:
    """The pinned tasks of a suite, or the one (on a dataset) that `rest` names."""
    members, full = SUITES[suite]
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
    return chosen


def version(versions: tuple[Task, ...], name: str, number: int | str) -> Task:
    """One of the versions of a task. Raises: RequestError if there is no such."""
    for task in versions:
        if str(task.version) == str(number):
            return task
    there = ', '.join(str(t.version) for t in versions)
    raise RequestError(f'task {name!r} has no version {str(number)!r}; it has {there}')


def select_models(text: str, device: str | None = None) -> list[Pick]:
    """The grammar of --model: names, groups, `all`, path/to/file.py:function, comma lists; of one model also options,
    name:option=value. `device` as --device."""
    chosen: dict[str, Pick] = {}
    for asked in filter(None, (p.strip() for p in text.split(','))):
        item, wanted = options.split(asked)
        weights = wanted.pop('weights', '')
        known = MODELS.get(item.lower())
        takes_none = f'--model={asked}: {item} takes no pretrained weights; a network that is named does'
        if weights and (item in (*GROUPS, 'all') or (known is not None and known.kind != 'network')):
            raise RequestError(takes_none)
        if item in GROUPS or item == 'all':
            if wanted:
                raise RequestError(f'--model={asked}: options belong to one model, {item} is a group')
            group = [m for m in MODELS.values() if item in ('all', m.family)]
            if not group:
                raise RequestError(f'--model={item}: no model of this family is in this version of jbench')
            for m in group:
                if not m.accelerator or device in ('gpu', 'tpu'):
                    chosen.setdefault(f'{m.name}:', Pick(m, False))
        elif item.lower() in MODELS:
            named = options.with_options(MODELS[item.lower()], wanted)
            named = dataclasses.replace(named, weights=weights) if weights else named
            chosen[f'{named.full_name}:{weights}'] = Pick(named, True)
        elif item.partition(':')[0].lower() in MODELS:
            there = ', '.join(options.known(MODELS[item.partition(':')[0].lower()])) or 'none'
            raise RequestError(f'--model={asked}: options are name=value, as in eegnet:dropout=0.5; it has: {there}')
        elif user_model.named(item):
            mine = options.with_options(user_model.find(item), wanted)
            if weights and mine.kind != 'network':
                raise RequestError(takes_none)
            mine = dataclasses.replace(mine, weights=weights) if weights else mine
            chosen[f'{mine.full_name}:{weights}'] = Pick(mine, True)
        else:
            raise unknown('model', item, [*MODELS, *GROUPS, 'all'])
    if not chosen:
        raise unknown('model', text, [*MODELS, *GROUPS, 'all'])
    for m, _ in chosen.values():
        if any(find_spec(package) is None for package in m.needs):
            raise MissingExtraError(' and '.join(m.needs), m.extra, f'model {m.name}')
    return list(chosen.values())
