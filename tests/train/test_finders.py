"""Finders: the rate of each step is what it says, the rule finds what a curve was made to show, memory grows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import small

from jbench.context import Context
from jbench.models import MODELS
from jbench.progress import Progress, StopSignal
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override
from jbench.spec.task import Recipe
from jbench.train import batch_finder, lr_finder, optim


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return small.prepared(tmp_path_factory.mktemp('finders'))


@pytest.fixture()
def context(tmp_path: Path) -> Context:
    return Context(tmp_path, None, Progress(), StopSignal(), 'skip')


# ---- learning rate ----


@pytest.mark.slow
@pytest.mark.parametrize('steps', [0, 1, 7])
def test_a_step_has_the_rate_that_it_is_given(steps: int) -> None:
    """AdamW at a constant rate with the lowest beta1, as optax has it, whatever the schedule was; from any step on."""
    recipe = Recipe(weight_decay=0.1, grad_clip=1e9)
    tx, params = optim.adamw(recipe, 50), {'w': jnp.asarray([1.0, -2.0, 0.5])}
    state = tx.init(params)
    rates = [1e-3, 3e-2, 2e-4, 1e-1, 1e-2, 5e-3, 1e-3, 2e-3]
    other = optax.inject_hyperparams(optax.adamw)(learning_rate=1.0, b1=optim.BETA1_LOW, weight_decay=0.1)
    mine, theirs, kept = params, params, other.init(params)
    for rate in rates[: steps + 1]:
        grads = {'w': jnp.sin(3 * mine['w'])}
        updates, state = tx.update(grads, optim.at_rate(state, rate), mine)
        kept.hyperparams['learning_rate'] = jnp.asarray(rate)
        wanted, kept = other.update({'w': jnp.sin(3 * theirs['w'])}, kept, theirs)
        np.testing.assert_allclose(updates['w'], wanted['w'], rtol=2e-4)
        mine, theirs = optax.apply_updates(mine, updates), optax.apply_updates(theirs, wanted)


def made(noise: float = 0.0, centre: float = -3.0) -> list[dict[str, Any]]:
    """A curve that falls around 10^centre from 1 to 0.4, and rises from 10^-1 on."""
    rates = np.geomspace(lr_finder.LOWEST, lr_finder.HIGHEST, lr_finder.STEPS)
    decades = np.log10(rates)
    losses = 1 - 0.6 / (1 + np.exp(-4 * (decades - centre))) + 2 * np.maximum(decades + 1, 0) ** 2
    return lr_finder.smoothed(rates, losses + noise * np.random.default_rng(0).standard_normal(len(rates)))


@pytest.mark.parametrize('centre', [-4.5, -3.0, -2.0])
def test_the_rule_finds_the_steepest_fall(centre: float) -> None:
    """Within a fifth of a decade; with noise of batches within half of one."""
    for noise, within in ((0.0, 0.2), (0.03, 0.5)):
        value, words = lr_finder.choose(made(noise, centre))
        assert value is not None and abs(np.log10(value) - centre) < within
        assert 'the smoothed loss is' in words[0]


def test_smoothing_lags_to_no_side() -> None:
    """A line in the logarithm of the rate stays one, away from its ends."""
    rates = np.geomspace(1e-5, 1.0, 200)
    rows = lr_finder.smoothed(rates, np.log10(rates))
    np.testing.assert_allclose([r['smoothed'] for r in rows[40:-40]], np.log10(rates)[40:-40], atol=1e-3)


@pytest.mark.parametrize(
    ('losses', 'words'),
    [([0.7] * 50, 'which shows nothing'), (list(np.linspace(0.7, 3, 50)), 'which shows nothing'), ([0.7], 'no number')],
)
def test_where_nothing_falls_there_is_no_value(losses: list[float], words: str) -> None:
    value, told = lr_finder.choose(lr_finder.smoothed(np.geomspace(1e-6, 1e-1, len(losses)), np.array(losses)))
    assert value is None and 'no value' in told[0] and words in told[0]


def test_what_diverges_is_seen() -> None:
    assert not lr_finder._diverged([1.0, 0.5, 0.6, 1.9])
    assert lr_finder._diverged([1.0, 0.5, *[9.0] * 10])
    assert not lr_finder._diverged([-1.0, -5.0, -2.0])  # of a loss that may be negative nothing is said


@pytest.mark.slow
def test_the_range_test_of_a_network(data: Any, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rates rise by a constant factor; the same call gives the same curve; it falls on data with a signal."""
    monkeypatch.setattr(lr_finder, 'STEPS', 50)
    cell = small.cell()
    one, two = (lr_finder.find(cell, data, 33, context) for _ in range(2))
    assert one == two
    rates = np.array([row['rate'] for row in one.curve])
    np.testing.assert_allclose(rates[1:] / rates[:-1], rates[1] / rates[0], rtol=1e-6)
    assert rates[0] == pytest.approx(lr_finder.LOWEST) and len(rates) > lr_finder.STEPS / 2
    assert one.value is not None and 1e-4 < one.value < 1
    assert one.curve[0]['loss'] == pytest.approx(one.curve[1]['loss'], abs=0.5)


