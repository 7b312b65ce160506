"""Weights of networks of images from files of torchvision and timm: safetensors, or pickled ones by torch alone."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from jbench import files
from jbench.models import pretrained, torch_weights
from jbench.models.torch_weights import EXACT, Exceptions, Tensor, Variables
from jbench.spec.errors import RequestError

COUNTERS = Exceptions(absent=('*.num_batches_tracked',))  # old files have none, and nothing is computed with them


def read(path: Path, tensors: Sequence[Tensor], like: Variables, kept: Path | None = None) -> Variables:
    """The variables of a network, from a state_dict.

    Args:
      path: a safetensors file, or one that `torch.save` wrote, of which tensors alone are read.
      tensors: the state_dict of the network.
      like: its variables, or their shapes.
      kept: folder where tensors of pickled files are kept, so that torch reads each once; None: nowhere.

    Raises: RequestError that names every tensor that is missing, unexpected or of another shape; for a file that is
      absent, damaged, or holds anything but tensors.
    """
    if not path.is_file():
        raise RequestError(f'no file of weights {path}; give a safetensors file of torchvision or timm')
    with tempfile.TemporaryDirectory() as scratch:
        found = pretrained.arrays(path, files.sha256_file(path), kept or Path(scratch))
    old = any(not t.path for t in tensors) and not any(name.endswith('.num_batches_tracked') for name in found)
    try:
        return torch_weights.restore(tensors, found, like, COUNTERS if old else EXACT, start=like)
    except RequestError as error:
        raise RequestError(f'{path}: {error}') from error


def digest(name: str, tensors: Sequence[Tensor], variables: Variables) -> str:
    """SHA-256 over a name and every tensor of a network."""
    whole = hashlib.sha256(name.encode())
    for tensor_name, array in torch_weights.export(tensors, variables).items():
        whole.update(f'\n{tensor_name} {array.shape} '.encode())
        whole.update(array.tobytes())
    return whole.hexdigest()
