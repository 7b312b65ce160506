"""Ranks over tasks. Proof: NeuralBench's 607 published cells, by the same code, give the published ranks.

tests/fixtures/neuralbench_results.csv has the means that facebookresearch/neuroai@af8ce00 shows in its documentation
(36 tasks, 17 models), with their published ranks.
"""

from __future__ import annotations

import csv

import pytest
from places import FIXTURES

from jbench.report import published, published_table, ranks, summary
from jbench.report.aggregate import Score
from jbench.spec.errors import RequestError

TABLE = FIXTURES / 'neuralbench_results.csv'
PUBLISHED = {  # mean rank, of how many tasks, normalised rank, and in the figure; mean normalised score, wins
    'REVE': (4.22, 36, 0.201, 0.20, 0.403, 12),
    'LaBraM': (4.39, 36, 0.212, 0.21, 0.402, 5),
    'LUNA': (5.81, 36, 0.300, 0.30, 0.353, 2),
    'CTNet': (6.08, 36, 0.318, 0.32, 0.340, 2),
    'CBraMod': (6.33, 36, 0.333, 0.33, 0.362, 3),
    'SimpleConvTimeAgg': (6.67, 36, 0.354, 0.35, 0.361, 0),
    'ShallowFBCSPNet': (7.89, 36, 0.431, 0.43, 0.287, 3),
    'Deep4Net': (7.74, 35, 0.421, 0.43, 0.304, 2),
    'EEGConformer': (8.19, 36, 0.450, 0.45, 0.269, 0),
    'EEGNet': (8.44, 36, 0.465, 0.47, 0.289, 0),
    'BENDR': (10.08, 36, 0.568, 0.57, 0.254, 1),
    'ATCNet': (10.42, 36, 0.589, 0.59, 0.236, 1),
    'Handcrafted': (10.49, 35, 0.593, 0.60, 0.237, 3),
    'BIOT': (11.31, 36, 0.644, 0.64, 0.175, 1),
    'BDTCN': (12.72, 36, 0.733, 0.73, 0.176, 1),
    'Dummy': (15.67, 33, 0.917, 0.92, 0.000, 0),
    'Chance': (16.03, 36, 0.939, 0.94, 0.000, 0),
}
TIES = {('age', 'eegconformer'), ('artifact', 'luna'), ('clinical_event', 'luna'), ('sleep_arousal', 'bendr')}
TRAINED = {
    **{'REVE': 4.00, 'LaBraM': 4.19, 'LUNA': 5.56, 'CTNet': 5.83, 'CBraMod': 6.00, 'SimpleConvTimeAgg': 6.44},
    **{'Deep4Net': 7.49, 'ShallowFBCSPNet': 7.53, 'EEGConformer': 7.81, 'EEGNet': 8.14, 'BENDR': 9.36, 'ATCNet': 9.83},
    **{'BIOT': 10.67, 'BDTCN': 11.89},
}


@pytest.fixture(scope='module')
def cells() -> list[Score]:
    return published.read(TABLE)


@pytest.fixture(scope='module')
def found():
    return published_table.as_dict(TABLE)


# ---- the published table ----


def test_the_published_ranks_but_for_four_rounded_ties(found):
    assert (found['n_scores'], found['ranks']['n'], found['ranks']['n_equal']) == (607, 607, 603)
    different = found['ranks']['different']
    assert {(x['task'], x['model']) for x in different} == TIES
    assert all(x['published'] == x['rank'] + 1 and 'rounded mean ties with' in x['why'] for x in different)


def test_the_published_mean_ranks(found):
    models = {line['title']: line for line in found['models']}
    assert set(models) == set(PUBLISHED)
    tied = {'EEGConformer', 'LUNA', 'BENDR'}  # whose ranks of rounded means are better by one, once or twice
    for title, (rank, n_tasks, normalised, drawn, score, wins) in PUBLISHED.items():
        line = models[title]
        assert (line['n_tasks'], line['n_missing'], line['wins']) == (n_tasks, 36 - n_tasks, wins)
        assert line['published_mean_rank'] == pytest.approx(rank, abs=0.0051)
        assert line['published_mean_normalised_rank'] == pytest.approx(normalised, abs=0.00051)
        within = 2 / 36 / 16 if title in tied else 1e-9
        assert line['mean_normalised_rank'] == pytest.approx(line['published_mean_normalised_rank'], abs=within)
        absent = 0.01 if title in ('Deep4Net', 'Handcrafted') else 0  # the figure has a cell that the table lacks
        assert line['mean_normalised_rank'] == pytest.approx(drawn, abs=0.0051 + absent)
        assert line['mean_normalised_score'] == pytest.approx(score, abs=0.00051)
    assert [line['mean_rank'] for line in found['models']] == sorted(line['mean_rank'] for line in found['models'])


