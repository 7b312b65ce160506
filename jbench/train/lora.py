"""Low-rank adaptation: a network whose matrices of attention learn a few directions, what is new all, the rest none.

Hu et al. (2022), LoRA: Low-rank adaptation of large language models. ICLR, arXiv:2106.09685.

    W' = W + (alpha / r) B A,  A [r, n_in] drawn from U(-1/sqrt(n_in), 1/sqrt(n_in)) (Kaiming-uniform), B [n_out, r] = 0

for query, key, value and projection of every attention, or the matrices that `Recipe.lora_targets` names; of a packed
matrix each of the three has a pair of its own. The matrices are added before the network is applied, so that it knows
nothing of them and none can be left out. Which ones they are is told by the names of the reference's tensors. Matrices
that no output depends on (`Model.idle`) have no pair, nor have those that learn whole: what no weights hold.

Dropout leaves out columns of A, the same for all windows and tokens of a batch; PEFT draws them for each token, which
matrices that are added cannot. The mean is the same.

Parameters: {'base': those of the network, 'lora': {name of a tensor: {'a', 'b'}}}. Kept weights hold both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import reduce
from operator import getitem
from typing import Any

import jax
import jax.numpy as jnp

from jbench.models.foundation import probes
from jbench.models.layers.blocks import PRECISION
from jbench.models.model import Answer, Batch, Model
from jbench.models.torch_weights import Exceptions, Tensor, Variables
from jbench.spec.errors import RequestError, unknown
from jbench.spec.recipe import Recipe

EMPTY: Mapping[str, tuple[int, ...]] = {}
# ends of names of matrices of attention; packed ones hold query, key and value
PACKED = r'(.*\.)?(in_proj_weight|(to_)?qkv(_proj)?\.weight)'
_NAMES = ('to_[qkv]', r'to_out(\.0)?', '[qkv]_proj', 'out_proj', r'(attn|attention)\.proj')
_OURS = r'fn\.\d+\.(queries|keys|values|projection)'  # of braindecode's own layers
SINGLE = rf'(.*\.)?({"|".join((*_NAMES, _OURS))})\.weight'


def targets(network: Model, patterns: tuple[str, ...] = ()) -> list[tuple[Tensor, int]]:
    """The tensors that are adapted, and how many matrices each packs.

    Args:
        network: with a head, which is never adapted, nor what else no weights hold.
        patterns: of `fnmatch`, of names of matrices; none: those of attention.

    Raises: RequestError for a network without a head, without matrices of attention, or a pattern that fits none.
    """
    new = {t.name for t in probes.new(network)}
    there = [t for t in network.named() if len(t.shape) == 2 and _is_param(t) and t.name not in new]
    for pattern in patterns:
        if not any(fnmatchcase(t.name, pattern) for t in there):
            names = {re.sub(r'\.\d+\.', '.*.', t.name, count=1): None for t in there}  # layers alike, as patterns
            raise unknown('matrix of this network (recipe.lora_targets)', pattern, names)
    named = [(t, 3 if re.fullmatch(PACKED, t.name) else 1) for t in there]
    if patterns:
        return [(t, n) for t, n in named if any(fnmatchcase(t.name, pattern) for pattern in patterns)]
    found = [(t, n) for t, n in named if n == 3 or re.fullmatch(SINGLE, t.name)]
    if not found:
        raise RequestError('recipe.adaptation: this network has no matrices of attention')
    return found


def live_targets(network: Model, recipe: Recipe) -> list[tuple[Tensor, int]]:
    """Those that outputs depend on. Raises: RequestError where there are none, and as `targets`."""
    found = [(t, n) for t, n in targets(network, recipe.lora_targets) if t.name not in network.unread]
    if not found:
        raise RequestError(
            f'--set recipe.layer={recipe.layer}: every matrix that recipe.adaptation={recipe.adaptation} adapts lies '
            'behind it; read a later layer, or leave out recipe.layer'
        )
    return found


def adapted(network: Model, recipe: Recipe) -> Model:
    """A network with pairs of matrices of `lora_rank`, scaled by lora_alpha / lora_rank. Raises: as `targets`."""
    rank, idle, chosen = recipe.lora_rank, network.idle, live_targets(network, recipe)

    def init(key: jax.Array) -> Variables:
        drawn = network.init(key)
        keys = jax.random.split(jax.random.fold_in(key, 1), len(chosen))
        pairs = {t.name: _pair(k, t, n, rank, _live(t, n, idle)) for k, (t, n) in zip(keys, chosen, strict=True)}
        return {**drawn, 'params': {'base': drawn['params'], 'lora': pairs}}

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        given = variables
        if train and key is not None and recipe.lora_dropout:
            key, drawn = jax.random.split(key)
            given = {**variables, 'params': {**variables['params'], 'lora': _dropped(variables, drawn, recipe)}}
        return network.apply(merged(given, chosen, recipe.lora_alpha / rank, idle), batch, train=train, key=key)

    tensors = [t._replace(path=(t.path[0], 'base', *t.path[1:]) if _is_param(t) else t.path) for t in network.named()]
    for t, n in chosen:
        (n_out, n_in), packed = t.shape, (len(_live(t, n, idle)),) * (n > 1)
        path = ('params', 'lora', t.name)
        tensors.append(Tensor(f'lora.{t.name}.a', (*packed, rank, n_in), (*path, 'a')))
        tensors.append(Tensor(f'lora.{t.name}.b', (*packed, n_out // n, rank), (*path, 'b')))
    declared = network.checkpoints or (Exceptions(head=tuple(t.name for t in network.own_head())),)
    checkpoints = tuple(e._replace(head=(*e.head, 'lora.*')) for e in declared)
    return network._replace(init=init, apply=apply, tensors=tensors, checkpoints=checkpoints)


def merged(
    variables: Variables, chosen: list[tuple[Tensor, int]], scale: float, idle: Mapping[str, tuple[int, ...]] = EMPTY
) -> Variables:
    """Variables of the network alone, with the products of the pairs added."""
    params = _copied(variables['params']['base'])
    for tensor, n in chosen:
        pair, (*way, leaf) = variables['params']['lora'][tensor.name], tensor.path[1:]
        inner = reduce(getitem, way, params)
        whole = inner[leaf]
        old = whole if tensor.row is None else whole[tensor.row]
        product, live = jnp.matmul(pair['b'], pair['a'], precision=PRECISION), _live(tensor, n, idle)
        if len(live) < n:
            product = jnp.zeros((n, *product.shape[1:])).at[jnp.array(live)].set(product)
        new = old + scale * product.reshape(old.shape)
        inner[leaf] = new if tensor.row is None else whole.at[tensor.row].set(new)
    return {**variables, 'params': params}


def _live(tensor: Tensor, n: int, idle: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Which of the n matrices that a tensor packs the answer depends on."""
    return tuple(i for i in range(n) if i not in idle.get(tensor.name, ()))


