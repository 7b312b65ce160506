"""The command: every flag, every kind of wrong request, exit statuses, and one small run from nothing to a table."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from safetensors.numpy import load_file

from jbench import run
from jbench.cli import arguments
from jbench.plan import select
from jbench.results import result_file
from jbench.spec import validate
from jbench.spec.errors import MissingExtraError
from jbench.spec.overrides import paths
from jbench.version import __version__

BASE = ('--task=p3', '--model=eegnet', '--debug', '--seeds=33')


class Answer(NamedTuple):
    """What a run of the command gave."""

    status: int
    out: str
    err: str


def shrink() -> None:
    """Six simulated subjects of p3, so that preparing takes a second."""
    known, p3 = select.datasets(), select.datasets()['SimulatedP3']
    small = {**known, 'SimulatedP3': dataclasses.replace(p3, n_subjects=6, n_recordings=6)}
    select.datasets = lambda: small


@pytest.fixture(scope='module')
def workdir(tmp_path_factory) -> Iterator[Path]:
    """A work folder in which one seed of p3 is finished, by the command itself; the environment is put back."""
    folder, before, datasets = tmp_path_factory.mktemp('work'), dict(os.environ), select.datasets
    for name in ('JBENCH_DATA', 'JBENCH_WORKDIR'):
        os.environ.pop(name, None)
    shrink()
    try:
        assert run.main([*BASE, f'--workdir={folder}']) == 0
        (folder / 'cell.json').write_text(json.dumps(stored(folder)[1]['config']))
        yield folder
    finally:
        select.datasets = datasets
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture()
def ask(workdir, capsys, tmp_path, monkeypatch):
    """Run the command in this process; {work} and {tmp} in arguments name folders."""
    monkeypatch.chdir(tmp_path)

    def answer(*argv: str) -> Answer:
        filled = [a.replace('{work}', str(workdir)).replace('{tmp}', str(tmp_path)) for a in argv]
        if not any(a.startswith('--workdir') for a in filled):
            filled.append(f'--workdir={workdir}')
        capsys.readouterr()
        try:
            status = run.main(filled)
        except SystemExit as leave:  # argparse ends --help so
            status = int(leave.code or 0)
        out, err = capsys.readouterr()
        return Answer(status, out, err)

    return answer


def program(*argv: str, code: str = '') -> subprocess.CompletedProcess:
    """The command in a process of its own; `code` runs it in another way."""
    start = ['-c', code] if code else ['-m', 'jbench.run']
    env = {k: v for k, v in os.environ.items() if not k.startswith('JBENCH')}
    return subprocess.run([sys.executable, *start, *argv], capture_output=True, text=True, env=env, timeout=300)


# ---- every flag ----

RECIPE = "def get():\n    return {'recipe.lr': 1e-3, 'recipe.patience': 3}\n"
FLAGS: dict[str, tuple[tuple[str, ...], int, str]] = {  # flag -> (arguments, exit status, words on stdout or stderr)
    '-h': (('-h',), 0, 'example: python -m jbench.run --task=bci --model=eegnet'),
    '--help': (('--help',), 0, '--if_exists'),
    '--task': (('--task', 'p3', '--dry_run'), 0, 'p3@2/SimulatedP3 eegnet'),
    '--model': (('--task=p3', '--model=dummy,cov_ts_lr', '--dry_run'), 0, 'p3@2/SimulatedP3 cov_ts_lr'),
    '--weights': (('--task=p3', '--model=biot', '--weights=none', '--dry_run'), 0, 'biot:weights=none'),
    '--seeds': (('--task=p3', '--seeds=1,2', '--dry_run'), 0, 'seeds          1, 2'),
    '--stage': ((*BASE, '--stage=report'), 0, 'SimulatedP3 (simulated)'),
    '--search': ((*BASE, '--search={work}/recipe.py'), 2, '--search=FILE and --stage=search go together'),
    '--trials': ((*BASE, '--stage=search', '--trials=3'), 2, '--search=FILE and --stage=search go together'),
    '--download': (
        ('--task=ssvep/kalunga2016', '--download', '--dry_run'),
        0,
        'from github.com/sylvchev/dataset-ssvep-exoskeleton, licence CC0-1.0',
    ),
    '--prepare': ((*BASE, '--prepare'), 0, 'simulated: '),
    '--data_dir': (('--info=ssvep', '--data_dir={tmp}'), 0, 'Kalunga2016Online: readable, no recordings here'),
    '--workdir': (('--task=p3', '--dry_run', '--workdir={tmp}/new'), 0, 'windows        not prepared'),
    '--simulated': (('--task=p3', '--simulated=yes', '--dry_run'), 0, 'asked for by --simulated=yes'),
    '--set': (('--task=p3', '--set', 'split.valid=0.25', '--set=recipe.lr=1', '--dry_run'), 0, 'valid = 0.25'),
    '--cell': (('--cell={work}/cell.json', '--dry_run'), 0, 'p3@2/SimulatedP3 eegnet'),
    '--config': (('--task=p3', '--config={tmp}/recipe.py', '--dry_run', '--format=json'), 0, 'SimulatedP3'),
    '--if_exists': ((*BASE, '--if_exists=fail'), 2, 'seed33.json exists (--if_exists=fail)'),
    '--keep_weights': (('--task=p3', '--keep_weights=no', '--dry_run'), 0, 'weights_bytes  0'),
    '--delete_raw_after': (
        ('--task=p3', '--delete_raw_after=prepared', '--stage=train'),
        2,
        '--stage=train: it needs a run with the stage prepare, and without check',
    ),
    '--exclude_bad': (('--task=ssvep/Kalunga2016Online', '--exclude_bad', '--data_dir={tmp}'), 2, 'holds no recording'),
    '--list': (('--list',), 0, 'eeg-core-1.0'),
    '--info': (('--info=SimulatedP3',), 0, 'recipe.lr: 0.01'),
    '--dry_run': ((*BASE, '--dry_run'), 0, 'finished       33'),
    '--verbose': (('--task=bci', '--model=eegnet,dummy', '--dry_run', '--verbose'), 0, 'p3@2/SimulatedP3 dummy'),
    '--debug': (BASE, 0, 'debug: a try, not a score'),
    '--device': (('--task=p3', '--device=abacus'), 2, "invalid choice: 'abacus'"),
    '--distributed': (('--task=p3', '--distributed', '--dry_run'), 0, 'p3@2/SimulatedP3 eegnet'),
    '--jobs': (('--task=p3', '--jobs=none'), 2, '--jobs=none: expected a number of processes'),
    '--cluster': (('--task=p3', '--cluster='), 2, '--cluster=: expected the address of a scheduler'),
    '--gpus_per_cell': (('--task=p3', '--gpus_per_cell=2'), 2, '--gpus_per_cell=2: expected a number of GPUs, from 1'),
    '--plan': ((*BASE, '--plan'), 0, '1 cells of 1 seeds, 0 sets to be prepared'),
    '--status': ((*BASE, '--status'), 0, '1 of 1 seeds done (100 %)'),
    '--version': (('--version',), 0, f'jbench {__version__}'),
    '--format': (('--list', '--format=json'), 0, '"suites": ['),
}


def test_every_flag_is_in_the_table():
    assert {f for action in arguments.parser()._actions for f in action.option_strings} == set(FLAGS)


@pytest.mark.parametrize('flag', FLAGS)
def test_flag(flag, ask, tmp_path):
    argv, status, words = FLAGS[flag]
    assert any(a.partition('=')[0] == flag for a in argv)
    (tmp_path / 'recipe.py').write_text(RECIPE)
    answer = ask(*argv)
    assert answer.status == status, answer
    assert words in answer.out + answer.err
    assert 'Traceback' not in answer.err


@pytest.mark.parametrize('flag', ['--task=p3', '--model=dummy', '--set=recipe.lr=1', '--config=x.py', '--debug'])
def test_a_cell_says_already_what_is_asked(flag, ask):
    answer = ask('--cell={work}/cell.json', flag)
    assert answer.status == 2 and f'{flag.partition("=")[0]}: the cell says that already' in answer.err


@pytest.mark.slow
def test_a_cell_as_json_gives_the_same_to_the_last_bit(ask, workdir, tmp_path):
    """From the plan or from the result, with the same key: there it is finished, elsewhere it is equal."""
    path, result = stored(workdir)
    (planned,) = json.loads(ask(*BASE, '--dry_run', '--format=json').out)['cells']
    assert planned['config'] == result['config'] and planned['key'] == result['key']
    (tmp_path / 'cell.json').write_text(json.dumps(planned['config']))
    for file in (tmp_path / 'cell.json', path):
        assert 'finished before, nothing to compute' in ask(f'--cell={file}', '--seeds=33').err
    (tmp_path / 'new').mkdir()
    (tmp_path / 'new' / 'prepared').symlink_to(workdir / 'prepared')
    assert ask(f'--cell={path}', '--seeds=33', f'--workdir={tmp_path}/new').status == 0
    other, again = stored(tmp_path / 'new')
    assert other.relative_to(tmp_path / 'new') == path.relative_to(workdir)
    assert other.with_suffix('.npz').read_bytes() == path.with_suffix('.npz').read_bytes()
    differs = {k for k in result if result[k] != again[k]}
    assert differs <= {'date', 'timings', 'memory', 'sha256'}


def test_environment_names_the_folders(monkeypatch, tmp_path):
    monkeypatch.setenv('JBENCH_DATA', str(tmp_path))
    monkeypatch.setenv('JBENCH_WORKDIR', str(tmp_path / 'w'))
    args = arguments.parse(['--task=p3'])
    assert (args.data_dir, args.workdir) == (tmp_path, tmp_path / 'w')
    args = arguments.parse(['--task=p3', '--data_dir=.', '--workdir=w'])
    assert (args.data_dir, args.workdir) == (Path('.'), Path('w'))


def test_defaults():
    args = arguments.parse(['--task=p3'])
    assert (args.model, args.seeds, args.if_exists, args.simulated) == ('eegnet', [33, 34, 35], 'resume', 'auto')
    assert args.stages == ['prepare', 'train', 'report'] and args.format == 'table' and args.device is None


# ---- wrong requests ----

WRONG = {
    'no task': ((), '--task is missing, e.g. --task=bci'),
    'flag': (('--task=p3', '--modle=eegnet'), "unknown argument '--modle'; did you mean '--model'?\n  --help lists"),
    'abbreviated flag': (('--task=p3', '--mod=eegnet'), "unknown argument '--mod'"),
    'stray word': (('--task=p3', 'eegnet'), "unknown argument 'eegnet'"),
    'flag without a value': (('--task',), 'argument --task: expected one argument'),
    'task': (('--task=p33',), "unknown task 'p33'; did you mean 'p3'"),
    'version': (('--task=p3@9',), "task 'p3' has no version '9'; it has 1, 2"),
    'dataset': (('--task=ssvep/Kalunga2015',), "did you mean 'Kalunga2016Online'"),
    'dataset of another task': (('--task=p3/Kalunga2016Online',), 'does not serve task p3'),
    'model': (('--task=p3', '--model=egnet'), "unknown model 'egnet'; did you mean 'eegnet'"),
    'option': (('--task=p3', '--set=recipe.epochs=5'), "did you mean 'recipe.max_epochs'"),
    'value': (
        ('--task=p3', '--set=recipe.max_epochs=many'),
        "--set recipe.max_epochs: got 'many', expected a whole number",
    ),
    'meaningless value': (('--task=p3', '--set=recipe.batch_size=0'), '--set recipe.batch_size: 0 must be at least 1'),
    'override without =': (('--task=p3', '--set=recipe.lr'), 'expected a field and a value'),
    'stage': (('--task=p3', '--stage=trian'), "unknown stage 'trian'; did you mean 'train'"),
    'two ways to name a stage': (('--task=p3', '--stage=train', '--prepare'), 'use one'),
    'two stages at once': (('--task=p3', '--stage=train', '--download'), 'use one'),
    'seeds': (('--task=p3', '--seeds=one'), '--seeds=one: expected integers'),
    'no seeds': (('--task=p3', '--seeds='), '--seeds=: expected integers'),
    'the same seed twice': (('--task=p3', '--seeds=1,1'), 'expected different integers'),
    'negative seed': (('--task=p3', '--seeds=-1'), 'expected different integers from 0 to 2^32 - 1'),
    'choice': (('--task=p3', '--if_exists=delete'), "invalid choice: 'delete'"),
    'data folder': (('--task=p3', '--data_dir={tmp}/absent'), '/absent: no such folder'),
    'cell': (('--cell={tmp}/absent.json',), '/absent.json: no such file; expected a cell, as --dry_run'),
    'cell that is no JSON': (
        ('--cell={tmp}/recipe.py',),
        '/recipe.py: line 1, column 1: Expecting value; expected a cell',
    ),
    'config': (('--task=p3', '--config={tmp}/absent.py'), '/absent.py: no such file; see configs/'),
    'named dataset absent': (('--task=ssvep/Kalunga2016Online',), '<data_dir>/Kalunga2016Online holds no recording'),
    'named dataset absent, where': (
        ('--task=ssvep/Kalunga2016Online', '--data_dir={tmp}'),
        '/Kalunga2016Online holds no recording; put there: subject<NN>/record-',
    ),
    'dataset that is not there': (('--task=p3/riccio2013attention',), 'what MOABB downloads'),
    'no stand-in wanted': (('--task=clinical_event', '--simulated=no'), '/Harati2015Tuev holds no recording; put'),
    'no stand-in there': (('--task=zyma_arithmetic',), 'name the folder by --data_dir=DIR or JBENCH_DATA'),
    'no stand-in to ask for': (('--task=zyma_arithmetic', '--simulated=yes'), 'has no embedded simulation'),
    'unused recipe': (
        ('--task=p3', '--model=dummy,cov_ts_lr', '--set=recipe.lr=1'),
        'unused, because dummy, cov_ts_lr',
    ),
    'unused recipe file': (('--task=p3', '--model=dummy', '--config={tmp}/recipe.py'), 'unused, because dummy'),
    'unused --simulated': (('--task=p3/SimulatedP3,ssvep/Kalunga2016Online', '--simulated=yes'), '<data_dir>/Kalunga'),
    'unused --simulated=yes': (('--task=ssvep/Kalunga2016Online', '--simulated=yes'), 'a named one is never replaced'),
    'suite': (('--task=eeg-core-1.0/sleep_onset',), "unknown task of suite 'eeg-core-1.0' 'sleep_onset'"),
    'info': (('--info=egnet',), "unknown task, dataset or model 'egnet'; did you mean 'eegnet'"),
    'trigger that no event has': (
        (*BASE, '--set=window.trigger=Foo'),
        'no recording holds an event that makes a window',
    ),
    'column that no event has': ((*BASE, '--set=split.by=foo'), "unknown column of the event table 'foo'"),
    'target that no event has': ((*BASE, '--set=target.field=foo'), "unknown column of the event table 'foo'"),
    'channel that is not there': ((*BASE, '--set=signal.picks=Foo'), 'Foo'),
    'report of nothing': (('--task=p3', '--stage=report', '--workdir={tmp}/new'), 'no results of these cells'),
}


@pytest.mark.parametrize('what', WRONG)
def test_a_wrong_request_is_one_message_and_status_2(what, ask, tmp_path):
    argv, words = WRONG[what]
    (tmp_path / 'recipe.py').write_text(RECIPE)
    answer = ask(*argv)
    assert answer.status == 2 and answer.out == ''
    messages = [line for line in answer.err.splitlines() if line.startswith('jbench: ')]
    assert len(messages) == 1 and 'Traceback' not in answer.err
    assert words in answer.err


def test_a_report_says_which_seeds_are_missing(ask, workdir):
    answer = ask(*BASE, '--seeds=33,34', '--stage=report')
    assert answer.status == 0 and 'no result of seed 34; without --stage it is computed' in answer.err
    assert answer.out.rstrip().endswith('0 of 1 cells are whole; --status says what is missing')
    assert 'cells are whole' not in ask(*BASE, '--stage=report').out


# ---- what is light, and processes of their own ----

SMALL = 'import dataclasses, sys\nfrom jbench import run\nfrom jbench.plan import select\n'
SMALL += f'{inspect.getsource(shrink)}\nshrink()\n'
LIGHT = """
import sys
from jbench import run
try:
    run.main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted({'jax', 'mne', 'numpy', 'scipy', 'rich'} & set(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    'argv', [('--help',), ('--list',), ('--list', '--format=json'), ('--info=p3',), ('--info=eegnet',), ('--task=p33',)]
)
def test_help_list_and_info_import_nothing_heavy(argv):
    done = program(*argv, code=LIGHT)
    assert done.stderr.splitlines()[-1].strip() == '', done.stderr


LEFT_OUT = {'mne', 'scipy.stats', 'scipy.signal', 'sklearn', 'pandas', 'matplotlib', 'tensorflow_datasets', 'requests'}


@pytest.mark.slow
def test_a_run_on_a_prepared_set_imports_only_what_trains(workdir):
    code = f'{SMALL}status = run.main(sys.argv[1:])\n'
    code += f'print(status, *sorted({LEFT_OUT} & set(sys.modules)), file=sys.stderr)'
    done = program(*BASE, '--if_exists=overwrite', f'--workdir={workdir}', code=code)
    assert done.stderr.splitlines()[-1] == '0', done.stderr


def test_a_list_of_real_data_imports_nothing_heavy(tmp_path):
    (tmp_path / 'Kalunga2016Online' / 'subject01').mkdir(parents=True)
    (tmp_path / 'Kalunga2016Online' / 'subject01' / 'record-[1]_raw.fif').touch()
    done = program('--list', '--format=json', f'--data_dir={tmp_path}', code=LIGHT)
    assert done.stderr.strip() == ''
    on_disk = [d['name'] for d in json.loads(done.stdout)['datasets'] if d['on_disk']]
    assert on_disk == ['Kalunga2016Online']


def test_a_reader_that_leaves_early_gets_no_traceback():
    done = subprocess.run(
        f'{sys.executable} -m jbench.run --list | head -1', shell=True, capture_output=True, text=True
    )
    assert done.stderr == '' and done.stdout.startswith('task ')


@pytest.mark.slow
def test_the_program_leaves_with_2_although_a_thread_compiles(workdir):
    argv = (*BASE, f'--workdir={workdir}', '--set=split.by=foo', '--set=recipe.grad_clip=7')
    done = program(*argv, code=SMALL + 'sys.exit(run.main())')
    assert done.returncode == 2, done.stderr
    assert "unknown column of the event table 'foo'" in done.stderr and 'terminate' not in done.stderr


@pytest.mark.slow
def test_an_interrupted_program_leaves_with_75(workdir):
    code = (
        'from jbench import stages\nfrom jbench.progress import Interrupted\n'
        'def stop(*args):\n    raise Interrupted\n'
        'stages.train = stop\nsys.exit(run.main())'
    )
    done = program(*BASE, f'--workdir={workdir}', code=SMALL + code)
    assert done.returncode == 75 and 'the same command goes on from there' in done.stderr


@pytest.mark.slow
def test_a_device_that_is_not_there(workdir):
    done = program(*BASE, f'--workdir={workdir}', '--device=tpu')
    if done.returncode == 0:
        pytest.skip('this machine has a TPU')
    assert done.returncode == 2 and '--device=tpu: jax finds no such device' in done.stderr
    assert 'Traceback' not in done.stderr


# ---- one small run ----


def stored(workdir: Path) -> tuple[Path, dict[str, Any]]:
    """The result of the run of the fixture."""
    (path,) = [
        p
        for p in workdir.glob('results/p3@2/SimulatedP3/eegnet/*/seed33.json')
        if result_file.read(p)['status'] == 'debug'
    ]
    return path, result_file.read(path)


@pytest.mark.parametrize(
    ('files', 'status', 'words'),
    [
        (['{result}'], 0, '@misc{eegnet,'),
        (['{result}', '{tmp}/none.json'], 2, 'none.json: no such file'),
        (['{tmp}/other.json'], 2, 'other.json: this is no result file'),
        (['{tmp}'], 2, 'expected a file, found a folder'),
        ([], 2, 'required: RESULT'),
        (['--help'], 0, 'BibTeX of what results rest on'),
    ],
)
def test_cite(files, status, words, workdir, tmp_path, capsys):
    (tmp_path / 'other.json').write_text('{}')
    capsys.readouterr()
    try:
        found = run.main(['cite', *(f.format(result=stored(workdir)[0], tmp=tmp_path) for f in files)])
    except SystemExit as leave:  # argparse ends --help so
        found = leave.code
    out, err = capsys.readouterr()
    assert found == status and words in (err if status else out)
    assert not status or not out


def test_the_result_says_what_it_is(workdir):
    path, result = stored(workdir)
    assert (result['task'], result['dataset'], result['model'], result['seed']) == ('p3', 'SimulatedP3', 'eegnet', 33)
    assert result['simulated'] and result['protocol']['debug'] and result['protocol']['suite'] is None
    assert result['protocol']['custom'] == []
    assert len(result['history']) == 2 and 0 <= result['headline']['value'] <= 1
    assert {k: result[k] for k in result_file.rescore(path)} == result_file.rescore(path)


def test_a_finished_seed_is_skipped(ask, workdir):
    path, _ = stored(workdir)
    before = path.stat().st_mtime_ns
    answer = ask(*BASE)
    assert answer.status == 0 and path.stat().st_mtime_ns == before
    assert 'train p3' not in answer.err and 'simulated: ' in answer.err


def test_overwrite_runs_it_again_to_the_same_score(ask, workdir):
    path, old = stored(workdir)
    before = path.stat().st_mtime_ns
    assert ask(*BASE, '--if_exists=overwrite').status == 0
    assert path.stat().st_mtime_ns > before
    assert stored(workdir)[1]['headline'] == old['headline']


def test_json_is_the_last_thing_on_stdout_and_nothing_else(ask):
    rows = json.loads(ask(*BASE, '--format=json').out)
    assert [(r['task'], r['dataset'], r['simulated'], list(r['scores'])) for r in rows] == [
        ('p3', 'SimulatedP3', True, ['33'])
    ]


def test_the_report_alone_shows_the_stored_rows(ask):
    shown = ask(*BASE, '--stage=report', '--format=json')
    assert shown.status == 0 and 'train p3' not in shown.err
    assert json.loads(shown.out) == json.loads(ask(*BASE, '--format=json').out)


def test_prepare_alone_trains_nothing_and_shows_nothing(ask, tmp_path):
    answer = ask(*BASE, '--prepare', '--seeds=7')
    assert answer.status == 0 and answer.out == '' and 'train p3' not in answer.err


def test_a_plan_knows_what_is_finished_and_how_long_the_rest_takes(ask, workdir):
    argv = ('--task=p3', '--debug', '--seeds=33,34', '--dry_run', '--format=json')
    (cell,) = json.loads(ask(*argv).out)['cells']
    _, result = stored(workdir)
    seconds = result['timings']['fit'] + result['timings']['test']
    assert (cell['finished'], cell['seeds'], cell['data']) == ([33], [33, 34], 'simulated')
    assert cell['windows'] == result['n_records']['prepared'] and cell['bytes'] > 0
    assert cell['seconds_to_go'] == pytest.approx(seconds, abs=0.06)
    (cell,) = json.loads(ask(*argv, '--if_exists=overwrite').out)['cells']
    assert cell['finished'] == []


def test_a_plan_of_many_cells_is_a_line_for_each_task(ask):
    asked = ('--task=bci', '--model=eegnet,dummy', '--seeds=33,34', '--simulated=yes', '--dry_run')
    out = ask(*asked).out
    assert 'plan: 12 cells, ' in out and 'every cell: --dry_run --verbose' in out
    lines = [line.split() for line in out.splitlines()]
    assert ['cvep@2', 'SimulatedCvep', 'simulated', '20', 'not', 'prepared', '2', '4', '0'] in lines
    assert sum(line[:1] == ['p3@2'] for line in lines) == 1 and len(lines) == 19
    (one,) = (line for line in lines if line and line[0].startswith('SimulatedCvep/'))
    assert one[1:5] == ['to', 'be', 'made,', 'about'] and one[6:] == ['MB', 'cvep@2', 'eegnet,', 'dummy']
    assert ask(*asked, '--verbose').out.count('weights_bytes') == 12
    assert len(json.loads(ask(*asked, '--format=json').out)['cells']) == 12


def test_a_plan_says_how_large_a_set_will_be_and_who_reads_it(ask, tmp_path):
    asked = ('--task=p3', '--model=eegnet,dummy', '--seeds=33', '--debug', '--dry_run', '--format=json')
    (there,), (new,) = (
        json.loads(ask(*asked, *where).out)['prepared_sets'] for where in ((), (f'--workdir={tmp_path}/new',))
    )
    assert there['bytes_expected'] is new['bytes'] is None and there['models'] == new['models'] == ['eegnet', 'dummy']
    assert 0.5 < new['bytes_expected'] / there['bytes'] < 2
    text = ask('--task=p3', '--seeds=33', '--dry_run', f'--workdir={tmp_path}/new').out
    assert f'not prepared; about {new["bytes_expected"] / 1e6:.1f} MB then' in text


def test_a_plan_says_what_will_be_refused(ask, tmp_path):
    """By the channels of the first recording, or by the windows; what is refused is not counted as to run."""
    where = ('--weights=none', '--seeds=33', '--dry_run', f'--workdir={tmp_path}/new')
    text = ask('--task=p3', '--model=cbramod,codebrain', *where).out
    assert 'plan: 2 cells, 1 seeds to run' in text and '; refused: 1 cells' in text
    assert 'refused        SimulatedP3: codebrain: no channel for O1, O2' in text
    asked = ('--task=p3', '--model=cbramod', '--set=recipe.adaptation=last_k', '--set=recipe.last_k=99')
    (cell,) = json.loads(ask(*asked, *where, '--format=json').out)['cells']
    assert cell['refused'] == '--set recipe.last_k: 99 layers, and this encoder has 12'


@pytest.mark.parametrize(
    ('model', 'words'),
    [
        ('labram', 'Fp1 as FP1, Fp2 as FP2, F3, Fz as FZ'),
        ('eegdino_small', 'P4; left out: FCz, CPz, Oz'),
        ('reve_small', 'Cz at -1 28 140 mm'),
        ('cbramod', 'all, as they come: Fp1, Fp2'),
        ('codebrain', 'refused: SimulatedP3: codebrain: no channel for O1'),
    ],
)
def test_info_of_a_model_says_which_channels_of_a_task_it_uses(model, words, ask, tmp_path):
    asked = (f'--info={model}', '--task=p3', '--simulated=yes', f'--workdir={tmp_path}')
    answer = ask(*asked)
    assert answer.status == 0, answer.err
    told = ' '.join(answer.out.partition('channels of p3@2/SimulatedP3 (simulated)')[2].split())
    assert told.startswith(words) or words in told
    facts = json.loads(ask(*asked, '--format=json').out)['channels of p3@2/SimulatedP3 (simulated)']
    assert len(facts['there']) == 16 and (facts['used'] is None) == (model in ('cbramod', 'codebrain'))
    assert not list(tmp_path.iterdir()), 'nothing is prepared'


def test_channels_of_a_task_are_told_of_models(ask):
    answer = ask('--info=p3', '--task=p3')
    assert answer.status == 2 and '--info=p3 --task=p3: --task is for models; leave it out' in answer.err


def test_a_report_without_a_task_shows_all_that_is_there(ask, tmp_path):
    answer = ask('--stage=report')
    assert answer.status == 0 and 'SimulatedP3 (simulated)' in answer.out and 'debug: a try' in answer.out
    rows = json.loads(ask('--stage=report', '--format=json').out)
    assert {(r['task'], r['model']) for r in rows} >= {('p3', 'eegnet')}
    answer = ask('--stage=report', f'--workdir={tmp_path}/new')
    assert answer.status == 2 and f'no results under {tmp_path}/new/results' in answer.err
    answer = ask('--stage=report', '--model=eegnet')
    assert answer.status == 2 and '--model needs --task' in answer.err


def test_a_result_that_is_damaged_is_told_beside_the_others(ask, workdir):
    odd = workdir / 'results' / 'p3@2' / 'SimulatedP3' / 'eegnet' / 'odd' / 'seed33.json'
    odd.parent.mkdir()
    odd.write_text('{')
    try:
        answer = ask('--stage=report')
    finally:
        shutil.rmtree(odd.parent)
    assert answer.status == 1 and str(odd) in answer.err and 'eegnet' in answer.out


def test_a_terminal_without_unicode_is_enough(workdir):
    """What it lacks becomes '?', never a traceback."""
    code = "import sys, jbench.run as r; r._main = lambda argv: print('5 µV – ±') or 0; r.program()"
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, env={**os.environ, 'PYTHONIOENCODING': 'ascii'}
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, '5 ?V ? ?\n', '')


