"""A network that somebody brings is tried on six random windows before anything is trained: does it keep the contract
of `model.Model`? What breaks it would often train all the same, to a score that means nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.layers import rows
from jbench.models.model import Answer, Model, compiled_to_draw
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

MASK = np.array([True, True, True, True, False, False])  # of the windows of a trial
ROWS = 64  # of another batch that shapes are looked at with
CLOSE = 1e-3  # of the greatest value: more than what sums in another order differ by
Tree = Any
Fault = tuple[str, str]  # what was found, and what to do
ANSWER = 'return jbench.models.model.Answer(outputs, batch_stats), the new statistics, or those given in evaluation'
Program = Callable[[np.ndarray], 'Found']  # of x [B, C, T]


class Found(NamedTuple):
    """What a network makes of one batch, in evaluation and in training."""

    outputs: Any  # [B, n_out] or [B, frames, n_out], evaluation
    kept: Tree  # the state that evaluation gives back
    trained: np.ndarray  # the same, training
    state: Tree  # the state after training
    gradient: Tree


class _NoAnswer(Exception):
    """A network returned something else."""


def check(
    make: Callable[[], Model],
    name: str,
    signal: Signal,
    n_out: int,
    axis_name: str,
    *,
    several: bool = False,
    in_parts: bool = False,
    frames: bool = False,
) -> None:
    """Refuse a network that does not keep the contract.

    Args:
        make: builds it; called several times, since what is built may not depend on what was built before.
        name: of the model, for the message.
        signal, n_out: what it is built for.
        axis_name: the mapped axis of devices that it is built for.
        several: whether batches will be split over devices.
        in_parts: whether a step will compute them in parts, by `recipe.microbatch`.
        frames: whether a window has an answer for each of some frames, as keystrokes ask for.

    Raises: RequestError with the first fault and what to do about it; whatever the network itself raises.
    """
    with jax.default_matmul_precision('float32'):
        for found, remedy in _faults(make, signal, n_out, axis_name, several, in_parts, frames):
            tried = (
                f'{len(MASK)} random windows of {signal.n_chans} channels x {signal.n_times} samples, {n_out} outputs'
            )
            raise RequestError(f'model {name} is refused: {found}; {remedy} (tried on {tried})')


def _faults(
    make: Callable[[], Model],
    signal: Signal,
    n_out: int,
    axis_name: str,
    several: bool,
    in_parts: bool,
    frames: bool,
) -> Iterator[Fault]:
    model, key, rng = make(), jax.random.key(0), np.random.default_rng(0)
    if not isinstance(model, Model):
        made = 'jbench.models.model.network(module, signal), or a jbench.models.model.Model'
        yield f'the function returned a {type(model).__name__}', f'expected {made}'
    x = rng.normal(size=(len(MASK), signal.n_chans, signal.n_times)).astype(np.float32)
    yield from _faults_of_shape(model, x, key, n_out, axis_name, frames)

    # `partial` makes a new function, which is traced anew
    draw, again = (compiled_to_draw(partial(m.init)).lower(key) for m in (model, make()))
    if draw.as_text() != again.as_text():
        yield 'init draws other variables from the same key', 'draw from the key that it is given, from nothing else'
    variables = jax.device_get(draw.compile()(key))
    params = jax.tree.map(lambda p: p + 0.01 * rng.normal(size=p.shape).astype(p.dtype), variables['params'])
    variables = {**variables, 'params': params}  # so that a layer which starts at zero hides nothing

    program = _lower(model, x, variables, key, axis_name)
    ask = _ask(program, variables)
    answer = ask(x)
    yield from _faults_of_numbers(answer)
    rows = answer.outputs[MASK]
    if n_out > 1 and rows.min() >= 0 and np.abs(rows.sum(-1) - 1).max() <= CLOSE:
        yield (
            'its outputs are probabilities (in 0..1, and each row sums to 1), and the loss takes them for logits',
            'return the logits, what softmax is given, and leave softmax out',
        )
    if _lower(make(), x, variables, key, axis_name).as_text() != program.as_text() or not _same(answer, ask(x)):
        yield (
            'a second call computes something else than the first (it depends on the order of calls)',
            'compute from the arguments alone: no global counter, no numpy.random, no value kept on an object',
        )
    yield from _faults_of_rows(ask, answer, x, rng.normal(size=x.shape).astype(np.float32))
    if _apart(variables['batch_stats'], answer.kept) != 0:
        yield 'evaluation changes the state', 'give back the state as it is where train is False'
    if several and not _same(answer, _ask(_lower(model, x, variables, key, axis_name, 2), variables, 2)(x)):
        yield (
            'it computes something else when a batch is split over devices',
            'take axis_name as a parameter, and give it to blocks.BatchNorm and blocks.dropout',
        )
    if in_parts and not jax.tree.leaves(variables['batch_stats']):  # a step refuses those
        whole, parts = (_trained(model, x, variables, key, axis_name, n) for n in (1, 2))
        if not _apart(whole[MASK], parts[MASK]) <= CLOSE:
            yield (
                'it draws something else when recipe.microbatch computes a batch in parts',
                'draw by blocks.dropout and blocks.drop_path alone, or leave out recipe.microbatch',
            )


def _faults_of_shape(
    model: Model, x: np.ndarray, key: jax.Array, n_out: int, axis_name: str, frames: bool
) -> Iterator[Fault]:
    """Structure, shapes and types, from an abstract evaluation."""
    variables = jax.eval_shape(model.init, key)
    names = sorted(variables) if isinstance(variables, dict) else type(variables).__name__
    if names != ['batch_stats', 'params']:
        kept = "running statistics are self.variable('batch_stats', ...), as in blocks.BatchNorm"
        yield f'init gives {names}', f"expected {{'params': ..., 'batch_stats': ...}}; {kept}"
    for place, leaf in jax.tree_util.tree_leaves_with_path(variables['params']):
        if leaf.dtype != jnp.result_type(float):
            yield (
                f'parameter {_dotted(place)} is {leaf.dtype}',
                'what is learnt is float32 (compute in another type where you like); anything else is state',
            )
    more = np.resize(x, (ROWS, *x.shape[1:]))
    for some, train, noise in ((x, False, None), (x, True, None), (x, True, key), (more, True, key)):
        how = 'training' if train else 'evaluation'
        apply = jax.vmap(partial(_apply, model, train=train), in_axes=(None, 0, None), axis_name=axis_name)
        try:
            outputs, state, features = jax.eval_shape(apply, variables, _batch(some, 1), noise)
        except _NoAnswer as error:
            yield f'apply returns {error}', ANSWER
        shape = list(outputs.shape[1:])
        fits = len(shape) == 2 + frames and [shape[0], shape[-1]] == [len(some), n_out] and 0 not in shape
        if not fits or not jnp.issubdtype(outputs.dtype, jnp.floating):
            wanted = (
                f'[{len(some)}, any, {n_out}], [windows, frames, n_out]'
                if frames
                else (f'[{len(some)}, {n_out}], [windows, n_out]')
            )
            yield f'{how} gives {outputs.dtype} {shape}', f'expected float {wanted}'
        if differing := _described(variables['batch_stats'], 0) ^ _described(state, 1):
            names = ', '.join(sorted({name for name, *_ in differing}))
            yield f'{how} gives a state of other structure, shape or type ({names})', 'expected that of the state given'
        for name, leaf in features.items():
            if leaf.ndim < 2 or leaf.shape[1] != len(some):
                yield (
                    f'feature {name!r} is {list(leaf.shape[1:])}',
                    f'expected [{len(some)}, ...], windows first, in evaluation and in training',
                )


def _faults_of_numbers(answer: Found) -> Iterator[Fault]:
    parts = {
        'outputs in evaluation': answer.outputs[MASK],
        'outputs in training': answer.trained[MASK],
        'state after training': answer.state,
        'gradient': answer.gradient,
    }
    for what, tree in parts.items():
        for place, leaf in jax.tree_util.tree_leaves_with_path(tree):
            if n := int((~np.isfinite(leaf)).sum()):
                of = f' of {_dotted(place)}' if place else ''
                remedy = 'guard divisions, logarithms and roots against zero'
                yield f'{n} of {leaf.size} values of the {what}{of} are not finite', remedy


def _faults_of_rows(ask: Program, answer: Found, x: np.ndarray, strange: np.ndarray) -> Iterator[Fault]:
    """Rows of padding count nowhere; in evaluation no row counts for another."""
    for scale in (1, 1000):
        padded = ask(np.where(MASK[:, None, None], x, np.float32(scale) * strange))
        yield from _faults_of_numbers(padded)
        if not _apart(answer.outputs[MASK], padded.outputs[MASK]) <= CLOSE:
            yield 'evaluation depends on rows whose mask is False', 'compute each window by itself'
        if not _same(answer, padded):
            yield (
                'training depends on rows whose mask is False (it ignores mask)',
                "leave them out of every statistic: batch['mask'] says which they are, blocks.BatchNorm takes it",
            )
    moved = strange.copy()
    moved[[3, 1]] = x[[0, 1]]  # one elsewhere in the batch, one in its place
    if not _apart(answer.outputs[[0, 1]], ask(moved).outputs[[3, 1]]) <= CLOSE:
        yield (
            'evaluation of a window depends on the other windows of its batch',
            'use running statistics where train is False, as blocks.BatchNorm does',
        )


def _lower(
    model: Model, x: np.ndarray, variables: Variables, key: jax.Array, axis_name: str, n_devices: int = 1
) -> jax.stages.Lowered:
    """A network traced anew, in evaluation and training, the batch split as over so many devices."""

    def part(batch: dict, variables: Variables) -> Found:
        def share(params: Tree) -> tuple[jax.Array, tuple[jax.Array, Tree]]:
            outputs, state, _ = _apply(model, {**variables, 'params': params}, batch, key, train=True)
            counts = batch['mask'].reshape(-1, *[1] * (outputs.ndim - 1))
            return jnp.where(counts, jnp.square(outputs - 1), 0).sum(), (outputs, state)

        outputs, kept, _ = _apply(model, variables, batch, None, train=False)
        gradient, (trained, state) = jax.grad(share, has_aux=True)(variables['params'])
        return Found(outputs, kept, trained, state, jax.lax.psum(gradient, axis_name))

    program = jax.jit(jax.vmap(part, in_axes=(0, None), axis_name=axis_name))
    return program.lower(_batch(x, n_devices), variables)


def _trained(model: Model, x: np.ndarray, variables: Variables, key: jax.Array, axis_name: str, n: int) -> np.ndarray:
    """Outputs in training of a batch that one device computes in n parts."""
    apply = jax.vmap(partial(_apply, model, train=True), in_axes=(None, 0, None), axis_name=axis_name)
    batch, found = _batch(x, n), []
    for which in range(n):
        with rows.part(n, which):
            windows = {name: a[which : which + 1] for name, a in batch.items()}
            found.append(apply(variables, windows, key)[0][0])
    return np.concatenate(found)


def _ask(program: jax.stages.Lowered, variables: Variables, n_devices: int = 1) -> Program:
    compiled = program.compile()

    def ask(x: np.ndarray) -> Found:
        found = jax.device_get(compiled(_batch(x, n_devices), variables))
        first = Found(*jax.tree.map(lambda a: a[0], tuple(found)))  # of what all devices have in common
        return first._replace(outputs=np.concatenate(found.outputs), trained=np.concatenate(found.trained))

    return ask


def _apply(model: Model, variables: Variables, batch: dict, key: jax.Array | None, *, train: bool) -> Answer:
    given = {**batch, **model.precompute(batch['x'])} if train else batch
    return _checked(model.apply(variables, given, train=train, key=key))


def _checked(found: Any) -> Answer:
    """What `apply` returned. Raises _NoAnswer where that is something else."""
    if not isinstance(found, Answer):
        one = 'an array' if isinstance(found, jax.Array) else f'a {type(found).__name__}'
        raise _NoAnswer(f'{len(found)} values' if isinstance(found, tuple) else one)
    return found


def _batch(x: np.ndarray, n_devices: int) -> dict[str, np.ndarray]:
    mask = np.resize(MASK, len(x))
    return {k: v.reshape(n_devices, -1, *v.shape[1:]) for k, v in (('x', x), ('mask', mask))}


def _same(a: Found, b: Found) -> bool:
    """Whether every part is near enough, each by its own greatest value; of outputs the rows that count."""
    a, b = (v._replace(outputs=v.outputs[MASK], trained=v.trained[MASK]) for v in (a, b))
    return all(_apart(p, q) <= CLOSE for p, q in zip(a, b, strict=True))


def _apart(a: Tree, b: Tree) -> float:
    """Greatest difference of two trees of arrays, by the greatest value of the first; nan where a value is none, inf
    where structures or shapes differ."""
    if jax.tree.map(np.shape, a) != jax.tree.map(np.shape, b):
        return np.inf
    p, q = (np.concatenate([np.zeros(1), *(np.ravel(v).astype(float) for v in jax.tree.leaves(t))]) for t in (a, b))
    far = float(np.abs(p - q).max())
    return far and far / float(max(np.abs(p).max(), 1e-30))


def _described(tree: Tree, skip: int) -> set[tuple[str, Any, Any]]:
    """Place, shape (without the first `skip` axes) and type of every array of a tree."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {(_dotted(place), leaf.shape[skip:], leaf.dtype) for place, leaf in leaves}


def _dotted(place: Any) -> str:
    return jax.tree_util.keystr(place, simple=True, separator='.')
