"""Logs of epochs and results, replayed into the trackers themselves and read back from their files."""

from __future__ import annotations

import dataclasses
import shutil
import struct

import pytest

from jbench import epochs, run
from jbench.plan import select
from jbench.report import tracking
from jbench.spec.errors import RequestError


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A work folder with a finished seed and one that was stopped after an epoch, and the result of the first."""
    workdir = tmp_path_factory.mktemp('trained')
    asked = {'seeds': [33], 'workdir': workdir, 'simulated': 'yes', 'changes': {'recipe.max_epochs': 2}}
    known = select.datasets()
    six = {'SimulatedP3': dataclasses.replace(known['SimulatedP3'], n_subjects=6, n_recordings=6)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, 'datasets', lambda: {**known, **six})
        (result,) = run.results('p3', 'eegnet', **asked)
    log = epochs.log_file(workdir, result['key'], 33)
    other = epochs.read(log)[0] | {'seed': 34}
    epochs.append(epochs.log_file(workdir, result['key'], 34), other)
    epochs.log_file(workdir, result['key'], 35).write_text('cut o')
    return workdir, result


@pytest.mark.slow
def test_a_run_has_its_epochs_and_once_it_is_done_its_scores(trained):
    workdir, result = trained
    done, stopped = tracking.runs(workdir)
    assert done.name == 'p3@2/SimulatedP3/eegnet/seed33' and done.key == f'{result["key"]}/seed33'
    assert [e['train_loss'] for e in done.epochs] == [e['train_loss'] for e in result['history']]
    assert done.scores['headline'] == result['headline']['value'] and done.facts['simulated'] == 'True'
    assert len(stopped.epochs) == 1 and stopped.scores == {}


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(RequestError, match='no log of epochs; --workdir=DIR names where networks'):
        tracking.runs(tmp_path)


def scalars(folder):
    """(tag, step, value) of the event files of a folder, by the format that TensorBoard documents."""
    from tensorboardX.proto.event_pb2 import Event

    for path in sorted(folder.glob('events*')):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (size,) = struct.unpack_from('<Q', content, at)
            event = Event.FromString(content[at + 12 : at + 12 + size])
            at += 16 + size
            yield from ((v.tag, event.step, v.simple_value) for v in event.summary.value if not v.HasField('tensor'))


@pytest.mark.slow
def test_tensorboard_gets_every_number_once_however_often_it_is_asked(trained, tmp_path):
    workdir, result = trained
    for _ in range(2):
        names = tracking.sync(workdir, 'tensorboard', tmp_path)
    assert names == ['p3@2/SimulatedP3/eegnet/seed33', 'p3@2/SimulatedP3/eegnet/seed34']
    found = list(scalars(tmp_path / names[0] / result['key']))
    losses = [(step, value) for tag, step, value in found if tag == 'train/train_loss']
    expected = [(e['epoch'], e['train_loss']) for e in result['history']]
    assert [s for s, _ in losses] == [s for s, _ in expected]
    assert [v for _, v in losses] == pytest.approx([v for _, v in expected], rel=1e-6)
    tests = {tag: value for tag, _, value in found if tag.startswith('test/')}
    assert tests['test/headline'] == pytest.approx(result['headline']['value'], rel=1e-6)
    assert not any(tag.startswith('test/') for tag, *_ in scalars(tmp_path / names[1] / result['key']))


def records(path):
    """The records of a .wandb file: a log of LevelDB (blocks of 32 KiB; check sum, length, type, part of a record)
    behind 7 bytes of wandb."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, parts = path.read_bytes(), 7, []
    while at < len(content):
        if (left := -at % 32768) and left < 7:
            at += left
            continue
        _, size, kind = struct.unpack_from('<IHB', content, at)
        parts.append(content[at + 7 : at + 7 + size])
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield Record.FromString(b''.join(parts))
            parts = []


