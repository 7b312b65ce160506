"""Specs of version 1 against the published facts (`fixtures/tasks_v1.json`, made by `make_task_fixtures.py`)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from jbench import plan
from jbench.models import MODELS
from jbench.spec import ByGroup, Classes, Predefined, Task, Window
from jbench.tasks.suites import SUITES

ROOT = Path(__file__).parents[1]
FACTS = json.loads((Path(__file__).parent / 'fixtures' / 'tasks_v1.json').read_text())
EVERY = [t for versions in plan.tasks().values() for t in versions]
SIMULATED = plan.datasets()['SimulatedP3']

SPLITS = {  # published query -> (field, values)
    "session == '1'": ('session', ('1',)),
    "session == '2'": ('session', ('2',)),
    "session == '3'": ('session', ('3',)),
    "run == '1finaltest'": ('run', ('1finaltest',)),
    'subject.isin([' + ', '.join(f"'Dreyer2023Large/{k}'" for k in range(61, 82)) + '])': (
        'subject',
        tuple(map(str, range(61, 82))),
    ),
}
RENAMED = {'description': 'label'}  # event fields that jbench calls otherwise


def published_split(facts: dict[str, Any]) -> ByGroup | Predefined:
    """A split of the published files in our words."""
    if facts['name'] == 'PredefinedSplit':
        field, test = SPLITS[facts['test_split_query']]
        return Predefined(
            field=field,
            test=test,
            valid_by=facts['valid_split_by'],
            valid=facts['valid_split_ratio'],
            seed=facts['valid_random_state'],
        )
    assert facts['valid_random_state'] == facts['test_random_state']
    return ByGroup(
        by=facts['split_by'],
        stratify=facts.get('stratify_by'),
        valid=facts['valid_split_ratio'],
        test=facts['test_split_ratio'],
        seed=facts['test_random_state'],
    )


def compare(task: Task, facts: dict[str, Any]) -> None:
    """A task, as it runs on one dataset, against the facts of that dataset."""
    window, signal, recipe = facts['window'], facts['signal'], task.recipe
    assert task.window == Window(
        trigger=window['trigger'],
        start=window['start'],
        duration=window['duration'],
        stride=window['stride'],
        keep_incomplete=not window['stride_drop_incomplete'],
    )
    assert isinstance(task.target, Classes) and task.window.trigger == facts['target']['event_types']
    field = facts['target']['event_field']
    assert task.target.field == RENAMED.get(field, field)
    assert task.split == published_split(facts['split'])
    ours = dataclasses.asdict(task.signal)
    assert ours == {
        'picks': tuple(signal['picks']),
        'sfreq': signal['frequency'],
        'band': tuple(signal['filter']),
        'notch': tuple(signal['notch_filter']),
        'scaler': {'RobustScaler': 'robust'}[signal['scaler']],
        'baseline': signal['baseline'] and tuple(signal['baseline']),
        'clamp': signal['clamp'],
    }
    assert dataclasses.asdict(recipe) == {
        'lr': facts['lr'],
        'weight_decay': facts['weight_decay'],
        'batch_size': facts['batch_size'],
        'max_epochs': facts['max_epochs'],
        'patience': facts['patience'],
        'grad_clip': facts['grad_clip_norm'],
        'label_smoothing': facts['loss'].get('label_smoothing', 0.0),
        'class_weights': facts['class_weights'],
        'loss': {'CrossEntropyLoss': 'cross_entropy'}[facts['loss']['name']],
        'published': False,  # which its suite turns on
    }
    assert facts['max_lr'] == facts['lr'] and facts['monitor'] == f'val/{task.metric}'


@pytest.mark.parametrize('name', sorted(FACTS))
def test_version_1_is_the_published_protocol(name):
    task, facts = plan.tasks()[name][0], FACTS[name]
    assert task.version == 1 and list(task.datasets[:1]) == facts['datasets'][:1]
    assert set(task.datasets) == set(facts['datasets'])
    compare(task, facts)
    for dataset in task.datasets:
        own = dataclasses.replace(SIMULATED, name=dataset, recipe=(), simulated=False)
        compare(plan.apply(task, own, ()), {**facts, **facts['dataset_overrides'].get(dataset, {})})


def test_baselines_know_the_paradigm_of_every_task():
    words = {p for m in MODELS.values() for p in m.paradigms}
    assert {t.name: t.paradigm for t in EVERY if t.paradigm not in words} == {}


def test_every_task_of_version_1_has_its_facts():
    published = {name for name, _ in SUITES['eeg-core-1.0']}
    assert sorted(t.name for t in EVERY if t.version == 1 and t.name in published) == sorted(FACTS)


def test_steps_that_a_spec_does_not_hold_are_listed_as_differences():
    text = (ROOT / 'docs' / 'differences.md').read_text()
    for facts in FACTS.values():
        assert not facts['steps']
        for dataset, own in facts['dataset_overrides'].items():
            assert not own.get('steps') or dataset in text
