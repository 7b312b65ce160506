"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import pytest
from preparing import KALUNGA, pick, prepare

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.fixture(scope='module')
def small(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three Kalunga recordings."""
    return pick(data_dir, tmp_path_factory.mktemp('small'), KALUNGA, 'subject0[145]/*')


@pytest.fixture(scope='module')
def reference(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their prepared set."""
    return prepare(KALUNGA, small, tmp_path_factory.mktemp('reference'))


@pytest.fixture(scope='session', autouse=True)
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program that many tests compile, here or in a process of theirs, is compiled once in each process of pytest."""
    settings = {
        'jax_compilation_cache_dir': str(tmp_path_factory.mktemp('compiled')),
        'jax_persistent_cache_min_compile_time_secs': 0.1,
        'jax_persistent_cache_enable_xla_caches': 'none',  # as the command does
    }
    for name, value in settings.items():
        os.environ[name.upper()] = str(value)
        jax.config.update(name, value)


@pytest.fixture(autouse=True)
def _environment_as_before():
    """The command, called in this process, sets variables for jax and its workers: not for the tests that follow."""
    os.environ.pop('PYTHONSAFEPATH', None)  # of a fixture that ran the command
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)
