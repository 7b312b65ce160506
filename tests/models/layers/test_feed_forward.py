"""The second branch of a transformer against its plain form."""

from __future__ import annotations

import flax.linen as nn
import jax
import numpy as np
import pytest

from jbench.models.layers import feed_forward
from jbench.models.layers.blocks import Linear, gelu


class _Branch(nn.Module):
    plain: bool

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        wide, narrow = Linear(5, 11, name='wide'), Linear(11, 7, name='narrow')
        return narrow(gelu(wide(x))) if self.plain else feed_forward.feed_forward(wide, narrow, x)


@pytest.mark.slow
def test_both_layouts_equal_the_plain_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, and gradients of weights and windows; the first weights are the same."""
    with jax.enable_x64(True):
        x = np.random.default_rng(0).standard_normal((2, 3, 5))
        weights = _Branch(True).init(jax.random.key(0), x)
        jax.tree.map(np.testing.assert_array_equal, _Branch(False).init(jax.random.key(0), x), weights)

        def found(plain: bool) -> object:
            return jax.value_and_grad(lambda *a: (_Branch(plain).apply(*a) ** 3).sum(), (0, 1))(weights, x)

        def close(a: jax.Array, b: jax.Array) -> None:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

        def by_features() -> bool:
            return 'f64[11,6]' in str(jax.make_jaxpr(_Branch(False).apply)(weights, x))

        for backend, widest in (('cpu', 5), ('cpu', 4), ('gpu', 5)):
            monkeypatch.setattr(jax, 'default_backend', lambda backend=backend: backend)
            monkeypatch.setattr(feed_forward, 'WIDEST', widest)
            assert by_features() == ((backend, widest) == ('cpu', 5))
            jax.tree.map(close, found(False), found(True))
