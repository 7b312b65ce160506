"""What a job is expected to take: from results where there are some, else by steps and parameters."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from pathlib import Path

import pytest
import result_files
import small

from jbench.data.prepare import build_set, workers
from jbench.data.recording import RecordingRef
from jbench.grid import estimates
from jbench.grid.estimates import START, Windows
from jbench.grid.launchers import slurm
from jbench.models import MODELS
from jbench.results import result_file
from jbench.results.schema import as_text

SIZE = Windows(2000, 19, 128)
TIMES = {'timings': {'compile': 3.0, 'fit': 40.0, 'test': 2.0}, 'memory': {'peak_rss_mb': 900.0}}


def cell(model: str = 'eegnet', **recipe):
    return dataclasses.replace(small.cell(**recipe), model=MODELS[model])


def keep(work, of, seed: int = 33, key: str = '', **changes) -> None:
    """A result of a cell in a work folder, which took what TIMES says."""
    home = result_file.result_dir(work, of)
    home = home.parent / key if key else home
    home.mkdir(parents=True, exist_ok=True)
    made = result_files.make(**{**result_files.merged(TIMES, changes), 'seed': seed})
    (home / f'seed{seed}.json').write_bytes(as_text(made))


def test_results_of_the_cell_tell(tmp_path):
    keep(tmp_path, cell(), 33)
    keep(tmp_path, cell(), 34, timings={'fit': 60.0}, memory={'peak_rss_mb': 1000.0})
    assert estimates.of_cell(cell(), 3, SIZE, tmp_path) == (START + 3 + 3 * 52, int(1.3 * (1000 << 20))), 'and a margin'


def test_else_results_of_the_model_on_these_data(tmp_path):
    keep(tmp_path, cell(), key='another')
    assert estimates.of_cell(cell(), 2, SIZE, tmp_path) == (START + 3 + 2 * 42, int(1.3 * (900 << 20)))
    other = estimates.of_cell(cell('deep4net'), 2, SIZE, tmp_path)
    assert other == estimates.of_cell(cell('deep4net'), 2, SIZE, tmp_path / 'empty')


@pytest.mark.parametrize(
    'changes', [{'status': 'debug'}, {'memory': {'peak_rss_mb': None}}, {'timings': {'fit': -1.0}}]
)
def test_what_does_not_tell_is_not_taken(tmp_path, changes):
    keep(tmp_path, cell(), **changes)
    assert estimates.of_cell(cell(), 3, SIZE, tmp_path) == estimates.of_cell(cell(), 3, SIZE, tmp_path / 'empty')


def test_a_damaged_result_is_passed_over(tmp_path):
    keep(tmp_path, cell())
    (result_file.result_dir(tmp_path, cell()) / 'seed33.json').write_text('{')
    assert estimates.of_cell(cell(), 1, SIZE, tmp_path).seconds > START


def test_without_results_more_work_takes_longer(tmp_path):
    def seconds(of, n_seeds: int = 3, size: Windows = SIZE) -> float:
        return estimates.of_cell(of, n_seeds, size, tmp_path).seconds

    plain = seconds(cell())
    assert plain < seconds(cell(), 6) and plain < seconds(cell(max_epochs=30))
    assert plain < seconds(cell(), size=SIZE._replace(n_windows=4000))
    assert plain < seconds(cell('labram')) and seconds(cell('dummy')) < plain
    assert seconds(dataclasses.replace(cell(max_epochs=500), debug=True)) <= seconds(cell(max_epochs=500)) / 2
    assert seconds(cell(least_steps=10_000)) > plain


def test_without_results_larger_networks_and_batches_take_more_memory(tmp_path):
    def memory(of) -> int:
        return estimates.of_cell(of, 3, SIZE, tmp_path).memory

    assert estimates.BASE < memory(cell()) < memory(cell(batch_size=1024)) and memory(cell()) < memory(cell('labram'))
    assert memory(cell(batch_size=1024, microbatch=64)) == memory(cell())


def test_the_size_of_a_set_is_that_of_its_manifest_else_as_declared(tmp_path):
    of = cell()
    n_times = estimates.windows(of, None, 0).n_times
    assert estimates.windows(of, tmp_path, 0) == estimates.windows(of, None, 0)
    assert estimates.windows(of, None, 2).n_windows < estimates.windows(of, None, 0).n_windows
    (tmp_path / 'manifest.json').write_text(json.dumps({'n_windows': 77, 'ch_names': ['a', 'b']}))
    assert estimates.windows(of, tmp_path, 5) == (77, 2, n_times)


def refs_of(folder: Path, *sizes: int) -> list[RecordingRef]:
    """Recordings of so many bytes, which take no disk."""
    paths = [folder / f'{k}.edf' for k in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        path.touch()
        os.truncate(path, size)
    return [RecordingRef('Any', str(k), '0', '0', (str(p),)) for k, p in enumerate(paths)]


def test_preparing_takes_longer_for_more_recordings(tmp_path):
    few, many = (estimates.of_set(cell(), refs_of(tmp_path, *[1 << 20] * n)) for n in (1, 30))
    assert START < few.seconds < many.seconds and estimates.BASE < few.memory <= many.memory


@pytest.mark.parametrize(('free', 'n'), [(1 << 30, 1), (9 << 30, 2), (1 << 50, 3)])
def test_preparing_is_expected_to_take_what_it_takes(free, n, tmp_path, monkeypatch):
    taken = []

    def begin(*sizes: int):
        taken.append(math.prod(sizes))
        raise InterruptedError

    monkeypatch.setattr(workers, 'free_memory', lambda: free)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: range(8))
    monkeypatch.setattr(build_set, 'workers', begin)
    refs = refs_of(tmp_path, 1 << 20, 22 << 30, 2 << 30)  # the second: 24 h of 256 channels at 512 Hz
    with pytest.raises(InterruptedError):
        build_set.prepare(cell().task, cell().dataset, tmp_path / 'set-0', refs, lambda *facts: None)
    each = (300 << 20) + (4 << 30)
    assert taken == [n * each] and estimates.of_set(cell(), refs).memory == estimates.BASE + n * each


@pytest.mark.parametrize(('n_recordings', 'n'), [(1, 1), (9, 4)])
def test_a_job_elsewhere_asks_for_what_its_processors_take_there(n_recordings, n, tmp_path, monkeypatch):
    monkeypatch.setattr(workers, 'free_memory', lambda: 1 << 50)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: range(64))
    asked = estimates.of_set(cell(), refs_of(tmp_path, *[22 << 30] * n_recordings), elsewhere=True).memory
    assert asked == estimates.BASE + n * ((300 << 20) + (4 << 30))
    monkeypatch.setattr(workers, 'free_memory', lambda: asked - estimates.BASE)
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: range(slurm.Options().cpus))
    assert workers.n_workers(n_recordings, (300 << 20) + (4 << 30)) == n
