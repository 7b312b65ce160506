"""Losses against PyTorch's values, and the share of a loss that each device differentiates."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench import step

TORCH = np.load(Path(__file__).parent / 'fixtures' / 'losses_torch.npz')  # made by make_torch_fixtures.py


@pytest.mark.parametrize('name', list(step.LOSSES))
def test_losses_and_their_gradients_equal_those_of_torch(name):
    y = TORCH['y'] if name == 'cross_entropy' else TORCH['labels']

    def mean(logits):
        values, weight = step.LOSSES[name](logits, jnp.asarray(y), jnp.asarray(TORCH['weights']), 0.1)
        return values.sum() / weight.sum()

    value, grad = jax.value_and_grad(mean)(jnp.asarray(TORCH['logits']))
    np.testing.assert_allclose(value, TORCH[f'{name}/value'], rtol=1e-6)
    np.testing.assert_allclose(grad, TORCH[f'{name}/grad'], rtol=1e-5, atol=1e-7)


def test_every_loss_of_a_recipe_is_there():
    from typing import get_args, get_type_hints

    from jbench.spec import Recipe

    assert set(get_args(get_type_hints(Recipe)['loss'])) == set(step.LOSSES)
