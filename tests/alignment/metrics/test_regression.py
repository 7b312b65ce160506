"""Regressions from units to neuroids: recorded values, scikit-learn as oracle, invariances, and cases at the edge."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_values import aligned, recorded
from each import each
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import RidgeCV

from jbench.alignment.metrics import products, ridge
from jbench.alignment.metrics.regression import REGRESSIONS, pls_of, regress_cv, regress_split, reverse_cv
from jbench.alignment.metrics.splits import Splits
from jbench.spec.errors import RequestError

RECORDED = {name: name.removeprefix('dual_') for name in REGRESSIONS}
FEW = Splits(n=2)


def shared(n: int, p: int, q: int, noise: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and responses that share some dimensions."""
    draw = np.random.default_rng(seed)
    latent = draw.standard_normal((n, min(p, q, 12)))
    x = latent @ draw.standard_normal((latent.shape[1], p)) + draw.standard_normal((n, p)) + 4
    y = latent @ draw.standard_normal((latent.shape[1], q)) + noise * draw.standard_normal((n, q)) - 2
    return x, y


# ---- recorded values ----


@pytest.mark.slow
@each('name, dtype, near', [(n, d, t) for n in REGRESSIONS for d, t in (('float64', 1e-6), ('float32', 2e-6))])
def test_cross_validated_values(name, dtype, near):
    x, y, labels = aligned()
    g, wanted = recorded('regression'), RECORDED[name]
    m = regress_cv(name, x, y, labels=labels, dtype=dtype)
    assert m.values == pytest.approx(g[f'{wanted}_raw'], abs=near)
    assert (m.value, m.error) == pytest.approx((g[f'{wanted}_center'], g[f'{wanted}_error']), abs=near)
    alphas = [note for note in m.notes if note.startswith('alpha: ')]
    assert not m.notes or alphas == ['alpha: ' + ', '.join(f'{a:g}' for a in g['ridgecv_alpha'])]


@each('dual', [True, False])
def test_pls_both_ways_to_the_last_digits(dual):
    """n x n and p x p products: the iteration of NIPALS is reproduced, not its limit, so the digits agree."""
    x, y, labels = aligned()
    m = regress_cv(REGRESSIONS['pls']._replace(dual=dual), x, y, labels=labels, dtype='float64')
    assert m.values == pytest.approx(recorded('regression')['pls_raw'], abs=1e-10)


def test_reverse_pls():
    g = recorded('regression')
    order = {s: k for k, s in enumerate(g['target_stimulus_id'])}
    y = g['target'][[order[s] for s in g['source_stimulus_id']]]
    m = reverse_cv(pls_of(10), g['source'], y, labels=g['source_object_name'], dtype='float64')
    assert m.values == pytest.approx(g['reverse_pls10_raw'], abs=1e-6)
    assert m.error == pytest.approx(g['reverse_pls10_error'], abs=1e-6)
    fewer = reverse_cv('pls', g['source'], y, how=FEW)
    assert fewer.notes == ('pls: 12 components for 25, no more to be found (2 of 2 splits)',)


@each('dual', [True, False])
def test_large_products_give_the_same_in_jax(dual, monkeypatch):
    x, y, _ = aligned()
    for name in ('pls', 'ridgecv'):
        how = REGRESSIONS[name]._replace(dual=dual)
        plain = regress_cv(how, x, y, how=FEW, dtype='float64')
        monkeypatch.setattr(products, 'LARGE', 0)
        monkeypatch.setattr(products, 'on_accelerator', lambda: True)
        assert regress_cv(how, x, y, how=FEW, dtype='float64').values == pytest.approx(plain.values, abs=1e-10)
        monkeypatch.undo()


@each('name', REGRESSIONS)
def test_values_of_one_split(name):
    g, wanted = recorded('split_regression'), RECORDED[name]
    near = 1e-3 if name == 'linear_predictivity' else 1e-6
    parts = g['source_train'], g['target_train'], g['source_test'], g['target_test']
    m = regress_split(name, *parts, dtype='float64')
    assert m.values[0] == pytest.approx(g[f'{wanted}_raw'], abs=near)
    assert m.value == pytest.approx(g[f'{wanted}_center'], abs=near) and np.isnan(m.error)
    said = REGRESSIONS[name](parts[0], parts[1], parts[2], dtype='float64')
    assert said.prediction == pytest.approx(g[f'{wanted}_pred'], abs=near if near > 1e-6 else 1e-6)
    assert said.alpha == (g['ridgecv_alpha'] if 'ridgecv' in name else None)


def test_a_penalty_for_each_subject():
    g = recorded('split_regression')
    parts = g['source_train'], g['target_train'], g['source_test'], g['target_test']
    m = regress_split('ridgecv', *parts, groups=g['subject'], dtype='float64')
    for (alpha, r, *_), subject in zip(g['per_subject_alpha_raw_ceiling_ceiled'], 'AB', strict=True):
        assert f'alpha of {subject}: {alpha:g}' in m.notes
        assert np.median(m.values[0, g['subject'] == subject]) == pytest.approx(r, abs=1e-6)


