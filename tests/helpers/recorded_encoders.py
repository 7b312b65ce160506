"""What the recorder of pretrained encoders' numbers and the tests against them share. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import weights
from networks import close, compiled, layout, lively, tag
from places import FIXTURES
from weights import Shape

from jbench.models import torch_weights
from jbench.models.model import Model
from jbench.models.torch_weights import Variables

RECORDED = FIXTURES / 'networks' / 'foundation'
ROWS, STEPS = 2, 10
LR = {'biot': 3e-4, 'bendr': 0.01, 'signal_jepa': 3e-4}
LR |= {'labram': 0.01, 'labram_short': 0.01, 'cbramod': 0.001, 'cbramod_short': 0.01}
LR |= {'eegdino_small_short': 0.01, 'codebrain_short': 0.002}
LR |= {'signal_jepa_post_local': 0.01, 'signal_jepa_pre_local': 0.03}
LR |= {'luna': 0.003, 'luna_norms': 0.003, 'reve': 0.003}
INITS, FIRST = 40, 2000  # fresh networks; numbers of a tensor that are looked at
DRAWS = 1000  # passes with dropout
SHORT = 2  # layers of a network whose name ends in '_short'

# Names of channels, and as what LaBraM reads them; a montage of c channels is the first c.
LABRAM_CHANNELS: dict[str, str | None] = {
    **{'Fp1': 'FP1', 'nothing': None, 'E36': 'C3', 'T3-P3': 'T3', 'Cz': 'CZ', 'FTT9H': 'FTT9h', 'F7-T7': 'F7-T7'},
    **{'EEG 003': 'AF2', 'C3': 'C3', '61': 'F9', 'x-Cz': None, 'E5': None, 'F3-C3-P3': None, '-Cz': None},
    **{'T7': 'T7', 'tp10': 'TP10', 'EEG13': 'C4', 'C4-': None, 'CB1': 'CB1'},
    **{
        f'{n}{side}': f'{n}{side}'
        for n in ('AF', 'F', 'FC', 'C', 'CP', 'P', 'PO', 'CCP', 'CFC')
        for side in range(1, 7)
    },
}
LABRAM_CHANNELS |= {f'E{i}': name for i, name in ((1, 'F10'), (62, 'PZ'), (124, 'F4'), (125, None))}

# Names of channels, and their rows in STEEGFormer's table.
STEEGFORMER_CHANNELS: dict[str, int | None] = {
    **{'FP1': 6, 'nothing': None, 'Cz': 110, 't3': 61, 'T7': 65, 'E5': None, 'ftt7H': 33, 'M1': 31, 'A1': 73},
    **{'Fpz-Cz': None, 'PPO2h': 141},
    **{str(i): None for i in range(3)},
}
# Names of channels, and as what EEGPT reads them without a mixture.
EEGPT_CHANNELS: dict[str, str | None] = {
    **{'Fp1': 'FP1', 'AFz': None, 'Cz..': 'CZ', 'fc5.': 'FC5', 'T3': None, 'O2': 'O2', 'x': None, 'TP8': 'TP8'},
}
NARROW = (64, 2, 4)  # width, layers and heads of a smaller encoder
LR |= dict.fromkeys(('steegformer_small', 'steegformer_short', 'steegformer_cls'), 1e-3)
LR |= dict.fromkeys(('eegpt', 'eegpt_short', 'eegpt_named', 'eegpt_probe'), 1e-3)


def places(n: int) -> tuple[tuple[float, float, float] | None, ...]:
    """Where n channels lie (m); the second is not known."""
    drawn = weights.own_rng('places').uniform(-0.1, 0.1, (n, 3)).tolist()
    return tuple(None if i == 1 else (x, y, z) for i, (x, y, z) in enumerate(drawn))


@cache
def recorded(name: str) -> Mapping[str, np.ndarray]:
    return np.load(RECORDED / f'{name}.npz')


def windows(shape: Shape) -> tuple[dict[str, Any], np.ndarray]:
    """The recorded windows as a batch, and their labels."""
    x, y = weights.windows(shape, ROWS)
    return {'x': x.astype(jax.dtypes.canonicalize_dtype(float)), 'mask': np.ones(ROWS, bool)}, y


def check_layout(name: str, model: Model, shape: Shape) -> None:
    """Names, shapes and order of the state_dict; it comes back as it was."""
    lines = [' '.join([key, *map(str, sizes)]) for key, sizes in layout(model).items()]
    assert lines == recorded(name)[f'layout/{tag(shape)}'].tolist()


def count(model: Model) -> int:
    """Numbers that are learnt."""
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(model.init, jax.random.key(0))['params']))


def check_evaluation(name: str, model: Model, shape: Shape, rtol: float) -> dict[str, Any]:
    """The recorded outputs; those of a window do not depend on the others. Gives the features."""
    evaluate = compiled(lambda variables, batch: model.apply(variables, batch, train=False, key=None))
    variables, (batch, _) = lively(name, model), windows(shape)
    found = evaluate(variables, batch)
    assert found.outputs.dtype == batch['x'].dtype
    close(found.outputs, recorded(name)[f'eval/{tag(shape)}'], rtol, f'{name} {shape}')
    others = batch | {'x': batch['x'] * np.array([1, -30], batch['x'].dtype)[:, None, None]}
    close(evaluate(variables, others).outputs[0], found.outputs[0], rtol, f'{name} {shape}: depends on other windows')
    return dict(found.features)


def check_steps(name: str, model: Model, shape: Shape, rtol: float) -> None:
    """Ten steps without dropout: losses, norms of the gradients, each tensor's first gradient."""

    @compiled
    def step(variables: Variables, batch: dict[str, Any], y: np.ndarray) -> Any:
        def mean_loss(params: Any) -> jax.Array:
            outputs = model.apply(variables | {'params': params}, batch, train=True, key=None).outputs
            return -jax.nn.log_softmax(outputs)[jnp.arange(len(y)), y].mean()

        loss, grads = jax.value_and_grad(mean_loss)(variables['params'])
        norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
        params = jax.tree.map(lambda p, g: p - LR[name] * g, variables['params'], grads)
        return variables | {'params': params}, loss, norm, grads

    variables, (batch, y) = lively(name, model), windows(shape)
    batch |= compiled(model.precompute)(batch['x'])
    expected = {k: recorded(name)[f'steps/{tag(shape)}/{k}'] for k in ('loss', 'grad_norm', 'gradients')}
    for i in range(STEPS):
        variables, loss, norm, grads = step(variables, batch, y)
        np.testing.assert_allclose(loss, expected['loss'][i], rtol=rtol, err_msg=f'loss of step {i}')
        np.testing.assert_allclose(norm, expected['grad_norm'][i], rtol=rtol, err_msg=f'gradient of step {i}')
        if i == 0:
            learnt = [tensor for tensor in model.tensors if tensor.path[:1] == ('params',)]
            exported = torch_weights.export(learnt, {'params': grads})
            whole = np.sqrt((expected['gradients'][:, 0] ** 2).sum())
            for key, a, b in zip(exported, weights.sketch(name, exported), expected['gradients'], strict=True):
                close(a, b, max(rtol, 1e-6), f'gradient of {key}', floor=whole / 100)  # exported as float32


