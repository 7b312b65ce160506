"""What networks say that they do to their windows is what they do."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import narrow
import numpy as np
import pytest
from families import often

from jbench.models import MODELS

NAMES = ('bendr', 'biot', 'luna_base', 'steegformer_small', 'eegpt', 'labram', 'cbramod')
SCALED, AVERAGE = ('bendr', 'biot', 'luna', 'steegformer'), ('eegpt',)  # first words of names


def test_those_that_change_their_windows_say_so() -> None:
    said = {m.name.partition('_')[0] for m in MODELS.values() if m.on_the_fly}
    assert said == {*SCALED, *AVERAGE}


@pytest.mark.parametrize('name', often(NAMES, ('biot', 'eegpt', 'labram')))
def test_what_is_said_is_done(name: str, monkeypatch) -> None:
    """Windows of another unit, or with something in all channels, are the same to those that take it out."""
    model, signal = narrow.built(name, monkeypatch)
    rng, variables = np.random.default_rng(0), narrow.drawn(model)
    unit = 1e-8 if name == 'bendr' else 1e-2  # of a channel of the range of volts nothing is left
    x = unit * rng.normal(size=(2, signal.n_chans, signal.n_times))
    if name == 'bendr':  # which scales what it mixed, and what is added there has no unit
        variables['params']['adapter']['bias'] *= 0
    common = unit * rng.normal(size=(2, 1, signal.n_times))

    @jax.jit
    def answer(x):
        return model.apply(variables, {'x': x, 'mask': jnp.ones(2, bool)}, train=False, key=None).outputs

    plain, larger, shifted = (np.asarray(answer(jnp.asarray(v, jnp.float32))) for v in (x, 32 * x, x + common))
    first, size = name.partition('_')[0], np.abs(plain).max()
    assert (np.abs(larger - plain).max() < 1e-3 * size) == (first in SCALED)
    assert (np.abs(shifted - plain).max() < 1e-4 * size) == (first in AVERAGE)