def test_the_published_normalised_scores(cells):
    with open(TABLE, newline='') as file:
        said = {(x['task'], x['model']): x for x in csv.DictReader(file)}
    for s in cells:
        line = said[s.task, s.model]
        assert s.normalised == pytest.approx(float(line['normalised_recomputed']), abs=5.1e-5)
        assert s.floor == next(x.mean for x in cells if (x.task, x.model) == (s.task, line['floor']))


def test_ranks_over_complete_cases_stand_beside(found):
    assert {line['n_complete'] for line in found['models']} == {33}
    reve = found['models'][0]
    with open(TABLE, newline='') as file:
        lines = list(csv.DictReader(file))
    missing = {'age', 'psychopathology', 'reaction_time'}
    kept = [int(x['rank_published']) for x in lines if x['model'] == 'reve' and x['task'] not in missing]
    assert reve['mean_rank_complete'] == pytest.approx(sum(kept) / 33)
    assert reve['mean_normalised_rank_complete'] == pytest.approx((sum(kept) / 33 - 1) / 16)


def test_the_published_ranks_of_trained_models_alone(cells):
    kept = [s for s in cells if s.family != 'baselines']
    given = {x.title: x.mean_rank for x in ranks.standings(kept)}
    assert set(given) == set(TRAINED)
    assert all(given[t] == pytest.approx(rank, abs=0.061) for t, rank in TRAINED.items())  # with the rounded ties
    assert given['REVE'] == 4.0


def test_the_published_gap_between_families(found):
    gaps = {tuple(x['families']): x for x in found['families']}
    assert (gaps['classic', 'foundation']['n_cells'], gaps['classic', 'foundation']['n_first_better']) == (36, 11)
    assert gaps['classic', 'foundation']['n_ties'] == 0  # so foundation models lead on 25
    assert gaps['classic', 'foundation']['mean_difference'] < 0


def test_the_published_ranks_by_category(found):
    means = {c: [round(row[m], 1) for m in ('reve', 'labram', 'ctnet')] for c, row in found['by_category'].items()}
    assert means['bci'] == [3.3, 4.3, 4.3] and means['sleep'] == [8.0, 4.0, 7.0]
    assert means['clinical'] == [8.7, 6.1, 7.1] and means['misc'] == [1.0, 2.5, 6.5]
    assert len(means) == 8


def test_published_scores_are_as_ours(cells):
    (s,) = [s for s in cells if (s.task, s.model) == ('p3', 'atcnet')]
    assert (s.mean, s.sd, s.metric, s.family) == (pytest.approx(0.54302), pytest.approx(0.00446), 'bal_acc', 'classic')
    assert (s.device, s.dataset, s.category, s.core, s.origin) == ('eeg', 'Schreuder2010New', 'bci', True, 'published')
    assert s.suite == 'eeg-core-1.0' and s.per_subject == {} and s.interval is None
    assert {s.family for s in cells} == {'classic', 'foundation', 'baselines'}
    assert {s.metric for s in cells} == {'bal_acc', 'f1_score_macro', 'pearsonr', 'top5_acc'}


