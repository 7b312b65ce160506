"""Prepared sets in a store: whole or absent, one make of each; the room that their copies take; checkpoints;
recordings."""

from __future__ import annotations

import contextlib
import os
import shutil
import types
from pathlib import Path

import pytest
import stores

from jbench import files
from jbench.data.prepare import build_set, raw_files
from jbench.progress import Interrupted
from jbench.spec.errors import RequestError
from jbench.stores import cache, checkpoints, recordings, sets

SET = 'prepared/Tiny/spec-fingerprint'


@pytest.fixture
def machines(tmp_path):
    with stores.in_memory(tmp_path) as found:
        yield found


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_a_set_is_found_and_brought_by_another_machine(machines):
    a = machines.on('a')
    made = stores.prepared(a / SET)
    (made / 'stimuli.npz').write_bytes(b'vectors')
    assert not sets.stored(a, made)
    sets.take(a, made)
    b = machines.on('b')
    sets.look(b, 'Tiny')
    assert [p.name for p in (b / SET).iterdir()] == ['manifest.json']
    assert sets.stored(b, b / SET)
    assert sorted(p.name for p in (b / SET).iterdir()) == ['index.npz', 'manifest.json', 'stimuli.npz']
    with sets.here(b, b / SET):
        assert contents(b / SET) == contents(made)
        assert build_set.is_ready(b / SET)


def test_a_set_without_its_manifest_is_none(machines):
    a = machines.on('a')
    sets.take(a, stores.prepared(a / SET))
    machines.store().remove([f'{SET}/manifest.json'])
    b = machines.on('b')
    sets.look(b, 'Tiny')
    assert not sets.stored(b, b / SET) and not (b / SET).exists()


def test_a_set_that_lacks_a_shard_is_none_and_is_written_again(machines):
    a = machines.on('a')
    made = stores.prepared(a / SET)
    sets.take(a, made)
    shard = next(n for n in machines.names() if n.endswith('-00001'))
    machines.store().remove([shard])
    assert not sets.stored(a, made)
    sets.take(a, made)
    assert shard in machines.names() and sets.stored(a, made)


def test_a_set_as_it_lies_in_a_work_folder_serves(machines, tmp_path):
    made = stores.prepared(tmp_path / 'work' / SET)
    for name, content in contents(made).items():
        machines.store().write(f'{SET}/{name}', content)
    b = machines.on('b')
    assert sets.stored(b, b / SET)
    with sets.here(b, b / SET):
        assert contents(b / SET) == contents(made)


def test_of_two_makes_of_a_set_the_first_counts_and_shards_are_not_mixed(machines):
    a = machines.on('a')
    first = stores.prepared(a / SET, make=b'a')
    b = machines.on('b')
    second = stores.prepared(b / SET, make=b'b')
    sets.take(a, first)
    sets.take(b, second)
    with sets.here(b, second):
        assert contents(second) == contents(first)
    c = machines.on('c')
    assert sets.stored(c, c / SET)
    with sets.here(c, c / SET):
        assert contents(c / SET) == contents(first)


@pytest.mark.parametrize('broken', [True, False])
def test_a_set_that_came_while_ours_was_copied_stays(broken, machines, monkeypatch):
    a, store, theirs = machines.on('a'), machines.store(), []
    ours = stores.prepared(a / SET, make=b'a')
    if broken:
        store.write(f'{SET}/manifest.json', b'{"half')
    write = store.write

    def slowly(name, source):
        write(name, source)
        if not theirs:
            theirs.append(machines.on('b') / SET)
            stores.prepared(theirs[0], make=b'b')
            sets.take(machines.on('b'), theirs[0])
            machines.on('a')

    monkeypatch.setattr(store, 'write', slowly)
    monkeypatch.setattr(sets, 'at_once', lambda calls, report=None: [call() for call in calls])
    sets.take(a, ours)
    assert store.read(f'{SET}/manifest.json') == contents(theirs[0])['manifest.json']
    assert contents(ours)['manifest.json'] == contents(theirs[0])['manifest.json']


def test_a_set_that_is_read_is_not_replaced_by_another_make(machines):
    a = machines.on('a')
    sets.take(a, stores.prepared(a / SET, make=b'a'))
    b = machines.on('b')
    mine = stores.prepared(b / SET, make=b'b')
    before = contents(mine)
    with sets.here(b, mine), pytest.raises(RequestError, match='another make of this set, and a process here reads'):
        sets.stored(b, mine)
    assert contents(mine) == before
    assert sets.stored(b, mine) and contents(mine)['manifest.json'] == contents(a / SET)['manifest.json']


