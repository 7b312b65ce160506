"""What is known of the tasks, models and datasets that results name: from jbench's own tables, else from a result."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from jbench.models import MODELS
from jbench.plan import select
from jbench.report.site.markup import doi, escape, link
from jbench.report.text import shown, windows
from jbench.results import checked
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json
from jbench.spec.metrics import METRICS
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import paths
from jbench.spec.task import Task


def task_of(name: str, version: int, results: Sequence[str]) -> Task | None:
    """The task of a name and version; of one's own tasks what the first of some result files says."""
    for task in select.tasks().get(name, ()):
        if task.version == version:
            return task
    return _from_result(results, Task, 'task')


def dataset_of(name: str, results: Sequence[str]) -> Dataset | None:
    """As `task_of`."""
    return select.datasets().get(name) or _from_result(results, Dataset, 'dataset')


def model_of(name: str, results: Sequence[str]) -> ModelSpec | None:
    """As `task_of`; one with options is described by its results."""
    return MODELS.get(name) or _from_result(results, ModelSpec, 'model')


def _from_result(results: Sequence[str], kind: Any, field: str) -> Any:
    """A spec from the config of a result file; None where no file tells."""
    try:
        return from_json(kind, checked.read(results[0])['config'][field], field) if results else None
    except (RequestError, OSError, KeyError, TypeError):
        return None


def about_task(task: Task) -> dict[str, str]:
    """What a task asks, as markup by name."""
    metric, signal = METRICS[task.metric], task.signal
    band = f'{signal.band[0]:g} to {signal.band[1]:g} Hz' if signal.band else 'all frequencies'
    level = '' if task.level == 'window' else f', outputs averaged over each {task.level}'
    return {
        'Device': escape(task.device),
        'Category': escape(task.category),
        'Score': escape(f'{task.metric}{level}; the {metric.better} the better'),
        'Target': escape(_fields(task.target)),
        'Windows': escape(windows(task)),
        'Signal': escape(f'{shown(signal.picks)}; {band}; {signal.sfreq:g} Hz; scaler {signal.scaler}'),
        'Split': escape(_fields(task.split)),
        'Recipe': escape('as published, with its faults' if task.recipe.published else 'ours'),
        'Corrects': escape('' if task.supersedes is None else f'version {task.supersedes[0]}: {task.supersedes[1]}'),
        'Left out': escape('; '.join(f'{e.dataset} {e.subject}: {e.reason}' for e in task.exclude)),
        'Protocol read from': escape(task.revision),
        'Publication': doi(task.doi),
    }


def every_field(spec: Task | Dataset | ModelSpec) -> dict[str, str]:
    """All fields of a spec under the paths that `--set` takes."""
    names = paths(spec) if isinstance(spec, Task) else (f.name for f in dataclasses.fields(spec))
    return {name: escape(shown(to_json(attrgetter(name)(spec)))) for name in names}


def about_dataset(dataset: Dataset) -> dict[str, str]:
    """Who was recorded, under which licence, and what jbench demands of the files, as markup by name."""
    low, high = dataset.amplitude
    least = '' if dataset.n_events is None else f', at least {dataset.n_events} in each recording'
    still = 'told' if dataset.constant is None else f'refused from {dataset.constant:g} s on'
    old = dataset.supersedes
    return {
        'Licence': escape(dataset.licence),
        'Access': escape(dataset.access),
        'Host': escape(dataset.host),
        'DOI': doi(dataset.doi),
        'Citation': escape(dataset.citation),
        'Release': escape(dataset.revision),
        'Corrects': escape(f'release {old[0]}: {old[1]}' if old else ''),
        'Subjects': escape(f'{dataset.n_subjects}, {dataset.n_recordings} recordings'),
        'Channels': escape(f'{dataset.n_chans}, recorded at {shown(dataset.sfreq)} Hz ({dataset.device})'),
        'Events': escape(f'{shown(dataset.event_types)}{least}'),
        'Classes': escape(shown(dict(dataset.event_id)) if dataset.event_id else ''),
        'Amplitude allowed': escape(f'{low:g} to {high:g} V, median over channels of the robust sd'),
        'Still stretches': escape(f'no channel changes: {still}'),
        'Files': escape(dataset.layout),
        'Simulated': escape('yes: generated, not measured' if dataset.simulated else ''),
    }


def about_model(model: ModelSpec) -> dict[str, str]:
    """Who answers, as markup by name."""
    n = model.n_parameters
    return {
        'Family': escape(model.family),
        'Publication': escape(model.citation),
        'Parameters': escape('' if n is None else f'{n:,} without the head, at 22 channels and 256 samples'),
        'Pretrained on': escape(', '.join(model.pretraining)),
        'Options': escape(shown(dict(model.options)) if model.options else ''),
        'Options as published': escape(shown(dict(model.published)) if model.published else ''),
        'Wants otherwise': escape(shown(dict(model.overrides)) if model.overrides else ''),
        'Version': escape(str(model.version)),
    }


def unknown(name: str) -> dict[str, str]:
    """Of what no table and no result tells more."""
    return {'Known as': link(name, '')}


def _fields(spec: Any) -> str:
    """The fields of a target or a split that say something."""
    said = {k: v for k, v in to_json(spec).items() if k != 'kind' and v not in ('', None, [], False)}
    return f'{spec.kind.replace("_", " ")}: {shown(said)}' if said else str(spec.kind)
