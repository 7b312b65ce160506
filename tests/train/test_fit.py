"""Training: the selection of the best epoch, early stopping, interruption, and equality over devices."""

from __future__ import annotations

import json

import chex
import jax
import numpy as np
import pytest
import small

from jbench import progress
from jbench.data.load import loader
from jbench.models import MODELS
from jbench.models.baselines import estimator
from jbench.targets import score
from jbench.train import checkpoint, fit, optim, parallel
from jbench.train.programs import build


@pytest.fixture(scope='module')
def setting(tmp_path_factory):
    """Data and compiled programs; chunks of three batches, so that an epoch has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, 'CHUNK_BATCHES', 3)
        data, recipe = small.prepared(tmp_path_factory.mktemp('fit')), small.cell().task.recipe
        parts = [loader.Loader(data, (name,), recipe.batch_size) for name in ('train', 'valid', 'test')]
        model = build(MODELS['eegnet'], data.signal, data.n_out)
        programs = parallel.compile_programs(model, optim.adamw(recipe, 1), recipe, data.signal, data.n_out)
        yield {'parts': parts, 'programs': programs, 'model': model}


def begin(s, recipe, seed=33):
    """The state before the first step."""
    train = s['parts'][0]
    tx = optim.adamw(recipe, loader.n_batches(len(train), recipe.batch_size) * recipe.max_epochs)
    return parallel.new_state(s['programs'].draw(np.uint32(seed)), tx, fit.loss_weights(recipe, train))


def run(s, watch=None, parts=None, seed=33, **recipe):
    recipe = small.cell(**recipe).task.recipe
    train, valid, _ = parts or s['parts']
    return fit.fit(s['programs'], begin(s, recipe, seed), train, valid, recipe, 'bal_acc', watch or fit.Watch())


def leaves(tree):
    return [np.asarray(a) for a in jax.tree.leaves(tree)]


def assert_same(a, b):
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.slow
def test_learning_brings_the_loss_down_and_keeps_the_best_epoch(setting):
    found = run(setting)
    losses, monitors = ([h[k] for h in found.history] for k in ('train_loss', 'monitor'))
    assert len(losses) == 3
    assert losses[-1] < losses[0] - 0.02
    assert found.best_epoch == int(np.argmax(monitors)), 'the first of the best'
    best = parallel.predict(setting['programs'], found.variables, setting['parts'][1])
    assert score.evaluate('classes', best, setting['parts'][1].y)['bal_acc'] == max(monitors)


def test_the_same_seed_gives_the_same_bits(setting):
    assert_same(run(setting).variables, run(setting).variables)


class StopAfter:
    """Asks to stop at the n-th question."""

    def __init__(self, n):
        self.n = n

    def __call__(self):
        self.n -= 1
        return self.n < 0


@pytest.mark.parametrize('after', [0, 1, 2, 3, 5, 7])
def test_an_interrupted_fit_goes_on_bit_for_bit(tmp_path, setting, after):
    s, whole = setting, run(setting)
    machine = {'a': 1}
    epochs: list[dict] = []
    with pytest.raises(progress.Interrupted):
        run(s, fit.Watch(epochs.append, stop=StopAfter(after), folder=tmp_path / 'c', machine=machine))
    found = run(s, fit.Watch(folder=tmp_path / 'c', machine=machine))
    assert_same(found.variables, whole.variables)
    assert found.history == whole.history
    assert (found.resumed_at, found.best_epoch) == ([len(epochs)], whole.best_epoch)


@pytest.mark.slow
def test_a_checkpoint_of_another_machine_or_damaged_is_not_used(tmp_path, setting):
    for damage in ('machine', 'flip', 'cut', 'empty'):
        folder = tmp_path / damage
        with pytest.raises(progress.Interrupted):
            run(setting, fit.Watch(stop=StopAfter(3), folder=folder, machine={'a': 1}))
        step = next(p for p in folder.iterdir() if p.name.isdigit())
        files = sorted(
            (p for p in step.rglob('*') if p.is_file() and p.name != checkpoint.DIGESTS), key=lambda p: p.stat().st_size
        )
        content = bytearray(files[-1].read_bytes())
        if damage == 'flip':
            content[len(content) // 2] ^= 1
            files[-1].write_bytes(content)
        elif damage == 'cut':
            files[-1].write_bytes(content[:-10])
        elif damage == 'empty':
            (folder / '999999').mkdir()
        machine = {'a': 2} if damage == 'machine' else {'a': 1}
        found = run(setting, fit.Watch(folder=folder, machine=machine))
        assert len(found.resumed_at) == (1 if damage == 'empty' else 0), damage
        assert_same(found.variables, run(setting).variables)


class Fixed:
    """A monitor that takes given values."""

    def __init__(self, values):
        self.values = iter(values)

    def __call__(self, kind, outputs, y, about):
        return {'bal_acc': next(self.values)}


@pytest.mark.parametrize(
    ('monitor', 'best', 'epochs'),
    [
        ([0.5, 0.6, 0.6, 0.6, 0.7, 0.7], 1, 4),  # equal is not better; two epochs of patience
        ([0.5, None, 0.9, 0.9, 0.9, 0.9], 0, 2),  # an undefined monitor ends the run
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 5, 6),
    ],
)
def test_early_stopping_counts_epochs_without_strict_improvement(setting, monkeypatch, monitor, best, epochs):
    monkeypatch.setattr(fit.score, 'evaluate', Fixed(monitor))
    found = run(setting, max_epochs=6, patience=2)
    assert (found.best_epoch, len(found.history)) == (best, epochs)


@pytest.mark.parametrize(
    ('recipe', 'epochs'),
    [
        ({}, (6, 0, 2)),
        ({'least_steps': 41}, (6, 5, 2)),  # epochs of ten steps
        ({'least_steps': 61}, (7, 7, 2)),
        ({'patience_steps': 25}, (6, 0, 3)),
        ({'patience_steps': 9}, (6, 0, 2)),
    ],
)
def test_what_is_said_in_steps_is_whole_epochs_and_the_longer_counts(recipe, epochs):
    assert fit.length(small.cell(max_epochs=6, patience=2, **recipe).task.recipe, 10) == epochs


@pytest.mark.parametrize(
    ('steps', 'monitor', 'best', 'epochs'),
    [
        ({'least_steps': 4}, [0.5, 0.4, 0.4, 0.6, 0.4, 0.4, 0.4], 3, 6),  # not before four, then as ever
        ({'least_steps': 7}, [0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4], 0, 7),
        ({'patience_steps': 3}, [0.5, 0.4, 0.4, 0.6, 0.4, 0.4], 3, 6),
        ({'least_steps': 6, 'patience_steps': 6}, [0.5, None, 0.9, 0.9, 0.9, 0.9], 0, 2),
    ],
)
def test_early_stopping_waits_for_steps(setting, monkeypatch, steps, monitor, best, epochs):
    train, *_ = setting['parts']
    a_step = loader.n_batches(len(train), small.cell().task.recipe.batch_size)  # so an epoch is one of these
    monkeypatch.setattr(fit.score, 'evaluate', Fixed(monitor))
    found = run(setting, max_epochs=6, patience=2, **{name: n * a_step for name, n in steps.items()})
    assert (found.best_epoch, len(found.history)) == (best, epochs)


@pytest.mark.parametrize(('took', 'wait'), [(0.0, 60.0), (0.5, 60.0), (12.0, 240.0), (300.0, 600.0)])
def test_saves_take_a_small_share_of_the_time(took, wait, monkeypatch):
    monkeypatch.setattr(fit.time, 'monotonic', lambda: 1000.0)
    assert fit.next_save(1000.0 - took) == 1000.0 + wait


def test_a_training_takes_its_first_state_over(setting):
    """No second copy of weights and moments is kept (of BENDR two gigabytes)."""
    drawn = begin(setting, small.cell().task.recipe)
    train, valid, _ = setting['parts']
    fit.fit(setting['programs'], drawn, train, valid, small.cell(max_epochs=1).task.recipe, 'bal_acc', fit.Watch())
    assert taken(drawn)


def taken(state):
    """Whether nothing holds the memory of weights and optimizer."""
    leaves = jax.tree.leaves((state['params'], state['opt']))
    return all(a.is_deleted() for a in leaves if isinstance(a, jax.Array))


def test_a_training_that_goes_on_lets_go_of_its_first_state(setting, tmp_path):
    recipe, (train, valid, _) = small.cell(max_epochs=1).task.recipe, setting['parts']
    for _ in range(2):
        drawn = begin(setting, recipe)
        watch = fit.Watch(folder=tmp_path, save_end=True)
        found = fit.fit(setting['programs'], drawn, train, valid, recipe, 'bal_acc', watch)
        assert taken(drawn)
    assert found.resumed_at == [1]


def test_a_loss_that_is_no_number_fails_the_seed(setting):
    with pytest.raises(fit.NonFinite, match=r'epoch.*a lower recipe\.lr'):
        run(setting, lr=1e38)


def test_answers_that_are_no_numbers_fail_the_seed(setting, tmp_path, monkeypatch):
    """Also where a training goes on that was over when it was saved."""
    monkeypatch.setattr(fit, 'predict', lambda programs, variables, valid, guard: np.full((len(valid), 4), np.nan))
    for _ in range(2):
        with pytest.raises(fit.NonFinite, match=r'answers are no numbers or all alike \(a lower recipe\.lr'):
            run(setting, fit.Watch(folder=tmp_path, save_end=True))
        assert list(tmp_path.iterdir())
        monkeypatch.setattr(fit, 'shard', None)  # it takes no step again


@pytest.mark.slow
def test_shuffled_labels_end_at_chance_and_true_ones_do_not(setting):
    """Means over three seeds of the score on one test subject (96 windows)."""
    rng, data = np.random.default_rng(0), setting['parts'][0].prepared
    scores = {False: [], True: []}
    for shuffled in scores:
        parts = [loader.Loader(data, (n,), 64) for n in ('train', 'valid', 'test')]
        for p in parts:
            p.y = rng.permutation(p.y) if shuffled else p.y
        for seed in (33, 34, 35):
            found = run(setting, parts=parts, seed=seed, max_epochs=15, patience=15)
            outputs = parallel.predict(setting['programs'], found.variables, parts[2])
            scores[shuffled].append(score.evaluate('classes', outputs, parts[2].y)['bal_acc'])
    assert abs(np.mean(scores[True]) - 0.5) < 0.1
    assert np.mean(scores[False]) > 0.6


@pytest.mark.slow
def test_the_step_is_traced_once_and_serves_every_batch(setting, monkeypatch):
    chex.clear_trace_counter()
    data, recipe = setting['parts'][0].prepared, small.cell().task.recipe
    once = chex.assert_max_traces(parallel.train_step, n=1)
    monkeypatch.setattr(parallel, 'train_step', once)
    programs = parallel.compile_programs(setting['model'], optim.adamw(recipe, 1), recipe, data.signal, data.n_out)
    found = run(
        {**setting, 'programs': programs, 'parts': [loader.Loader(data, (n,), 64) for n in ('train', 'valid', 'test')]}
    )
    assert len(found.history) == 3


def test_chance_is_a_network_that_saw_one_batch_and_learned_nothing(setting):
    start = begin(setting, small.cell().task.recipe)
    variables = fit.warm_batch_stats(setting['programs'], start, setting['parts'][0])
    assert_same(variables['params'], start['params'])
    changed = [
        not np.array_equal(a, b)
        for a, b in zip(leaves(variables['batch_stats']), leaves(start['batch_stats']), strict=True)
    ]
    assert any(changed)


def test_the_dummy_names_the_most_frequent_class():
    part = estimator.Labelled(np.zeros((5, 1, 1)), np.array([1, 1, 0, 1, 2]))
    predict = estimator.dummy(estimator.Training(part, part, part, 'classes', 3, None, 'bal_acc', False))
    assert list(predict(np.zeros((2, 1, 1))).argmax(1)) == [1, 1]


def test_history_survives_json():
    course = fit.Course(loss=0.1 + 0.2, best=1 / 3, history=[{'epoch': 0, 'train_loss': 1 / 7, 'monitor': 2 / 3}])
    assert fit.Course(**json.loads(json.dumps(course.__dict__))) == course
