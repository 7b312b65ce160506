"""Result files with the scores that a test wants: copies of a historic one, with other words and a right digest."""

from __future__ import annotations

import copy
import functools
import json
from pathlib import Path
from typing import Any

from places import ROOT

from jbench.results import checked
from jbench.results.schema import as_text

HISTORIC = ROOT / 'tests' / 'historic_results'


@functools.cache
def _original() -> dict[str, Any]:
    (path,) = (HISTORIC / 'v3').rglob('eegnet/*/seed33.json')
    return json.loads(path.read_text(encoding='utf-8'))


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A dictionary with those inside it merged too."""
    both = {k: merged(old[k], v) if isinstance(v, dict) and isinstance(old.get(k), dict) else v for k, v in new.items()}
    return {**old, **both}


def make(
    model: str = 'eegnet', value: float | None = 0.7, *, task: str = 'p3', dataset: str = 'Real', **changes: Any
) -> dict[str, Any]:
    """A result of a measured dataset, finished; `changes` are merged into it (`config={'task': {'version': 3}}`)."""
    known = {'per_subject': dict.fromkeys(('S01', 'S02'), value), 'headline': {'value': value}, 'seed': 33}
    words = {'task': task, 'dataset': dataset, 'model': model, 'key': f'key of {model}'}
    state = {'status': 'done', 'simulated': False, 'protocol': {'debug': False}, 'warnings': []}
    config = {
        'task': {'name': task, 'datasets': [dataset], 'version': changes.get('task_version', 2)},
        'dataset': {'name': dataset, 'simulated': False},
        'model': {'name': model},
    }
    first = copy.deepcopy(_original()) | {'per_subject': {}}
    new = merged(merged(first, {**known, **words, **state, 'config': config}), changes)
    return {**new, 'sha256': checked.digest(new)}


def store(work: Path, *args: Any, **changes: Any) -> Path:
    """The path of a result as `make` gives it, in its place below a work folder; without predictions."""
    result = make(*args, **changes)
    names = (f'{result["task"]}@{result["task_version"]}', result['dataset'], result['model'], result['key'])
    path = Path(work, 'results', *names, f'seed{result["seed"]}.json')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(as_text(result))
    return path
