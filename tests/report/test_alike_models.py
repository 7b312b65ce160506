"""Groups of models that cannot be told apart: those of the statistics, on the datasets that models share."""

from __future__ import annotations

import numpy as np
from test_ranks import made

from jbench.report import alike, summary
from jbench.report.statistics import many

TASKS = tuple(f't{k}' for k in range(10))


def scores(means):
    rng = np.random.default_rng(0)
    return [made(m, v + 0.001 * rng.random(), task, f'D{task}', core=True) for task in TASKS for m, v in means.items()]


def test_groups_are_those_of_the_statistics():
    mine = [*scores({'a': 0.9, 'b': 0.9, 'c': 0.5}), made('rare', 0.95, 't0', 'Dt0')]
    found = alike.alike(mine, ['rare', 'c', 'b', 'a'])
    grid = np.array([[s.normalised for m in 'cba' for s in mine if (s.model, s.task) == (m, task)] for task in TASKS])
    wanted = many.ranking(grid)
    assert found.models == tuple('cba'[k] for k in wanted.order) and found.mean_ranks == wanted.mean_ranks
    assert found.groups == wanted.groups == ((0, 1),) and found.models[2] == 'c'
    assert (found.n, found.n_models, found.reason) == (10, 4, '')
    assert sorted(alike.plain(found)['groups'][0]) == ['a', 'b']
    line = alike.words(found, {'a': 'A', 'b': 'B', 'c': 'C'})
    assert line.startswith('cannot be told apart: ') and {'A', 'B'} <= set(line.replace(',', '').split())
    assert '3 of 4 models' in line and 'C' not in line.split('(')[0].split()


def test_tasks_on_one_dataset_count_as_one():
    rng = np.random.default_rng(0)
    means = {(m, d): v + 0.1 * rng.random() for m, v in (('a', 0.5), ('b', 0.5)) for d in 'ABCDE'}
    once = [made(m, v, 't', d) for (m, d), v in means.items()]
    often = [made(m, v + shift, f't{k}', d) for (m, d), v in means.items() for k, shift in enumerate((0.02, -0.02, 0))]
    found, wanted = (alike.alike(mine, ['a', 'b']) for mine in (often, once))
    assert found == wanted and found.n == 5


def test_too_few_say_so():
    found = alike.alike([made('a', 0.9), made('b', 0.8)], ['a', 'b'])
    assert found.groups == () and 'there are 2 and 1' in alike.words(found, {})
    assert alike.alike([], []).n_models == 0


def test_a_model_on_fewer_than_half_of_the_datasets_stands_last():
    mine = [*scores({'a': 0.9, 'b': 0.5}), *(made('half', 0.95, task, f'D{task}', core=True) for task in TASKS[:5])]
    mine += [made('rare', 0.99, task, f'D{task}', core=True) for task in TASKS[:4]]
    lines = summary.standings(mine, full=False)
    assert [(m['model'], m['few'], m['n_datasets']) for m in lines] == [
        ('half', False, 5),
        ('a', False, 10),
        ('b', False, 10),
        ('rare', True, 4),
    ]
    assert lines[-1]['mean_rank'] == 1.0
