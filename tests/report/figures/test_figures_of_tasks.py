"""Bars, pairs, heatmap: what is drawn is what the CSV says."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import cut, lines, score, table, words

from jbench.report.figures import tasks

LONG = 'a_model_with_a_very_long_name_indeed:width=64,depth=12'


def test_bars_intervals_subjects_and_chance():
    scores = [score('eegnet', 0.7), score('b', 0.6, interval=None, n_seeds=1), score('dummy', 0.5, per_subject={})]
    rows = tasks.bar_rows(scores, ['b', 'eegnet', 'dummy'])
    figure = tasks.bars(rows, title='p3', metric='bal_acc')
    means = [row for row in rows if row['of'] == 'mean']
    assert [row['model'] for row in means] == ['b', 'eegnet', 'dummy']
    assert [patch.get_width() for patch in figure.axes[0].patches] == [row['score'] for row in means]
    assert [patch.get_y() + patch.get_height() / 2 for patch in figure.axes[0].patches] == pytest.approx([0, 1, 2])
    ends = [[(row['low'], k), (row['high'], k)] for k, row in enumerate(means) if row['low'] is not None]
    assert lines(figure, '_interval') == ends and len(ends) == 2
    each = [[x for x, _ in dots] for dots in lines(figure, '_subjects')]
    assert each == [[r['score'] for r in rows if r['of'] == 'subject' and r['model'] == m] for m in ('b', 'eegnet')]
    assert [row['score'] for row in rows if row['of'] == 'chance'] == [50] == [lines(figure, '_chance')[0][0][0]]
    assert all(abs(y - k) < 0.35 for k, dots in enumerate(lines(figure, '_subjects')) for _, y in dots)
    told = words(figure)
    assert 'bal_acc (%); means over 1 to 3 seeds' in told and 'chance (50)' in told and '95 % interval' in told


def test_errors_are_in_their_own_unit():
    rows = tasks.bar_rows([score('a', 3.5, metric='mae', better='lower', chance=None)], ['a'])
    figure = tasks.bars(rows, title='age', metric='mae')
    assert figure.axes[0].patches[0].get_width() == 3.5 and 'mae, lower is better' in words(figure)
    assert not lines(figure, '_chance')


def test_pairs():
    a = score('a', per_subject={'S00': 0.1, 'S01': 0.6, 'S02': 0.7})
    b = score('b', 0.7, per_subject={'S01': 0.6, 'S02': 0.9, 'S04': 1.0})
    rows = tasks.pair_rows(a, b)
    assert rows == [{'subject': 'S01', 'a': 60, 'b': 60}, {'subject': 'S02', 'a': 70, 'b': 90}]
    figure = tasks.pair(rows, title='p3', metric='bal_acc')
    assert lines(figure, '_subject') == [[(0, row['a']), (1, row['b'])] for row in rows]
    assert lines(figure, '_mean') == [[(0, 65), (1, 75)]]
    assert 'a is better in 0 of 2 subjects, 1 alike' in words(figure).replace('\n', ' ')
    lower = tasks.pair(rows, title='p3', metric='cer')
    assert 'a is better in 1 of 2' in words(lower)


def test_heatmap():
    scores = [s for s in table({'a': 0.9, 'b': 0.6, 'c': 0.45}) if (s.model, s.task) != ('b', 'age')]
    rows = tasks.heat_rows(scores, ['c', 'a', 'b'])
    figure = tasks.heatmap(rows, title='all')
    image = figure.axes[0].images[0].get_array()
    models, columns = ['c', 'a', 'b'], ['age', 'p3', 'sex']
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == models
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == columns
    drawn = {(m, t): image[i, j] for i, m in enumerate(models) for j, t in enumerate(columns) if not image.mask[i, j]}
    assert drawn == {(r['model'], r['task']): r['normalised'] for r in rows} and len(drawn) == 8
    numbers = [t.get_text() for t in figure.axes[0].texts]
    assert len(numbers) == 9 and numbers.count('–') == 1 and '-0.10' in numbers and '0.80' in numbers
    assert figure.axes[0].images[0].get_clim() == (0, 1)


def test_a_number_that_rounds_to_zero_has_no_sign():
    figure = tasks.heatmap(tasks.heat_rows([score('a', 0.4999)], ['a']), title='one')
    assert [t.get_text() for t in figure.axes[0].texts] == ['0.00']


@pytest.mark.slow
@pytest.mark.parametrize('n', [1, 26])
def test_nothing_is_cut(n):
    models = [f'{k}{LONG}' for k in range(n)]
    scores = [
        score(m, 0.5 + k / 100, task=f'task_with_a_long_name_{t}') for k, m in enumerate(models) for t in range(n)
    ]
    title = 'a title that is long, ' * 8
    assert not cut(tasks.bars(tasks.bar_rows(scores[::n], models), title=title, metric='bal_acc'))
    assert not cut(tasks.heatmap(tasks.heat_rows(scores, models), title=title))
    two = score(models[0]), score('other' + LONG)
    assert not cut(tasks.pair(tasks.pair_rows(*two), title=title, metric='bal_acc'))


def test_dots_are_spread_the_same_each_time():
    assert np.array_equal(tasks.spread(9), tasks.spread(9)) and len(set(tasks.spread(9))) == 9
    assert tasks.spread(0).size == 0