def check_dropout(name: str, model: Model, shape: Shape) -> None:
    """One key, one result; over many keys the outputs spread as braindecode's do."""
    variables, (batch, _) = lively(name, model), windows(shape)

    def draw(keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: model.apply(variables, batch, train=True, key=key).outputs, keys, batch_size=20)

    keys = jax.random.split(jax.random.key(0), DRAWS)
    draws = np.asarray(jax.jit(draw)(keys.at[-1].set(keys[0])), float)
    close(draws[-1], draws[0], 1e-5)
    assert len(np.unique(draws[:, 0, 0])) > DRAWS / 2
    (mean, square, sd), (mean_2, square_2, sd_2) = weights.spread(draws), recorded(name)['dropout']
    off = np.abs(mean - mean_2) / np.sqrt((square + square_2) / DRAWS)
    off_square = np.abs(square - square_2) / np.sqrt((sd**2 + sd_2**2) / DRAWS)
    assert max(off.max(), off_square.max()) < 5, (off, off_square)  # standard errors


def check_devices(whole: Model, shared: Model, shape: Shape) -> None:
    """Two devices (of the axis 'devices') with a row each drop what one device with both drops."""
    batch, _ = windows(shape)
    variables, key = compiled(whole.init)(jax.random.key(0)), jax.random.key(1)

    def outputs(model: Model, batch: Any) -> jax.Array:
        return model.apply(variables, batch, train=True, key=key).outputs

    @compiled
    def both(batch: Any) -> Any:
        halves = jax.tree.map(lambda a: a[:, None], batch)
        return outputs(whole, batch), jax.vmap(lambda b: outputs(shared, b), axis_name='devices')(halves)

    one, two = both(batch)
    close(two[:, 0], one, 1e-5)


def first_numbers(state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The first numbers of each tensor, in float64."""
    return {key: np.asarray(value, float).reshape(-1)[:FIRST] for key, value in state.items()}


def initial_moments(draws: list[dict[str, np.ndarray]]) -> np.ndarray:
    """Of each tensor in many fresh networks: see `weights.moments`."""
    return np.array([weights.moments([d[name] for d in draws]) for name in draws[0]])


def check_initial(name: str, model: Model) -> None:
    """Means over fresh networks within five standard errors; the bounds of uniform distributions almost exactly."""
    init = compiled(model.init)
    draws = [first_numbers(model.to_torch(init(key))) for key in jax.random.split(jax.random.key(1), INITS)]
    found, expected = initial_moments(draws), recorded(name)['initial']
    for key, a, b in zip(draws[0], found, expected, strict=True):
        error = np.sqrt((a[4:] ** 2 + b[4:] ** 2) / INITS)
        assert (np.abs(a[1:4] - b[1:4]) <= 5 * error + 2e-6 * b[0]).all(), (key, a, b)
        if 0.85 < 3 * b[2] / max(b[0] ** 2, 1e-30) < 1.15:  # uniform: the largest of N is within some 1/N
            assert abs(a[0] / b[0] - 1) < 20 / (INITS * draws[0][key].size) + 1e-6, (key, a[0], b[0])
