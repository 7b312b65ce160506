"""Notes on networks that may not have learnt, and none on those that did."""

from __future__ import annotations

from typing import Any

import pytest
from test_table import make

from jbench.report import table
from jbench.results.learnt import ENDED_EARLY

EARLY = f'{ENDED_EARLY}: the tested epoch came after 6 steps'
BELOW = 'far behind a fitted baseline, cov_ts_lr: it may not have learnt'


def of(name: str, kind: str, value: float | None, seed: int = 33, **changes: Any) -> dict[str, Any]:
    """A result of a model of some kind."""
    model = {'kind': kind, 'family': 'baselines' if name in ('chance', 'cov_ts_lr', 'dummy') else 'classic'}
    config = {'task': {'recipe': {}}, 'model': model}
    return make(seed, value, **{'model': name, 'config': config, 'split_hash': 's', **changes})


def notes(*results: dict[str, Any]) -> dict[str, list[str]]:
    return {row['model']: row['notes'] for row in table.rows(results)}


def test_seeds_that_ended_early_are_one_note() -> None:
    some = [of('eegnet', 'network', 0.5, 33, warnings=[EARLY]), of('eegnet', 'network', 0.9, 34)]
    assert notes(*some)['eegnet'] == [f'{ENDED_EARLY}: seed 33 of 2; the tested epoch came after 6 steps']
    more = of('eegnet', 'network', 0.5, 35, warnings=[EARLY.replace('6', '8')])
    (note,) = notes(*some, more)['eegnet']
    assert note == f'{ENDED_EARLY}: seeds 33, 35 of 3; of the first, the tested epoch came after 6 steps'


BASELINE = of('cov_ts_lr', 'estimator', 1.0)


@pytest.mark.parametrize(
    ('other', 'said'),
    [
        (of('eegnet', 'network', 0.5), [BELOW]),
        (of('eegnet', 'network', 0.8), [BELOW]),
        (of('eegnet', 'network', 0.85), []),  # a fifth of the way from chance
        (of('eegnet', 'network', 0.5, split_hash='other'), []),
        (of('eegnet', 'network', 0.5, task_version=2), []),
        (of('eegnet', 'network', 0.5, dataset='Other'), []),
        (of('eegnet', 'network', 0.5, headline=BASELINE['headline'] | {'name': 'auroc'}), []),
        (of('eegnet', 'network', 0.5, normalised=None), []),
        (of('eegnet', 'network', None), ['failed: seed 33 of 1']),
        (of('chance', 'network', 0.26), []),
        (of('dummy', 'estimator', 0.26), []),
    ],
)
def test_a_network_far_below_a_fitted_baseline_is_told(other: dict[str, Any], said: list[str]) -> None:
    weaker = of('csp_lda', 'estimator', 0.6)
    found = notes(BASELINE, weaker, other)
    assert found.pop(other['model']) == said
    assert not any(found.values())


@pytest.mark.parametrize('name', ['constant', 'constant:value=35', 'dummy'])
def test_what_looks_at_no_signal_is_no_fitted_baseline(name: str) -> None:
    assert notes(of(name, 'estimator', 0.9), of('eegnet', 'network', 0.3))['eegnet'] == []


@pytest.mark.parametrize('field', ['few_shot', 'mask_channels'])
def test_what_learns_or_is_tested_on_less_is_not_judged(field: str) -> None:
    """The parts of both are the same, as the split tells them."""
    less = of('eegnet', 'network', 0.3)
    less['config'] = {**less['config'], 'task': {'recipe': {field: 0.5}}}
    assert notes(BASELINE, less)['eegnet'] == []


def test_a_network_without_a_baseline_is_not_judged() -> None:
    assert notes(of('eegnet', 'network', 0.3), of('deep4net', 'network', 0.9)) == {'eegnet': [], 'deep4net': []}
    old = make(33, 0.3, model='eegnet', split_hash='s')  # schema 1: no word on its model
    assert notes(BASELINE, old)['eegnet'] == []
