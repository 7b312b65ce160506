"""Files are whole or absent; damage is found and named."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from jbench import files
from jbench.spec.errors import RequestError


def _python(code: str, *args: str | Path) -> subprocess.Popen[str]:
    """A fresh process that runs `code`."""
    root = str(ROOT)
    env = {**os.environ, 'PYTHONPATH': root}
    command = [sys.executable, '-c', textwrap.dedent(code), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def test_write_replaces_and_makes_folders(tmp_path: Path) -> None:
    target = tmp_path / 'a' / 'b' / 'x.json'
    assert files.write_atomic(target, b'one') == target
    files.write_atomic(target, b'two')
    assert target.read_bytes() == b'two'
    assert os.listdir(target.parent) == ['x.json']
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_write_over_the_file_size_limit(tmp_path: Path) -> None:
    target = tmp_path / 'big.npz'
    target.write_bytes(b'old')
    code = """
        import resource, sys
        from jbench import files
        from jbench.spec.errors import RequestError
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            files.write_atomic(sys.argv[1], b'x' * 100000)
        except RequestError as error:
            print(error)
            sys.exit(2)
    """
    process = _python(code, target)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert str(target) in out
    assert '100000 bytes' in out
    assert 'free space' in out
    assert 'choose another folder' in out
    assert os.listdir(tmp_path) == ['big.npz']  # no temp file
    assert target.read_bytes() == b'old'


@pytest.mark.parametrize('call', ['open', 'fsync', 'replace', 'mkdir'])
def test_every_failing_call_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    target = tmp_path / 'x'
    target.write_bytes(b'old')

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patch:
        if call == 'open':
            patch.setattr('builtins.open', refuse)
        elif call == 'mkdir':
            patch.setattr(Path, 'mkdir', refuse)
        else:
            patch.setattr(os, call, refuse)
        with pytest.raises(RequestError, match='No space left') as caught:
            files.write_atomic(target, b'new content')
    assert str(target) in str(caught.value)
    assert '11 bytes' in str(caught.value)
    assert os.listdir(tmp_path) == ['x']
    assert target.read_bytes() == b'old'


def test_no_permission_and_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / 'file').write_bytes(b'')
    with pytest.raises(RequestError, match='choose another folder'):
        files.write_atomic(tmp_path / 'file' / 'x', b'1')
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / 'closed').mkdir(mode=0o500)
        with pytest.raises(RequestError, match='right to write'):
            files.write_atomic(tmp_path / 'closed' / 'x', b'1')


def test_killed_while_writing_gives_old_or_new(tmp_path: Path) -> None:
    """A reader never sees a part, and the writer may die at any time."""
    target = tmp_path / 'x.json'
    files.write_atomic(target, b'[0]')
    code = """
        import sys
        from jbench import files
        print('ready', flush=True)
        for i in range(1, 10**9):
            files.write_atomic(sys.argv[1], b'[' + b','.join([str(i).encode()] * 20000) + b']')
    """
    draw = random.Random(0)
    for _ in range(4):
        process = _python(code, target)
        assert process.stdout is not None
        assert process.stdout.readline() == 'ready\n'
        end = time.monotonic() + draw.uniform(0.02, 0.2)
        while time.monotonic() < end:
            assert len(set(files.read_json(target))) == 1
        process.kill()
        process.communicate(timeout=60)
        assert len(set(files.read_json(target))) == 1


DAMAGE = (b'', b'{"a": 1', b'{"a": 1}}', b'{"a": NaN}', b'{"a": 1e999}', b'\xff{}', b'[' * 10**6)


@pytest.mark.parametrize('damage', DAMAGE, ids=range(len(DAMAGE)))
def test_damaged_json_is_named(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / 'x.json'
    path.write_bytes(damage)
    with pytest.raises(RequestError) as caught:
        files.read_json(path)
    assert str(path) in str(caught.value)
    assert 'remove it' in str(caught.value)


def test_missing_json_is_not_damage(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.read_json(tmp_path / 'x.json')
    with pytest.raises(RequestError, match='cannot read'):
        files.read_json(tmp_path)


def test_sha256_file(tmp_path: Path) -> None:
    (tmp_path / 'x').write_bytes(b'abc')
    assert files.sha256_file(tmp_path / 'x') == 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'


def test_npz_bytes_are_a_function_of_the_arrays(tmp_path: Path) -> None:
    arrays = {'b': np.arange(6.0, dtype='<f4').reshape(2, 3), 'a': np.array(['s1', 'ß'])}
    blob = files.npz_bytes(arrays)
    assert blob == files.npz_bytes(dict(reversed(arrays.items())))
    assert blob == files.npz_bytes({**arrays, 'b': np.asfortranarray(arrays['b'])})
    (tmp_path / 'x.npz').write_bytes(blob)
    back = files.read_npz(tmp_path / 'x.npz')
    assert set(back) == {'a', 'b'}
    assert all(np.array_equal(back[k], arrays[k]) for k in back)


def test_npz_never_unpickles(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'[Oo]bject'):
        files.npz_bytes({'a': np.array([object()])})
    np.savez(tmp_path / 'x.npz', a=np.array([{'b': 1}], dtype=object))
    with pytest.raises(RequestError, match=r'x\.npz'):
        files.read_npz(tmp_path / 'x.npz')


def test_npz_damage_never_escapes_as_another_error(tmp_path: Path) -> None:
    """Whatever the damage: RequestError with the name, or arrays (whose digest then tells)."""
    blob = files.npz_bytes({'id': np.arange(50), 'outputs': np.ones((50, 3), 'f4'), 'subject': np.array(['a'] * 50)})
    path, draw = tmp_path / 'x.npz', random.Random(0)
    cuts = [blob[: draw.randrange(len(blob))] for _ in range(60)]
    flips = []
    for _ in range(300):
        bad = bytearray(blob)
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        flips.append(bytes(bad))
    found = 0
    for bad in [b'', b'not a zip', *cuts, *flips]:
        path.write_bytes(bad)
        try:
            files.read_npz(path)
        except RequestError as error:
            found += 'x.npz' in str(error)
    assert found > 300


LOCK = """
    import sys, time
    from jbench import files
    print('ready', flush=True)
    with files.locked(sys.argv[1]):
        for _ in range(int(sys.argv[3])):
            value = int(open(sys.argv[2]).read())
            time.sleep(0.002)
            open(sys.argv[2], 'w').write(str(value + 1))
