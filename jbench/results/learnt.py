"""Whether a network learnt at all: on few windows a run may end after a handful of steps (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from jbench.spec.metrics import METRICS

ENDED_EARLY = 'training ended before it learnt'  # how the warning begins, by which the table finds it
FEW = 200  # steps
FELL = 0.25  # of the training loss of the first epoch: a fall by less is none to speak of


def warning(outcome: Mapping[str, Any]) -> str:
    """What to say of a fit whose tested epoch came after few steps, with a training loss near that of the first epoch;
    '' of one that learnt.

    Args:
        outcome: `history` of the epochs (`train_loss` each), `best_epoch` (the tested one, from 0), `steps_per_epoch`.
    """
    first, best = (outcome['history'][k]['train_loss'] for k in (0, outcome['best_epoch']))
    steps = (outcome['best_epoch'] + 1) * outcome['steps_per_epoch']
    if steps >= FEW or first - best >= FELL * abs(first):
        return ''
    return (
        f'{ENDED_EARLY}: the tested epoch came after {steps} steps, with a training loss of {best:.3f} ({first:.3f} in '
        'the first epoch); a higher recipe.lr or recipe.least_steps=1000 may mend it'
    )


def best_epoch(result: Mapping[str, Any], metric: str) -> int | None:
    """The place in the history of the epoch that was tested; `metric`: the monitor. As training chose it: the first of
    equal ones, better by more than `min_delta`, and of two stages in the second. None where no epoch has a score."""
    recipe, sign = result['config']['task']['recipe'], 1.0 if METRICS[metric].better == 'higher' else -1.0
    first = recipe['head_epochs'] if recipe.get('adaptation') == 'two_stage' else 0
    best, at = -math.inf, None
    for k, epoch in enumerate(result['history']):
        score = epoch.get('monitor')
        if k >= first and score is not None and sign * score > best + recipe.get('min_delta', 0.0):
            best, at = sign * score, k
    return at
