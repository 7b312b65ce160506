"""Scores equal scikit-learn's wherever the two agree on the rule; the differences are tests of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn import metrics as sk

from jbench import targets
from jbench.events import SHIFT
from jbench.metrics import classification, regression
from jbench.spec.metrics import METRICS
from jbench.targets import score as metrics_score


def windows(seed: int, n: int, k: int, *, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Random logits [n, k] and classes of which every one occurs."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    outputs = rng.normal(size=(n, k)) * 2 + 1.5 * np.eye(k)[y]
    return np.round(outputs) if ties else outputs, y


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(8, 80), st.integers(2, 6), st.booleans())
def test_classes_equal_scikit_learn(seed: int, n: int, k: int, ties: bool) -> None:
    outputs, y = windows(seed, n, k, ties=ties)
    found = metrics_score.evaluate('classes', outputs, y)
    # rounded: scipy adds terms in the order of the classes, which parts what is equal in its last digit
    said, p = outputs.argmax(1), softmax(outputs, axis=1).round(12)
    truth = np.eye(k)[y]
    expected = {
        'bal_acc': sk.balanced_accuracy_score(y, said),
        'acc': sk.accuracy_score(y, said),
        'f1_macro': sk.f1_score(y, said, average='macro', labels=np.union1d(y, said)),
        'auroc': sk.roc_auc_score(truth, p, average='macro'),
        'auprc': sk.average_precision_score(truth, p, average='macro'),
    }
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name
    assert metrics_score.evaluate('state', outputs, y) == found


def test_auroc_of_two_classes_is_the_binary_one() -> None:
    outputs, y = windows(3, 200, 2)
    expected = sk.roc_auc_score(y, outputs[:, 1] - outputs[:, 0])
    assert metrics_score.evaluate('classes', outputs, y)['auroc'] == pytest.approx(expected, abs=1e-12)


P = np.array([[0.5, 0.5, 0], [0.5, 0.25, 0.25], [0.45, 0.1, 0.45], [0.4, 0.3, 0.3], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize('stored', [np.float64, np.float32])
def test_probabilities_are_scored_as_they_are_and_equal_ones_stay_equal(stored: type) -> None:
    """A second softmax of P would give 0.9167; one of its logarithms, in single precision, would part 0.5 from 0.5."""
    y = np.array([1, 0, 2, 0, 1, 2])
    found = metrics_score.evaluate('classes', classification.log_of(P).astype(stored), y)
    assert found['auroc'] == pytest.approx(sk.roc_auc_score(y, P, multi_class='ovr')) == pytest.approx(0.8958, abs=5e-5)
    assert found['auprc'] == pytest.approx(sk.average_precision_score(np.eye(3)[y], P, average='macro'))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(20, 80), st.integers(2, 6), st.sampled_from([4, 10, 1000]))
def test_log_probabilities_of_a_baseline_equal_scikit_learn(seed: int, n: int, k: int, steps: int) -> None:
    """Coarse probabilities, of which many are equal and some 0, kept in single precision; windows and their means."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    p = rng.multinomial(steps, rng.dirichlet(np.ones(k), n)) / steps
    outputs = classification.log_of(p).astype(np.float32)
    found, truth = metrics_score.evaluate('classes', outputs, y), np.eye(k)[y]
    assert found['auroc'] == pytest.approx(sk.roc_auc_score(truth, p, average='macro'), abs=1e-12)
    assert found['auprc'] == pytest.approx(sk.average_precision_score(truth, p, average='macro'), abs=1e-12)
    unit = np.arange(n) % 7
    pooled, _ = targets.of('classes').pooled(outputs, y, unit)
    np.testing.assert_allclose(np.exp(pooled), [p[unit == u].mean(0) for u in range(7)], rtol=1e-5, atol=1e-12)


