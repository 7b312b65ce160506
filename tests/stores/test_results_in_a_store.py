"""Results in a store: written once, found by other machines, compared where there are two."""

from __future__ import annotations

import json

import pytest
import stores

from jbench.spec.errors import RequestError
from jbench.stores import checkpoints, replaced, results

HOME = 'results/p3@2/SimulatedP3/eegnet/key'


@pytest.fixture
def machines(tmp_path):
    with stores.in_memory(tmp_path) as found:
        yield found


def test_a_result_is_found_by_another_machine(machines):
    a = machines.on('a')
    path = stores.result(a / HOME)
    path.with_suffix('.safetensors').write_bytes(b'weights')
    fold = stores.result(a / HOME / 'folds' / '1_of_2')
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    results.bring(b, [b / HOME])
    assert (b / HOME / 'seed33.json').read_bytes() == path.read_bytes()
    assert (b / HOME / 'seed33.npz').read_bytes() == path.with_suffix('.npz').read_bytes()
    assert (b / fold.relative_to(a)).exists() and not (b / HOME / 'seed33.safetensors').exists()
    assert f'{HOME}/seed33.safetensors' in machines.names()


def test_what_is_there_is_neither_brought_nor_taken_again(machines, monkeypatch):
    a = machines.on('a')
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    store = machines.store()
    for name in ('write', 'write_absent', 'fetch'):
        monkeypatch.setattr(store, name, None)
    results.take(a, a / HOME, [33])
    results.bring(a)


def test_other_seeds_are_left_alone(machines):
    a = machines.on('a')
    stores.result(a / HOME, 33)
    stores.result(a / HOME, 34)
    results.take(a, a / HOME, [34])
    assert machines.names() == ['.written_once', f'{HOME}/seed34.json', f'{HOME}/seed34.npz']


def test_an_equal_result_is_silent_and_the_first_stays(machines, capsys):
    a = machines.on('a')
    first = stores.result(a / HOME, timings={'fit': 1.0}, machine={'processor': 'x'}).read_bytes()
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    path = stores.result(b / HOME, timings={'fit': 2.0}, machine={'processor': 'y'}, date='2026-02-02')
    results.take(b, b / HOME, [33])
    assert path.read_bytes() == machines.store().read(f'{HOME}/seed33.json') == first
    assert capsys.readouterr() == ('', '')


def test_another_result_is_an_error_that_shows_both(machines):
    a = machines.on('a')
    first = stores.result(a / HOME).read_bytes()
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    path = stores.result(b / HOME, npz=b'others', headline={'value': 0.625}, machine={'processor': 'other one'})
    mine = path.read_bytes()
    with pytest.raises(RequestError, match=r'headline: 0\.5 there, 0\.625 here') as told:
        results.take(b, b / HOME, [33])
    assert f'{machines.url}/{HOME}/seed33.json' in str(told.value) and 'other one' in str(told.value)
    assert path.read_bytes() == machines.store().read(f'{HOME}/seed33.json') == first
    assert path.with_suffix('.npz').read_bytes() == b'predictions'
    kept = b / 'unequal' / HOME / 'seed33.json'
    assert kept.read_bytes() == mine and kept.with_suffix('.npz').read_bytes() == b'others'
    results.take(b, b / HOME, [33])  # and the same command goes on with the first


def test_what_is_to_be_replaced_counts_on_no_machine_and_goes_once_the_new_one_is_there(machines):
    a = machines.on('a')
    old = stores.result(a / HOME).read_bytes()
    stores.result(a / HOME, 34)
    stores.result(a / HOME / 'folds' / '1_of_2')
    results.take(a, a / HOME, [33, 34])
    b = machines.on('b')
    results.bring(b)
    assert replaced.set_aside(b, [b / HOME], [33]) == 2
    for machine in (b, a):
        results.bring(machine)
        assert [p.name for p in machine.rglob('seed*.json')] == ['seed34.json']
    assert machines.store().read(f'{HOME}/seed33.json.replaced') == old
    assert {p.name for p in (b / HOME).glob('*.replaced')} == {'seed33.json.replaced', 'seed33.npz.replaced'}
    mine = stores.result(a / HOME, headline={'value': 0.75}).read_bytes()
    stores.result(a / HOME / 'folds' / '1_of_2', headline={'value': 0.75})
    results.take(a, a / HOME, [33])
    results.bring(b)
    assert machines.store().read(f'{HOME}/seed33.json') == (b / HOME / 'seed33.json').read_bytes() == mine
    assert not [n for n in machines.names() if 'replaced' in n] and not [*b.rglob('*.replaced')]


