"""Attention against its literal form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from networks import compiled

from jbench.models.layers import blocks, wide_attention
from jbench.models.layers.attention import PackedAttention
from jbench.models.layers.wide_attention import attend_wide

RNG = np.random.default_rng(0)


def small(monkeypatch: pytest.MonkeyPatch, pieces: int, nbytes: int) -> None:
    """Let scores of so many bytes be made in some pieces; 1: all at once."""
    at_once = nbytes if pieces == 1 else 0
    cut = wide_attention.Cut(at_once, at_once, nbytes // pieces)
    monkeypatch.setattr(wide_attention, 'MOST_ANSWERED', 0)
    monkeypatch.setattr(wide_attention, 'ON_PROCESSOR', cut)


@pytest.mark.parametrize(('pieces', 'size'), [(1, 20), (1, 40), (4, 20), (12, 20)])  # of 12 rows
def test_attention_of_wide_heads_equals_its_literal_form(
    pieces: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a dropout and without, whatever the size of the scores; the gradient too, and row by row."""
    small(monkeypatch, pieces, 12 * 8 * 7 * 7)
    assert wide_attention.n_pieces(12, 8 * 7 * 7, size) == pieces
    with jax.enable_x64(True):
        q, k, v = RNG.standard_normal((3, 4, 3, 7, size))
        q[0, 0] *= 300
        keep = RNG.uniform(size=(4, 3, 7, 7)) > 0.3

        def literal(q, k, v, kept):
            weights = jax.nn.softmax(q @ k.swapaxes(2, 3) / np.sqrt(size))
            return (weights if kept is None else jnp.where(kept, weights / 0.7, 0)) @ v

        def both(*x):
            return [
                jax.value_and_grad(lambda *x, f=f, kept=kept: (f(*x, kept) ** 3).sum(), (0, 1, 2))(*x)
                for kept in (None, keep)
                for f in (literal, lambda q, k, v, kept: attend_wide(q, k, v, kept, 0.3))
            ]

        found = compiled(both)(q, k, v)
        for expected, ours in (found[:2], found[2:]):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9), ours, expected)