@pytest.mark.slow
def test_wandb_gets_the_epochs_and_the_scores(trained, tmp_path, monkeypatch):
    pytest.importorskip('wandb', reason="pip install 'jbench[tracking]'")
    workdir, result = trained
    monkeypatch.setenv('WANDB_MODE', 'offline')
    tracking.sync(workdir, 'wandb', tmp_path)
    (path,) = tmp_path.glob(f'wandb/offline-run-*/run-{result["key"]}-seed33.wandb')
    found = list(records(path))
    rows = [{i.key or '/'.join(i.nested_key): i.value_json for i in r.history.item} for r in found if r.history.item]
    assert [float(r['train/train_loss']) for r in rows] == [e['train_loss'] for e in result['history']]
    summary = {i.key or '/'.join(i.nested_key): i.value_json for r in found for i in r.summary.update}
    assert float(summary['test/headline']) == result['headline']['value']
    assert len(list(tmp_path.glob('wandb/offline-run-*'))) == 2


FACTS = {'task': 'p3', 'task_version': 2, 'dataset': 'D', 'model': 'm', 'key': 'k', 'seed': 33, 'metric': 'bal_acc'}


def log(workdir, seed=33, **changes):
    """A log of one epoch."""
    path = epochs.log_file(workdir, 'k', seed)
    line = {'epoch': 0, 'train_loss': 0.5, **FACTS, **changes}
    epochs.append(path, {k: v for k, v in line.items() if v is not None})
    return path


def test_logs_that_cannot_be_read_are_told_and_the_others_replayed(tmp_path):
    log(tmp_path, 33)
    log(tmp_path, 34, task=None)
    log(tmp_path, 35, metric={})
    (tmp_path / 'epochs' / 'k' / 'seed36.jsonl').mkdir()
    (tmp_path / 'epochs' / 'k' / 'notes').mkdir()
    said = []
    (run_,) = tracking.runs(tmp_path, said.append)
    assert run_.name == 'p3@2/D/m/seed33'
    assert [text.partition('seed')[2] for text in said] == [
        '34.jsonl: its first epoch names no task; passed over',
        '35.jsonl: its first epoch names no metric; passed over',
        '36.jsonl: cannot be read: Is a directory; passed over',
    ]


@pytest.mark.slow
def test_a_result_that_is_cut_off_loses_its_scores_alone(trained, tmp_path):
    workdir, result = trained
    shutil.copytree(workdir / 'epochs', tmp_path / 'epochs')
    shutil.copytree(workdir / 'results', tmp_path / 'results')
    (path,) = tmp_path.rglob('seed33.json')
    path.write_bytes(path.read_bytes()[:1000])
    said = []
    done, _ = tracking.runs(tmp_path, said.append)
    assert done.scores == {} and len(done.epochs) == len(result['history'])
    (text,) = said
    assert text.startswith(str(path)) and text.endswith('; its run has no scores')


def test_names_from_a_log_stay_below_out(tmp_path):
    work, out = tmp_path / 'work', tmp_path / 'a' / 'b' / 'out'
    mine = tmp_path / 'a' / 'mine'
    mine.mkdir(parents=True)
    (mine / 'file').write_text('')
    log(work, task='..', task_version='..', dataset='../../..', model='..', key='../../../../../mine')
    (name,) = tracking.sync(work, 'tensorboard', out)
    assert (mine / 'file').exists() and '..' not in name.split('/')
    assert list(tmp_path.rglob('events*')) == list(out.rglob('events*')) != []
    for key in ('..', '/etc', ''):
        log(work, key=key)
        tracking.sync(work, 'tensorboard', out)
    assert list(tmp_path.rglob('events*')) == list(out.rglob('events*'))


def test_values_that_are_no_numbers_are_not_drawn(tmp_path):
    log(tmp_path, train_loss='high', best=0.5, time='now')
    tracking.sync(tmp_path, 'tensorboard', tmp_path / 'out')
    assert [(tag, v) for tag, _, v in scalars(next((tmp_path / 'out').rglob('k')))] == [('valid/best_bal_acc', 0.5)]


@pytest.mark.parametrize('out', ['/proc/x', '{tmp}/file', '{tmp}/file/below'])
def test_a_place_that_cannot_be_written_is_one_line(out, tmp_path, capsys):
    (tmp_path / 'file').write_text('')
    log(tmp_path)
    where = out.format(tmp=tmp_path)
    argv = ['report', 'sync', '--to=tensorboard', f'--workdir={tmp_path}', f'--out={where}']
    assert run.main(argv) == 2
    err = capsys.readouterr().err
    assert err.startswith(f'jbench: cannot write {where}') and err.count('\n') == 1