def test_an_old_result_that_is_set_aside_waits_for_the_new_one(machines):
    a = machines.on('a')
    path = stores.result(a / HOME)
    old = path.read_bytes()
    replaced.set_aside(a, [a / HOME], [33])
    assert replaced.set_aside(a, [a / HOME], [33]) == 0, 'a second time there is none'
    replaced.forget(a)
    assert not path.exists() and replaced.aside(path).read_bytes() == old
    stores.result(a / HOME, headline={'value': 0.75})
    replaced.forget(a)
    assert path.exists() and not [*a.rglob('*.replaced')]


def test_a_failed_result_leaves_the_good_one_that_was_set_aside(machines):
    """Here and in the store, at the next overwriting too, so that one can go back."""
    a, store = machines.on('a'), machines.store()
    path = stores.result(a / HOME)
    path.with_suffix('.safetensors').write_bytes(b'weights')
    good, beside = path.read_bytes(), [f'{HOME}/seed33.npz', f'{HOME}/seed33.safetensors']
    results.take(a, a / HOME, [33])
    for _ in range(2):
        replaced.set_aside(a, [a / HOME], [33])
        assert not path.exists() and not path.with_suffix('.npz').exists()
        stores.result(a / HOME, status='failed', predictions_sha256=None).with_suffix('.npz').unlink()
        replaced.forget(a)
        results.take(a, a / HOME, [33])
        assert json.loads(store.read(f'{HOME}/seed33.json'))['status'] == 'failed'
        assert replaced.aside(path).read_bytes() == store.read(f'{HOME}/seed33.json.replaced') == good
        assert replaced.aside(path.with_suffix('.npz')).read_bytes() == b'predictions'
        assert [store.read(name) for name in beside] == [b'predictions', b'weights']
    stores.result(a / HOME)
    replaced.forget(a)
    results.take(a, a / HOME, [33])
    assert not [n for n in machines.names() if 'replaced' in n] and not [*a.rglob('*.replaced')]
    assert store.read(beside[1]) is None


def test_a_part_that_goes_while_a_result_is_set_aside_stops_nothing(machines, monkeypatch):
    a = machines.on('a')
    path = stores.result(a / HOME)
    replace = replaced.os.replace

    def first(source, target):
        replace(source, target)  # by another process
        replace(source, target)

    monkeypatch.setattr(replaced.os, 'replace', first)
    assert replaced.set_aside(a, [a / HOME], [33]) == 1
    assert replaced.aside(path).exists() and replaced.aside(path.with_suffix('.npz')).exists()


def test_an_old_result_that_was_never_there_does_not_come_in_the_place_of_one_that_was_set_aside(machines):
    a = machines.on('a')
    stores.result(a / HOME)
    stores.result(a / HOME, 34)
    results.take(a, a / HOME, [33, 34])
    c = machines.on('c')
    old, late = (
        stores.result(c / HOME, headline={'value': 0.25}),
        stores.result(c / HOME, 34, date='2999-01-01T00:00:00Z'),
    )
    kept = old.read_bytes()
    machines.on('a')
    replaced.set_aside(a, [a / HOME], [33, 34])
    machines.on('c')
    results.bring(c, [c / HOME])
    assert not old.exists() and replaced.aside(old).read_bytes() == kept and late.exists()
    results.take(c, c / HOME, [33, 34])
    machines.on('a')
    new = stores.result(a / HOME, date='2999-01-01T00:00:00Z').read_bytes()
    results.take(a, a / HOME, [33])
    assert machines.store().read(f'{HOME}/seed33.json') == new


