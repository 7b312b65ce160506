"""Files of pretrained weights: their digest, their tensors, and a network that starts from them.

Files of safetensors are read natively. Pickled ones are read by torch alone, which is told to build tensors and nothing
else (`weights_only`), once: what it found is kept as safetensors under the digest of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.models.model import Model
from jbench.models.torch_weights import Exceptions, Variables
from jbench.spec.checkpoints import PICKLED
from jbench.spec.errors import MissingExtraError, RequestError


def arrays(path: Path, sha256: str, kept: Path) -> dict[str, np.ndarray]:
    """The tensors of a file of weights by name; those of nested dicts by dotted names ('encoder.conv.weight').

    Args:
        path: of the file.
        sha256: its digest, when the run began.
        kept: folder for tensors of pickled files.

    Raises: RequestError where the file is damaged or changed, or holds anything but tensors.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    with path.open('rb') as file:
        pickled = file.read(4).startswith(PICKLED)
    source = _converted(path, sha256, kept) if pickled else path
    blob = source.read_bytes()
    if not pickled and hashlib.sha256(blob).hexdigest() != sha256:
        raise RequestError(f'{path}: these weights changed while the run went on; run it again')
    try:
        found: dict[str, np.ndarray] = load(blob)
    except (SafetensorError, KeyError, TypeError) as error:
        raise RequestError(f'{source}: not a complete safetensors file ({error}); fetch it again') from error
    return found


def begin(model: Model, found: Mapping[str, np.ndarray], drawn: Variables, where: str) -> Variables:
    """Variables of a network that start from pretrained tensors; what is new in it keeps what was drawn.

    Args:
        model: the network; `model.checkpoints` says how files of it may differ from it.
        found: tensors by name.
        drawn: variables of it.
        where: what messages call the file.

    Raises: RequestError with every tensor that is missing, unexpected, or of another shape, and not declared to be.
    """
    if not model.checkpoints:
        raise RequestError(f'{where}: this network takes no pretrained weights')
    refused = []
    ours = Exceptions(head=model.checkpoints[0].head)  # a file that a run of jbench kept
    for exceptions in (*model.checkpoints, ours):
        try:
            return model.from_torch(found, exceptions, drawn)
        except RequestError as error:
            refused.append(str(error))
    nearest = min(refused, key=lambda text: text.count('\n'))  # the first of equals
    raise RequestError(f'{where}: {nearest}')


def _converted(path: Path, sha256: str, kept: Path) -> Path:
    """The tensors of a pickled file as safetensors. Raises: RequestError for one that holds anything else."""
    out = kept / f'{sha256}.safetensors'
    if out.is_file():
        return out
    if find_spec('torch') is None:
        raise MissingExtraError('torch', 'checkpoints', f'{path}, a pickled file of weights')
    import torch
    from safetensors.numpy import save

    try:
        content = torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # of any kind: the file decides what it is
        reason = str(error).strip().partition('\n')[0][:200]
        raise RequestError(
            f'{path}: not read, because it holds more than tensors, or is damaged ({reason}); expected a state_dict '
            'that torch.save wrote, or a safetensors file'
        ) from error
    found = _tensors(content)
    if not found:
        raise RequestError(f'{path}: holds no tensor; expected a state_dict that torch.save wrote')
    files.write_atomic(out, save({name: np.ascontiguousarray(t.float().numpy()) for name, t in found.items()}))
    return out


def _tensors(content: Any, prefix: str = '') -> dict[str, Any]:
    """Tensors of nested dicts by dotted names; of a file whose tensors all lie in one dict of it, as they stand there
    ('state_dict', 'model')."""
    if not isinstance(content, Mapping):
        return {}
    found: dict[str, Any] = {}
    for name, value in content.items():
        if hasattr(value, 'numpy') and hasattr(value, 'float'):
            found[f'{prefix}{name}'] = value.detach()
        else:
            found |= _tensors(value, f'{prefix}{name}.')
    parts = {name.partition('.')[0] for name in found}
    wrapped = [p for p in parts if isinstance(content.get(p), Mapping)] if not prefix and len(parts) == 1 else []
    return {name.removeprefix(f'{wrapped[0]}.'): t for name, t in found.items()} if wrapped else found
