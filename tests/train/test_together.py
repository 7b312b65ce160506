"""Several tasks, one encoder: whose turn it is, what is shared, and where it goes on after a stop."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small
from each import each

from jbench.data.load import loader, prepared_set
from jbench.models import MODELS, options
from jbench.progress import Interrupted
from jbench.spec.errors import RequestError
from jbench.train import fit, losses, optim, parallel, together, turns
from jbench.train.programs import build
from jbench.train.together import Part

NETWORK = options.with_options(MODELS['eegnet'], {'dropout': '0'})
RATE = 3e-3
NOTHING = 'bn_temporal.bias'  # a batch norm follows: its gradient is rounding, of which AdamW makes steps


def sets(root: Path) -> list[prepared_set.PreparedSet]:
    """P3, and made-up classes of a part of the same windows."""
    data = small.prepared(root)
    split = np.where(np.arange(len(data.split)) % 3 == 0, '', data.split)
    three = dataclasses.replace(data, y=np.arange(len(data.y)) % 5 % 3, classes=('a', 'b', 'c'), split=split)
    return [data, three]


def part(data: prepared_set.PreparedSet, title: str, n_epochs: int, batch_size: int = 32) -> Part:
    recipe = small.cell(max_epochs=n_epochs, patience=n_epochs, lr=RATE, batch_size=batch_size).task.recipe
    model = build(NETWORK, data.signal, data.n_out)
    tx = optim.adamw(recipe, 1)
    programs = parallel.compile_programs(model, tx, recipe, data.signal, data.n_out, data.length, single=True)
    train, valid = (loader.Loader(data, (name,), batch_size) for name in ('train', 'valid'))
    return Part(title, model, recipe, programs, train, valid, 'bal_acc', lambda facts: None)


@pytest.fixture(scope='module')
def tasks(tmp_path_factory: pytest.TempPathFactory) -> list[Part]:
    first, second = sets(tmp_path_factory.mktemp('together'))
    return [part(first, 'p3', 2), part(second, 'three', 2, batch_size=16)]


def states(tasks: list[Part], seed: int = 33) -> list[Any]:
    """Of each task before the first step, drawn by seeds of their own: what is shared is the first one's."""
    most, n_steps = together.length([(p.recipe, loader.n_batches(len(p.train), p.recipe.batch_size)) for p in tasks])
    found = []
    for k, p in enumerate(tasks):
        tx = optim.adamw(p.recipe, most * n_steps)
        weights = fit.loss_weights(p.recipe, p.train)
        found.append(parallel.new_state(p.programs.draw(np.uint32(seed + k)), tx, weights))
    return found


def flat(tree: Any) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator='.'): np.asarray(a) for path, a in leaves}


@each('n, steps, temperature, expected', [
    ([300, 100], 40, 1.0, [30, 10]),
    ([300, 100], 40, 1e9, [20, 20]),
    ([900, 100], 40, 2.0, [30, 10]),  # square roots: 30 to 10
    ([10**6, 1], 5, 1.0, [4, 1]),  # nobody is left out
    ([7, 7, 7], 10, 1.0, [4, 3, 3]),
    ([5, 5, 5], 2, 1.0, [1, 1, 1]),
    ([10**6, 1, 1], 3, 1.0, [1, 1, 1]),
    ([300, 100], 40, 1e-9, [39, 1]),
])  # fmt: skip
def test_shares_follow_windows_to_the_power_of_the_temperature(n, steps, temperature, expected):
    assert turns.shares(n, steps, temperature) == expected


def test_every_step_of_an_epoch_is_somebodys_and_epochs_differ():
    found = [turns.turns([30, 10], epoch) for epoch in range(3)]
    assert all((np.bincount(f) == [30, 10]).all() for f in found)
    assert (found[0] != found[1]).any() and (turns.turns([30, 10], 1) == found[1]).all()


