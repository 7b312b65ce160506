"""What there is to run, and what a request would run: `--list`, `--info`, `--dry_run`.

Everything here comes from specs, names of files and finished results; a list imports neither jax nor numpy.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from jbench.alignment import select as alignment
from jbench.data.discover import find_recordings
from jbench.models import MODELS, options, user_model
from jbench.plan import select
from jbench.report.text import as_json, folded, listed, table, windows
from jbench.spec.benchmark import PREFIX, Benchmark
from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import to_json
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import paths
from jbench.spec.pretraining import history
from jbench.spec.task import Task
from jbench.tasks.suites import SUITES

Facts = dict[str, Any]


def show(args: argparse.Namespace) -> str:
    """What `--list` and `--info` print, the channels of a model with `--task`. Raises RequestError."""
    where = (args.format, args.data_dir)
    if not args.info:
        return listing(*where)
    if not args.task:
        return info(args.info, *where)
    info(args.info, *where)  # refuses what nobody knows
    from jbench.cli import placed  # jax takes its time

    return info(args.info, *where, placed.facts(args))


def listing(form: str, data_dir: Path | None = None) -> str:
    """All tasks, datasets, models and suites, as text tables or as JSON (`form` 'json')."""
    found: dict[str, list[Facts]] = {
        'tasks': [_list_task(name, versions) for name, versions in select.tasks().items()],
        'datasets': [_list_dataset(d, data_dir) for d in sorted(select.datasets().values(), key=_order)],
        'models': [{k: getattr(m, k) for k in ('name', 'family', 'n_parameters')} for m in MODELS.values()],
        'suites': [_list_suite(name) for name in SUITES],
        'benchmarks': [_list_benchmark(b) for b in alignment.benchmarks().values()],
        'candidates': [{'name': c.name, 'title': c.title} for c in alignment.candidates().values()],
    }
    if form == 'json':
        return as_json(found)
    disk = {True: 'yes', False: '-', None: 'damaged'}
    tables = (
        table(
            ('task', 'device', 'category', 'versions', 'stand-in', 'Core dataset, and how many more'),
            [_task_row(t) for t in found['tasks']],
        ),
        table(
            ('dataset', 'access', 'licence', 'on disk', 'tasks'),
            [
                (d['name'], d['access'].partition(':')[0], d['licence'], disk[d['on_disk']], d['tasks'])
                for d in found['datasets']
            ],
        ),
        table(('model', 'family', 'parameters'), [tuple(m.values()) for m in found['models']]),
        table(
            ('suite', 'tasks', 'not in this version'),
            [(s['name'], len(s['tasks']), len(s['missing'])) for s in found['suites']],
        ),
        table(
            ('benchmark (--task=alignment/...)', 'parent', 'what'),
            [tuple(b.values()) for b in found['benchmarks']],
        ),
        table(('candidate', 'what'), [tuple(c.values()) for c in found['candidates']]),
        'More of each, also what is damaged: --info=NAME. On disk: under --data_dir. Access "embedded": simulated, '
        'nothing to fetch.',
    )
    return '\n\n'.join(tables)


def info(name: str, form: str, data_dir: Path | None = None, more: Mapping[str, Any] = {}) -> str:
    """Everything about one task (also name@version), dataset (or alias), model, suite or category; `more`: facts that
    are told beside, as the channels of a task.

    Raises: RequestError with suggestions for a name that is none of them.
    """
    head = name.removeprefix('eeg/').partition('@')[0]
    if _holds_tasks(name):
        chosen = select.select_tasks(name)
        mine = {d.name: d for _, d in chosen if d is not None}
        found = [_task_facts(task, data_dir, mine) for task, _ in chosen]
        return as_json(found if len(found) > 1 else found[0]) if form == 'json' else '\n\n'.join(map(folded, found))
    aliases = {a.lower() for d in select.datasets().values() for a in (d.name, *d.aliases)}
    if head in select.tasks():
        facts = _task_facts(select.select_tasks(name)[0][0], data_dir)
    elif name.lower() in aliases:
        facts = _dataset_facts(select.find_dataset(name), data_dir)
    elif name.partition(':')[0].lower() in MODELS or user_model.named(name):
        facts = _model_facts(select.select_models(name)[0].spec)
    elif name in SUITES:
        facts = {'is': 'suite', **_list_suite(name)}
    elif name in _categories():
        members = [task for task, versions in select.tasks().items() if versions[-1].category == name]
        facts = {'is': 'category', 'name': name, 'tasks': members}
    elif (benchmark := name.removeprefix(PREFIX)) in alignment.benchmarks():
        facts = {'is': 'benchmark', **to_json(alignment.benchmarks()[benchmark])}
    elif name in alignment.candidates():
        facts = {'is': 'candidate', **to_json(alignment.candidates()[name])}
    else:
        known = [*select.tasks(), *select.datasets(), *MODELS, *SUITES, *_categories()]
        known += [*alignment.benchmarks(), *alignment.candidates()]
        raise unknown('task, dataset or model', name, known)
    facts |= more
    return as_json(facts) if form == 'json' else folded(facts)


def _model_facts(model: ModelSpec) -> Facts:
    """What the table says of a model, and the options that it takes with their defaults."""
    facts = {k: v for k, v in to_json(model).items() if k not in ('own_weights', 'places', 'own_places')} | {
        k: to_json(dict(getattr(model, k))) for k in ('published', 'overrides')
    }
    found = {'is': 'model', **facts, 'name': model.full_name, 'options': options.defaults(model)}
    if model.name in CHECKPOINTS:
        found['weights'] = f'{CHECKPOINTS[model.name].words}; --weights=none: random ones'
        seen = history(model.name)
        found['pretraining'] = [f'{c.name} ({listed(c.datasets)}): {c.source}' for c in seen.corpora] if seen else []
        if seen and not seen.whole:
            found['pretraining'].append('others, not named here')
    if model.kind == 'network':
        found['channels'] = _channel_rule(model)
    else:
        found.pop('head')
    return found


def _channel_rule(model: ModelSpec) -> str:
    """What a network asks of channels, in words."""
    more = f'; --info={model.name} --task=TASK: what each is used as'
    if 'positions' in model.asks:
        whose = (
            '; published weights go by places of their own'
            if model.name in CHECKPOINTS and CHECKPOINTS[model.name].bank
            else ''
        )
        return f'by place, electrodes without one are left out{whose}{more}'
    return f'by name{more}' if 'ch_names' in model.asks else 'any, in the order in which they come'


def _holds_tasks(name: str) -> bool:
    """Whether a name is that of a file of tasks of one's own, or of one of these (`file.py:task`)."""
    file = Path(name.partition(':')[0])
    if ':' not in name or not file.is_file():
        return name.endswith('.py')
    return re.search(rb'^TASKS\b', file.read_bytes(), re.MULTILINE) is not None


