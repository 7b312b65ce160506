"""Preparation stopped, killed, doubled, out of disk or memory; prepared sets damaged afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import make_prepared_fixture
import numpy as np
import pytest
import tiny
from preparing import KALUNGA, ROOT, Said, content, prepare, python, task_of

from jbench import files
from jbench.data.prepare import assemble, build_set, workers
from jbench.plan import select
from jbench.spec.errors import RequestError

RUN = """
import sys, json
print('main', flush=True)
import jax
from pathlib import Path
sys.path.insert(0, {tests!r})
import preparing
def say(what, done, total):
    print('done', done, flush=True)
folder = preparing.prepare(preparing.KALUNGA, Path(sys.argv[1]), Path(sys.argv[2]), say)
print('folder', folder)
"""


def running(small: Path, work: Path, folder: Path, **options: object) -> subprocess.Popen[str]:
    """A process that prepares, from a program that imports jax and has no main guard."""
    program = folder / 'program.py'
    program.write_text(RUN.format(tests=str(ROOT / 'tests' / 'helpers')).replace('import jax\n', 'import jax.numpy\n'))
    return subprocess.Popen(
        [sys.executable, str(program), str(small), str(work)],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=folder,
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        **options,
    )  # type: ignore[call-overload]


def group(session: int) -> list[str]:
    """Command lines of the living processes of a session."""
    found = []
    for stat in Path('/proc').glob('[0-9]*/stat'):
        try:
            fields = stat.read_text().rpartition(')')[2].split()
            if int(fields[3]) == session and fields[0] != 'Z':
                found.append((stat.parent / 'cmdline').read_text().replace('\0', ' '))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def until(condition: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


@pytest.mark.skipif(not Path('/proc/self/stat').exists(), reason='reads /proc')
@pytest.mark.slow  # tests/test_interrupt.py stops a whole run
def test_killed_at_any_time_it_leaves_nothing_running_and_the_next_run_completes(
    small: Path, reference: Path, tmp_path: Path
) -> None:
    for seed in range(4):
        run = running(small, tmp_path / 'work', tmp_path)
        assert run.stdout is not None
        while not run.stdout.readline().startswith('done'):
            assert run.poll() is None, run.communicate()
        time.sleep(random.Random(seed).uniform(0, 0.7))
        os.kill(run.pid, signal.SIGKILL)  # the parent alone: its workers must follow
        run.wait()
        assert until(lambda session=run.pid: not group(session), 10), group(run.pid)
        ready = list((tmp_path / 'work').rglob('manifest.json'))
        assert not ready or (seed > 0 and content(ready[0].parent) == content(reference))
    run = running(small, tmp_path / 'work', tmp_path)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert out.count('main') == 1, 'workers import neither the main program nor jax'
    assert err == ''
    folder = Path(out.split('folder ')[1].strip())
    assert content(folder) == content(reference)
    assert not list((tmp_path / 'work').rglob('*.tmp*')) and not list((tmp_path / 'work').rglob('*.parts'))


@pytest.mark.slow
def test_a_part_that_is_damaged_before_the_set_is_whole_is_made_again(tmp_path: Path) -> None:
    task, refs = make_prepared_fixture.task(), [tiny.ref(k) for k in range(2)]
    build_set.prepare(task, tiny.DATASET, tmp_path / 'a-0', refs, lambda *facts: None)

    def stop(what: str, done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_set.prepare(task, tiny.DATASET, tmp_path / 'b-0', refs, stop)
    (part,) = (tmp_path / 'b.parts').glob('00*.array_record')
    whole = part.read_bytes()
    part.write_bytes(whole[:100] + bytes([whole[100] ^ 1]) + whole[101:])
    said: Said = []
    build_set.prepare(task, tiny.DATASET, tmp_path / 'b-0', refs, lambda *facts: said.append(facts))
    assert said[0][1:] == (1, 2) and content(tmp_path / 'b-0') == content(tmp_path / 'a-0')


class Killed(BaseException):
    """Stands for kill -9 between two writes."""


@pytest.mark.slow
def test_stopped_between_any_two_writes_the_set_is_absent_and_then_whole(
    small: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0

    def counted(function: Callable) -> Callable:
        def call(*args: object, **options: object) -> object:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return function(*args, **options)

        return call

    for module, name in (
        (files, 'link_or_copy'),
        (files, 'write_atomic'),
        (assemble, 'write_metadata'),
        (shutil, 'rmtree'),
    ):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    stops = 0
    for k in range(20):
        left = k
        try:
            folder = prepare(KALUNGA, small, tmp_path)
            break
        except Killed:
            stops += 1
            ready = list(tmp_path.rglob('manifest.json'))
            assert not ready or content(ready[0].parent) == content(reference)
    assert stops >= 6 and content(folder) == content(reference)


@pytest.mark.slow
def test_processes_at_once_make_one_set(small: Path, reference: Path, tmp_path: Path) -> None:
    code = RUN.replace('import jax\n', 'sys.stdin.readline()\n').format(tests=str(ROOT / 'tests' / 'helpers'))
    runs = [python(code, small, tmp_path / 'work', stdin=subprocess.PIPE) for _ in range(8)]
    for run in runs:
        assert run.stdout is not None and run.stdout.readline() == 'main\n'
    for run in runs:
        assert run.stdin is not None
        run.stdin.write('go\n')
        run.stdin.flush()
    outs = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0] * 8, outs
    (ready,) = (tmp_path / 'work').rglob('manifest.json')
    assert content(ready.parent) == content(reference)
    assert sum('done 3' in out for out, _ in outs) == 1, 'one works, the others wait'


SOURCE = """
import os, signal, sys, time
import numpy as np
from jbench.data.recording import Recording
def recordings(dataset, root):
    return []
