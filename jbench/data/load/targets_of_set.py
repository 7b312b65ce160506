"""Targets of a prepared set: all in memory, as its index holds them, or those of some windows at a time, read from the
shards where they lie with the windows (`prepare/assemble.py` says which)."""

from __future__ import annotations

import functools
import json
import threading
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from jbench import targets
from jbench.data.load.shards import READERS, Shards
from jbench.events import Table
from jbench.spec.errors import RequestError
from jbench.spec.task import Target
from jbench.targets.kind import Encoded
from jbench.targets.packed import Packed


class InShards:
    """Packed targets by the numbers of their windows. Raises, when called: RequestError that names a damaged shard."""

    def __init__(self, folder: Path, manifest: dict[str, Any]) -> None:
        self.of, self._lock = (folder, manifest), threading.Lock()  # loaders and scores may ask at once

    def __call__(self, numbers: np.ndarray) -> list[str]:
        with self._lock:
            return plain(self._shards.targets(numbers))

    def __reduce__(self) -> tuple[Any, ...]:
        return InShards, self.of

    @functools.cached_property
    def _shards(self) -> Shards:
        return Shards(*self.of, None, readers=READERS + 1)


def with_windows(y: Any, folder: Path) -> TypeGuard[Packed]:
    """Whether targets lie in the very records of the windows in `folder`: not where these are features of others."""
    return isinstance(y, Packed) and isinstance(y.source, InShards) and y.source.of[0] == folder


def plain(texts: list[str]) -> list[str]:
    """Packed targets without the quotes that records have around them."""
    return [text.strip('"') for text in texts]


def encoded(
    folder: Path, manifest: dict[str, Any], windows: Table, counted: np.ndarray, target: Target
) -> tuple[Encoded, Any]:
    """What the targets of a set are, and y of all windows; of those that are not counted y means nothing.

    Args:
        folder, manifest: of the set.
        windows: their table in its index, which has the column `target` unless targets lie with the windows.
        counted: bool [N].
        target: what the task asks for.
    Raises: RequestError, as `targets.encode`.
    """
    if 'target' not in windows:
        texts = InShards(folder, manifest)
        if not counted.any():
            raise RequestError(f'{manifest["dataset"]}: no window counts: each has a target that is not known')
        found = targets.encode(target, texts(np.flatnonzero(counted)[:1]))
        return found, Packed(texts, np.arange(len(counted)), found.y.shape[1])
    found = targets.encode(target, [json.loads(t) for t in windows['target'][counted]])
    y = np.zeros((len(counted), *found.y.shape[1:]), found.y.dtype)
    y[counted] = found.y
    return found, y
