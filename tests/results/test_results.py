"""Result files: the schema, damage, skipping, and scores that come back to the last digit."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from places import ROOT

from jbench import files
from jbench.results import attachment_folder, attachments, origin, result_file
from jbench.results.predictions import arrange
from jbench.results.schema import fits, mismatches, schema
from jbench.results.versions import versions
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json
from jbench.spec.model import ModelSpec
from jbench.spec.task import Classes, Labels, Task, Value, Window
from jbench.targets import score

TARGETS = {'classes': (Classes(), 'bal_acc'), 'labels': (Labels(), 'f1_score_macro'), 'value': (Value(), 'pearsonr')}


def make_cell(kind: str = 'classes', model: str = 'eegnet') -> Cell:
    target, metric = TARGETS[kind]
    task = Task(
        name='toy', category='bci', title='Toy', datasets=('Toy2026',), window=Window(), target=target, metric=metric
    )
    facts: dict[str, Any] = {'n_subjects': 4, 'n_recordings': 4, 'n_chans': 2, 'sfreq': (100.0,), 'seconds': 1.0}
    text = {'licence': 'CC0', 'citation': '-', 'host': '-', 'layout': '-'}
    return Cell(
        task=task,
        dataset=Dataset(name='Toy2026', title='Toy', source='-', **facts, **text),
        model=ModelSpec(name=model, title=model, family='user', target='-'),
    )


def make_predictions(kind: str = 'classes', n: int = 60, seed: int = 0) -> dict[str, Any]:
    """Predictions in shuffled order, somewhat better than chance, of four subjects."""
    draw = np.random.default_rng(seed)
    if kind == 'classes':
        y = draw.integers(0, 3, n)
        outputs = draw.normal(size=(n, 3)) + np.eye(3)[y]
    elif kind == 'labels':
        y = draw.integers(0, 2, (n, 4))
        outputs = draw.normal(size=(n, 4)) + y
    else:
        y = draw.normal(size=(n, 1))
        outputs = y + draw.normal(size=(n, 1))
    subject = np.array([f's{i % 4}' for i in range(n)])
    return {'id': draw.permutation(n) * 7, 'outputs': outputs, 'y': y, 'subject': subject}


def make_result(kind: str = 'classes', seed: int = 33, **changes: Any) -> dict[str, Any]:
    """Everything a caller gives; scores and digests are filled in by `write`."""
    cell = make_cell(kind)
    record = {
        'kind': 'decoding',
        'task': cell.task.name,
        'task_version': cell.task.version,
        'dataset': cell.dataset.name,
        'model': cell.model.name,
        'seed': seed,
        'status': 'done',
        'simulated': True,
        'protocol': {'suite': None, 'custom': [], 'partial': [], 'debug': False},
        'dummy': None if kind == 'value' else 0.25,
        'n_records': {'declared': None, 'prepared': 300, 'train': 180, 'valid': 60, 'test': 60, 'evaluated': 60},
        'subjects': {'train': ['s8'], 'valid': ['s9'], 'test': ['s0', 's1', 's2', 's3']},
        'split_hash': 'a' * 16,
        'prepared_hash': 'b' * 16,
        'key': cell.key,
        'config': to_json(cell),
        'pretraining': ['a set'],
        'attachments': {},
        'date': origin.date(),
        'commit': None,
        'versions': versions(),
        'devices': {'backend': 'cpu', 'count': 1, 'kind': 'cpu', 'nproc': 2},
        'machine': origin.machine(),
        'n_parameters': {'total': 1000, 'trainable': 990},
        'timings': {'prepare': 1.0, 'compile': 2.0, 'fit': 3.0, 'test': 0.5, 'total': 6.5},
        'memory': {'peak_rss_mb': 512.0},
        'resumed_at': [0],
        'history': [{'epoch': 1, 'train_loss': 1.1, 'valid_bal_acc': 0.4}],
        'warnings': [],
        'classes': ['0', '1', '2'],
        'signal': {'n_chans': 2, 'n_times': 120, 'sfreq': 120.0, 'ch_names': ['Cz', 'Pz']},
        'n_out': 3,
        'scaling': None,
    }
    return {**record, **changes}


def stored(folder: Path, kind: str = 'classes', **changes: Any) -> tuple[Path, dict[str, Any]]:
    result = result_file.write(folder, make_result(kind, **changes), make_predictions(kind))
    return folder / f'seed{result["seed"]}.json', result


def test_result_dir(tmp_path: Path) -> None:
    cell = make_cell()
    assert result_file.result_dir(tmp_path, cell) == tmp_path / 'results' / 'toy@1' / 'Toy2026' / 'eegnet' / cell.key
    odd = result_file.result_dir(tmp_path, make_cell(model='../my models/net.py:factory'))
    assert odd.relative_to(tmp_path / 'results').parts[2] == 'my_models_net.py_factory'


@pytest.mark.parametrize('kind', list(TARGETS))
def test_read_gives_what_was_written(tmp_path: Path, kind: str) -> None:
    path, result = stored(tmp_path, kind)
    assert result_file.read(path) == result
    assert result['schema'] == 3
    assert result['headline']['name'] == TARGETS[kind][1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ['seed33.json', 'seed33.npz']
    arrays, given = result_file.load_predictions(path), make_predictions(kind)
    order = np.argsort(given['id'])
    assert arrays['outputs'].dtype == np.float32
    assert arrays['id'].dtype == np.int64
    assert np.array_equal(arrays['id'], given['id'][order])
    assert np.array_equal(arrays['y'], given['y'][order])
    assert np.array_equal(arrays['subject'], given['subject'][order])


@pytest.mark.parametrize(
    ('name', 'text'), [('notes.txt', 'hello'), ('a.json', '{}'), ('seed33.json', '[]'), ('seed33.json', '{"a": 1}')]
)
def test_what_is_no_result_is_not_to_be_removed(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RequestError, match=rf'{name}: this is no result file; expected .* seed33\.json') as told:
        result_file.read(tmp_path / name)
    assert 'remove' not in str(told.value)


@pytest.mark.parametrize('kind', list(TARGETS))
def test_rescore_is_exact(tmp_path: Path, kind: str) -> None:
    path, result = stored(tmp_path, kind)
    again = result_file.rescore(path)
    assert set(again) == set(result_file.SCORES)
    assert json.dumps(again, sort_keys=True) == json.dumps({k: result[k] for k in result_file.SCORES}, sort_keys=True)
    code = f'import json, jbench.results.result_file as r; print(json.dumps(r.rescore({str(path)!r}), sort_keys=True))'
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == json.dumps(again, sort_keys=True)  # in another process too


def test_scores_are_those_of_metrics(tmp_path: Path) -> None:
    path, result = stored(tmp_path)
    arrays = result_file.load_predictions(path)
    values = score.evaluate('classes', arrays['outputs'], arrays['y'])
    assert result['metrics'] == values
    assert result['headline']['value'] == values['bal_acc']
    assert result['chance'] == 0.25
    assert result['normalised'] == (values['bal_acc'] - 0.25) / 0.75
    assert set(result['per_subject']) == {'s0', 's1', 's2', 's3'}
    low, high = result['headline']['interval']
    assert low < result['headline']['value'] < high and result['headline']['n_subjects'] == 4


def test_chance_where_the_dummy_has_no_score(tmp_path: Path) -> None:
    _, result = stored(tmp_path, 'value')
    assert result['dummy'] is None
    assert result['chance'] == 0.0
    assert result['normalised'] == result['headline']['value']
    _, other = stored(tmp_path, 'classes', dummy=None)
    assert other['chance'] is None
    assert other['normalised'] is None
    assert other['headline']['differs_from_chance'] is None


def test_always_naming_the_commonest_is_chance() -> None:
    """In a diagnosis task each subject has one class; 16 of 20 subjects ill: 'ill' is right of 0.8 of them."""
    subjects = np.repeat([f's{i:02d}' for i in range(20)], 5)
    y = np.repeat([1] * 16 + [0] * 4, 5)
    outputs = np.tile([0.0, 1.0], (100, 1))
    result = score.score('classes', 'bal_acc', {'outputs': outputs, 'y': y, 'subject': subjects}, 0.5)
    assert np.mean(list(result['per_subject'].values())) == pytest.approx(0.8)
    assert result['headline']['value'] == result['chance'] == 0.5
    assert result['headline']['differs_from_chance'] is False


def test_bytes_are_deterministic_and_order_free(tmp_path: Path) -> None:
    given, result = make_predictions(), make_result()  # one result: another would be of another second
    order = np.random.default_rng(1).permutation(60)
    shuffled = {k: np.asarray(v)[order] for k, v in given.items()}
    result_file.write(tmp_path / 'a', result, given)
    result_file.write(tmp_path / 'b', result, shuffled)
    for name in ('seed33.json', 'seed33.npz'):
        assert (tmp_path / 'a' / name).read_bytes() == (tmp_path / 'b' / name).read_bytes()


def test_arrange_refuses_what_does_not_fit() -> None:
    given = make_predictions()
    with pytest.raises(ValueError, match='length'):
        arrange({**given, 'subject': given['subject'][:-1]})
    with pytest.raises(ValueError, match='repeated'):
        arrange({**given, 'id': given['id'] // 14})


def test_outputs_that_are_not_finite_are_no_result(tmp_path: Path) -> None:
    given = make_predictions()
    given['outputs'][3] = np.nan
    with pytest.raises(ValueError, match='not finite'):
        result_file.write(tmp_path, make_result(), given)
    assert list(tmp_path.iterdir()) == []


def test_numbers_json_does_not_have_become_null_with_a_warning(tmp_path: Path) -> None:
    history = [{'epoch': np.int64(1), 'train_loss': np.float32('nan'), 'valid_bal_acc': float('inf')}]
    path, result = stored(tmp_path, history=history, warnings=['first'])
    assert result['history'] == [{'epoch': 1, 'train_loss': None, 'valid_bal_acc': None}]
    expected = 'not finite, written as null: history[0].train_loss, history[0].valid_bal_acc'
    assert result['warnings'] == ['first', expected]
    assert 'NaN' not in path.read_text()
    assert 'Infinity' not in path.read_text()


def test_undefined_scores_are_said(tmp_path: Path) -> None:
    given = make_predictions('value')
    given['y'][given['subject'] == 's2'] = 1.0  # a constant has no correlation
    result = result_file.write(tmp_path, make_result('value'), given)
    assert result['warnings'] == ['no score of their own for 1 test subjects: s2']
    given['y'][:] = 1.0
    result = result_file.write(tmp_path, make_result('value'), given)
    assert result['headline']['value'] is None
    assert 'pearsonr' in result['warnings'][0]


def test_failed_seed(tmp_path: Path) -> None:
    stored(tmp_path)
    failed = make_result(status='failed', warnings=['loss is not finite in epoch 3'])
    result = result_file.write(tmp_path, failed, None)
    path = tmp_path / 'seed33.json'
    assert result_file.read(path) == result
    assert result['headline']['value'] is None
    assert [p.name for p in tmp_path.iterdir()] == ['seed33.json']  # the old predictions are gone
    assert result_file.finished(tmp_path, 33, 'b' * 16)[0] is None
    with pytest.raises(RequestError, match='no predictions'):
        result_file.rescore(path)


def test_finished_only_on_the_same_prepared_data(tmp_path: Path) -> None:
    assert result_file.finished(tmp_path, 33, 'b' * 16) == (None, '')
    _, result = stored(tmp_path)
    assert result_file.finished(tmp_path, 33, 'b' * 16) == (result, '')
    assert result_file.finished(tmp_path, 34, 'b' * 16) == (None, '')
    found, reason = result_file.finished(tmp_path, 33, 'c' * 16)
    assert found is None
    assert 'seed33.json' in reason
    assert 'b' * 16 in reason
    assert 'c' * 16 in reason


def test_finished_not_when_damaged(tmp_path: Path) -> None:
    path, _ = stored(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    found, reason = result_file.finished(tmp_path, 33, 'b' * 16)
    assert found is None
    assert str(path) in reason
    path.write_bytes(whole)
    path.with_suffix('.npz').unlink()
    found, reason = result_file.finished(tmp_path, 33, 'b' * 16)
    assert found is None
    assert 'seed33.npz' in reason
    assert 'no such file' in reason


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def test_any_damage_is_found_and_named(tmp_path: Path) -> None:
    path, _ = stored(tmp_path)
    draw = random.Random(0)
    for target in (path, path.with_suffix('.npz')):
        whole = target.read_bytes()
        damaged = [b'', whole[:-2], whole[: len(whole) // 2], whole + b' x']
        for _ in range(100):
            bad = bytearray(whole)
            bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
            damaged.append(bytes(bad))
        for content in damaged:
            target.write_bytes(content)
            if target == path and _parsed(content) == json.loads(whole):
                continue  # 1e-05 became 1E-05
            with pytest.raises(RequestError, match=rf'{target.name}.*remove it'):
                result_file.read(path)
        target.write_bytes(whole)
    assert result_file.read(path)


def test_edited_score_is_found(tmp_path: Path) -> None:
    path, _ = stored(tmp_path)
    record = json.loads(path.read_text())
    record['headline']['value'] = 0.99
    path.write_text(json.dumps(record))
    with pytest.raises(RequestError, match='changed since written'):
        result_file.read(path)


def test_a_newer_schema_asks_for_a_newer_jbench(tmp_path: Path) -> None:
    path, result = stored(tmp_path)
    path.write_text(json.dumps({**result, 'schema': 4, 'new_field': 1}))
    with pytest.raises(RequestError, match='update jbench'):
        result_file.read(path)


def test_load_all_names_every_damaged_file(tmp_path: Path) -> None:
    assert result_file.load_all(tmp_path) == []
    folder = result_file.result_dir(tmp_path, make_cell())
    for seed in (34, 33, 35):
        stored(folder, seed=seed)
    assert [r['seed'] for r in result_file.load_all(tmp_path)] == [33, 34, 35]
    for seed in (33, 35):
        (folder / f'seed{seed}.json').write_text('{')
    with pytest.raises(RequestError) as caught:
        result_file.load_all(tmp_path)
    assert all(name in str(caught.value) for name in ('2 damaged', 'seed33.json', 'seed35.json'))


def test_published_schema_is_the_packaged_one() -> None:
    for version in (1, 2):
        jsonschema.Draft202012Validator.check_schema(schema(version))
    packaged = Path(result_file.__file__).with_name('result.schema.json').read_text()
    assert packaged == (ROOT / 'docs' / 'result.schema.json').read_text()


def test_mismatches_names_the_field() -> None:
    form = {'type': 'object', 'required': ['a'], 'additionalProperties': False}
    form['properties'] = {'a': {'type': 'array', 'items': {'type': 'integer'}}, 'b': {'enum': ['x', 1]}}
    assert list(mismatches({'a': [1, 2.0], 'b': 'x'}, form)) == []
    assert list(mismatches({'a': [1, 'y']}, form, 'r')) == ['r.a[1]: expected integer, found "y"']
    assert list(mismatches({'b': True, 'c': 0}, form)) == [
        'a: missing',
        'b: expected one of ["x", 1], found true',
        'c: no such field is known',
    ]


def test_mismatches_knows_what_one_kind_needs() -> None:
    form = {'if': {'properties': {'k': {'enum': ['a']}}}, 'then': {'required': ['x']}}
    assert list(mismatches({'k': 'a'}, form)) == ['x: missing']
    assert list(mismatches({'k': 'b'}, form)) == list(mismatches({'k': 'a', 'x': 1}, form)) == []


def _mutants(value: Any) -> list[tuple[str, Any]]:
    """The value with one place removed or replaced by each JSON type, for every place."""
    others = [None, True, 1, 1.0, 2.5, 'x', '', [], [None], {}, {'x': None}]
    found: list[tuple[str, Any]] = []

    def walk(node: Any, rebuild: Any, where: str) -> None:
        found.extend((f'{where} = {other!r}', rebuild(other)) for other in others)
        if isinstance(node, dict):
            for key in node:
                found.append((f'{where}.{key} removed', rebuild({k: v for k, v in node.items() if k != key})))
                walk(node[key], lambda new, key=key: rebuild({**node, key: new}), f'{where}.{key}')
            found.append((f'{where} + extra', rebuild({**node, 'extra': 1})))
        if isinstance(node, list):
            for i in range(len(node)):
                walk(node[i], lambda new, i=i: rebuild([*node[:i], new, *node[i + 1 :]]), f'{where}[{i}]')

    walk(value, lambda new: new, 'result')
    return found


@pytest.mark.slow
def test_own_check_agrees_with_jsonschema(tmp_path: Path) -> None:
    _, result = stored(tmp_path)
    result = {**result, 'config': {'task': 'x'}, 'warnings': ['w'], 'versions': {'numpy': '2'}}
    validator = jsonschema.Draft202012Validator(schema())
    assert validator.is_valid(result)
    assert not list(mismatches(result, schema()))
    mutants = _mutants(result)
    verdicts = []
    for name, mutant in mutants:
        theirs, ours = validator.is_valid(mutant), not list(mismatches(mutant, schema()))
        assert fits()(mutant) == ours
        assert theirs == ours, name
        verdicts.append(ours)
    assert len(mutants) > 800
    assert 0 < sum(verdicts) < len(verdicts) / 2
    for field in result:  # every field is required, and a wrong one is named
        short = {k: v for k, v in result.items() if k != field}
        assert list(mismatches(short, schema())) == [f'{field}: missing']
        wrong = copy.deepcopy({**result, field: object()})
        assert any(text.startswith(f'{field}: expected') for text in mismatches(wrong, schema()))


def test_write_refuses_what_the_schema_does_not_allow(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r'n_records\.train: expected integer.*seeds: no such field'):
        result_file.write(
            tmp_path,
            make_result(seeds=3, n_records={**make_result()['n_records'], 'train': 'many'}),
            make_predictions(),
        )
    assert list(tmp_path.iterdir()) == []


def test_versions_import_nothing_heavy() -> None:
    code = "import sys, jbench.results.versions as v; v.versions(); print({'jax', 'mne', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith('set()')
    assert {'jbench', 'python', 'numpy'} <= set(versions())


def test_embeddings_are_stored_once_for_each_stimulus_that_is_shown() -> None:
    vectors = np.arange(18.0).reshape(9, 2)
    given = {'id': [30, 10, 20], 'outputs': np.eye(3)[:, :2], 'y': np.array([5, 2, 5]), 'subject': list('abc')}
    found = arrange({**given, 'group': ['x', 'y', 'x'], 'vectors': vectors})
    assert found['id'].tolist() == [10, 20, 30] and found['group'].tolist() == ['y', 'x', 'x']
    assert found['y'].tolist() == [0, 1, 1] and (found['vectors'] == vectors[[2, 5]]).all()


# ---- what lies beside a result ----


def test_weights_are_kept_and_may_go(tmp_path: Path) -> None:
    result = result_file.write(tmp_path, make_result(), make_predictions(), b'tensors')
    path, kept = tmp_path / 'seed33.json', tmp_path / 'seed33.safetensors'
    assert kept.read_bytes() == b'tensors'
    assert result['weights'] == {'sha256': hashlib.sha256(b'tensors').hexdigest(), 'bytes': 7}
    assert result_file.read(path) == result
    kept.write_bytes(b'others!')  # as long: only who hashes the file can see it
    assert result_file.read(path) == result
    assert any(': weights: written ' in problem for problem in result_file.verify(path))
    kept.unlink()
    assert result_file.read(path) == result
    assert not any(': weights: ' in problem for problem in result_file.verify(path))
    result_file.write(tmp_path, make_result(), make_predictions(), b'tensors')
    assert result_file.write(tmp_path, make_result(), make_predictions())['weights'] is None
    assert not kept.exists()  # those of the earlier result are gone


def test_a_side_folder_belongs_to_one_result(tmp_path: Path) -> None:
    path, result = stored(tmp_path)
    assert attachments(path) == {}
    folder = attachment_folder(path, 'autopsy')
    assert folder == tmp_path / 'seed33.autopsy' / result['sha256'][:16] and not folder.exists()
    files.write_atomic(folder / 'page.html', b'')
    stored(tmp_path, seed=34)
    assert attachments(path) == {'autopsy': folder} and attachments(tmp_path / 'seed34.json') == {}
    _, other = stored(tmp_path, warnings=['another run'])
    assert other['sha256'] != result['sha256'] and attachments(path) == {}
    assert [r['seed'] for r in (result_file.read(p) for p in sorted(tmp_path.glob('seed*.json')))] == [33, 34]
    for name in ('', '../x', 'A', 'npz', 'json', 'safetensors'):
        with pytest.raises(ValueError, match='cannot name a side folder'):
            attachment_folder(path, name)


def test_a_result_of_alignment_lacks_what_only_decoding_has(tmp_path: Path) -> None:
    only = schema()['then']['required']
    given = {k: v for k, v in make_result().items() if k not in only} | {'kind': 'alignment'}
    head = {'name': 'ceiled', 'value': 0.5, 'better': 'higher', 'interval': None}
    given |= {
        'headline': head | {'differs_from_chance': None},
        'metrics': {'ceiled': 0.5},
    }
    result = result_file.write(tmp_path, given, None)
    assert result_file.read(tmp_path / 'seed33.json') == result and not set(only) & {*result}
    with pytest.raises(RequestError, match='no predictions'):
        result_file.rescore(tmp_path / 'seed33.json')
    with pytest.raises(ValueError, match='headline: missing'):
        result_file.write(tmp_path, {k: v for k, v in given.items() if k != 'headline'}, None)


# ---- only where none is ----

RACE = """
import json, os, sys, time
from pathlib import Path
import numpy as np
from jbench.results import result_file
folder, mine = Path(sys.argv[1]), json.loads(sys.stdin.read())
draw = np.random.default_rng(int(sys.argv[2]))
given = {'id': np.arange(60), 'outputs': draw.normal(size=(60, 3)), 'y': np.arange(60) % 3, 'subject': ['s'] * 60}
(folder / f'ready{sys.argv[2]}').touch()
while not (folder / 'go').exists():
    time.sleep(0.001)
