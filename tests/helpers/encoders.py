"""A tiny encoder with two layers of attention, of which one packs its matrices, a mixture of channels, and a head."""

from __future__ import annotations

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers import blocks
from jbench.models.layers.attention import PackedAttention, packed_tensors
from jbench.models.model import Model, network
from jbench.models.torch_weights import Exceptions, Tensor, layer_norm_tensors, linear_tensors
from jbench.spec.cell import Cell
from jbench.spec.model import ModelSpec, Signal

WIDTH, PATCH, LAYERS = 8, 20, 2
SPEC = ModelSpec(name='tiny', title='Tiny', family='foundation', target='encoders:tiny', weights='none', citation='-')


class _Tiny(nn.Module):
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch, *, train, key):
        b, c, t = batch['x'].shape
        x = batch['x'][..., : t // PATCH * PATCH].reshape(b, c, -1, PATCH).mean(1)
        x = blocks.Linear(PATCH, WIDTH, name='embed')(x)
        keys = blocks.split(key, LAYERS)
        for i in range(LAYERS):
            x = x + PackedAttention(WIDTH, 2, 0.0, self.axis_name, name=f'layer_{i}')(x, keys[i])
            x = blocks.dropout(x, 0.1, keys[i], self.axis_name, batch_axis=0)
        pooled = blocks.LayerNorm(WIDTH, name='norm')(x).mean(1)
        self.sow('features', 'penultimate', pooled)
        return blocks.Linear(WIDTH, self.n_out, name='linear')(pooled)


def tiny(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    tensors: list[Tensor] = linear_tensors('embed', ('embed',), PATCH, WIDTH)
    for i in range(LAYERS):
        tensors += packed_tensors(f'layers.{i}.self_attn', (f'layer_{i}',), WIDTH)
    tensors += layer_norm_tensors('norm', ('norm',), WIDTH) + linear_tensors('head', ('linear',), WIDTH, n_out)
    return network(_Tiny(n_out, axis_name), signal, tensors, checkpoints=(Exceptions(head=('head.*',)),))


def of(cell: Cell, **recipe: object) -> Cell:
    """A cell with the tiny encoder and an adaptation."""
    task = dataclasses.replace(cell.task, recipe=dataclasses.replace(cell.task.recipe, **recipe))
    return dataclasses.replace(cell, model=SPEC, task=task)


def leaves(tree: object) -> dict[str, jnp.ndarray]:
    """Arrays by dotted path."""
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator='.'): leaf for path, leaf in found}
