"""Damage, hostile files and odd machines: found and named, never computed with, and nothing of them is run.

`docs/reliability.md` lists every fault with its promise and its test.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import pickle
import random
import re
import shutil
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st
from run_whole import finish, start

from jbench import files, run
from jbench.data.load import loader, prepared_set
from jbench.data.prepare import build_set, codec
from jbench.models.baselines import classical, estimator
from jbench.plan import select
from jbench.report import table
from jbench.results import checked, older, result_file
from jbench.results.schema import SCHEMA, schema
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash
from jbench.train import checkpoint, compilation_cache

ROOT = Path(__file__).resolve().parents[1]
SEED = 7
BASE = ['--task=p3', '--debug', '--seeds=33']


@pytest.fixture(scope='module')
def ready(tmp_path_factory):
    """A work folder with the prepared set of P3 on six simulated subjects, which the command finds from then on."""
    workdir, full = tmp_path_factory.mktemp('ready'), select.datasets()
    six = dataclasses.replace(full['SimulatedP3'], n_subjects=6, n_recordings=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, 'datasets', lambda: {**full, 'SimulatedP3': six})
        assert run.main([*BASE, '--prepare', f'--workdir={workdir}']) == 0
        yield workdir


@pytest.fixture
def workdir(ready, tmp_path):
    """A copy of it."""
    return Path(shutil.copytree(ready, tmp_path / 'work'))


# ---------------------------------------------------------------------------------------------------------- the page


def rows() -> list[list[str]]:
    """Cells of the table of faults: number, fault, promise, test."""
    text = (ROOT / 'docs' / 'reliability.md').read_text()
    return [[c.strip() for c in line.strip('|').split('|')] for line in re.findall(r'^\| *\d+ *\|.*$', text, re.M)]


def test_every_fault_has_a_row_and_every_test_of_a_row_exists():
    assert [int(row[0]) for row in rows()] == list(range(1, len(rows()) + 1))
    assert len(rows()) >= 55
    for number, _, promise, test in rows():
        named = re.findall(r'`(test_\w+\.py)(?:::(\w+))?`', test)
        assert promise and (named or test.startswith('no such code yet: ')), f'row {number} names no test'
        for file, name in named:
            (source,) = (path.read_text() for path in (ROOT / 'tests').rglob(file))
            assert not name or f'def {name}(' in source, f'row {number}: {file}::{name} does not exist'


# ------------------------------------------------------------------------------------------------------------ damage


def damages(whole: bytes, rng: random.Random, n: int) -> list[bytes]:
    """Cuts and flipped bits of a file: the ends always, others by chance."""
    cuts = [b'', whole[:-1], whole[: len(whole) // 2], *(whole[: rng.randrange(len(whole))] for _ in range(n // 2))]
    flips = []
    for _ in range(n):
        bad = bytearray(whole)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        flips.append(bytes(bad))
    return cuts + flips


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    return small.prepared(tmp_path_factory.mktemp('faults'))


def test_a_damaged_set_is_never_opened(prepared, tmp_path):
    """Shards, index, manifest and TFDS metadata."""
    folder, task, rng = Path(shutil.copytree(prepared.folder, tmp_path / 'set')), small.cell().task, random.Random(SEED)
    meant = json.loads((folder / 'manifest.json').read_text())
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        for bad in damages(whole, rng, 6):
            path.write_bytes(bad)
            prepared_set._verify_once.cache_clear()
            try:
                same = path.name == 'manifest.json' and json.loads(bad) == meant  # a space became another one
            except ValueError:
                same = False
            if not same:
                with pytest.raises(RequestError, match=rf'{re.escape(path.name)}.*(damaged|missing)'):
                    prepared_set.open_set(folder, task)
        path.write_bytes(whole)
    prepared_set._verify_once.cache_clear()
    assert len(prepared_set.open_set(folder, task).y) == len(prepared.y)


def tree(value: float) -> dict[str, np.ndarray]:
    return {'w': np.full((40, 3), value, np.float32), 'step': np.int32(value)}


def test_a_damaged_save_is_named_and_passed_over(tmp_path):
    said, rng, folder = [], random.Random(SEED), tmp_path / 'c'
    checkpoint.save(folder, 3, tree(1.0), {'epoch': 1})
    found = checkpoint.restore(folder, tree(0.0), lambda facts: True, said.append)
    assert found is not None and found[1] == {'epoch': 1} and not said
    np.testing.assert_array_equal(found[0]['w'], tree(1.0)['w'])
    for path in sorted(p for p in (folder / '3').rglob('*') if p.is_file()):
        whole = path.read_bytes()
        for bad in [*damages(whole, rng, 2), b'[1]', b'{}', None]:
            if bad == whole:
                continue
            path.unlink() if bad is None else path.write_bytes(bad)
            said.clear()
            assert checkpoint.restore(folder, tree(0.0), lambda facts: True, said.append) is None, path
            assert len(said) == 1 and 'not used' in said[0], path
        path.write_bytes(whole)
    said.clear()
    (folder / '4').mkdir()  # a save that did not end
    (folder / '5.orbax-checkpoint-tmp').mkdir()
    found = checkpoint.restore(folder, tree(0.0), lambda facts: True, said.append)
    assert found is not None and said == [f'{folder}/4: not used (the save did not end)']
    other = {'w': np.zeros((2, 2), np.float32)}
    assert checkpoint.restore(folder, other, lambda facts: True, said.append) is None
    assert 'it does not fit' in said[-1]
    checkpoint.save(folder, 3, tree(2.0), {'epoch': 2})  # never over an older one
    assert [p.name for p in folder.iterdir()] == ['5']


def test_a_save_that_fails_keeps_the_last_whole_one(tmp_path, monkeypatch):
    checkpoint.save(tmp_path / 'c', 3, tree(1.0), {})

    def full(path, data):
        raise OSError(28, os.strerror(28))

    for module, name, broken in (
        (files, 'write_atomic', full),
        (files, 'sha256_file', lambda path: full(path, b'')),
        (shutil, 'disk_usage', lambda path: type('', (), {'free': 0})),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, broken)
            with pytest.raises(RequestError, match=r'cannot write .*/c/9 \(\d+ bytes needed\): No space left'):
                checkpoint.save(tmp_path / 'c', 9, tree(2.0), {})
        assert [p.name for p in (tmp_path / 'c').iterdir()] == ['3']
    assert checkpoint.restore(tmp_path / 'c', tree(0.0), lambda facts: True) is not None


def test_words_of_a_library_about_a_full_disk_are_understood(tmp_path):
    for error in (ValueError('x: No space left on device [28]'), RuntimeError('x; File too large')):
        words = r'cannot write .*/f \(5 bytes needed\): .*; free space there'
        with pytest.raises(RequestError, match=words), files.explained(tmp_path / 'f', 5):
            raise error
    with pytest.raises(ValueError, match='shape'), files.explained(tmp_path / 'f', 5):
        raise ValueError('shape')


def test_a_damaged_compiled_program_is_removed_before_jax_sees_it(tmp_path, monkeypatch):
    monkeypatch.setenv('JAX_COMPILATION_CACHE_DIR', str(tmp_path))
    said: list[str] = []
    with compilation_cache.kept(tmp_path, said.append) as seal:
        for name in 'abc':
            (tmp_path / f'{name}-cache').write_bytes(random.Random(name).randbytes(500))
        seal()
        (tmp_path / 'd-cache').write_bytes(b'sealed at the end')
    whole = {p: p.read_bytes() for p in tmp_path.glob('*-cache')}
    assert len(whole) == 4
    for bad in damages(whole[tmp_path / 'b-cache'], random.Random(SEED), 10):
        for path, content in whole.items():
            path.write_bytes(content)
            compilation_cache._digest(path).write_text(files.sha256_file(path))
        (tmp_path / 'b-cache').write_bytes(bad)
        (tmp_path / 'e-cache').write_bytes(b'its process was killed')
        with compilation_cache.kept(tmp_path, said.append):
            assert sorted(p.name for p in tmp_path.glob('*-cache')) == ['a-cache', 'c-cache', 'd-cache']
    assert said == []
    with compilation_cache.kept(tmp_path, said.append), warnings.catch_warnings(record=True):
        for _ in range(2):
            warnings.warn("Error writing persistent compilation cache entry for 'f': OSError: full", stacklevel=1)
        (tmp_path / 'f-cache').write_bytes(b'half')
    monkeypatch.setenv('JAX_COMPILATION_CACHE_DIR', str(tmp_path / 'other'))
    (tmp_path / 'g-cache').write_bytes(b'of the user')
    with compilation_cache.kept(tmp_path, said.append):
        pass
    assert (tmp_path / 'g-cache').exists()


def test_a_failed_write_of_a_compiled_program_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv('JAX_COMPILATION_CACHE_DIR', str(tmp_path))
    said: list[str] = []
    with compilation_cache.kept(tmp_path, said.append):
        for _ in range(2):
            warnings.warn("Error writing persistent compilation cache entry for 'f': OSError: full", stacklevel=1)
        (tmp_path / 'f-cache').write_bytes(b'half')
    assert said == ['compiled programs are not kept (OSError: full): the next run compiles them again']
    assert not list(tmp_path.iterdir())


def test_a_lock_file_holds_nothing_that_could_be_damaged(tmp_path):
    (tmp_path / 'lock').write_bytes(random.Random(SEED).randbytes(99))
    with files.locked(tmp_path / 'lock'):
        pass
    (tmp_path / 'folder').mkdir()
    with (
        pytest.raises(RequestError, match=r'cannot write .*/folder: Is a directory'),
        files.locked(tmp_path / 'folder'),
    ):
        pass


@pytest.mark.slow
def test_a_damaged_result_does_not_hide_the_others(workdir, capsys):
    assert run.main([*BASE, '--model=dummy,cov_ts_lr', f'--workdir={workdir}']) == 0
    bad, good = sorted(workdir.glob('results/*/*/*/*/seed33.json'))
    bad.with_suffix('.npz').write_bytes(b'PK')
    named: list[str] = []
    assert [r['model'] for r in result_file.load_all(workdir, damaged=named.append)] == [good.parts[-3]]
    assert len(named) == 1 and str(bad.with_suffix('.npz')) in named[0]
    capsys.readouterr()
    assert run.main([*BASE, '--model=dummy,cov_ts_lr', '--stage=report', f'--workdir={workdir}']) == 1
    said = capsys.readouterr()
    assert str(bad.with_suffix('.npz')) in said.err and good.parts[-3] in said.out
    assert run.main([*BASE, '--model=dummy,cov_ts_lr', f'--workdir={workdir}']) == 0, 'a rerun makes it anew'
    assert len(result_file.load_all(workdir)) == 2


@pytest.mark.slow
def test_noise_in_place_of_the_test_windows_changes_nothing_before_the_test(prepared, tmp_path):
    """What a network and an estimator are fitted on."""
    folder, task, rng = (
        Path(shutil.copytree(prepared.folder, tmp_path / 'set')),
        small.cell().task,
        np.random.default_rng(0),
    )
    manifest = json.loads((folder / 'manifest.json').read_text())
    del manifest['digest']
    for r in manifest['recordings']:
        if r['subject'] in prepared.subjects[prepared.rows('test')]:
            shape, path = (prepared.signal.n_chans, prepared.signal.n_times), folder / r['shard']
            noise = (rng.normal(size=shape).astype(np.float32) for _ in range(r['n_windows']))
            text = dict.fromkeys(('subject', 'session', 'run', 'target'), '')
            codec.write_shard(path, (codec.encode_window(x, k, text) for k, x in enumerate(noise)), 0)
            manifest['files'][path.name] = {'bytes': path.stat().st_size, 'sha256': files.sha256_file(path)}
    files.write_atomic(folder / 'manifest.json', json.dumps({**manifest, 'digest': spec_hash(manifest)}).encode())
    noisy = prepared_set.open_set(folder, task)
    for name, equal in (('train', True), ('valid', True), ('test', False)):
        a, b = (next(loader.Loader(s, (name,), 64).chunks(0)) for s in (prepared, noisy))
        assert np.array_equal(a.x[: a.n], b.x[: b.n]) == equal, name
        np.testing.assert_array_equal(a.y, b.y)
    answers = []
    for s in (prepared, noisy):
        rows = s.rows('train'), s.rows('valid'), s.rows('train', 'valid')
        parts = [estimator.Labelled(prepared_set.View(s, r), s.y[r]) for r in rows]
        predict = classical.cov_ts_lr(estimator.Training(*parts, s.kind, s.n_out, s.signal, 'bal_acc', False))
        answers.append(predict(prepared_set.View(prepared, prepared.rows('test'))))
    np.testing.assert_array_equal(*answers)


# ---------------------------------------------------------------------------------------------------- handed-in results


HISTORIC = sorted((ROOT / 'tests' / 'historic_results').rglob('seed*.json'))


@pytest.mark.parametrize('path', HISTORIC, ids=lambda p: '-'.join((p.parts[-7], p.parts[-3])))
def test_results_of_every_schema_load_and_rescore(path):
    result = result_file.read(path)
    assert result_file.rescore(path) == {k: result[k] for k in result_file.SCORES}
    assert result_file.verify(path) == []
    assert set(schema()['required'] + schema()['then']['required']) == set(result)  # of the newest, in all
    (row,) = table.rows([result])
    assert row['model'] == result['model'] and row['scores'] == {'33': result['headline']['value']}


def test_what_schema_1_did_not_know_is_said_so():
    old = next(p for p in HISTORIC if p.parts[-7] == 'v1')
    stored, result = json.loads(old.read_text()), result_file.read(old)
    new = {k: v for k, v in result.items() if k not in stored}
    known = {'kind': 'decoding', 'weights': None, 'pretraining': [], 'resumed_at': [], 'attachments': {}}
    assert new == known | dict.fromkeys(('signal', 'n_out', 'scaling', 'date', 'commit', 'machine'))
    assert {k: v for k, v in stored.items() if k not in result} == {'resumes': 0} and result['schema'] == 1
    assert older.raised({**stored, 'resumes': 2})['resumed_at'] == [None, None]


def test_every_schema_has_a_historic_result():
    assert {p.relative_to(ROOT / 'tests/historic_results').parts[0] for p in HISTORIC} == {
        f'v{k + 1}' for k in range(SCHEMA)
    }


def nan(arrays):
    arrays['outputs'][3, 0] = np.nan


def other_subject(arrays):
    arrays['subject'][:5] = 'S99'


def fewer(arrays):
    for k in arrays:
        arrays[k] = arrays[k][:-1]


FORGED = {  # a change of the result, or of its predictions, with every digest made to fit again; what is named
    'score': (lambda r: r['headline'].update(value=0.99), r': headline: written .*0\.99.*, expected '),
    'main score': (lambda r: r['headline'].update(name='auroc'), r': headline: written '),
    'other metric': (lambda r: r['metrics'].update(acc=1.0), ': metrics: written '),
    'config': (lambda r: r['config']['task'].update(metric='no_such'), 'scores cannot be computed'),
    'no config': (lambda r: r.update(config={}), 'scores cannot be computed'),
    'recipe': (lambda r: r['config']['task']['recipe'].update(lr=1.0), ': key: written '),
    'key': (lambda r: r.update(key='0' * 16), ': key: written .*'),
    'seed': (lambda r: r.update(seed=34), 'belongs at .*/seed34.json'),
    'model': (lambda r: r.update(model='better'), 'belongs at .*/better/'),
    'task': (lambda r: r.update(task='p300'), ': task: written p300, expected p3'),
    'words of the protocol': (lambda r: r['protocol'].update(debug=False), ': (protocol|key): written '),
    'not simulated': (lambda r: r.update(simulated=False), ': simulated: written False, expected True'),
    'more windows': (lambda r: r['n_records'].update(evaluated=9999), ': n_records: written '),
    'no predictions': (lambda r: r.update(predictions_sha256=None), 'holds no predictions'),
    'newer schema': (lambda r: r.update(schema=9), 'update jbench'),
    'unknown field': (lambda r: r.update(x=1), 'x: no such field is known'),
    'NaN in predictions': (nan, 'scores cannot be computed.*finite'),
    'other subjects': (other_subject, ': subjects: written '),
    'fewer predictions': (fewer, ': n_records: written '),
}


ONLY_NOW = {  # as FORGED, of fields that schema 1 has not
    'kind': (lambda r: r.update(kind='alignment'), ': kind: written alignment, expected decoding'),
    'pretraining': (lambda r: r.update(pretraining=['x']), r": pretraining: written \['x'\], expected \[\]"),
    'version of the model': (lambda r: r['config']['model'].update(version=9), ': key: written '),
    'weights of the model': (lambda r: r['config']['model'].update(weights='a'), ': key: written '),
    'other model': (lambda r: r['config']['model'].update(name='x'), ': model: written eegnet, expected x'),
    'no model': (lambda r: r['config'].pop('model'), 'scores cannot be computed'),
}


@pytest.mark.parametrize(
    ('schema', 'name'), [*((v, n) for v in ('v1', 'v2') for n in FORGED), *(('v2', n) for n in ONLY_NOW)]
)
def test_a_forged_result_is_refused_in_words(schema, name, tmp_path):
    source = next(p for p in HISTORIC if 'eegnet' in p.parts and p.parts[-7] == schema)
    path = tmp_path.joinpath(*source.parts[-6:])
    shutil.copytree(source.parent, path.parent)
    result, (change, words) = json.loads(path.read_text()), (FORGED | ONLY_NOW)[name]
    if change in (nan, other_subject, fewer):
        arrays = result_file.load_predictions(path)
        change(arrays)
        path.with_suffix('.npz').write_bytes(files.npz_bytes(arrays))
        result['predictions_sha256'] = files.sha256_file(path.with_suffix('.npz'))
    else:
        change(result)
    result['sha256'] = checked.digest(result)
    path.write_text(json.dumps(result))
    assert re.search(words, '\n'.join(result_file.verify(path))), result_file.verify(path)


# ------------------------------------------------------------------------------------------------------- hostile files


@pytest.mark.slow
def test_nothing_here_unpickles_or_runs_what_it_reads():
    """By the source: no eval, no shell; files are run where --config, --task or --model names one. Pickles of arrays
    alone are read (THINGS-EEG2); encoders of stimuli and pickled weights are torch's, which reads weights only."""
    forbidden = {'pickle', 'dill', 'cloudpickle', 'joblib', 'marshal', 'shelve', 'yaml', 'torch'}
    calls = {'eval', 'exec', 'compile_command', 'system', 'popen', 'run_path', 'run_module', 'allow_pickle'}
    found = set()
    for path in sorted((ROOT / 'jbench').rglob('*.py')):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name.split('.')[0] for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            names += [(node.module or '').split('.')[0]] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, n) for n in forbidden & set(names)}
            if isinstance(node, ast.Call):
                name = getattr(node.func, 'attr', getattr(node.func, 'id', ''))
                keys = [k.arg for k in node.keywords if getattr(k.value, 'value', None) is True]
                found |= {(path.name, n) for n in (name, *keys) if n in calls or n == 'shell'}
    run = {('user_files.py', 'run_path'), ('user_model.py', 'exec')}
    torch = {('torch_encoders.py', 'torch'), ('torch_encoders.py', 'eval')}  # a method that stops dropout
    torch |= {('pretrained.py', 'torch')}  # with weights_only=True: tests/models/test_pretrained.py has a payload
    torch |= {('tensors.py', 'torch'), ('tensors.py', 'eval')}  # of a module that the caller has
    # archives for challenges are torch alone; the trial of one runs it in a process of its own, where it is unpacked
    torch |= {('twins.py', 'torch'), ('decoder.py', 'torch'), ('submission2025.py', 'torch'), ('trial.py', 'torch')}
    torch |= {('submission2025.py', 'eval'), ('solver.py', 'eval'), ('trial.py', 'eval')}
    assert found == run | torch | {('things_eeg2.py', 'pickle')}


