"""ResNet-18 and ResNet-50 in torchvision's form (He et al. 2016), of images of 224 pixels.

Layers are called as torchvision calls its modules: `layer2.0` is the first block of a stage, `layer2` what its last
block gives; `logits` is what `fc` gives. Blocks of three convolutions have their stride in the second, the form called
v1.5. 11,689,512 and 25,557,032 parameters.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.alignment.candidates import parts
from jbench.alignment.candidates.network import Draw, Network, image_model
from jbench.alignment.image_model import IMAGENET_MEAN, IMAGENET_STD, LOGITS, ImageModel, Preprocess
from jbench.models.layers import blocks
from jbench.models.torch_weights import Tensor, batch_norm_tensors, linear_tensors

DRAWS: tuple[Draw, ...] = (
    ('fc.*', 'torch'),
    ('*.running_mean', 'zeros'),
    ('*.running_var', 'ones'),
    ('*bn?.weight', 'ones'),
    ('*.downsample.1.weight', 'ones'),
    ('*.bias', 'zeros'),
    ('*', 'fan_out'),
)
PREPROCESS = Preprocess(224, IMAGENET_MEAN, IMAGENET_STD)


class Step(NamedTuple):
    """One convolution of a block, without bias, with the batch norm behind it."""

    conv: str  # its name in torchvision
    norm: str
    n_in: int
    n_out: int
    kernel: int
    stride: int


class Block(NamedTuple):
    """x + steps(x), ReLU after each sum and between the steps; the way around them has a step where sizes change."""

    name: str
    steps: tuple[Step, ...]
    around: Step | None


def plan(blocks_of_stage: tuple[int, ...], deep: bool) -> list[Block]:
    """The blocks of a network; `deep` ones have three convolutions and give four times as many channels."""
    out, n_in, factor = [], 64, 4 if deep else 1
    for stage, n_blocks in enumerate(blocks_of_stage, 1):
        width = 32 * 2**stage
        for i in range(n_blocks):
            name, stride, n_out = f'layer{stage}.{i}', 2 if stage > 1 and i == 0 else 1, factor * width
            shapes = [(n_in, width, 3, stride), (width, width, 3, 1)]
            if deep:
                shapes = [(n_in, width, 1, 1), (width, width, 3, stride), (width, n_out, 1, 1)]
            steps = tuple(Step(f'{name}.conv{k}', f'{name}.bn{k}', *s) for k, s in enumerate(shapes, 1))
            other = stride > 1 or n_in != n_out
            around = Step(f'{name}.downsample.0', f'{name}.downsample.1', n_in, n_out, 1, stride)
            out.append(Block(name, steps, around if other else None))
            n_in = n_out
    return out


KINDS = {'resnet18': plan((2, 2, 2, 2), deep=False), 'resnet50': plan((3, 4, 6, 3), deep=True)}
STEM = Step('conv1', 'bn1', 3, 64, 7, 2)


class _ResNet(nn.Module):
    kind: str

    @nn.compact
    def __call__(self, x: jax.Array) -> dict[str, jax.Array]:
        """Activations of images x [b, 224, 224, 3]."""
        out = {}
        out['conv1'] = x = self._conv(STEM, x)
        out['bn1'] = x = self._norm(STEM, x)
        out['relu'] = x = nn.relu(x)
        out['maxpool'] = x = parts.max_pool(x, 3, 2, 1)
        for block in KINDS[self.kind]:
            h = x
            for i, step in enumerate(block.steps):
                h = self._norm(step, self._conv(step, nn.relu(h) if i else h))
            x = nn.relu(h + (self._norm(block.around, self._conv(block.around, x)) if block.around else x))
            out[block.name] = out[block.name.partition('.')[0]] = x
        out = {name: parts.as_torch(h) for name, h in out.items()}
        h = x.mean((1, 2))
        out['avgpool'] = h
        out[LOGITS] = blocks.Linear(h.shape[-1], 1000, name='fc')(h)
        return out

    def _conv(self, step: Step, x: jax.Array) -> jax.Array:
        shape = (step.n_in, step.n_out, step.kernel, step.stride, step.kernel // 2)
        return parts.Conv(*shape, bias=False, name=_ours(step.conv))(x)

    def _norm(self, step: Step, x: jax.Array) -> jax.Array:
        norm = blocks.BatchNorm(step.n_out, last=True, name=_ours(step.norm))
        return norm(x, jnp.ones(len(x), bool), train=False)


def _ours(name: str) -> str:
    return name.replace('.', '_')


def tensors(kind: str) -> list[Tensor]:
    """Torchvision's state_dict of a network of KINDS."""
    out: list[Tensor] = []
    steps = [STEM]
    for block in KINDS[kind]:
        steps += [*block.steps, *([block.around] if block.around else [])]
    for step in steps:
        weight = parts.conv_tensors(step.conv, (_ours(step.conv),), step.n_in, step.n_out, step.kernel)[0]
        out += [weight, *batch_norm_tensors(step.norm, (_ours(step.norm),), step.n_out)]
    return out + linear_tensors('fc', ('fc',), KINDS[kind][-1].steps[-1].n_out, 1000)


def layers(kind: str) -> tuple[str, ...]:
    """Names of layers of a network of KINDS, from the input to the output; a stage after its blocks."""
    names = [block.name for block in KINDS[kind]]
    stages = []
    for name, following in zip(names, [*names[1:], ''], strict=True):
        stage = name.partition('.')[0]
        stages += [name, *([] if following.startswith(f'{stage}.') else [stage])]
    return ('conv1', 'bn1', 'relu', 'maxpool', *stages, 'avgpool', LOGITS)


def resnet18(seed: int = 0, weights: Path | None = None) -> ImageModel:
    """ResNet-18 with weights drawn from a seed, as torchvision draws them, or those of a file. Raises: as `read`."""
    return _resnet('resnet18', seed, weights)


def resnet50(seed: int = 0, weights: Path | None = None) -> ImageModel:
    """ResNet-50 with weights drawn from a seed, as torchvision draws them, or those of a file. Raises: as `read`."""
    return _resnet('resnet50', seed, weights)


def _resnet(kind: str, seed: int, weights: Path | None) -> ImageModel:
    network = Network(kind, _ResNet(kind), tensors(kind), DRAWS, layers(kind), PREPROCESS)
    return image_model(network, seed, weights)