@pytest.mark.slow
def test_batches_are_those_of_the_task_alone_from_any_place_on(tasks, monkeypatch):
    monkeypatch.setattr(loader, 'CHUNK_BATCHES', 5)
    data, size = tasks[1].train.prepared, 16
    train = loader.Loader(data, ('train',), size)
    per_epoch = loader.n_batches(len(train), size)
    assert per_epoch % 5  # the last chunk of an epoch is not whole
    expected = []
    for epoch in range(2):
        rows = loader.order(len(train), epoch)
        expected += [data.y[train.rows[rows[i : i + size]]] for i in range(0, len(rows), size)]
    for start in (0, 1, 5, per_epoch - 1, per_epoch, per_epoch + 2):
        again = loader.Loader(data, ('train',), size)
        for batch, y in zip(islice(turns.batches(again, start), 2 * per_epoch - start), expected[start:], strict=True):
            assert batch['y'][batch['mask']].tolist() == y.tolist()


def loss_of(p: Part, start: Any, batch: Any, stats: Any, flat_params: Any) -> Any:
    """The mean loss of a batch, and the new batch statistics."""
    like = jax.tree_util.tree_leaves_with_path(start['params'])
    ordered = [flat_params[jax.tree_util.keystr(path, simple=True, separator='.')] for path, _ in like]
    params = jax.tree.unflatten(jax.tree.structure(start['params']), ordered)

    def apply(rows: Any) -> Any:
        return p.network.apply({'params': params, 'batch_stats': stats}, rows, train=True, key=None)

    answer = jax.vmap(apply, axis_name=losses.AXIS)(jax.tree.map(lambda v: v[None], batch))
    values, weight = losses.of(p.recipe)(answer.outputs[0], batch, jnp.asarray(start['loss_weights']))
    total = jnp.sum(jnp.where(batch['mask'], values, 0)) / jnp.sum(jnp.where(batch['mask'], weight, 0))
    return total, jax.tree.map(lambda a: a[0], answer.batch_stats)


def by_hand(tasks: list[Part], start: list[Any], n_epochs: int) -> list[dict[str, np.ndarray]]:
    """Parameters of each task after some epochs: plain AdamW on one tree, of which a step sees one head."""
    heads = [together.head_of(p.network) for p in tasks]
    shared = {k: v for k, v in flat(start[0]['params']).items() if k not in heads[0]}
    own = [{k: v for k, v in flat(s['params']).items() if k in h} for s, h in zip(start, heads, strict=True)]
    stats = [s['batch_stats'] for s in start]
    zeros = partial(jax.tree.map, np.zeros_like)
    moments = [zeros(shared), zeros(shared)], [[zeros(o), zeros(o)] for o in own]
    n = [loader.n_batches(len(p.train), p.recipe.batch_size) for p in tasks]
    counts = turns.shares([len(p.train) for p in tasks], sum(n), 1.0)
    rates, betas = optim.onecycle(RATE, n_epochs * sum(n))
    streams = [turns.batches(p.train, 0) for p in tasks]
    losses_of = [partial(loss_of, p, s) for p, s in zip(tasks, start, strict=True)]
    gradients = [jax.jit(jax.value_and_grad(loss, argnums=2, has_aux=True)) for loss in losses_of]
    step = 0
    for epoch in range(n_epochs):
        for i in turns.turns(counts, epoch).tolist():
            p, batch = tasks[i], {k: jnp.asarray(v[0]) for k, v in next(streams[i]).items()}
            params = shared | own[i]
            (_, stats[i]), grads = gradients[i](batch, stats[i], params)
            norm = np.sqrt(sum(float((g**2).sum()) for g in grads.values()))
            mean, square = ({**a, **b} for a, b in zip(moments[0], moments[1][i], strict=True))
            for name, g in grads.items():
                g = np.asarray(g, np.float64) * min(1.0, p.recipe.grad_clip / (norm + 1e-6))
                mean[name] = betas[step] * mean[name] + (1 - betas[step]) * g
                square[name] = 0.999 * square[name] + 0.001 * g**2
                t = step + 1
                move = mean[name] / (1 - betas[step] ** t) / (np.sqrt(square[name] / (1 - 0.999**t)) + 1e-8)
                params[name] = params[name] - rates[step] * (p.recipe.weight_decay * params[name] + move)
            shared, own[i] = ({k: params[k] for k in old} for old in (shared, own[i]))
            moments[0][:] = [{k: m[k] for k in shared} for m in (mean, square)]
            moments[1][i][:] = [{k: m[k] for k in own[i]} for m in (mean, square)]
            step += 1
    return [shared | o for o in own]


