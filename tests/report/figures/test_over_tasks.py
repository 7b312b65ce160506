"""Ranks, critical differences, Core against Full, costs: what is drawn is what the CSV says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from drawn import cut, lines, score, table, words

from jbench.report import ranks as rules
from jbench.report.figures import cost, over_tasks, ranks
from jbench.report.statistics import many

LONG = 'a_model_with_a_very_long_name_indeed:width=64,depth=12'


def test_boxes_are_the_quartiles_of_the_ranks():
    rng = np.random.default_rng(0)
    cells = {('own', f't{k}', 'd'): dict(zip('abcd', rng.permutation(4) + 1.0, strict=True)) for k in range(9)}
    rows = ranks.box_rows(cells, list('dbca'))
    figure = ranks.box(rows, title='ranks')
    for k, model in enumerate('dbca'):
        mine = [row['rank'] for row in rows if row['model'] == model]
        assert len(mine) == 9 and [x for x, _ in lines(figure, '_ranks')[k]] == mine
        low, high = np.percentile(mine, [25, 75])
        box = figure.axes[0].patches[k].get_path().get_extents()
        assert (box.x0, box.x1) == pytest.approx((low, high)) and (box.y0 + box.y1) / 2 == pytest.approx(k)
        assert lines(figure, '_mean')[k] == [(pytest.approx(np.mean(mine)), k)]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == list('dbca')


def test_critical_differences():
    models, means, groups = ['a', 'b', 'c', 'd'], [1.2, 2.0, 2.8, 4.0], [(0, 1), (1, 2)]
    rows = ranks.difference_rows(models, means, groups)
    assert [row['groups'] for row in rows] == ['1', '1 2', '2', '']
    figure = ranks.difference(rows, test='Friedman, Nemenyi', alpha=0.05, n=12, n_models=9, title='all')
    assert [dots[0][0] for dots in lines(figure, '_rank')] == [row['mean_rank'] for row in rows]
    bars = [[x for x, _ in bar] for bar in lines(figure, '_bar')]
    assert bars == [[r['mean_rank'] for r in rows if g in r['groups'].split()] for g in '12']
    told = words(figure).replace('\n', ' ')
    assert ' 4 of 9 models;' in told
    assert 'Friedman, Nemenyi' in told and 'alpha = 0.05' in told and 'n = 12' in told
    assert all(f'{m}  {r:.2f}' in told or f'{r:.2f}  {m}' in told for m, r in zip(models, means, strict=True))
    apart = ranks.difference(
        ranks.difference_rows(['a', 'b'], [1, 2], []), test='t', alpha=0.1, n=3, n_models=2, title='x'
    )
    assert 'of 2 models' not in words(apart)
    assert 'All models are told apart' in words(apart) and not lines(apart, '_bar')


def test_the_test_is_named_once():
    found = many.ranking(np.random.default_rng(0).random((6, 3)))
    rows = ranks.difference_rows([str(k) for k in found.order], found.mean_ranks, found.groups)
    told = words(ranks.difference(rows, test=found.test, alpha=found.alpha, n=found.n, n_models=3, title='x'))
    assert told.count('alpha') == told.count('n = 6') == 1


def test_the_diagram_is_that_of_the_statistics():
    scores = table({'a': 0.9, 'b': 0.8, 'c': 0.7, 'dummy': 0.5}, tuple(f't{k}' for k in range(8)))
    rare = score('rare', 0.95, task='t0', dataset='Of_t0', protocol='t0')
    plan = {p.kind: p for p in over_tasks.plans([*scores, rare], ['rare', 'c', 'a', 'b', 'dummy'])}
    _, rows = plan['critical_difference'].make()
    assert [(row['model'], row['mean_rank']) for row in rows] == [('a', 1), ('b', 2), ('c', 3), ('dummy', 4)]


def test_core_against_full():
    core, full = {'a': 1.0, 'b': 2.0, 'c': 3.0}, {'a': 1.5, 'b': 1.6, 'd': 1.0}
    rows = ranks.core_rows(core, full, ['c', 'b', 'a', 'd'])
    assert rows == [{'model': 'b', 'core': 2.0, 'full': 1.6}, {'model': 'a', 'core': 1.0, 'full': 1.5}]
    figure = ranks.core_full(rows, agreement='Kendall tau = 1.00', title='x')
    assert [lines(figure, f'_{row["model"]}') for row in rows] == [[[(row['core'], row['full'])]] for row in rows]
    assert figure.axes[0].get_xlim() == figure.axes[0].get_ylim() and 'Kendall tau = 1.00' in words(figure)
    assert ranks.agreement({'kendall_tau': 0.5, 'spearman_rho': None}) == 'Kendall tau = 0.50'
    assert ranks.agreement({}) == ''


def test_core_against_full_of_scores():
    scores = [*table({'a': 0.8, 'b': 0.7}), score('a', 0.6, dataset='More', core=False, protocol='more')]
    scores += [score('b', 0.7, dataset='More', core=False, protocol='more')]
    plan = {p.kind: p for p in over_tasks.plans(scores, ['a', 'b'])}
    _, rows = plan['core_full'].make()
    full = {x.model: x.mean_rank for x in rules.standings(scores, full=True)}
    assert rows == [{'model': m, 'core': c, 'full': full[m]} for m, c in (('a', 1.0), ('b', 2.0))]
    assert full['a'] != 1


def paid(model, mean, parameters, seconds, task):
    fit = {} if seconds is None else {'fit': seconds}
    return score(model, mean, n_parameters=parameters, seconds=fit, task=task, dataset=task)


def test_costs_and_the_front():
    scores = [
        *(paid('a', 0.8, 100, 1.0, t) for t in 'xy'),
        *(paid('b', 0.9, 10**n, 2.0, t) for t, n in (('x', 3), ('y', 5))),
        *(paid('c', 0.7, 1000, None, t) for t in 'xy'),
        *(paid('dummy', 0.5, 1, 1e-9, t) for t in 'xy'),
        paid('rare', 1.0, 1, 1e-3, 'x'),
        paid('z', 0.9, 10, 1, 'z'),
    ]
    rows = cost.rows([s for s in scores if s.model != 'z'], ['c', 'rare', 'b', 'a', 'dummy'], cost.PARAMETERS)
    assert [(r['model'], r['front'], r['n_datasets']) for r in rows] == [
        *[('c', False, 1), ('rare', True, 1), ('b', False, 1), ('a', False, 1)]  # rare has half: x alone is shared
    ]
    rows = cost.rows([s for s in scores if s.model not in ('z', 'rare')], ['c', 'b', 'a'], cost.PARAMETERS)
    assert [r['parameters'] for r in rows] == pytest.approx([1000, 10**4, 100]) and rows[0]['n_datasets'] == 2
    assert [r['front'] for r in rows] == [False, True, True]
    assert [r['score'] for r in rows] == pytest.approx([0.4, 0.8, 0.6])
    figure = cost.cost(rows, cost.PARAMETERS, title='x')
    assert [lines(figure, f'_{r["model"]}') for r in rows] == [[[(r['parameters'], r['score'])]] for r in rows]
    front = sorted((r['parameters'], r['score']) for r in rows if r['front'])
    assert lines(figure, '_front') == [front] and '2 datasets of tasks' in words(figure)
    assert not any('$' in t.get_text() for t in figure.axes[0].get_xticklabels())
    seconds = cost.rows(scores, ['c', 'b', 'a'], cost.SECONDS)
    assert [r['model'] for r in seconds] == ['b', 'a']  # c has no time
    assert cost.rows([], [], cost.SECONDS) == []
    alone = [paid('a', 0.8, 1, 1, 'x'), paid('b', 0.8, 1, 1, 'y')]
    assert cost.rows(alone, ['a', 'b'], cost.SECONDS) == []  # nothing is shared


@pytest.mark.parametrize('decades', [0, 1, 3, 6, 9])
def test_numbers_of_an_axis_do_not_overlap(decades):
    scores = [score('a', 0.6, seconds={'fit': 0.2}), score('b', 0.7, seconds={'fit': 0.2 * 10**decades})]
    figure = cost.cost(cost.rows(scores, ['a', 'b'], cost.SECONDS), cost.SECONDS, title='x')
    assert not cut(figure)
    low, high = figure.axes[0].get_xlim()
    ticks = [t for t in figure.axes[0].xaxis.get_major_ticks() if low <= t.get_loc() <= high]
    boxes = [t.label1.get_window_extent() for t in ticks]
    assert len(boxes) >= 2 and all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert [cost.short(v) for v in (0.05, 1, 500, 2e3, 5e6, 1e9)] == ['0.05', '1', '500', '2k', '5M', '1G']


def test_equals_are_both_on_the_front():
    assert cost.on_front('a', {'a': (1, 1), 'b': (1, 1)}) and not cost.on_front('a', {'a': (1, 2), 'b': (1, 1)})


@pytest.mark.slow
@pytest.mark.parametrize('n', [2, 26])
def test_nothing_is_cut(n):
    models = [f'{k}{LONG}' for k in range(n)]
    title = 'a title that is long, ' * 8
    cells = {('own', f't{k}', 'd'): {m: float(j + 1) for j, m in enumerate(models)} for k in range(3)}
    assert not cut(ranks.box(ranks.box_rows(cells, models), title=title))
    rows = ranks.difference_rows(models, range(1, n + 1), [(k, k + 1) for k in range(n - 1)])
    assert not cut(ranks.difference(rows, test='a test ' * 20, alpha=0.05, n=3, n_models=5, title=title))
    both = dict(zip(models, range(1, n + 1), strict=True))
    assert not cut(ranks.core_full(ranks.core_rows(both, both, models), agreement='tau', title=title))
    scores = [score(m, 0.5 + k / 100, seconds={'fit': 10.0**k}) for k, m in enumerate(models)]
    assert not cut(cost.cost(cost.rows(scores, models, cost.SECONDS), cost.SECONDS, title=title))
