"""What the recorder of torchvision's and timm's numbers and the tests against them share: weights, images, places.

Weights and images are not stored: both sides make them again from names and shapes.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

NETWORKS = ('alexnet', 'resnet18', 'resnet50', 'vit_s')
ROWS, PLACES = 2, 24  # images, and recorded values of a layer


def rng(*names: str) -> np.random.Generator:
    """Numbers that depend on these names alone."""
    return np.random.default_rng([zlib.crc32(name.encode()) for name in names])


def images() -> np.ndarray:
    """Images f32 [2, 224, 224, 3], as networks see them."""
    return rng('images').standard_normal((ROWS, 224, 224, 3), np.float32)


def state(network: str, layout: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """A state_dict in which no tensor is at its initial value and activations stay near 1."""
    return {name: _tensor(network, name, shape) for name, shape in layout.items()}


def _tensor(network: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
    draws = rng(network, name)
    if name.endswith('num_batches_tracked'):
        return np.array(7)
    if name.endswith('running_var'):
        return draws.uniform(0.5, 2, shape).astype(np.float32)
    if len(shape) == 1 and name.endswith('weight'):  # gains
        return draws.uniform(0.3, 0.8, shape).astype(np.float32)
    if len(shape) == 1 or name in ('cls_token', 'pos_embed'):
        return 0.3 * draws.standard_normal(shape, np.float32)
    return np.float32(1.4 / math.sqrt(math.prod(shape[1:]))) * draws.standard_normal(shape, np.float32)


def sample(network: str, layer: str, values: np.ndarray) -> np.ndarray:
    """What is recorded of a layer [image, ...]: values at random places, then the mean and the root mean square."""
    flat = values.reshape(len(values), -1).astype(float)
    places = rng(network, layer, 'places').integers(flat.shape[1], size=PLACES)
    return np.concatenate([flat[:, places].ravel(), flat.mean(1), np.sqrt((flat**2).mean(1))])


def torchvision() -> Any:
    """The package; where its compiled operators were made for another build of torch, with names in their place."""
    import torch

    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library('torchvision', 'DEF')
        for name in ('nms', 'qnms'):
            library.define(f'{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
        import torchvision

        torchvision.operators = library  # they last as long as this object
    return torchvision


def reference(network: str) -> Any:
    """The network in torch, in evaluation, with the weights of `state`; none of its layers overwrites its input."""
    import torch

    models = torchvision().models  # before timm, which imports it too
    if network == 'vit_s':
        import timm

        net = timm.create_model('vit_small_patch16_224', pretrained=False)
    else:
        net = getattr(models, network)()
    layout = {name: tuple(v.shape) for name, v in net.state_dict().items()}
    net.load_state_dict({name: torch.tensor(v) for name, v in state(network, layout).items()})
    for module in net.modules():
        if hasattr(module, 'inplace'):
            module.inplace = False
    return net.eval()


def activations(net: Any, pixels: np.ndarray) -> dict[str, np.ndarray]:
    """What each module of a network in torch gives for images [b, y, x, 3]; `logits` is the last."""
    import torch

    found: dict[str, np.ndarray] = {}

    def keep(name: str) -> Any:
        return lambda module, given, out: found.__setitem__(name, out.detach().numpy())

    hooks = [module.register_forward_hook(keep(name)) for name, module in net.named_modules() if name]
    with torch.no_grad():
        found['logits'] = net(torch.tensor(pixels.transpose(0, 3, 1, 2).copy())).numpy()
    for hook in hooks:
        hook.remove()
    return found
