"""What tests of fast forms beside their literal ones share: value and gradient, compiled, and how they are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def value_and_grad(apply: Callable[[Any], tuple[jax.Array, Any]], variables: Any, seed: int = 0) -> Any:
    """(value, new state, gradient of a random projection of the value)."""

    def project(params: Any) -> tuple[jax.Array, Any]:
        value, state = apply(variables | {'params': params})
        return jnp.sum(value * np.random.default_rng(seed).standard_normal(value.shape)), (value, state)

    (_, (value, state)), grads = jax.value_and_grad(project, has_aux=True)(variables['params'])
    return value, state, grads


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(function, compiler_options={'xla_backend_optimization_level': 0})  # in half the time


def close(actual: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Every leaf within rtol of the largest value of the expected leaf, or of 0.1."""

    def leaf(path: Any, a: Any, e: Any) -> None:
        scale = max(float(np.abs(e).max()), 0.1)
        np.testing.assert_allclose(a, e, rtol=0, atol=rtol * scale, err_msg=jax.tree_util.keystr(path))

    jax.tree_util.tree_map_with_path(leaf, actual, expected)