CANARY = 'import os\nopen(os.environ["CANARY"], "a").write(__file__ + "\\n")\nraise ImportError("canary")\n'
MODULES = 'argparse numpy jax mne pickle multiprocessing threading rich orbax sitecustomize conftest get'.split()


class Bomb:
    """Writes the canary file when it is unpickled."""

    def __reduce__(self):
        return os.system, ('echo pickle >> "$CANARY"',)


@pytest.mark.slow
@pytest.mark.parametrize('program', ['python -m jbench.run', 'jbench'])
def test_what_lies_in_the_folders_is_never_run(program, tmp_path):
    """Modules and pickles in the current folder, the work folder and the data folder."""
    folders = [tmp_path / 'here', tmp_path / 'work', tmp_path / 'data', tmp_path / 'data' / 'Kalunga2016Online']
    own = ['jbench'] if program == 'jbench' else []  # `python -m jbench.run` runs the jbench that lies here, by design
    for folder in folders:
        folder.mkdir()
        for name in MODULES + own:
            (folder / f'{name}.py').write_text(CANARY)
        (folder / 'x.npy').write_bytes(pickle.dumps(Bomb()))
    subject = folders[3] / 'subject01'
    subject.mkdir()
    for name in ('record-[2012.07.06-19.02.16]_raw.fif', 'record-[2012.07.06-19.02.16]-eve.fif', 'x.mat'):
        (subject / name).write_bytes(pickle.dumps(Bomb()))
    env = {k: v for k, v in os.environ.items() if not k.startswith(('JBENCH', 'PYTHON'))}
    env |= {'CANARY': str(tmp_path / 'canary'), 'NPROC': '2', 'PYTHONPATH': str(ROOT)}
    command = [sys.executable, '-m', 'jbench.run'] if own == [] else [str(Path(sys.executable).with_name('jbench'))]
    argv = ['--task=ssvep/Kalunga2016Online', '--prepare', '--data_dir=../data', '--workdir=../work']
    done = subprocess.run([*command, *argv], cwd=folders[0], env=env, capture_output=True, text=True, timeout=120)
    assert not (tmp_path / 'canary').exists(), (tmp_path / 'canary').read_text()
    assert done.returncode == 2, done.stderr
    assert 'must be readable' in done.stderr or 'recordings' in done.stderr
    assert 'Traceback' not in done.stderr


