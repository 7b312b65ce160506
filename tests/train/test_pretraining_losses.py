"""Losses of pretraining against loops in NumPy, alone and over several devices."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.data.load.sampling import moments, require_answers
from jbench.metrics import contrast
from jbench.models.model import Answer, Model, features
from jbench.plan import select
from jbench.plan.request import Request, plan
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.overrides import override
from jbench.spec.recipe import Recipe
from jbench.spec.task import Next
from jbench.spec.validate import check
from jbench.targets import contrast as targets
from jbench.train import hiding, losses

TEMPERATURE = 0.3


def batch(n: int = 16) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Four viewers at moments of which some are seen by one alone; the last rows are padding."""
    rng = np.random.default_rng(0)
    y = np.stack([rng.integers(0, 5, n), rng.integers(0, 4, n)], 1).astype(np.int32)
    y[0] = (9, 0)  # nobody else saw it
    return rng.normal(size=(n, 6)).astype(np.float32), {'y': y, 'mask': np.arange(n) < n - 2}


def on_devices(loss, outputs, given, n: int = 1) -> tuple[np.ndarray, np.ndarray, float]:
    """Loss and weight of each row, and gradients of the mean over rows that count, as a step has them."""
    split = {k: jnp.asarray(v).reshape(n, -1, *v.shape[1:]) for k, v in {'z': outputs, **given}.items()}

    def share(z, rest):
        values, weight = loss(z, rest, jnp.ones(1), TEMPERATURE)
        total = jax.lax.psum(jnp.where(rest['mask'], weight, 0).sum(), losses.AXIS)
        return jnp.where(rest['mask'], values, 0).sum() / total, (values, weight)

    step = jax.vmap(jax.value_and_grad(share, has_aux=True), axis_name=losses.AXIS)
    (_, (values, weight)), grads = step(split.pop('z'), split)  # each row of one device: no sum is left to take
    return tuple(np.asarray(a).reshape(len(outputs), -1) for a in (values, weight, grads))


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.slow
def test_info_nce_is_what_a_loop_says() -> None:
    outputs, given = batch()
    found, weight, _ = on_devices(losses.info_nce, outputs, given)
    z, (moment, viewer), mask = unit(outputs.astype(float)), given['y'].T, given['mask']
    counted = 0
    for i in np.flatnonzero(mask):
        wrong = [np.exp(z[i] @ z[j] / TEMPERATURE) for j in np.flatnonzero(mask) if moment[j] != moment[i]]
        costs = []
        for j in np.flatnonzero(mask):
            if moment[j] == moment[i] and viewer[j] != viewer[i]:
                right = np.exp(z[i] @ z[j] / TEMPERATURE)
                costs.append(-np.log(right / (right + sum(wrong))))
        assert weight[i, 0] == bool(costs)
        np.testing.assert_allclose(found[i, 0], np.mean(costs) if costs else 0, rtol=1e-5)
        counted += bool(costs)
    assert weight[0, 0] == 0 and counted > 8


@pytest.mark.slow
def test_the_next_window_is_what_a_loop_says() -> None:
    outputs, given = batch()
    given['y'] = np.stack([np.repeat([0, 1], 8), np.tile(np.arange(8), 2)], 1).astype(np.int32)
    found, weight, _ = on_devices(losses.next_window, outputs, given)
    says, holds = unit(outputs[:, :3].astype(float)), unit(outputs[:, 3:].astype(float))
    (recording, place), there = given['y'].T, np.flatnonzero(given['mask'])
    for i in there:
        scores = {j: np.exp(says[i] @ holds[j] / TEMPERATURE) for j in there if j != i}
        after = [j for j in scores if recording[j] == recording[i] and place[j] == place[i] + 1]
        assert weight[i, 0] == len(after) == (place[i] < 7 and i != 13)
        expected = -np.log(scores[after[0]] / sum(scores.values())) if after else 0
        np.testing.assert_allclose(found[i, 0], expected, rtol=1e-5, atol=1e-7)


def whole(signal: Signal) -> Model:
    """A network that shows the windows that it is given."""

    def apply(variables, given, *, train, key):
        return Answer(given['x'].reshape(len(given['x']), -1), {}, {'penultimate': given['x']})

    return Model(lambda key: {'params': {}, 'batch_stats': {}}, apply)


def test_features_are_of_whole_windows_in_batches_of_any_size() -> None:
    signal = Signal(n_chans=5, n_times=40, sfreq=20.0)
    x = np.random.default_rng(1).normal(size=(6, 5, 40)).astype(np.float32)
    compute = features(hiding.hiding(whole(signal), signal, Recipe(loss='reconstruction')), 'penultimate')
    for size in (1, 2, 6):
        found = [np.asarray(compute({}, part)['penultimate']) for part in np.split(x, range(size, 6, size))]
        np.testing.assert_array_equal(np.concatenate(found), x)


