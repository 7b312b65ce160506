"""`recipe.final=all`: what validation chose is repeated on training and validation windows together."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jbench import run, training
from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.models import MODELS
from jbench.plan import select
from jbench.progress import Progress, StopSignal
from jbench.results import result_file
from jbench.results.predictions import load_predictions
from jbench.spec.cell import Cell, choosing
from jbench.spec.identity import from_json
from jbench.train import fit, optim, parallel
from jbench.train.programs import Compiler, build

EPOCHS = ('--set=recipe.max_epochs=4', '--set=recipe.lr=1e-2')
BASE = ('--task=p3', '--model=eegnet', '--simulated=yes', *EPOCHS)
FINAL = '--set=recipe.final=all'


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """P3 on six simulated subjects."""
    six = {'SimulatedP3': dataclasses.replace(select.datasets()['SimulatedP3'], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)


def stored(workdir: Path, seed: int = 33) -> dict[str, Path]:
    """The results of a seed, by `recipe.final`."""
    paths = workdir.glob(f'results/*/*/*/*/seed{seed}.json')
    return {json.loads(p.read_text())['config']['task']['recipe']['final']: p for p in paths}


def by_hand(workdir: Path, result: dict[str, Any], epochs: int) -> np.ndarray:
    """Outputs on the test part after so many epochs of the recipe's schedule on all other windows."""
    cell = from_json(Cell, result['config'])
    (manifest,) = workdir.glob('prepared/*/*/manifest.json')
    chosen = prepared_set.open_set(manifest.parent, choosing(cell).task)
    data = dataclasses.replace(chosen, split=np.where(chosen.split == 'test', 'test', 'train'))
    recipe = dataclasses.replace(cell.task.recipe, final='chosen')
    train, test = (loader.Loader(data, (part,), recipe.batch_size) for part in ('train', 'test'))
    model = build(cell.model, dataclasses.replace(data.signal, ch_names=()), data.n_out)
    tx = optim.adamw(recipe, loader.n_batches(len(train), recipe.batch_size) * recipe.max_epochs)
    programs = parallel.compile_programs(model, tx, recipe, data.signal, data.n_out)
    state = parallel.new_state(programs.draw(np.uint32(result['seed'])), tx, fit.loss_weights(recipe, train))
    train.carry(programs.precompute)
    for epoch in range(epochs):
        for chunk in train.chunks(epoch):
            state, _ = programs.train(state, parallel.shard(chunk), np.int32(chunk.n))
            _['loss'].block_until_ready()
    return parallel.predict(programs, {name: state[name] for name in ('params', 'batch_stats')}, test)


@pytest.mark.slow
def test_as_many_epochs_as_validation_chose_on_both_parts(few: None, tmp_path: Path, capsys: Any) -> None:
    command = [*BASE, FINAL, '--seeds=33,34', f'--workdir={tmp_path}']
    assert run.main(command) == 0
    assert 'as many as validation chose before' in capsys.readouterr().err
    for seed in (33, 34):
        paths = stored(tmp_path, seed)
        before, final = (result_file.read(paths[name]) for name in ('chosen', 'all'))
        monitors = [epoch['monitor'] for epoch in before['history']]
        epochs = int(np.argmax(monitors)) + 1
        assert final['final'] == {'epochs': epochs, 'key': before['key'], 'sha256': before['sha256']}
        assert len(final['history']) == epochs and not any('monitor' in epoch for epoch in final['history'])
        counted = before['n_records']
        assert final['n_records'] == {**counted, 'train': counted['train'] + counted['valid'], 'valid': 0}
        assert set(final['subjects']['train']) == {*before['subjects']['train'], *before['subjects']['valid']}
        assert final['subjects']['test'] == before['subjects']['test'] and final['subjects']['valid'] == []
        assert 'recipe.final=all' in final['protocol']['custom'] and 'final' not in before
        assert not any('recipe.final' in text for text in before['protocol']['custom'])
        assert any(
            text.startswith(f'final: learnt from the training and the validation part for {epochs} epochs')
            and before['key'] in text
            and 'no validation score' in text
            for text in final['warnings']
        )
        assert result_file.verify(paths['all']) == result_file.verify(paths['chosen']) == []
    outputs = load_predictions(stored(tmp_path)['all'])['outputs']
    final = result_file.read(stored(tmp_path)['all'])
    np.testing.assert_array_equal(outputs, by_hand(tmp_path, final, final['final']['epochs']))
    kept = {path: path.read_bytes() for path in tmp_path.glob('results/**/seed*.*')}
    assert run.main(command) == 0 and kept == {path: path.read_bytes() for path in kept}
    assert 'finished before' in capsys.readouterr().err


