"""Weights of a network in safetensors files under the names of its PyTorch reference. Nothing is ever unpickled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
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
    constant: int = 0  # without a path: written instead of 0, and a file must hold it


class Exceptions(NamedTuple):
    """Where a state_dict may differ from a network. Patterns are of `fnmatch`, names those after renaming. A pattern
    that fits nothing is an error, but for those of `ignored`: a file may lack a head."""

    renamed: tuple[tuple[str, str], ...] = ()  # ('model.*', 'encoder.*') keeps what * stands for; the first that fits
    absent: tuple[str, ...] = ()  # tensors of the network: where the file lacks them they keep their start
    ignored: tuple[str, ...] = ()  # tensors of the file: where the network lacks them they are not looked at
    head: tuple[
        str, ...
    ] = ()  # tensors of the network that are new: they keep their start, whatever the file has there


EXACT = Exceptions()
MOST = 10  # groups of tensors that are named in a line


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
    """Each array of variables (or of their shapes) under its own path, as 'params.conv.kernel'.

    Raises: RequestError for variables that are no dicts of arrays.
    """
    from flax.traverse_util import flatten_dict

    arrays = flatten_dict(variables)
    for path, a in arrays.items():
        if not hasattr(a, 'shape'):
            raise RequestError(
                f'{".".join(path)} holds a {type(a).__name__}: expected dicts of arrays, or `tensors` of the network'
            )
    return [Tensor('.'.join(path), tuple(a.shape), path) for path, a in arrays.items()]


def export(tensors: Iterable[Tensor], variables: Variables) -> dict[str, np.ndarray]:
    """Variables as a PyTorch state_dict of contiguous float32 arrays (int64 for counters)."""
    out = {}
    for tensor in tensors:
        array = _value(tensor, variables) if tensor.path else tensor.constant
        array = np.asarray(array, np.float32 if tensor.path else np.int64)
        out[tensor.name] = np.ascontiguousarray(array.reshape(tensor.shape)).reshape(tensor.shape)
    return out


def restore(
    tensors: Sequence[Tensor],
    found: Mapping[str, np.ndarray],
    like: Variables,
    exceptions: Exceptions = EXACT,
    *,
    start: Variables | None = None,
) -> Variables:
    """Variables from a PyTorch state_dict.

    Args:
        tensors: what the network consists of.
        found: the state_dict; must hold exactly these tensors, but for the exceptions.
        like: variables (or their shapes) whose structure and shapes the result takes.
        exceptions: where it may differ.
        start: variables of which tensors that are not read are taken; needed where there are some.

    Raises: RequestError that names every missing, unexpected, misshaped, non-float or non-finite tensor that is no
    exception, and every exception that must fit something and does not.
    """
    given, kept = _fitted(tensors, found, exceptions)
    if kept and start is None:
        left = ', '.join(sorted(kept))
        raise RequestError(f'no weights are read for {left}: give `start`, variables that these are taken from')
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
        value = _value(tensor, start) if tensor.name in kept else given[tensor.name]
        place[...] = np.asarray(value).reshape(place.shape)
    return out


def described(tensors: Sequence[Tensor], found: Mapping[str, np.ndarray], exceptions: Exceptions = EXACT) -> str:
    """What `restore` does with a state_dict, in words: how many tensors it reads, which stay as they were drawn, and
    which of the file it does not look at. Raises: as `restore`."""
    given, kept = _fitted(tensors, found, exceptions)
    read = {tensor.name for tensor in tensors} - kept
    left = {*given} - read
    return f'{len(read)} tensors read; new, as drawn: {_counted(kept)}; of the file not read: {_counted(left)}'


def _fitted(
    tensors: Sequence[Tensor], found: Mapping[str, np.ndarray], exceptions: Exceptions
) -> tuple[dict[str, np.ndarray], set[str]]:
    """A state_dict under our names, and the tensors that are not read from it. Raises: as `restore`."""
    given, faults = _renamed(found, exceptions.renamed)
    kept, unread, more = _excepted([tensor.name for tensor in tensors], given, exceptions)
    read = [tensor for tensor in tensors if tensor.name not in kept]
    faults += more + _faults(read, {name: a for name, a in given.items() if name not in unread})
    if faults:
        raise RequestError('these weights do not fit the network:\n  ' + '\n  '.join(faults))
    return given, kept


def _counted(names: set[str]) -> str:
    """Names as '26 (blocks.*.norm.*, mask)': numbers and last parts that differ are one star."""
    groups: dict[str, set[str]] = {}
    for name in names:
        parts = ['*' if part.isdigit() else part for part in name.split('.')]
        groups.setdefault('.'.join(parts[:-1]), set()).add(parts[-1])
    told = sorted('.'.join(filter(None, (g, *(lasts if len(lasts) == 1 else '*')))) for g, lasts in groups.items())
    more = ', ...' if len(told) > MOST else ''
    return f'{len([*names])} ({", ".join(told[:MOST])}{more})' if told else 'none'


def _value(tensor: Tensor, variables: Any) -> Any:
    """What variables hold of a tensor."""
    value: Any = reduce(getitem, tensor.path, variables)
    return value if tensor.row is None else value[tensor.row]


def _renamed(
    found: Mapping[str, np.ndarray], pairs: tuple[tuple[str, str], ...]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """A state_dict under other names, and the faults of the pairs."""
    out: dict[str, np.ndarray] = {}
    faults, fitted = [], set()
    for name, array in found.items():
        new = name
        for pattern, replacement in pairs:
            if match := re.fullmatch('(.*)'.join(map(re.escape, pattern.split('*'))), name):
                fitted.add(pattern)
                new = ''.join(map(''.join, zip(replacement.split('*'), (*match.groups(), ''), strict=False)))
                break
        if new in out:
            faults.append(f'renamed: two tensors would be {new}')
        out[new] = array
    for pattern, replacement in pairs:
        if pattern.count('*') != replacement.count('*'):
            faults.append(f'renamed: {pattern} and {replacement} have different numbers of *')
        elif pattern not in fitted:
            faults.append(f'renamed: {pattern} fits no tensor of the file')
    return out, faults


def _excepted(
    wanted: Sequence[str], given: Mapping[str, np.ndarray], exceptions: Exceptions
) -> tuple[set[str], set[str], list[str]]:
    """Our tensors that are not read, those of the file that are not looked at, and the faults of the patterns."""
    lacking, more = [n for n in wanted if n not in given], [n for n in given if n not in set(wanted)]
    found, faults = [], []
    for what, among, whose in (
        ('absent', lacking, 'of the network that the file lacks'),
        ('head', wanted, 'of the network'),
        ('ignored', more, ''),
    ):
        fitting = {p: {n for n in among if fnmatchcase(n, p)} for p in getattr(exceptions, what)}
        unfit = [pattern for pattern, names in fitting.items() if whose and not names]
        faults += [f'{what}: {pattern} fits no tensor {whose}' for pattern in unfit]
        found.append(set[str]().union(*fitting.values()))
    absent, head, ignored = found
    theirs = {n for n in more if any(fnmatchcase(n, pattern) for pattern in exceptions.head)}  # a head of other layers
    return absent | head, head | theirs | ignored, faults


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
        elif tensor.constant and array != tensor.constant:
            faults.append(f'another value: {name} is {array}, expected {tensor.constant}')
    return faults