@pytest.mark.slow
@pytest.mark.parametrize('more', [{'hide_times': 0.97}, {'hide_channels': 0.97}, {'hide_patch': 1.99}])
def test_something_of_a_window_is_hidden_and_something_seen(more: dict[str, float]) -> None:
    recipe = Recipe(loss='reconstruction', **more)
    for n_chans in (1, 4):
        hidden = hiding.drawn(jax.random.PRNGKey(0), Signal(n_chans=n_chans, n_times=40, sfreq=20.0), recipe)
        assert hidden.any() and (hidden.all() == ('hide_patch' in more)), more


def masked() -> tuple[Recipe, np.ndarray, np.ndarray, np.ndarray]:
    """Windows, what a network that answers 1 to all that it sees 0 of would say, and what is hidden."""
    signal = Signal(n_chans=5, n_times=40, sfreq=20.0)
    recipe = Recipe(loss='reconstruction', hide_times=0.5, hide_patch=0.25, hide_channels=0.2)
    x = np.random.default_rng(1).normal(size=(7, 5, 40)).astype(np.float32)

    def apply(variables, given, *, train, key):
        seen = given['x'].reshape(len(given['x']), -1)
        return Answer(jnp.where(seen == 0, 0.5, 100.0), {})

    network = Model(lambda key: {'params': {}, 'batch_stats': {}}, apply)
    made = hiding.hiding(network, signal, recipe)
    given = {'x': jnp.asarray(x), 'y': jnp.arange(7)[:, None], 'mask': jnp.ones(7, bool)}
    base = jax.random.PRNGKey(0)
    hidden = np.stack([hiding.drawn(jax.random.fold_in(base, n), signal, recipe) for n in range(7)])
    return recipe, x, np.asarray(made.apply({}, given, train=False, key=None).outputs), hidden


@pytest.mark.slow
def test_the_masked_loss_is_what_a_loop_says() -> None:
    recipe, x, sums, hidden = masked()
    loss, weight = losses.of(recipe)(jnp.asarray(sums), {}, jnp.ones(1))
    for row in range(len(x)):
        errors = [(x[row, c, t] - 0.5) ** 2 for c in range(5) for t in range(40) if hidden[row, c, t]]
        np.testing.assert_allclose(loss[row], np.mean(errors), rtol=1e-5)
    assert (weight == 1).all()
    found = contrast.hidden(sums.astype(float).sum(0))
    true = x[hidden].astype(float)
    np.testing.assert_allclose(found['hidden_r2'], 1 - ((true - 0.5) ** 2).mean() / true.var(), rtol=1e-4)


@pytest.mark.slow
def test_patches_of_all_channels_and_whole_channels_are_hidden() -> None:
    *_, hidden = masked()
    for one in hidden:
        assert one.all(1).sum() == 1, 'a fifth of the channels'
        patches = one[~one.all(1)]
        assert (patches == patches[0]).all() and (patches[0].reshape(8, 5).all(1).sum()) == 4, 'half of the patches'
    assert len({one.tobytes() for one in hidden}) > 1


