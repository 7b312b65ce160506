"""Files of pretrained weights: their digest, their tensors, and a network that starts from them.

Files of safetensors are read natively. Pickled ones are read by torch alone, which is told to build tensors and nothing
else (`weights_only`), once: what it found is kept as safetensors under the digest of the file.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.models import tensor_file
from jbench.models.model import Model
from jbench.models.torch_weights import Exceptions, Variables, described, plain_tensors
from jbench.spec.checkpoints import PICKLED
from jbench.spec.errors import MissingExtraError, RequestError

WRAPPED = ('state_dict', 'model_state_dict', 'model')  # entries of a checkpoint that hold its tensors
DEEPEST = 8  # dicts in one another
OTHER = re.compile(r'GLOBAL (\S+) (?:was not an allowed|whose module)')  # what a pickle holds, in torch's refusal


def arrays(path: Path, sha256: str, kept: Path) -> dict[str, np.ndarray]:
    """The tensors of a file of weights by name; those of nested dicts by dotted names ('encoder.conv.weight').

    Args:
        path: of the file.
        sha256: its digest, when the run began.
        kept: folder for tensors of pickled files.

    Raises: RequestError where the file is damaged or changed, or holds anything but tensors.
    """

    blob = path.read_bytes()
    if hashlib.sha256(blob).hexdigest() != sha256:
        raise RequestError(f'{path}: these weights changed while the run went on; run it again')
    if blob[8:9] != b'{' and blob.startswith(PICKLED):
        return _unpickled(path, blob, kept / f'{sha256}.safetensors')
    return tensor_file.parsed(blob, path, '; fetch it again')


def begin(
    model: Model,
    found: Mapping[str, np.ndarray],
    drawn: Variables,
    where: str,
    *,
    say: Callable[[str], None] = lambda text: None,
) -> Variables:
    """Variables of a network that start from pretrained tensors; what is new in it keeps what was drawn.

    Args:
        model: the network; `model.checkpoints` says how files of it may differ from it.
        found: tensors by name.
        drawn: variables of it.
        where: what messages call the file.
        say: is told in one line how many tensors were read, which are new, and which of the file were not read.

    Raises: RequestError with every tensor that is missing, unexpected, or of another shape, and not declared to be.
    """
    if any(f'lora.{name}.a' in found for name in found):
        raise RequestError(
            f'{where}: kept by a run with recipe.adaptation=lora, whose pairs of matrices no other run takes up; take '
            'weights that another adaptation learnt'
        )
    refused = []
    # a file that a run of jbench kept
    ours = Exceptions(head=model.checkpoints[0].head if model.checkpoints else own_head(model, where))
    for exceptions in (*model.checkpoints, ours):
        try:
            variables = model.from_torch(found, exceptions, drawn)
        except RequestError as error:
            refused.append(str(error))
            continue
        say(f'{where}: {described(model.tensors or plain_tensors(drawn), found, exceptions)}')
        return variables
    nearest = min(refused, key=lambda text: text.count('\n'))  # the first of equals
    raise RequestError(f'{where}: {nearest}')


def own_head(model: Model, where: str) -> tuple[str, ...]:
    """Names of the tensors of the head of a network. Raises: RequestError for one of which jbench does not know it."""
    found = tuple(tensor.name for tensor in model.own_head())
    if not found:
        raise RequestError(
            f'{where}: of this network it is not known what its head is, so that it takes no pretrained weights '
            'and no probe, and learns nothing together with others; its '
            f'`head` must name it (now: {", ".join(model.head)})'
        )
    return found


def _unpickled(path: Path, blob: bytes, kept: Path) -> dict[str, np.ndarray]:
    """The tensors of a pickled file; kept as safetensors, with their digest beside, so that torch reads it once.

    Raises: RequestError for one that holds anything else.
    """
    proof = kept.with_suffix('.sha256')
    if kept.is_file() and proof.is_file() and files.sha256_file(kept) == proof.read_text().strip():
        return tensor_file.parsed(kept.read_bytes(), kept, '; delete it')
    if find_spec('torch') is None:
        raise MissingExtraError('torch', 'checkpoints', f'{path}, a pickled file of weights')
    import torch
    from safetensors.numpy import save

    try:
        found = _tensors(torch.load(io.BytesIO(blob), map_location='cpu', weights_only=True))
    except RequestError:
        raise
    except Exception as error:  # of any kind: the file decides what it is
        others = ', '.join(dict.fromkeys(OTHER.findall(str(error))))  # never torch's own advice: to run what is in it
        raise RequestError(
            f'{path}: not read, because it holds more than tensors{f" ({others})" if others else ", or is damaged"}; '
            f'{tensor_file.EXPECTED}'
        ) from error
    if not found:
        raise RequestError(f'{path}: holds no tensor; expected a state_dict that torch.save wrote')
    content = save(found)
    files.write_atomic(kept, content)
    files.write_atomic(proof, hashlib.sha256(content).hexdigest().encode())
    return found


def _tensors(content: Any) -> dict[str, np.ndarray]:
    """Tensors of nested dicts by dotted names; of a file with a state_dict beside other things, that alone."""
    for name in WRAPPED:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            return _tensors(content[name])
    found: dict[str, np.ndarray] = {}
    todo: list[tuple[str, Any, int]] = [('', content, 0)]
    while todo:
        prefix, part, depth = todo.pop()
        if isinstance(part, Mapping) and depth <= DEEPEST:
            todo += [(f'{prefix}.{name}' if prefix else str(name), value, depth + 1) for name, value in part.items()]
        elif hasattr(part, 'detach') and hasattr(part, 'is_floating_point'):
            if prefix in found:
                raise RequestError(f'two tensors are called {prefix}')
            array = part.detach().float().numpy() if part.is_floating_point() else part.detach().numpy()
            found[prefix] = np.ascontiguousarray(array).reshape(tuple(part.shape))
    return found