def test_logits_become_probabilities_without_a_loss_of_order() -> None:
    z = np.random.default_rng(0).normal(size=(50, 4)) * 5
    np.testing.assert_allclose(classification.log_probabilities(z), log_softmax(z, axis=1), atol=1e-12)
    sure = np.array([[0.0, 40.0], [0.0, 50.0], [0.0, 60.0]])  # each of probability 1, and still in this order
    assert (np.diff(classification.log_probabilities(sure)[:, 1]) > 0).all()
    y, outputs = np.array([0, 1, 1]), sure[[1, 0, 2]]
    assert metrics_score.evaluate('classes', outputs, y)['auroc'] == sk.roc_auc_score(y, outputs[:, 1]) == 0.5
    turned = np.random.default_rng(1).normal(size=6)
    rows = np.array([[turned[0], *turned[np.random.default_rng(s).permutation(5) + 1]] for s in range(20)])
    assert len(np.unique(classification.log_probabilities(rows)[:, 0])) == 1, 'in whatever order the others stand'


@pytest.mark.parametrize('bad', [np.nan, np.inf])
@pytest.mark.parametrize('kind', ['value', 'labels', 'embedding'])
def test_targets_that_are_not_finite_are_refused(kind: str, bad: float) -> None:
    outputs = np.zeros((12, {'value': 1}.get(kind, 3)))
    y, about = np.zeros(outputs.shape), dict(ABOUT)
    y[4], y[9, 0] = bad, bad
    if kind == 'embedding':
        y, about['vectors'] = np.r_[2, 2, np.zeros(10, int)], np.r_[ABOUT['vectors'][:2], [[bad, 0, 0]]]
    with pytest.raises(ValueError, match=r'^2 of 12 targets are not finite$'):
        metrics_score.evaluate(kind, outputs, y, about)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(1, 6))
def test_labels_equal_scikit_learn(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    outputs, y = rng.normal(size=(n, k)), rng.integers(0, 2, (n, k))
    found, said = metrics_score.evaluate('labels', outputs, y), (outputs > 0).astype(int)
    assert found['f1_score_macro'] == pytest.approx(
        np.mean([sk.f1_score(y[:, j], said[:, j], zero_division=0) for j in range(k)])
    )
    assert found['hamming'] == pytest.approx(sk.zero_one_loss(y.ravel(), said.ravel()))
    assert found['exact_match'] == pytest.approx((said == y).all(1).mean())


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(2, 60), st.sampled_from([1e-4, 1.0, 1e5]), st.sampled_from([0.0, 1e3]))
def test_value_equals_scikit_learn_and_scipy(seed: int, n: int, scale: float, shift: float) -> None:
    from scipy import stats

    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 1)) * scale + shift * scale
    outputs = y + rng.normal(size=(n, 1)) * scale
    found = metrics_score.evaluate('value', outputs, y)
    a, b = outputs[:, 0], y[:, 0]
    rmse = sk.root_mean_squared_error(b, a)
    assert found['rmse'] == pytest.approx(rmse)
    assert found['mae'] == pytest.approx(sk.mean_absolute_error(b, a))
    assert found['r2'] == pytest.approx(sk.r2_score(b, a), rel=1e-7)
    assert found['pearsonr'] == pytest.approx(stats.pearsonr(a, b)[0], abs=1e-7)
    assert found['normalized_rmse'] == pytest.approx(rmse / b.std())


ABOUT = {  # of twelve windows
    'subject': np.array(['s0', 's1'] * 6),
    'group': np.array(['a', 'b', 'c'] * 4),
    'vectors': np.random.default_rng(0).normal(size=(3, 3)),
}


# --- where torchmetrics and scikit-learn differ ---------------------------------------------------------------------


def test_a_class_absent_from_truth_counts_zero_once_predicted_and_not_at_all_otherwise() -> None:
    y = np.array([0, 0, 1, 1])
    outputs = np.eye(3)[[0, 0, 1, 2]]  # class 2 has no window, yet is said once
    assert metrics_score.evaluate('classes', outputs, y)['bal_acc'] == pytest.approx((1 + 0.5 + 0) / 3)
    with pytest.warns(UserWarning, match='y_pred contains classes not in y_true'):
        assert sk.balanced_accuracy_score(y, outputs.argmax(1)) == pytest.approx((1 + 0.5) / 2)
    never = np.eye(3)[[0, 0, 1, 0]]
    assert metrics_score.evaluate('classes', never, y)['bal_acc'] == pytest.approx((1 + 0.5) / 2)
    assert metrics_score.evaluate('classes', never, y)['f1_macro'] == pytest.approx((0.8 + 2 / 3) / 2)