def read(ref):
    if ref.run == 'slow':
        time.sleep(60)
    if ref.run == 'signals':
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        raise ZeroDivisionError(f'still here, jax {"jax" in sys.modules}, threads {os.environ["OMP_NUM_THREADS"]}')
    if ref.run == 'killed':
        os.kill(os.getpid(), signal.SIGKILL)
    if ref.run == 'memory':
        raise MemoryError
    if ref.run == 'extra':
        from jbench.spec.errors import MissingExtraError
        raise MissingExtraError('pandas', 'moabb', 'this dataset')
"""


@pytest.fixture
def odd_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Prepares recordings of a reader that does what its run says."""
    (tmp_path / 'odd_source.py').write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    dataset = dataclasses.replace(select.datasets()[KALUNGA], source='odd_source')

    def go(*runs: str, say: Callable[[str, int, int], None] = lambda *f: None) -> None:
        refs = [
            build_set.RecordingRef(KALUNGA, '01', str(k), run, (str(tmp_path / run),)) for k, run in enumerate(runs)
        ]
        build_set.prepare(task_of(KALUNGA), dataset, tmp_path / 'set-0', refs, say)

    return go


@pytest.mark.slow
def test_a_stop_is_seen_at_once(odd_source: Callable[..., None]) -> None:
    began, calls = time.monotonic(), []

    def stop(*facts: object) -> None:
        calls.append(time.monotonic())
        if len(calls) > 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        odd_source('slow', 'slow', say=stop)
    assert time.monotonic() - began < 15 and max(np.diff(calls[1:])) < 2
    assert until(lambda: not multiprocessing.active_children(), 5)


def test_workers_ignore_signals_and_never_import_jax(odd_source: Callable[..., None]) -> None:
    with pytest.raises(RequestError, match='the reader failed: still here, jax False, threads 1'):
        odd_source('signals')


def test_a_killed_worker_is_told_as_lack_of_memory(odd_source: Callable[..., None]) -> None:
    with pytest.raises(RequestError, match=r'was killed, most likely .* memory ran out; 0 of 2 recordings are'):
        odd_source('killed', 'slow')
    assert until(lambda: not multiprocessing.active_children(), 5)


