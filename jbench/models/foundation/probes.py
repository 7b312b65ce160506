"""Heads on the features of an encoder, and an encoder with such a head as one network.

A head is a network of its own, over windows of d features (channels) and one sample, so that it is trained like any
other; `attached` puts it behind its encoder. `linear` is W x + b; the others have hidden layers (`SIZES`):

    mlp            256, ELU, dropout .5: that of OpenEEGBench 0.6.0 (braindecode)
    mlp_512        512, ReLU: that of NeuralBench's variants *_mlp_freeze
    mlp_800_200    800 and 200, ELU, dropout .1, of the answers too: that of its flatten_mlp_finetune

What a head reads is called `penultimate`, flattened. It is what the encoder's own head reads, or another feature of it,
whose tokens are put together (`tapped`). The encoder of a probe answers in evaluation: no dropout, its batch statistics
as they are. Everything before its head belongs to it, and stays as it starts: also what no checkpoint has, mixtures of
channels (BENDR, BIOT, EEGPT), spatial filters (Signal-JEPA), the first layer of EEGPT's `head=probe`. They are random
ones, unless they start from channels' names or places.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import reduce
from operator import getitem
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models import torch_weights
from jbench.models.layers import blocks
from jbench.models.model import Answer, Batch, Model, network, one_window
from jbench.models.torch_weights import Exceptions, Tensor, Variables
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import ModelSpec, Signal
from jbench.spec.recipe import DEFAULT, Recipe

QUARTERS = 4
FEATURE = 'penultimate'  # what the head of an encoder reads
SIZES = {  # of the hidden layers of a head; what follows each; the rate of dropout, and whether answers have it too
    'mlp': ((256,), jax.nn.elu, 0.5, False),
    'mlp_512': ((512,), jax.nn.relu, 0.0, False),
    'mlp_800_200': ((800, 200), jax.nn.elu, 0.1, True),
}
IMPLIED = {'probe': 'linear', 'ridge_probe': 'linear', 'mlp_probe': 'mlp'}  # by recipe.adaptation, without recipe.head


def _spec(name: str, title: str, factory: str) -> ModelSpec:
    options = () if factory == 'linear' else (('kind', name),)
    return ModelSpec(
        name=f'{name}_probe', title=title, family='foundation', target=f'{__name__}:{factory}', options=options
    )


# by name; no models of the table, since they read no windows
HEADS = {
    'linear': _spec('linear', 'Linear probe', 'linear'),
    **{name: _spec(name, f'Probe with hidden layers of {sizes[0]}', 'mlp') for name, sizes in SIZES.items()},
}


def head_of(recipe: Recipe) -> ModelSpec:
    """The head that a recipe puts behind an encoder."""
    return HEADS[recipe.head or IMPLIED.get(recipe.adaptation, 'linear')]


class _Linear(nn.Module):
    n_in: int
    n_out: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        return blocks.Linear(self.n_in, self.n_out, name='out')(batch['x'][..., 0])


class _Mlp(nn.Module):
    n_in: int
    n_out: int
    kind: str
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        sizes, curve, rate, last = SIZES[self.kind]
        h, n_in = batch['x'][..., 0], self.n_in
        keys = blocks.split(key, len(sizes) + 1) if len(sizes) > 1 or last else [key]
        for name, size, one in zip(_hidden(self.kind), sizes, keys, strict=False):
            h = curve(blocks.Linear(n_in, size, name=name)(h))
            h, n_in = blocks.dropout(h, rate, one, self.axis_name, batch_axis=0), size
        h = blocks.Linear(n_in, self.n_out, name='out')(h)
        return blocks.dropout(h, rate, keys[-1], self.axis_name, batch_axis=0) if last else h


def _hidden(kind: str) -> list[str]:
    """Names of the hidden layers of a head."""
    return ['hidden', *(f'hidden_{k}' for k in range(1, len(SIZES[kind][0])))]


def features(width: int) -> Signal:
    """The signal of features: `width` channels of one sample."""
    return Signal(n_chans=width, n_times=1, sfreq=1.0)


def linear(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """A linear layer over the channels of `signal`, which has one sample."""
    tensors = torch_weights.linear_tensors('0', ('out',), signal.n_chans, n_out)
    return network(_Linear(signal.n_chans, n_out), signal, tensors)


def mlp(signal: Signal, n_out: int, *, kind: str = 'mlp', axis_name: str | None = None) -> Model:
    """Hidden layers over the channels of `signal`, which has one sample, and a linear one; `kind`: of `SIZES`."""
    n_in, tensors = signal.n_chans, []
    for k, (name, size) in enumerate(zip(_hidden(kind), SIZES[kind][0], strict=True)):  # with curve and dropout: 3 each
        tensors += torch_weights.linear_tensors(str(3 * k), (name,), n_in, size)
        n_in = size
    tensors += torch_weights.linear_tensors(str(3 * len(SIZES[kind][0])), ('out',), n_in, n_out)
    return network(_Mlp(signal.n_chans, n_out, kind, axis_name), signal, tensors)


def own_head(encoder: Model) -> list[Tensor]:
    """The tensors of an encoder's own head. Raises: RequestError for a network without one."""
    if not (found := encoder.own_head()):
        raise RequestError('recipe.adaptation: this network is no encoder with a head; leave it as full')
    return found