"""


def test_lock_keeps_processes_apart(tmp_path: Path) -> None:
    count = tmp_path / 'count'
    count.write_text('0')
    processes = [_python(LOCK, tmp_path / 'deep' / 'lock', count, '50') for _ in range(3)]
    for process in processes:
        assert process.wait(timeout=60) == 0
        process.communicate()
    assert count.read_text() == '150'


def test_lock_waits_and_dies_with_its_holder(tmp_path: Path) -> None:
    code = """
        import sys, time
        from jbench import files
        with files.locked(sys.argv[1]):
            print('held', flush=True)
            time.sleep(600)
    """
    holder = _python(code, tmp_path / 'lock')
    assert holder.stdout is not None
    assert holder.stdout.readline() == 'held\n'
    (tmp_path / 'count').write_text('0')
    waiter = _python(LOCK, tmp_path / 'lock', tmp_path / 'count', '1')
    assert waiter.stdout is not None
    assert waiter.stdout.readline() == 'ready\n'
    time.sleep(0.3)
    assert waiter.poll() is None
    assert (tmp_path / 'count').read_text() == '0'
    holder.kill()
    holder.communicate(timeout=60)
    assert waiter.wait(timeout=60) == 0
    assert (tmp_path / 'count').read_text() == '1'
    waiter.communicate()


def test_link_or_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / 'a', tmp_path / 'deep' / 'b'
    source.write_bytes(b'data')
    files.link_or_copy(source, target)
    assert target.samefile(source)
    files.link_or_copy(source, target)
    assert target.read_bytes() == b'data'

    def other_disk(*args: object, **kwargs: object) -> None:
        raise OSError(18, 'Invalid cross-device link')

    monkeypatch.setattr(os, 'link', other_disk)
    source.unlink()
    source.write_bytes(b'new')
    files.link_or_copy(source, target)
    assert target.read_bytes() == b'new'
    assert not target.samefile(source)
    assert os.listdir(target.parent) == ['b']
    with pytest.raises(FileNotFoundError):
        files.link_or_copy(tmp_path / 'none', target)


def test_write_absent_takes_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.write_absent(tmp_path / 'new' / 'a', b'one') is True
    assert files.write_absent(tmp_path / 'new' / 'a', b'two') is False

    def refused(*names: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, 'link', refused)  # a disk without links
    assert files.write_absent(tmp_path / 'new' / 'b', b'three') is True
    assert files.write_absent(tmp_path / 'new' / 'b', b'four') is False
    found = {p.name: p.read_bytes() for p in (tmp_path / 'new').iterdir()}
    assert found == {'a': b'one', 'b': b'three'}


def test_fs_imports_nothing_heavy() -> None:
    process = _python("import sys, jbench.files; print(sorted({'numpy', 'jax', 'mne'} & set(sys.modules)))")
    out, err = process.communicate(timeout=60)
    assert out.strip() == '[]', err


@pytest.mark.parametrize('name', ['..', '../..', '/etc', '', '.', 'a/../b', '\x00', 'x' * 400, '.hidden'])
def test_a_slug_is_one_component_that_leads_nowhere(name):
    slug = files.slug(name)
    assert '/' not in slug and slug[0] not in '.\0' and len(slug) <= files.LONGEST
    assert files.slug(slug) == slug and files.slug('p3@2') == 'p3@2'
