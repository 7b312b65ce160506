"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import jax
import pytest
from once import TOGETHER, once
from places import alignment_dir
from preparing import KALUNGA, pick, prepare
from quick import QUICK

ROOT = Path(__file__).resolve().parent.parent
# Here and in the processes that tests start; .ci/run sets it for its last command.
os.environ.setdefault('XLA_FLAGS', QUICK)


if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # in the background of a shell: processes of tests inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope='session')
def data_dir() -> Path:
    """Real recordings: JBENCH_TEST_DATA, by default ../shared/data beside the repository."""
    path = Path(os.environ.get('JBENCH_TEST_DATA') or ROOT.parent / 'shared' / 'data')
    if not path.is_dir():
        reason = f'no real recordings at {path}: set JBENCH_TEST_DATA to their folder'
        if os.environ.get('CI'):
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope='session', name='alignment_dir')
def _alignment_dir() -> Path:
    """Recordings for alignment: see `places.alignment_dir`."""
    return alignment_dir()


@pytest.fixture(scope='module')
def small(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Kalunga recordings."""
    return pick(data_dir, tmp_path_factory.mktemp('small'), KALUNGA, 'subject0[145]/*')


@pytest.fixture(scope='module')
def reference(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their prepared set."""
    work = once('reference', tmp_path_factory.mktemp('at') / 'work', lambda at: prepare(KALUNGA, small, at))
    (manifest,) = work.rglob('manifest.json')
    return manifest.parent


@pytest.fixture(scope='session', autouse=True)
def _made_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What many tests make, here or in a process of theirs, is made once: compiled programs, and what `once` makes."""
    own = tmp_path_factory.getbasetemp()
    together = (own.parent if 'PYTEST_XDIST_WORKER' in os.environ else own) / 'together'
    together.mkdir(exist_ok=True)
    os.environ[TOGETHER] = str(together)
    settings = {
        'jax_compilation_cache_dir': str(together / 'compiled'),
        'jax_compilation_cache_max_size': 1 << 33,  # with a limit, jax locks the folder: nobody reads half a program
        'jax_persistent_cache_min_compile_time_secs': 0.1,
        'jax_persistent_cache_enable_xla_caches': 'none',  # as the command does
    }
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


@pytest.fixture(scope='module', autouse=True)
def _one_worker(request: pytest.FixtureRequest) -> Iterator[None]:
    """A process of pytest prepares with one worker, for each takes a second to start; not where preparing is tested."""
    with pytest.MonkeyPatch.context() as patch:
        if 'prepare' not in request.path.parts:
            patch.setattr(os, 'sched_getaffinity', lambda pid: {0}, raising=False)
        yield


@pytest.fixture(autouse=True)
def _environment_as_before():
    """The command, called in this process, sets variables for jax and its workers: not for the tests that follow."""
    os.environ.pop('PYTHONSAFEPATH', None)  # of a fixture that ran the command
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