def test_a_shard_of_another_digest_is_refused(machines, monkeypatch):
    monkeypatch.setattr('jbench.stores.remote.WAITS', (0.0,))
    a = machines.on('a')
    sets.take(a, stores.prepared(a / SET))
    shard = next(n for n in machines.names() if n.endswith('-00001'))
    machines.store().write(shard, b'x' * 1000)
    b = machines.on('b')
    assert sets.stored(b, b / SET)
    damaged = f'{shard}: expected SHA-256 .* found .*; what lies there is damaged'
    with pytest.raises(RequestError, match=damaged), sets.here(b, b / SET):
        raise AssertionError
    assert not list((b / SET).glob('*-00001')) and not list((b / SET).glob('.*'))


# ---- the room of copies ----


@pytest.fixture
def three(machines, monkeypatch):
    """Three sets of 3,000 bytes in the store, room for two on machine b; the copy there, and their folders."""
    a = machines.on('a')
    for name in ('one', 'two', 'three'):
        sets.take(a, stores.prepared(a / 'prepared' / name / 'x-y'))
    b = machines.on('b')
    monkeypatch.setenv('JBENCH_CACHE_SIZE', '7KB')
    folders = [b / 'prepared' / name / 'x-y' for name in ('one', 'two', 'three')]
    assert all(sets.stored(b, f) for f in folders)
    return b, folders


def shards(folder: Path) -> int:
    return len(list(folder.glob('*array_record*')))


def use(workdir: Path, folder: Path, when: int) -> None:
    with sets.here(workdir, folder):
        assert shards(folder) == 3
    os.utime(folder.with_name(f'.{folder.name}.use'), (when, when))


def test_the_set_that_was_used_longest_ago_goes_first(three):
    b, (one, two, last) = three
    use(b, one, 1)
    use(b, two, 2)
    use(b, one, 3)
    use(b, last, 4)
    assert [shards(f) for f in (one, two, last)] == [3, 0, 3]
    assert (two / 'manifest.json').exists()  # a plan still knows it
    use(b, two, 5)
    assert [shards(f) for f in (one, two, last)] == [0, 3, 3]


def test_a_set_in_use_never_goes(three):
    b, (one, two, last) = three
    with sets.here(b, one):
        use(b, two, 2)
        use(b, last, 3)
        assert [shards(f) for f in (one, two, last)] == [3, 0, 3]
        with sets.here(b, last), pytest.raises(RequestError, match=r'3000 bytes.*may hold 7000.*JBENCH_CACHE_SIZE='):
            use(b, two, 4)


def test_what_another_process_brought_meanwhile_takes_no_room_again(three, machines, monkeypatch):
    """Of two jobs that begin together with a set that fits once."""
    b, (one, two, _) = three
    made = machines.on('a') / one.relative_to(b)
    machines.on('b')
    use(b, two, 1)

    @contextlib.contextmanager
    def after_another(path, waiting):
        with files.locked(path, waiting):
            for shard in made.glob('*array_record*'):
                shutil.copy(shard, one)
            yield

    monkeypatch.setattr(cache, 'files', types.SimpleNamespace(explained=files.explained, locked=after_another))
    with sets.here(b, one):
        assert [shards(one), shards(two)] == [3, 3]


def test_a_set_that_is_not_in_the_store_never_goes(three):
    b, (one, two, _) = three
    only = stores.prepared(b / 'prepared' / 'mine' / 'x-y', size=10**6)
    use(b, one, 1)
    use(b, two, 2)
    assert shards(only) == 3


@pytest.mark.parametrize('text', ['much', '1.2.3GB', '-1GB'])
def test_a_size_that_is_none_is_refused(text, monkeypatch):
    monkeypatch.setenv('JBENCH_CACHE_SIZE', text)
    with pytest.raises(RequestError, match='expected a size, as 50GB'):
        cache.limit()


# ---- checkpoints ----


def save(workdir: Path, number: int, content: bytes, seed: str = 'seed33') -> Path:
    folder = workdir / 'checkpoints' / 'key' / seed / str(number)
    (folder / 'state').mkdir(parents=True)
    (folder / 'state' / 'arrays').write_bytes(content)
    (folder / 'sha256.json').write_bytes(b'{}')
    return folder


