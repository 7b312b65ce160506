"""Weights of a tested network beside its result: a safetensors file, under the names of its PyTorch reference where it
has one, else each array under its own path and in its own type. Nothing is ever unpickled."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jbench.models import seen, tensor_file
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError

METADATA = {'format': 'pt'}  # what torch and transformers look for


def place(path: str | Path) -> Path:
    """Where the weights of a result file lie: seed<k>.safetensors beside seed<k>.json."""
    return Path(path).with_suffix('.safetensors')


def to_bytes(model: Model, variables: Variables, learnt_on: Mapping[str, Any] | None = None) -> bytes:
    """The content of the file: the same bytes for the same numbers. `learnt_on`: what it says of itself
    (models/seen.py)."""
    from safetensors.numpy import save

    arrays = model.to_torch(variables) if model.tensors else _by_path(jax.tree.map(_in_order, variables))
    content = save(arrays, metadata=METADATA)
    return content if learnt_on is None else seen.labelled(content, learnt_on)


def _in_order(array: Any) -> np.ndarray:
    """On the host, rows first: safetensors writes the memory of an array as it lies."""
    return np.array(array, order='C')


def size(model: Model) -> int:
    """Bytes of all arrays of the file, known from shapes alone (names take some more)."""
    if model.tensors:  # f32, and i64 of counters
        return sum(math.prod(t.shape) * (4 if t.path else 8) for t in model.tensors)
    return sum(math.prod(a.shape) * a.dtype.itemsize for a in jax.tree.leaves(_like(model)))


def load(path: str | Path, model: Model, sha256: str | None = None) -> Variables:
    """Variables of `model` from a file that `to_bytes` filled.

    Args:
        path: of the file.
        model: the network, built for the same signal and number of outputs.
        sha256: digest that the file should have, where one is known.

    Raises: RequestError where the file is absent, damaged, or does not hold exactly the arrays of the network.
    """
    remedy = 'train it again with --if_exists=overwrite'
    try:
        blob = Path(path).read_bytes()
    except OSError as error:
        raise RequestError(f'{path}: cannot read the weights: {error.strerror or error}; {remedy}') from error
    found = hashlib.sha256(blob).hexdigest()
    if sha256 is not None and found != sha256:
        raise RequestError(f'{path}: damaged: expected sha256 {sha256}, found {found}; {remedy}')
    arrays = tensor_file.parsed(blob, path, f'; {remedy}', 'damaged: ')
    try:
        return model.from_torch(arrays) if model.tensors else _from_paths(arrays, _like(model))
    except RequestError as error:
        raise RequestError(f'{path}: {error}') from error


def _like(model: Model) -> Variables:
    """Shapes and types of the variables."""
    return jax.eval_shape(lambda: model.init(jax.random.key(0)))


def _by_path(variables: Variables) -> dict[str, Any]:
    """Arrays, or their shapes, by dotted path ('params.conv.kernel'), or by an exact one where dots are ambiguous."""
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    named = {jax.tree_util.keystr(path, simple=True, separator='.'): leaf for path, leaf in leaves}
    return named if len(named) == len(leaves) else {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def _from_paths(found: dict[str, np.ndarray], like: Variables) -> Variables:
    """Variables from arrays by path. Raises RequestError that names every array that does not fit."""
    expected, present = ({k: (a.dtype, list(a.shape)) for k, a in v.items()} for v in (_by_path(like), found))
    faults = [
        f'{name}: found {" ".join(map(str, present.get(name, ["nothing"])))}, '
        f'expected {" ".join(map(str, expected.get(name, ["nothing"])))}'
        for name in dict.fromkeys([*expected, *sorted(present)])
        if expected.get(name) != present.get(name)
    ]
    if faults:
        raise RequestError('these weights do not fit the network:\n  ' + '\n  '.join(faults))
    return jax.tree.unflatten(jax.tree.structure(like), [found[name] for name in expected])