def test_a_batch_that_training_refuses_is_refused(data: Any, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = small.cell()
    odd = dataclasses.replace(cell, task=override(cell.task, 'recipe.microbatch', 7))
    with pytest.raises(RequestError, match=r'recipe\.microbatch: 7 does not divide'):
        lr_finder.find(odd, data, 33, context)
    monkeypatch.setattr(jax, 'device_count', lambda: 7)
    with pytest.raises(RequestError, match=r'recipe\.batch_size: \d+ cannot be split over 7 devices'):
        lr_finder.find(cell, data, 33, context)


@pytest.mark.parametrize('find', [lr_finder.find, batch_finder.find])
@pytest.mark.parametrize('model', ['ridge', 'dummy', 'chance'])
def test_what_takes_no_steps_is_refused(find: Any, model: str, context: Context) -> None:
    cell = dataclasses.replace(small.cell(), model=MODELS[model])
    with pytest.raises(RequestError, match=f'looks at the steps of a network, and {model} takes none'):
        find(cell, None, 33, context)


def test_a_probe_is_refused(context: Context) -> None:
    cell = dataclasses.replace(small.cell(), model=MODELS['biot'])
    cell = dataclasses.replace(cell, task=override(cell.task, 'recipe.adaptation', 'probe'))
    with pytest.raises(RequestError, match=r'of recipe\.adaptation=probe only a head'):
        lr_finder.find(cell, None, 33, context)


# ---- batch size ----


def probe(cell: Cell, data: Any, context: Context, monkeypatch: pytest.MonkeyPatch, free: float) -> Any:
    monkeypatch.setattr(batch_finder, 'free_bytes', lambda: int(free))
    return batch_finder.find(cell, data, 33, context)


def test_running_out_of_memory_before_a_step_is_a_size_that_does_not_fit(
    data: Any, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out(*args: Any) -> Any:
        raise RuntimeError('RESOURCE_EXHAUSTED: Out of memory while trying to allocate')  # as XLA says it

    monkeypatch.setattr(batch_finder, '_batch', out)
    found = probe(small.cell(), data, context, monkeypatch, 1e12)
    (row,) = found.curve
    assert found.value is None and not row['fits'] and row['megabytes'] is None and row['seconds'] is None
    assert found.told[0] == '1 windows need more memory than there is'


def test_parts_larger_than_the_training_part_are_refused(
    data: Any, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, n = small.cell(batch_size=8192), len(data.rows('train'))
    cell = dataclasses.replace(cell, task=override(cell.task, 'recipe.microbatch', 4096))
    with pytest.raises(RequestError, match=rf'recipe\.microbatch=4096, .* is {n}, of {n} training windows'):
        probe(cell, data, context, monkeypatch, 1e12)


@pytest.mark.slow
def test_memory_grows_with_the_batch_and_the_largest_that_fits_is_found(
    data: Any, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_finder, 'LARGEST', 16)
    cell, n = small.cell(), min(16, len(data.rows('train')))
    every = probe(cell, data, context, monkeypatch, 1e12)
    sizes = [row['batch_size'] for row in every.curve]
    assert sizes == [2**k for k in range(len(sizes))] and sizes[-1] <= n < 2 * sizes[-1]
    assert every.value == sizes[-1] and all(row['fits'] and row['seconds'] > 0 for row in every.curve)
    needed = [row['megabytes'] for row in every.curve]
    assert needed[-1] > needed[-2]
    assert needed[-1] * 1e6 > 4 * sizes[-1] * data.signal.n_chans * data.signal.n_times  # the windows alone
    few = probe(cell, data, context, monkeypatch, needed[1] * 1e6 / batch_finder.SHARE + 1)
    assert few.value == 2 and [row['fits'] for row in few.curve] == [True] * 2 + [False]
    assert few.curve[-1]['seconds'] is None and '4 windows need' in few.told[0]
    none = probe(cell, data, context, monkeypatch, 1000)
    assert none.value is None and 'not even the smallest size fits' in none.told[-1]


def test_what_is_free_is_some_of_this_machine() -> None:
    assert 1e6 < batch_finder.free_bytes() * jax.local_device_count() < 1e14


def test_memory_that_runs_out_is_no_error() -> None:
    def step(state: Any, batch: Any) -> Any:
        raise RuntimeError('RESOURCE_EXHAUSTED: out of memory')

    assert batch_finder._timed(step, {}, {}) is None

    def broken(state: Any, batch: Any) -> Any:
        raise RuntimeError('another')

    with pytest.raises(RuntimeError, match='another'):
        batch_finder._timed(broken, {}, {})
