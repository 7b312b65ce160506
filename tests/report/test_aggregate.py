"""Scores from results: seeds averaged, and what must not be mixed."""

from __future__ import annotations

import pytest
from result_files import HISTORIC, merged, store

from jbench.models import MODELS
from jbench.report import aggregate, ranks
from jbench.report.overlap import overlap
from jbench.results import index
from jbench.spec.pretraining import of_companion


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


def test_an_overlap_through_a_task_learnt_beside_stands_in_the_result_alone(tmp_path):
    other = 'motor_imagery/Other'
    for dataset, warnings in (('A', []), ('B', [of_companion(other)])):
        store(tmp_path, dataset=dataset, seed=1, warnings=[])
        store(tmp_path, dataset=dataset, seed=2, warnings=warnings, config={'companions': [[other, 'a digest']]})
    assert [overlap(s) for s in aggregate.scores(rows(tmp_path))] == ['clean', 'overlap']


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


def test_a_newer_version_on_another_dataset_leaves_out_nothing(tmp_path):
    for model in ('eegnet', 'dummy'):
        store(tmp_path, model, 0.6, task_version=1)
    store(tmp_path, 'eegnet', 0.7, dataset='Else')
    kept, left_out = ranks.one_protocol(aggregate.scores(rows(tmp_path)))
    assert sorted((s.version, s.dataset, s.model) for s in kept) == [
        (1, 'Real', 'dummy'), (1, 'Real', 'eegnet'), (2, 'Else', 'eegnet')
    ]  # fmt: skip
    assert not left_out


@pytest.mark.parametrize('name', ['custom', 'debug', 'partial', 'simulated', 'unknown'])
def test_a_newer_version_counts_by_measurements_of_versions_that_there_are(name, tmp_path):
    newer = {'task_version': 99} if name == 'unknown' else OTHERS[name]
    store(tmp_path, 'eegnet', 0.6, task_version=1)
    for model in ('dummy', 'reve', 'biot'):
        store(tmp_path, model, 0.9, **newer)
    found = aggregate.scores(rows(tmp_path, ('debug', 'partial', 'simulated')))
    kept, left_out = ranks.one_protocol(found)
    assert [(s.model, s.version) for s in kept] == [('eegnet', 1)] and len(left_out) == 3
    assert all(x.reason.startswith(f'other protocol: p3@{newer.get("task_version", 2)}/') for x in left_out)
    alone, left_out = ranks.one_protocol(s for s in found if s.model != 'eegnet')
    assert len(alone) == 3 and not left_out, 'where there are no others they stand'


def test_the_newest_version_of_a_task_that_jbench_does_not_have(tmp_path):
    for version in (1, 99):
        store(tmp_path, 'eegnet', 0.6, task='mine', task_version=version)
    kept, left_out = ranks.one_protocol(aggregate.scores(rows(tmp_path)))
    assert [s.version for s in kept] == [99]
    assert [x.reason for x in left_out] == ['older version: mine@1; in the table: mine@99']


def test_of_two_keys_of_a_model_with_as_many_seeds_the_newest_counts(tmp_path):
    store(tmp_path, value=0.9, seed=2, key='old', date='2026-01-01T00:00:00Z')
    store(tmp_path, value=0.6, seed=1, key='new', date='2026-03-01T00:00:00Z', prepared_hash='ours')
    store(tmp_path, value=0.5, seed=2, key='new', date='2026-02-01T00:00:00Z', prepared_hash='older windows')
    store(tmp_path, value=0.9, seed=3, key='schema 2', date=None)
    store(tmp_path, value=0.9, seed=4, key='a wrong clock', date='2199-01-01T00:00:00Z')
    store(tmp_path, value=0.9, seed=4, key='no date', date='zzz')
    found = aggregate.comparable(rows(tmp_path))
    assert [(r.key, r.seed) for r in found.rows] == [('new', 1)]
    assert sorted(x.reason for x in found.left_out) == [
        'other data: older windows of new, older; taken: ours (1 seed)',
        'other key: a wrong clock of eegnet, older; taken: new (1 seed)',
        'other key: no date of eegnet, older; taken: new (1 seed)',
        'other key: old of eegnet, older; taken: new (1 seed)',
        'other key: schema 2 of eegnet, older; taken: new (1 seed)',
    ]
    (s,) = aggregate.scores(rows(tmp_path))
    assert (s.mean, s.n_seeds, s.date) == (0.6, 1, '2026-03-01T00:00:00Z')