def test_what_lies_beside_goes_after_the_json_is_ours(machines, monkeypatch):
    """Until then another machine may be the one that wrote it."""
    a, store = machines.on('a'), machines.store()
    path, theirs = stores.result(a / HOME), stores.result(machines.on('b') / HOME, weights='theirs')
    write_absent = store.write_absent
    machines.on('a')

    def second(name, content):
        write_absent(name, theirs.read_bytes())
        return write_absent(name, content)

    store.write(f'{HOME}/seed33.safetensors', b'weights of the other')
    with monkeypatch.context() as change, pytest.raises(RequestError):
        change.setattr(store, 'write_absent', second)
        results.take(a, a / HOME, [33])
    assert store.read(f'{HOME}/seed33.safetensors') == b'weights of the other'
    assert path.read_bytes() == theirs.read_bytes()


def test_saves_that_are_not_to_be_gone_on_from_go_from_the_store_too(machines):
    a = machines.on('a')
    names = [f'checkpoints/{key}/seed{seed}/1/x' for key in ('key', 'other') for seed in (3, 33)]
    for name in names:
        (a / name).parent.mkdir(parents=True)
        (a / name).write_bytes(b'save')
        machines.store().write(name, a / name)
    checkpoints.forget(a, ['key'], [3])
    assert machines.names('checkpoints') == names[1:] and [(a / n).exists() for n in names] == [False, True, True, True]


def test_weights_of_an_earlier_result_do_not_stay_in_the_store(machines):
    a = machines.on('a')
    weights = stores.result(a / HOME, status='failed').with_suffix('.safetensors')
    weights.write_bytes(b'old')
    results.take(a, a / HOME, [33])
    assert machines.store().read(f'{HOME}/seed33.safetensors') == b'old'
    weights.unlink()  # as --keep_weights=no does
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    assert machines.names(HOME) == [f'{HOME}/seed33.json', f'{HOME}/seed33.npz']


COUNTS = {  # what is there, ours -> which one stays
    'it failed': ({'status': 'failed'}, {}, 'ours'),
    'it is of other prepared data': ({'prepared_hash': 'old'}, {}, 'ours'),
    'ours failed': ({}, {'status': 'failed', 'headline': {'value': None}}, 'theirs'),
    'both failed': ({'status': 'failed'}, {'status': 'failed'}, 'ours'),
}


@pytest.mark.parametrize('why', COUNTS)
def test_one_that_does_not_count_is_replaced(why, machines):
    theirs, ours, stays = COUNTS[why]
    a = machines.on('a')
    stores.result(a / HOME, **theirs)
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    stores.result(b / HOME, timings=2, **ours)
    results.take(b, b / HOME, [33])
    found = json.loads(machines.store().read(f'{HOME}/seed33.json'))
    assert ('timings' in found) == (stays == 'ours')


@pytest.mark.parametrize('damage', ['npz', 'json'])
def test_a_damaged_one_is_replaced(damage, machines):
    a = machines.on('a')
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    machines.store().write(f'{HOME}/seed33.{damage}', b'{"half')
    b = machines.on('b')
    mine = stores.result(b / HOME, timings=2).read_bytes()
    results.take(b, b / HOME, [33])
    assert machines.store().read(f'{HOME}/seed33.json') == mine
    assert machines.store().read(f'{HOME}/seed33.npz') == b'predictions'


def test_predictions_that_another_wrote_meanwhile_are_written_again(machines, monkeypatch):
    a, store = machines.on('a'), machines.store()
    stores.result(a / HOME)
    write_absent = store.write_absent

    def slowly(name, content):
        store.write(name.replace('.json', '.npz'), b'of another machine')
        return write_absent(name, content)

    monkeypatch.setattr(store, 'write_absent', slowly)
    results.take(a, a / HOME, [33])
    assert store.read(f'{HOME}/seed33.npz') == b'predictions'


@pytest.mark.parametrize('fields', [{'headline': {'value': 0.625}}, {'prepared_hash': 'old'}], ids=('score', 'data'))
def test_a_result_that_was_never_there_is_compared_before_one_takes_its_place(fields, machines, capsys):
    a = machines.on('a')
    first = stores.result(a / HOME).read_bytes()
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    path = stores.result(b / HOME, **fields)
    mine = path.read_bytes()
    other = stores.result(b / HOME, 34).read_bytes()
    results.bring(b, [b / HOME])
    said = capsys.readouterr().err
    assert ('headline: 0.5 there, 0.625 here' in said) != ('prepared_hash: "p" there, "old" here' in said)
    kept = b / 'unequal' / HOME / 'seed33.json'
    assert f'{machines.url}/{HOME}/seed33.json' in said and f'ours is kept as {kept}' in said
    assert kept.read_bytes() == mine
    assert path.read_bytes() == machines.store().read(f'{HOME}/seed33.json') == first
    assert (b / HOME / 'seed34.json').read_bytes() == other
    results.bring(b, [b / HOME])
    assert capsys.readouterr().err == ''


