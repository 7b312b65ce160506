"""What a list of jobs takes on so many devices, against arithmetic by hand and bounds that always hold."""

from __future__ import annotations

import importlib
import json
import re
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import ROOT

from jbench.grid.job import Job
from jbench.grid.simulate import finish
from jbench.spec.errors import RequestError


def test_by_hand():
    assert finish([4, 3, 3, 2], 2) == (6, 0, 0)  # 4 + 2 beside 3 + 3
    assert finish([2, 3, 3, 4], 2) == pytest.approx((7, 2, 2 / 14))  # 2 + 3 beside 3 + 4
    assert finish([5], 3) == pytest.approx((5, 5, 10 / 15))
    assert finish([], 3) == (0, 0, 0)


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=60), st.integers(1, 20))
def test_no_order_beats_the_bounds_and_the_longest_first_is_near_them(seconds, n):
    least = max(sum(seconds) / n, max(seconds))
    for order in (seconds, sorted(seconds), sorted(seconds, reverse=True)):
        wall, tail, idle = finish(order, n)
        assert least * (1 - 1e-9) <= wall <= sum(seconds) / n + max(seconds) + 1e-6  # Graham (1966)
        assert 0 <= tail <= max(seconds) + 1e-6 and -1e-9 <= idle < 1
    # Graham (1969): at most 4/3 - 1/(3n) of the best one, which is itself at least `least`; so against `least` this
    # holds where the longest job is not long beside the rest
    best = finish(sorted(seconds, reverse=True), n).wall
    assert best <= sum(seconds) / n + max(seconds) * (1 - 1 / n) + 1e-6


def test_equal_jobs_take_whole_rounds():
    wall, tail, idle = finish([60.0] * 4947, 256)
    assert wall == 20 * 60 and tail == 60 and idle == pytest.approx(1 - 4947 / (20 * 256))


# ---- benchmarks/grid.py ----


@pytest.fixture
def grid(monkeypatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    return importlib.import_module('grid')


@pytest.mark.parametrize(
    ('flags', 'said'),
    [
        ('--parts=foo', "unknown part 'foo'"),
        ('--parts=core,job', "unknown part 'job'; did you mean 'jobs'?"),
        ('--parts=jobs --jobs=4', '--jobs=4: expected at least 5'),
        ('--parts=cells --cells=1', '--cells=1: expected at least 2'),
        ('--parts=status --results=0', '--results=0: expected at least 1'),
        ('--parts=core --write', 'expected --parts=simulation'),
    ],
)
def test_what_cannot_be_measured_is_one_error(flags, said, grid, monkeypatch, capsys):
    monkeypatch.setattr(grid.grid_core, 'report', lambda *args: pytest.fail('it measured something'))
    assert grid.main(flags.split()) == 2
    out, err = capsys.readouterr()
    assert out == '' and err.startswith('grid: ') and said in err


def test_blocks_are_alike_and_the_memory_is_told_after_a_thousand_jobs_and_the_half_of_seven(grid):
    jobs = [Job(str(k), str(k), ()) for k in range(7000)]
    sizes = {n: [len(block) for block in grid.blocks(jobs[:n])] for n in (5, 7, 1000, 7000)}
    assert sizes == {5: [1] * 5, 7: [1] * 7, 1000: [200] * 5, 7000: [500] * 14}
    assert [job for block in grid.blocks(jobs) for job in block] == jobs


@pytest.mark.slow
def test_the_page_has_the_tables_of_the_simulation(grid, tmp_path):
    page = tmp_path / 'scale.md'
    page.write_text(grid.PAGE.read_text())
    grid.marks.write(page, 'grid', grid.grid_simulation.tables())
    command = 'python benchmarks/grid.py --parts=simulation --write'
    assert command in page.read_text()
    assert page.read_text() == grid.PAGE.read_text(), f'what it is made of has changed: run {command}'


# ---- the Core suite, by what was measured ----

NAMES = ('eegnet', 'labram')


def kept(path, models=NAMES, **head) -> str:
    """A file as benchmarks/accelerator.py writes it: 10 ms a step of 64 x 20 x 100 values."""
    row = {'part': 'step', 'what': 'float32', 'seeds': 1, 'ms': 10.0, 'batch': 64, 'n_chans': 20, 'n_times': 100}
    facts = dict.fromkeys(('count', 'machine', 'jax', 'commit', 'date'), '')
    facts |= {'toy': False, 'backend': 'gpu', 'device': 'X', **head}
    rows = [{**row, 'model': model} for model in models]
    path.write_text(json.dumps({'head': facts, 'rows': rows, 'skipped': {}}))
    return path


def test_the_core_suite_has_no_figure_without_a_device(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / 'benchmarks'))
    import grid_core

    path, runs = tmp_path / 'accelerator.json', grid_core.runs(NAMES)
    monkeypatch.setattr(grid_core, 'runs', lambda names: runs)
    for why in (path, kept(tmp_path / 'cpu', backend='cpu'), kept(tmp_path / 'toy', toy=True)):
        assert 'no figure: no accelerator was measured' in grid_core.report(why, NAMES, 3)
    assert 'no figure: accelerator.json has no step of labram' in grid_core.report(kept(path, NAMES[:1]), NAMES, 3)
    path.write_text('{}')
    with pytest.raises(RequestError, match=r'accelerator\.json: no figures that can be read'):
        grid_core.report(path, NAMES, 3)
    said = grid_core.report(kept(path), NAMES, 3)
    assert said.startswith('SIMULATED: 216 runs of the Core suite (216 ') and ' GPU-hours of X, if every' in said
    name, cell = runs[0]
    assert name == 'eegnet' and cell is not None
    n, values = grid_core.steps(cell)
    assert n >= cell.task.recipe.least_steps and values % (cell.task.recipe.batch_size * cell.dataset.n_chans) == 0
    monkeypatch.setattr(grid_core, 'runs', lambda names: runs[:1] * 100)
    monkeypatch.setattr(grid_core, 'steps', lambda cell: (36_000, 64 * 20 * 50))
    assert re.search(r': (\d+) GPU-hours', grid_core.report(path, NAMES, 3))[1] == '15'  # 300 x 36,000 x 5 ms
