"""CKA and RDMs: recorded values, invariances, features by blocks, and cases at the edge."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_values import recorded
from each import each
from scipy.stats import rankdata, spearmanr

from jbench.alignment.metrics import features, products
from jbench.alignment.metrics.correlation import ranks
from jbench.alignment.metrics.features import Blocks
from jbench.alignment.metrics.similarity import (
    cka,
    cka_cv,
    compare,
    gram,
    rdm,
    rdm_cv,
    rdm_similarity,
    selected_rsm,
    upper,
)
from jbench.alignment.metrics.splits import Splits
from jbench.spec.errors import RequestError

DTYPES = [('float64', 1e-9), ('float32', 1e-5)]


def pair() -> tuple[np.ndarray, np.ndarray]:
    """Two representations of fifty stimuli."""
    return recorded('similarity')['A'], recorded('similarity')['B']


def by(x: np.ndarray, size: int) -> Blocks:
    """An array as blocks of so many units."""
    return Blocks(len(x), lambda: (x[:, k : k + size] for k in range(0, x.shape[1], size)))


# ---- recorded values ----


@each('dtype, near', DTYPES)
def test_recorded_values(dtype, near):
    g, (a, b) = recorded('similarity'), pair()
    assert cka(a, b, dtype=dtype) == pytest.approx(g['cka_unbiased'], abs=near)
    assert cka(a, b, biased=True, dtype=dtype) == pytest.approx(g['cka_biased'], abs=near)
    assert rdm(a, dtype=dtype) == pytest.approx(g['rdm_A'], abs=near)
    assert rdm_similarity(b, a, dtype=dtype).value == pytest.approx(g['rdm_spearman'], abs=near)
    for metric, name in ((cka_cv, 'cka_cv'), (rdm_cv, 'rdm_cv')):
        m = metric(a, b, labels=g['object_name'], dtype=dtype)
        assert m.values == pytest.approx(g[f'{name}_raw'], abs=near)
        assert (m.value, m.error) == pytest.approx((g[f'{name}_center'], g[f'{name}_error']), abs=near)


def test_independent_data_look_alike_to_the_biased_estimate_alone():
    x, y = (np.random.RandomState(k).uniform(size=(60, 500)) for k in (1, 2))
    assert cka(x, y, dtype='float64') == pytest.approx(recorded('similarity')['indep_unbiased'], abs=1e-9)
    assert cka(x, y, biased=True, dtype='float64') == pytest.approx(recorded('similarity')['indep_biased'], abs=1e-9)


def test_of_selected_units():
    g = recorded('similarity')
    rsm, n = selected_rsm(g['fmri_patterns'])
    assert n == g['fmri_n_selected']
    assert rsm == pytest.approx(g['fmri_rsm'], abs=1e-9)
    with pytest.raises(RequestError, match='0 units respond'):
        selected_rsm(g['fmri_patterns'], above=1e3)


# ---- toys ----


def test_a_representation_is_like_itself():
    x = np.random.RandomState(1).uniform(size=(300, 10))
    assert cka(x, x) == pytest.approx(1, abs=1e-6)
    assert rdm_similarity(x, x).value == 1 and rdm_cv(x[:50], x[:50]).value == 1
    assert cka_cv(x[:50], x[:50]).value == pytest.approx(1, abs=1e-6)


@each('dtype', ['float32', 'float64'])
def test_the_rdm_of_two_kinds_of_stimuli(dtype):
    found = rdm(np.array([[1, 2], [1, 2], [4, 3], [4, 3.0]]), dtype=dtype)
    assert found == pytest.approx(np.kron([[0, 2], [2, 0]], np.ones((2, 2))), abs=1e-3)
    assert (np.diag(found) == 0).all() and (found == found.T).all()
    assert upper(np.arange(9).reshape(3, 3)).tolist() == [1, 2, 5]


@each('seed', range(4))
def test_ranks_and_their_correlation_are_those_of_scipy(seed):
    draw = np.random.default_rng(seed)
    v = draw.integers(0, 5 + 300 * (seed % 2), 200).astype(float)
    assert np.array_equal(ranks(v), rankdata(v))
    a, b = (np.round(rdm(draw.standard_normal((20, 6))), seed) for _ in range(2))
    assert compare(a, b) == pytest.approx(spearmanr(upper(a), upper(b))[0], abs=1e-12)


# ---- invariances ----


def test_turns_and_scales_and_shifts():
    a, b = pair()
    draw = np.random.default_rng(0)
    turn = np.linalg.qr(draw.standard_normal((15, 15)))[0]
    exact = {'dtype': 'float64'}
    for biased in (False, True):
        wanted = cka(a, b, biased=biased, **exact)
        for other in (a @ turn, 7 * a, a + draw.standard_normal(15), a[:, ::-1], -a):
            assert cka(other, b, biased=biased, **exact) == pytest.approx(wanted, abs=1e-10)
        assert cka(b, a, biased=biased, **exact) == pytest.approx(wanted, abs=1e-12)
        assert cka(a * np.linspace(1, 9, 15), b, biased=biased, **exact) != pytest.approx(wanted, abs=1e-3)
    wanted = rdm(a, **exact)
    centred = a - a.mean(axis=1, keepdims=True)
    kept = np.linalg.qr(np.column_stack([np.ones(15), draw.standard_normal((15, 14))]))[0]  # its first axis is the mean
    mirrored = kept @ np.diag([1, *draw.choice([-1, 1], 14)]) @ kept.T
    for other in (3 * a + 5, a * draw.uniform(1, 9, (50, 1)), a + draw.standard_normal((50, 1)), centred @ mirrored):
        assert rdm(other, **exact) == pytest.approx(wanted, abs=1e-10)


@each('dtype, near', DTYPES)
def test_large_means_do_not_swallow_small_differences(dtype, near):
    a, b = pair()
    shift = 1e3 if dtype == 'float64' else 10
    assert cka(a + shift, b, dtype=dtype) == pytest.approx(cka(a, b, dtype=dtype), abs=near)
    assert rdm(a + shift, dtype=dtype) == pytest.approx(rdm(a, dtype=dtype), abs=1e-4)


# ---- blocks ----


@each('size, budget', [(1, 1), (4, 8 * 50 * 4 * 7), (15, 8 * 50 * 4 * 33), (99, 1 << 30)])
def test_blocks_of_units_and_of_rows_give_the_same(size, budget):
    a, b = pair()
    for biased in (False, True):
        found = cka(by(a, size), by(b, size), biased=biased, dtype='float64', budget=budget)
        assert found == pytest.approx(cka(a, b, biased=biased, dtype='float64'), abs=1e-12)
    assert rdm(by(a, size), dtype='float64') == pytest.approx(recorded('similarity')['rdm_A'], abs=1e-12)


def test_products_in_jax_are_the_same(monkeypatch):
    a, _ = pair()
    wanted = gram(a, dtype='float64'), gram(a, 10, 40)
    monkeypatch.setattr(products, 'on_accelerator', lambda: True)
    assert gram(a, dtype='float64') == pytest.approx(wanted[0], abs=1e-10)
    assert gram(a, 10, 40) == pytest.approx(wanted[1], abs=1e-3)


def test_an_array_is_read_by_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(features, 'BLOCK', 50 * 8 * 4)
    a, _ = pair()
    seen = [block.shape for block in features.blocks(a).read()]
    assert seen == [(50, 4)] * 3 + [(50, 3)]
    centred = a - a.mean(axis=0)
    assert gram(a, dtype='float64') == pytest.approx(centred @ centred.T, abs=1e-12)
    assert gram(a, 10, 20, dtype='float64') == pytest.approx((centred @ centred.T)[10:20, 10:], abs=1e-12)


# ---- the edge ----


@each('dtype', ['float32', 'float64'])
def test_a_stimulus_without_a_pattern_is_left_out_and_said(dtype):
    a, b = (m.copy() for m in pair())
    a[3] = 0.1
    found = rdm(a, dtype=dtype)
    assert np.isnan(np.delete(found[3], 3)).all() and np.isnan(found).sum() == 98
    m = rdm_similarity(a, b, dtype=dtype)
    rest = np.delete(np.arange(50), 3)
    assert m.value == pytest.approx(rdm_similarity(a[rest], b[rest], dtype=dtype).value, abs=1e-6)
    assert m.notes == ('1 of 50 stimuli have one response in all units: left out',)
    assert rdm_cv(a, b, how=Splits(n=2, test=0.9)).notes == m.notes


@each('dtype', ['float32', 'float64'])
def test_representations_without_differences(dtype):
    a, _ = pair()
    still = np.full((50, 7), 0.1)
    assert cka(a, still, dtype=dtype) == 0 and cka(a, still, biased=True, dtype=dtype) == 0
    m = rdm_similarity(a, still, dtype=dtype)
    assert np.isnan(m.value) and '50 of 50 stimuli have one response in all units: left out' in m.notes


@each(
    'call, message',
    [
        (lambda a, b: cka(a[:3], b[:3]), '3 and 3 stimuli'),
        (lambda a, b: cka(a[:9], b), '9 and 50 stimuli'),
        (lambda a, b: cka_cv(a[:4], b[:4], how=Splits(test=0.5)), '2 stimuli in a part'),
        (lambda a, b: rdm_similarity(a[:2], b[:2]), '2 and 2 stimuli'),
        (lambda a, b: cka(np.where(a > 4, np.nan, a), b), 'not finite'),
        (lambda a, b: rdm(np.where(a > 4, np.inf, a)), 'not finite'),
        (lambda a, b: rdm(a[:, :0]), 'one of each at least'),
        (lambda a, b: rdm(Blocks(50, lambda: iter(()))), 'no block'),
        (lambda a, b: rdm(Blocks(49, lambda: iter((a,)))), 'it has 49 stimuli'),
        (lambda a, b: compare(rdm(a), rdm(b)[:9, :9]), 'RDMs of shapes'),
        (lambda a, b: cka(a, b, dtype='double'), "'double'"),
    ],
)
def test_what_is_wrong_is_one_message(call, message):
    with pytest.raises(RequestError, match=message):
        call(*pair())
