"""What a result says of a network whose training ended before it learnt."""

from __future__ import annotations

import pytest

from jbench.results import learnt
from jbench.train import fit


def outcome(first: float, best: float, epoch: int = 2, steps: int = 2) -> dict:
    """Epochs whose training loss falls evenly; the tested one is `epoch`."""
    losses = [first + (best - first) * k / max(epoch, 1) for k in range(epoch + 3)]
    return {'history': [{'train_loss': x} for x in losses], 'best_epoch': epoch, 'steps_per_epoch': steps}


@pytest.mark.parametrize(
    ('first', 'best', 'epoch', 'steps', 'early'),
    [
        (0.687, 0.677, 2, 2, True),  # eegnet on six recordings of two classes, 1e-4
        (0.720, 0.727, 1, 2, True),
        (1.980, 1.980, 0, 2, True),
        (1.395, 1.259, 13, 4, True),  # kalunga_ssvep, 40 epochs at 1e-3
        (0.739, 0.294, 15, 2, False),  # learnt in few steps
        (0.767, 0.574, 10, 27, False),  # simulated p3
        (2.804, 1.715, 12, 15, False),  # simulated motor_execution
        (0.690, 0.660, 1, 100, False),  # many steps on hard data
        (-0.5, -0.8, 1, 1, False),
    ],
)
def test_few_steps_and_a_loss_that_hardly_fell(first, best, epoch, steps, early):
    said = learnt.warning(outcome(first, best, epoch, steps))
    assert bool(said) == early
    if early:
        assert said.startswith(learnt.ENDED_EARLY)
        assert f'after {(epoch + 1) * steps} steps' in said and f'{best:.3f} ({first:.3f}' in said


def test_the_tested_epoch_is_the_one_that_training_kept():
    monitors = (0.5, 0.6, 0.6005, None, 0.6005, 0.62)
    history = [{'epoch': k, 'train_loss': 1.0, 'monitor': m} for k, m in enumerate(monitors)]

    def tested(metric='bal_acc', **recipe):
        return learnt.best_epoch({'history': history[:5], 'config': {'task': {'recipe': recipe}}}, metric)

    assert tested() == 2 and tested('mae') == 0, 'the first of equal ones'
    assert tested(min_delta=1e-3) == 1, 'not better by enough'
    assert tested(adaptation='two_stage', head_epochs=3) == 4 and tested(adaptation='two_stage', head_epochs=5) is None
    course = fit.Course()
    kept = [course.close_epoch(m, 1.0, 1, 1e-3) for m in monitors]
    assert max(k for k, better in enumerate(kept[:5]) if better) == tested(min_delta=1e-3)
