"""Cells as jobs: the plan on disk, the order, and what engines have in common."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import result_files
import two_tasks

from jbench import files, run
from jbench.cli import arguments
from jbench.data.prepare import build_set
from jbench.grid import cluster, engine, futures, local, plan, status
from jbench.grid.engine import Grid, LostError
from jbench.grid.job import Job, line
from jbench.plan import cell_file
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.stores import notes


class Desk:
    """A place that computes nothing: so many jobs at once, each ends after its `seconds` of a clock of its own."""

    def __init__(self, n: int = 2, ends: Mapping[str, int] = {}, lost_at: int = 99) -> None:
        self.n, self.ends, self.lost_at = n, ends, lost_at
        self.clock, self.running, self.begun, self.told = 0.0, dict[str, float](), list[str](), 0

    def has_room(self, job: Job) -> bool:
        return len(self.running) < self.n

    def start(self, job: Job, log: Path) -> None:
        if len(self.begun) == self.lost_at:
            raise LostError('the scheduler has gone')
        self.begun.append(job.key)
        self.running[job.key] = self.clock + job.seconds

    def ended(self, seconds: float) -> dict[str, int]:
        key = min(self.running, key=lambda k: self.running[k])
        self.clock = self.running.pop(key)
        return {key: 75 if self.told else self.ends.get(key, 0)}

    def stop(self) -> None:
        self.told += 1


JOBS = [
    *(Job(name, name, (), '', seconds) for name, seconds in (('a', 1.0), ('b', 9.0), ('c', 3.0))),
    Job('set', 'prepare', (), '', 2.0, devices=0),
    Job('d', 'd', (), 'set', 8.0),
    Job('e', 'e', (), 'set', 4.0),
]


def go(desk: Desk, grid: Grid, jobs: list[Job] = JOBS) -> tuple[engine.Outcome, str]:
    """How jobs ended, and what was said."""
    with redirect_stderr(io.StringIO()) as said:
        return engine.run(jobs, desk, grid), said.getvalue()


def test_the_longest_to_wait_for_begins_first(grid):
    assert [j.key for j in engine.ordered(JOBS)] == ['set', 'b', 'd', 'e', 'c', 'a']
    desk = Desk()
    outcome, _ = go(desk, grid)
    assert desk.begun == ['set', 'b', 'd', 'e', 'c', 'a'] and desk.clock == 14
    assert outcome == (dict.fromkeys(outcome.statuses, 0), False) and len(outcome.statuses) == len(JOBS)


@pytest.mark.parametrize(
    ('ends', 'not_run', 'status'),
    [
        ({}, [], 0),
        ({'a': 1}, [], 1),
        ({'set': 2}, ['d', 'e'], 1),
        ({'set': 137}, ['d', 'e'], 1),
        (dict.fromkeys(['a', 'b', 'c', 'set'], 2), ['d', 'e'], 2),
        (dict.fromkeys('abcde', 2), [], 2),
        ({'b': 75}, [], 75),
        ({'set': 75}, ['d', 'e'], 75),
    ],
)
def test_what_fails_stops_only_what_needs_it(ends, not_run, status, grid):
    desk = Desk(ends=ends)
    outcome, said = go(desk, grid)
    assert [name for name in 'abcde' if name not in desk.begun] == not_run
    assert all(f'not run: {name}\n' in said for name in not_run)
    assert engine.exit_status(JOBS, outcome) == status
    failed = [key for key, number in ends.items() if number != 75]
    assert all((f'failed: {key if key != "set" else "prepare"}: ' in said) == (key in failed) for key in ends)
    kept = sorted(p.stem for p in (grid.workdir / 'errors').glob('*'))
    assert kept == sorted([*failed, *(not_run if failed else [])])


@pytest.mark.parametrize(
    ('n_sets', 'status', 'not_run'), [(2, 1, []), (2, 2, ['d', 'e']), (2, 137, ['d', 'e']), (1, 1, ['d', 'e'])]
)
def test_one_set_that_fails_does_not_stop_what_needs_another_one_of_its_job(n_sets, status, not_run, grid):
    """Status 1: some failed. A cell whose own set is not there prepares it, and says what is wrong."""
    maker = tuple(f'--cell={k}.json' for k in range(n_sets))
    jobs = [j._replace(argv=maker) if j.key == 'set' else j for j in JOBS]
    desk = Desk(ends={'set': status})
    outcome, said = go(desk, grid, jobs)
    assert [name for name in 'abcde' if name not in desk.begun] == not_run and 'failed: prepare' in said
    assert engine.exit_status(jobs, outcome) == (1 if not_run else 0)


@pytest.mark.parametrize(('n', 'begun'), [(2, ['set', 'b', 'd']), (6, ['set', 'b', 'c'])])
def test_a_signal_starts_nothing_more_and_tells_once(n, begun, grid):
    desk = Desk(n)
    outcome, said = go(desk, grid._replace(stop=lambda: len(desk.begun) > 2))
    assert desk.begun == begun and desk.told == 1
    assert outcome.interrupted and engine.exit_status(JOBS, outcome) == 75
    assert 'failed' not in said


def test_a_place_that_is_lost_ends_as_an_interruption(grid):
    outcome, said = go(Desk(lost_at=3), grid)
    assert outcome.interrupted and 'jbench: the scheduler has gone' in said
    assert engine.exit_status(JOBS, outcome) == 75


def test_an_error_of_an_earlier_attempt_goes_when_the_next_begins(grid):
    go(Desk(ends={'set': 1}), grid)
    go(Desk(), grid)
    assert [*(grid.workdir / 'errors').iterdir()] == []


def test_what_is_finished_is_not_run(grid):
    desk = Desk()
    outcome, _ = go(desk, grid._replace(finished=lambda job: job.key in 'bd'))
    assert sorted(desk.begun) == ['a', 'c', 'e', 'set'] and engine.exit_status(JOBS, outcome) == 0


def test_without_jobs_all_is_done(grid):
    outcome, said = go(Desk(), grid, [])
    assert outcome == ({}, False) and engine.exit_status([], outcome) == 0 and said == ''


def test_the_end_of_a_log_is_shown_and_kept(grid):
    log = engine.log_of(grid.workdir, JOBS[0])
    log.parent.mkdir(parents=True)
    log.write_bytes(b'first\n' + b'a line\n\n' * 9 + b'the \x1b[31m reason \xff\n')
    _, said = go(Desk(ends={'a': 1}), grid)
    assert f'failed: a: exit status 1; {log} ends:\n  a line' in said and 'the ?[31m reason' in said
    assert 'first' not in said and 'first' in (grid.workdir / 'errors' / 'a.log').read_text()


@pytest.mark.parametrize(
    ('status', 'words'),
    [(1, 'exit status 1'), (137, 'killed by SIGKILL, most likely because memory ran out'), (139, 'killed by SIGSEGV')],
)
def test_an_exit_status_in_words(status, words):
    assert engine.reason(status) == words


# ---- plans on disk ----


@pytest.fixture(scope='module')
def flags(tmp_path_factory) -> list[str]:
    return [*two_tasks.write(tmp_path_factory.mktemp('home')), '--model=eegnet,dummy', '--seeds=1,2']


@pytest.fixture
def ask(flags, tmp_path, capsys):
    def answer(*more: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run.main([*flags, f'--workdir={tmp_path}/work', *more])
        return status, *capsys.readouterr()

    return answer


def test_a_plan_has_a_job_for_the_sets_of_a_signal_and_for_each_cell_and_is_the_same_file_again(ask, tmp_path):
    status, out, err = ask('--plan')
    assert status == 0 and err == '' and '4 cells of 2 seeds, 2 sets to be prepared' in out
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    before, kept = path.read_bytes(), plan.read(path)
    assert kept.seeds == (1, 2) and len(kept.jobs) == 5 and str(path) in out
    sets = [j for j in kept.jobs if not j.devices]
    assert [j.after for j in sets] == [''] and {j.after for j in kept.jobs} == {'', *(j.key for j in sets)}
    assert all(kept.jobs.index(s) < kept.jobs.index(j) for s in sets for j in kept.jobs if j.after == s.key)
    assert {(f['task'], f['model']) for f in kept.facts} == {
        ('eyes@1', ''),
        *((task, model) for task in ('eyes@1', 'side@1') for model in ('eegnet', 'dummy')),
    }
    assert kept.commands.read_text().splitlines() == [line(j) for j in kept.jobs]
    assert all(j.seconds > 0 and j.memory > 0 for j in kept.jobs)
    for j in kept.jobs:
        args = arguments.parse(list(j.argv))
        assert args.stages == (['prepare', 'train'] if j.devices else ['prepare'])
        assert len(args.cell) == (1 if j.devices else 2), 'two tasks of one signal: their recordings are filtered once'
        assert cell_file.read(args.cell[0]).key == plan.cell_of(j) == (j.key if j.devices else plan.cell_of(j))
    assert ask('--plan')[1] == out and path.read_bytes() == before and plan.kept(tmp_path / 'work') == [kept]
    found = json.loads(ask('--plan', '--format=json')[1])
    assert found['plan'] == str(path) and found['jobs'] == json.loads(before)['jobs']


def test_sets_of_another_signal_are_made_by_another_job(flags, tmp_path):
    models = ['--model=eegnet,cbramod', '--weights=none', f'--workdir={tmp_path}/work']
    assert run.main([*(f for f in flags if not f.startswith('--model')), *models, '--plan']) == 0
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    made = {j.key: j for j in plan.read(path).jobs if not j.devices}
    assert len(made) == 2 and all(sum(w.startswith('--cell=') for w in j.argv) == 2 for j in made.values())
    of = {(f['task'], f['model'].partition(':')[0]): j.after for j, f in zip(*plan.read(path)[3:], strict=True)}
    assert of['eyes@1', 'eegnet'] == of['side@1', 'eegnet'] != of['eyes@1', 'cbramod'] == of['side@1', 'cbramod']


def test_a_plan_of_another_request_is_another_file(ask, tmp_path):
    for more in ((), ('--seeds=1,3',), ('--set=recipe.lr=0.1',), ('--keep_weights=no',), ('--prepare',)):
        ask('--plan', *more)
    assert len({*(tmp_path / 'work' / 'plans').glob('*.json')}) == 5


def test_a_plan_with_recordings_elsewhere_is_another_file(ask, flags, tmp_path):
    own = next(f for f in flags if f.startswith('--data_dir='))
    (tmp_path / 'other').symlink_to(own.partition('=')[2])
    for more in ((), (f'--data_dir={tmp_path}/other',)):
        ask('--plan', *more)
    found = [plan.read(p) for p in (tmp_path / 'work' / 'plans').glob('*.json')]
    assert {own in j.argv for kept in found for j in kept.jobs} == {True, False} and len(found) == 2


def test_a_plan_that_is_there_keeps_its_lines_and_learns_what_they_take(ask, tmp_path, monkeypatch):
    ask('--plan')
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    before = plan.read(path)
    monkeypatch.setattr(plan.estimates, 'START', 500.0)
    ask('--plan')
    after = plan.read(path)
    assert [j.argv for j in after.jobs] == [j.argv for j in before.jobs] and after.facts == before.facts
    assert all(
        new.seconds == pytest.approx(old.seconds + 494) for new, old in zip(after.jobs, before.jobs, strict=True)
    )


def test_a_plan_of_more_gpus_a_cell_is_another(ask, tmp_path):
    for flags in ((), ('--gpus_per_cell=2',), ()):
        ask('--plan', *flags)
    paths = (tmp_path / 'work' / 'plans').glob('*.json')
    assert sorted(max(j.devices for j in plan.read(path).jobs) for path in paths) == [1, 2]


def test_status_says_how_far_the_sets_of_a_plan_are(ask, tmp_path, capsys, monkeypatch):
    work = tmp_path / 'work'

    def states() -> list[str]:
        assert run.main(['--status', f'--workdir={work}', '--format=json']) == 0
        return [s['state'] for s in json.loads(capsys.readouterr().out)['sets']]

    def refused(*args: Any, **more: Any) -> None:
        raise RequestError('data are wrong, for the test')

    ask('--plan', '--prepare')
    (job,) = plan.kept(work)[0].jobs
    assert states() == ['missing', 'missing'] and len(set(job.sets)) == 2
    locks = [work / 'prepared' / f'{name.partition("-")[0]}.lock' for name in job.sets]
    with files.locked(locks[0]):
        assert sorted(states()) == ['missing', 'running']
    with monkeypatch.context() as change:
        change.setattr('jbench.stages.prepare', refused)
        assert run.main([*job.argv]) == 2
    assert states() == ['failed', 'failed']
    _, out, _ = run.main(['--status', f'--workdir={work}']), *capsys.readouterr()
    assert out.startswith(f'0 of 2 sets ready, 0 running, 2 failed, 0 missing; in {work}') and 'seeds' not in out
    assert all(f'{work}/errors/{key}.log' in out for key in plan.cells_of(job))
    for key in plan.cells_of(job):
        notes.forget(work, key)
    notes.keep(work, job.key, 'killed')
    assert states() == ['failed', 'failed']
    monkeypatch.setattr(build_set, 'workers', lambda *_: ThreadPoolExecutor(1))
    assert run.main([*job.argv]) == 0
    assert states() == ['ready', 'ready'], 'an error of before does not count'
    assert not any(notes.error_of(work, key).exists() for key in plan.cells_of(job)), 'and is not kept'
    notes.forget(work, job.key)
    (work / 'prepared' / job.sets[1] / 'manifest.json').unlink()
    assert sorted(states()) == ['missing', 'ready']
    cell = plan.cell_path(work, plan.cells_of(job)[0])
    cell.rename(cell.with_suffix('.away'))
    assert 'missing' in states(), 'the others are told of nevertheless'
    cell.with_suffix('.away').rename(cell)
    ask('--plan')
    assert run.main(['--status', f'--workdir={work}']) == 0
    head, sets = capsys.readouterr().out.splitlines()[:2]
    assert head.startswith('0 of 8 seeds done (0 %)') and sets.startswith('1 of 2 sets ready')


def test_of_many_sets_those_that_are_not_ready_are_listed(tmp_path):
    made = [status.SetState('Real', 'p3@2', f'set{k}', 'ready' if k else 'missing', '') for k in range(50)]
    text = status.show([], [], tmp_path, 'table', sets=made)
    assert (
        text.startswith('49 of 50 sets ready, 0 running, 0 failed, 1 missing')
        and 'set0  missing' in text
        and 'set1' not in text
    )
    assert status.show([], [], tmp_path, 'table', sets=made, verbose=True).count('ready') == 50


def test_seeds_of_a_killed_cell_that_are_whole_are_shown(ask, tmp_path, monkeypatch):
    def killed(jobs: list[Job], *more: Any) -> engine.Outcome:
        more[-1].begin()
        for job in jobs[-2:]:
            kept = cell_file.read(job.argv[0].partition('=')[2])
            home = result_file.result_dir(tmp_path / 'work', kept)
            facts = {'task': kept.task.full_name, 'task_version': 1, 'dataset': kept.dataset.name, 'key': kept.key}
            path = result_files.store(tmp_path / 'work', kept.model.full_name, seed=1, predictions_sha256=None, **facts)
            assert path.parent == home
        return engine.Outcome({**{job.key: 0 for job in jobs}, jobs[-1].key: 137, jobs[-2].key: 2}, False)

    monkeypatch.setattr(local, 'run', killed)
    status, out, err = ask('--jobs=2', '--format=json')
    assert (status, len(json.loads(out))) == (1, 1), err


def test_old_results_are_set_aside_once_before_the_first_job_and_every_turn_goes_on(ask, tmp_path, monkeypatch):
    """A job that Dask starts again, or that another machine does, must not begin anew what the one before has done."""
    assert ask('--plan')[0] == 0
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    homes, seen = [], list[tuple[bool, ...]]()
    for job in plan.read(path).jobs:
        if job.devices:
            homes.append(result_file.result_dir(tmp_path / 'work', cell_file.read(job.argv[0].partition('=')[2])))
            files.write_atomic(homes[-1] / 'seed1.json', b'{}')
    saves = [files.write_atomic(tmp_path / 'work' / 'checkpoints' / h.name / 'seed2' / '1' / 'x', b'') for h in homes]

    def interrupted(jobs: list[Job], *more: Any) -> engine.Outcome:
        seen.append(tuple((home / 'seed1.json').exists() for home in homes))
        more[-1].begin()
        seen.append(tuple((home / 'seed1.json').exists() for home in homes))
        assert {word for job in jobs if job.devices for word in job.argv if 'if_exists' in word} == {
            '--if_exists=resume'
        }
        return engine.Outcome({}, True)

    monkeypatch.setattr(local, 'run', interrupted)
    status, _, err = ask('--jobs=2', '--if_exists=overwrite')
    assert status == 75 and 'the same command with --if_exists=resume goes on from there' in err
    assert seen == [(True,) * 4, (False,) * 4] and '4 results set aside' in err
    assert all((home / 'seed1.json.replaced').read_bytes() == b'{}' for home in homes)
    assert not any(save.exists() for save in saves)
    assert ask('--plan', '--if_exists=overwrite')[0] == 0, 'of which each job begins by itself'
    assert sum('--if_exists=overwrite' in p.read_text() for p in (tmp_path / 'work' / 'plans').glob('*.json')) == 1


def test_an_interruption_outside_of_the_stages_promises_nothing_of_overwriting(monkeypatch, capsys):
    def stopped(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, '_main', stopped)
    assert run.main(['--if_exists=overwrite']) == 75
    assert 'goes on from there; with --if_exists=overwrite it begins anew' in capsys.readouterr().err
    assert 'goes on' not in str(futures._lost()), 'the command says how to go on'


def test_overwriting_waits_for_a_cell_that_another_process_trains(ask, tmp_path, monkeypatch):
    """Neither its checkpoint nor its results go under it; a signal ends the wait, and resuming is not advised then."""
    assert ask('--plan')[0] == 0
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    argv = next(job.argv for job in plan.read(path).jobs if job.devices)
    home = result_file.result_dir(tmp_path / 'work', cell_file.read(argv[0].partition('=')[2]))
    there = [
        files.write_atomic(home / 'seed1.json', b'{}'),
        files.write_atomic(tmp_path / 'work' / 'checkpoints' / home.name / 'seed1' / '1' / 'x', b''),
    ]
    begun = list[bool]()

    def begins(jobs: list[Job], *more: Any) -> engine.Outcome:
        more[-1].begin()
        begun.append(True)
        return engine.Outcome({}, True)

    monkeypatch.setattr(local, 'run', begins)
    monkeypatch.setattr('jbench.progress.StopSignal.__call__', lambda self: True)
    with files.locked(home / '.lock'):
        status, _, err = ask('--jobs=2', '--if_exists=overwrite')
    assert status == 75 and 'another command trains cells of this one' in err and not begun
    assert 'the same command, with overwrite, begins anew' in err and 'goes on from there' not in err
    assert all(p.exists() for p in there)
    status, _, err = ask('--jobs=2', '--if_exists=overwrite')
    assert status == 75 and begun and not any(p.exists() for p in there), 'once it has ended'


@pytest.mark.parametrize(
    ('text', 'words'),
    [('{', 'line 1'), ('{"schema": 2}', 'of schema 2, expected 1'), ('{"schema": 1}', 'lacks'), ('[]', 'expected a')],
)
def test_a_damaged_plan_is_told(text, words, ask, tmp_path):
    ask('--plan')
    (path,) = (tmp_path / 'work' / 'plans').glob('*.json')
    path.write_text(text)
    with pytest.raises(RequestError, match=words):
        plan.read(path)
    status, _, err = ask('--plan')
    assert status == 2 and str(path) in err and 'Traceback' not in err


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(RequestError, match='no such file; expected a plan'):
        plan.read(tmp_path / 'none.json')


WRONG = {
    'no jobs': (('--jobs=0',), '--jobs=0: expected a number of processes, from 1, or auto'),
    'jobs in words': (('--jobs=x',), '--jobs=x: expected'),
    'fewer than none': (('--jobs=-1',), '--jobs=-1: expected'),
    'empty': (('--jobs=',), '--jobs=: expected'),
    'no cluster': (('--cluster=',), '--cluster=: expected the address'),
    'two engines': (('--jobs=2', '--cluster=local:2'), '--jobs and --cluster ask for different things'),
    'plan and dry run': (('--plan', '--dry_run'), '--dry_run and --plan ask for different things'),
    'plan and jobs': (('--plan', '--jobs=2'), '--plan and --jobs ask for different things'),
    'status and plan': (('--status', '--plan'), '--plan and --status ask for different things'),
    'pods and jobs': (('--jobs=2', '--distributed'), '--jobs and --distributed ask for different things'),
    'check': (('--jobs=2', '--stage=check'), '--jobs: prepares and trains; --stage=check'),
    'finder': (('--jobs=2', '--stage=prepare,find_lr'), '--jobs: prepares and trains; --stage=prepare,find_lr'),
    'finder on a cluster': (('--cluster=local:1', '--stage=prepare,find_batch'), '--cluster: prepares and trains'),
    'finder of a plan': (('--plan', '--stage=prepare,find_lr'), '--plan: prepares and trains'),
    'report': (('--plan', '--stage=report'), '--plan: prepares and trains; --stage=report'),
    'GPUs without an engine': (
        ('--gpus_per_cell=2',),
        '--gpus_per_cell=2: expected a number of GPUs, from 1, together',
    ),
    'no GPU': (('--plan', '--gpus_per_cell=0'), '--gpus_per_cell=0: expected'),
    'GPUs of no GPU': (('--plan', '--gpus_per_cell=2', '--device=cpu'), '--gpus_per_cell=2 and --device=cpu: a cell'),
    'deletion by a plan': (
        ('--plan', '--prepare', '--delete_raw_after=prepared'),
        '--delete_raw_after=prepared and --plan: leave out --plan; one process must prepare all sets and verify them',
    ),
    'status of a stage': (('--status', '--prepare'), '--status looks at what is there'),
}


@pytest.mark.parametrize('what', WRONG)
def test_a_wrong_request_is_one_message(what, ask, tmp_path):
    argv, words = WRONG[what]
    status, out, err = ask(*argv)
    assert (status, out, err.count('\n')) == (2, '', 1) and words in err
    assert not (tmp_path / 'work').exists()


REFUSED = {
    'no GPU': (('--gpus_per_cell=2', '--jobs=2'), '--gpus_per_cell=2: this machine has 0 GPUs'),
    'no address': (('--cluster=foo',), '--cluster=foo: no Dask scheduler answers there (missing port number in'),
    'no file': (('--cluster=nofile.py',), 'nofile.py: no such file'),
    'no number': (('--cluster=local:0',), '--cluster=local:0: expected local:N'),
}


@pytest.mark.parametrize('what', REFUSED)
def test_a_place_that_is_refused_leaves_no_plan(what, ask, tmp_path, monkeypatch):
    argv, words = REFUSED[what]
    monkeypatch.setattr(cluster, 'ANSWER', 0.3)
    monkeypatch.setattr(local, 'accelerators', lambda device: local.Devices('', ()))
    status, out, err = ask(*argv)
    assert (status, out) == (2, '') and words in err
    assert not (tmp_path / 'work' / 'plans').exists() and not (tmp_path / 'work' / 'cells').exists()


@pytest.mark.parametrize('flag', ['--jobs=2', '--plan', '--status', '--cluster=local:1'])
def test_alignment_refuses_them(flag, capsys, tmp_path):
    name = flag.partition('=')[0]
    assert run.main(['--task=alignment/MajajHong2015.V4-pls', '--model=all', flag, f'--workdir={tmp_path}']) == 2
    assert f'{name}: decoding alone uses it' in capsys.readouterr().err


def test_status_without_a_task_takes_no_other_words(capsys, tmp_path):
    assert run.main(['--status', '--seeds=1', f'--workdir={tmp_path}']) == 2
    assert '--status without --task shows every plan; --seeds needs --task' in capsys.readouterr().err
    assert run.main(['--status', f'--workdir={tmp_path}']) == 2
    assert f'no plan under {tmp_path}/plans' in capsys.readouterr().err
