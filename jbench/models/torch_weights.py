"""Weights of a network in safetensors files under the names of its PyTorch reference. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

from jbench.spec.errors import RequestError

Variables = dict[str, Any]  # {'params': pytree, 'batch_stats': pytree (batch statistics)}


class Tensor(NamedTuple):
    """One entry of a PyTorch state_dict and where its numbers, in the same order, lie in our variables."""

    name: str
    shape: tuple[int, ...]  # in PyTorch
    path: tuple[str, ...]  # ours; () for a counter that we do not keep: written as 0, ignored when read
    row: int | None = None  # of ours, where equal parts of the network are stacked


def batch_norm_tensors(name: str, path: tuple[str, ...], features: int) -> list[Tensor]:
    """The five entries of a `torch.nn.BatchNorm` called `name`, for a `blocks.BatchNorm` at `path`."""
    return [
        Tensor(f'{name}.weight', (features,), ('params', *path, 'scale')),
        Tensor(f'{name}.bias', (features,), ('params', *path, 'bias')),
        Tensor(f'{name}.running_mean', (features,), ('batch_stats', *path, 'mean')),
        Tensor(f'{name}.running_var', (features,), ('batch_stats', *path, 'var')),
        Tensor(f'{name}.num_batches_tracked', (), ()),
    ]


def linear_tensors(name: str, path: tuple[str, ...], n_in: int, n_out: int) -> list[Tensor]:
    """The two entries of a `torch.nn.Linear` called `name`, for a `blocks.Linear` at `path`."""
    return [
        Tensor(f'{name}.weight', (n_out, n_in), ('params', *path, 'weight')),
        Tensor(f'{name}.bias', (n_out,), ('params', *path, 'bias')),
    ]


def layer_norm_tensors(name: str, path: tuple[str, ...], features: int) -> list[Tensor]:
    """The two entries of a `torch.nn.LayerNorm` called `name`, for a `blocks.LayerNorm` at `path`."""
    return [
        Tensor(f'{name}.weight', (features,), ('params', *path, 'scale')),
        Tensor(f'{name}.bias', (features,), ('params', *path, 'bias')),
    ]


def plain_tensors(variables: Variables) -> list[Tensor]:
    """Each array of variables (or of their shapes) under its own path, as 'params.conv.kernel'."""
    from flax.traverse_util import flatten_dict

    return [Tensor('.'.join(path), tuple(a.shape), path) for path, a in flatten_dict(variables).items()]


def export(tensors: Iterable[Tensor], variables: Variables) -> dict[str, np.ndarray]:
    """Variables as a PyTorch state_dict of contiguous float32 arrays (int64 for counters)."""
    out = {}
    for tensor in tensors:
        value: Any = reduce(getitem, tensor.path, variables)
        value = value[tensor.row] if tensor.path and tensor.row is not None else value
        array = np.asarray(value, np.float32) if tensor.path else np.zeros((), np.int64)
        out[tensor.name] = np.ascontiguousarray(array.reshape(tensor.shape)).reshape(tensor.shape)
    return out


def restore(tensors: Sequence[Tensor], found: Mapping[str, np.ndarray], like: Variables) -> Variables:
    """Variables from a PyTorch state_dict.

    Args:
        tensors: what the network consists of.
        found: the state_dict; must hold exactly these tensors.
        like: variables (or their shapes) whose structure and shapes the result takes.

    Raises: RequestError that names every missing, unexpected, misshaped, non-float or non-finite tensor.
    """
    faults = _faults(tensors, found)
    if faults:
        raise RequestError('these weights do not fit the network:\n  ' + '\n  '.join(faults))
    out: Variables = {name: {} for name in like}
    for tensor in tensors:
        if not tensor.path:
            continue
        inner, shaped = out, like
        for part in tensor.path[:-1]:
            inner, shaped = inner.setdefault(part, {}), shaped[part]
        leaf = tensor.path[-1]
        whole = inner.setdefault(leaf, np.empty(shaped[leaf].shape, np.float32))
        place = whole if tensor.row is None else whole[tensor.row]
        place[...] = np.asarray(found[tensor.name]).reshape(place.shape)
    return out


def _faults(tensors: Sequence[Tensor], found: Mapping[str, np.ndarray]) -> list[str]:
    wanted = {tensor.name: tensor for tensor in tensors}
    faults = [f'missing: {t.name} {list(t.shape)}' for t in tensors if t.name not in found]
    faults += [f'unexpected: {name} {list(np.shape(found[name]))}' for name in sorted(set(found) - set(wanted))]
    for name, tensor in wanted.items():
        if name not in found:
            continue
        array = np.asarray(found[name])
        if array.shape != tensor.shape:
            faults.append(f'wrong shape: {name} is {list(array.shape)}, expected {list(tensor.shape)}')
        elif tensor.path and not np.issubdtype(array.dtype, np.floating):
            faults.append(f'wrong type: {name} is {array.dtype}, expected a float type')
        elif tensor.path and not np.isfinite(array).all():
            faults.append(f'not finite: {name}')
    return faults