def test_an_archive_cannot_take_more_memory_than_its_size(tmp_path):
    path = tmp_path / 'x.npz'
    np.savez_compressed(path, a=np.zeros(10**7))
    with pytest.raises(RequestError, match=r'x\.npz: not a whole NPZ archive \(compressed'):
        files.read_npz(path)
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }"
    for header in (head % 10**15, head % 10**30, b'\x93NUMPY\x01\x00\xff\xff', pickle.dumps(Bomb()), b'PK'):
        with zipfile.ZipFile(path, 'w') as archive:
            archive.writestr('a.npy', header.ljust(127) + b'\n')
        with pytest.raises(RequestError, match=r'x\.npz: not a whole NPZ archive'):
            files.read_npz(path)


HOSTILE = ('../../x', 'os:system', '/etc/passwd', '..', '~', 'p3/../../x', 'jbench.run', '$(touch x)', '\0')
NAMES = st.one_of(st.text(max_size=30), st.sampled_from(HOSTILE))


@given(NAMES)
@settings(max_examples=150, deadline=None)
def test_a_name_finds_what_is_in_the_tables_or_is_refused(name):
    """Names of tasks, datasets and models are looked up; none is imported, opened or joined to a path."""
    select.tasks(), select.datasets()  # the tables are loaded
    before = set(sys.modules)
    for find in (select.select_tasks, select.select_models, select.find_dataset):
        try:
            find(name)
        except RequestError:
            continue
        assert name not in HOSTILE and '..' not in name
    assert set(sys.modules) == before