def _categories() -> set[str]:
    return {v[-1].category for v in select.tasks().values()}


def _order(dataset: Dataset) -> tuple[bool, str]:
    return dataset.simulated, dataset.name


def _served(task: Task) -> list[str]:
    """Names of the datasets that a task can run on, its stand-in last."""
    return [*task.datasets, *([task.simulated] if task.simulated else [])]


def _list_task(name: str, versions: Sequence[Task]) -> Facts:
    newest = versions[-1]
    return {
        'name': name,
        'device': newest.device,
        'category': newest.category,
        'versions': [t.version for t in versions],
        'datasets': _served(newest),
    }


def _list_dataset(dataset: Dataset, data_dir: Path | None) -> Facts:
    n, fault = (0, '') if dataset.simulated else _here(dataset, data_dir)
    return {
        'name': dataset.name,
        'access': dataset.access,
        'licence': dataset.licence,
        'tasks': _tasks_of(dataset),
        'on_disk': None if fault else n > 0,
    }


def _here(dataset: Dataset, data_dir: Path | None) -> tuple[int, str]:
    """How many recordings lie here, and what keeps them from being listed ('': nothing)."""
    try:
        return len(find_recordings(dataset, data_dir)), ''
    except RequestError as error:
        return 0, str(error)


def _list_suite(name: str) -> Facts:
    members = [f'{task}@{version}' for task, version in SUITES[name].tasks]
    there = {f'{task}@{t.version}' for task, versions in select.tasks().items() for t in versions}
    return {'name': name, 'tasks': members, 'missing': [m for m in members if m not in there]}


