"""The pages that show how to add something: their files are written into a copy of jbench, and their commands run."""

from __future__ import annotations

import contextlib
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import fresh
import numpy as np
import pytest
import wheels
from families import often
from filelock import FileLock
from once import TOGETHER
from quick import QUICK

from jbench.spec.dataset import Download

ROOT = Path(__file__).parents[1]
PAGES = ('add_a_dataset', 'add_a_task', 'add_a_model')
SUBJECTS = '-11.6, (30, 16'  # of the simulation of p3, which the pages run on
TABLES = {'in TASKS': 'TASKS = (\n', 'in MODELS': 'MODELS = (\n'}  # what an entry is put behind


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    path: str  # the file that its first line names, '' where there is none
    place: str  # where in that file: '' for a file of its own
    text: str


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page of docs."""
    found = []
    for language, text in re.findall(r'^```(\w+)\n(.*?)^```$', (ROOT / 'docs' / f'{page}.md').read_text(), re.M | re.S):
        head = re.match(r'# (\S+\.py)(?:, (.*))?\n', text)
        path, place = (head[1], head[2] or '') if head else ('', '')
        found.append(Block(language, path, place, text[head.end() :] if head else text))
    return found


def test_the_readme_runs_then_downloads_then_tests():
    """Two blocks of commands that work as they stand, and between them the second command: real recordings."""
    first, between, tests = re.split(r'```(?:bash)?\n', (ROOT / 'README.md').read_text())[1:4]
    assert first.splitlines()[-1] == 'python -m jbench.run --task=bci --model=eegnet'
    assert re.findall(r'`(python .*?)`', between)[0].endswith(' --download')
    assert tests.splitlines()[-1] == 'python -m pytest'


@pytest.fixture(scope='module')
def house(tmp_path_factory) -> Path:
    """A copy of jbench with all that the pages add, and a folder of recordings for it."""
    root = tmp_path_factory.mktemp('house')
    shutil.copytree(ROOT / 'jbench', root / 'jbench', ignore=shutil.ignore_patterns('__pycache__'))
    for block in (b for page in PAGES for b in blocks(page) if b.path):
        path = root / block.path
        if not block.place:
            assert not path.exists(), f'{block.path} is there already'
            path.write_text(block.text)
            continue
        text, behind = path.read_text(), TABLES[block.place]
        assert text.count(behind) == 1
        path.write_text(text.replace(behind, behind + block.text))
    simulated = root / 'jbench' / 'data' / 'sources' / 'simulated.py'
    assert simulated.read_text().count(SUBJECTS) == 1
    simulated.write_text(simulated.read_text().replace(SUBJECTS, '-11.6, (6, 16'))  # prepared in a second
    record(root / 'DIR' / 'Eyes2026')
    shutil.copytree(root / 'DIR' / 'Eyes2026', root / 'DIR' / 'MyRest2026')
    return root


def record(folder: Path) -> None:
    """Six short recordings: alpha at the back while the eyes are closed."""
    import mne

    folder.mkdir(parents=True)
    info = mne.create_info(['Fz', 'Cz', 'Pz', 'Oz'], 200.0, 'eeg')
    t = np.arange(60 * 200) / 200
    closed = (t // 10) % 2
    for k in range(6):
        rng = np.random.default_rng(k)
        alpha = np.sin(2 * np.pi * 10 * t) * closed * np.array([[1], [2], [4], [8]])
        raw = mne.io.RawArray((rng.normal(0, 8, (4, len(t))) + 3 * alpha) * 1e-6, info, verbose='ERROR')
        marks = mne.Annotations(np.arange(0, 60, 10.0), np.full(6, 10.0), ['open', 'closed'] * 3)
        raw.set_annotations(marks).save(folder / f'S{k:02d}_raw.fif', verbose='ERROR')


def commands(page: str) -> list[list[str]]:
    """The commands of a page."""
    lines = [line for b in blocks(page) if b.language == 'bash' for line in b.text.splitlines()]
    assert all(line.startswith('python -m jbench.run ') for line in lines)
    return [line.split()[1:] for line in lines]


COMMANDS = [p if p == 'add_a_dataset' else pytest.param(p, marks=pytest.mark.slow) for p in PAGES]


@pytest.mark.slow
@pytest.mark.parametrize('page', COMMANDS)
def test_what_a_page_shows_works(page, house):
    env = {k: v for k, v in os.environ.items() if not k.startswith('JBENCH')} | {'PYTHONPATH': str(house)}
    assert commands(page)
    for argv in commands(page):
        short = ['--seeds=33'] * ('--debug' in argv)
        done = subprocess.run(
            [sys.executable, *argv, *short], cwd=house, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        name = {'add_a_dataset': 'Eyes2026', 'add_a_task': 'eyes', 'add_a_model': 'SimulatedP3'}[page]
        assert ('MyRest2026' if '--task=my_rest.py' in argv else name) in done.stdout
        if '--info=Eyes2026' in argv:
            assert '6 of 6 recordings here' in done.stdout
        if '--stage=check' in argv:
            assert '6 present, 6 expected' in done.stdout and 'page: jbench-work/check/' in done.stdout


@pytest.mark.slow
def test_weights_travel_as_the_page_shows(house, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = runpy.run_path(str(house / 'transfer.py'))
    assert made['found']['penultimate'].shape == (3, 16, 15)


def test_the_place_to_fetch_from_is_of_its_type(tmp_path):
    (block,) = (b for b in blocks('add_a_dataset') if b.text.startswith('download = '))
    (tmp_path / 'fact.py').write_text(f'from jbench.spec import Download\n{block.text}')
    assert isinstance(runpy.run_path(str(tmp_path / 'fact.py'))['download'], Download)


@pytest.mark.parametrize('page', PAGES)
def test_what_a_page_shows_follows_the_style(page, house):
    files = sorted({str(house / b.path) for b in blocks(page) if b.path and not b.place})
    if files:
        ruff = [sys.executable, '-m', 'ruff', 'check', '--config', str(ROOT / 'pyproject.toml'), *files]
        done = subprocess.run(ruff, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize('page', sorted(p.name for p in [*ROOT.glob('*.md'), *ROOT.glob('docs/*.md')]))
def test_links_lead_somewhere(page):
    path = ROOT / page if (ROOT / page).exists() else ROOT / 'docs' / page
    for target in re.findall(r'\]\(([^)#]+)', path.read_text()):
        assert target.startswith('https://') or (path.parent / target).exists(), f'{page}: {target}'


@pytest.mark.slow
def test_benchmarks_begin():
    """Each imports what is there: scripts that take minutes are run by hand, and by no other test."""
    pages = [*ROOT.glob('*.md'), *ROOT.glob('docs/*.md')]
    said = {name for p in pages for name in re.findall(r'python benchmarks/(\w+)\.py', p.read_text())}
    there = sorted(p.stem for p in (ROOT / 'benchmarks').glob('*.py'))
    assert said and said <= set(there)
    environment = os.environ | {'PYTHONPATH': os.pathsep.join(map(str, (ROOT, ROOT / 'benchmarks')))}
    done = subprocess.run([sys.executable, '-c', f'import {", ".join(there)}'], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


# ---- notebooks ----

COLABS = sorted(p.stem for p in (ROOT / 'colabs').glob('*.py') if p.stem != 'make_notebooks')


MAKE = runpy.run_path(str(ROOT / 'colabs' / 'make_notebooks.py'))
REPOSITORY = MAKE['REPOSITORY']
LARGEST = 1_000_000  # bytes of a notebook
KERNEL = 'newcomer'  # of an environment without jbench
INSTALLED = 'venv/lib/python*/site-packages/jbench/__init__.py'


def stored(name: str) -> dict:
    """A notebook as it lies in the repository."""
    return json.loads((ROOT / 'colabs' / f'{name}.ipynb').read_text(encoding='utf-8'))


def figures(book: dict) -> int:
    """How many pictures a notebook draws."""
    return sum(''.join(c['source']).count('plt.show()') for c in book['cells'])


def pictures(book: dict) -> int:
    """How many pictures it holds."""
    outputs = [o for c in book['cells'] for o in c.get('outputs', ())]
    return sum('image/png' in o.get('data', {}) for o in outputs)


@pytest.mark.parametrize('name', COLABS)
def test_a_notebook_is_what_its_source_generates(name):
    made, there = MAKE['notebook'](ROOT / 'colabs' / f'{name}.py'), stored(name)
    assert [''.join(c['source']) for c in there['cells']] == [c.source for c in made.cells], 'run make_notebooks.py'
    assert there['metadata'] == made.metadata == MAKE['METADATA']


@pytest.mark.parametrize('name', COLABS)
def test_a_notebook_opens_in_colab_as_it_stands(name):
    book = stored(name)
    badge, install = (''.join(book['cells'][k]['source']) for k in (0, 2))
    assert re.fullmatch(r'https://github\.com/[\w-]+/[\w-]+', REPOSITORY)
    place = REPOSITORY.removeprefix('https://github.com/')
    assert f'https://colab.research.google.com/github/{place}/blob/main/colabs/{name}.ipynb' in badge
    assert f'jbench[alignment,report] @ git+{REPOSITORY}' in install and "find_spec('jbench') is None" in install
    assert book['metadata']['accelerator'] == 'GPU'


@pytest.mark.parametrize('name', COLABS)
def test_a_notebook_holds_what_it_showed(name):
    book, text = stored(name), (ROOT / 'colabs' / f'{name}.ipynb').read_text(encoding='utf-8')
    assert len(text) < LARGEST and pictures(book) == figures(book) > 0
    code = [c for c in book['cells'] if c['cell_type'] == 'code']
    assert [c['execution_count'] for c in code] == list(range(1, len(code) + 1))  # run once, from the top
    said = json.dumps([o.get('text', '') for c in code for o in c['outputs']])
    assert 'debug' not in said and not re.search(r'/(home|root|tmp|Users|work)/', said)  # in full, of no machine


def test_a_notebook_shows_progress_while_it_runs():
    assert COLABS
    for name in COLABS:
        code = (ROOT / 'colabs' / f'{name}.py').read_text(encoding='utf-8')
        assert 'subprocess.Popen(' in code and 'capture_output' not in code and 'flush=True' in code


@pytest.mark.parametrize(('page', 'path'), [('add_a_model', 'mynet.py'), ('add_a_dataset', 'my_rest.py')])
def test_a_notebook_writes_the_file_of_its_page(page, path):
    (text,) = (b.text for b in blocks(page) if b.path == path)
    assert f'%%writefile {path}\n{text}'.strip() in [''.join(c['source']) for c in stored(page)['cells']]


def git_served(at: Path) -> dict[str, str]:
    """A copy of the repository as git serves it, and what lets its address lead there."""
    served = fresh.copy(at)
    git = ['git', '-C', str(served), '-c', 'user.name=tests', '-c', 'user.email=tests@localhost']
    for command in (['init', '--quiet'], ['add', '--all'], ['commit', '--quiet', '--message=all']):
        subprocess.run([*git, *command], check=True, capture_output=True)
    settings = {'GIT_CONFIG_COUNT': '1', 'GIT_CONFIG_KEY_0': f'url.file://{served}.insteadOf'}
    return settings | {'GIT_CONFIG_VALUE_0': REPOSITORY}


def newcomers(home: Path) -> None:
    """An environment with a kernel and pip alone, in which the first cell of a notebook has then run.

    pip finds wheels of the packages that are installed here in the place of an index, and a copy of this repository in
    the place of its address.
    """
    project = MAKE['PROJECT']
    extras = project['optional-dependencies']
    asked = [*project['dependencies'], *extras['alignment'], *extras['report'], 'ipykernel']
    house = wheels.pack([*asked, 'setuptools'], home / 'wheels')  # which builds it
    python, spec = home / 'venv' / 'bin' / 'python', home / 'jupyter' / 'kernels' / KERNEL
    pip = {'PIP_NO_INDEX': '1', 'PIP_FIND_LINKS': str(house), 'PIP_NO_COMPILE': '1', 'PIP_CONFIG_FILE': os.devnull}
    env = fresh.variables(JUPYTER_PATH=str(home / 'jupyter'), **pip, **git_served(home / 'served'))
    for command in (['-m', 'venv', home / 'venv'], ['-m', 'pip', 'install', '--quiet', 'ipykernel']):
        subprocess.run([python if 'pip' in command else sys.executable, *command], env=env, check=True, timeout=300)
    spec.mkdir(parents=True)
    argv = [str(python), '-m', 'ipykernel_launcher', '-f', '{connection_file}']
    (spec / 'kernel.json').write_text(json.dumps({'argv': argv, 'display_name': KERNEL, 'language': 'python'}))
    book = MAKE['notebook'](ROOT / 'colabs' / f'{COLABS[0]}.py')
    book.cells = book.cells[2:3]
    with variables(env):
        assert not list(home.glob(INSTALLED))
        MAKE['run'](book, home, KERNEL)
        assert list(home.glob(INSTALLED)) and not list(home.glob('venv/lib/python*/site-packages/pytest'))
    shutil.rmtree(home / 'wheels')


@contextlib.contextmanager
def variables(env: dict[str, str]) -> Iterator[None]:
    """These variables of the environment, and no others: kernels inherit them."""
    with mock.patch.dict(os.environ, env, clear=True):
        yield


@pytest.fixture(scope='module')
def newcomer() -> Iterator[dict[str, str]]:
    """The variables with which a notebook runs in the environment of `newcomers`, made once for all of them."""
    home = Path(os.environ[TOGETHER]) / 'newcomers'
    with FileLock(home.with_suffix('.lock')):
        if not list(home.glob(INSTALLED)):
            shutil.rmtree(home, ignore_errors=True)
            newcomers(home)
    quickly = {'JBENCH_SMOKE': '1', 'XLA_FLAGS': QUICK}
    yield fresh.variables(JUPYTER_PATH=str(home / 'jupyter'), PIP_NO_INDEX='1', **quickly)


def test_all_notebooks_install_the_same():
    assert len({''.join(stored(name)['cells'][2]['source']) for name in COLABS}) == 1


@pytest.mark.parametrize(
    ('has', 'wanted'),
    [((), []), (('nvidia-smi',), ['jax[cuda12]']), (('TPU_ACCELERATOR_TYPE',), ['jax[tpu]'])],
    ids=['processor', 'GPU', 'TPU'],
)
def test_the_first_cell_brings_the_build_of_jax_for_what_is_there(has, wanted, tmp_path):
    """The cell runs in a Python without packages, and pip is a script that says what it was asked for."""
    for name, text in (('pip', 'printf "%s\\n" "$@"'), ('nvidia-smi', 'true')):
        (tmp_path / name).write_text(f'#!/bin/sh\n{text}\n')
        (tmp_path / name).chmod(0o755)
    found = tmp_path / 'path'
    found.mkdir()
    if 'nvidia-smi' in has:
        (found / 'nvidia-smi').symlink_to(tmp_path / 'nvidia-smi')
    env = {'PATH': str(found)} | {name: 'v5e-1' for name in has if name.isupper()}
    cell = f'import sys\nsys.executable = {str(tmp_path / "pip")!r}\n' + MAKE['INSTALL']
    done = subprocess.run([sys.executable, '-I', '-S', '-c', cell], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first = ['-m', 'pip', 'install', '--quiet', f'jbench[alignment,report] @ git+{REPOSITORY}']
    assert done.stdout.splitlines() == first + wanted


@pytest.mark.parametrize('name', often(COLABS, ('quickstart', 'foundation')))
def test_a_notebook_runs_in_an_empty_folder_with_what_its_first_cell_installs(name, newcomer, tmp_path):
    (tmp_path / 'empty').mkdir()
    with variables(newcomer):
        book = MAKE['run'](MAKE['notebook'](ROOT / 'colabs' / f'{name}.py'), tmp_path / 'empty', KERNEL)
    assert pictures(book) == figures(book)
    said = {'add_a_dataset': 'MyRest2026', 'alignment': 'simulated: the recording'}.get(name, '(simulated)')
    assert any(said in out.get('text', '') for cell in book.cells for out in cell.get('outputs', ()))
