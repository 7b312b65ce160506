"""EEGNeX: both temporal convolutions as one filter, and the statistics behind them, beside the literal convolutions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import close, compiled, value_and_grad
from jax import lax

from jbench.models.classic import eegnex
from jbench.models.classic.eegnex import FIRST, PAD, SECOND, TAPS

LENGTHS = (22, 63, 64, 94, 95, 160)  # around where edges meet and where a middle begins


def weights(seed: int = 0) -> dict[str, jax.Array]:
    rng = np.random.default_rng(seed)
    return {
        'first': jnp.asarray(rng.standard_normal((FIRST, TAPS))),
        'offset': jnp.asarray(rng.standard_normal(FIRST)),
        'second': jnp.asarray(rng.standard_normal((SECOND, FIRST, TAPS)) / TAPS),
    }


def literal(p: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Both convolutions of the rows x [r, t], the second with zeros beyond the ends: [g, r, t]."""
    kinds = {'dimension_numbers': ('NCW', 'OIW', 'NCW')}
    h = lax.conv_general_dilated(x[:, None], p['first'][:, None], (1,), [PAD], **kinds)
    return lax.conv_general_dilated(h + p['offset'][:, None], p['second'], (1,), [PAD], **kinds).swapaxes(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize('t', LENGTHS)
def test_joined_filters_equal_both_convolutions(t: int) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(t).standard_normal((3, t)))

        def joined(v: Any) -> tuple[jax.Array, Any]:
            p = v['params']
            found = eegnex._joined(t, p['first'], p['offset'], p['second'])
            constant = jnp.repeat(found.constant, eegnex._outputs(t)[1].astype(int), axis=1, total_repeat_length=t)
            return eegnex._apply(found, jnp.broadcast_to(x, (SECOND, *x.shape))) + constant[:, None], ()

        found, wanted = (
            compiled(lambda p, f=f: value_and_grad(f, {'params': p}))(weights())
            for f in (joined, lambda v: (literal(v['params'], x), ()))
        )
        close(found, wanted)


@pytest.mark.parametrize('t', [40, *(pytest.param(t, marks=pytest.mark.slow) for t in (64, 160))])
def test_moments_equal_those_of_the_literal_output(t: int) -> None:
    """And their gradients; data with offsets, a row of padding."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(t)
        x = rng.standard_normal((5, 3, t)) + 2 * rng.standard_normal((5, 3, 1)) + 5
        mask = np.array([True, False, True, True, True])
        batch = {'x': jnp.asarray(x), 'mask': jnp.asarray(mask)}

        def from_data(v: Any) -> tuple[jax.Array, Any]:
            p = v['params']
            moments = eegnex._moments(batch, eegnex._joined(t, p['first'], p['offset'], p['second']), None)
            return jnp.stack(moments[:2]), moments.n

        def from_output(v: Any) -> tuple[jax.Array, Any]:
            out = literal(v['params'], jnp.asarray(x[mask].reshape(-1, t)))
            return jnp.stack([out.mean((1, 2)), out.var((1, 2))]), out[0].size

        found, wanted = (
            compiled(lambda p, f=f: value_and_grad(f, {'params': p}))(weights()) for f in (from_data, from_output)
        )
        close(found, wanted)


@pytest.mark.slow
def test_moments_bear_offsets() -> None:
    """Float32, all data 100 sd from zero: as accurate as the literal form."""
    rng, t = np.random.default_rng(0), 160
    x = (rng.standard_normal((4, 2, t)) + 100).astype(np.float32)
    with jax.enable_x64(True):
        truth = np.asarray(compiled(literal)(weights(), jnp.asarray(x.reshape(-1, t), float)))
    p = {k: jnp.asarray(v, jnp.float32) for k, v in weights().items()}
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(4, bool)}
    of = compiled(lambda p: eegnex._moments(batch, eegnex._joined(t, p['first'], p['offset'], p['second']), None))
    moments = of(p)
    np.testing.assert_allclose(moments.var, truth.var((1, 2)), rtol=1e-4)
    np.testing.assert_allclose(moments.mean, truth.mean((1, 2)), atol=1e-4 * np.sqrt(truth.var((1, 2))).max())