class StopIn:
    """Asks to stop once the seed has trained so many chunks."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __call__(self, real: Any) -> Any:
        def shard(chunk: Any) -> Any:
            self.n -= 1
            return real(chunk)

        return shard


@pytest.mark.slow
@pytest.mark.parametrize('chunks', [1, 3, 5])
def test_stopped_in_either_training_it_goes_on_and_ends_alike(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int, capsys: Any
) -> None:
    """Of one chunk an epoch; the chosen epochs here are the fourth, so that the fifth chunk is of the second one."""
    whole, cut = tmp_path / 'whole', tmp_path / 'cut'
    command = [*BASE, FINAL, '--seeds=33']
    assert run.main([*command, f'--workdir={whole}']) == 0
    stop = StopIn(chunks)
    with monkeypatch.context() as change:
        change.setattr(fit, 'shard', stop(fit.shard))
        change.setattr(StopSignal, '__call__', lambda self: stop.n <= 0)
        assert run.main([*command, f'--workdir={cut}']) == 75
    before = stored(cut).get('chosen')
    assert (before is not None) == (chunks == 5)
    kept = before.read_bytes() if before else b''
    assert run.main([*command, f'--workdir={cut}']) == 0
    assert before is None or before.read_bytes() == kept
    one, other = (load_predictions(stored(at)['all']) for at in (whole, cut))
    np.testing.assert_array_equal(one['outputs'], other['outputs'])
    resumed = {name: result_file.read(path)['resumed_at'] for name, path in stored(cut).items()}
    assert bool(resumed['all']) == (chunks == 5) != bool(resumed['chosen'])


@pytest.mark.slow
def test_a_seed_that_fails_in_either_run_fails_alone(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    real = fit.fit

    def key(seed: int) -> list[int]:
        return parallel.init_state(build_like(), seed)['key'].tolist()

    def breaks(*args: Any) -> Any:
        if args[1]['key'].tolist() == key(34) or (args[1]['key'].tolist() == key(35) and args[3] is None):
            raise fit.NonFinite('for the test')
        return real(*args)

    def build_like() -> Any:
        class Nothing:
            init = staticmethod(lambda key: {})

        return Nothing()

    monkeypatch.setattr(fit, 'fit', breaks)
    assert run.main([*BASE, FINAL, '--seeds=33,34,35', f'--workdir={tmp_path}']) == 1
    said = capsys.readouterr().err
    done, first, second = (result_file.read(stored(tmp_path, seed)['all']) for seed in (33, 34, 35))
    assert first['status'] == 'failed' and 'the run that was to choose the epochs failed' in first['warnings'][-1]
    assert second['status'] == 'failed' and second['warnings'][-1] == 'for the test' and second['final']['epochs']
    assert 'seed 35: for the test' in said
    assert done['status'] == 'done' and done['final']['epochs'] == len(done['history'])
    for seed in (33, 34, 35):
        assert not [p for p in result_file.verify(stored(tmp_path, seed)['all']) if 'final' in p]


@pytest.mark.slow
def test_a_forged_number_of_epochs_is_seen(few: None, tmp_path: Path) -> None:
    assert run.main([*BASE, '--debug', FINAL, '--seeds=33', f'--workdir={tmp_path}']) == 0
    path = stored(tmp_path)['all']
    result = json.loads(path.read_text())
    for changed, words in (({'epochs': 9}, 'final.epochs: written 9'), ({'key': 'f' * 16}, 'final.key: written')):
        from jbench.results import checked
        from jbench.results.schema import as_text

        forged = {**result, 'final': {**result['final'], **changed}}
        forged['sha256'] = checked.digest(forged)
        path.write_bytes(as_text(forged))
        assert any(words in problem for problem in result_file.verify(path))


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        (['--model=dummy'], 'learns for no number of epochs'),
        (['--model=chance'], 'learns for no number of epochs'),
        (['--model=eegnet', '--set=split.folds=3'], 'not with split.folds'),
        (['--model=eegnet', '--set=recipe.few_shot=3'], 'not with recipe.few_shot'),
        (['--model=biot', '--weights=none', '--set=recipe.adaptation=two_stage'], 'not with recipe.adaptation=two_st'),
        (['--model=biot', '--weights=none', '--set=recipe.adaptation=ridge_probe'], 'not with recipe.adaptation=ridge'),
    ],
)
def test_what_has_no_number_of_epochs_is_refused_in_one_line(
    argv: list[str], words: str, tmp_path: Path, capsys: Any
) -> None:
    assert run.main(['--task=p3', '--simulated=yes', FINAL, *argv, f'--workdir={tmp_path}']) == 2
    said = capsys.readouterr().err
    assert words in said and said.count('\n') <= 2 and not list(tmp_path.glob('prepared/*'))


def test_processes_that_have_not_read_what_was_chosen_before_meet_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the seeds that choose, a process but the first knows those that are trained now."""
    cell = Cell(task=select.tasks()['p3'][-1], dataset=select.datasets()['SimulatedP3'], model=MODELS['eegnet'])
    own = {'seed': 34, 'status': 'done', 'n_records': {'train': 100}}
    monkeypatch.setattr(training, 'train', lambda *args: [own])
    monkeypatch.setattr(training.processes, 'first', lambda: False)
    monkeypatch.setattr(training.processes, 'agreed', lambda rows: np.array([[3, 100], [5, 100]]))  # of the first
    context = Context(Path('absent'), None, Progress(), StopSignal(), 'resume')
    final, _ = training._chosen(cell, (Path('absent'), 0.0), [33, 34], Compiler(), context)
    assert final.epochs == {33: 3, 34: 5}
