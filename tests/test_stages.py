"""Cells beside each other: what one of them meets does not reach the others, and results say what was run."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal

import numpy as np
import pytest
import small

from jbench import files, run, stages
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.progress import Interrupted, Progress, StopSignal
from jbench.results import record, result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.train import fit

BASE = ['--task=p3', '--debug', '--seeds=33']


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('stages'))


@pytest.fixture
def few(monkeypatch):
    """P3 on six simulated subjects."""
    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)


def stored(workdir):
    return [json.loads(p.read_text()) for p in sorted(workdir.glob('results/*/*/*/*/seed*.json'))]


@pytest.mark.slow
def test_a_setting_equal_to_the_default_is_no_custom_run(few, tmp_path):
    assert run.main([*BASE, '--model=dummy', '--set=split.valid=0.2', f'--workdir={tmp_path}']) == 0
    (result,) = stored(tmp_path)
    assert result['protocol']['custom'] == []
    assert run.main([*BASE, '--model=dummy', '--set=split.valid=0.25', f'--workdir={tmp_path}']) == 0
    assert ['split.valid=0.25'] in [r['protocol']['custom'] for r in stored(tmp_path)]


@pytest.mark.slow
def test_a_cell_that_breaks_is_named_and_the_others_run(few, tmp_path, monkeypatch, capsys):
    def broken(*args):
        raise ZeroDivisionError('for the test')

    monkeypatch.setattr('jbench.models.baselines.classical.cov_ts_lr', broken)
    assert run.main([*BASE, '--model=cov_ts_lr,dummy', f'--workdir={tmp_path}']) == 1
    said = capsys.readouterr()
    assert 'failed: p3/SimulatedP3 cov_ts_lr: ZeroDivisionError: for the test' in said.err
    assert 'Traceback' not in said.err
    (log,) = tmp_path.glob('errors/*.log')
    assert 'Traceback' in log.read_text()
    assert [r['model'] for r in stored(tmp_path)] == ['dummy']


@pytest.mark.slow
def test_a_task_without_data_does_not_keep_others_from_running(few, tmp_path, capsys):
    assert run.main(['--task=zyma_arithmetic,p3', '--debug', '--model=dummy', f'--workdir={tmp_path}']) == 1
    assert "not run: task 'zyma_arithmetic'" in capsys.readouterr().err
    assert {r['task'] for r in stored(tmp_path)} == {'p3'}


@pytest.mark.slow
def test_the_error_of_a_refused_cell_is_kept_until_it_trains(few, tmp_path, monkeypatch):
    def refused(*args, **more):
        raise RequestError('data are wrong, for the test')

    argv = [*BASE, '--model=dummy,cov_ts_lr', f'--workdir={tmp_path}']
    with monkeypatch.context() as change:
        change.setattr('jbench.stages.prepare', refused)
        assert run.main(argv) == 2
    kept = {path.stem: path.read_text() for path in tmp_path.glob('errors/*.log')}
    assert len(kept) == 2 and all('data are wrong, for the test' in text for text in kept.values())
    assert run.main(argv) == 0
    assert {r['cell']['key'] if 'cell' in r else r['key'] for r in stored(tmp_path)} == {*kept}
    assert [*tmp_path.glob('errors/*')] == []


@pytest.mark.slow
def test_one_mistake_in_many_cells_is_said_once(tmp_path, capsys):
    argv = ['--task=p3,ssvep', '--model=eegnet', '--debug', '--seeds=33', '--set=recipe.microbatch=7']
    assert run.main([*argv, f'--workdir={tmp_path}']) == 2
    said = capsys.readouterr().err
    assert said.count('recipe.microbatch: 7 does not divide') == 1 and said.count('not run: ') == 2


@pytest.mark.slow
def test_all_leaves_out_what_cannot_run_here_and_says_so(few, tmp_path, monkeypatch, capsys):
    known = {n: select.tasks()[n] for n in ('p3', 'zyma_arithmetic', 'fmri/image', 'emg/typing')}
    monkeypatch.setattr(select, 'tasks', lambda: known)
    argv = ['--task=all', '--debug', '--simulated=yes', '--seeds=33', f'--workdir={tmp_path}']
    assert run.main(argv) == 0
    said = capsys.readouterr().err
    assert "not run: task 'zyma_arithmetic' has no embedded simulation" in said
    assert "not run: model 'eegnet' needs windows of at least 27 samples; those of task 'fmri/image' have 4: " in said
    assert '--set window.duration=54;' in said
    assert "not run: model 'eegnet' predicts targets of kind" in said and "that of task 'emg/typing' is" in said
    assert {r['task'] for r in stored(tmp_path)} == {'p3'}
    assert run.main([*argv, '--task=p3,fmri/image']) == 1, 'what was named and cannot run is a fault'
    assert run.main([*argv, '--task=fmri/image,emg/typing']) == 2 and 'no task can run' in capsys.readouterr().err


def test_a_group_of_which_no_model_fits_is_refused(tmp_path, monkeypatch, capsys):
    odd = dataclasses.replace(select.tasks()['p3'][-1], paradigm='fmri')  # which no network of muscles fits
    monkeypatch.setattr(select, 'tasks', lambda: {'p3': (odd,)})
    monkeypatch.setattr(select, 'MODELS', {'emg2qwerty': MODELS['emg2qwerty']})
    argv = ['--task=p3', '--model=classic', '--simulated=yes', '--dry_run', f'--workdir={tmp_path}']
    assert run.main(argv) == 2 and 'no model of --model=classic fits' in capsys.readouterr().err


@pytest.mark.slow
def test_a_mended_model_never_reuses_an_old_score(few, tmp_path, monkeypatch, capsys):
    """One that wants its own signal gets a prepared set of its own."""
    argv, plain = [*BASE, '--model=dummy', f'--workdir={tmp_path}'], MODELS['dummy']
    for change in ({}, {'version': 7}, {'overrides': (('signal.sfreq', 60.0),)}):
        monkeypatch.setattr(select, 'MODELS', {**MODELS, 'dummy': dataclasses.replace(plain, **change)})
        before, sets = len(stored(tmp_path)), len(list(tmp_path.glob('prepared/SimulatedP3/*/manifest.json')))
        assert run.main(argv) == 0 and 'finished before' not in capsys.readouterr().err
        assert len(stored(tmp_path)) == before + 1, change
        after = len(list(tmp_path.glob('prepared/SimulatedP3/*/manifest.json')))
        assert after == sets + (not before or 'overrides' in change)
        assert run.main(argv) == 0 and 'finished before' in capsys.readouterr().err
    found = stored(tmp_path)
    assert len({r['key'] for r in found}) == 3 and {r['model'] for r in found} == {'dummy'}
    assert all(r['protocol']['custom'] == [] for r in found)


@pytest.mark.slow
def test_a_worker_runs_cells_without_a_command_line(few, tmp_path):
    models = select.select_models('dummy,cov_ts_lr')
    with Progress() as progress, StopSignal() as stop, contextlib.closing(stages.Compiler()) as compiler:
        context = Context(tmp_path, None, progress, stop, 'resume')
        (choice,) = (cells.choose_dataset(t, d, None, tmp_path, 'auto') for t, d in select.select_tasks('p3'))
        asked = cells.make_cells([choice], models, (), debug=True)
        kinds = [
            stages.run(asked, wanted, [33], context=context, compiler=compiler)
            for wanted in (['prepare'], ['train'], ['report'])
        ]
    assert [(k.status, [r['model'] for r in k.results]) for k in kinds] == [
        (0, []),
        (0, ['dummy', 'cov_ts_lr']),
        (0, ['dummy', 'cov_ts_lr']),
    ]
    assert kinds[1].results == kinds[2].results


@pytest.mark.slow
def test_an_interrupted_overwrite_goes_on_with_the_cells_that_it_had_not_reached(few, tmp_path, monkeypatch, capsys):
    argv = [*BASE, '--model=dummy,cov_ts_lr', f'--workdir={tmp_path}']
    assert run.main(argv) == 0
    old = {path: path.read_bytes() for path in tmp_path.rglob('seed33.json')}
    train, begun = stages.train, []

    def stopped(cell, *more):
        begun.append(cell.model.name)
        if len(begun) == 2:
            raise Interrupted
        return train(cell, *more)

    first, second = sorted(old, key=lambda path: 'dummy' not in str(path))
    with monkeypatch.context() as change:
        change.setattr(stages, 'train', stopped)
        assert run.main([*argv, '--if_exists=overwrite']) == 75
    said = capsys.readouterr().err
    assert 'overwrite: 2 results set aside (seed*.replaced)' in said
    assert 'the same command with --if_exists=resume goes on from there; with overwrite it begins anew' in said
    new, aside = first.read_bytes(), second.with_name('seed33.json.replaced')
    assert new != old[first] and not second.exists() and aside.read_bytes() == old[second], 'nothing is lost'
    assert second.with_name('seed33.npz.replaced').exists()
    assert run.main([*argv, '--if_exists=resume']) == 0
    said = capsys.readouterr().err
    assert 'dummy: finished before' in said and 'cov_ts_lr: finished before' not in said
    assert first.read_bytes() == new and second.read_bytes() != old[second]
    assert not [*tmp_path.rglob('*.replaced')]


@pytest.mark.slow
def test_a_signal_waits_until_old_results_are_set_aside_but_not_for_a_cell_that_another_process_trains(
    few, tmp_path, monkeypatch, capsys
):
    """A further turn of a queue goes on with `resume`, and would count what is not set aside."""
    argv = [*BASE, '--model=dummy', f'--workdir={tmp_path}']
    assert run.main(argv) == 0
    (path,) = tmp_path.rglob('seed33.json')
    monkeypatch.setattr(StopSignal, '__call__', lambda self: True)
    with files.locked(path.parent / '.lock'):
        assert run.main([*argv, '--if_exists=overwrite']) == 75
    said = capsys.readouterr().err
    assert path.exists() and 'with overwrite, begins anew' in said and 'goes on from there' not in said
    assert said.count('overwrite: another command trains cells of this one; it waits until they have ended') == 1
    assert run.main([*argv, '--if_exists=overwrite']) == 75
    said = capsys.readouterr().err
    assert not path.exists() and 'goes on from there' in said and 'another command' not in said


@pytest.mark.slow
def test_an_estimator_stops_when_asked(few, tmp_path, monkeypatch):
    class Stopped(StopSignal):
        def __call__(self):
            return True

    with Progress() as progress:
        context = Context(tmp_path, None, progress, Stopped(), 'resume')
        (choice,) = (cells.choose_dataset(t, d, None, tmp_path, 'auto') for t, d in select.select_tasks('p3'))
        (cell,) = cells.make_cells([choice], select.select_models('dummy'), ())
        folder, seconds = stages.prepare(cell, context._replace(stop=StopSignal()))
        with pytest.raises(Interrupted):
            stages.train(cell, (folder, seconds), [33], stages.Compiler(), context)
    assert not stored(tmp_path)


def test_outputs_that_are_no_numbers_are_no_score():
    outputs = np.array([[0.0, np.inf], [1.0, 0.0]])
    assert fit.monitor(None, outputs, 'bal_acc') is None


def zyma(data, subjects, version):
    """A set whose folder held two recordings of each subject, and the cell that asks for it."""
    task = select.version(select.tasks()['mental_arithmetic'], 'mental_arithmetic', version)
    dataset = select.datasets()[task.datasets[0]]
    manifest = {**data.manifest, 'found': [s for s in subjects for _ in range(2)], 'notes': []}
    return Cell(task=task, dataset=dataset, model=MODELS['dummy']), dataclasses.replace(data, manifest=manifest)


@pytest.mark.parametrize(
    ('subjects', 'partial'),
    [
        (range(36), []),
        (range(1, 36), []),  # the published list: Subject00 is excluded
        (range(1, 35), ['68 of 70 recordings (34 of 35 subjects)']),
    ],
)
def test_partial_is_what_misses_of_the_subjects_that_count(data, subjects, partial):
    (as_published, found), (cell, _) = (zyma(data, [f'Subject{k:02d}' for k in subjects], v) for v in (1, 2))
    protocol = record._protocol(as_published, found)
    assert protocol['partial'] == partial
    assert protocol['suite'] == (None if partial else 'eeg-core-1.0')
    ours = None if partial else 'jbench-core'
    assert record._protocol(cell, found) == {**protocol, 'suite': ours}
    more = dataclasses.replace(as_published, dataset=dataclasses.replace(cell.dataset, name=cell.task.datasets[1]))
    full = 'eeg-full-1.0' if len(subjects) == cell.dataset.n_subjects else None  # here nobody is excluded
    assert record._protocol(more, found)['suite'] == full


def test_a_view_reads_what_is_asked(data):
    view = prepared_set.View(data, data.rows('test'))
    np.testing.assert_array_equal(view[np.array([3, 1])], prepared_set.read(data, data.rows('test')[[3, 1]], None))
    np.testing.assert_array_equal(view[:2], prepared_set.read(data, data.rows('test')[:2], None))
    assert len(view) == len(data.rows('test'))


@pytest.mark.slow
def test_rescoring_what_a_run_left_gives_the_same(few, tmp_path):
    assert run.main([*BASE, '--model=dummy', f'--workdir={tmp_path}']) == 0
    (path,) = tmp_path.glob('results/*/*/*/*/seed33.json')
    again = result_file.rescore(path)
    assert {k: result_file.read(path)[k] for k in again} == again


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_ask_to_stop(number):
    """Also where a script ignores them for its jobs; but a SIGHUP that nohup ignores (a closed terminal) stays so."""
    before = signal.getsignal(number)
    try:
        for handler, asked in ((signal.SIG_DFL, True), (signal.SIG_IGN, number != signal.SIGHUP)):
            signal.signal(number, handler)
            with StopSignal() as stop:
                os.kill(os.getpid(), number)
                assert stop() is asked
            assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
