"""When, by which code and on what kind of machine a result was made."""

from __future__ import annotations

import datetime
import platform
import re
import subprocess
from pathlib import Path

import pytest

from jbench.results import origin

ME = ('-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false')


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one file of a package `ours`."""
    (tmp_path / 'ours').mkdir()
    (tmp_path / 'ours' / 'a.py').write_text('1\n')
    for command in (('init', '-q'), ('add', '.'), (*ME, 'commit', '-qm', 'one'), (*ME, 'tag', '-am', 'v', 'v1')):
        subprocess.run(['git', *command], cwd=tmp_path, check=True)
    return tmp_path


def test_the_date_is_in_utc():
    said = datetime.datetime.strptime(origin.date(), '%Y-%m-%dT%H:%M:%S%z')
    assert said.utcoffset() == datetime.timedelta(0)
    assert abs(datetime.datetime.now(datetime.UTC) - said) < datetime.timedelta(seconds=60)


def test_a_checkout_says_its_commit_and_whether_files_changed(checkout, monkeypatch):
    monkeypatch.setenv('GIT_DIR', '/nowhere')  # as inside a hook of another repository
    head = (checkout / '.git' / 'HEAD').read_text().removeprefix('ref: ').strip()
    digest = (checkout / '.git' / head).read_text().strip()
    assert origin.commit.__wrapped__(checkout / 'ours') == digest
    (checkout / 'ours' / 'a.py').write_text('2\n')
    assert origin.commit.__wrapped__(checkout / 'ours') == digest + '-dirty'


def test_a_repository_around_an_installed_package_is_not_its_own(checkout):
    (installed := checkout / 'venv' / 'ours').mkdir(parents=True)
    assert origin.commit.__wrapped__(installed) is None


def test_without_git_there_is_no_commit(checkout, monkeypatch, tmp_path):
    monkeypatch.setenv('PATH', str(tmp_path / 'empty'))
    assert origin.commit.__wrapped__(checkout / 'ours') is None


def test_the_machine_is_not_named():
    facts = origin.machine()
    assert facts['cores'] >= 1 and re.fullmatch(r'\w+', facts['architecture'])
    assert set(facts) == {'system', 'architecture', 'processor', 'cores', 'memory_gb'}
    assert platform.node() not in facts.values()
