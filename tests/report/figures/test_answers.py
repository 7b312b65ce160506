"""Figures of one result: what is drawn is what the CSV says, and that is what the predictions say."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import cut, lines, words
from sklearn.metrics import confusion_matrix

from jbench.metrics import retrieval
from jbench.report.figures import answers, curves
from jbench.report.statistics.calibration import calibration

LONG = 'a_model_with_a_very_long_name_indeed:width=64,depth=12'
RNG = np.random.default_rng(0)


def one_hot(said, k):
    return np.eye(k)[said] * 3.0


def test_confusion():
    y, said = np.array([0, 0, 0, 1, 1, 0]), np.array([0, 1, 1, 1, 2, 0])
    rows = answers.confusion_rows(one_hot(said, 3), y, ['a', 'b', 'c'])
    counts = confusion_matrix(y, said, labels=[0, 1, 2])
    assert [row['n'] for row in rows] == counts.ravel().tolist()
    assert [row['share'] for row in rows] == [50, 50, 0, 0, 50, 50, None, None, None]
    assert [(row['true'], row['answer']) for row in rows][1] == ('a', 'b')
    figure = answers.confusion(rows, what='windows', title='x')
    image = figure.axes[0].images[0].get_array()
    assert image.filled(-1).ravel().tolist() == [-1 if row['share'] is None else row['share'] for row in rows]
    assert [t.get_text() for t in figure.axes[0].texts][:3] == ['50 %\n2', '50 %\n2', '0 %\n0']
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == ['a', 'b', 'c']
    assert 'share of the true class (%)' in words(figure) and 'answer (windows)' in words(figure)


def test_reliability():
    outputs, y = RNG.normal(size=(500, 3)) * 2, RNG.integers(0, 3, 500)
    found = calibration(outputs, y)
    rows = answers.reliability_rows(found.width)
    p = np.exp(outputs) / np.exp(outputs).sum(1, keepdims=True)
    told, right = p.max(1), outputs.argmax(1) == y
    for row in rows:
        here = (told > row['low']) & (told <= row['high'])
        assert row['n'] == here.sum() > 0 and row['high'] - row['low'] == pytest.approx(1 / 15)
        assert (row['told'], row['right']) == pytest.approx((told[here].mean(), right[here].mean()))
    assert sum(row['n'] for row in rows) == 500
    figure = answers.reliability(rows, error=found.ece, look=('eegnet', 'windows'), title='x')
    assert lines(figure, '_model') == [[(row['told'], row['right']) for row in rows]]
    assert [b.get_height() for b in figure.axes[1].patches] == [row['n'] for row in rows]
    assert [b.get_x() for b in figure.axes[1].patches] == pytest.approx([row['low'] for row in rows])
    assert f'expected calibration error {found.ece:.3f}' in words(figure)


@pytest.mark.parametrize('n', [1, 50, 5000])
def test_values(n):
    y = RNG.normal(size=(n, 1))
    outputs = y / 2
    rows = answers.value_rows(outputs, y)
    assert len(rows) == min(n, answers.POINTS)
    assert all(row['answer'] == row['true'] / 2 for row in rows)
    assert min(row['true'] for row in rows) == y.min() and max(row['true'] for row in rows) == y.max()
    figure = answers.values(rows, model='eegnet', caption='pearsonr = 1', title='x')
    assert lines(figure, '_answers') == [[(row['true'], row['answer']) for row in rows]]
    assert 'pearsonr = 1' in words(figure) and 'true value' in words(figure)


@pytest.mark.parametrize('n_groups', [3, 130])
def test_retrieval(n_groups):
    y = np.arange(400) % n_groups
    vectors = RNG.normal(size=(n_groups, 8))
    groups = np.array([f'g{k}' for k in y])
    outputs = vectors[y] + RNG.normal(size=(400, 8))
    rows = answers.rank_rows({'outputs': outputs, 'y': y, 'group': groups, 'vectors': vectors})
    assert len(rows) <= answers.RANKS and rows[0]['first'] == 1 and rows[-1]['last'] == n_groups
    assert [row['first'] for row in rows[1:]] == [row['last'] + 1 for row in rows[:-1]]
    assert sum(row['n'] for row in rows) == 400 == pytest.approx(sum(row['chance'] for row in rows))
    if n_groups > 100:
        inside = rows[0]['n'] + (rows[1]['n'] if rows[0]['last'] < retrieval.K else 0)
        best = retrieval.evaluate(outputs, vectors[y], groups, groups)['window_top5_acc'] * 400
        assert rows[0]['n'] <= best and inside >= best * 0.5
    figure = answers.ranks(rows, model='eegnet', caption='', title='x')
    assert [b.get_height() for b in figure.axes[0].containers[0]] == [row['n'] for row in rows]
    assert [b.get_x() + 0.5 for b in figure.axes[0].containers[0]] == [row['first'] for row in rows]
    steps = next(p for p in figure.axes[0].patches if hasattr(p, 'get_data'))
    assert list(steps.get_data().values) == [row['chance'] for row in rows]
    assert f'rank of the right stimulus among {n_groups}' in words(figure) and 'chance' in words(figure)


def result(history, **changes):
    config = {'task': {'metric': 'bal_acc', 'recipe': {}, **changes.pop('task', {})}}
    return {'seed': 33, 'history': history, 'resumed_at': [], 'config': config, **changes}


HISTORY = [{'epoch': k, 'train_loss': 1 / (k + 1), 'monitor': m} for k, m in enumerate((0.5, 0.75, 0.75, None, 0.5))]


PAIR = ('eegnet', 'ctnet')  # of one colour


def test_curves_mark_the_epoch_that_was_kept_and_resumes():
    rows = curves.rows('eegnet', result(HISTORY, resumed_at=[2, 2, 4]))
    assert [row['epoch'] for row in rows] == [1, 2, 3, 4, 5]
    assert [row['monitor'] for row in rows] == [50, 75, 75, None, 50]
    assert [row['kept'] for row in rows] == [False, True, False, False, False]  # the first of equal ones
    assert [row['resumed'] for row in rows] == [0, 0, 2, 0, 1]
    rows += curves.rows('b', result(HISTORY[:1]))
    figure = curves.curves(rows, title='x', metric='bal_acc')
    for ax, column in zip(figure.axes, ('train_loss', 'monitor'), strict=True):
        (whole,) = (line for line in ax.lines if line.get_label() == '_eegnet')
        drawn = [None if np.isnan(v) else v for v in whole.get_ydata()]
        assert drawn == [row[column] for row in rows if row['model'] == 'eegnet']
        marked = {line.get_marker(): list(line.get_xdata()) for line in ax.lines[1:3]}
        assert marked == {'o': [2], '|': [3, 5]}
    pairs = curves.curves([r for m in PAIR for r in curves.rows(m, result(HISTORY))], title='x', metric='bal_acc')
    drawn = [line for line in pairs.axes[0].lines if line.get_label() in ('_eegnet', '_ctnet')]
    assert drawn[0].get_color() == drawn[1].get_color() and drawn[0].get_linestyle() != drawn[1].get_linestyle()
    handles = pairs.legends[0].get_lines()
    assert [h.get_linestyle() for h in handles[:2]] == [line.get_linestyle() for line in drawn]
    told = words(figure)
    assert 'eegnet, seed 33' in told and 'b, seed 33' in told and 'resumed' in told and 'epoch that was kept' in told
    assert 'validation bal_acc (%)' in told
    alone = curves.curves(curves.rows('b', result(HISTORY[:1])), title='x', metric='bal_acc')
    assert 'resumed' not in words(alone)


def test_curves_of_errors_keep_the_lowest_and_published_recipes_their_own_monitor():
    found = result(HISTORY, task={'metric': 'mae'})
    assert [row['kept'] for row in curves.rows('a', found)].index(True) == 0
    assert curves.monitor(result([], task={'metric': 'top5_acc', 'recipe': {'published': True}})) == 'batch_top5_acc'
    assert curves.monitor(result([], task={'metric': 'top5_acc'})) == 'top5_acc'


def test_a_result_of_an_old_schema_does_not_know_when_it_was_resumed():
    assert {row['resumed'] for row in curves.rows('a', result(HISTORY, resumed_at=[None]))} == {0}
    assert curves.rows('a', result([])) == []


@pytest.mark.slow
def test_nothing_is_cut():
    title = 'a title that is long, ' * 8
    for k in (2, 12, 30):
        names = [f'{n}{LONG}' for n in range(k)]
        rows = answers.confusion_rows(one_hot(np.arange(k), k), np.arange(k), names)
        assert not cut(answers.confusion(rows, what='recordings', title=title))
    rows = [row for k in range(26) for row in curves.rows(f'{k}{LONG}', result(HISTORY))]
    assert not cut(curves.curves(rows, title=title, metric='bal_acc'))
    found = calibration(RNG.normal(size=(9, 3)), np.arange(9) % 3)
    sure = answers.reliability_rows(found.width)
    assert not cut(answers.reliability(sure, error=0.1, look=(LONG, 'recordings'), title=title))
    rows = answers.value_rows(np.ones((3, 1)) * 1e6, np.arange(3.0)[:, None])
    assert not cut(answers.values(rows, model=LONG, caption='pearsonr = 0.123; 1234 windows', title=title))
    rows = [{'first': k + 1, 'last': k + 1, 'n': 10**k, 'chance': 2.0} for k in range(6)]
    assert not cut(answers.ranks(rows, model=LONG, caption='window_top5_acc = 99.9 %', title=title))
