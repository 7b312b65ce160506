"""Where LUNA's float32 numbers leave the exact ones: a phase next to -pi is pi where the imaginary part counts as 0."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import compiled, lively

from jbench.models.foundation import luna
from jbench.models.foundation.luna_layers import phase, spectrum
from jbench.spec.model import Signal

BIN = 5


def patches(imaginary: np.ndarray) -> np.ndarray:
    """Patches [n, 40], of one draw but for a coefficient of -1 and an imaginary part."""
    coefficients = np.fft.rfft(np.random.default_rng(0).standard_normal(40)) + np.zeros((len(imaginary), 1))
    coefficients[:, BIN] = -1 + 1j * imaginary
    return np.fft.irfft(coefficients, 40)


@pytest.mark.slow
def test_a_phase_is_that_of_the_library() -> None:
    """All around, on the axes and between them, near and far; and so are its derivatives."""
    angles = np.concatenate([np.linspace(-np.pi, np.pi, 10001), np.arange(-4, 5) * np.pi / 4])
    lengths = np.array([1e-10, 1.0, 1e10])[:, None]
    y, x = (np.float32(lengths * part(angles)) for part in (np.sin, np.cos))
    axes = np.float32([[0, 0, 1, -1], [1, -1, 0, 0]])
    y, x = np.concatenate([y.ravel(), axes[0]]), np.concatenate([x.ravel(), axes[1]])
    np.testing.assert_allclose(jax.jit(phase)(y, x), np.arctan2(y.astype(float), x.astype(float)), rtol=0, atol=4e-7)
    for which in (0, 1):
        found, expected = (jax.vmap(jax.grad(f, which))(y, x) for f in (phase, jnp.arctan2))
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(
            phase(y.astype(float), x.astype(float)), jnp.arctan2(y.astype(float), x.astype(float))
        )


@pytest.mark.slow
def test_a_phase_jumps_where_a_part_is_rounding() -> None:
    """Below 4 eps of the sum of magnitudes, and nowhere else."""
    imaginary = np.geomspace(1e-7, 1e-3, 1000)
    x = patches(np.concatenate([imaginary, -imaginary])).astype(np.float32)
    exact = np.fft.rfft(x.astype(float))
    off = np.abs(np.asarray(jax.jit(spectrum)(x), float)[:, 21:] - np.angle(exact))
    rounding = 4 * np.finfo(np.float32).eps * np.abs(x).sum(1)
    part, jumps = exact[:, BIN].imag / rounding, off > 6
    assert jumps[:, BIN][(part < 0) & (part > -0.9)].all()
    assert not jumps[:, BIN][(part > 0) | (part < -1.1)].any()
    assert not np.delete(jumps, BIN, 1).any()
    assert (np.where(jumps, 0, off) * np.abs(exact)).max() < 1.1 * rounding.max()


@pytest.mark.slow
def test_logits_leave_the_exact_ones_by_a_jump_alone() -> None:
    """The window with a phase of -pi + 3e-6 gets the logits of the one with pi - 3e-6; others are exact."""
    signal = Signal(n_chans=1, n_times=40, sfreq=256.0, positions=((0.0, 0.0, 0.1),))
    options = luna._Options(None, dropout=0.1, drop_path=0.1, mlp_norm=False, remat=False)
    model = luna.build('luna', luna.BASE._replace(depth=1), signal, 4, options)
    x = patches(np.array([-3e-6, 3e-6, -3e-4, 3e-4]))[:, None]

    def logits() -> np.ndarray:
        batch = {'x': jnp.asarray(x, float), 'mask': np.ones(4, bool)}
        evaluate = compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)
        return np.asarray(evaluate(lively('luna', model)), float)

    found = logits()
    with jax.enable_x64(True):
        exact = logits()
    off = np.abs(found - exact).max(1)
    assert off[0] > 1e-3 and off[1:].max() < 1e-5
    np.testing.assert_allclose(found[0], exact[1], rtol=0, atol=1e-5)