def test_an_interrupted_seed_goes_on_elsewhere_from_its_last_save(machines):
    a = machines.on('a')
    with pytest.raises(Interrupted), checkpoints.shared(a, 'key', fresh=False):
        save(a, 3, b'three')
        save(a, 7, b'seven')
        (a / 'checkpoints' / 'key' / 'seed33' / '9').mkdir()  # that did not end
        raise Interrupted
    b = machines.on('b')
    with pytest.raises(Interrupted), checkpoints.shared(b, 'key', fresh=False):
        assert (b / 'checkpoints/key/seed33/7/state/arrays').read_bytes() == b'seven'
        assert not (b / 'checkpoints/key/seed33/3').exists()
        save(b, 12, b'twelve')
        raise Interrupted
    assert machines.names() == [f'checkpoints/key/seed33/12/{n}' for n in ('sha256.json', 'state/arrays')]
    a = machines.on('a')
    with checkpoints.shared(a, 'key', fresh=False):
        assert (a / 'checkpoints/key/seed33/12/state/arrays').read_bytes() == b'twelve'
    assert machines.names() == []


def test_nothing_goes_on_where_that_was_not_asked_for(machines):
    a = machines.on('a')
    with pytest.raises(Interrupted), checkpoints.shared(a, 'key', fresh=False):
        save(a, 3, b'three')
        raise Interrupted
    b = machines.on('b')
    with checkpoints.shared(b, 'key', fresh=True):
        assert not (b / 'checkpoints').exists()


def test_a_store_that_fails_costs_no_checkpoint(machines, monkeypatch, capsys):
    a = machines.on('a')

    def broken(name, source):
        raise RequestError('the store is down')

    monkeypatch.setattr(machines.store(), 'write', broken)
    with pytest.raises(Interrupted), checkpoints.shared(a, 'key', fresh=False):
        kept = save(a, 3, b'three')
        raise Interrupted
    assert (kept / 'sha256.json').exists()
    assert 'the store is down; the checkpoint stays in' in capsys.readouterr().err


# ---- recordings ----


def test_a_plan_needs_names_and_tables_and_a_preparation_the_rest(machines):
    assert recordings.TABLES == raw_files.TABLES and recordings.SMALL == raw_files.SMALL
    large, table = b'signal' * 10**6, b'onset\tduration\n' * 10**5
    store = machines.store()
    for name, content in {'a/s1.edf': large, 'a/s1.tsv': table, 'a/small.edf': b'little', 'b/s1.edf': large}.items():
        store.write(f'D/{name}', content)
    a = machines.on('a')
    recordings.look(a, 'D')
    assert (a / 'D/a/s1.tsv').read_bytes() == table and (a / 'D/a/small.edf').read_bytes() == b'little'
    stand_in = (a / 'D/a/s1.edf').stat()
    assert stand_in.st_size == len(large) and stand_in.st_blocks * 512 < 10**6 and not stand_in.st_mode & 0o444
    recordings.fill(a, 'D/a')
    assert (a / 'D/a/s1.edf').read_bytes() == large and (a / 'D/b/s1.edf').stat().st_blocks * 512 < 10**6


def test_recordings_that_were_removed_from_the_store_go_here(machines, monkeypatch):
    monkeypatch.setattr(recordings, 'SMALL', 10)
    a, store = machines.on('a'), machines.store()
    for name in ('s1.ds/large.meg4', 's1.ds/small', 's2.ds/large.meg4'):
        store.write(f'D/{name}', b'x' * (100 if 'large' in name else 1))
    recordings.look(a, 'D')
    (a / 'D' / 'mine').write_bytes(b'put here by hand')
    store.remove(['D/s1.ds/large.meg4', 'D/s1.ds/small'])
    recordings.look.cache_clear()
    recordings.look(a, 'D')
    assert sorted(p.name for p in (a / 'D').iterdir()) == ['mine', 's2.ds']


def test_a_full_disk_is_told_at_once(machines, monkeypatch):
    import errno

    a, store, tries = machines.on('a'), machines.store(), []
    store.write('D/x.tsv', b'x')

    def full(there, here):
        tries.append(there)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store._fs, 'get_file', full)
    with pytest.raises(RequestError, match=r'cannot write .*x\.tsv \(1 bytes needed\): No space left.*free space'):
        recordings.fill(a, 'D')
    assert len(tries) == 1