@pytest.mark.slow
@pytest.mark.parametrize('loss', ['info_nce', 'next_window'])
@pytest.mark.parametrize('n_devices', [2, 4])
def test_several_devices_are_one_in_value_and_gradient(loss: str, n_devices: int) -> None:
    outputs, given = batch()
    one, several = (on_devices(getattr(losses, loss), outputs, given, n) for n in (1, n_devices))
    for found, expected in zip(several, one, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert np.abs(one[2]).max() > 0.01 and not one[2][~given['mask']].any(), 'rows of padding change nothing'


def test_every_batch_has_moments_to_be_told_from() -> None:
    seen = np.stack([np.repeat(np.arange(20), 9), np.tile(np.arange(9), 20)], 1)
    for size in (4, 8, 64):
        for batch in np.split(moments(seen, 0, size), range(size, len(seen) // size * size, size)):
            assert len({*seen[batch, 0].tolist()}) > 1
    with pytest.raises(RequestError, match='no two people'):
        moments(np.stack([np.arange(9), np.arange(9)], 1), 0, 4)


def test_people_come_equally_often_and_each_with_several_moments() -> None:
    """In full batches, of viewers of one whole film; none is another one's in the long run."""
    seen = np.stack([np.repeat(np.arange(120), 18), np.tile(np.arange(18), 120)], 1)
    drawn = [seen[moments(seen, epoch, 64)] for epoch in range(30)]
    counts = np.bincount(np.concatenate(drawn)[:, 1])
    assert len(counts) == 18 and np.abs(counts / counts.mean() - 1).max() < 0.15
    for size in (4, 8, 64):
        for batch in np.split(seen[moments(seen, 0, size)], range(size, len(seen), size)):
            viewers, n = np.unique(np.unique(batch, axis=0)[:, 1], return_counts=True)
            assert len(viewers) == min(8, size // 2) and ((n >= 2).all() or len(batch) < size)


def test_what_one_person_alone_saw_is_in_no_batch_and_changes_no_draw() -> None:
    seen = np.stack([np.repeat(np.arange(120), 18), np.tile(np.arange(18), 120)], 1)
    assert moments(seen, 0, 8)[:8].tolist() == [787, 790, 781, 776, 2101, 2104, 2095, 2090], 'as they always were'
    alone = [(1000 + 100 * who + k, who) for who in range(20) for k in range(50)]  # two of them saw nothing else
    drawn = moments(np.concatenate([seen, alone]), 0, 64)
    assert len(drawn) == len(seen) + len(alone)
    np.testing.assert_array_equal(drawn[: len(seen) // 64 * 64], moments(seen, 0, 64)[: len(seen) // 64 * 64])
    for part in np.split(seen[drawn], range(64, len(drawn), 64)):
        assert len({*part[:, 1].tolist()}) > 1


def test_a_validation_part_that_asks_nothing_is_refused_and_its_people_are_named() -> None:
    """One viewer; recordings of one window each. A part without windows (recipe.final=all) validates nothing."""
    y, people = np.stack([np.arange(5), np.zeros(5, int)], 1), np.repeat('sub-07', 5)
    with pytest.raises(RequestError, match=r"no window of the validation part \('sub-07'\) .* another person"):
        require_answers('moment', y, people)
    require_answers('moment', np.concatenate([y, [[4, 1]]]), np.append(people, 'sub-08'))
    with pytest.raises(RequestError, match=r"no window of the validation part \('sub-07'\) .* comes after it"):
        require_answers('next', y, people)
    require_answers('next', y[:, ::-1], people)
    require_answers('classes', np.zeros(5, int), people)
    require_answers('moment', y[:0], people[:0])


def test_places_are_counted_from_the_first_window_of_each_recording() -> None:
    raw = [['a', f'{k + 0.5:.2f}'] for k in range(4)] + [['b', f'{k:.2f}'] for k in range(2, 4)]
    y = targets.encode_next(Next(), raw, None).y
    np.testing.assert_array_equal(y, [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]])


@pytest.mark.parametrize(
    ('name', 'path', 'value', 'told'),
    [
        ('next', 'window.stride', 1.0, 'shares no sample'),
        ('masked', 'recipe.adaptation', 'probe', 'features of whole windows'),
        ('masked', 'recipe.mask_channels', 0.2, 'zero in the signal that is to be put back'),
        ('masked', 'recipe.hide_times', 1.0, 'must be at least 0 and below 1'),
        ('masked', 'recipe.hide_patch', 2.0, 'hides all of a window of 2 s'),
        ('movies', 'recipe.batch_size', 1, 'are answers of each other'),
        ('next', 'recipe.batch_size', 1, 'are answers of each other'),
        ('movies', 'window.stride', 0.05, 'to a tenth of a second'),
        ('movies', 'window.stride', 0.25, 'to a tenth of a second'),
        ('movies', 'window.start', 0.05, 'to a tenth of a second'),
    ],
)
def test_what_would_see_the_answer_or_has_none_is_refused(name: str, path: str, value: object, told: str) -> None:
    ((task, _),) = select.select_tasks(f'pretrain/{name}')
    check(task)
    with pytest.raises(RequestError, match=rf'--set {path}.*{told}'):
        check(override(task, path, value))


@pytest.mark.parametrize(
    ('name', 'change', 'told'),
    [
        ('masked', ('recipe.temperature', '0.5'), 'unused with recipe.loss=reconstruction; it is for info_nce'),
        ('movies', ('recipe.hide_times', '0.3'), 'unused with recipe.loss=info_nce; it is for reconstruction'),
    ],
)
def test_a_field_of_the_other_loss_alone_is_refused(name: str, change: tuple[str, str], told: str) -> None:
    asked = Request(f'pretrain/{name}', 'eegnet', simulated='yes', changes=(change,))
    with pytest.raises(RequestError, match=rf'--set {change[0]}: {change[1]} is {told}'):
        plan(asked, None, Path('absent'))


@pytest.mark.parametrize('stride', [None, 0.1, 0.3, 0.7, 1.0, 2.0])
def test_moments_of_any_tenth_of_a_second_are_taken(stride: float | None) -> None:
    ((task, _),) = select.select_tasks('pretrain/movies')
    check(override(task, 'window.stride', stride))


def test_what_comes_next_shares_a_rank_with_all_that_is_the_same() -> None:
    """Wherever it lies among them: the encoder says the same of all windows."""
    rng = np.random.default_rng(0)
    for n in range(3, 30):
        outputs = np.tile(rng.normal(size=32), (n, 1))
        ranks, asked = contrast.following(outputs, np.zeros(n, int), np.arange(n))
        assert ranks.tolist() == [(n - 2) / 2] * (n - 1) and asked.tolist() == list(range(n - 1))