def new(encoder: Model) -> list[Tensor]:
    """The tensors of an encoder that no weights hold, its head among them. Raises: as `own_head`."""
    own_head(encoder)
    return encoder.new()


def tapped(encoder: Model, recipe: Recipe) -> Model:
    """An encoder whose feature `penultimate` is what the recipe lets a head read, [B, d] for another than its own.

    Raises: RequestError for a network without a head; when it is applied, for a feature that it has not.
    """
    if (recipe.layer, recipe.aggregation) == (DEFAULT.layer, DEFAULT.aggregation):
        return encoder
    own_head(encoder)

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        answer = encoder.apply(variables, batch, train=train, key=key)
        if recipe.layer not in answer.features:
            if train:  # `width` has met all that there are
                raise RequestError(
                    f'--set recipe.layer={recipe.layer}: the encoder computes this layer again for the gradient, to '
                    f'save memory, so that nothing reads it. Expected one of {", ".join(answer.features)}; or take its '
                    'option remat=no, or set a smaller recipe.microbatch'
                )
            raise unknown('layer of this encoder (recipe.layer)', recipe.layer, answer.features)
        found = aggregated(answer.features[recipe.layer], recipe)
        return answer._replace(features={**answer.features, FEATURE: found})

    return encoder._replace(apply=apply)


def aggregated(x: jax.Array, recipe: Recipe) -> jax.Array:
    """A feature [B, tokens, d] (or [B, channels, patches, d]) as one vector for each window.

    'mean' over all tokens; 'first' of them; 'quarters': the mean of each quarter of them, side by side, as
    `torch.tensor_split` cuts them; 'flatten': all of them.

    Raises: RequestError for a feature without tokens, or with too few.
    """
    how, rows = recipe.aggregation, len(x)
    if how == 'flatten':
        return x.reshape(rows, -1)
    if x.ndim < 3:
        raise RequestError(
            f'--set recipe.aggregation={how}: the feature {recipe.layer!r} of this encoder is one vector a window '
            'already; take one of tokens, as --set recipe.layer=tokens'
        )
    tokens = x.reshape(rows, -1, x.shape[-1])
    if how == 'first':
        return tokens[:, 0]
    if how == 'mean':
        return tokens.mean(1)
    if tokens.shape[1] < QUARTERS:
        raise RequestError(f'--set recipe.aggregation={how}: {tokens.shape[1]} tokens have no {QUARTERS} parts')
    return jnp.concatenate([part.mean(1) for part in jnp.array_split(tokens, QUARTERS, axis=1)], 1)


def width(encoder: Model, signal: Signal) -> int:
    """Number of features of a window of `signal`. Raises: RequestError for a network without them, or a head."""
    own_head(encoder)
    batch = one_window(signal)
    like = jax.eval_shape(encoder.init, jax.random.key(0))

    def look(variables: Variables) -> dict[str, jax.Array]:
        return encoder.apply(variables, batch, train=False, key=None).features

    if FEATURE not in (found := jax.eval_shape(look, like)):
        raise unknown('feature of this network, which a head reads', FEATURE, found)
    return math.prod(found[FEATURE].shape[1:])


