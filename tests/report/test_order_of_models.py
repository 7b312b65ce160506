"""One order of models: that of the table of standings, in figures, exports and matrices alike."""

from __future__ import annotations

import yaml
from drawn import score, table

from jbench.report import exports, matrix, order, summary
from jbench.report.figures import over_tasks

SCORES = [
    *table({'b': 0.9, 'dummy': 0.8, 'a': 0.7}, ('t0', 't1', 't2')),
    score('few', 0.99, task='t0', dataset='Of_t0', protocol='t0'),  # best of one of three
    score('alone', 0.6, task='t3', dataset='Of_t3', protocol='t3'),
][::-1]
WANTED = ['b', 'dummy', 'a', 'few', 'alone']  # few: on fewer than half; alone: without a rank


def rows():
    return [{**s._asdict(), 'task_version': s.version} for s in SCORES]


def test_the_order_is_that_of_the_table():
    assert order.of_scores(SCORES) == WANTED
    assert [line['model'] for line in summary.standings(SCORES, full=True)] == WANTED


def test_figures_exports_and_matrices_have_it():
    plans = {plan.kind: plan for plan in over_tasks.plans(SCORES, order.of_scores(SCORES))}
    assert list(dict.fromkeys(row['model'] for row in plans['heatmap'].make()[1])) == WANTED
    head = exports.markdown(SCORES).split('\n')[0].strip('| ').split(' | ')
    assert head[2:] == WANTED
    head = exports.latex(SCORES).split('\n')[2].strip(' \\').split(' & ')
    assert head[2:] == WANTED
    card = yaml.safe_load(exports.huggingface(SCORES))
    assert [model['name'] for model in card['model-index']] == WANTED
    lines = matrix.text(rows(), 200, order.of_rows(rows())).split('\n')
    assert [line.split()[0] for line in lines[1:]] == WANTED or lines[0].split()[-5:] == WANTED


def test_rows_without_a_mean_or_under_several_keys():
    two = [*rows(), {**rows()[0], 'mean': 0.1}, {**rows()[0], 'model': 'never', 'mean': None}]
    assert order.of_rows(two) == [*WANTED, 'never'] and order.of_rows([]) == order.of_scores([]) == []


def test_own_ranks_come_before_published_ones():
    published = [s._replace(origin='published') for s in table({'a': 0.9, 'c': 0.5})]
    assert order.of_scores([*table({'b': 0.8, 'a': 0.7}), *published]) == ['b', 'a', 'c']
