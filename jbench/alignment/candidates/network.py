"""An image model of a flax module, its tensors under the names they have in torch, and how they are drawn."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial

from jbench.alignment import importers
from jbench.alignment.image_model import ImageModel, Preprocess
from jbench.models import torch_weights
from jbench.models.torch_weights import Tensor

VERSION = 1  # of the networks here: of another one, kept activations are not used
Draw = tuple[str, str | float]  # pattern of names, and how: see `drawn`


class Network(NamedTuple):
    """A network of images. The initialisers of the module are not used: compiling them takes many seconds."""

    identifier: str
    module: nn.Module  # images [B, size, size, 3] -> {layer: activations}
    tensors: Sequence[Tensor]  # its state_dict in torch
    draws: tuple[Draw, ...]
    layers: tuple[str, ...]  # from the input to the output
    preprocess: Preprocess


def image_model(network: Network, seed: int, weights: Path | None) -> ImageModel:
    """A network with weights from a seed, or from a file where one is given.

    Raises: RequestError for a file that does not fit; see `importers.read`.
    """
    size = network.preprocess.size
    like = jax.eval_shape(network.module.init, jax.random.key(0), jnp.zeros((1, size, size, 3)))
    if weights is None:
        variables = torch_weights.restore(network.tensors, drawn(network, seed), like)
    else:
        variables = importers.read(weights, network.tensors, like)
    digest = importers.digest(f'{network.identifier} version {VERSION}', network.tensors, variables)
    apply = Partial(partial(_applied, network.module), jax.device_put(variables))
    return ImageModel(network.identifier, network.layers, network.preprocess, apply, digest)


def _applied(module: nn.Module, variables: Any, images: jax.Array) -> dict[str, jax.Array]:
    activations: dict[str, jax.Array] = module.apply(variables, images)  # type: ignore[assignment]
    return activations


def drawn(network: Network, seed: int) -> dict[str, np.ndarray]:
    """A state_dict from a seed; what a tensor gets depends on the seed and its name alone.

    The first pattern of `draws` that fits a name says how: 'torch', uniform within 1 / sqrt(fan in), as torch draws
    layers; 'fan_out', normal with variance 2 / fan out (He et al. 2015); 'ones'; 'zeros'; a number, normal with that
    deviation.
    """
    shapes = {tensor.name: tensor.shape for tensor in network.tensors}
    return {tensor.name: _tensor(network.draws, tensor, shapes, seed) for tensor in network.tensors}


def _tensor(draws: Sequence[Draw], tensor: Tensor, shapes: Mapping[str, tuple[int, ...]], seed: int) -> np.ndarray:
    if not tensor.path:
        return np.zeros(tensor.shape, np.int64)
    how = next(how for pattern, how in draws if fnmatchcase(tensor.name, pattern))
    if how in ('ones', 'zeros'):
        return np.full(tensor.shape, how == 'ones', np.float32)
    rng = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
    if how == 'torch':
        weight = shapes[f'{tensor.name.rpartition(".")[0]}.weight']
        bound = np.float32(1 / math.sqrt(math.prod(weight[1:])))
        return bound * (2 * rng.random(tensor.shape, np.float32) - 1)
    deviation = how if isinstance(how, float) else math.sqrt(2 / (tensor.shape[0] * math.prod(tensor.shape[2:])))
    return np.float32(deviation) * rng.standard_normal(tensor.shape, np.float32)
