"""What machines that share a store know of each other's cells: which run, which failed, which are done."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import result_files
import small
import stores

from jbench import files
from jbench.grid import engine, plan, status
from jbench.grid.job import Job
from jbench.grid.launchers import planned
from jbench.grid.status import Wanted
from jbench.progress import Progress
from jbench.spec.identity import to_json
from jbench.stores import mirror, notes, results

SEEDS = (33, 34)


@pytest.fixture
def machines(tmp_path):
    with stores.in_memory(tmp_path) as found:
        yield found


def wanted(model: str) -> Wanted:
    return Wanted('p3@2', 'Real', model, f'key_of_{model}', SEEDS)


def taken(work: Path, model: str) -> None:
    """A machine has put the results of a cell into the store."""
    paths = [result_files.store(work, model, seed=seed, key=f'key_of_{model}') for seed in SEEDS]
    results.take(work, paths[0].parent, SEEDS)


def test_an_error_is_seen_elsewhere_until_another_attempt(machines):
    notes.keep(machines.on('a'), 'key', 'Traceback')
    b = machines.on('b')
    notes.bring(b, ['other'])
    assert not (b / 'errors').exists()
    notes.bring(b, ['key'])
    assert notes.error_of(b, 'key').read_text() == 'Traceback'
    notes.forget(machines.on('a'), 'key')
    notes.bring(b, ['key'])
    assert not notes.error_of(b, 'key').exists() and machines.names() == []


def test_a_log_of_an_earlier_attempt_does_not_come_back(machines):
    a = machines.on('a')
    log = a / 'logs' / 'key.log'
    log.parent.mkdir()
    log.write_text('yesterday')
    mirror.take(a, [log])
    notes.forget(a, 'key', log)
    log.write_text('now')
    mirror.bring(a, 'logs')
    assert log.read_text() == 'now'


def test_a_cell_runs_for_others_while_its_machine_says_so(machines, monkeypatch):
    monkeypatch.setattr(notes, 'AGAIN', 0.01)
    a = machines.on('a')
    with notes.running(a, 'key'):
        end = time.monotonic() + 5
        while not (there := notes.now_running(machines.on('b'))) and time.monotonic() < end:
            time.sleep(0.01)
        assert there == {'key'}
        machines.store().remove(['running/key'])  # as a second machine does that ends
        while not (there := notes.now_running(machines.on('b'))) and time.monotonic() < end:
            time.sleep(0.01)
        assert there == {'key'}, 'it is said again'
        monkeypatch.setattr(notes, 'RUNS', -1)
        assert notes.now_running(machines.on('b')) == set(), 'that was long ago'
    assert machines.names() == []


def test_a_folder_has_no_notes_of_others(tmp_path):
    with notes.running(tmp_path, 'key'), notes.running(None, 'key'):
        assert notes.now_running(tmp_path) == set() and [*tmp_path.iterdir()] == []
    log = notes.keep(tmp_path, 'key', 'Traceback')
    notes.bring(tmp_path, ['key'])
    assert log.exists()


@pytest.mark.parametrize('many', [status.MANY, 3])
def test_status_is_that_of_all_machines(many, machines, monkeypatch):
    monkeypatch.setattr(status, 'MANY', many)
    a = machines.on('a')
    taken(a, 'eegnet')
    notes.keep(a, 'key_of_deep4net', 'Traceback')
    machines.store().write('running/key_of_atcnet', b'runs')
    b = machines.on('b')
    asked = [wanted(m) for m in ('eegnet', 'deep4net', 'atcnet', 'dummy')]
    states, _ = status.everywhere(asked, b)
    assert [s[4:] for s in states] == [
        (SEEDS, (), (), ()),
        ((), (), SEEDS, ()),
        ((), SEEDS, (), ()),
        ((), (), (), SEEDS),
    ]
    assert not [*b.rglob('*.npz')]


def test_the_sets_of_a_plan_are_seen_elsewhere(machines):
    a, cell = machines.on('a'), small.cell()
    path = files.write_atomic(plan.cell_path(a, cell.key), json.dumps(to_json(cell)).encode())
    mirror.take(a, [path])
    job = Job('prepare-it', 'prepare', (f'--cell={path}',), devices=0, sets=('SimulatedP3/0-1',))
    asked, b = [plan.Kept(path, '', SEEDS, [job], [])], machines.on('b')
    (state,) = status.of_sets(asked, b)
    assert state == ('SimulatedP3', f'p3@{cell.task.version}', '0-1', 'missing', '')
    notes.keep(a, 'prepare-it', 'killed')
    (state,) = status.of_sets(asked, b)
    assert state[3:] == ('failed', str(notes.error_of(b, 'prepare-it')))
    mirror.take(a, [files.write_atomic(a / 'prepared/SimulatedP3/0-1/manifest.json', b'{"files": {}, "digest": "x"}')])
    assert status.of_sets(asked, b)[0].state == 'ready'


def test_a_plan_is_launched_without_what_others_did_or_do(machines):
    a, cells = machines.on('a'), []
    taken(a, 'eegnet')
    machines.store().write('running/key_of_atcnet', b'runs')
    for model in ('eegnet', 'deep4net', 'atcnet'):
        job = Job(f'key_of_{model}', model, (f'--workdir={machines.url}', f'--cell={model}'))
        cells.append({**job._asdict(), 'task': 'p3@2', 'dataset': 'Real', 'model': model})
    path = a / 'plans' / 'x.json'
    path.parent.mkdir()
    path.write_text(json.dumps({'schema': 1, 'request': '', 'seeds': SEEDS, 'jobs': cells}))
    mirror.take(a, [path])
    machines.on('b')
    left = planned.read(f'{machines.url}/plans/x.json')
    assert [job.title for job in left.jobs] == ['deep4net'] and left.done == 2
    assert len(planned.read(f'{machines.url}/plans/x.json', everything=True).jobs) == 3


class Elsewhere:
    """A place on another machine, whose jobs fail."""

    def __init__(self, machines: stores.Machines) -> None:
        self._machines, self._keys = machines, list[str]()

    def has_room(self, job: Job) -> bool:
        return True

    def start(self, job: Job, log: Path) -> None:
        self._keys.append(job.key)
        there = self._machines.on('b')
        own = there / 'logs' / log.name
        own.parent.mkdir(exist_ok=True)
        own.write_text('first\nlast words\n')
        mirror.take(there, [own])
        if job.key == 'says':
            notes.keep(there, 'says', 'Traceback of b')
        self._machines.on('a')

    def ended(self, seconds: float) -> dict[str, int]:
        return {self._keys.pop(): 1} if self._keys else {}

    def stop(self) -> None:
        pass


def test_a_failure_elsewhere_is_told_with_its_log_and_kept_for_all(machines, capsys):
    a = machines.on('a')
    notes.keep(a, 'dies', 'of the attempt before')
    grid = engine.Grid(a, Progress(), lambda: False)
    engine.run([Job('says', 'says', ()), Job('dies', 'dies', ())], Elsewhere(machines), grid)
    assert capsys.readouterr().err.count('last words') == 2
    assert machines.store().read('errors/says.log') == b'Traceback of b'
    assert machines.store().read('errors/dies.log') == b'exit status 1\nfirst\nlast words\n'
