"""What of a pretrained encoder learns (`Recipe.adaptation`), as a network and as factors of the rate.

Layers are the parts of an encoder that are called `layer_<i>` (of BIOT and CodeBrain, which have none, those whose name
ends in a number). What stands before them is the first stage, what follows them the last one. The last one has what is
new on every dataset, too, since no weights hold it: the head, and mixtures of channels and spatial filters before it.

- last_k: the last layers and the last stage learn, the rest stays as it is
- layer_decay=d: the rate of stage s of S is lr * d^(S-s), as for BEiT (Bao et al. 2022); the last one learns at lr
- two_stage: what is new alone for `head_epochs` epochs, then all of it under a schedule of its own
- attention: its matrices and their biases, and what is new
- lora: see lora.py

A recipe may let the head read another feature than the encoder's own does (`layer`, `aggregation`), or have other
layers (`head`): then the encoder has a new head, whatever of it learns. Layers that it does not rest on are none.

Parts that stay as they are have no gradient and no weight decay; their dropout is that of training, and batch
statistics follow the data. Of a probe the encoder only answers (models/foundation/probes.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from jbench.models import factory
from jbench.models.foundation import probes
from jbench.models.model import Model, one_window
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.recipe import DEFAULT, LORA, PROBES, Recipe
from jbench.train import lora

# parts of encoders that follow their layers
AFTER = ('norm', 'norm_out', 'out', 'narrow', 'last', 'head_*', 'fast_norm', 'slow_norm', 'fast_time', 'slow_time')


def adapted(network: Model, signal: Signal, n_out: int, recipe: Recipe, axis_name: str | None) -> Model:
    """A network as a recipe adapts it. Raises: RequestError where it cannot be."""
    if not recipe.own_head:
        network = _with_new_head(network, signal, n_out, recipe, axis_name)
    if recipe.adaptation == 'lora':
        return lora.adapted(network, recipe)
    return network


def _with_new_head(network: Model, signal: Signal, n_out: int, recipe: Recipe, axis_name: str | None) -> Model:
    encoder, spec = probes.tapped(network, recipe), probes.head_of(recipe)
    read = probes.features(probes.width(encoder, signal))
    head = factory(spec)(read, n_out, axis_name=axis_name, **dict(spec.options))
    made = probes.attached(encoder, head, frozen=recipe.adaptation in PROBES)
    if recipe.layer == DEFAULT.layer:
        return made
    return made._replace(unread=_unread(made, signal))


def _unread(network: Model, signal: Signal) -> frozenset[str]:
    """Names of the tensors of parameters that outputs do not depend on: of layers behind the one that is read."""
    like = jax.eval_shape(network.init, jax.random.key(0))
    batch = one_window(signal)
    stats = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), like['batch_stats'])

    def answer(params: Any) -> jax.Array:
        return network.apply({'params': params, 'batch_stats': stats}, batch, train=False, key=None).outputs

    program = jax.make_jaxpr(answer)(like['params']).jaxpr
    _, read = partial_eval.dce_jaxpr(program, [True] * len(program.outvars))
    unread = {path for path, is_read in zip(_paths(network), read, strict=True) if not is_read}
    return frozenset(t.name for t in network.named() if t.path[:1] == ('params',) and '.'.join(t.path[1:]) in unread)


def resolved(recipe: Recipe, network: Model) -> Recipe:
    """The recipe with its adaptation as factors of parameters (`Recipe.trainable`); `network` as `adapted` gives it.

    Raises: RequestError for a network without what it adapts.
    """
    if recipe.adaptation == 'full' and recipe.layer_decay == 1:
        return recipe
    factors: dict[str, float] = {}
    paths = _paths(network)
    if recipe.adaptation == 'lora':
        new = _new(network)
        factors = {p: 0.0 for p in paths if p.startswith('base.') and p not in new}
    elif recipe.adaptation in PROBES:
        factors = {p: 0.0 for p in paths if p.startswith('encoder.')}
    elif recipe.adaptation == 'attention':
        learns = _new(network) | _attention(network, recipe)
        factors = {p: 0.0 for p in paths if p not in learns}
    elif recipe.adaptation == 'last_k' or recipe.layer_decay != 1:
        factors = _layered(recipe, network, paths)
    plain = {name: getattr(DEFAULT, name) for name in ('last_k', 'layer_decay', *LORA)}
    return dataclasses.replace(recipe, **plain, adaptation='full', trainable=(*recipe.trainable, *factors.items()))


def stages(recipe: Recipe, network: Model) -> list[Recipe]:
    """The recipes that are followed one after the other: of two_stage that of what is new, then that of all."""
    if recipe.adaptation != 'two_stage':
        return [recipe]
    new, n = _new(network), recipe.head_epochs
    last = dataclasses.replace(recipe, adaptation='full', head_epochs=DEFAULT.head_epochs)
    first = dataclasses.replace(
        last,
        layer_decay=1.0,
        trainable=tuple((p, 0.0) for p in _paths(network) if p not in new),
        max_epochs=n,
        patience=n,
        least_steps=0,
        patience_steps=0,
    )
    return [first, last]


def _layered(recipe: Recipe, network: Model, paths: list[str]) -> dict[str, float]:
    """Factors of the parameters whose factor is not 1."""
    unread = {'.'.join(t.path[1:]) for t in network.named() if t.name in network.unread}
    stage_of, last = _stages_of(network, paths, unread)
    if recipe.adaptation == 'last_k' and recipe.last_k > last - 1:
        where = f' up to recipe.layer={recipe.layer}' if unread else ''
        raise RequestError(f'--set recipe.last_k: {recipe.last_k} layers, and this encoder has {last - 1}{where}')
    out = {}
    for path in paths:
        stage = 0 if path in unread else stage_of(path)
        learns = recipe.adaptation != 'last_k' or stage >= last - recipe.last_k
        factor = recipe.layer_decay ** (last - stage) if learns else 0.0
        if factor != 1:
            out[path] = factor
    return out


def _stages_of(network: Model, paths: list[str], unread: set[str]) -> tuple[Callable[[str], int], int]:
    """(the stage of a parameter that is read, the last stage): 0, then one for each layer, then the last."""
    pattern = r'layer_(\d+)' if 'layer_0' in {_part(p) for p in paths} else r'.+_(\d+)'
    parts = {part for p in paths if p not in unread and not _is_after(part := _part(p))}
    numbers = {part: int(match[1]) for part in parts if (match := re.fullmatch(pattern, part))}
    if not numbers:
        where = ' before what recipe.layer reads' if unread else ''
        raise RequestError(
            f'recipe.adaptation, recipe.layer_decay: this network has no layers that follow one another{where}'
        )
    last, new = max(numbers.values()) + 2, _new(network)

    def stage(path: str) -> int:
        part = _part(path)
        return numbers[part] + 1 if part in numbers else last if path in new or _is_after(part) else 0

    return stage, last


def _is_after(part: str) -> bool:
    return any(fnmatchcase(part, name) for name in AFTER)


def _part(path: str) -> str:
    """The part of an encoder that a parameter belongs to."""
    return path.removeprefix('encoder.').partition('.')[0]


def _attention(network: Model, recipe: Recipe) -> set[str]:
    """Dotted paths of the matrices of attention and of their biases. Raises: RequestError where there are none."""
    names = {t.name for t, _ in lora.live_targets(network, recipe)}
    names |= {f'{name.removesuffix("weight")}bias' for name in names} | {
        f'{name.removesuffix("qkv.weight")}{of}_bias' for name in names if name.endswith('qkv.weight') for of in 'qkv'
    }
    chosen, others = (
        {'.'.join(t.path[1:]) for t in network.named() if (t.name in names) == own} for own in (True, False)
    )
    if mixed := chosen & others:
        raise RequestError(
            f'recipe.adaptation=attention: {sorted(mixed)[0]} of this network holds other matrices, too; '
            'recipe.adaptation=lora adapts attention alone'
        )
    return chosen


def _paths(network: Model) -> list[str]:
    """Dotted paths of all parameters."""
    like: Any = jax.eval_shape(network.init, jax.random.key(0))['params']
    leaves = jax.tree_util.tree_leaves_with_path(like)
    return [jax.tree_util.keystr(path, simple=True, separator='.') for path, _ in leaves]


def _new(network: Model) -> set[str]:
    """Dotted paths of the parameters that no weights hold."""
    return {'.'.join(tensor.path[1:]) for tensor in probes.new(network)}