HEAD = 'device,task,dataset,model,category,metric,mean,std,n_seeds\n'
LINE = 'eeg,p3,A,eegnet,classic,test/bal_acc,{mean},0.1,3\n'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (HEAD.replace('mean,', ''), "lacks the column 'mean'"),
        ('', "lacks the column 'device'"),
        (HEAD + LINE.format(mean='high'), "line 2: mean: 'high' is not a number"),
        (HEAD + LINE.format(mean=1).replace('bal_acc', 'kappa'), "line 2: unknown metric 'test/kappa'"),
        (HEAD + 2 * LINE.format(mean=1), 'eegnet on p3/A stands there twice'),
        (HEAD + 'eeg,p3\n', "line 2: ends before the column 'dataset'"),
        (HEAD + '\xff', 'not a CSV file in UTF-8'),
    ],
)
def test_a_wrong_file_is_named_in_one_line(text, words, tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text(text, encoding='latin-1')
    with pytest.raises(RequestError, match=words):
        published.read(path)
    with pytest.raises(RequestError, match='cannot read'):
        published.read(tmp_path / 'none.csv')


def test_a_line_without_a_number_is_a_missing_cell(tmp_path):
    path = tmp_path / 'x.csv'
    path.write_text(HEAD + ''.join(LINE.format(mean=m).replace('eegnet', f'm{m}') for m in ('nan', '', 'inf', 50)))
    assert [(s.model, s.mean, s.floor, s.normalised) for s in published.read(path)] == [('m50', 0.5, None, None)]


# ---- the rules, by hand ----


def made(model: str, mean: float, task: str = 'p3', dataset: str = 'A', **changes) -> Score:
    first = published.read(TABLE)[0] if not made.__dict__ else made.__dict__['first']
    made.__dict__['first'] = first
    words = {'protocol': f'{task}/{dataset}', 'origin': 'own', 'core': dataset == 'A', 'title': model, 'category': 'c'}
    words |= {'normalised': mean, 'metric': 'bal_acc', 'better': 'higher', 'family': 'classic'}
    return first._replace(**{'model': model, 'mean': mean, 'task': task, 'dataset': dataset, **words, **changes})


def test_ties_get_the_better_rank_and_lower_may_be_better():
    scores = [made('a', 0.9), made('b', 0.7), made('c', 0.7), made('d', 0.1)]
    assert ranks.ranks(scores) == {('own', 'p3', 'A'): {'a': 1, 'b': 2, 'c': 2, 'd': 4}}
    errors = [s._replace(better='lower') for s in scores]
    assert ranks.ranks(errors) == {('own', 'p3', 'A'): {'d': 1, 'b': 2, 'c': 2, 'a': 4}}
    assert [s.model for s in ranks.best(errors)] == ['d']


def test_full_averages_inside_a_task_first():
    scores = [made('a', 0.9), made('b', 0.8), made('a', 0.9, 'age'), made('b', 0.8, 'age')]
    scores += [s for d in 'BCD' for s in (made('a', 0.1, dataset=d), made('b', 0.2, dataset=d))]
    core, full = ({x.model: x for x in ranks.standings(scores, full=f)} for f in (False, True))
    assert (core['a'].mean_rank, core['b'].mean_rank) == (1.0, 2.0)
    assert full['a'].mean_rank == pytest.approx(((1 + 2 + 2 + 2) / 4 + 1) / 2)  # each task weighs the same
    assert full['a'].mean_normalised_rank == pytest.approx(full['a'].mean_rank - 1)
    assert full['a'].mean_normalised_score == pytest.approx(((0.9 + 3 * 0.1) / 4 + 0.9) / 2)
    assert (full['a'].wins, full['b'].wins, full['a'].n_tasks) == (2, 3, 2)


def test_missing_cells_are_skipped_and_the_others_ranked_among_themselves():
    scores = [made(m, v) for m, v in (('a', 0.9), ('b', 0.8), ('c', 0.7))]
    scores += [made('b', 0.3, 'age'), made('c', 0.4, 'age'), made('c', 0.5, 'sex')]
    lines = {x.model: x for x in ranks.standings(scores)}
    assert {m: x.mean_rank for m, x in lines.items()} == {'a': 1.0, 'b': 2.0, 'c': 2.0}  # nobody is ranked alone
    assert {m: (x.n_tasks, x.n_missing) for m, x in lines.items()} == {'a': (1, 2), 'b': (2, 1), 'c': (3, 0)}
    assert lines['c'].mean_normalised_rank == 0.5  # 3 models of the table, not of a row


def test_complete_cases_pass_over_models_with_few_datasets():
    mine = [made(m, v, task) for task in ('p3', 'age', 'sex') for m, v in (('a', 0.9), ('b', 0.8), ('c', 0.7))]
    mine += [made('rare', 0.85), made('lonely', 0.5, 'typing'), made('c', 0.7, 'typing')]
    lines = {x.model: x for x in ranks.standings(mine)}
    assert {m: x.mean_rank_complete for m, x in lines.items() if x.n_complete} == {'a': 1.0, 'b': 2.0, 'c': 3.0}
    assert {m: x.n_complete for m, x in lines.items()} == {'a': 3, 'b': 3, 'c': 3, 'rare': 0, 'lonely': 0}
    assert [lines[m].mean_normalised_rank_complete for m in ('a', 'b', 'c', 'rare')] == [0.0, 0.5, 1.0, None]
    assert lines['b'].mean_rank == pytest.approx(7 / 3)  # behind `rare` on one of three


def test_one_model_and_none():
    (line,) = ranks.standings([made('a', 0.9)])
    assert (line.mean_rank, line.mean_normalised_rank, line.wins, line.n_complete) == (None, None, 0, 0)
    assert ranks.standings([]) == [] and ranks.gaps([]) == [] and ranks.best([]) == []
    nothing = {'kendall_tau': None, 'spearman_rho': None}
    few = 'fewer than two models have both mean ranks'
    assert ranks.core_against_full([]) == {**nothing, 'n_models': 0, 'reason': few}
    every = [made(m, v, dataset=d) for d in 'AE' for m, v in (('a', 0.5), ('b', 0.5))]
    same = 'all models have the same mean rank'
    assert ranks.core_against_full(every) == {**nothing, 'n_models': 2, 'reason': same}


def test_core_that_is_full_agrees_with_nothing():
    found = ranks.core_against_full([made('a', 0.9), made('b', 0.5)])
    assert found['kendall_tau'] is None and found['spearman_rho'] is None
    assert found['reason'] == 'every dataset is a Core one'


def test_core_against_full_is_as_scipy_has_it():
    scores = [made(m, v) for m, v in (('a', 0.9), ('b', 0.8), ('c', 0.7), ('d', 0.6))]
    scores += [made(m, v, dataset='B') for m, v in (('a', 0.1), ('b', 0.9), ('c', 0.8), ('d', 0.5))]
    found = ranks.core_against_full(scores)  # Core 1 2 3 4; Full 2.5 1.5 2.5 3.5
    assert found == {
        'kendall_tau': pytest.approx(3 / 30**0.5),
        'spearman_rho': pytest.approx(0.632455532),
        'n_models': 4,
        'reason': None,
    }


def test_variability_is_over_five_datasets_or_more():
    scores = [made(m, v, dataset=d) for d, v in zip('ABCDE', (0.9, 0.1, 0.9, 0.1, 0.9), strict=True) for m, v in
              (('a', v), ('b', 0.5))]  # fmt: skip
    scores += [made(m, 0.5, 'age', d) for d in 'ABCD' for m in 'ab']
    a, b = ranks.variability(scores)
    assert a == {'origin': 'own', 'task': 'p3', 'model': 'a', 'n_datasets': 5, 'sd': pytest.approx(0.3**0.5),
                 'best': 1, 'worst': 2}  # fmt: skip
    assert b['sd'] == a['sd']


def test_gap_of_families():
    scores = [made('a', 0.9, family='x'), made('b', 0.2, family='x'), made('c', 0.6, family='y')]
    scores += [made('a', 0.5, 'age', family='x'), made('c', 0.5, 'age', family='y'), made('c', 0.5, 'sex', family='y')]
    (gap,) = ranks.gaps(scores)
    assert gap == (('x', 'y'), 'own', 2, 1, 1, pytest.approx(0.15))


def test_published_and_own_are_ranked_apart_and_marked():
    scores = [made('a', 0.9), made('b', 0.8), made('a', 0.5, origin='published'), made('c', 0.6, origin='published')]
    assert [(x.origin, x.model, x.mean_rank) for x in ranks.standings(scores)] == [
        ('own', 'a', 1.0),
        ('own', 'b', 2.0),
        ('published', 'c', 1.0),
        ('published', 'a', 2.0),
    ]
    assert [x.origin for x in ranks.best(scores)] == ['own', 'published']


def test_scores_of_two_protocols_are_refused():
    with pytest.raises(ValueError, match='several protocols'):
        ranks.ranks([made('a', 0.9), made('b', 0.9, protocol='another')])


def test_the_rules_are_said(found):
    assert found['rules'] == list(summary.RULES)
