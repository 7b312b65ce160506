"""Patches on the grid of channels and time against their literal forms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import compiled

from jbench.models.layers.grid import GridPatches, amplitudes, grid_tensors, neighbours
from jbench.models.layers.patches import Front, GroupNorm, spread

RNG = np.random.default_rng(0)


@pytest.mark.parametrize('kernel', [(19, 7), (3, 5), (1, 5)])
def test_neighbours_equal_a_convolution(kernel: tuple[int, int]) -> None:
    """On grids that are smaller and larger than the kernel; no other channel or patch comes in from the edges."""
    high, wide = kernel
    with jax.enable_x64(True):
        for c, p in ((1, 1), (4, 2), (12, 5)):
            x, taps = RNG.standard_normal((2, c, p, 3)), RNG.standard_normal((3, *kernel))
            padded = np.pad(x, ((0, 0), (high // 2,) * 2, (wide // 2,) * 2, (0, 0)))
            parts = [padded[:, i : i + c, j : j + p] * taps[:, i, j] for i in range(high) for j in range(wide)]
            np.testing.assert_allclose(compiled(neighbours)(x, taps), sum(parts), atol=1e-12)


def test_amplitudes_equal_the_transform() -> None:
    """And their gradient is that of magnitudes, zero where these are."""
    with jax.enable_x64(True):
        x = RNG.standard_normal((3, 200))
        x[1], x[2] = np.cos(np.pi * np.arange(200)), 0
        value, gradient = compiled(jax.value_and_grad(lambda x: amplitudes(x)[:, ::2].sum()))(x)
        spectra = np.fft.rfft(x, norm='forward')
        np.testing.assert_allclose(compiled(amplitudes)(x), np.abs(spectra), atol=1e-14)
        np.testing.assert_allclose(value, np.abs(spectra[:, ::2]).sum())
        phases = spectra[0] / np.abs(spectra[0])
        waves = np.exp(-2j * np.pi * np.outer(np.arange(200), np.arange(101)) / 200) / 200
        np.testing.assert_allclose(gradient[0], (waves * phases.conj()).real[:, ::2].sum(1), atol=1e-12)
        np.testing.assert_array_equal(gradient[2], 0)


@pytest.mark.parametrize('feature_major', [True, False])
def test_a_convolution_as_a_matrix(feature_major: bool) -> None:
    weight, x = RNG.standard_normal((4, 3, 5)), RNG.standard_normal((3, 11))
    stride, pad = 2, 1
    padded = np.pad(x, ((0, 0), (pad, pad)))
    expected = np.stack([np.tensordot(weight, padded[:, s : s + 5], 2) for s in range(0, 9, stride)], 1)  # [out, t]
    flat, wanted = (x, expected) if feature_major else (x.T, expected.T)
    with jax.enable_x64(True):
        matrix = np.asarray(spread(jnp.asarray(weight), 11, stride, pad, feature_major))
    np.testing.assert_allclose(flat.reshape(-1) @ matrix, wanted.reshape(-1), atol=1e-12)


@pytest.mark.parametrize('feature_major', [True, False])
def test_a_norm_of_groups_runs_over_all_rows_of_a_window(feature_major: bool) -> None:
    """And over none of another window."""
    b, rows, f, length, groups = 2, 4, 6, 5, 3
    x = 3 + RNG.standard_normal((b, rows, groups, f // groups, length)) * np.arange(1, 4)[:, None, None]
    mean, var = x.mean((1, 3, 4), keepdims=True), x.var((1, 3, 4), keepdims=True)
    scale, bias = RNG.standard_normal((2, f))
    expected = ((x - mean) / np.sqrt(var + 1e-5)).reshape(b, rows, f, length) * scale[:, None] + bias[:, None]
    order = (0, 1, 2, 3) if feature_major else (0, 1, 3, 2)
    flat, expected = (a.reshape(b, rows, f, length).transpose(order).reshape(b, rows, -1) for a in (x, expected))
    with jax.enable_x64(True):
        norm = GroupNorm(f, length, groups, feature_major)
        found = compiled(lambda x: norm.apply({'params': {'scale': scale, 'bias': bias}}, x))(flat)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.slow
def test_other_widths_and_a_kernel_over_patches_alone() -> None:
    """As EEG-DINO has them: 64, 128, 64 features in groups of 8, five patches, a code of the channel in the sum."""
    front = Front(samples=200, widths=(64, 128, 64), groups=8, taps=49, stride=25, pad=24, feature_major=True)
    layer = GridPatches(front, (1, 5), 0.1)
    x, code = RNG.standard_normal((1, 3, 2, 200)), RNG.standard_normal((3, 1, front.width))
    shapes = jax.eval_shape(layer.init, jax.random.key(0), x, None)['params']
    tensors = grid_tensors(front, (1, 5), 'patch_embedding', path=(), position='time_encoding')
    sizes = {t.name.partition('.')[2]: t.shape for t in tensors}
    assert front.width == 512 and sizes['time_encoding.0.weight'] == (512, 1, 1, 5)
    assert sizes['proj_in.3.weight'] == (128, 64, 1, 3) and sizes['spectral_proj.0.weight'] == (512, 101)
    assert sum(np.prod(t.shape) for t in tensors) == sum(leaf.size for leaf in jax.tree.leaves(shapes))
    params = {'params': jax.tree.map(lambda a: RNG.standard_normal(a.shape).astype('f') * 0.1, shapes)}
    with_code, without = compiled(lambda x, code: [layer.apply(params, x, None, more) for more in (code, 0.0)])(x, code)
    taps, bias = (params['params'][name] for name in ('position', 'position_bias'))
    moved = code + np.asarray(neighbours(jnp.broadcast_to(jnp.asarray(code, 'f'), (1, 3, 2, 512)), taps))
    assert with_code.shape == (1, 3, 2, 512) and np.abs(bias).max() > 0
    np.testing.assert_allclose(with_code - without, moved, atol=1e-4)