result, ours = result_file.write_if_absent(folder, mine, given, b'weights of ' + sys.argv[2].encode())
print(json.dumps([result['sha256'], ours]))
"""


def test_of_writers_at_once_one_wins_and_all_see_its_result(tmp_path: Path) -> None:
    text = json.dumps(make_result())
    started = [
        subprocess.Popen([sys.executable, '-c', RACE, str(tmp_path), str(k)], stdin=-1, stdout=-1, cwd=ROOT, text=True)
        for k in range(3)
    ]
    for process in started:
        assert process.stdin
        process.stdin.write(text)
        process.stdin.close()
    while len(list(tmp_path.glob('ready*'))) < len(started):
        assert all(p.poll() is None for p in started)
        time.sleep(0.01)
    (tmp_path / 'go').touch()
    answers = [json.loads(p.stdout.read()) for p in started if p.stdout and p.wait(60) == 0]
    assert sorted(ours for _, ours in answers) == [False, False, True]
    (path,) = tmp_path.glob('*.json')
    assert {digest for digest, _ in answers} == {result_file.read(path)['sha256']}  # with the files beside it
    assert not list(tmp_path.glob('.*.part'))


def test_what_does_not_count_is_no_result_that_is_there(tmp_path: Path) -> None:
    now = origin.date()

    def put(**changes: Any) -> tuple[dict[str, Any], bool]:
        return result_file.write_if_absent(tmp_path, make_result(date=now, **changes), make_predictions())

    first, ours = put()
    assert ours and put(warnings=['a later run']) == (first, False)
    path = tmp_path / 'seed33.json'
    path.write_bytes(path.read_bytes()[:-9])  # damaged
    assert put() == (first, True)
    other, ours = put(prepared_hash='c' * 16)
    assert ours and result_file.read(path) == other
    failed = result_file.write_if_absent(tmp_path, make_result(seed=34, status='failed'), None)
    assert failed[1] and put(seed=34)[1] and result_file.read(tmp_path / 'seed34.json')['status'] == 'done'