@given(NAMES, NAMES, NAMES)
@settings(max_examples=100, deadline=None)
def test_a_result_stays_in_the_work_folder(task, dataset, model):
    plain = small.cell()
    cell = Cell(
        task=dataclasses.replace(plain.task, name=task),
        dataset=dataclasses.replace(plain.dataset, name=dataset),
        model=dataclasses.replace(plain.model, name=model),
    )
    path = result_file.result_dir('/work', cell)
    assert Path(os.path.normpath(path)) == path and len(path.parts) == 7 and path.parts[:3] == ('/', 'work', 'results')


def test_links_in_the_folders(tmp_path, data_dir):
    """A link to nothing is named; a circle of links ends; a link in the work folder is replaced, not followed."""
    kalunga = tmp_path / 'data' / 'Kalunga2016Online'
    shutil.copytree(data_dir / 'Kalunga2016Online' / 'subject01', kalunga / 'subject01')
    (kalunga / 'circle').symlink_to(kalunga)
    task, dataset = select.tasks()['ssvep'][-1], select.datasets()['Kalunga2016Online']
    folder, refs = build_set.locate(task, dataset, tmp_path / 'data', tmp_path / 'work')
    assert len(refs) == 1
    raw = next(p for p in (kalunga / 'subject01').iterdir() if '_raw' in p.name)
    raw.rename(tmp_path / 'gone')
    raw.symlink_to(tmp_path / 'nowhere')
    folder, refs = build_set.locate(task, dataset, tmp_path / 'data', tmp_path / 'work')
    assert folder is not None
    with pytest.raises(RequestError, match=re.escape(raw.name)):
        build_set.prepare(task, dataset, folder, refs, lambda *facts: None)
    (tmp_path / 'secret').write_text('kept')
    (tmp_path / 'x.json').symlink_to(tmp_path / 'secret')
    files.write_atomic(tmp_path / 'x.json', b'{}')
    assert (tmp_path / 'secret').read_text() == 'kept' and not (tmp_path / 'x.json').is_symlink()


