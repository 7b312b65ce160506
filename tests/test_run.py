"""`jbench.run(task, model, ...)`: what the command does, in Python."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest
from small import N_SUBJECTS

import jbench
from jbench import run
from jbench.cli import arguments
from jbench.plan import select
from jbench.results import result_file
from jbench.spec.errors import RequestError

CHANGES = {'recipe.max_epochs': 1, 'recipe.batch_size': 100}


@pytest.fixture(scope='module')
def workdir(tmp_path_factory):
    """A work folder for five simulated subjects of p3; the environment is put back."""
    known, before = select.datasets(), dict(os.environ)
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('JBENCH_DATA', raising=False)
        patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
        yield tmp_path_factory.mktemp('work')
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
def test_results_are_those_of_the_command(workdir, capsys):
    found = jbench.run('p3', 'eegnet,dummy', seeds=[33], workdir=workdir, simulated=True, changes=CHANGES)
    out, err = capsys.readouterr()
    assert out == '' and 'asked for by --simulated=yes' in err
    assert [r['model'] for r in found] == ['eegnet', 'dummy'] and {r['seed'] for r in found} == {33}
    assert {r['key']: r for r in found} == {r['key']: r for r in result_file.load_all(workdir)}
    config = found[0]['config']['task']['recipe']
    assert (config['max_epochs'], config['batch_size'], config['least_steps']) == (1, 100, 0)
    sets = [f'--set={path}={value}' for path, value in CHANGES.items()]
    flags = ['--task=p3', '--model=eegnet,dummy', '--seeds=33', '--simulated=yes', f'--workdir={workdir}', *sets]
    assert run.main([*flags, '--if_exists=fail']) == 2  # the very cells: they are finished
    assert jbench.run('p3', 'eegnet,dummy', seeds=[33], workdir=workdir, simulated=True, changes=CHANGES) == found


def test_flags_are_those_of_the_command(workdir):
    (found,) = jbench.run('p3', 'dummy', seeds=34, workdir=workdir, debug=True, exclude_bad=False, keep_weights=False)
    assert found['status'] == 'debug' and found['seed'] == 34
    known = {action.dest for action in arguments.parser()._actions}
    assert set(run.OF_PYTHON) <= known


@pytest.mark.parametrize(
    ('asked', 'words'),
    [
        ({'task': 'p4'}, "unknown task 'p4'"),
        ({'task': 'p3', 'seed': 33}, "unknown argument of jbench.run 'seed'"),
        ({'task': 'p3', 'changes': {'recipe.epochs': 3}}, 'recipe.max_epochs'),
        ({'task': 'p3', 'seeds': ['a']}, '--seeds=a: expected integers'),
        ({'task': 'p3', 'simulated': False}, 'holds no recording'),
    ],
)
def test_a_wrong_request_is_an_error(asked, words, workdir):
    with pytest.raises(RequestError) as error:
        jbench.run(**asked, workdir=workdir)
    assert words in str(error.value)


def test_data_that_are_refused_are_an_error(workdir, monkeypatch, capsys):
    def refuse(*_: object, **__: object) -> None:
        raise RequestError('these data are wrong')

    monkeypatch.setattr('jbench.stages.prepare', refuse)
    with pytest.raises(RequestError, match=r"jbench.run\('p3', 'dummy'\): no result"):
        jbench.run('p3', 'dummy', workdir=workdir)
    assert 'these data are wrong' in capsys.readouterr().err


def test_a_stop_is_a_keyboard_interrupt(workdir, monkeypatch):
    monkeypatch.setattr(run, '_stages', lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        jbench.run('p3', 'dummy', workdir=workdir)


@pytest.mark.parametrize('first', ['import jbench', 'import jbench.run', 'from jbench import run', 'import jbench.api'])
def test_the_module_of_the_command_is_callable_however_it_is_imported(first):
    code = f'{first}; import jbench; from jbench import run; print(callable(jbench.run), run is jbench.run, run.main)'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.stdout.startswith('True True <function main'), done.stderr
