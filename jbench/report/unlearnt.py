"""Notes on networks that may not have learnt: their own warnings in one, and a fitted baseline far ahead of them.

What counts as far, and as ended early, is said in docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jbench.results.learnt import ENDED_EARLY

FAR = 0.25  # of the way from chance to a perfect score
PLAIN = ('dummy', 'constant')  # estimators that look at no signal
UNDIVIDED = ('few_shot', 'few_shot_draw', 'mask_channels')  # fields of a recipe on windows that no split tells
Result = Mapping[str, Any]


def ended_early(results: Sequence[Result]) -> list[str]:
    """One note on the seeds of a cell whose training ended before it learnt, in the words of the first; [] for none."""
    said = {r['seed']: w for r in results for w in r['warnings'] if w.startswith(ENDED_EARLY)}
    if not said:
        return []
    seeds = f'seed{"s" * (len(said) > 1)} {", ".join(map(str, said))} of {len(results)}'
    reason = next(iter(said.values())).removeprefix(f'{ENDED_EARLY}: ')
    return [f'{ENDED_EARLY}: {seeds}; {"of the first, " * (len(said) > 1)}{reason}']


def far_below(rows: Sequence[Mapping[str, Any]], results: Sequence[Result]) -> list[list[str]]:
    """For each row of a table the note that this network is far behind a fitted baseline, or none.

    Args:
        rows: `model` and `normalised` of each (0: chance, 1: perfect).
        results: one result of each row; only those on the same windows of the same parts are compared.
    """
    names = ('task', 'task_version', 'dataset', 'split_hash')
    asked = [
        (*(r.get(k) for k in names), r['headline']['name'], *(_recipe(r).get(k) for k in UNDIVIDED)) for r in results
    ]
    models = [r['config'].get('model', {}) for r in results]  # which results of schema 1 do not say
    best: dict[tuple[Any, ...], tuple[float, str]] = {}
    for row, key, model in zip(rows, asked, models, strict=True):
        fitted = model.get('kind') == 'estimator' and row['model'].partition(':')[0] not in PLAIN
        if fitted and row['normalised'] is not None:
            best[key] = max(best.get(key, (0.0, '')), (row['normalised'], row['model']))
    notes: list[list[str]] = []
    for row, key, model in zip(rows, asked, models, strict=True):
        network = model.get('kind') == 'network' and model.get('family') != 'baselines'  # where `chance` is
        above, name = best.get(key, (0.0, ''))
        far = network and row['normalised'] is not None and above - row['normalised'] >= FAR
        notes.append([f'far behind a fitted baseline, {name}: it may not have learnt'] if name and far else [])
    return notes


def _recipe(result: Result) -> Mapping[str, Any]:
    recipe: Mapping[str, Any] = result['config'].get('task', {}).get('recipe', {})
    return recipe