@pytest.mark.parametrize('other', [{'key': 'new'}, {'prepared_hash': 'other windows'}])
def test_one_newer_file_does_not_leave_out_several_seeds(other, tmp_path):
    for seed in (1, 2, 3):
        store(tmp_path, value=0.6, seed=seed, date='2026-01-01T00:00:00Z')
    newer = store(tmp_path / 'x', value=0.9, seed=1, date='2026-03-01T00:00:00Z', **other)
    found = aggregate.comparable(rows(tmp_path))
    assert [r.seed for r in found.rows] == [1, 2, 3]
    (out,) = found.left_out
    assert out.path == str(newer) and 'fewer seeds; taken: ' in out.reason and out.reason.endswith('(3 seeds)')


def test_of_a_seed_that_is_there_twice_a_date_to_come_is_not_the_newest(tmp_path):
    store(tmp_path / 'a', value=0.6, date='2026-03-01T00:00:00Z')
    store(tmp_path / 'b', value=0.9, date='2199-03-01T00:00:00Z')
    (s,) = aggregate.scores(rows(tmp_path))
    assert (s.mean, s.date) == (0.6, '2026-03-01T00:00:00Z')
    store(tmp_path / 'b', value=0.9, date='2199-03-01T00:00:00Z', seed=34)
    assert aggregate.scores(rows(tmp_path))[0].date == '2026-03-01T00:00:00Z'


MARKS = {
    'partial': {'protocol': {'partial': ['1 of 2 recordings']}},
    'as published': {'config': {'task': {'recipe': {'published': True}}}},
    'simulated': {'simulated': True},
}


@pytest.mark.parametrize('name', MARKS)
def test_what_marks_all_results_does_not_let_changes_of_the_user_win(name, tmp_path):
    mark, both = MARKS[name], merged(MARKS[name], LR)
    store(tmp_path, 'dummy', 0.6, **mark)
    for model in ('eegnet', 'dummy'):
        store(tmp_path / 'x', model, 0.7, **both)
    found = aggregate.scores(rows(tmp_path, ('partial', 'simulated')))
    assert sorted(aggregate.customised(s.protocol) for s in found) == [False, True, True]
    kept, left_out = ranks.one_protocol(found)
    assert [(s.model, s.mean) for s in kept] == [('dummy', 0.6)] and len(left_out) == 2


WINDOW = {'config': {'task': {'window': {'start': 0.125}}}}
DECAY = {'config': {'task': {'recipe': {'weight_decay': 9.0}}}}


@pytest.mark.parametrize('change', [WINDOW, DECAY])
def test_another_protocol_that_nothing_else_tells_is_another_group(change, tmp_path):
    store(tmp_path, 'eegnet', 0.6)
    store(tmp_path, 'dummy', 0.7, **change)
    found = aggregate.scores(rows(tmp_path))
    assert len({s.protocol for s in found}) == 2 and [s.changes for s in found] == [(), ()]
    assert not ranks.ranks(ranks.one_protocol(found)[0])


def test_what_a_model_wants_otherwise_leaves_it_comparable(tmp_path):
    wants = {'name': 'net:mine', 'family': 'user', 'overrides': [['recipe.weight_decay', 9.0], ['signal.sfreq', 200.0]]}
    store(tmp_path, 'eegnet', 0.6)
    store(tmp_path, 'net:mine', 0.7, config={
        'model': wants, 'task': {'recipe': {'weight_decay': 9.0}, 'signal': {'sfreq': 200.0}}
    })  # fmt: skip
    assert len({s.protocol for s in aggregate.scores(rows(tmp_path))}) == 1
    store(
        tmp_path,
        'dummy',
        0.7,
        config={'model': {'overrides': wants['overrides'], 'version': MODELS['dummy'].version}, **DECAY['config']},
    )
    assert len({s.protocol for s in aggregate.scores(rows(tmp_path))}) == 2  # the table knows what it wants


def test_a_seed_counts_once(tmp_path):
    first = store(tmp_path / 'a', value=0.6, date='2026-01-01T00:00:00Z')
    store(tmp_path / 'b', value=0.6, date='2026-01-01T00:00:00Z')
    newer = store(tmp_path / 'c', value=0.8, date='2026-02-01T00:00:00Z')
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
