"""Scores from results: seeds averaged, and what must not be mixed."""

from __future__ import annotations

import pytest
from result_files import HISTORIC, store

from jbench.report import aggregate, ranks
from jbench.results import index


def rows(folder, also=()):
    return index.scan([folder], also).rows


def test_seeds_are_averaged(tmp_path):
    for seed, value, low, dummy in ((1, 0.6, 0.5, 0.5), (2, 0.8, 0.6, 0.5), (3, 0.7, None, 0.5)):
        store(
            tmp_path,
            value=value,
            seed=seed,
            dummy=dummy,
            chance=dummy,
            headline={'value': value, 'interval': None if low is None else [low, 0.9], 'n_subjects': 2},
            per_subject={'S01': value, 'S02': None if seed == 1 else value - 0.1},
            timings={'fit': 10.0 * seed},
        )
    (s,) = aggregate.scores(rows(tmp_path))
    assert (s.mean, s.sd, s.n_seeds) == (pytest.approx(0.7), pytest.approx(0.1), 3)
    assert s.interval == (pytest.approx(0.55), pytest.approx(0.9)) and s.n_subjects == 2
    assert (s.floor, s.normalised) == (0.5, pytest.approx(0.4))
    assert s.per_subject == {'S01': pytest.approx(0.7), 'S02': pytest.approx(0.65)}
    assert s.seconds['fit'] == 20.0 and s.n_parameters == 1458 and s.family == 'classic'
    assert (s.task, s.version, s.dataset, s.model, s.origin, s.core) == ('p3', 2, 'Real', 'eegnet', 'own', True)
    assert [p.rpartition('/')[2] for p in s.paths] == ['seed1.json', 'seed2.json', 'seed3.json']


def test_a_floor_is_the_dummy_else_chance_and_lower_may_be_better(tmp_path):
    store(tmp_path, value=0.4, dummy=None, chance=0.0, headline={'name': 'pearsonr', 'value': 0.4}, task='age',
          config={'task': {'metric': 'pearsonr'}})  # fmt: skip
    error = {'name': 'rmse', 'better': 'lower', 'value': 2.0}
    store(tmp_path, value=2.0, dummy=8.0, chance=8.0, headline=error, task='sex', config={'task': {'metric': 'rmse'}})
    assert [(s.floor, s.normalised) for s in aggregate.scores(rows(tmp_path))] == [(0.0, 0.4), (8.0, 0.75)]


def test_results_of_old_schemas_have_no_interval_and_count():
    found = aggregate.scores(rows(HISTORIC, ('simulated', 'debug')))
    assert [(s.version, s.model, s.interval is None) for s in found if s.model == 'eegnet'] == [
        (2, 'eegnet', True),
        (2, 'eegnet', False),
        (1, 'eegnet', True),
    ]


LR = {'protocol': {'custom': ['recipe.lr=0.1']}}
OTHERS = {
    'split': {'split_hash': 'other'},
    'metric': {'headline': {'name': 'acc'}, 'config': {'task': {'metric': 'acc'}}},
    'level': {'headline': {'level': 'subject'}},
    'custom': LR,
    'as published': {'config': {'task': {'recipe': {'published': True}}}},
    'version': {'task_version': 1},
    'dataset': {'dataset': 'Else'},
    'debug': {'protocol': {'debug': True}},
    'partial': {'protocol': {'partial': ['1 of 2 recordings']}},
    'simulated': {'simulated': True},
}


@pytest.mark.parametrize('name', OTHERS)
def test_only_equal_protocols_are_compared(name, tmp_path):
    store(tmp_path, 'eegnet', 0.6)
    store(tmp_path / 'x', 'dummy', 0.7, **OTHERS[name])
    found = aggregate.scores(rows(tmp_path, ('debug', 'partial', 'simulated')))
    assert len(found) == 2 and len({s.protocol for s in found}) == 2
    kept, left_out = ranks.one_protocol(found)
    assert len(kept) + len(left_out) == 2 and (len(kept) == 2) == (name == 'dataset')
    assert not ranks.ranks(kept)


@pytest.mark.parametrize('name', sorted(set(OTHERS) - {'dataset'}))
def test_the_protocol_of_the_table_is_the_newest_version_unchanged_with_most_models(name, tmp_path):
    store(tmp_path, 'eegnet', 0.6)
    store(tmp_path, 'dummy', 0.5)
    store(tmp_path / 'x', 'reve', 0.7, **OTHERS[name])
    kept, left_out = ranks.one_protocol(aggregate.scores(rows(tmp_path, ('debug', 'partial', 'simulated'))))
    assert sorted(s.model for s in kept) == ['dummy', 'eegnet']
    (out,) = left_out
    assert '/reve/' in out.path
    kind = 'older version: p3@1; in the table: p3@2' if name == 'version' else f'other protocol: {"p3@2/Real"}'
    assert out.reason.startswith(kind)


def test_changes_lose_against_the_protocol_of_the_task_and_newer_dates_win(tmp_path):
    for model in ('eegnet', 'dummy'):
        store(tmp_path, model, 0.6, **LR)
    store(tmp_path, 'reve', 0.6, split_hash='old', date='2026-01-01T00:00:00Z')
    store(tmp_path, 'biot', 0.6, split_hash='new', date='2026-02-01T00:00:00Z')
    kept, left_out = ranks.one_protocol(aggregate.scores(rows(tmp_path)))
    assert [s.model for s in kept] == ['biot'] and len(left_out) == 3


def test_of_two_keys_of_a_model_the_newest_counts(tmp_path):
    for seed in (1, 2):
        store(tmp_path, value=0.9, seed=seed, key='old', date='2026-01-01T00:00:00Z')
    store(tmp_path, value=0.6, seed=1, key='new', date='2026-03-01T00:00:00Z')
    store(tmp_path, value=0.5, seed=2, key='new', date='2026-02-01T00:00:00Z', prepared_hash='older windows')
    store(tmp_path, value=0.9, seed=3, key='schema 2', date=None)
    found = aggregate.comparable(rows(tmp_path))
    assert [(r.key, r.seed) for r in found.rows] == [('new', 1)]
    assert sorted(x.reason.partition(';')[0] for x in found.left_out) == [
        'older data: older windows',
        'older key: old',
        'older key: old',
        'older key: schema 2',
    ]
    (s,) = aggregate.scores(rows(tmp_path))
    assert (s.mean, s.n_seeds, s.date) == (0.6, 1, '2026-03-01T00:00:00Z')


def test_a_seed_counts_once(tmp_path):
    first = store(tmp_path / 'a', value=0.6)
    store(tmp_path / 'b', value=0.6)
    newer = store(tmp_path / 'c', value=0.8, date='2027-01-01T00:00:00Z')
    found = aggregate.comparable(rows(tmp_path))
    assert [r.path for r in found.rows] == [str(newer)]
    assert len(found.left_out) == 2 and str(first) in {x.path for x in found.left_out}
    assert {x.reason.partition(' /')[0] for x in found.left_out} == {
        'repeated: a copy of',
        'repeated: the same seed, older than',
    }


def test_what_has_no_score_is_no_score(tmp_path):
    store(tmp_path, value=0.6)
    (row,) = rows(tmp_path)
    assert [s.n_seeds for s in aggregate.scores([row, row._replace(seed=34, value=None)])] == [1]
    assert aggregate.scores([row._replace(value=float('nan'))]) == []
