"""AlexNet in torchvision's form (Krizhevsky, 'One weird trick', 2014), of images of 224 pixels.

Layers are called as torchvision calls its modules. `features.0` is the convolution before its ReLU, `features.1` after
it. Dropout does nothing here; `logits` is what `classifier.6` gives. 61,100,840 parameters.
"""

from __future__ import annotations

from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.alignment.candidates import parts
from jbench.alignment.candidates.network import Draw, Network, image_model
from jbench.alignment.image_model import IMAGENET_MEAN, IMAGENET_STD, LOGITS, ImageModel, Preprocess
from jbench.models.layers import blocks
from jbench.models.torch_weights import Tensor, linear_tensors

CONVS = {  # number in `features`: channels in and out, kernel, stride, padding
    0: (3, 64, 11, 4, 2),
    3: (64, 192, 5, 1, 2),
    6: (192, 384, 3, 1, 1),
    8: (384, 256, 3, 1, 1),
    10: (256, 256, 3, 1, 1),
}
POOLS = (2, 5, 12)
DENSE = {1: (9216, 4096), 4: (4096, 4096), 6: (4096, 1000)}  # number in `classifier`: units in and out
DRAWS: tuple[Draw, ...] = (('*', 'torch'),)
PREPROCESS = Preprocess(224, IMAGENET_MEAN, IMAGENET_STD)
LAYERS = (
    *(f'features.{i}' for i in range(13)),
    'avgpool',
    *(f'classifier.{i}' for i in (1, 2, 4, 5)),
    LOGITS,
)


class _AlexNet(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array) -> dict[str, jax.Array]:
        """Activations of images x [b, 224, 224, 3]."""
        out = {}
        for i in range(13):
            if i in CONVS:
                x = parts.Conv(*CONVS[i], name=f'features_{i}')(x)
            else:
                x = parts.max_pool(x, 3, 2) if i in POOLS else nn.relu(x)
            out[f'features.{i}'] = parts.as_torch(x)
        out['avgpool'] = parts.as_torch(x)  # to 6 x 6, which it is already
        h = jnp.reshape(out['avgpool'], (len(x), -1))
        for i, (n_in, n_out) in DENSE.items():
            h = blocks.Linear(n_in, n_out, name=f'classifier_{i}')(h)
            out[LOGITS if i == 6 else f'classifier.{i}'] = h
            if i < 6:
                h = out[f'classifier.{i + 1}'] = nn.relu(h)
        return out


def tensors() -> list[Tensor]:
    """Torchvision's state_dict, in its order."""
    out = []
    for i, (n_in, n_out, kernel, *_) in CONVS.items():
        out += parts.conv_tensors(f'features.{i}', (f'features_{i}',), n_in, n_out, kernel)
    for i, (n_in, n_out) in DENSE.items():
        out += linear_tensors(f'classifier.{i}', (f'classifier_{i}',), n_in, n_out)
    return out


def alexnet(seed: int = 0, weights: Path | None = None) -> ImageModel:
    """AlexNet with weights drawn from a seed, as torch draws them, or those of a file. Raises: as `importers.read`."""
    network = Network('alexnet', _AlexNet(), tensors(), DRAWS, LAYERS, PREPROCESS)
    return image_model(network, seed, weights)