HIDE = """
import importlib.machinery as m, sys
find = m.PathFinder.find_spec
class Hide:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition('.')[0] == 'nibabel' else find(name, path, target)
sys.meta_path[:] = [Hide if f is m.PathFinder else f for f in sys.meta_path]
"""


@pytest.mark.slow
def test_without_nibabel_a_task_that_needs_it_says_so_in_one_line(data_dir, tmp_path):
    (tmp_path / 'sitecustomize.py').write_text(HIDE)
    argv = ('--task=fmri/haxby_faces', '--model=mean_lr', f'--data_dir={data_dir}', f'--workdir={tmp_path}/work')
    env = {**os.environ, 'PYTHONPATH': os.pathsep.join((str(tmp_path), *sys.path)), 'PYTHONIOENCODING': 'ascii'}
    done = subprocess.run([sys.executable, '-m', 'jbench.run', *argv], capture_output=True, text=True, env=env)
    (line,) = (line for line in done.stderr.splitlines() if line.startswith('jbench: '))
    assert done.returncode == 2 and "needs nibabel, which is not installed: pip install 'jbench[fmri]'" in line
    assert 'Traceback' not in done.stderr


def test_a_missing_package_may_be_missed_in_another_process():
    error = MissingExtraError('nibabel', 'fmri', 'reading NIfTI')
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is MissingExtraError and str(again) == str(error)