def test_scores_are_made_a_few_rows_at_a_time() -> None:
    """Where they are large: in equal pieces of some 4 MB, but not in a multitude of small ones."""
    mb = 1 << 20
    cases = ((16, 2 * mb), (16, 4 * mb), (34, 4 * mb), (1217, mb // 16), (1, 100 * mb), (1216, mb // 16))
    assert [wide_attention.n_pieces(*case, 64) for case in cases] == [1, 16, 34, 1, 1, 19]
    wide, narrow = (32 * 8, 4 * 190**2, 64), (16 * 10, 4 * 191**2, 20)
    assert wide_attention.n_pieces(*wide) == 16 and wide_attention.n_pieces(*narrow) == 8
    assert wide_attention.n_pieces(*narrow[:2], 64) == 1 and wide_attention.n_pieces(80, *narrow[1:]) == 1


def test_queries_of_very_long_rows_are_taken_in_blocks() -> None:
    lengths = 704, 2049, 5121, 2053  # the last is a prime number
    assert [wide_attention.n_blocks(n, 4 * n * n) for n in lengths] == [1, 3, 9, 1]


def test_without_a_gradient_narrow_heads_and_short_rows_answer_more_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 4 * 12 * 7 * 7
    monkeypatch.setattr(wide_attention, 'ON_PROCESSOR', wide_attention.Cut(0, 0, most // 4))
    monkeypatch.setattr(wide_attention, 'MOST_ANSWERED', most)

    def answer(q: jax.Array) -> jax.Array:
        return attend_wide(q, q, q).sum()

    def cut(function: Callable[..., Any], length: int, size: int = 20) -> bool:
        return 'scan' in str(jax.make_jaxpr(function)(jnp.zeros((4, 3, length, size))))

    assert not cut(answer, 7) and cut(jax.grad(answer), 7)
    assert cut(answer, 8) and not cut(answer, 7, 40)
    monkeypatch.setattr(wide_attention, 'SHORT', 4 * 6 * 6 - 1)
    assert not cut(answer, 6) and cut(answer, 6, 40)


@pytest.mark.slow
@pytest.mark.parametrize('size', [4, 40])
def test_at_once_or_in_pieces_the_answer_is_the_same(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a dropout, of keys that are not all seen, more than queries, and of other features than values. Pieces are
    of a row, of three, and of three blocks of a row's queries; without a gradient, five queries of narrow heads go at
    once, and all of a wide one."""
    q, k, v = (RNG.standard_normal((2, 3, *shape)) for shape in ((9, size), (7, size), (7, 5)))
    keep, seen = RNG.uniform(size=(2, 3, 9, 7)) > 0.3, np.abs(np.arange(9)[:, None] - np.arange(7)) <= 3

    def scans_and_products() -> tuple[int, int]:
        program = str(jax.make_jaxpr(lambda *x: attend_wide(*x, keep, 0.3, seen=seen))(q, k, v))
        return program.count('scan['), program.count('dot_general')

    def answers() -> list[jax.Array]:
        found, gradient = jax.vjp(lambda *x: attend_wide(*x, keep, 0.3, seen=seen), q, k, v)
        return [*(attend_wide(q, k, v, kept, 0.3, seen=seen) for kept in (keep, None)), found, *gradient(found)]

    with jax.enable_x64(True):
        whole = answers()
        monkeypatch.setattr(wide_attention, 'SHORT', 8 * 5 * 7)
        for piece, most in ((8 * 9 * 7, 0), (8 * 9 * 7, 1 << 20), (3 * 8 * 9 * 7, 0), (8 * 9 * 7 // 3, 0)):
            monkeypatch.setattr(wide_attention, 'ON_PROCESSOR', wide_attention.Cut(0, 0, piece))
            monkeypatch.setattr(wide_attention, 'MOST_ANSWERED', most)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12), answers(), whole)
            answered = (0, 2 * 2) if size == 4 else (1, 2)
            assert scans_and_products() == (answered if most else (2, 2))


def test_on_an_accelerator_scores_are_cut_for_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
    assert wide_attention.n_pieces(16 * 10, 4 * 641**2, 20) == 1
    assert wide_attention.n_pieces(64 * 8, 4 * 704**2, 64) == 8


@pytest.mark.slow
@pytest.mark.parametrize(('size', 'spread', 'pieces'), [(8, 0.5, 8), (20, 2.0, 8), (20, 2.0, 32)])
def test_pieces_are_as_exact_in_bfloat16(
    size: int, spread: float, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight rows, or of four blocks of each: where the gradient makes scores anew, they are the same to the last
    bit, and logarithms of sums are not rounded to bfloat16."""
    arrays = [jnp.asarray(a, jnp.bfloat16) for a in spread * RNG.standard_normal((3, 4, 2, 400, size))]

    def grads(dtype: Any) -> np.ndarray:
        found = jax.grad(lambda *x: (attend_wide(*x).astype(jnp.float32) ** 2).sum(), (0, 1, 2))
        return np.asarray(compiled(found)(*(a.astype(dtype) for a in arrays)), np.float32)

    exact, whole = grads(jnp.float32), grads(jnp.bfloat16)
    small(monkeypatch, pieces, 8 * 2 * 400 * 400)
    in_pieces = grads(jnp.bfloat16)
    errors = [((a - exact) ** 2).mean((1, 2, 3, 4)) for a in (in_pieces, whole)]  # of queries, keys, values
    assert (errors[0] < 1.5 * errors[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize('pieces', [1, 2])
def test_attention_sees_what_it_may(pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token and its neighbours: the others change nothing, and feel no gradient."""
    small(monkeypatch, pieces, 2 * 4 * 6 * 6)
    q, k, v = RNG.standard_normal((3, 1, 2, 6, 4))
    seen = np.abs(np.arange(6)[:, None] - np.arange(6)) <= 1

    @compiled
    def first(k: jax.Array, v: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        return jax.value_and_grad(lambda k, v: attend_wide(q, k, v, seen=seen)[:, :, 0].sum(), (0, 1))(k, v)

    found, grads = first(k, v)
    two = attend_wide(q[:, :, :1], k[:, :, :2], v[:, :, :2]).sum()
    np.testing.assert_allclose(found, two, rtol=1e-5)
    for grad in map(np.asarray, grads):
        assert np.isfinite(grad).all() and (grad[:, :, 2:] == 0).all() and (grad[:, :, :2] != 0).any()


@pytest.mark.parametrize('rate', [0.0, 0.4])
def test_packed_attention_equals_its_literal_form(rate: float) -> None:
    """Thirds of one matrix, heads side by side; of the probabilities each is dropped or scaled."""
    rows, length, width, heads = 3, 5, 12, 4
    layer, key = PackedAttention(width, heads, rate), jax.random.key(1)
    x = RNG.standard_normal((rows, length, width))
    with jax.enable_x64(True):
        shapes = jax.eval_shape(layer.init, key, x, None)['params']
        params = jax.tree.map(lambda a: RNG.standard_normal(a.shape), shapes)
        found = compiled(lambda x: layer.apply({'params': params}, x, key))(x)
        joined = (x @ params['in_weight'].T + params['in_bias']).reshape(rows, length, 3, heads, -1)
        q, k, v = joined.transpose(2, 0, 3, 1, 4)
        weights = np.asarray(jax.nn.softmax(q @ k.swapaxes(2, 3) / np.sqrt(width / heads)))
        kept = blocks.kept(key, rate, weights.shape, None, 0) if rate else np.ones(weights.shape, bool)
        mixed = (np.where(kept, weights / (1 - rate), 0) @ v).transpose(0, 2, 1, 3).reshape(rows, length, width)
    np.testing.assert_allclose(found, mixed @ params['out']['weight'].T + params['out']['bias'], atol=1e-10)
    assert 0.4 < kept.mean() < 0.8 if rate else kept.all()