def test_a_class_absent_from_truth_counts_zero_in_auroc_and_not_at_all_in_auprc() -> None:
    y, outputs = np.array([0, 0, 1, 1]), 5 * np.eye(3)[[0, 0, 1, 1]]
    found = metrics_score.evaluate('classes', outputs, y)
    assert found['auroc'] == pytest.approx(2 / 3) and found['auprc'] == pytest.approx(1.0)


def test_a_single_class_has_no_auroc() -> None:
    found = metrics_score.evaluate('classes', np.eye(2)[[0, 1, 0]], np.zeros(3, int))
    assert found['auroc'] is None and found['auprc'] is None
    assert found['acc'] == pytest.approx(2 / 3) and found['bal_acc'] == pytest.approx(1 / 3)


def test_a_label_neither_true_nor_predicted_counts_zero() -> None:
    found = metrics_score.evaluate('labels', np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([[1, 0], [1, 0]]))
    assert found == {'f1_score_macro': 0.5, 'hamming': 0.0, 'exact_match': 1.0}


def test_outputs_between_zero_and_one_are_logits_still() -> None:
    """torchmetrics would read a batch of such outputs as probabilities: 0.3 below 0.5."""
    assert metrics_score.evaluate('labels', np.full((2, 1), 0.3), np.ones((2, 1)))['exact_match'] == 1.0


def test_a_constant_has_no_correlation() -> None:
    y = np.arange(4.0)[:, None]
    found = metrics_score.evaluate('value', np.full((4, 1), y.mean()), y)
    assert found['pearsonr'] is None and found['r2'] == 0.0 and found['normalized_rmse'] == 1.0
    found = metrics_score.evaluate('value', y, np.ones((4, 1)))
    assert found['pearsonr'] is found['r2'] is found['normalized_rmse'] is None
    assert metrics_score.evaluate('value', np.ones((1, 1)), np.ones((1, 1)))['rmse'] == 0.0


def test_binned_mae() -> None:
    y = np.array([0.0, 39.9, 40.0, 600.0, 700.0])
    assert regression.binned_mae(y + np.array([1, 3, 4, 6, 99]), y) == pytest.approx((2 + 4 + 6) / 3)
    assert regression.binned_mae(y, y - 1000) is None


# --- levels ---


