"""Every kind of target from recordings to result files, on tiny recordings whose answers are known."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import answers
import numpy as np
import pytest

from jbench import files, progress, stages, training
from jbench.cli import dry_run
from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.data.stimuli import embed
from jbench.metrics import keystrokes
from jbench.results import checked, result_file
from jbench.spec.errors import RequestError
from jbench.targets import score
from jbench.train import estimators, fit


@pytest.fixture(scope='module')
def context(tmp_path_factory):
    return Context(tmp_path_factory.mktemp('kinds'), None, progress.Progress(), progress.StopSignal(), 'resume')


def run(cell, context, seeds=(33,)):
    """The results of a cell, and the file of the first."""
    found = training.train(cell, stages.prepare(cell, context), list(seeds), stages.Compiler(), context)
    return found[0], result_file.result_dir(context.workdir, cell) / f'seed{seeds[0]}.json'


def assert_stored(result, path):
    """What lies there is whole, says what its predictions say, and comes out again."""
    assert result_file.read(path) == result and result_file.verify(path) == []
    assert result_file.rescore(path) == {k: result[k] for k in result_file.SCORES}


@pytest.mark.slow
def test_embeddings_are_learnt_stored_and_scored(context):
    result, path = run(answers.cell('words'), context)
    assert_stored(result, path)
    head = result['headline']
    assert (head['name'], head['level']) == ('top5_acc', 'window') and head['value'] > 0.8
    assert abs(result['chance'] - 5 / 24) < 0.03 and min(result['per_subject'].values()) > 0.6
    assert result['metrics']['window_top5_acc'] > 0.8 and len(result['per_subject']) == 2
    found = result_file.load_predictions(path)
    assert found['vectors'].shape == (24, 300) and set(found['group']) == set(answers.WORDS)
    assert found['outputs'].shape == (len(found['y']), 300) and result['n_records']['test'] == len(found['y'])


@pytest.mark.slow
def test_recordings_are_looked_at_before_their_stimuli_are_embedded(tmp_path, monkeypatch, capsys):
    """Training needs the embeddings, and says so; once they are there, the page shows them."""
    for module in (stages, embed):  # a source that needs an encoder
        monkeypatch.setattr(module, 'vectors_of', lambda dataset: None)
    at = Context(tmp_path / 'work', tmp_path, progress.Progress(), progress.StopSignal(), 'resume')
    cell = answers.cell('words')
    outcome = stages.run([cell], ['check'], [33], context=at, compiler=stages.Compiler())
    assert outcome.status == 0, capsys.readouterr().err
    assert outcome.facts[0]['target'].endswith('24 stimuli are not embedded yet, which training does (by spacy_lg)')
    assert outcome.facts[0]['windows']['windows']['train'] > 0 and Path(outcome.facts[0]['page']).exists()
    assert not (Path(outcome.facts[0]['page']).parent / 'targets.png').exists()
    assert stages.run([cell], ['prepare'], [33], context=at, compiler=stages.Compiler()).status == 2
    assert 'its stimuli need embeddings by spacy_lg' in capsys.readouterr().err
    monkeypatch.undo()
    outcome = stages.run([cell], ['check'], [33], context=at, compiler=stages.Compiler())
    assert 'embedded' not in outcome.facts[0]['target']
    assert (Path(outcome.facts[0]['page']).parent / 'targets.png').exists()


@pytest.mark.slow
def test_embeddings_are_scaled_by_the_training_part(context):
    cell = answers.cell('words')
    folder, _ = stages.prepare(cell, context)
    data = prepared_set.open_set(folder, cell.task)
    plain = embed.stored(folder, data.classes)
    rows = plain[data.y[data.rows('train')]].astype(np.float64)
    expected = (plain - rows.mean(0)) / rows.std(0)
    np.testing.assert_allclose(data.vectors, expected, rtol=1e-3, atol=1e-4)
    chunk = next(loader.Loader(data, ('test',), 32).chunks())
    np.testing.assert_array_equal(chunk.y[0], data.vectors[data.y[data.rows('test')[:32]]])


@pytest.mark.parametrize(('model', 'least'), [('cov_ts_ridge', 0.0), ('ridge', 0.0), ('dummy', None)])
def test_baselines_answer_embeddings(context, model, least):
    result, path = run(answers.cell('words', model), context)
    assert_stored(result, path)
    if least is None:
        assert result['headline']['value'] == result['chance'] and result['normalised'] == 0


@pytest.mark.parametrize('model', ['dummy', 'cov_ts_ridge'])
def test_baselines_are_fitted_on_scaled_embeddings_and_as_published_on_raw_ones(context, model):
    """Scores are against the scaled ones in either case (as in the reference, whose scaler is fitted later)."""
    means, chances = [], []
    for published in (False, True):
        cell = answers.cell('words', model, recipe__published=published)
        result, path = run(cell, context)
        assert_stored(result, path)
        data = prepared_set.open_set(stages.prepare(cell, context)[0], cell.task)
        found = result_file.load_predictions(path)
        np.testing.assert_array_equal(found['vectors'], data.vectors)
        means.append(found['outputs'].mean(0))
        chances.append(result['chance'])
        assert model != 'dummy' or result['headline']['value'] == result['chance']
    raw = embed.stored(data.folder, data.classes)[data.y[data.rows('train', 'valid')]].mean(0)
    assert np.abs(means[0]).max() < 1 < 15 < means[1].min() and chances[0] != chances[1]
    np.testing.assert_allclose(means[1], raw, rtol=1e-5 if model == 'dummy' else 0.1)


def test_an_estimator_of_ones_own_is_not_fitted_on_raw_embeddings(context, monkeypatch):
    given = []

    def watched(data):
        given.append(data)
        return lambda test: np.zeros((len(test), data.n_out))

    monkeypatch.setattr(estimators, 'factory', lambda model: watched)
    for family in ('user', 'baselines'):
        cell = answers.cell('words', 'ridge', recipe__published=True)
        cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, family=family))
        data = prepared_set.open_set(stages.prepare(cell, context)[0], cell.task)
        list(estimators.fit_estimator(cell, data, [33], context))
    np.testing.assert_array_equal(given[0].train.about['vectors'], data.vectors)
    np.testing.assert_array_equal(given[1].train.about['vectors'], data.raw_vectors)


@pytest.mark.slow
def test_the_reference_looks_at_batches_and_we_at_all_of_the_validation_part(context):
    plain, published = answers.cell('words').task, answers.cell('words', recipe__published=True).task
    assert (fit.monitor_of(plain), fit.monitor_of(published)) == ('top5_acc', 'batch_top5_acc')
    assert fit.monitor_of(answers.cell('keys').task) == 'cer'
    result, _ = run(answers.cell('words', recipe__published=True, recipe__max_epochs=3), context)
    cell = answers.cell('words', recipe__published=True, recipe__max_epochs=3)
    data = prepared_set.open_set(stages.prepare(cell, context)[0], cell.task)
    valid = loader.Loader(data, ('valid',), 32)
    outputs = data.vectors[valid.y] + np.random.default_rng(0).normal(size=(len(valid), 300)) * 30
    each = {name: fit.monitor(valid, outputs, name) for name in ('top5_acc', 'batch_top5_acc')}
    assert each == {k: score.evaluate('embedding', outputs, valid.y, data.about(valid.rows))[k] for k in each}
    assert each['top5_acc'] != each['batch_top5_acc'] and len(result['history']) == 3


@pytest.mark.slow
def test_keystrokes_are_learnt_stored_and_scored(context):
    result, path = run(answers.cell('keys'), context)
    assert_stored(result, path)
    head = result['headline']
    assert (head['name'], head['better']) == ('cer', 'lower') and head['value'] < 0.05
    assert 0.5 < result['chance'] < 1.5 and max(result['per_subject'].values()) < 0.1 and result['normalised'] > 0.9
    assert result['classes'] == ['a', 'b', 'c', '', '', '(blank)']
    found = result_file.load_predictions(path)
    assert found['outputs'].shape[1] == 64 and found['y'].shape[1] == 16
    keys = [keystrokes.decode(p).tolist() for p in found['outputs']]
    right = [k == y[y >= 0].tolist() for k, y in zip(keys, found['y'], strict=True)]
    assert np.mean(right) > 0.6


@pytest.mark.slow
def test_the_dummy_answers_keystrokes(context):
    result, path = run(answers.cell('keys', 'dummy'), context)
    assert_stored(result, path)
    assert result['headline']['value'] == result['chance']


@pytest.mark.slow
def test_scaled_values_are_learnt_and_scored_in_their_unit(context):
    """A mean of 300 and an sd of some 80: a network that learnt them as they are would not come near in 30 epochs."""
    result, path = run(answers.cell('age'), context)
    assert_stored(result, path)
    found = result_file.load_predictions(path)
    assert found['y'].mean() > 200 and result['headline']['value'] < 0.3 * result['chance']
    plain, _ = run(answers.cell('age', target__scaled=False), context)
    assert plain['headline']['value'] > result['headline']['value']
    assert plain['dummy'] == result['dummy'], 'the mean, scaled or not'


@pytest.mark.slow
def test_the_headline_of_a_subject(context):
    result, path = run(answers.cell('age', level='subject', recipe__max_epochs=2), context)
    assert_stored(result, path)
    assert result['headline']['level'] == 'subject' and result['n_records']['test'] == 120
    assert result['metrics']['mae'] != result['headline']['value']


@pytest.mark.slow
def test_other_embeddings_are_other_data(context):
    cell = answers.cell('words', recipe__max_epochs=2)
    result, _ = run(cell, context)
    assert run(cell, context)[0] == result, 'finished'
    assert dry_run.plan_cell(cell, [33], None, context.workdir)['finished'] == [33], 'a plan knows that'
    folder = stages.prepare(cell, context)[0]
    stored = files.read_npz(folder / 'stimuli.npz')
    files.write_atomic(folder / 'stimuli.npz', files.npz_bytes({**stored, 'vectors': stored['vectors'][::-1]}))
    again, _ = run(cell, context)
    assert again['prepared_hash'] != result['prepared_hash']
    (folder / 'stimuli.npz').unlink()
    with pytest.raises(RequestError, match='embeddings of the stimuli are not there'):
        prepared_set.open_set(folder, cell.task)
    assert run(cell, context)[0]['prepared_hash'] == result['prepared_hash'], 'made anew, the same bits'


@pytest.mark.parametrize(
    ('name', 'changes', 'words'),
    [
        ('words', {'recipe__sampler': 'balanced'}, "'balanced' is for classes, state, not for embedding"),
        ('keys', {'level': 'subject'}, 'not averaged over a subject'),
        ('words', {'recipe__loss': 'squared_error'}, "learnt by 'clip'"),
        ('keys', {'metric': 'acc'}, "unknown metric of keystrokes 'acc'"),
        ('keys', {'recipe__warmup': 1.0}, 'recipe.warmup'),
        ('keys', {'recipe__start_div': 0.5}, 'recipe.start_div'),
    ],
)
def test_what_does_not_fit_is_refused_at_once(name, changes, words):
    with pytest.raises(RequestError, match=words):
        answers.cell(name, **changes)


def test_results_of_before_say_no_level(context):
    """Files written before levels existed are read and rescored as those of windows."""
    result, path = run(answers.cell('age', recipe__max_epochs=1), context)
    old = json.loads(path.read_text())
    del old['headline']['level'], old['headline']['n_subjects'], old['config']['task']['level']
    old = {k: v for k, v in old.items() if k not in ('date', 'commit', 'machine', 'overlap', 'channels')}
    old['schema'], old['headline']['chance_over_subjects'] = 2, 0.0
    old['sha256'] = checked.digest({k: v for k, v in old.items() if k != 'sha256'})
    path.write_text(json.dumps(old))
    assert result_file.read(path)['headline'] == result['headline'] | {'interval': None, 'differs_from_chance': None}
    assert result_file.rescore(path)['headline']['value'] == result['headline']['value']