def test_explained_variance_from_these_values():
    g = recorded('split_regression')
    r = regress_split('ridgecv', g['source_train'], g['target_train'], g['source_test'], g['target_test'])
    assert r.value**2 / g['ceiling_center'] == pytest.approx(g['explained_variance'], abs=1e-6)


# ---- scikit-learn ----


@each(
    'n, p, q, components',
    [(40, 200, 7, 25), (40, 200, 90, 25), (150, 30, 8, 25), (150, 20, 60, 15), (60, 80, 1, 10), (50, 1, 5, 1)],
)
def test_pls_is_that_of_scikit_learn(n, p, q, components):
    """Fewer stimuli than units or than neuroids, and the other way round: each has its own smaller matrix."""
    x, y = shared(n + 20, p, q)
    wanted = PLSRegression(components, scale=False).fit(x[:n], y[:n]).predict(x[n:]).reshape(20, q)
    for dual in (True, False):
        said = pls_of(components)._replace(dual=dual)(x[:n], y[:n], x[n:], dtype='float64')
        assert said.prediction == pytest.approx(wanted, abs=1e-8)
        assert said.notes == ()


@each('seed, noise', [(0, 0.05), (1, 1.0), (2, 20.0)])
def test_ridgecv_is_the_same_both_ways(seed, noise):
    x, y = shared(80, 400, 60, noise, seed)
    dual = REGRESSIONS['dual_ridgecv'](x[:60], y[:60], x[60:], dtype='float64')
    primal = REGRESSIONS['ridgecv']._replace(dual=False)(x[:60], y[:60], x[60:], dtype='float64')
    assert dual.alpha == primal.alpha
    assert dual.prediction == pytest.approx(primal.prediction, abs=1e-6)


@each('n, p', [(60, 300), (150, 40)])
def test_ridgecv_is_that_of_scikit_learn(n, p):
    x, y = shared(n + 20, p, 9, 4.0)
    wanted = RidgeCV(alphas=ridge.ALPHAS).fit(x[:n], y[:n])
    said = REGRESSIONS['ridgecv'](x[:n], y[:n], x[n:], dtype='float64')
    assert said.alpha == wanted.alpha_
    assert said.prediction == pytest.approx(wanted.predict(x[n:]), abs=1e-8)


def test_the_search_for_a_penalty_in_jax_finds_that_of_the_plain_one(monkeypatch):
    """In float32 neighbours tie: those are compared once more in float64."""
    x, y = shared(90, 60, 9, 6.0)
    how = REGRESSIONS['ridgecv']._replace(dual=False)
    plain = how(x[:70], y[:70], x[70:], dtype='float64')
    monkeypatch.setattr(ridge, 'LARGE', 0)
    monkeypatch.setattr(ridge, 'CLOSE', 0.5)
    searched = how(x[:70], y[:70], x[70:], dtype='float64')
    assert searched.alpha == plain.alpha
    assert np.array_equal(searched.prediction, plain.prediction)


def test_the_penalties_are_those_of_brain_score():
    assert recorded('split_regression')['alphas'] == pytest.approx(ridge.ALPHAS, rel=1e-15)


# ---- toys and invariances ----


@each('name', REGRESSIONS)
def test_a_representation_predicts_itself(name):
    draw = np.random.RandomState(0)
    x = np.arange(120 * 25.0).reshape(120, 25) + draw.standard_normal((120, 25))
    m = regress_split(name, x[:100], x[:100], x[100:], x[100:], dtype='float64')
    assert m.values.shape == (1, 25) and m.value == pytest.approx(1, abs=1e-3)
    labels = np.repeat(['a', 'b', 'c'], 10)
    if name == 'pls':
        assert regress_cv(name, x[:30], x[:30], labels=labels, dtype='float64').value == pytest.approx(1, abs=1e-5)


@each('name', REGRESSIONS)
def test_the_order_and_the_turn_of_units_do_not_matter(name):
    x, y = shared(60, 90, 5)
    draw = np.random.default_rng(3)
    wanted = regress_cv(name, x, y, how=FEW, dtype='float64').values
    assert regress_cv(name, x[:, draw.permutation(90)], y, how=FEW, dtype='float64').values == pytest.approx(wanted)
    assert regress_cv(name, x + 100, y, how=FEW, dtype='float64').values == pytest.approx(wanted, abs=1e-8)
    if name != 'neuron_to_neuron':
        turn = np.linalg.qr(draw.standard_normal((90, 90)))[0]
        assert regress_cv(name, x @ turn, y, how=FEW, dtype='float64').values == pytest.approx(wanted, abs=1e-8)


# ---- the edge ----


@each('name', REGRESSIONS)
def test_neuroids_without_a_value_are_left_out_and_said(name):
    x, y = shared(60, 90, 6)
    clean = regress_cv(name, x, y[:, [1, 3, 4, 5]], how=FEW, dtype='float64')
    y[7, 0], y[:, 2] = np.nan, 3.7
    m = regress_cv(name, x, y, how=FEW, dtype='float64')
    assert np.isnan(m.values[:, [0, 2]]).all()
    assert m.values[:, [1, 3, 4, 5]] == pytest.approx(clean.values, abs=1e-9)
    assert m.value == pytest.approx(clean.value, abs=1e-9)
    assert m.notes[:2] == (
        'neuroid 0 left out: not measured for every stimulus',
        'neuroid 2 constant in training: left out (2 of 2 splits)',
    )