def test_a_plan_asks_a_task_once_for_its_fields(ask, monkeypatch):
    """Not once for each range and task: that was most of the time of a plan of everything."""
    calls = []
    monkeypatch.setattr(validate, 'paths', lambda task: calls.append(1) or paths(task))
    validate.check(select.tasks()['p3'][-1])
    assert len(calls) == 1


@pytest.mark.slow
def test_a_plan_of_everything_is_short(ask, tmp_path):
    out = ask('--task=all', '--model=all', '--dry_run', f'--workdir={tmp_path}/new').out
    assert len(out.splitlines()) < 100


def test_a_plan_says_how_much_the_weights_take(ask, workdir, tmp_path):
    """Before the data are there where the specs tell the shape, then always; finished seeds do not count."""
    _, result = stored(workdir)
    (path,) = workdir.glob('results/*/*/eegnet/*/seed33.safetensors')
    kept = sum(a.nbytes for a in load_file(path).values())
    asked = ('--debug', '--model=eegnet,dummy', '--dry_run', '--format=json', '--seeds=33,34,35')
    plan = json.loads(ask('--task=p3', *asked, f'--workdir={tmp_path}/new').out)
    assert [c['weights_bytes'] for c in plan['cells']] == [3 * kept, 0] and plan['weights_bytes'] == 3 * kept
    assert kept > 4 * result['n_parameters']['total']
    assert json.loads(ask('--task=p3', *asked).out)['cells'][0]['weights_bytes'] == 2 * kept, 'one is finished'
    assert json.loads(ask('--task=p3', *asked, '--keep_weights=no').out)['weights_bytes'] == 0
    plan = json.loads(ask('--task=p3,age', *asked, f'--workdir={tmp_path}/new').out)
    assert plan['cells'][2]['weights_bytes'] is None is plan['weights_bytes'], 'of age only the data tell'
    shown = ask('--task=p3,age', *asked[:3], '--seeds=33,34,35', f'--workdir={tmp_path}/new').out
    assert f'weights to be kept: {3 * kept} bytes, and those of 1 cells' in shown
    assert 'weights_bytes  known once data are prepared' in shown


