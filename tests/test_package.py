"""What lies beside the package, and what is in it: licence, citation, the wheel and the sdist that others install."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import fresh
import pytest
import yaml
from families import often
from places import ROOT

import jbench

PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text(encoding='utf-8'))['project']
PYTHONS = [c.rpartition(' ')[2] for c in PROJECT['classifiers'] if c.startswith('Programming Language :: Python :: 3.')]
LINT = ('ruff check .', 'ruff format --check .', 'mypy')
RUN = ('--task=p3', '--model=eegnet,dummy', '--seeds=33', '--debug')


def test_the_licence_is_the_one_that_the_project_names():
    text = (ROOT / 'LICENSE').read_text(encoding='utf-8')
    assert PROJECT['license'] == 'Apache-2.0'
    assert 'Apache License\n' in text and 'Version 2.0, January 2004' in text and 'END OF TERMS AND CONDITIONS' in text


def test_every_file_says_the_same_version():
    cited = yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))
    assert cited['version'] == PROJECT['version'] == jbench.__version__
    assert cited['license'] == PROJECT['license']


# ---- what a change has to pass ----


def test_the_workflow_runs_what_must_pass_on_each_supported_python():
    text = (ROOT / '.github' / 'workflows' / 'ci.yml').read_text(encoding='utf-8')
    jobs = yaml.safe_load(text)['jobs']
    assert jobs['test']['strategy']['matrix']['python'] == PYTHONS
    assert PROJECT['requires-python'] == f'>={PYTHONS[0]}'
    assert '.ci/run' in [step.get('run') for step in jobs['test']['steps']]
    assert set(jobs['publish']['needs']) == set(jobs) - {'publish'}
    for script in re.findall(r'python (\S+\.py)', text):
        assert (ROOT / script).exists()


@pytest.mark.parametrize(
    ('user', 'sudo', 'by'),
    [('0', 'exit 1', 'itself'), ('1001', 'shift; BY=sudo "$@"', 'sudo'), ('1001', 'exit 1', '')],
    ids=['root', 'may sudo', 'may not'],
)
def test_ci_installs_what_its_tests_need_where_it_may(user, sudo, by, tmp_path):
    """The lines of .ci/run that do, with programs in place of those of the system; apt-get notes what it hears."""
    heard = 'echo "${BY-itself} $*, ${DEBIAN_FRONTEND-}" >> "$NOTES"'
    for name, text in (('id', f'echo {user}'), ('sudo', sudo), ('apt-get', heard)):
        (tmp_path / name).write_text(f'#!/bin/bash\n{text}\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / 'env').symlink_to(shutil.which('env'))
    lines = (ROOT / '.ci' / 'run').read_text(encoding='utf-8')
    lines = lines[lines.index('as_root=') : lines.index('python -m pytest\n')]
    script = f'set -euo pipefail\n{lines}echo "${{JBENCH_BROWSER-}} ${{JBENCH_SLURM-}}"'
    env = {'PATH': str(tmp_path), 'NOTES': str(tmp_path / 'notes')}
    done = subprocess.run(['/bin/bash', '-c', script], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, 'required required\n' if by else ' \n'), done.stderr
    found = (tmp_path / 'notes').read_text().splitlines() if by else []
    what = ('chromium chromium-driver', '--no-install-recommends slurmctld slurmd slurm-client')
    wanted = [(f'{by} -qq update, ', f'{by} -qq install -y {names}, noninteractive') for names in what]
    assert found == [line for both in wanted for line in both if by]


def test_the_lint_before_a_commit_is_that_of_ci():
    hooks = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text(encoding='utf-8'))['repos'][0]['hooks']
    assert tuple(h['entry'] for h in hooks) == LINT
    assert set(LINT) <= set((ROOT / '.ci' / 'run').read_text(encoding='utf-8').splitlines())


def test_how_to_take_part_names_what_is_there():
    text = (ROOT / 'CONTRIBUTING.md').read_text(encoding='utf-8')
    commands = ('python -m pytest', "python -m pytest -m 'slow and not long'", '.ci/run', "pip install -e '.[test]'")
    assert all(command in text for command in commands)
    folders = re.findall(r'^\| `([\w./]+/)`', text, re.M)
    assert len(folders) > 5 and all((ROOT / f).is_dir() for f in folders)


# ---- wheel and sdist ----


@pytest.fixture(scope='module')
def built(tmp_path_factory) -> dict[str, Path]:
    """The sdist of this tree, and the wheel that is made of it."""
    at = tmp_path_factory.mktemp('built')
    build = [sys.executable, '-m', 'build', '--no-isolation', f'--outdir={at / "dist"}', str(fresh.copy(at / 'tree'))]
    done = subprocess.run(build, env=fresh.variables(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,), (sdist,) = (at / 'dist').glob('*.whl'), (at / 'dist').glob('*.tar.gz')
    return {'wheel': wheel, 'sdist': sdist}


def files(folder: str) -> set[str]:
    """Files of a folder of the repository, as paths from its root."""
    found = (p for p in (ROOT / folder).rglob('*') if p.is_file() and p.suffix != '.pyc')
    return {str(p.relative_to(ROOT)) for p in found if not p.name.startswith('.')}


@pytest.mark.slow
def test_the_sdist_is_the_repository_and_the_wheel_the_package(built):
    with tarfile.open(built['sdist']) as sdist, zipfile.ZipFile(built['wheel']) as wheel:
        packed = {name.partition('/')[2] for name in sdist.getnames()}
        held = {name for name in wheel.namelist() if name.startswith('jbench/')}
    wanted = set().union(*(files(f) for f in ('benchmarks', 'colabs', 'configs', 'docs', 'jbench', 'tests')))
    wanted |= {p.name for p in ROOT.glob('*.md')} | {'LICENSE', 'CITATION.cff', '.ci/run', '.pre-commit-config.yaml'}
    assert wanted - packed == set()
    assert held == files('jbench')  # tables, sums, schemas and py.typed among them


@pytest.mark.parametrize('form', often(('wheel', 'sdist'), ('wheel',)))
def test_what_was_built_runs_from_an_empty_folder(form, built, tmp_path):
    python = fresh.environment(tmp_path / 'venv')
    install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-index', '--no-build-isolation', str(built[form])]
    folder = tmp_path / 'empty'
    folder.mkdir()

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=folder, env=fresh.variables(), capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(python, *install)
    where = run(python, '-c', 'import jbench; print(jbench.__file__)')
    assert Path(where.strip()).is_relative_to(tmp_path / 'venv')
    run(python, '-m', 'pip', 'check')
    assert 'p3@2' in (table := run(python.with_name('jbench'), *RUN)) and '(simulated)' in table
    found = sorted(folder.glob('jbench-work/results/*/*/*/*/seed33.json'))
    verify = 'import sys; from jbench import results; print(*(results.verify(p) for p in sys.argv[1:]))'
    assert run(python, '-c', verify, *found).split() == ['[]', '[]']