@pytest.mark.parametrize(
    ('run', 'message'),
    [('memory', '/memory: memory ran out'), ('extra', r"this dataset needs pandas, .* '.\[moabb\]'")],
)
def test_what_is_no_fault_of_a_file_is_told_as_such(odd_source: Callable[..., None], run: str, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        odd_source(run)


@pytest.mark.slow
def test_a_full_disk_names_the_path_and_the_next_run_completes(small: Path, reference: Path, tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    run = running(small, tmp_path / 'work', tmp_path, preexec_fn=limit)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 1
    assert re.search(
        r'RequestError: cannot write \S+_0_0\.array_record \(\d+ bytes .*: File too large; free space', err
    )
    assert not list((tmp_path / 'work').rglob('*.array_record*'))
    assert content(prepare(KALUNGA, small, tmp_path / 'work')) == content(reference)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A new folder that every user may enter, as pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_a_folder_that_cannot_be_written_is_named(small: Path, tmp_path: Path, open_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(RequestError, match=r'cannot write .*file/prepared/Kalunga2016Online/.*Not a directory'):
        prepare(KALUNGA, small, tmp_path / 'file')
    work = open_path / 'work'
    work.mkdir(mode=0o555)
    code = f"""
    import os, sys
    from pathlib import Path
    from jbench.data.prepare import build_set
    from jbench.plan import select
    task, dataset = select.tasks()['ssvep'][-1], select.datasets()['SimulatedSsvep']
    folder, refs = build_set.locate(task, dataset, None, Path({str(work)!r}))
    if os.getuid() == 0:
        os.setuid(65534)
    build_set.prepare(task, dataset, folder, refs, print)
    """
    run = python(code)
    _, err = run.communicate(timeout=60)
    assert re.search(r'cannot write \S+: Permission denied; give this user', err), err


@pytest.mark.parametrize('closed', ['data', f'data/{KALUNGA}', f'data/{KALUNGA}/a', f'data/{KALUNGA}/a/t.tsv'])
def test_what_may_not_be_read_is_named(open_path: Path, closed: str) -> None:
    """Not as a damaged file, nor as a folder without recordings."""
    (folder := open_path / 'data' / KALUNGA / 'a').mkdir(parents=True)
    (folder / 't.tsv').touch()
    code = f"""
    import os, sys
    from pathlib import Path
    from jbench.plan import select
    from jbench.data.prepare.build_set import fingerprint
    from jbench.data.discover import find_recordings
    from jbench.data.recording import RecordingRef
    from jbench.data.sources import kalunga
    from jbench.spec.errors import RequestError
    dataset = select.datasets()[{KALUNGA!r}]
    kalunga.recordings = lambda dataset, root: [
        RecordingRef('K', '1', '0', '0', tuple(str(root / 'a' / name) for name in os.listdir(root / 'a')))
    ]
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        fingerprint(find_recordings(dataset, Path({str(open_path)!r}) / 'data'))
    except RequestError as error:
        sys.exit(str(error))
    """
    (open_path / closed).chmod(0)
    _, err = python(code).communicate(timeout=60)
    (open_path / closed).chmod(0o755)
    assert re.match(rf'{open_path}/data\S*: may not be read; give the user who runs this the right', err), err


@pytest.fixture
def damaged(reference: Path, tmp_path: Path) -> Path:
    """A copy of the prepared set to break."""
    goal = tmp_path / 'prepared' / KALUNGA / reference.name
    return Path(shutil.copytree(reference, goal))


def test_a_flipped_byte_in_any_file_is_found(damaged: Path) -> None:
    build_set.verify(damaged)
    rng = random.Random(3)
    for path in sorted(damaged.iterdir()):
        whole = path.read_bytes()
        for _ in range(50):
            k = rng.randrange(len(whole))
            path.write_bytes(whole[:k] + bytes([whole[k] ^ 1 << rng.randrange(8)]) + whole[k + 1 :])
            if path.name != 'manifest.json' or path.read_text(errors='replace').split() != whole.decode().split():
                with pytest.raises(RequestError, match=f'{re.escape(str(path))}.*damaged.*remove'):
                    build_set.verify(damaged)
        path.write_bytes(whole)
    build_set.verify(damaged)


def test_missing_swapped_and_cut_files_are_found(damaged: Path) -> None:
    shards = sorted(damaged.glob('*.array_record*'))
    a, b = shards[0].read_bytes(), shards[1].read_bytes()
    shards[0].write_bytes(b)
    shards[1].write_bytes(a)
    with pytest.raises(RequestError, match=f'{shards[0].name}: damaged'):
        build_set.verify(damaged)
    shards[0].write_bytes(a)
    shards[1].write_bytes(b)
    (damaged / 'extra.array_record').write_bytes(a)
    build_set.verify(damaged)  # what the manifest does not name is never read
    for n in range(0, len(b), 4096):
        shards[1].write_bytes(b[:n])
        with pytest.raises(RequestError, match=f'{shards[1].name}: damaged'):
            build_set.verify(damaged)
    shards[1].write_bytes(b[:-1])
    assert not build_set.is_ready(damaged)
    with pytest.raises(RequestError, match=f'{shards[1].name}: damaged'):
        build_set.verify(damaged)
    shards[1].unlink()
    with pytest.raises(RequestError, match=f'{shards[1].name}: missing; remove the folder'):
        build_set.verify(damaged)
    (damaged / 'manifest.json').unlink()
    with pytest.raises(RequestError, match=r'not a prepared set \(it has no manifest'):
        build_set.verify(damaged)


@pytest.mark.slow
def test_a_set_that_lacks_a_file_is_made_anew(damaged: Path, small: Path, reference: Path, tmp_path: Path) -> None:
    (damaged / 'index.npz').unlink()
    with pytest.raises(RequestError, match=r'index\.npz missing or damaged, and no recordings of Kalunga'):
        build_set.prepare(task_of(KALUNGA), select.datasets()[KALUNGA], damaged, [], lambda *facts: None)
    said: Said = []
    assert prepare(KALUNGA, small, tmp_path, lambda *f: said.append(f)) == damaged
    assert said[0][0] == f'prepare {KALUNGA} again (index.npz missing or damaged)'
    assert content(damaged) == content(reference)
    os.truncate(damaged / 'manifest.json', 100)
    prepare(KALUNGA, small, tmp_path)
    assert content(damaged) == content(reference)
    said.clear()
    prepare(KALUNGA, small, tmp_path, lambda *f: said.append(f))
    assert not said, 'nothing is done where all is there'


def test_without_recordings_the_prepared_set_serves(damaged: Path, tmp_path: Path) -> None:
    dataset = select.datasets()[KALUNGA]
    assert build_set.locate(task_of(KALUNGA), dataset, None, tmp_path) == (damaged, [])
    assert build_set.locate(task_of(KALUNGA), dataset, tmp_path, tmp_path / 'none') == (None, [])


# ------------------------------------------------------------------------------------------ any call to the disk fails


def failing(monkeypatch: pytest.MonkeyPatch, nth: int, number: int) -> Callable[[], bool]:
    """From now on the nth call that makes something last on disk fails; returns whether it came to that."""
    calls = 0

    def counted(function: Callable) -> Callable:
        def call(*args: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls == nth:
                raise OSError(number, os.strerror(number))
            return function(*args, **options)

        return call

    for name in ('mkdir', 'link', 'fsync', 'replace'):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return lambda: calls >= nth


@pytest.mark.slow
@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EIO, errno.EACCES], ids=errno.errorcode.get)
def test_whatever_call_fails_the_message_names_the_path_and_the_next_run_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """All writes of one process: the parts as a worker makes them, then what the parent makes of them."""
    task, refs = make_prepared_fixture.task(), [tiny.ref(k) for k in range(2)]
    monkeypatch.setattr(build_set, 'workers', in_this_process)
    build_set.prepare(task, tiny.DATASET, tmp_path / 'whole-0', refs, lambda *facts: None)
    stops = 0
    while True:
        folder = tmp_path / f'{stops}' / 'set-0'
        with monkeypatch.context() as patch:
            failed = failing(patch, stops + 1, number)
            try:
                build_set.prepare(task, tiny.DATASET, folder, refs, lambda *facts: None)
            except RequestError as error:
                assert re.search(rf'{tmp_path}\S+?( \(\d+ bytes needed\))?: {os.strerror(number)}; \w+', str(error))
            if not failed():
                break
        left = [p.name for p in folder.parent.rglob('*') if '.tmp' in p.name or p.name.endswith('.part')]
        assert not left and (not build_set.is_ready(folder) or content(folder) == content(tmp_path / 'whole-0'))
        build_set.prepare(task, tiny.DATASET, folder, refs, lambda *facts: None)
        assert content(folder) == content(tmp_path / 'whole-0')
        stops += 1
    assert stops > 25


@contextlib.contextmanager
def in_this_process(*sizes: int) -> Iterator[ThreadPoolExecutor]:
    """Stands for the worker processes, so that a test can make their calls fail."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def test_a_name_too_long_for_the_disk_is_told(small: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r'cannot write .*w{300}.*: File name too long; choose another folder'):
        prepare(KALUNGA, small, tmp_path / ('w' * 300))


@pytest.mark.parametrize(('free', 'n'), [(1 << 40, 2), (7 << 30, 2), (5 << 30, 1), (1 << 20, 1)])
def test_no_more_workers_than_memory_holds(monkeypatch: pytest.MonkeyPatch, free: int, n: int) -> None:
    monkeypatch.setattr(workers, 'free_memory', lambda: free)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {0, 1}, raising=False)
    assert workers.n_workers(10, 3 << 30) == n and workers.n_workers(1, 3 << 30) == 1


@pytest.mark.skipif(not Path('/proc/meminfo').exists(), reason='reads /proc')
def test_free_memory_is_some_and_not_more_than_there_is() -> None:
    assert 1 << 20 < workers.free_memory() < os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')


V1 = ('memory.limit_in_bytes', 'memory.usage_in_bytes', 'total_inactive_file')


@pytest.mark.parametrize(
    ('own', 'groups', 'left'),
    [
        ('0::/\n', {'': ('900', '100', 20)}, 820),
        ('0::/a/job/task\n', {'': ('max', '99', 0), 'a/job': ('500', '90', 0), 'a/job/task': ('max', '9', 0)}, 410),
        ('0::/a/b\n', {'a': ('300', '90', 0), 'a/b': ('800', '10', 0)}, 210),
        ('0::/on/the/host\n', {'': ('900', '1000', 0)}, 0),
        ('0::/\n', {'': ('900', '100', None)}, 800),
        ('0::/../else\n', {'': ('900', '100', 0)}, 800),
        ('1:name=systemd:/\n4:memory:/job\n0::/\n', {'memory': ('900', '100', 0), 'memory/job': ('600', '50', 7)}, 557),
        ('', {'': ('900', '100', 0)}, 1 << 62),
    ],
)
def test_what_limits_a_container_or_a_job_is_seen(
    own: str, groups: dict[str, tuple[str, str, int | None]], left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, (limit, used, cached) in groups.items():
        names = V1 if name.startswith('memory') else ('memory.max', 'memory.current', 'inactive_file')
        home = tmp_path / 'cgroup' / name
        home.mkdir(parents=True, exist_ok=True)
        for file, text in zip(names, (limit, used), strict=False):
            (home / file).write_text(f'{text}\n')
        if cached is not None:
            (home / 'memory.stat').write_text(f'anon 3\n{names[2]} {cached}\nactive_file 5\n')
    (tmp_path / 'own').write_text(own)
    monkeypatch.setattr(workers, 'CGROUP', tmp_path / 'cgroup')
    monkeypatch.setattr(workers, 'OWN', tmp_path / 'own')
    assert workers._left_to_groups() == left
    if Path('/proc/meminfo').exists():
        assert workers.free_memory() <= left