def _list_benchmark(benchmark: Benchmark) -> Facts:
    return {k: getattr(benchmark, k) for k in ('identifier', 'parent', 'title')}


def _task_row(task: Facts) -> tuple[str, ...]:
    """A task in the table: the first dataset, and how many follow."""
    known = select.datasets()
    real = [n for n in task['datasets'] if not known[n].simulated]
    stand_in = 'simulated' if len(real) < len(task['datasets']) else '-'
    more = f' and {len(real) - 1} more' if len(real) > 1 else ''
    served = f'{listed(real[:1])}{more}'
    return task['name'], task['device'], task['category'], listed(task['versions']), stand_in, served


def _tasks_of(dataset: Dataset) -> list[str]:
    return [name for name, versions in select.tasks().items() if dataset.name in _served(versions[-1])]


def _state(name: str, data_dir: Path | None, known: Mapping[str, Dataset] | None = None) -> str:
    """Whether this version, on this machine, can use a dataset."""
    dataset = (known or select.datasets())[name]
    if dataset.simulated:
        return 'embedded, simulated'
    n, fault = _here(dataset, data_dir)
    if fault:
        return f'damaged: {fault}'
    return f'{n} of {dataset.n_recordings} recordings here' if n else 'readable, no recordings here'


def _suits(model: ModelSpec, task: Task) -> bool:
    """Whether a group that holds a model runs it on a task."""
    enough = round(task.window.duration * task.signal.sfreq) >= model.least_times
    fields = (not model.targets or task.target.kind in model.targets) and (
        not model.paradigms or task.paradigm in model.paradigms
    )
    return enough and fields


def _task_facts(task: Task, data_dir: Path | None, own: Mapping[str, Dataset] | None = None) -> Facts:
    """Every field of a task under the path that `--set` takes, and the state of each of its datasets."""
    known = {**select.datasets(), **(own or {})}
    roles = {task.datasets[0]: 'Core, ', task.simulated: 'stand-in, '}
    facts: Facts = {'is': 'task'}
    for path in paths(task):
        head = path.partition('.')[0]
        if head in ('target', 'split') and head not in facts:
            facts[head] = getattr(task, head).kind
        facts[path] = to_json(attrgetter(path)(task))
    facts['supersedes'] = _superseded('version', task.supersedes)
    facts['windows'] = windows(task)
    facts['baselines'] = [m.name for m in MODELS.values() if m.family == 'baselines' and _suits(m, task)]
    facts['datasets'] = {n: roles.get(n, '') + _state(n, data_dir, known) for n in _served(task)}
    facts['overrides'] = {d: {p: to_json(v) for p, v in pairs} for d, pairs in task.overrides}
    recipes = {name: known[name].recipe for name in _served(task) if name in known and known[name].recipe}
    facts['recipes of datasets'] = {name: dict(recipe) for name, recipe in recipes.items()}
    return facts


def _superseded(what: str, old: tuple[int | str, str] | None) -> Facts | None:
    """What a version corrects, and why."""
    return None if old is None else {what: old[0], 'why': old[1]}


def _dataset_facts(dataset: Dataset, data_dir: Path | None) -> Facts:
    """Every field; where files should lie; the recipe that a simulated set brings along, over that of the task."""
    facts: Facts = {'is': 'dataset', **to_json(dataset)}
    facts |= {'event_id': dict(dataset.event_id), 'recipe': dict(dataset.recipe)}
    facts['supersedes'] = _superseded('revision', dataset.supersedes)
    if not dataset.simulated:
        facts['layout'] = f'{data_dir or "<data_dir>"}/{dataset.name}/: {dataset.layout}'
    return {**facts, 'tasks': _tasks_of(dataset), 'state': _state(dataset.name, data_dir)}