@pytest.mark.slow
def test_equals_plain_adamw_on_one_encoder_and_two_heads(tasks, monkeypatch):
    seen: list[Any] = []
    close = fit.Course.close_epoch
    monkeypatch.setattr(fit.Course, 'close_epoch', lambda self, *a: close(self, *a) or True)  # each epoch is kept
    drawn = states(tasks)
    found = together.fit_together(tasks, drawn, fit.Watch(), 1.0)
    assert all(a.is_deleted() for a in jax.tree.leaves(drawn) if isinstance(a, jax.Array))  # nothing is held twice
    expected = by_hand(tasks, states(tasks), 2)
    for f, e in zip(found, expected, strict=True):
        got = flat(f.variables['params'])
        assert got.keys() == e.keys()
        for name in e.keys() - {NOTHING}:
            np.testing.assert_allclose(got[name], e[name], atol=3e-5, err_msg=name)
        seen.append(got)
    head = together.head_of(tasks[0].network)
    for name in seen[0]:  # one encoder, two heads
        same = seen[0][name].shape == seen[1][name].shape and np.array_equal(seen[0][name], seen[1][name])
        assert same == (name not in head), name
    assert len(seen[0]) > 5 and any(name in head for name in seen[0])


@pytest.mark.slow
def test_a_stop_anywhere_changes_nothing(tasks, tmp_path):
    whole = together.fit_together(tasks, states(tasks), fit.Watch(folder=tmp_path / 'whole'), 1.0)
    asked = 0

    def stops(at: set[int]) -> Callable[[], bool]:
        def stop() -> bool:
            nonlocal asked
            asked += 1
            return asked in at

        return stop

    looks: list[int] = []
    together.fit_together(tasks, states(tasks), fit.Watch(stop=lambda: bool(looks.append(1))), 1.0)
    at, stopped = {2, len(looks) // 3, len(looks) // 2 + 1, len(looks) - 1}, 0
    watch = fit.Watch(folder=tmp_path / 'parts', stop=stops(at))
    for _ in range(20):
        try:
            found = together.fit_together(tasks, states(tasks), watch, 1.0)
            break
        except Interrupted:
            stopped += 1
    assert stopped == 4
    for a, b in zip(whole, found, strict=True):
        assert [h['train_loss'] for h in a.history] == [h['train_loss'] for h in b.history]
        assert a.best_epoch == b.best_epoch and len(b.resumed_at) == 4
        for x, y in zip(jax.tree.leaves(a.variables), jax.tree.leaves(b.variables), strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_monitor_that_was_undefined_once_does_not_end_a_task():
    course = fit.Course()
    course.close_epoch(None, 1.0, 1)
    assert course.undefined
    course.close_epoch(0.5, 1.0, 1)
    assert not course.undefined and course.best_epoch == 1


@pytest.mark.slow
def test_encoders_of_other_channels_are_refused_by_name(tasks):
    data = tasks[0].train.prepared
    fewer = dataclasses.replace(data.signal, n_chans=3, ch_names=data.signal.ch_names[:3])
    other = tasks[1]._replace(network=build(NETWORK, fewer, 3), title='other')
    drawn = parallel.new_state(parallel.init_state(other.network, 0), optim.adamw(other.recipe, 9), np.ones(3))
    with pytest.raises(RequestError, match=r'recipe\.together: .* for p3 and .* for other; expected the same'):
        together.require_shared([tasks[0], other], [states(tasks)[0], drawn])


@pytest.mark.slow
def test_training_goes_on_until_no_task_improves(tasks, monkeypatch):
    values = {'p3': iter([0.9, *[0.1] * 50]), 'three': iter([0.1, 0.2, 0.3, *[0.1] * 50])}
    patient = [
        p._replace(recipe=dataclasses.replace(p.recipe, max_epochs=12, patience=2), metric='bal_acc') for p in tasks
    ]
    by_loader = {id(p.valid): p.title for p in patient}
    monkeypatch.setattr(fit, 'monitor', lambda valid, outputs, metric: next(values[by_loader[id(valid)]]))
    found = together.fit_together(patient, states(patient), fit.Watch(), 1.0)
    assert [f.best_epoch for f in found] == [0, 2] and [len(f.history) for f in found] == [5, 5]