# --------------------------------------------------------------------------------------------------------- odd machines


def exhaust(*args):
    return jax.numpy.zeros(1 << 45).block_until_ready()  # 128 TiB: a real RESOURCE_EXHAUSTED


@pytest.mark.parametrize('broken', [exhaust, lambda *args: np.zeros(1 << 55)])
def test_memory_that_runs_out_is_said_in_one_line(broken, workdir, monkeypatch, capsys):
    monkeypatch.setattr('jbench.models.baselines.estimator.dummy', broken)
    assert run.main([*BASE, '--model=dummy', f'--workdir={workdir}']) == 1
    said = capsys.readouterr().err
    assert re.search(
        r'failed: p3/SimulatedP3 dummy: memory ran out; .* recipe\.batch_size=N, below 64, or, .*microbatch=N; the',
        said,
    )
    assert 'Traceback' not in said
    assert len(list(workdir.glob('errors/*.log'))) == 1
    assert not list(workdir.glob('results/*/*/*/*/*.json'))


def test_a_log_that_cannot_be_written_stops_nothing(workdir, monkeypatch, capsys):
    def broken(*args):
        raise ZeroDivisionError('for the test')

    monkeypatch.setattr('jbench.models.baselines.estimator.dummy', broken)
    (workdir / 'errors').write_text('a file, not a folder')
    assert run.main([*BASE, '--model=dummy,cov_ts_lr', f'--workdir={workdir}']) == 1
    said = capsys.readouterr().err
    assert re.search(r'dummy: ZeroDivisionError: for the test; cannot write \S+/errors/\S+\.log: ', said)
    assert [r['model'] for r in result_file.load_all(workdir)] == ['cov_ts_lr']


@pytest.mark.slow
@pytest.mark.skipif(not Path('/dev/full').exists(), reason='needs /dev/full')
def test_full_disks_behind_stdout_and_stderr(ready, workdir):
    flags = [*BASE, '--model=dummy']
    with open('/dev/full', 'w') as full:
        assert start(workdir, *flags, stdout=subprocess.DEVNULL, stderr=full).wait(300) == 0
        status, err = finish(start(workdir, *flags, stdout=full))
    assert status == 2
    assert 'jbench: cannot write the output: No space left on device' in err
    assert 'Traceback' not in err
    assert len(result_file.load_all(workdir)) == 1
