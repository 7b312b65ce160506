"""ATCNet: its shrinking sizes, its stacked windows beside one window after the other, the norm limit of its columns."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import close, compiled, value_and_grad

from jbench.models.classic import atcnet
from jbench.models.classic.atcnet import DILATIONS, MAX_NORM, WIDTH, _Window, sizes
from jbench.models.layers import blocks
from jbench.spec.model import Signal

SIZES = {
    1: (1, 1, 1, 1, 1, 2),
    200: (20, 5, 2, 2, 1, 2),
    240: (24, 6, 3, 2, 1, 2),
    480: (49, 12, 6, 5, 3, 3),
    600: (62, 15, 7, 6, 4, 3),
    615: (63, 15, 7, 6, 4, 3),
    616: (64, 16, 8, 7, 5, 4),
    1200: (64, 16, 8, 7, 5, 4),
}  # samples: filters, poolings, windows, causal filters


def test_sizes_shrink_as_in_the_reference() -> None:
    assert {t: tuple(sizes(t)) for t in SIZES} == SIZES
    assert [sizes(t).reach for t in (240, 480, 616)] == [7, 13, 19]
    assert [atcnet.same(k) for k in (64, 49, 12, 1)] == [(31, 32), (24, 24), (5, 6), (0, 0)]


def literal_window(variables: Any, h: jax.Array, mask: jax.Array, train: bool) -> tuple[jax.Array, Any]:
    """One window, each step on all its times, as the paper writes it: (logits, new state)."""
    p, state, new = variables['params'], variables['batch_stats'], {}

    def linear(x: jax.Array, name: str) -> jax.Array:
        return x @ p['attention'][name]['weight'].T + p['attention'][name]['bias']

    def norm(x: jax.Array, name: str) -> jax.Array:
        if not train:
            mean, var = state[name]['mean'], state[name]['var']
        else:
            valid = x[:, mask]
            mean, var, n = valid.mean((1, 2)), valid.var((1, 2)), valid[0].size
            moments = {'mean': mean, 'var': var * n / (n - 1)}
            new[name] = {k: 0.9 * state[name][k] + 0.1 * moments[k] for k in moments}
        gain = p[name]['scale'] / jnp.sqrt(var + 1e-5)
        return (x - mean[:, None, None]) * gain[:, None, None] + p[name]['bias'][:, None, None]

    x = h.transpose(1, 2, 0)
    y = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)
    y = y * p['norm']['scale'] + p['norm']['bias']
    heads = []
    for head in (slice(0, 8), slice(8, 16)):
        q, k, v = (linear(y, name)[..., head] for name in ('query', 'key', 'value'))
        heads.append(jax.nn.softmax(q @ k.swapaxes(1, 2) / np.sqrt(8)) @ v)
    h = (x + linear(jnp.concatenate(heads, -1), 'projection')).transpose(2, 0, 1)
    for i, dilation in enumerate(DILATIONS):
        inner = h
        for j in range(2):
            taps = p[f'taps_{i}_{j}']
            past = jnp.pad(inner, ((0, 0), (0, 0), ((taps.shape[2] - 1) * dilation, 0)))
            shifts = [past[..., k * dilation : k * dilation + h.shape[2]] for k in range(taps.shape[2])]
            inner = sum(jnp.einsum('gf,fbt->gbt', taps[..., k], s) for k, s in enumerate(shifts))
            inner = nn.elu(norm(inner + p[f'bias_{i}_{j}'][:, None, None], f'bn_{i}_{j}'))
        h = nn.elu(h + inner)
    length = jnp.maximum(jnp.linalg.norm(p['linear'], axis=0), MAX_NORM / 2)
    weight = p['linear'] * jnp.minimum(length, MAX_NORM) / (length + 1e-5)
    return h[..., -1].T @ weight.T + p['linear_bias'], new if train else state


@pytest.mark.parametrize(
    'train', [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.long)]
)
def test_stacked_windows_equal_one_after_the_other(train: bool) -> None:
    """Value, gradient and statistics; in evaluation only the times that the last one sees are computed."""
    with jax.enable_x64(True):
        size, n, rng = sizes(480), 2, np.random.default_rng(0)
        stacked = nn.vmap(
            _Window, in_axes=(0, None, 0), variable_axes={'params': 0, 'batch_stats': 0}, split_rngs={'params': True}
        )(3, size, train, None, 0.3)
        h = jnp.asarray(rng.standard_normal((n, WIDTH, 4, size.reach + 4)))
        mask = np.array([True, True, False, True])
        variables = jax.eval_shape(stacked.init, jax.random.key(0), h, mask, None)
        variables = jax.tree.map(lambda v: jnp.asarray(rng.uniform(-0.3, 0.6, v.shape)), variables)
        variables['batch_stats'] = jax.tree.map(lambda v: v + 0.4, variables['batch_stats'])

        def batched(variables: Any) -> Any:
            def both(v: Any) -> Any:
                (logits, _), new = stacked.apply(v, h, mask, None, mutable=['batch_stats'])
                return logits, new

            return value_and_grad(both, variables)

        def looped(variables: Any) -> Any:
            def each(v: Any) -> Any:
                rows = [jax.tree.map(lambda a, i=i: a[i], v) for i in range(n)]
                found = [literal_window(row, h[i], mask, train) for i, row in enumerate(rows)]
                return jnp.stack([f[0] for f in found]), {
                    'batch_stats': jax.tree.map(lambda *a: jnp.stack(a), *[f[1] for f in found])
                }

            return value_and_grad(each, variables)

        close(compiled(batched)(variables), compiled(looped)(variables))


@pytest.mark.slow
def test_columns_of_the_linear_layer_are_limited() -> None:
    """Columns, not rows; near 1 below the limit; what was drawn beyond it is stored enlarged; a zero column is fine."""
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((4, 5))
    lengths = np.array([0.0, 0.05, 0.2, 0.3, 1.0])
    weight *= lengths / np.linalg.norm(weight, axis=0)
    factors = atcnet._limit_of_columns(jnp.asarray(weight))[0]
    np.testing.assert_allclose(
        factors, [0.125 / 0.12501, 0.125 / 0.12501, 0.2 / 0.20001, 0.25 / 0.30001, 0.25 / 1.00001]
    )
    assert np.isfinite(jax.grad(lambda w: atcnet._limit_of_columns(w).sum())(jnp.asarray(weight))).all()
    key = jax.random.key(0)
    drawn, raw = blocks.uniform(WIDTH**-0.5)(key, (12, WIDTH)), atcnet._enlarged(key, (12, WIDTH))
    before, stored = np.linalg.norm(drawn, axis=0), np.linalg.norm(raw, axis=0)
    np.testing.assert_allclose(stored, before * np.maximum(before / MAX_NORM, 1), rtol=1e-4)
    assert (stored[before > 0.3] > 0.35).all()


@pytest.mark.slow
def test_dropout_takes_whole_features() -> None:
    """A feature of the only window that is dropped at all times teaches the taps that read it nothing."""
    model = atcnet.atcnet(Signal(n_chans=3, n_times=480, sfreq=120.0), 2)
    batch = {'x': jax.random.normal(jax.random.key(0), (1, 3, 480)), 'mask': jnp.ones(1, bool)}
    variables = compiled(model.init)(jax.random.key(1))

    def total(params: Any) -> jax.Array:
        return model.apply(variables | {'params': params}, batch, train=True, key=jax.random.key(2))[0].sum()

    taps = compiled(jax.grad(total))(variables['params'])['taps']  # [to, from, taps]
    silent = int((taps == 0).all((0, 2)).sum())
    assert 3 < silent < 18, silent  # of 32 with probability 0.3
