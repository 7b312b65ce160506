"""Python files of the user: fields of an experiment (`--config`), tasks and datasets of one's own (`--task`)."""

from __future__ import annotations

import re
import runpy
import traceback
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from jbench.data.recording import EVENT_TYPE
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError, unknown
from jbench.spec.overrides import Override, override, paths
from jbench.spec.task import Task
from jbench.spec.validate import check
from jbench.tasks import in_steps, scaled

Spec = TypeVar('Spec', Task, Dataset)


def config_overrides(path: str) -> tuple[Override, ...]:
    """An experiment file (Python with `get() -> {'recipe.lr': 1e-2, ...}`) as overrides, the same fields as `--set`.

    Raises: RequestError where there is no such file, or it gives no fields.
    """
    return _fields('--config', path)


def space(path: str) -> tuple[Override, ...]:
    """A space to search (Python with `get() -> {'recipe.lr': {'low': 1e-4, 'high': 1e-1, 'log': True}, ...}`), field by
    field. Raises: as `config_overrides`."""
    return _fields('--search', path)


def _fields(flag: str, path: str) -> tuple[tuple[str, Any], ...]:
    get = names_in(flag, path).get('get')
    try:
        fields = get() if callable(get) else None
    except Exception as error:  # the user's own code
        raise RequestError(f'{flag}={path}: {type(error).__name__}: {error}') from error
    if not isinstance(fields, dict) or not all(isinstance(k, str) for k in fields):
        raise RequestError(f'{flag}={path}: expected a function get() that returns {{field: value}}')
    return tuple(sorted(fields.items()))


def user_tasks(path: str) -> tuple[list[Task], list[Dataset]]:
    """What TASKS and DATASETS of a file hold; what a task leaves open of learning, few windows and values of any size
    are learnt by (`in_steps`, `scaled`). Raises: RequestError for a file or a field that is wrong."""
    found, made = names_in('--task', path), list[list[Any]]()
    for name, kind in (('TASKS', Task), ('DATASETS', Dataset)):
        values = found.get(name, ())
        if not isinstance(values, tuple | list) or not all(isinstance(v, kind) for v in values):
            raise RequestError(f'--task={path}: {name} must be a tuple of jbench.spec.{kind.__name__}')
        made.append([typed(v, f'--task={path}') for v in values])
    tasks, datasets = made
    if not tasks:
        raise RequestError(f'--task={path}: expected TASKS, a tuple of jbench.spec.Task; see configs/local_folder.py')
    return [in_steps(scaled(t)) for t in tasks], datasets


def typed(spec: Spec, what: str) -> Spec:
    """A spec whose every field is of its type, 2 for a float becoming 2.0.

    Raises: RequestError, beginning with `what`, where one is not.
    """
    try:
        for field in paths(spec):
            if field not in ('overrides', 'recipe'):  # pairs of which the second may be anything
                spec = override(spec, field, attrgetter(field)(spec))
        if not re.fullmatch(r'(challenge\d{4}/)?\w[\w.-]*', spec.name):  # folders are called so
            raise RequestError("name: expected letters, digits, '_', '-' and '.' alone")
        if spec.device not in EVENT_TYPE:
            raise unknown('device', spec.device, EVENT_TYPE)
        if isinstance(spec, Task):
            check(spec)
            if not all(len(o) == 2 and all(len(pair) == 2 for pair in o[1]) for o in spec.overrides):
                raise RequestError("overrides: expected (('<dataset>', (('<field>', <value>), ...)), ...)")
            named = [name for name, _ in spec.overrides]
            for what, names in (('overrides', named), ('exclude', [e.dataset for e in spec.exclude])):
                if strange := [n for n in names if n not in (*spec.datasets, spec.simulated)]:
                    raise unknown(f'dataset of its {what}', strange[0], filter(None, (*spec.datasets, spec.simulated)))
            if len(set(named)) < len(named):
                raise RequestError(f'overrides: a dataset stands twice among {", ".join(named)}; once, with all fields')
    except (RequestError, TypeError, AttributeError) as error:
        reason = str(error).removeprefix('--set ')
        raise RequestError(f'{what}: {type(spec).__name__} {spec.name!r}: {reason}; see jbench/spec') from None
    return spec


def names_in(flag: str, path: str) -> dict[str, Any]:
    """What a file defines. Raises: RequestError for one that is absent or fails."""
    if not Path(path).is_file():
        raise RequestError(f'{flag}={path}: no such file; see configs/ for examples')
    try:
        return runpy.run_path(path)
    except (Exception, SystemExit) as error:
        at = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        where = f', line {at[-1]}' if at else ''
        raise RequestError(f'{flag}={path}{where}: {type(error).__name__}: {error}') from error
