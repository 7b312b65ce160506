"""How the weights move: clipping, AdamW or Adamax, and the schedule of the rate, as PyTorch computes them.

Sources: Loshchilov & Hutter (2019), Decoupled weight decay regularization; Kingma & Ba (2015), Adam (section 7.1:
Adamax); Smith & Topin (2018), Super-convergence; `torch.optim.AdamW`, `torch.optim.Adamax`,
`torch.optim.lr_scheduler.CosineAnnealingLR`, `torch.optim.lr_scheduler.OneCycleLR` (cosine, beta1 cycles too) and
`torch.nn.utils.clip_grad_norm_`. optax's own one-cycle differs by up to 4.5 % of the highest rate and keeps beta1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jbench.spec.errors import RequestError
from jbench.spec.task import Recipe
from jbench.train import trainable

DEFAULT = Recipe()
BETA1_HIGH, BETA1_LOW = 0.95, 0.85  # beta1 falls while the rate rises
BETA2, EPS = 0.999, 1e-8
BETA1 = 0.9  # where it does not cycle


class OneCycleAdamW(NamedTuple):
    """State of `adamw`. The schedule stands here as numbers, so one compiled step serves runs of any length."""

    step: jax.Array  # i32, steps done
    lr_max: jax.Array  # f32
    warm_end: jax.Array  # f32, step of the highest rate: warm_up * total - 1, may be fractional or negative
    last: jax.Array  # f32, total - 1
    mean: Any  # first moment of the gradient
    square: Any  # second moment


def onecycle(
    lr_max: float,
    total: int,
    *,
    warm_up: float = DEFAULT.warmup,
    div: float = DEFAULT.start_div,
    final_div: float = DEFAULT.end_div,
    beta1: tuple[float, float] = (BETA1_HIGH, BETA1_LOW),
) -> tuple[np.ndarray, np.ndarray]:
    """Learning rate and beta1 for each of `total` steps, float64[total] each: the table of torch's OneCycleLR.

    The rate follows half a cosine from lr_max/div to lr_max at step warm_up*total - 1, then half a cosine to
    lr_max/div/final_div at step total - 1; beta1 goes high -> low -> high alongside. With fewer than 1/warm_up steps
    that turning point lies before step 0 and there is no rise (as in torch). At exactly 1/warm_up steps it is step 0,
    where torch divides by zero; here step 0 takes the first rate, the limit of slightly longer runs.

    Raises: RequestError for total < 1.
    """
    _check(total)
    turn, last = warm_up * total - 1, total - 1
    step = np.arange(total, dtype=np.float64)
    up = step / turn if turn > 0 else np.zeros(total)
    down = (step - turn) / (last - turn)
    rising = step <= turn

    def cosine(start: float, end: float, share: np.ndarray) -> np.ndarray:
        return end + (start - end) / 2.0 * (1 + np.cos(np.pi * share))

    high, low = beta1
    lowest = lr_max / div / final_div
    lr = np.where(rising, cosine(lr_max / div, lr_max, up), cosine(lr_max, lowest, down))
    return lr, np.where(rising, cosine(high, low, up), cosine(low, high, down))


def schedule(
    state: OneCycleAdamW, div: float = DEFAULT.start_div, final_div: float = DEFAULT.end_div
) -> tuple[jax.Array, jax.Array]:
    """Learning rate and 1 - beta1 for the next step, f32 scalars: `onecycle` to 1e-6 of lr_max.

    (1 + cos(pi p)) / 2 is written as a squared sine of half the angle, which float32 keeps accurate to the end. Beyond
    the last step the last values stay.
    """
    step = jnp.minimum(state.step.astype(jnp.float32), state.last)
    up = step / jnp.where(state.warm_end > 0, state.warm_end, 1.0)
    left = (state.last - step) / jnp.maximum(state.last - state.warm_end, 1e-6)
    rising = step <= state.warm_end
    height = jnp.where(rising, jnp.sin(jnp.pi / 2 * up) ** 2, jnp.sin(jnp.pi / 2 * left) ** 2)  # 1 at the turn
    floor = jnp.where(rising, 1 / div, 1 / div / final_div)
    return state.lr_max * (floor + (1 - floor) * height), (1 - BETA1_HIGH) + (BETA1_HIGH - BETA1_LOW) * height


FLAT = 1e6  # steps in which a schedule hardly moves


def at_rate(state: Any, lr: float) -> Any:
    """The state of `make` whose next step has the rate `lr` and the lowest beta1, whatever its schedule says."""

    def held(part: Any) -> Any:
        if not isinstance(part, OneCycleAdamW | Rate):
            return part
        step = int(part.step)
        numbers = {'lr_max': lr, 'warm_end': step - 1, 'last': step + FLAT, 'per_epoch': step + FLAT}
        return part._replace(**{k: _host(v, np.float32) for k, v in numbers.items() if k in part._fields})

    return tuple(map(held, state))


class Rate(NamedTuple):
    """State of a schedule that moves no beta1."""

    step: jax.Array  # i32, steps done
    lr_max: jax.Array  # f32
    warm_end: jax.Array  # f32, as of OneCycleAdamW
    last: jax.Array  # f32
    per_epoch: jax.Array  # f32, steps of an epoch


def make(recipe: Recipe, total_steps: int) -> optax.GradientTransformation:
    """The optimiser of a recipe for `total_steps` steps: `adamw`, or another optimizer or schedule, whose betas stay at
    0.9 and 0.999, with decoupled weight decay.

    All that `adamw` says of its state holds for it too.

    Raises: as `adamw`.
    """
    if (recipe.optimizer, recipe.schedule) == ('adamw', 'one_cycle'):
        return adamw(recipe, total_steps)
    _check(total_steps)
    scale = {'adamw': optax.scale_by_adam, 'adamax': optax.scale_by_adamax}[recipe.optimizer](BETA1, BETA2, EPS)

    def trained(params: Any) -> Any:
        learns = trainable.divide(params, recipe.trainable)[0]
        return scale.init(jax.tree.map(lambda p: np.zeros(p.shape, p.dtype), learns))

    moments = optax.GradientTransformation(trained, scale.update)
    return optax.chain(clip_by_global_norm(recipe.grad_clip), moments, _by_rate(recipe, total_steps))


def _by_rate(recipe: Recipe, total_steps: int) -> optax.GradientTransformation:
    """Steps against directions: -rate * (weight decay * p + direction), times the factors of recipe.trainable."""

    def init(params: Any) -> Rate:
        epochs = max(recipe.max_epochs, 1)
        numbers = (recipe.lr, recipe.warmup * total_steps - 1, total_steps - 1, max(total_steps // epochs, 1))
        return Rate(_host(0, np.int32), *(_host(v, np.float32) for v in numbers))

    def update(directions: Any, state: Rate, params: Any = None) -> tuple[Any, Rate]:
        if params is None:
            raise ValueError('make: update needs the parameters for weight decay')
        lr = _rate(recipe, state)

        def move(path: Any, p: jax.Array, d: jax.Array) -> jax.Array:
            return -lr * trainable.factor(path, recipe.trainable) * (recipe.weight_decay * p + d)

        return jax.tree_util.tree_map_with_path(move, params, directions), state._replace(step=state.step + 1)

    return optax.GradientTransformation(init, update)


def _rate(recipe: Recipe, state: Rate) -> jax.Array:
    """The learning rate of the next step. The cosine is torch's with T_max one epoch less than there are: lr in the
    first epoch, 0 in the last."""
    if recipe.schedule == 'constant':
        return state.lr_max
    if recipe.schedule == 'cosine':
        epoch = state.step.astype(jnp.float32) // state.per_epoch
        last = jnp.maximum((state.last + 1) // state.per_epoch - 1, 1)
        return state.lr_max * jnp.cos(jnp.pi / 2 * jnp.minimum(epoch / last, 1)) ** 2
    cycle = OneCycleAdamW(*state[:4], None, None)
    return schedule(cycle, recipe.start_div, recipe.end_div)[0]


def clip_by_global_norm(limit: float) -> optax.GradientTransformation:
    """Scales all gradients by min(1, limit / (norm + 1e-6)), norm being that of all of them together (torch's form)."""

    def update(grads: Any, state: optax.EmptyState, params: Any = None) -> tuple[Any, optax.EmptyState]:
        scale = jnp.minimum(1.0, limit / (optax.tree.norm(grads) + 1e-6))
        return jax.tree.map(lambda g: g * scale, grads), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def adamw(recipe: Recipe, total_steps: int) -> optax.GradientTransformation:
    """Clipping by recipe.grad_clip, then AdamW on every parameter under the one-cycle schedule of `total_steps` steps.

    m <- b1 m + (1-b1) g;  v <- b2 v + (1-b2) g^2
    p <- p - lr (wd p + (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)), t = 1, 2, ..., b1 that of the current step.

    `update` depends on weight decay, clipping and the two quotients of rates alone; rate, length and warm-up are in the
    state that `init` makes. A step compiled with one `total_steps` therefore serves any other.

    Rates are multiplied by the factors of recipe.trainable. `init` takes all parameters; `update` takes and gives those
    that are trained, with None in the place of frozen ones (`trainable.divide`), of which nothing is kept.

    Raises: RequestError for total_steps < 1; `init`: for patterns of recipe.trainable that mean nothing.
    """
    _check(total_steps)

    def init(params: Any) -> OneCycleAdamW:
        lr, turn, last = (_host(v, np.float32) for v in (recipe.lr, recipe.warmup * total_steps - 1, total_steps - 1))
        zeros = jax.tree.map(lambda p: np.zeros(p.shape, p.dtype), trainable.divide(params, recipe.trainable)[0])
        return OneCycleAdamW(_host(0, np.int32), lr, turn, last, zeros, zeros)

    def update(grads: Any, state: OneCycleAdamW, params: Any = None) -> tuple[Any, OneCycleAdamW]:
        if params is None:
            raise ValueError('adamw: update needs the parameters for weight decay')
        lr, gain1 = schedule(state, recipe.start_div, recipe.end_div)
        t = (state.step + 1).astype(jnp.float32)
        # 1 - b^t by expm1: close to t * (1 - b), which 1 - b**t would lose to rounding in float32.
        correct1, correct2 = -jnp.expm1(t * jnp.log1p(-gain1)), -jnp.expm1(t * math.log(BETA2))
        mean = jax.tree.map(lambda m, g: m + gain1 * (g - m), state.mean, grads)
        square = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g**2, state.square, grads)

        def move(path: Any, p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            factor = trainable.factor(path, recipe.trainable)
            rate = lr if factor == 1 else lr * factor
            return -rate * (recipe.weight_decay * p + m / correct1 / (jnp.sqrt(v / correct2) + EPS))

        updates = jax.tree_util.tree_map_with_path(move, params, mean, square)
        return updates, state._replace(step=state.step + 1, mean=mean, square=square)

    return optax.chain(clip_by_global_norm(recipe.grad_clip), optax.GradientTransformation(init, update))


def _host(value: float, dtype: Any) -> Any:
    """A number as an array on the host: nothing is compiled to make it."""
    return np.asarray(value, dtype)


def _check(total: int) -> None:
    if total < 1:
        raise RequestError(f'a schedule needs at least one training step, got {total}: is the training part empty?')
