"""The index: every result below some folders, lean, and why the others are left out."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from result_files import HISTORIC, make, store

from jbench.results import checked, index, result_file
from jbench.results.schema import as_text
from jbench.spec.errors import RequestError

EVERY = ('simulated', 'debug', 'partial')


def reasons(folder: Path, also: tuple[str, ...] = ()) -> list[str]:
    return [x.reason for x in index.scan([folder], also).left_out]


def test_rows_of_every_schema():
    rows, left_out = index.scan([HISTORIC], EVERY)
    assert not left_out and [Path(r.path).parts[-7] for r in rows] == [v for v in ('v1', 'v2', 'v3') for _ in '12']
    for row in rows:
        result = result_file.read(row.path)
        assert (row.value, row.split_hash) == (result['headline']['value'], result['split_hash'])
        assert row.per_subject == result['per_subject'] and row.metrics == result['metrics']
        assert (row.task, row.dataset, row.category, row.device) == ('p3', 'SimulatedP3', 'bci', 'eeg')
        assert row.simulated and row.debug and row.core and row.level == 'window'
    assert [r.interval is None for r in rows] == [True] * 5 + [False]  # the last dummy is the same on every subject
    assert [(r.model, r.family, r.model_version) for r in rows[:3]] == [
        ('dummy', 'baselines', None),
        ('eegnet', 'classic', None),
        ('dummy', 'baselines', 1),
    ]


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'simulated': True}, 'simulated: '),
        ({'status': 'failed'}, 'failed: '),
        ({'status': 'debug'}, 'debug: '),
        ({'protocol': {'debug': True}}, 'debug: '),
        ({'protocol': {'partial': ['3 of 5 recordings']}}, 'partial: 3 of 5 recordings'),
        ({'headline': {'value': None}}, 'no score: '),
        ({'kind': 'alignment'}, 'another kind of result'),
        ({'schema': 99}, 'damaged: expected schema 3, found the newer 99'),
        ({'seed': 'one'}, 'damaged: seed: expected integer, found "one"'),
        ({'model': 'reve'}, "damaged: its config cannot be read: ValueError: the result says ('p3', 2, 'Real', 'reve'"),
        ({'headline': {'better': 'lower'}}, 'damaged: its config cannot be read: ValueError: of bal_acc, the higher'),
        ({'config': {'task': {'category': 7}}}, 'damaged: its config cannot be read: TypeError'),
    ],
)
def test_what_does_not_count_is_told_and_never_fatal(changes, reason, tmp_path):
    good = store(tmp_path, seed=1)
    result = make() | changes if 'model' in changes else make(**changes)
    bad = good.with_name('seed2.json')
    bad.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    rows, left_out = index.scan([tmp_path])
    assert [r.path for r in rows] == [str(good)]
    assert [(x.path, x.reason[: len(reason)]) for x in left_out] == [(str(bad), reason)]


@pytest.mark.parametrize(
    ('old', 'new', 'reason'),
    [
        ('"value": 0.7\n', '"value": 0.8\n', 'damaged: changed since written'),
        ('"value": 0.7\n', '"value": 1e999\n', 'damaged: 1e999 is not a finite number'),
        ('"value": 0.7\n', '"value": \n', 'damaged: line '),
        ('"value": 0.7\n', '"value": 0.7\n,\n', 'damaged: line '),
        ('"model": "eegnet"', '"model": "eeg net"', 'damaged: changed since written'),
        ('"value": 0.7\n', '"value":  0.70\n\n', ''),  # the same content in another layout
    ],
)
def test_an_edited_file_is_left_out(old, new, reason, tmp_path):
    path = store(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1) if old != '"model": "eegnet"' else text.replace(old, new))
    found = index.scan([tmp_path])
    assert [x.reason[: len(reason)] for x in found.left_out] == ([reason] if reason else [])
    assert len(found.rows) == (not reason)


def test_bytes_that_are_no_text_are_left_out(tmp_path):
    store(tmp_path).write_bytes(b'\xff\x00')
    (tmp_path / 'seed3.json').mkdir()
    assert [r.partition(';')[0] for r in reasons(tmp_path)] == ['damaged: byte 0 is not UTF-8']


def test_the_quick_digest_is_that_of_the_content(tmp_path):
    odd = ['a ": b', 'a\\": b', '\n "sha256": "' + 'a' * 64 + '",', ' \u2028 é', '{"a": [1, 2]}']
    path = store(tmp_path, warnings=odd, config={'model': {'a': {'sha256': 'b' * 64, 'x"': 1e-7}}})
    assert checked.read(path)['warnings'] == odd
    result = json.loads(path.read_text())
    for layout in ({'indent': 1, 'sort_keys': True}, {'indent': 4}, {}):  # by whoever wrote the file anew
        path.write_text(json.dumps(result, **layout))
        assert checked.read(path) == result
    result['warnings'][0] = 'a": b'
    path.write_bytes(as_text(result))
    with pytest.raises(RequestError, match='changed since written'):
        checked.read(path)


def test_the_quick_digest_is_taken(monkeypatch, tmp_path):
    path = store(tmp_path)
    monkeypatch.setattr(checked, 'digest', lambda result: pytest.fail('the slow one'))
    checked.read(path)


def test_options_of_a_model_are_part_of_its_name(tmp_path):
    options = {'config': {'model': {'name': 'eegnet', 'options': [['dropout', 0.5]]}}}
    store(tmp_path, 'eegnet:dropout=0.5', **options)
    wrong = store(tmp_path, 'eegnet:dropout=0.7', **options)
    rows, left_out = index.scan([tmp_path])
    assert [(r.model, r.family) for r in rows] == [('eegnet:dropout=0.5', 'classic')]
    assert [x.path for x in left_out] == [str(wrong)]


def test_random_weights_are_part_of_the_name_of_a_model(tmp_path):
    config = {'config': {'model': {'name': 'cbramod', 'weights': 'none'}}}
    store(tmp_path, 'cbramod:weights=none', **config)
    wrong = store(tmp_path, 'cbramod', **config)
    rows, left_out = index.scan([tmp_path])
    assert [r.model for r in rows] == ['cbramod:weights=none']
    assert [x.path for x in left_out] == [str(wrong)]


def test_predictions_are_not_touched(tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    for path in tmp_path.rglob('*.npz'):
        path.write_bytes(b'')
    assert len(index.scan([tmp_path], EVERY).rows) == 2
    with pytest.raises(RequestError, match='predictions_sha256'):
        result_file.read(next(tmp_path.rglob('seed33.json')))


def test_folders_are_searched_at_any_depth_and_once(tmp_path):
    path = store(tmp_path / 'one')
    for name in ('.git', 'folds'):
        store(tmp_path / 'one' / 'results' / name)
    path.with_name('seed3.json.part').write_text('')
    path.with_name('xseed3.json').write_text('')
    (tmp_path / 'link').symlink_to(tmp_path, target_is_directory=True)
    assert index.result_paths([tmp_path, tmp_path / 'one', path.parent]) == [str(path)]
    assert index.result_paths([tmp_path / 'link']) == [str(tmp_path / 'link' / path.relative_to(tmp_path))]


def test_wrong_requests_are_one_line(tmp_path):
    with pytest.raises(RequestError, match='none: no such folder'):
        index.scan([tmp_path / 'none'])
    with pytest.raises(RequestError, match=r"unknown kind of result 'partly'; did you mean 'partial'\?"):
        index.scan([tmp_path], ['partly'])


def test_several_processes_find_the_same(monkeypatch, tmp_path):
    for seed in range(5):
        store(tmp_path, seed=seed, simulated=seed == 2)
    alone = index.scan([tmp_path])
    assert (len(alone.rows), len(alone.left_out)) == (4, 1)
    monkeypatch.setattr(index, 'MANY', 2)
    monkeypatch.setattr(index, 'SHARE', 2)
    assert index.scan([tmp_path]) == alone


def test_pipes_and_broken_links_are_told_and_links_to_files_count(tmp_path):
    path = store(tmp_path / 'kept', value=0.6)
    folder = tmp_path / 'read'
    folder.mkdir()
    (folder / 'seed1.json').symlink_to(path)
    (folder / 'seed2.json').symlink_to(tmp_path / 'none')
    os.mkfifo(folder / 'seed3.json')
    rows, left_out = index.scan([folder])
    assert [Path(r.path).name for r in rows] == ['seed1.json']
    assert [(Path(x.path).name, x.reason.partition(',')[0]) for x in left_out] == [
        ('seed2.json', 'damaged: a link to a file that is not there'),
        ('seed3.json', 'damaged: expected a file'),
    ]


def test_a_family_is_that_of_the_table(tmp_path):
    store(tmp_path, config={'model': {'family': 'foundation'}})
    assert [r.family for r in index.scan([tmp_path]).rows] == ['classic']
