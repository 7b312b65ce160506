"""Ceilings: recorded values, repetitions that are missing, subjects, and cases at the edge."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_values import recorded
from each import each

from jbench.alignment.ceilings import (
    against_subjects,
    cross_subject,
    internal_consistency,
    internal_consistency_temporal,
    leave_one_out,
    rsa_ceiling,
    spearman_brown,
)
from jbench.alignment.metrics.regression import regress_cv
from jbench.alignment.metrics.similarity import rdm, selected_rsm
from jbench.alignment.metrics.splits import Splits
from jbench.spec.errors import RequestError


def repeated(n: int = 8, stimuli: int = 30, neuroids: int = 4) -> np.ndarray:
    """Noisy repetitions of one response."""
    draw = np.random.default_rng(2)
    return draw.standard_normal((stimuli, neuroids)) + draw.standard_normal((n, stimuli, neuroids))


# ---- halves ----


@each('name', ['even', 'odd'])
def test_recorded_values_of_halves(name):
    g = recorded('internal_consistency')
    m = internal_consistency(g[f'{name}_data'])
    assert m.values == pytest.approx(g[f'{name}_raw'], abs=1e-9)
    assert (m.value, m.error) == pytest.approx((g[f'{name}_center'], g[f'{name}_error']), abs=1e-9)
    assert m.notes == ()


def test_recorded_values_of_the_ceiling_of_a_split():
    g = recorded('split_regression')
    m = internal_consistency(g['test_repetitions'])
    assert m.values == pytest.approx(g['ceiling_raw'], abs=1e-9)
    assert (m.value, m.error) == pytest.approx((g['ceiling_center'], g['ceiling_error']), abs=1e-9)


def test_repetitions_without_noise():
    trials = np.tile(np.arange(10.0)[:, None], (5, 1, 10))
    assert internal_consistency(trials).value == pytest.approx(1, abs=1e-8)


def test_padding_with_nan_changes_nothing():
    """Rows of nan in any place are no repetitions: halves are of what is there, in the order drawn."""
    trials = repeated()
    padded = np.concatenate([trials, np.full((3, 30, 4), np.nan)])
    how = Splits(n=200, train=0.5)
    found = internal_consistency(padded, how=how)
    assert np.isfinite(found.values).all()
    assert found.value == pytest.approx(internal_consistency(trials, how=how).value, abs=0.01)
    assert found.notes == ()


def test_halves_of_what_a_stimulus_has():
    """By hand: of three repetitions in the order drawn the first is one half, the others are the second."""
    trials = repeated(4)
    trials[1, :5], trials[:3, 7, 2] = np.nan, np.nan
    m = internal_consistency(trials, how=Splits(n=1, train=0.5))
    order = np.random.RandomState(1).permutation(4)
    order = [*order[2:], *order[:2]]
    halves = np.full((2, 30, 4), np.nan)
    for s in range(30):
        for q in range(4):
            there = [k for k in order if np.isfinite(trials[k, s, q])]
            if len(there) > 1:
                cut = len(there) // 2
                halves[:, s, q] = trials[there[:cut], s, q].mean(), trials[there[cut:], s, q].mean()
    for q in range(4):
        ok = np.isfinite(halves[0, :, q])
        r = np.corrcoef(halves[0, ok, q], halves[1, ok, q])[0, 1]
        assert m.values[0, q] == pytest.approx(2 * r / (1 + r), abs=1e-12)
    assert m.notes == (
        '1 of 30 stimuli lack a second repetition of some neuroid: left out of it',
        '1 to 4 repetitions of a stimulus',
    )


def test_time_bins_share_the_halves():
    trials = np.stack([repeated(), 3 * repeated() + 1, repeated() ** 2], axis=3)
    found = internal_consistency_temporal(trials)
    assert len(found) == 3
    assert found[1].values == pytest.approx(found[0].values, abs=1e-12)
    assert found[2].value == internal_consistency(trials[..., 2]).value


def test_the_correction_does_not_run_away():
    found = spearman_brown(np.array([1, 0.5, 0, -0.25, -1 / 3, -0.9, -1, np.nan]))
    assert found[:7] == pytest.approx([1, 2 / 3, 0, -2 / 3, -1, -1, -1]) and np.isnan(found[7])


def test_neuroids_that_cannot_have_a_ceiling_are_said():
    trials = repeated()
    trials[..., 1] = 4.0
    trials[1:, :, 2] = np.nan
    trials[::2, :, 3] = -trials[1::2, :, 3]
    m = internal_consistency(trials, how=Splits(n=3, train=0.5))
    assert np.isnan(m.values[:, [1, 2]]).all() and np.isfinite(m.values[:, 0]).all()
    assert 'neuroids 1, 2 constant, or of fewer than three stimuli: left out' in m.notes


@each(
    'trials',
    [
        repeated(1),
        repeated(3, 2),
        np.full((3, 9, 2), np.nan),
        np.where(np.arange(3)[:, None, None], np.nan, repeated(3)),
    ],
)
def test_one_repetition_is_no_ceiling(trials):
    with pytest.raises(RequestError, match='two repetitions of three stimuli'):
        internal_consistency(trials)


# ---- subjects ----


def test_recorded_bounds_of_rsa():
    g = recorded('similarity')
    rdms = np.array([rdm(s, dtype='float64') for s in g['subjects']])
    found = rsa_ceiling(rdms)
    assert found.uppers == pytest.approx(g['rsa_upper'], abs=1e-9)
    assert found.lowers == pytest.approx(g['rsa_lower'], abs=1e-9)
    assert (found.upper, found.lower) == pytest.approx((g['rsa_upper_mean'], g['rsa_lower_mean']), abs=1e-9)
    m = against_subjects(rdm(g['A'], dtype='float64'), rdms)
    assert m.values == pytest.approx(g['rsa_model_per_subject'], abs=1e-9)
    assert m.value / found.upper == pytest.approx(g['rsa_score'], abs=1e-9)


def test_recorded_values_of_similarities_of_regions():
    g = recorded('similarity')
    m = against_subjects(selected_rsm(g['fmri_patterns'])[0], g['fmri_human'], rank=False)
    ceiling = leave_one_out(g['fmri_human'])
    assert (m.value, ceiling.value) == pytest.approx((g['fmri_raw'], g['fmri_ceiling']), abs=1e-9)
    assert np.clip((m.value / ceiling.value) ** 2, 0, 1) == pytest.approx(g['fmri_score'], abs=1e-9)


def test_subjects_that_are_the_same():
    same = np.repeat(rdm(repeated(1, 12, 6)[0])[None], 3, axis=0)
    assert rsa_ceiling(same)[:2] == pytest.approx((1, 1))
    assert leave_one_out(same).value == pytest.approx(1) and against_subjects(same[0], same).value == pytest.approx(1)


def test_the_others_predict_a_subject():
    draw = np.random.default_rng(4)
    latent = draw.standard_normal((50, 3))
    given = {s: latent @ draw.standard_normal((3, 5)) + 0.3 * draw.standard_normal((50, 5)) for s in 'abc'}
    given['c'][4, 0] = np.nan
    m = cross_subject(given, name='ridge', how=Splits(n=3), dtype='float64')
    others = np.concatenate([given['b'], given['c'][:, 1:]], axis=1)
    wanted = regress_cv('ridge', others, given['a'], how=Splits(n=3), dtype='float64').value
    assert m.values[0] == pytest.approx(wanted, abs=1e-12)
    assert m.value == pytest.approx(m.values.mean()) and m.error == pytest.approx(m.values.std() / 3**0.5)
    assert m.value > 0.8
    assert m.notes == ('c: neuroid 0 left out: not measured for every stimulus',)


@each(
    'call, message',
    [
        (lambda r: rsa_ceiling(r[:1]), 'shape'),
        (lambda r: leave_one_out(r[:, :2, :2]), 'shape'),
        (lambda r: leave_one_out(r + np.tri(12)), 'not symmetric'),
        (lambda r: leave_one_out(np.where(np.arange(3)[:, None, None] == 1, np.nan, r)), 'subject 1: pairs'),
        (lambda r: against_subjects(r[0, :9, :9], r), 'the same stimuli'),
        (lambda r: against_subjects(np.full((12, 12), np.nan), r), '12 of 12 stimuli'),
        (lambda r: cross_subject({'a': r[0]}), 'two subjects'),
        (lambda r: cross_subject({'a': r[0], 'b': r[0, :5]}), "'b': 5"),
        (lambda r: cross_subject({'a': r[0], 'b': r[0] * np.nan}), 'beside a'),
        (lambda r: internal_consistency(r[0]), 'repetition, stimulus'),
        (lambda r: internal_consistency_temporal(r), 'time bin'),
    ],
)
def test_what_is_wrong_is_one_message(call, message):
    with pytest.raises(RequestError, match=message):
        call(np.array([rdm(r) for r in repeated(3, 12, 8)]))