def test_a_result_that_could_not_be_compared_stays(machines, monkeypatch):
    a = machines.on('a')
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    path = stores.result(b / HOME, headline={'value': 0.625})
    mine = path.read_bytes()

    def broken(name):
        raise RequestError('the store is down')

    monkeypatch.setattr(machines.store(), 'read', broken)
    with pytest.raises(RequestError, match='the store is down'):
        results.bring(b, [b / HOME])
    assert path.read_bytes() == mine


def test_one_that_is_damaged_here_is_brought(machines):
    a = machines.on('a')
    first = stores.result(a / HOME).read_bytes()
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    stores.result(b / HOME).write_bytes(b'{"half')
    results.bring(b, [b / HOME])
    assert (b / HOME / 'seed33.json').read_bytes() == first and not (b / 'unequal').exists()


@pytest.mark.parametrize('kept', [True, False])
def test_weights_of_another_result_do_not_stay(kept, machines):
    a = machines.on('a')
    if kept:
        stores.result(a / HOME).with_suffix('.safetensors').write_bytes(b'theirs')
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    weights = stores.result(b / HOME, headline={'value': 0.625}).with_suffix('.safetensors')
    weights.write_bytes(b'ours')
    with pytest.raises(RequestError, match='not equal'):
        results.take(b, b / HOME, [33])
    assert (weights.read_bytes() if weights.exists() else b'') == (b'theirs' if kept else b'')
    assert (b / 'unequal' / HOME / 'seed33.safetensors').read_bytes() == b'ours'


def test_one_that_is_not_equal_keeps_no_other_seed_here(machines):
    a = machines.on('a')
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    for seed in (33, 34):
        stores.result(b / HOME, seed, headline={'value': 0.625})
    with pytest.raises(RequestError, match='not equal'):
        results.take(b, b / HOME, [33, 34])
    assert f'{HOME}/seed34.json' in machines.names()


def test_a_result_that_was_removed_from_the_store_is_not_put_back(machines):
    a = machines.on('a')
    path = stores.result(a / HOME)
    mine = stores.result(a / HOME, 34)
    results.take(a, a / HOME, [33])
    machines.store().remove([f'{HOME}/seed33.{s}' for s in ('json', 'npz')])
    results.take(a, a / HOME, [33])
    assert machines.names() == ['.written_once']
    results.bring(a)
    assert mine.exists() and not path.exists() and not path.with_suffix('.npz').exists()


def test_predictions_of_the_same_size_and_second_are_seen_to_be_others(machines, monkeypatch):
    a, store = machines.on('a'), machines.store()
    stores.result(a / HOME)
    write_absent = store.write_absent
    monkeypatch.setattr(results, '_beside', lambda *_: {})

    def slowly(name, content):
        store.write(name.replace('.json', '.npz'), b'PREDICTIONS')
        return write_absent(name, content)

    monkeypatch.setattr(store, 'write_absent', slowly)
    results.take(a, a / HOME, [33])
    assert store.read(f'{HOME}/seed33.npz') == b'predictions'


def test_a_result_that_won_is_waited_for(machines, monkeypatch):
    a, store = machines.on('a'), machines.store()
    first = stores.result(a / HOME).read_bytes()
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    stores.result(b / HOME, npz=b'others')
    store.write(f'{HOME}/seed33.npz', b'others')  # ours came last
    monkeypatch.setattr(results.time, 'sleep', lambda s: store.write(f'{HOME}/seed33.npz', b'predictions'))
    with pytest.raises(RequestError, match='not equal'):
        results.take(b, b / HOME, [33])
    assert store.read(f'{HOME}/seed33.json') == first


