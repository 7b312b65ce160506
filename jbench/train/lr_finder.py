"""A learning-rate range test: what the loss of a network does while the rate rises (Smith 2017, arXiv:1506.01186).

From its first weights a network takes STEPS steps of the recipe (loss, weights of classes, clipping, AdamW with beta1
at its lowest) on batches of the training part, in their order. The rate of each step is the one before times a
constant. The test ends early where the loss is no number, or its running mean DIVERGED times the least so far. Neither
the validation nor the test part is looked at, and nothing is kept of what was learnt.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jbench.context import Context
from jbench.data.load.loader import Loader
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.load.sampling import SAMPLERS
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.recipe import PROBES
from jbench.train import adaptation, fit, optim, parallel
from jbench.train.programs import asked_signal, build
from jbench.train.seeds import begin_from

LOWEST, HIGHEST, STEPS = 1e-6, 10.0, 200
DIVERGED, MEMORY = 4.0, 0.9  # of the running mean, a step
SPREAD = 0.15  # decades of rate: sd of the weights of the smoothed loss, to both sides
FALL = 0.02  # of the loss at the lowest rates: a smaller fall shows nothing
RULE = (
    'the rate at which the smoothed loss falls steepest, a decade of rate, before it is least; half of it or a third '
    'of it is the careful choice, for the test is short'
)


class Found(NamedTuple):
    """What a finder found."""

    curve: list[dict[str, Any]]  # rows of the CSV
    value: float | None  # None: nothing speaks for one
    rule: str  # by which the value was chosen
    told: list[str]  # what else is to be said


def find(cell: Cell, data: PreparedSet, seed: int, context: Context) -> Found:
    """The range test of the network of a cell on the training part of its set.

    The curve has `step, rate, loss, smoothed`.

    Raises: RequestError for an estimator, a probe, or a network that its data do not fit; Interrupted.
    """
    require(cell, 'find_lr')
    loader = _loader(cell, data)
    if not len(loader):
        raise RequestError(f'{cell.title}: --stage=find_lr: the training part holds no window')
    step, state = _begin(cell, data, loader, seed, context)
    rates = np.geomspace(LOWEST, HIGHEST, STEPS)
    losses: list[float] = []
    told: list[str] = []
    for k, (rate, batch) in enumerate(zip(rates, _batches(loader), strict=False)):
        context.guard()
        context.progress.update(f'{cell.title} find_lr', k, STEPS, f'rate {rate:.1e}')
        state, sums = step(state | {'opt': optim.at_rate(state['opt'], rate)}, batch)
        losses.append(float(sums['loss']))
        if not math.isfinite(losses[-1]) or _diverged(losses):
            told.append(f'the loss diverged at a rate of {rate:.2g}, where the test ended')
            break
    context.progress.update(f'{cell.title} find_lr', STEPS, STEPS)
    kept = np.isfinite(losses)
    curve = smoothed(rates[: len(losses)][kept], np.array(losses)[kept])
    value, words = choose(curve)
    return Found(curve, value, RULE, [*told, *words])


def require(cell: Cell, what: str) -> None:
    """Refuse what learns by no gradient. Raises: RequestError."""
    if cell.model.kind != 'network' or not cell.model.trained:
        raise RequestError(
            f'{cell.title}: --stage={what} looks at the steps of a network, and {cell.model.name} takes none; name a '
            'network, as --model=eegnet'
        )
    if cell.task.recipe.adaptation in PROBES:
        raise RequestError(
            f'{cell.title}: --stage={what} looks at the steps of a whole network, and of '
            f'recipe.adaptation={cell.task.recipe.adaptation} only a head on kept features learns'
        )


def smoothed(rates: np.ndarray, losses: np.ndarray) -> list[dict[str, Any]]:
    """The rows of the curve: the smoothed loss is a mean with normal weights over the logarithm of the rate, so that it
    lags behind to no side."""
    decades = np.log10(rates)
    weights = np.exp(-0.5 * ((decades[:, None] - decades) / SPREAD) ** 2)
    means = weights @ losses / weights.sum(1)
    return [
        {'step': k, 'rate': float(rate), 'loss': float(loss), 'smoothed': float(mean)}
        for k, (rate, loss, mean) in enumerate(zip(rates, losses, means, strict=True))
    ]


def choose(curve: list[dict[str, Any]]) -> tuple[float | None, list[str]]:
    """The rate by `RULE`, and what is to be said; None where the loss does not fall."""
    if len(curve) < 3:
        return None, ['no value: the loss was no number within three steps']
    rates, means = (np.array([row[name] for row in curve]) for name in ('rate', 'smoothed'))
    least = int(means.argmin())
    fallen = means[0] - means[least]
    if least < 2 or fallen < FALL * abs(means[0]):
        return None, [f'no value: the smoothed loss fell by {fallen:.2g} from {means[0]:.3g}, which shows nothing']
    slopes = np.gradient(means, np.log10(rates))[: least + 1]
    value = float(rates[slopes.argmin()])
    words = [f'the smoothed loss is {means[0]:.3g} at first and least, {means[least]:.3g}, at {rates[least]:.2g}']
    return value, words


def _diverged(losses: list[float]) -> bool:
    """Whether the running mean of the losses is DIVERGED times the least that it was."""
    mean, least = 0.0, math.inf
    for k, loss in enumerate(losses):
        mean = MEMORY * mean + (1 - MEMORY) * loss
        last = mean / (1 - MEMORY ** (k + 1))
        least = min(least, last)
    return least > 0 and last > DIVERGED * least


def _loader(cell: Cell, data: PreparedSet) -> Loader:
    recipe = cell.task.recipe
    return Loader(
        data,
        ('train',),
        recipe.batch_size,
        sampler=SAMPLERS[recipe.sampler],
        channel_mask='channel_mask' in cell.model.asks,
    )


def _begin(
    cell: Cell, data: PreparedSet, loader: Loader, seed: int, context: Context
) -> tuple[Callable[..., Any], Any]:
    """One step of the recipe, compiled when it is first called, and the state before it."""
    recipe, d = cell.task.recipe, jax.device_count()
    if recipe.batch_size % d:
        raise RequestError(f'recipe.batch_size: {recipe.batch_size} cannot be split over {d} devices')
    network = build(cell.model, asked_signal(cell.model, data.signal), data.n_out, recipe, recipe.frames)
    begin = begin_from(cell, network, context)
    learnt = adaptation.resolved(adaptation.stages(recipe, network)[-1], network)
    tx = optim.make(learnt, STEPS)
    drawn = begin(parallel.draw_program(network)(np.uint32(seed)))
    loader.carry(jax.jit(network.precompute))
    return parallel.one_step(network, tx, learnt), parallel.new_state(drawn, tx, fit.loss_weights(learnt, loader))


def _batches(loader: Loader) -> Iterator[dict[str, np.ndarray]]:
    """Batches of the training part as devices get them, epoch after epoch."""
    epoch = 0
    while True:
        for chunk in loader.chunks(epoch):
            whole = parallel.shard(chunk)
            for k in range(chunk.n):
                yield {name: a[:, k] for name, a in whole.items()}
        epoch += 1
