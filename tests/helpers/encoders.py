"""A tiny encoder of two layers of attention and a head; one keeps its matrices packed, one as rows of an array."""

from __future__ import annotations

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers import blocks
from jbench.models.layers.attention import PackedAttention, packed_tensors
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.model import Model, network
from jbench.models.torch_weights import Exceptions, Tensor, layer_norm_tensors, linear_tensors
from jbench.spec.cell import Cell
from jbench.spec.model import ModelSpec, Signal

WIDTH, PATCH = 8, 20
SPEC = ModelSpec(name='tiny', title='Tiny', family='foundation', target='encoders:tiny', weights='none', citation='-')


class _Stacked(nn.Module):
    """One head, whose query, key, value and projection lie in one array."""

    @nn.compact
    def __call__(self, x):
        matrices = self.param('matrices', blocks.xavier(WIDTH, WIDTH), (4, WIDTH, WIDTH))
        q, k, v = jnp.einsum('blj,nij->nbli', x, matrices[:3])
        return attend_wide(q[:, None], k[:, None], v[:, None])[:, 0] @ matrices[3].T


class _Tiny(nn.Module):
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch, *, train, key):
        b, c, t = batch['x'].shape
        x = batch['x'][..., : t // PATCH * PATCH].reshape(b, c, -1, PATCH).mean(1)
        x = blocks.Linear(PATCH, WIDTH, name='embed')(x)
        x = x + PackedAttention(WIDTH, 2, 0.0, self.axis_name, name='layer_0')(x, None)
        x = blocks.dropout(x, 0.1, key, self.axis_name, batch_axis=0)
        x = x + _Stacked(name='layer_1')(x)
        tokens = blocks.LayerNorm(WIDTH, name='norm')(x)
        self.sow('features', 'tokens', tokens)
        pooled = tokens.mean(1)
        self.sow('features', 'penultimate', pooled)
        return blocks.Linear(WIDTH, self.n_out, name='linear')(pooled)


def tiny(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    tensors: list[Tensor] = linear_tensors('embed', ('embed',), PATCH, WIDTH)
    tensors += packed_tensors('layers.0.self_attn', ('layer_0',), WIDTH)
    for row, name in enumerate(('to_q', 'to_k', 'to_v', 'to_out')):
        tensors.append(Tensor(f'layers.1.{name}.weight', (WIDTH, WIDTH), ('params', 'layer_1', 'matrices'), row))
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