def _pair(key: jax.Array, tensor: Tensor, n: int, rank: int, live: tuple[int, ...]) -> dict[str, jax.Array]:
    """A and B of a tensor [n_out, n_in], of a packed one [n, ...] each, less those that are idle."""
    (n_out, n_in), packed = tensor.shape, (n,) * (n > 1)
    bound = 1 / math.sqrt(n_in)
    a = jax.random.uniform(key, (*packed, rank, n_in), jnp.float32, -bound, bound)
    a = a[jnp.array(live)] if len(live) < n else a
    return {'a': a, 'b': jnp.zeros((*a.shape[:-2], n_out // n, rank))}


def _dropped(variables: Variables, key: jax.Array, recipe: Recipe) -> dict[str, Any]:
    """The pairs, less columns of A: each with the probability of `lora_dropout`; the others are made up for it."""
    pairs, rate = variables['params']['lora'], recipe.lora_dropout
    out = {}
    for one, (name, pair) in zip(jax.random.split(key, len(pairs)), sorted(pairs.items()), strict=True):
        a = pair['a']
        kept = jax.random.bernoulli(one, 1 - rate, (*a.shape[:-2], 1, a.shape[-1]))
        out[name] = {**pair, 'a': jnp.where(kept, a / (1 - rate), 0)}
    return out


def _is_param(tensor: Tensor) -> bool:
    return bool(tensor.path) and tensor.path[0] == 'params'


def _copied(tree: Any) -> Any:
    return {k: _copied(v) for k, v in tree.items()} if isinstance(tree, dict) else tree
