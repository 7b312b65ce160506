"""The contract that every network fulfils, and a network from a flax module.

A network is two pure functions: `init` draws its variables, `apply` computes logits and named features; a list of
tensors tells what the variables are called in the reference implementation.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.core.scope import DenyList
from flax.traverse_util import flatten_dict

from jbench.models import tensor_file, torch_weights
from jbench.models.torch_weights import EXACT, Exceptions, Tensor, Variables
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import Signal

LAYER = re.compile(r'(layer|block)_\d+')  # parts of a network that follow one another
# what encoders, and networks of single papers, call their last layer; the latter two where there is no reference
LAST = ('head', 'final_layer', 'params.head', 'params.final_layer')
Batch = Mapping[str, jax.Array]  # {'x': f32[B, C, T], 'mask': bool[B], ...; 'channel_mask': bool[B, C] where asked}


class Answer(NamedTuple):
    """What a network makes of one batch."""

    outputs: jax.Array  # [B, n], or [B, frames, n]
    batch_stats: Any  # the new statistics; in evaluation those that were given
    # name -> [B, ...]; a program computes only those that it gives back
    features: dict[str, jax.Array] = {}  # noqa: RUF012 (nobody writes into it)


class TokenGrid(NamedTuple):
    """How the tokens of a window follow each other: row by row of a grid, after at most one that belongs to no time.

    A feature holds them along its first axis, or as a grid along its first two; one of another length holds none.
    """

    shape: tuple[int, int]
    time: int  # which of the two axes is time

    def laid_out(self, feature: np.ndarray) -> np.ndarray | None:
        """A feature [N, tokens, ...] as [N, *shape, ...]; None of one that holds other things."""
        n_tokens, length = self.shape[0] * self.shape[1], feature.shape[1]
        if feature.ndim > 3 and feature.shape[1:3] == self.shape:
            return feature
        if feature.ndim < 3 or length - n_tokens not in (0, 1):
            return None
        return feature[:, length - n_tokens :].reshape(len(feature), *self.shape, *feature.shape[2:])


class Model(NamedTuple):
    """A network as pure functions, built for one `Signal` and one number of outputs."""

    init: Callable[[jax.Array], Variables]  # init(key)
    apply: Callable[..., Answer]  # apply(variables, batch, *, train, key)
    tensors: Sequence[Tensor] = ()  # state_dict of the PyTorch reference; none: each array by its own path
    # precompute(x [B, C, T]) -> arrays [B, ...]: what training needs of each window alone. Computed once where windows
    # stay in memory, and carried in the batch; a batch without them computes them.
    precompute: Callable[[jax.Array], dict[str, jax.Array]] = lambda x: {}
    # how published files of weights may differ from it; one of which none is said takes files that differ in its head
    checkpoints: tuple[Exceptions, ...] = ()
    # of a network that knows electrodes by name: channel -> what it is used as; the others are left out
    channels: Mapping[str, str] | None = None
    # what another task draws anew: names of tensors, or what stands before a dot in them; it reads `penultimate`
    head: tuple[str, ...] = LAST
    # matrices that no output depends on: name of a tensor -> which of the three that are packed in it
    idle: Mapping[str, tuple[int, ...]] = {}
    unread: frozenset[str] = frozenset()  # names of tensors that no output depends on: of layers that no head reads
    tokens: TokenGrid | None = None  # how its features hold the tokens of a window; None: it has none
    # windows of a batch that a processor computes at once, so that their values fit its caches; 0: all
    at_once: int = 0

    def named(self) -> Sequence[Tensor]:
        """`tensors`, or each array by its own path where there are none."""
        return self.tensors or torch_weights.plain_tensors(jax.eval_shape(self.init, jax.random.key(0)))

    def own_head(self) -> list[Tensor]:
        """The tensors of its last layer; none where it is not known."""
        return [t for t in self.named() if any(f'{t.name}.'.startswith(f'{part}.') for part in self.head)]

    def new(self) -> list[Tensor]:
        """The tensors that no file of pretrained weights holds: its head and, before it, mixtures of channels, codes
        of their places or spatial filters, which are new on every dataset."""
        head, patterns = self.own_head(), {pattern for e in self.checkpoints for pattern in (*e.head, *e.absent)}
        return [t for t in self.named() if t in head or any(fnmatchcase(t.name, p) for p in patterns)]

    def to_torch(self, variables: Variables) -> dict[str, np.ndarray]:
        """Variables (or gradients, in their place) as a state_dict."""
        return torch_weights.export(self.tensors or torch_weights.plain_tensors(variables), variables)

    def from_torch(
        self,
        found: Mapping[str, np.ndarray],
        exceptions: Exceptions = EXACT,
        start: Variables | None = None,
    ) -> Variables:
        """Variables from a state_dict, as `torch_weights.restore` says.

        Raises: RequestError that names every tensor that does not fit.
        """
        like = jax.eval_shape(self.init, jax.random.key(0))
        tensors = self.tensors or torch_weights.plain_tensors(like)
        return torch_weights.restore(tensors, found, like, exceptions, start=start)


def load(
    model: Model, path: str | Path, *, exceptions: Exceptions = EXACT, start: Variables | None = None
) -> Variables:
    """Variables of `model` from a safetensors file of its PyTorch reference.

    Args:
        model: the network.
        path: of the file.
        exceptions: where the file may differ from the network; by default nowhere.
        start: variables of `model`, of which what the file need not hold is taken.

    Raises: RequestError where the file is absent, damaged, or differs from the network elsewhere.
    """
    if not Path(path).is_file():
        raise RequestError(f'no weights at {path}: expected a safetensors file')
    found = tensor_file.parsed(Path(path).read_bytes(), path, '; fetch it again')
    try:
        return model.from_torch(found, exceptions, start)
    except RequestError as error:
        raise RequestError(f'{path}: {error}') from error


def save(model: Model, variables: Variables, path: str | Path) -> None:
    """Writes the variables as a safetensors file under PyTorch names; the file appears complete or not at all."""
    from safetensors.numpy import save_file

    path = Path(path)
    partial = path.with_name(path.name + '.partial')
    save_file(model.to_torch(variables), partial, metadata={'format': 'pt'})
    os.replace(partial, path)


def require(
    name: str, signal: Signal, n_out: int, *, min_chans: int = 1, min_times: int = 1, dropout: float = 0.0
) -> None:
    """Refuse windows, or a rate of dropout, that a network is not defined for. Raises RequestError that says what it
    needs."""
    if not 0 <= dropout < 1:
        raise RequestError(f'{name}: dropout={dropout}: expected a rate from 0 to below 1')
    if signal.n_times < min_times:
        raise RequestError(f'{name}: windows of {signal.n_times} samples are too short, it needs at least {min_times}')
    if signal.n_chans < min_chans or n_out < 1:
        channels = 'one channel' if min_chans == 1 else f'{min_chans} channels'
        raise RequestError(f'{name}: needs at least {channels} and one output, got {signal.n_chans} and {n_out}')


def features(model: Model, *names: str) -> Callable[..., dict[str, jax.Array]]:
    """A compiled function of (variables, x [B, C, T], **batch) that gives features of windows, in evaluation.

    Args:
        model: the network.
        names: of the features; none: all that it has. The others are not computed.

    Raises: RequestError, when the function is called, for a name that the network does not have.
    """

    @jax.jit
    def compute(variables: Variables, x: jax.Array, **batch: jax.Array) -> dict[str, jax.Array]:
        given = {'x': x, 'mask': jnp.ones(len(x), bool), **batch}
        found = model.apply(variables, given, train=False, key=None).features
        for name in names:
            if name not in found:
                raise unknown('feature of this network', name, found)
        return {name: found[name] for name in names or found}

    return compute


def compiled_to_draw(draw: Callable[..., Any]) -> Any:
    """A function that draws first weights, compiled by `jax.jit` when it is first called, or by `lower` and `compile`;
    not for use inside of another `jit`.

    It is seldom called. A processor compiles it at level 1 of LLVM's optimisation, unless XLA_FLAGS names a level:
    networks of the table draw the bits of level 3, which takes longer, of Deep4Net many times (benchmarks/draws.py).
    """
    level = 'xla_backend_optimization_level'
    chosen = jax.default_backend() != 'cpu' or level in os.environ.get('XLA_FLAGS', '')
    return jax.jit(draw, compiler_options=None if chosen else {level: 1})


def one_window(signal: Signal) -> Batch:
    """A batch of one window of zeros."""
    batch = {'x': jnp.zeros((1, signal.n_chans, signal.n_times)), 'mask': jnp.ones(1, bool)}
    return batch | {'channel_mask': jnp.ones((1, signal.n_chans), bool)} if signal.channel_mask else batch


def network(
    module: nn.Module,
    signal: Signal,
    tensors: Sequence[Tensor] = (),
    *,
    precompute: Callable[[jax.Array], dict[str, jax.Array]] = lambda x: {},
    start: Callable[[Variables], Variables] = lambda variables: variables,
    checkpoints: tuple[Exceptions, ...] = (),
    channels: Mapping[str, str] | None = None,
    head: tuple[str, ...] = LAST,
    tokens: TokenGrid | None = None,
) -> Model:
    """The functions of a network for windows of `signal`.

    Args:
        module: called as module(batch, train=..., key=...) -> logits [B, n]; collections 'params' and 'batch_stats'.
            What it or a part of it gives to `self.sow('features', name, value)` is a feature, by its dotted path; so is
            the (first) answer of each of its parts that are called 'layer_<i>' or 'block_<i>'.
        tensors, precompute, checkpoints, channels, head, tokens: see `Model`.
        start: what becomes of the variables that the module draws (other initial values).
    """
    drawn = DenyList(('features', 'intermediates'))

    @jax.jit  # compiled, the forward pass of flax's initialisation is dropped
    def init(key: jax.Array) -> Variables:
        return start({'batch_stats': {}, **module.init(key, one_window(signal), train=False, key=None, mutable=drawn)})

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        x, mask = batch['x'], batch['mask']
        chex.assert_shape(x, (None, signal.n_chans, signal.n_times))
        chex.assert_shape(mask, (x.shape[0],))
        kept = ['features', 'intermediates', *(['batch_stats'] if train else [])]
        logits, changed = module.apply(
            variables, batch, train=train, key=key if train else None, mutable=kept, capture_intermediates=_is_layer
        )
        stats = changed.get('batch_stats', {}) if train else variables['batch_stats']
        found = _layers(changed.get('intermediates', {}), len(x)) | _named(changed.get('features', {}))
        return Answer(jnp.asarray(logits), stats, found)

    return Model(init, apply, tensors, precompute, checkpoints, channels, head, tokens=tokens)


def in_parts(model: Model) -> Model:
    """A transformer of which a processor computes as many windows at once as have some 4,400 tokens."""
    assert model.tokens is not None
    return model._replace(at_once=max(1, 4400 // math.prod(model.tokens.shape)))


def _is_layer(module: nn.Module, method: str) -> bool:
    """Whether a call is that of one of the layers of a network."""
    return method == '__call__' and len(module.path) == 1 and LAYER.fullmatch(module.path[0]) is not None


def _layers(called: Mapping[str, Any], rows: int) -> dict[str, jax.Array]:
    """What layers answer, by name; of one that is called once, with windows as its rows."""
    answers = {name: found['__call__'] for name, found in called.items() if len(found['__call__']) == 1}
    first = {name: jax.tree.leaves(answer[0])[0] for name, answer in answers.items()}
    return {name: array for name, array in first.items() if array.ndim > 1 and len(array) == rows}


def _named(sown: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Features by dotted path; of a layer that is called several times with its number behind it."""
    found = {}
    for path, values in flatten_dict(sown).items():
        for i, value in enumerate(values):
            found['.'.join(path) + f'.{i}' * (len(values) > 1)] = value
    return found
