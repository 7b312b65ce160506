"""Train a few steps on all devices of one process, or of several, and write down what came out (a script for tests).

python tests/helpers/devices.py FOLDER OUT [distributed]    # EEGNet by the programs of parallel.py
python tests/helpers/devices.py networks OUT NAMES          # networks, losses of pretraining: two steps in float64
"""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from pathlib import Path

import jax
import networks as of_networks
import numpy as np
import optax
import small
import weights

from jbench import processes
from jbench.data.load import loader
from jbench.models import MODELS
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import fit, parallel, step
from jbench.train.losses import AXIS
from jbench.train.programs import build

EPOCHS = 12
SHAPE = (3, 120, 2)  # channels, samples, classes


def main(folder: str, out: str, *distributed: str) -> None:
    """Plain gradient descent with an active norm limit and dropout; then predictions of sets of awkward sizes."""
    if distributed:
        processes.connect()
    data, recipe = small.prepared(Path(folder)), small.cell().task.recipe
    model, tx = build(MODELS['eegnet'], data.signal, data.n_out), optax.sgd(0.1)
    programs = parallel.compile_programs(model, tx, recipe, data.signal, data.n_out)
    train, test = (loader.Loader(data, (n,), recipe.batch_size) for n in ('train', 'test'))
    train.carry(programs.precompute)
    state = parallel.copy(parallel.new_state(programs.draw(np.uint32(33)), tx, fit.loss_weights(recipe, train)))
    state['params'] = jax.tree.map(lambda a: a * 3, state['params'])  # the norm limit is active
    losses, ids = [], []
    for epoch in range(EPOCHS):
        for chunk in train.chunks(epoch):
            state, sums = programs.train(state, parallel.shard(chunk), np.int32(chunk.n))
            losses.append((float(sums['loss']), float(sums['grad_norm'])))
            ids.append(chunk.id.copy())
    state = parallel.copy(state)
    variables = {'params': state['params'], 'batch_stats': state['batch_stats']}
    everything = parallel.predict(programs, variables, loader.Loader(data, ('train', 'valid', 'test'), 64))
    everything = everything[np.argsort(data.rows('train', 'valid', 'test'))]
    for n in (0, 1, 63, 64, 65):  # every record once, whatever the last batch looks like
        split = np.full_like(data.split, '')
        split[:n] = 'test'
        few = loader.Loader(dataclasses.replace(data, split=split), ('test',), 64)
        assert np.allclose(parallel.predict(programs, variables, few), everything[:n], atol=1e-6), n
    outputs = parallel.predict(programs, variables, test)
    flat = {k: np.concatenate([np.ravel(a) for a in jax.tree.leaves(v)]) for k, v in variables.items()}
    if processes.first():
        facts = {'ids': np.concatenate(ids), 'steps': state['step'], 'devices': jax.device_count()}
        np.savez(out, losses=losses, outputs=outputs, n=len(test), processes=jax.process_count(), **flat, **facts)


def networks(out: str, names: str) -> None:
    """Two steps of networks with dropout; unequal numbers of valid rows, one of four devices has none."""
    mask = np.array([1, 1, 0, 0, 1, 0, 1, 1], bool)
    rng, found = np.random.default_rng(0), {}
    rows = {'x': rng.standard_normal((8, *SHAPE[:2])) + 3, 'y': np.arange(8) % 2, 'mask': mask}
    for name in names.split(','):
        model = of_networks.build(name, SHAPE, axis_name=AXIS)
        found |= two_steps(name, model, rows, Recipe(label_smoothing=0.0), of_networks.lively(name, model))
    signal = Signal(n_chans=SHAPE[0], n_times=SHAPE[1], sfreq=100.0)
    pairs = {'info_nce': np.arange(8)[:, None] // [4, 1], 'next_window': np.arange(8)[:, None] * [0, 1]}
    for loss, y in {**pairs, 'reconstruction': np.arange(8)[:, None]}.items():
        recipe = Recipe(loss=loss)
        model = build(MODELS['eegnet'], signal, 6, recipe)
        given = {'x': rows['x'], 'y': y, 'mask': mask | (loss == 'next_window')}
        drawn = jax.tree.map(lambda a: np.asarray(a, np.float64), model.init(jax.random.key(3)))
        found |= two_steps('eegnet', model, given, recipe, drawn, f'eegnet/{loss}')
    np.savez(out, devices=jax.device_count(), **found)


def two_steps(
    name: str, model: Model, rows: dict[str, np.ndarray], recipe: Recipe, drawn: Variables, title: str = ''
) -> dict[str, np.ndarray]:
    """Loss, gradient norm and parameters of two steps of gradient descent on all devices."""
    d, tx, found = jax.device_count(), optax.sgd(weights.LR[name]), {}
    batch = {k: v.reshape(d, 8 // d, *v.shape[1:]) for k, v in rows.items()}
    state = parallel.new_state(drawn | {'key': jax.random.key_data(jax.random.key(0))}, tx, np.ones(2))
    one = partial(step.train_step, model=model, tx=tx, recipe=recipe)
    train = jax.pmap(one, axis_name=AXIS, in_axes=(None, 0), out_axes=None)
    for i in range(2):
        state, sums = jax.device_get(train(state, batch))  # laid on the devices it would be compiled anew
        found |= {f'{title or name}/{i}/{k}': v for k, v in sums.items()}
    return found | {f'{title or name}/{k}': v for k, v in model.to_torch(state).items()}


if __name__ == '__main__':
    if sys.argv[1] == 'networks':
        networks(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
