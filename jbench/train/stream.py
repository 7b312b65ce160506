"""Windows answered as a device gives them: alone, in their order, and with nothing of what comes later.

The rules are those of the streamed tracks of the EEG/EMG Foundation Challenge 2026: each stream begins with a copy of
the model as it was first loaded (and `reset_state`, where it has one); what a model keeps from one window to the next
ends with the stream.
"""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jbench.data.load.prepared_set import PreparedSet, View
from jbench.data.load.streams import Places, ordered
from jbench.models.baselines.estimator import Training
from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe

KEPT = (types.ModuleType, type(jax.jit(lambda: None)), Training, PreparedSet, View)  # nothing of them changes
Window = Callable[[int], Any]  # number -> the window, as the model wants it
Answer = Callable[[Any, Any], Any]  # (model, window) -> its answer, of length 1


def alone(recipe: Recipe) -> Recipe:
    """The recipe with batches of one window (of one a device, where there are several)."""
    return dataclasses.replace(recipe, batch_size=jax.device_count(), microbatch=0)


def answers(model: Any, window: Window, places: Places, answer: Answer = lambda m, x: m.predict(x)) -> np.ndarray:
    """What a model answers to each window: [N, ...].

    Args:
        model: kept as it is; a copy of it answers each stream, of a function with what it encloses.
        window: gives the window of a number, read when its turn has come: nothing later was read before.
        places: of the windows, in the order in which they come.
        answer: how a model is asked; by default by its `predict`.
    Raises: RequestError as `ordered`, for an answer that is not of one window, for a model that cannot be copied.
    """
    ordered(places)
    found: list[np.ndarray] = []
    mine = None
    for k, name in enumerate(places.stream):
        if k == 0 or name != places.stream[k - 1]:
            mine = _fresh(model)
        said = np.asarray(answer(mine, window(k)))
        if said.ndim < 1 or len(said) != 1:
            shape = list(said.shape)
            raise RequestError(f'one window was given, and the answer has the shape {shape}; expected [1, ...]')
        found.append(said)
    return np.concatenate(found)


def _fresh(model: Any) -> Any:
    try:
        mine = _copied(model, {})
    except Exception as error:
        raise RequestError(f'a model that is streamed must survive copy.deepcopy: {error}') from error
    if callable(reset := getattr(mine, 'reset_state', None)):
        reset()
    return mine


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """As `copy.deepcopy`, which leaves a function as it is: its copy has cells, defaults and attributes of its own."""
    if isinstance(value, KEPT):
        return value
    if not isinstance(value, types.FunctionType):
        return copy.deepcopy(value, memo)
    if id(value) in memo:
        return memo[id(value)]
    old = value.__closure__ or ()
    for cell in old:
        memo.setdefault(id(cell), types.CellType())  # functions may share one
    cells = tuple(memo[id(cell)] for cell in old)
    mine = types.FunctionType(value.__code__, value.__globals__, value.__name__, closure=cells or None)
    memo[id(value)] = mine  # before its cells, which may hold it
    for cell, own in zip(old, cells, strict=True):
        if _filled(cell) and not _filled(own):
            own.cell_contents = _copied(cell.cell_contents, memo)
    mine.__defaults__ = copy.deepcopy(value.__defaults__, memo)
    mine.__kwdefaults__ = copy.deepcopy(value.__kwdefaults__, memo)
    mine.__dict__.update({k: _copied(v, memo) for k, v in value.__dict__.items()})
    return mine


def _filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
