"""How far a plan is, from files alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import result_files

from jbench.cli import tables
from jbench.grid import status
from jbench.grid.job import Job
from jbench.grid.plan import Kept
from jbench.grid.status import Wanted
from jbench.results import ends, result_file
from jbench.stores import notes

SEEDS, MODELS = (33, 34, 35), ('eegnet', 'dummy')
HOLD = 'import fcntl, os, sys; d = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); fcntl.flock(d, fcntl.LOCK_EX)'
HOLD += '; print(flush=True); input()'


def wanted(model: str = 'eegnet') -> Wanted:
    return Wanted('p3@2', 'Real', model, f'key of {model}', SEEDS)


def look(work, *models: str):
    return status.look([wanted(m) for m in models or ('eegnet',)], work)


def of(state: status.State) -> tuple:
    return state[4:]


def test_nothing_is_there_and_nothing_is_made(tmp_path):
    (state,), damaged = look(tmp_path)
    assert of(state) == ((), (), (), SEEDS) and damaged == [] and [*tmp_path.iterdir()] == []


def test_results_failures_and_errors_tell(tmp_path):
    result_files.store(tmp_path, seed=33)
    result_files.store(tmp_path, 'eegnet', None, seed=34, status='failed')
    (state,), _ = look(tmp_path)
    assert of(state) == ((33,), (), (34,), (35,))
    notes.keep(tmp_path, 'key of eegnet', 'Traceback')
    assert of(look(tmp_path)[0][0]) == ((33,), (), (34, 35), ())
    for seed in (34, 35):
        result_files.store(tmp_path, seed=seed)
    assert of(look(tmp_path)[0][0]) == (SEEDS, (), (), ()), 'an error of before does not count'


def test_a_cell_that_runs_elsewhere_is_running_as_far_as_it_is_not_done(tmp_path):
    result_files.store(tmp_path, seed=33)
    notes.keep(tmp_path, 'key of eegnet', 'Traceback')
    (state, other), _ = status.look([wanted(), wanted('dummy')], tmp_path, {'key of eegnet'})
    assert of(state) == ((33,), (34, 35), (), ()) and of(other) == ((), (), (), SEEDS)


@pytest.mark.parametrize('changes', [{'simulated': True}, {'status': 'debug'}, {'protocol': {'partial': ['few']}}])
def test_results_that_enter_no_table_are_done_too(tmp_path, changes):
    result_files.store(tmp_path, seed=33, **changes)
    assert of(look(tmp_path)[0][0])[0] == (33,)


def test_a_damaged_result_is_missing_and_told(tmp_path):
    path = result_files.store(tmp_path, seed=33)
    path.write_text(path.read_text().replace('eegnet', 'eegnot'))
    (state,), (text,) = look(tmp_path)
    assert of(state)[3] == SEEDS and str(path) in text and 'changed since written' in text
    assert str(path) in status.show([state], [text], tmp_path, 'table')


def test_a_held_lock_is_a_running_cell_whoever_holds_it(tmp_path):
    path = result_files.store(tmp_path, seed=34)
    lock = path.parent / '.lock'
    holder = subprocess.Popen([sys.executable, '-c', HOLD, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline()
        assert of(look(tmp_path)[0][0]) == ((34,), (33, 35), (), ())
        holder.kill()
        holder.wait()
        assert of(look(tmp_path)[0][0]) == ((34,), (), (), (33, 35)), 'the kernel freed the lock of the killed one'
    finally:
        holder.kill()
        holder.communicate()


def test_a_table_and_json_say_how_much_there_is(tmp_path):
    for seed in SEEDS:
        result_files.store(tmp_path, seed=seed)
    states, damaged = look(tmp_path, 'eegnet', 'deep4net')
    text = status.show(states, damaged, tmp_path, 'table')
    assert text.startswith('3 of 6 seeds done (50 %), 0 running, 0 failed, 3 missing; 1 of 2 cells whole')
    assert 'deep4net' in text
    found = json.loads(status.show(states, damaged, tmp_path, 'json'))
    assert found['seeds'] == {'done': 3, 'running': 0, 'failed': 0, 'missing': 3} and found['coverage'] == 0.5
    assert found['cells'][0]['done'] == [*SEEDS] and found['cells'][1]['missing'] == [*SEEDS]


def test_of_many_cells_a_line_for_each_task_the_matrix_and_the_failed_ones(tmp_path):
    states = [status.State('p3@2', 'Real', f'm{k}', f'key{k}', (33,), (), (34, 35) * (k > 30), ()) for k in range(50)]
    states.append(status.State('p3@2', 'Real', 'm3', 'another recipe', (33,), (34,), (), (35, 36)))
    states.append(status.State('erp@1', 'Real', 'm3', 'other', (), (), (), (33, 34, 35)))
    text = status.show(states, [], tmp_path, 'table')
    assert f'm31: {tmp_path}/errors/key31.log' in text and 'and 9 more' in text
    assert 'every cell: --status --verbose' in text and 'another recipe' not in text
    lines = text.splitlines()
    assert ['p3@2', 'Real', '51', '51', '1', '38', '2'] in [line.split() for line in lines]
    first = lines.index('seeds done/running/failed/missing:') + 1
    assert lines[first].split()[:6] == ['task', 'dataset', 'm0', 'm1', 'm2', 'm3']
    assert lines[first + 1].split()[:6] == ['p3@2', 'Real', '1/0/0/0', '1/0/0/0', '1/0/0/0', '2/1/0/2']
    assert lines[first + 2].split()[:6] == ['erp@1', 'Real', '-', '-', '-', '0/0/0/3']
    assert max(map(len, lines[first:])) <= 110 and '1/0/2/0' in text
    assert 'another' not in text and text.count('\n') < status.show(states, [], tmp_path, 'table', verbose=True).count(
        '\n'
    )


def test_a_result_that_lies_as_it_was_written_is_not_parsed(tmp_path, monkeypatch):
    """Any other is read whole: of another layout it counts, changed it does not."""
    path = result_files.store(tmp_path, seed=33)
    result_files.store(tmp_path, seed=34, value=None, status='failed')
    found = ends.scan([tmp_path])
    assert [(e.key, e.seed, e.failed, e.damaged) for e in found] == [
        ('key of eegnet', 33, False, ''),
        ('key of eegnet', 34, True, ''),
    ]
    monkeypatch.setattr(ends, '_whole', lambda path: None)
    assert ends.scan([tmp_path]) == found
    monkeypatch.undo()
    text = path.read_text()
    path.write_text(json.dumps(json.loads(text)))
    assert ends.scan([tmp_path]) == found
    for old, new in (('"status": "done"', '"status": "debug"'), ('"seed": 33', '"seed": 32'), ('{', '{,')):
        path.write_text(text.replace(old, new, 1))
        assert ends.scan([tmp_path])[0].damaged.startswith('damaged: '), new
    path.unlink()
    os.mkfifo(path)
    assert 'expected a file' in ends.scan([tmp_path])[0].damaged


def test_a_table_of_some_of_the_planned_cells_says_so(tmp_path, capsys, monkeypatch):
    made = [result_files.make(model, seed=seed) for model, seed in (*((m, 33) for m in MODELS), ('eegnet', 34))]
    monkeypatch.setattr(result_file, 'load_all', lambda workdir, damaged: made)
    facts = {'task': 'p3@2', 'dataset': 'Real'}
    jobs = [{**Job(f'key of {m}', m, ('--cell=x',))._asdict(), **facts, 'model': m} for m in MODELS]
    (tmp_path / 'plans').mkdir()
    text = json.dumps({'schema': 1, 'request': '', 'seeds': [33, 34], 'jobs': jobs})
    (tmp_path / 'plans' / 'a.json').write_text(text)
    assert tables.report_all(tmp_path, 'table') == 0
    assert capsys.readouterr().out.rstrip().endswith('1 of 2 cells are whole; --status says what is missing')
    assert tables.report_all(tmp_path, 'json') == 0
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 2 and '1 of 2 cells are whole' in said.err
    (tmp_path / 'plans' / 'a.json').unlink()
    assert tables.report_all(tmp_path, 'table') == 0
    assert 'cells are whole' not in capsys.readouterr().out


def test_plans_are_taken_together(tmp_path):
    def kept(seeds, *models: str) -> Kept:
        jobs = [Job('set', 'prepare', ()), *(Job(f'key of {m}', m, ()) for m in models)]
        facts = [{'task': 'p3@2', 'dataset': 'Real', 'model': m} for m in ('', *models)]
        return Kept(tmp_path, '', seeds, jobs, facts)

    found = status.of_plans([kept((33,), 'eegnet', 'dummy'), kept((34, 33, 35), 'eegnet')])
    assert found == [wanted('dummy')._replace(seeds=(33,)), wanted()]
