"""The one JSON form of specs, what of it is hashed, and the way back."""

from __future__ import annotations

import dataclasses
import json

import pytest
from each import each
from places import FIXTURES

from jbench.models import MODELS
from jbench.plan import select
from jbench.plan.cells import apply
from jbench.spec import task as task_module
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json, without_defaults
from jbench.spec.task import Classes, Crop, Recipe, Task

EVERY = [t for versions in select.tasks().values() for t in versions]
P3, SIMULATED = select.tasks()['p3'][-1], select.datasets()['SimulatedP3']


def cell(task: Task = P3) -> Cell:
    """A cell of p3."""
    return Cell(task=task, dataset=SIMULATED, model=MODELS['eegnet'])


def test_a_field_that_is_added_with_a_default_changes_no_key():
    """The JSON of a key names what differs from the defaults alone."""
    more = dataclasses.make_dataclass('Recipe', [('later', int, 0)], bases=(Recipe,), frozen=True, kw_only=True)
    now = {f.name: getattr(P3.recipe, f.name) for f in dataclasses.fields(Recipe)}
    grown = dataclasses.replace(P3, recipe=more(**now))
    assert cell(task=grown).key == cell().key != cell(task=dataclasses.replace(grown, recipe=more(**now, later=1))).key
    assert without_defaults(Crop()) == {} != without_defaults(Crop(start=1.0)) == {'start': 1.0}
    assert without_defaults(Classes()) == {'kind': 'classes'}, 'a tag stays'


def test_defaults_do_not_move():
    """What a field that is left out means is part of every key: with another default old keys would mean new cells.

    New fields are added to the file; none in it changes.
    """
    recorded = json.loads((FIXTURES / 'defaults.json').read_text())
    parts = {p.__name__: p for p in vars(task_module).values() if isinstance(p, type) and dataclasses.is_dataclass(p)}
    now = {
        name: {f.name: to_json(f.default) for f in dataclasses.fields(p) if f.default is not dataclasses.MISSING}
        for name, p in parts.items()
    }
    assert recorded == now


@pytest.mark.parametrize('value', [10**400, {'kind': []}, [{'kind': {}}]])
def test_strange_numbers_and_kinds_are_named(value):
    with pytest.raises(RequestError, match=r'Task\.target|Task\.recipe\.lr'):
        field = {'target': value} if isinstance(value, dict) else {'recipe': {'lr': value}}
        from_json(Task, {**to_json(P3), **field})


@each('task', EVERY, ids=lambda t: f'{t.full_name}@{t.version}')
def test_a_task_from_its_json_makes_the_same_cells(task):
    """Values of its overrides have no type of their own: they get that of their field when they are applied."""
    back = from_json(Task, json.loads(json.dumps(to_json(task))))
    for name in (*task.datasets, task.simulated):
        if name in select.datasets():
            dataset = select.datasets()[name]
            assert apply(back, dataset, ()) == apply(task, dataset, ())