@each('name', REGRESSIONS)
def test_a_constant_prediction_is_no_correlation(name):
    _, y = shared(40, 5, 3)
    m = regress_cv(name, np.full((40, 5), 0.3), y, how=FEW)
    assert (m.value, m.error) == (0, 0) and (m.values == 0).all()
    assert any('predicted to be constant: r = 0' in note for note in m.notes)


def test_a_neuroid_that_is_constant_in_test_has_no_r():
    x, y = shared(60, 20, 3)
    y[50:, 1] = 2.0
    m = regress_split('ridge', x[:50], y[:50], x[50:], y[50:])
    assert np.isnan(m.values[0, 1]) and np.isfinite(m.values[0, [0, 2]]).all()
    assert m.notes == ('neuroid 1 constant in test: no r',)
    with pytest.raises(RequestError, match='1 test stimulus'):
        regress_split('ridge', x[:50], y[:50], x[50:51], y[50:51])


@each('dual', [True, False])
def test_fewer_stimuli_than_components(dual):
    x, y = shared(14, 40, 6)
    how = REGRESSIONS['pls']._replace(dual=dual)
    m = regress_cv(how, x, y, how=Splits(n=2, train=0.8), dtype='float64')
    assert m.notes == ('pls: 10 components for 25, no more to be found (2 of 2 splits)',)
    assert np.isfinite(m.values).all()
    wanted = PLSRegression(10, scale=False).fit(x[:11], y[:11]).predict(x[11:])
    assert how(x[:11], y[:11], x[11:], dtype='float64').prediction == pytest.approx(wanted, abs=1e-7)


@each('dual', [True, False])
def test_pls_ends_where_nothing_is_left(dual):
    """Responses of three dimensions, and units of four: there are no 25 components, and rounding is not one."""
    draw = np.random.default_rng(5)
    latent = draw.standard_normal((60, 4))
    x, y = latent @ draw.standard_normal((4, 50)), latent[:, :3] @ draw.standard_normal((3, 8))
    said = REGRESSIONS['pls']._replace(dual=dual)(x[:50], y[:50], x[50:], dtype='float64')
    assert said.prediction == pytest.approx(y[50:], abs=1e-6)
    assert said.notes and int(said.notes[0].split()[1]) <= 8


def test_every_neuroid_constant_is_a_note_not_a_number():
    x, y = shared(40, 5, 3)
    m = regress_cv('ridge', x, np.ones_like(y), how=FEW)
    assert np.isnan(m.value) and 'no value: nan in every split' in m.notes


@each(
    'call, message',
    [
        (lambda x, y: regress_cv('ridgge', x, y), "did you mean 'ridge"),
        (lambda x, y: regress_cv('ridge', x[:30], y), r'features of shape \(30, 5\)'),
        (lambda x, y: regress_cv('ridge', x, y, dtype='float16'), 'float16'),
        (lambda x, y: regress_cv('ridge', np.where(x > 5, np.nan, x), y), 'not finite'),
        (lambda x, y: regress_cv('ridge', np.where(x > 5, np.inf, x), y), 'not finite'),
        (lambda x, y: regress_cv('ridge', x, np.full_like(y, np.nan)), 'none of 3 neuroids'),
        (lambda x, y: regress_cv('ridge', x[:, :0], y), 'shape'),
        (lambda x, y: regress_split('ridge', x, y, x[:, :4], y), 'the same units'),
        (lambda x, y: regress_split('ridge', x[:9], y, x, y[:9]), '9 stimuli of training'),
        (lambda x, y: regress_split('ridge', x, y, x, y, groups=['a']), '1 groups for 3'),
    ],
)
def test_what_is_wrong_is_one_message(call, message):
    with pytest.raises(RequestError, match=message):
        call(*shared(40, 5, 3))


def test_units_of_very_different_variance_are_the_same_in_float32():
    """The last of 25 components have a millionth of the variance: products in float32 would hold nothing of them."""
    draw = np.random.default_rng(0)
    u, v = (np.linalg.qr(draw.standard_normal((k, 80)))[0] for k in (120, 150))
    x, y = u * (1000.0 / np.arange(1, 81) ** 2) @ v.T, u[:, :40] @ draw.standard_normal((40, 6))
    exact, small = (regress_cv('pls', x, y, how=FEW, dtype=dtype) for dtype in ('float64', 'float32'))
    wanted = PLSRegression(25, scale=False).fit(x[:100], y[:100]).predict(x[100:])
    assert small.values == pytest.approx(exact.values, abs=1e-4)
    said = REGRESSIONS['pls'](x[:100], y[:100], x[100:], dtype='float64').prediction
    assert said == pytest.approx(wanted, abs=1e-7)