def test_a_seed_that_fails_gives_status_1_and_the_others_count(ask):
    argv = ('--task=p3', '--model=eegnet,dummy', '--debug', '--seeds=33', '--set=recipe.lr=1e30')
    answer = ask(*argv, '--format=json')
    assert answer.status == 1 and 'failed: p3/SimulatedP3 eegnet seed 33' in answer.err
    scores = {r['model']: r['scores']['33'] for r in json.loads(answer.out)}
    assert scores['eegnet'] is None and scores['dummy'] is not None


# ---- the catalogue ----


def test_the_list_as_json(ask):
    found = json.loads(ask('--list', '--format=json').out)
    fields = {
        'tasks': ['name', 'device', 'category', 'versions', 'datasets'],
        'datasets': ['name', 'access', 'licence', 'tasks', 'on_disk'],
        'models': ['name', 'family', 'n_parameters'],
        'suites': ['name', 'tasks', 'missing'],
        'benchmarks': ['identifier', 'parent', 'title'],
        'candidates': ['name', 'title'],
    }
    assert {kind: list(rows[0]) for kind, rows in found.items()} == fields
    p3 = next(t for t in found['tasks'] if t['name'] == 'p3')
    assert p3['versions'] == [1, 2] and p3['datasets'][0] == 'Schreuder2010New' and p3['datasets'][-1] == 'SimulatedP3'
    assert {d['access'] for d in found['datasets'] if d['name'].startswith('Simulated')} == {'embedded'}