def one_class_a_recording(n: int = 120) -> dict[str, np.ndarray]:
    """Twelve recordings of six subjects, ten windows each, whose outputs say the class of the recording faintly."""
    rng, recording = np.random.default_rng(0), np.repeat(np.arange(12), n // 12)
    y = recording // 2 % 2
    outputs = rng.normal(size=(n, 2)) + 0.8 * np.eye(2)[y]
    y = np.where(np.arange(n) % (n // 12) == 0, 1 - y, y)  # the first window says otherwise
    ids = (recording << SHIFT) + np.tile(np.arange(n // 12), 12)
    return {'id': ids, 'outputs': outputs, 'y': y, 'subject': np.array([f's{r // 2}' for r in recording])}


@pytest.mark.parametrize(('level', 'n'), [('recording', 12), ('subject', 6)])
def test_the_headline_of_recordings_averages_probabilities_and_takes_the_commonest_class(level: str, n: int) -> None:
    data = one_class_a_recording()
    order = np.random.default_rng(1).permutation(len(data['id']))
    outputs, y, subjects = metrics_score.pooled('classes', {k: v[order] for k, v in data.items()}, level)
    owner = data['id'] >> SHIFT if level == 'recording' else data['subject']
    p = softmax(data['outputs'], axis=1)
    expected = np.array([p[owner == o].mean(0) for o in np.unique(owner)])
    np.testing.assert_allclose(softmax(outputs, axis=1), expected)
    assert len(y) == n and y.tolist() == [np.bincount(data['y'][owner == o]).argmax() for o in np.unique(owner)]
    found = metrics_score.score('classes', 'bal_acc', data, 0.5, level)
    assert found['headline']['level'] == level and found['headline']['value'] == 1.0 > found['metrics']['bal_acc']
    assert found['metrics'] == metrics_score.evaluate('classes', data['outputs'], data['y']), 'of windows still'
    assert found['per_subject'] == dict.fromkeys(np.unique(subjects).tolist(), 1.0)
    low, high = found['headline']['interval']
    assert 0.5 < low < high == 1.0, 'no few subjects are proof of perfection'


def test_values_of_subjects_are_means() -> None:
    data = one_class_a_recording()
    age = np.repeat([20.0, 30, 40, 50, 60, 70], 20)[:, None]
    data |= {'outputs': age + np.random.default_rng(2).normal(size=age.shape) * 30, 'y': age}
    outputs, y, subjects = metrics_score.pooled('value', data, 'subject')
    assert y[:, 0].tolist() == [20, 30, 40, 50, 60, 70] and subjects.tolist() == [f's{k}' for k in range(6)]
    np.testing.assert_allclose(outputs, data['outputs'].reshape(6, 20).mean(1)[:, None])
    found = metrics_score.score('value', 'mae', data, 15.0, 'subject')
    assert found['headline']['value'] < found['metrics']['mae'] / 2 and len(found['per_subject']) == 6


def test_a_window_is_its_own_level() -> None:
    data = one_class_a_recording()
    found = metrics_score.score('classes', 'bal_acc', data, 0.5)
    assert found['headline']['value'] == found['metrics']['bal_acc'] and found['headline']['level'] == 'window'
    with pytest.raises(ValueError, match='not averaged over a subject'):
        metrics_score.pooled('labels', data, 'subject')


# --- the rest -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('kind', 'outputs', 'y', 'words'),
    [
        ('words', np.zeros((2, 2)), np.zeros(2, int), "kind 'words'"),
        ('embedding', np.zeros((2, 2)), np.zeros((2, 2)), 'do not fit'),
        ('keystrokes', np.zeros((2, 9)), np.zeros((3, 4), int), 'do not fit'),
        ('keystrokes', np.full((2, 9), np.nan), np.zeros((2, 4), int), '2 of 2 outputs are not finite'),
        ('classes', np.zeros((2, 2)), np.zeros(3, int), 'do not fit'),
        ('classes', np.zeros((0, 2)), np.zeros(0, int), 'no window'),
        ('classes', np.zeros((2, 2)), np.array([0, 2]), r'0\.\.1, got 0\.\.2'),
        ('classes', np.zeros((2, 2)), np.zeros(2), 'integers'),
        ('labels', np.zeros((2, 2)), np.zeros((2, 3)), 'do not fit'),
        ('value', np.zeros((2, 2)), np.zeros((2, 2)), 'do not fit'),
        ('value', np.array([[np.nan], [1.0]]), np.zeros((2, 1)), '1 of 2 outputs are not finite'),
    ],
)
def test_bad_input_is_refused(kind: str, outputs: np.ndarray, y: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        metrics_score.evaluate(kind, outputs, y)


def test_every_metric_has_a_direction_and_a_best_value() -> None:
    outputs, y = windows(0, 20, 3)
    names = {
        *metrics_score.evaluate('classes', outputs, y),
        *metrics_score.evaluate('labels', outputs, np.eye(3)[y]),
        *metrics_score.evaluate('value', outputs[:, :1], outputs[:, :1]),
        *metrics_score.evaluate('embedding', outputs[:12], y[:12], ABOUT),
        *metrics_score.evaluate('keystrokes', outputs, np.zeros((20, 1), int)),
        *metrics_score.evaluate('angles', outputs, outputs),
        *metrics_score.evaluate('moment', np.eye(3, 32), np.eye(3, 2, dtype=int)),
        *metrics_score.evaluate('next', np.eye(3, 32), np.eye(3, 2, dtype=int)),
        *metrics_score.evaluate('hidden', np.ones((3, 6)), np.arange(3)[:, None]),
        *(name for name, metric in METRICS.items() if metric.cells),
    }
    assert names == set(METRICS)
    for name, metric in METRICS.items():
        assert name == metric.name and metric.perfect == metric.bounds[metric.better == 'higher']
    with pytest.raises(KeyError, match='bal_acc'):
        metrics_score.headline(metrics_score.evaluate('classes', outputs, y), 'cer')


def test_perfect_outputs_have_the_perfect_score() -> None:
    y = np.arange(12) % 3
    value = np.arange(12.0)[:, None]
    for kind, outputs, truth in (
        ('classes', np.eye(3)[y], y),
        ('labels', np.eye(3)[y] - 0.5, np.eye(3)[y]),
        ('value', value, value),
        ('embedding', ABOUT['vectors'][y], y),
        ('keystrokes', np.tile([0.0, 1, 1, -1, 1], (12, 1)), np.tile([0, 1, 1, -1], (12, 1))),
    ):
        for name, score in metrics_score.evaluate(kind, outputs, truth, ABOUT).items():
            assert score == pytest.approx(METRICS[name].perfect), name


def test_dummy() -> None:
    outputs = metrics_score.dummy('classes', np.array([2, 0, 0, 2, 1]), 3, n_out=5)
    assert outputs.shape == (3, 5) and (outputs.argmax(1) == 0).all()
    assert metrics_score.evaluate('classes', outputs, np.arange(3))['bal_acc'] == pytest.approx(1 / 3)
    assert metrics_score.dummy('value', np.array([[1.0], [2.0], [6.0]]), 2).tolist() == [[3.0], [3.0]]
    y = np.random.default_rng(0).random((500, 3)) < [0.1, 0.5, 1.0]
    drawn = metrics_score.dummy('labels', y, 4000)
    assert set(np.unique(drawn)) == {-1.0, 1.0}
    assert np.abs((drawn > 0).mean(0) - y.mean(0)).max() < 0.03 and (drawn[:, 2] > 0).all()
    assert (drawn == metrics_score.dummy('labels', y, 4000)).all()
    with pytest.raises(ValueError, match='words'):
        metrics_score.dummy('words', y, 2)
    vectors = np.array([[1.0, 0], [0, 4]], np.float32)
    assert metrics_score.dummy('embedding', np.array([0, 0, 0, 1]), 2, vectors=vectors).tolist() == [[0.75, 1.0]] * 2
    keys = np.array([[2, 2, 1, -1], [2, -1, -1, -1], [1, 0, -1, -1]])
    assert metrics_score.dummy('keystrokes', keys, 2).tolist() == [[2, -1, 2, -1]] * 2, 'the modal key, twice'
    assert metrics_score.evaluate('keystrokes', metrics_score.dummy('keystrokes', keys, 3), keys)['cer'] == 4 / 6
    few = np.array([[-1, -1, -1], [-1, -1, -1], [2, -1, -1], [2, 2, 2]])
    assert metrics_score.dummy('keystrokes', few, 1).tolist() == [[-1]], 'of 0, 0, 1 and 3 keys the lower median'
    assert metrics_score.dummy('keystrokes', few[1:3], 1).tolist() == [[-1]]


def test_normalised() -> None:
    assert metrics_score.normalised(0.75, 0.5, 'bal_acc') == pytest.approx(0.5)
    assert metrics_score.normalised(0.4, 0.5, 'bal_acc') == pytest.approx(-0.2)
    assert metrics_score.normalised(2.0, 8.0, 'rmse') == pytest.approx(0.75)
    assert metrics_score.normalised(None, 0.5, 'acc') is None
    assert metrics_score.normalised(0.3, None, 'pearsonr') is None
    assert metrics_score.normalised(1.0, 1.0, 'acc') is None


def test_per_subject_equals_each_subject_alone() -> None:
    outputs, y = windows(5, 90, 3)
    subjects = np.array([f's{i % 4}' for i in range(90)])
    order = np.random.default_rng(0).permutation(90)
    found = metrics_score.per_subject('classes', 'bal_acc', outputs[order], y[order], subjects[order])
    assert list(found) == ['s0', 's1', 's2', 's3']
    for name, value in found.items():
        rows = subjects == name
        assert value == pytest.approx(sk.balanced_accuracy_score(y[rows], outputs[rows].argmax(1)))


def test_a_subject_of_one_class_scores_its_recall_and_has_no_auroc() -> None:
    outputs, y = np.eye(2)[[0, 0, 1, 1, 1, 0]], np.array([0, 0, 0, 1, 1, 1])
    subjects = np.array(['healthy'] * 3 + ['ill'] * 3)
    assert metrics_score.per_subject('classes', 'bal_acc', outputs, y, subjects) == pytest.approx(
        {'healthy': 2 / 3, 'ill': 2 / 3}
    )
    assert metrics_score.per_subject('classes', 'auroc', outputs, y, subjects) == {}
    value = np.arange(6.0)[:, None]
    found = metrics_score.per_subject('value', 'pearsonr', value, np.array([1.0, 1, 1, 4, 5, 6])[:, None], subjects)
    assert found == pytest.approx({'ill': 1.0})


def test_labels_that_a_subject_never_shows_are_left_out_of_its_score() -> None:
    """Perfect outputs, each subject showing one of three labels: counted 0, the other two would make it 1/3."""
    subjects = np.repeat([f's{k}' for k in range(12)], 4)
    y = np.repeat(np.tile(np.eye(3), (4, 1)), 4, axis=0)
    found = metrics_score.score('labels', 'f1_score_macro', {'outputs': 8 * y - 4, 'y': y, 'subject': subjects}, 0.1)
    head = found['headline']
    assert head['value'] == 1.0 and set(found['per_subject'].values()) == {1.0}
    assert head['interval'][0] > 0.7 and head['interval'][1] == 1.0 and head['differs_from_chance'] is True
    nothing = np.where(subjects == 's0', 0, 1)[:, None] * y
    found = metrics_score.per_subject('labels', 'f1_score_macro', 8 * y - 4, nothing, subjects)
    assert 's0' not in found and len(found) == 11


@pytest.mark.parametrize('level', ['window', 'recording', 'subject'])
def test_the_interval_is_one_of_the_headline(level: str) -> None:
    """Three subjects of 26 have nearly all windows: the mean over subjects is not the score over windows."""
    rng = np.random.default_rng(0)
    n_windows = np.array([200] * 3 + [8] * 23)
    subjects = np.repeat([f's{k:02d}' for k in range(26)], n_windows)
    y = rng.integers(0, 2, len(subjects))
    y = np.repeat(np.arange(26) % 2, n_windows) if level != 'window' else y
    right = rng.random(len(y)) < np.repeat([0.5] * 3 + [0.95] * 23, n_windows)
    outputs = np.eye(2)[np.where(right, y, 1 - y)]
    ids = np.arange(len(y)) + (np.unique(subjects, return_inverse=True)[1] << SHIFT)
    data = {'id': ids, 'outputs': outputs, 'y': y, 'subject': subjects}
    found = metrics_score.score('classes', 'bal_acc', data, 0.5, level)['headline']
    low, high = found['interval']
    assert low < found['value'] < high or found['value'] == high == 1.0
    assert found['n_subjects'] == 26


def test_no_interval_of_what_is_no_score_of_subjects() -> None:
    rng = np.random.default_rng(0)
    vectors, y = rng.normal(size=(12, 4)), np.tile(np.arange(12), 8)
    data = {'outputs': vectors[y] + rng.normal(size=(96, 4)), 'y': y, 'subject': np.repeat(list('abcdefgh'), 12)}
    data |= {'group': y.astype(str), 'vectors': vectors}
    for metric, there in (('top5_acc', True), ('instance_top5_acc', False), ('batch_top5_acc', False)):
        head = metrics_score.score('embedding', metric, data, 0.4)['headline']
        assert (head['interval'] is not None) == there == (head['differs_from_chance'] is not None), metric