def test_a_result_whose_machine_ended_is_replaced(machines, monkeypatch):
    a, store, waited = machines.on('a'), machines.store(), []
    stores.result(a / HOME)
    results.take(a, a / HOME, [33])
    b = machines.on('b')
    mine = stores.result(b / HOME, npz=b'others').read_bytes()
    store.write(f'{HOME}/seed33.npz', b'others')
    monkeypatch.setattr(results.time, 'sleep', waited.append)
    results.take(b, b / HOME, [33])
    assert store.read(f'{HOME}/seed33.json') == mine and len(waited) == len(results.PAUSES)


@pytest.mark.slow
def test_a_seed_that_is_not_equal_keeps_no_other_from_its_training(machines, monkeypatch):
    """Through the command, without a server."""
    import dataclasses

    from jbench import run
    from jbench.plan import select

    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)
    store, a = machines.store(), machines.on('a')
    write_absent, met = store.write_absent, []

    def taken(name, content):
        if name.endswith('seed33.json') and not met:
            met.append(name)
            other = json.dumps({**json.loads(content), 'dummy': 0.25}).encode()
            write_absent(name, other)
        return write_absent(name, content)

    monkeypatch.setattr(store, 'write_absent', taken)
    command = ['--task=p3', '--model=dummy', '--seeds=33,34', f'--workdir={machines.url}']
    assert run.main(command) == 2
    assert [n[-11:] for n in machines.names() if n.endswith('.json') and '/seed' in n] == ['seed33.json', 'seed34.json']
    assert list((a / 'unequal').rglob('seed33.json'))


@pytest.mark.slow
def test_an_interrupted_overwrite_goes_on_with_no_old_result_of_the_store(machines, monkeypatch, capsys):
    """Through the command, without a server: an old result that differs stops nothing either."""
    import dataclasses

    from jbench import run, stages
    from jbench.plan import select
    from jbench.progress import Interrupted

    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)
    store, a = machines.store(), machines.on('a')
    command = ['--task=p3', '--model=dummy', '--seeds=33', f'--workdir={machines.url}']
    assert run.main(command) == 0
    (path,) = a.rglob('seed33.json')
    name, old = path.relative_to(a).as_posix(), path.read_bytes()

    def stopped(*args):
        raise Interrupted

    with monkeypatch.context() as change:
        change.setattr(stages, 'train', stopped)
        assert run.main([*command, '--if_exists=overwrite']) == 75
    assert store.read(name) is None and store.read(f'{name}.replaced') == old
    b = machines.on('b')
    other = json.dumps({**json.loads(old), 'dummy': 0.25}).encode()  # never in the store
    assert run.main([*command, '--if_exists=resume']) == 0
    new = (b / name).read_bytes()
    assert store.read(name) == new != old and store.read(f'{name}.replaced') is None
    machines.on('a')
    path.write_bytes(other)
    path.with_suffix('.npz').write_bytes(store.read(name.replace('.json', '.npz')))
    capsys.readouterr()
    assert run.main(command) == 0
    said = capsys.readouterr().err
    assert 'another run wrote it first' in said and '0.25 here' in said and 'finished before' in said
    assert path.read_bytes() == new and not [*a.rglob('*.replaced')]


@pytest.mark.slow
def test_folds_keep_no_old_checkpoint_where_the_shards_of_their_set_are_not_here(machines, monkeypatch):
    import dataclasses

    from jbench import run, stages
    from jbench.plan import select
    from jbench.progress import Interrupted

    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)
    a = machines.on('a')
    argv = ['--task=p3', '--model=dummy', '--seeds=33', '--set=split.folds=2', f'--workdir={machines.url}']
    assert run.main(argv) == 0
    keys = [json.loads(p.read_text())['key'] for p in (a / 'results').rglob('folds/*/seed33.json')]
    save = a / 'save'
    save.write_bytes(b'save')
    for key in keys:
        machines.store().write(f'checkpoints/{key}/seed33/1/x', save)
    machines.on('b')

    def stopped(*args):
        raise Interrupted

    monkeypatch.setattr(stages, 'train', stopped)
    assert run.main([*argv, '--if_exists=overwrite']) == 75
    assert len(keys) == 2 and machines.names('checkpoints') == []
