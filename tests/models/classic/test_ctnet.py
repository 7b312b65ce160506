"""What CTNet shares with EEGNet, ATCNet and EEGNeX, each fast form beside its literal one; its table of positions."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import close, compiled, value_and_grad

from jbench.models.classic.ctnet import ctnet, n_positions, n_tokens
from jbench.models.layers import blocks, filters, spatial_first
from jbench.models.model import Batch
from jbench.spec.model import Signal

N_TEMPORAL, PER_TEMPORAL = 3, 2


class Front(nn.Module):
    """Temporal filters, batch norm, spatial filters: the fast form, or the literal one that builds every tensor."""

    n_taps: int
    pad: tuple[int, int]
    fast: bool

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool) -> jax.Array:
        x, mask = batch['x'], batch['mask']
        b, c, t = x.shape
        temporal = self.param('temporal', blocks.uniform(1), (N_TEMPORAL, self.n_taps))
        spatial = self.param('spatial', blocks.uniform(1), (N_TEMPORAL * PER_TEMPORAL, c))
        norm = blocks.BatchNorm(N_TEMPORAL, name='norm')
        if self.fast:
            return spatial_first.temporal_spatial(batch, temporal, spatial, norm, self.pad, train=train)
        padded = jnp.pad(x, ((0, 0), (0, 0), self.pad))
        length = t + sum(self.pad) - self.n_taps + 1
        h = sum(temporal[:, None, None, None, i] * padded[..., i : i + length] for i in range(self.n_taps))
        moved = h.transpose(0, 1, 3, 2).reshape(N_TEMPORAL, b, -1)  # all channels of a window are its samples
        h = norm(moved, mask, train=train).reshape(N_TEMPORAL, b, length, c)
        grouped = spatial.reshape(N_TEMPORAL, PER_TEMPORAL, c)
        return jnp.einsum('fdc,fbsc->fdbs', grouped, h).reshape(-1, b, length)


@pytest.mark.parametrize(
    ('n_taps', 'pad', 't'),
    [
        pytest.param(64, (31, 32), 90, marks=pytest.mark.slow),
        pytest.param(49, (24, 24), 60, marks=pytest.mark.long),
        (6, (2, 3), 8),
        (1, (0, 0), 3),
    ],
)
def test_spatial_first_equals_the_literal_order(n_taps: int, pad: tuple[int, int], t: int) -> None:
    """Value, gradient, running statistics in training, value in evaluation; windows with offsets, rows of padding."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(t)
        x = rng.standard_normal((5, 4, t)) + 3 * rng.standard_normal((5, 1, 1)) + 2
        batch = {'x': jnp.asarray(x), 'mask': jnp.asarray([True, True, False, True, True])}
        fast, literal = Front(n_taps, pad, True), Front(n_taps, pad, False)
        variables = compiled(lambda key: literal.init(key, batch, train=False))(jax.random.key(0))
        variables = jax.tree.map(lambda v: np.asarray(v) + rng.uniform(0, 0.5, v.shape), variables)

        def both(front: Front) -> Any:
            def run(variables: Any) -> Any:
                trained = value_and_grad(
                    lambda v: front.apply(v, batch, train=True, mutable=['batch_stats']), variables
                )
                return trained, front.apply(variables, batch, train=False)

            return compiled(run)(variables)

        close(both(fast), both(literal))


@pytest.mark.parametrize(('t', 'width'), [(480, 8), (41, 4), (61, 1), (13, 13), (1200, 6)])
def test_elu_mean_equals_its_parts(t: int, width: int) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray(3 * np.random.default_rng(t).standard_normal((2, 3, t))).at[0, 0, 0].set(0)

        def literal(x: jax.Array) -> jax.Array:
            n = t // width
            return nn.elu(x)[..., : n * width].reshape(2, 3, n, width).mean(-1)

        found, wanted = (
            compiled(lambda x, f=f: value_and_grad(lambda v: (f(v['params']), ()), {'params': x}))(x)
            for f in (lambda x: filters.elu_mean(x, width), literal)
        )
        close(found, wanted, 1e-14)


@pytest.mark.slow
def test_positions_beyond_the_tokens_are_dead() -> None:
    """As in the reference: the table has 100 rows, more for very long windows, and only those of tokens count."""
    assert [(n_tokens(t), n_positions(t)) for t in (64, 480, 6463, 6528)] == [
        (1, 100),
        (7, 100),
        (100, 100),
        (102, 102),
    ]
    model = ctnet(Signal(n_chans=2, n_times=150, sfreq=120.0), 2)
    batch = {'x': jnp.asarray(np.random.default_rng(0).standard_normal((4, 2, 150))), 'mask': jnp.ones(4, bool)}
    variables = compiled(model.init)(jax.random.key(0))

    @compiled
    def logits(position: jax.Array) -> jax.Array:
        params = variables['params'] | {'position': position}
        return model.apply(variables | {'params': params}, batch, train=False, key=None)[0]

    position = variables['params']['position']
    np.testing.assert_array_equal(logits(position.at[2:].add(1)), logits(position))
    assert np.abs(logits(position.at[1].add(1)) - logits(position)).max() > 1e-3