def without_head(encoder: Model, variables: Variables, unread: Collection[str] = ()) -> Variables:
    """Variables of an encoder less those of its own head, and of the tensors `unread`."""
    own = own_head(encoder)
    gone = {tensor.path for tensor in encoder.named() if tensor in own or tensor.name in unread}

    def kept(tree: Any, path: tuple[str, ...]) -> Any:
        if not isinstance(tree, dict):
            return tree
        parts = {k: kept(v, (*path, k)) for k, v in tree.items() if (*path, k) not in gone}
        return {k: v for k, v in parts.items() if not isinstance(v, dict) or v}

    return {name: kept(tree, (name,)) for name, tree in variables.items()}


def _with_head(encoder: Model, variables: Variables) -> Variables:
    """The inverse of `without_head`; the head is of zeros, and nobody reads what it answers."""
    like = jax.eval_shape(encoder.init, jax.random.key(0))
    out = _copy(variables)
    for tensor in own_head(encoder):
        shape, inner = reduce(getitem, tensor.path, like), out
        for part in tensor.path[:-1]:
            inner = inner.setdefault(part, {})
        inner[tensor.path[-1]] = jnp.zeros(shape.shape, shape.dtype)
    return out


def _copy(tree: Any) -> Any:
    return {k: _copy(v) for k, v in tree.items()} if isinstance(tree, dict) else tree


def joined(encoder: Model, variables: Variables, head: Variables) -> Variables:
    """Variables of `attached(encoder, ...)` from those of the two; the encoder's own head is left out."""
    bare = without_head(encoder, variables)
    return {name: _there({'encoder': bare[name], 'head': head[name]}) for name in ('params', 'batch_stats')}


def _there(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts that hold something: files of weights know no others."""
    return {name: part for name, part in parts.items() if part}


def attached(encoder: Model, head: Model, *, frozen: bool = True) -> Model:
    """An encoder, and a head on its features, as one network.

    Frozen, the encoder only answers, and nothing but the head is ever trained (train/probe.py); its tensors are called
    'encoder.*'. Else it is trained like any other; its tensors keep their names, so that its weights are read as ever.
    Those of the head are called 'head.*'.
    """

    def init(key: jax.Array) -> Variables:
        return joined(encoder, encoder.init(key), head.init(key))

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        inner, outer = (
            {name: variables[name].get(part, {}) for name in ('params', 'batch_stats')} for part in ('encoder', 'head')
        )
        first, second = (None, key) if frozen else blocks.split(key, 2)
        read = encoder.apply(_with_head(encoder, inner), batch, train=train and not frozen, key=first)
        x = read.features[FEATURE].reshape(len(batch['x']), -1, 1)
        answer = head.apply(outer, {'x': x, 'mask': batch['mask']}, train=train, key=second)
        stats = _there({'encoder': read.batch_stats, 'head': answer.batch_stats})
        return Answer(answer.outputs, stats, read.features)

    own = set(own_head(encoder))
    tensors = [_moved(t, 'encoder', renamed=frozen) for t in encoder.named() if t not in own]
    tensors += [_moved(t, 'head') for t in head.tensors]
    made = Model(
        init,
        apply,
        tensors,
        channels=encoder.channels,
        head=('head',),
        tokens=encoder.tokens,
        at_once=encoder.at_once,
    )
    if frozen:
        return made
    plain = Exceptions(ignored=tuple(t.name for t in own_head(encoder)), head=('head.*',))  # files hold the own head
    checkpoints = encoder.checkpoints or (plain,)
    return made._replace(precompute=encoder.precompute, checkpoints=checkpoints, idle=encoder.idle)


def _moved(tensor: Tensor, part: str, *, renamed: bool = True) -> Tensor:
    path = (tensor.path[0], part, *tensor.path[1:]) if tensor.path else ()
    return tensor._replace(name=f'{part}.{tensor.name}' if renamed else tensor.name, path=path)
