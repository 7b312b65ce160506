"""What the stages `check`, `find_lr` and `find_batch` show on stdout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jbench.report import text as plain
from jbench.report.dataset import facts as dataset_facts


def text(facts: Sequence[Mapping[str, Any]], form: str) -> str:
    """The facts of `Outcome.facts` as text, or as JSON where `form` is 'json'."""
    if form == 'json':
        return plain.as_json(list(facts))
    return '\n'.join(_of_finder(f) if 'stage' in f else dataset_facts.text(dict(f)) for f in facts)


def _of_finder(facts: Mapping[str, Any]) -> str:
    """A value with its rule; that it was not applied."""
    name, value = facts['field'], facts['value']
    found = 'no value' if value is None else f'{name}={value:.2g}' if isinstance(value, float) else f'{name}={value}'
    marks = ', simulated' * facts['simulated'] + ', debug: few windows' * facts['debug']
    applied = f'not applied: {name} is {facts["now"]:g}' + f'; --set {found} sets it' * (value is not None)
    lines = [f'{facts["stage"]}: {facts["cell"]}{marks}', f'  {found} ({applied})', f'  rule: {facts["rule"]}']
    lines += [f'  {said}' for said in facts['said']]
    return '\n'.join([*lines, f'  curve: {", ".join(facts["files"])}', ''])