INFO = {
    'p3': ('window.start             -0.2', 'Schreuder2010New: Core, ', 'SimulatedP3: recipe.lr = 0.01'),
    'eeg/p3@1': ('version                  1', 'revision                 facebookresearch/neuroai@af8ce00'),
    'age': ('doi  ', 'version: 1', 'why: the first minute was read'),
    'Hubner2016Eeg': ('10.1109/MCI.2018.2807039', 'revision', 'supersedes'),
    'kalunga2016': ('CC0-1.0', '<data_dir>/Kalunga2016Online/: subject<NN>', 'no recordings here'),
    'SimulatedSsvep': ('recipe.max_epochs: 30', 'embedded, simulated'),
    'EEGNet': ('1456', 'Lawhern', 'any, in the order in which they come'),
    'labram': ('by name; --info=labram --task=TASK',),
    'reve_base': ('by place, electrodes without one are left out',),
    'luna_base': ('by place', 'each channel of a window less its mean, over its standard deviation (n - 1)'),
    'dummy': ('estimator',),
    'eeg-core-1.0': ('missing',),
    'bci': ('cvep, mental_imagery',),
}


@pytest.mark.parametrize('name', INFO)
def test_info(name, ask):
    answer = ask(f'--info={name}')
    assert answer.status == 0 and all(words in answer.out for words in INFO[name]), answer.out
    assert json.loads(ask(f'--info={name}', '--format=json').out)['is'] in (
        'task',
        'dataset',
        'model',
        'suite',
        'category',
    )
