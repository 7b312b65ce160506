"""Every network against braindecode's recorded numbers (make_network_fixtures.py), and what any network must do.

    python -m pytest tests/models/test_networks.py -k ctnet   # one network; -m 'slow or long' for the whole grid

Programs that run once are compiled without optimisation, in half the time; those of steps are shared between tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import weights
from families import often
from networks import NETWORKS, RECORDED, build, close, compiled, compiled_step, layout, lively, recorded, tag, windows
from weights import Shape

from jbench.models import MODELS
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError

MIN_CHANS = {'shallow_fbcsp_net': 2, 'deep4net': 2}  # where not 1
FAST = ((2, 120, 3), pytest.param((19, 1200, 3), marks=pytest.mark.slow))
N_DRAWN, N_DROPPED = 50, 500  # fresh networks, passes with dropout
WIDE, SMALL = weights.TRAINED
each_network = pytest.mark.parametrize('name', NETWORKS)


def test_every_network_is_recorded() -> None:
    assert {file.stem for file in RECORDED.glob('*.npz')} == set(NETWORKS)


@each_network
def test_state_dict_and_counts(name: str) -> None:
    """Names, shapes, order; a state_dict comes back as it was; as many parameters as there should be."""
    for shape in weights.TRAINED:
        model = build(name, shape)
        lines = [' '.join([key, *map(str, sizes)]) for key, sizes in layout(model).items()]
        assert lines == recorded(name)[f'layout/{tag(shape)}'].tolist()
        state = weights.lively(name, layout(model))
        back = model.to_torch(model.from_torch(state))
        for key, value in state.items():
            assert back[key].dtype == value.dtype, key
            np.testing.assert_array_equal(back[key], value, err_msg=key)
    shapes = [jax.eval_shape(build(name, shape).init, jax.random.key(0)) for shape in weights.COUNTED]
    counts = [sum(leaf.size for leaf in jax.tree.leaves(s['params'])) for s in shapes]
    assert counts == recorded(name)['counts'].tolist()


@each_network
def test_wrong_weights_are_refused_by_name(name: str, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    model = build(name, (3, 240, 2))
    state = weights.lively(name, layout(model))
    first, second, third, fourth, *_, last = [key for key in state if not key.endswith('num_batches_tracked')]
    expected = [f'missing: {first} {list(state.pop(first).shape)}', f'missing: {last} {list(state.pop(last).shape)}']
    expected += [f'wrong shape: {second} is [1, 7], expected {list(state[second].shape)}']
    expected += [f'wrong type: {third} is int64', f'not finite: {fourth}', 'unexpected: extra.weight [3]', 'bad.safe']
    state |= {second: np.zeros((1, 7), np.float32), third: state[third].astype(int), 'extra.weight': np.zeros(3)}
    state[fourth].flat[-1] = np.nan
    save_file(state, tmp_path / 'bad.safetensors')
    with pytest.raises(RequestError) as caught:
        load(model, tmp_path / 'bad.safetensors')
    assert [part for part in expected if part not in str(caught.value)] == []


@each_network
def test_what_a_network_cannot_read_is_refused(name: str) -> None:
    """Before anything is computed, with the name of the network, its limit and what was asked."""
    times, chans = MODELS[name].least_times, MIN_CHANS.get(name, 1)
    for shape, parts in {
        (chans, times - 1, 2): (str(times), str(times - 1), 'samples'),
        (chans - 1, times, 2): ('one channel' if chans == 1 else f'{chans} channels', f'got {chans - 1}'),
        (chans, times, 0): ('0', 'output'),
    }.items():
        with pytest.raises(RequestError, match=f'^{name}: ') as caught:
            build(name, shape)
        assert [part for part in parts if part not in str(caught.value)] == []
    model = build(name, (chans, times, 1))
    for train in (True, False):
        logits, state, _ = outputs(model, (chans, times), train)
        assert logits == jax.ShapeDtypeStruct((2, 1), jnp.float32)
        assert state == jax.eval_shape(model.init, jax.random.key(0))['batch_stats']
    with pytest.raises(AssertionError, match=str(times + 1)):
        outputs(model, (chans, times + 1), True)


def outputs(model: Model, window: tuple[int, int], train: bool) -> Any:
    """Shapes and types of the logits, the new state and the features."""
    batch = {'x': jax.ShapeDtypeStruct((2, *window), jnp.float32), 'mask': jax.ShapeDtypeStruct((2,), bool)}
    return jax.eval_shape(
        lambda key, batch: model.apply(model.init(key), batch, train=train, key=key), jax.random.key(0), batch
    )


def check_evaluation(name: str, shape: Shape, rtol: float) -> None:
    """The recorded logits; those of a window do not depend on the others, valid or not, and the state stays."""
    model = build(name, shape)
    evaluate = compiled(lambda variables, batch: model.apply(variables, batch, train=False, key=None))
    variables, (batch, _) = lively(name, model), windows(shape, weights.EVAL_ROWS)
    logits, state, _ = evaluate(variables, batch)
    assert logits.dtype == batch['x'].dtype
    close(logits, recorded(name)[f'eval/{tag(shape)}'], rtol, f'{name} {shape}')
    jax.tree.map(np.testing.assert_array_equal, state, variables['batch_stats'])
    others = {'x': batch['x'] * np.array([1, -30, -30], batch['x'].dtype)[:, None, None], 'mask': np.arange(3) != 2}
    close(evaluate(variables, others)[0][0], logits[0], rtol, f'{name} {shape}: depends on other windows')


@pytest.mark.parametrize('shape', FAST, ids=tag)
@each_network
def test_evaluation_equals_braindecode(name: str, shape: Shape) -> None:
    check_evaluation(name, shape, 1e-5)


MASK = np.arange(20) % 5 != 2  # 16 true rows among rows of padding


def check_steps(name: str, shape: Shape, *, x64: bool, rtol: float) -> None:
    """Ten steps on a padded batch give what braindecode gives on the batch without padding."""
    model, step = compiled_step(name, shape)
    expected = {k: recorded(name)[f'steps/{tag(shape)}/{k}'] for k in ('loss', 'grad_norm', 'logits')}
    variables, (batch, y) = lively(name, model), windows(shape, weights.TRAIN_ROWS, MASK)
    for i in range(weights.STEPS):
        found = step(variables, batch, y)
        if i == 0:
            close(found['logits'][MASK], expected['logits'], rtol, 'logits')
            exported = model.to_torch({'params': found['grads'], 'batch_stats': found['variables']['batch_stats']})
            # Float32: one ReLU that rounding turns over shows in the gradients of all filters before it.
            check_gradients(name, exported, recorded(name)[f'steps/{tag(shape)}/gradients'], 1e-6 if x64 else 1e-3)
        variables = found['variables']
        for k in ('loss', 'grad_norm'):
            np.testing.assert_allclose(found[k], expected[k][i], rtol=rtol, err_msg=f'{k} of step {i}')
    exported = model.to_torch(variables)
    buffers = np.concatenate([np.zeros(0), *(v for k, v in exported.items() if '.running_' in k)])
    usual = max(rtol, 1e-6)  # exported as float32
    np.testing.assert_allclose(buffers, recorded(name)[f'steps/{tag(shape)}/buffers'], rtol=usual, atol=usual)


def check_gradients(name: str, exported: Mapping[str, np.ndarray], expected: np.ndarray, rtol: float) -> None:
    """Norm and projection of every gradient; those that are zero by algebra on the scale of the others."""
    params = {k: v for k, v in exported.items() if '.running_' not in k and not k.endswith('num_batches_tracked')}
    whole = np.sqrt((expected[:, 0] ** 2).sum())
    for key, found, wanted in zip(params, weights.sketch(name, params), expected, strict=True):
        close(found, wanted, rtol, f'gradient of {key}', floor=whole / 100)


@pytest.mark.long
@pytest.mark.parametrize('name', often(NETWORKS, ('eegnet', 'atcnet', 'ctnet')))
def test_ten_steps_equal_braindecode_x64(name: str) -> None:
    with jax.enable_x64(True):
        check_steps(name, SMALL, x64=True, rtol=1e-9)


@pytest.mark.parametrize('name', often(NETWORKS, ('eegnet', 'bdtcn', 'atcnet', 'eegconformer')))
def test_masked_rows_count_nowhere(name: str) -> None:
    """Whatever is in them: value, gradient and statistics stay; without a valid row the statistics stay as they are."""
    with jax.enable_x64(True):
        model, step = compiled_step(name, SMALL)
        variables, (batch, y) = lively(name, model), windows(SMALL, weights.TRAIN_ROWS, MASK)
        noise = 1000 * np.random.default_rng(0).standard_normal(batch['x'].shape)
        garbage = batch | {'x': jnp.where(MASK[:, None, None], batch['x'], noise)}
        clean, found = step(variables, batch, y), step(variables, garbage, np.where(MASK, y, 1))
        for out in (clean, found):
            out['logits'] = out['logits'][MASK]
        whole = float(clean['grad_norm'])
        jax.tree.map(lambda a, b: close(a, b, 1e-11, floor=whole / 100), found, clean)
        nothing = step(variables, batch | {'mask': jnp.zeros(len(MASK), bool)}, y)
        jax.tree.map(np.testing.assert_array_equal, nothing['variables']['batch_stats'], variables['batch_stats'])
        assert np.isfinite(nothing['logits']).all()


@pytest.mark.parametrize('name', often(NETWORKS, ('eegnet', 'ctnet')))
def test_dropout_follows_its_key(name: str) -> None:
    """One key, one result; over many keys the logits spread as braindecode's do.

    A dropout that is missing, elsewhere or of another rate shows; whether values or whole channels die, too little.
    """
    model = build(name, weights.DROPPED)
    variables, (batch, _) = lively(name, model), windows(weights.DROPPED, weights.DROPOUT_ROWS)

    def draw(keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: model.apply(variables, batch, train=True, key=key)[0], keys, batch_size=100)

    keys = jax.random.split(jax.random.key(0), N_DROPPED)
    draws = np.asarray(jax.jit(draw)(keys.at[-1].set(keys[0])), float)
    close(draws[-1], draws[0], 1e-5)
    assert len(np.unique(draws[:, 0, 0])) > N_DROPPED / 2
    (mean, square, sd), (mean_2, square_2, sd_2) = weights.spread(draws), recorded(name)['dropout']
    off = np.abs(mean - mean_2) / np.sqrt(square / N_DROPPED + square_2 / weights.DROPOUT_DRAWS)
    off_square = np.abs(square - square_2) / np.sqrt(sd**2 / N_DROPPED + sd_2**2 / weights.DROPOUT_DRAWS)
    assert max(off.max(), off_square.max()) < 5, (off, off_square)  # standard errors


def draw_initial(name: str, **options: Any) -> dict[str, np.ndarray]:
    """[tensor] -> values [networks, ...] of fresh networks."""
    model = build(name, weights.INITIAL, **options)
    drawn = jax.tree.map(np.asarray, compiled(jax.vmap(model.init))(jax.random.split(jax.random.key(1), N_DRAWN)))
    states = [model.to_torch(jax.tree.map(lambda a, i=i: a[i], drawn)) for i in range(N_DRAWN)]
    return {key: np.stack([s[key] for s in states]) for key in states[0]}


def check_moments(key: str, values: np.ndarray, expected: np.ndarray) -> None:
    """Means over networks within five standard errors; the bounds of uniform distributions almost exactly."""
    found = weights.moments(values)
    error = np.sqrt(found[4:] ** 2 / len(values) + expected[4:] ** 2 / weights.INITS)
    off = np.abs(found[1:4] - expected[1:4])
    assert (off <= 5 * error + 1e-6 * np.abs(expected[1:4])).all(), (key, found, expected)
    if 0.85 < 3 * expected[2] / max(expected[0] ** 2, 1e-30) < 1.15:  # uniform: the largest of N is within some 1/N
        assert abs(found[0] / expected[0] - 1) < 20 / values.size + 1e-6, (key, found[0], expected[0])


@pytest.mark.long
@each_network
def test_initial_distributions_equal_braindecode(name: str) -> None:
    """Ours by default, but for the batch statistics that its constructor pollutes; those as well where asked."""
    ours = draw_initial(name)
    expected = dict(zip(ours, recorded(name)['initial'], strict=True))
    published = dict(MODELS[name].published)
    if published:
        reference_init = draw_initial(name, **published)
        for key in [k for k in ours if '.running_' in k]:
            np.testing.assert_array_equal(ours[key], float(key.endswith('var')), err_msg=key)
            ours[key] = reference_init[key]
    for key, values in ours.items():
        if not key.endswith('num_batches_tracked'):
            check_moments(key, values, expected[key])
        if key.endswith('original0'):  # a weight norm starts as the weight that was drawn
            drawn = ours[key.removesuffix('0') + '1']
            np.testing.assert_allclose(values.squeeze((2, 3)), np.sqrt((drawn**2).sum((2, 3))), rtol=1e-5)


@pytest.mark.slow
@each_network
def test_ten_steps_equal_braindecode(name: str) -> None:
    check_steps(name, WIDE, x64=False, rtol=1e-4)


FEW = [pytest.param(True, marks=pytest.mark.slow), pytest.param(False, marks=pytest.mark.long)]


@pytest.mark.parametrize('few', FEW, ids=('few', 'others'))
@pytest.mark.parametrize('name', often(NETWORKS, ('eegnet', 'shallow_fbcsp_net', 'atcnet', 'bdtcn')))
def test_grid_equals_braindecode(name: str, few: bool) -> None:
    """All shapes, in float32 or float64; those of `.ci/run` hold each number of channels and of samples in both."""

    def check(shape: Shape, x64: bool) -> None:
        with jax.enable_x64(x64):  # of this thread
            check_evaluation(name, shape, 1e-10 if x64 else 1e-5)

    diagonals = [(i % 5 - i // 5) % 5 for i in range(len(weights.EVALUATED))]  # of a grid five wide
    picked = [(s, d % 2 == 0) for s, d in zip(weights.EVALUATED, diagonals, strict=True) if (d < 1) == few]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(check, *zip(*picked, strict=True)))
