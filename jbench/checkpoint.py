"""Where an interrupted seed goes on: orbax saves with a digest of every file, checked before anything is restored.

Orbax alone restores a flipped bit without a word; a step whose files do not match their digests is not used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jbench.data import fs

DIGESTS = 'sha256.json'


def save(folder: Path, step: int, tree: Any, meta: dict[str, Any]) -> None:
    """Save arrays and JSON-able facts as `folder/<step>`, then drop older steps. Raises RequestError (disk full)."""
    import orbax.checkpoint as ocp

    target = folder / str(step)
    if _whole(target):
        return  # saved already; writing it again could lose it
    with fs.explained(target, _bytes(tree)):
        if target.exists():
            shutil.rmtree(target)
        with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
            checkpointer.save(
                target.absolute(),
                args=ocp.args.Composite(state=ocp.args.StandardSave(tree), meta=ocp.args.JsonSave(meta)),
            )
        files = sorted(p for p in target.rglob('*') if p.is_file() and p.name != DIGESTS)
        digests = {str(p.relative_to(target)): fs.sha256_file(p) for p in files}
    fs.write_atomic(target / DIGESTS, json.dumps(digests).encode())
    for old in _steps(folder):
        if old != step:
            shutil.rmtree(folder / str(old))


def restore(folder: Path, like: Any, usable: Callable[[dict[str, Any]], bool]) -> tuple[Any, dict[str, Any]] | None:
    """The newest whole step as (arrays shaped like `like`, facts); None if there is no usable one."""
    import jax
    import numpy as np
    import orbax.checkpoint as ocp

    target = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), like)
    for step in reversed(_steps(folder)):
        path = folder / str(step)
        if _whole(path):
            with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
                meta = checkpointer.restore(path.absolute(), args=ocp.args.Composite(meta=ocp.args.JsonRestore()))[
                    'meta'
                ]
                if not usable(meta):
                    return None
                arrays = ocp.args.Composite(state=ocp.args.StandardRestore(target))
                return checkpointer.restore(path.absolute(), args=arrays)['state'], meta
    return None


def remove(folder: Path) -> None:
    """Forget the checkpoints of a finished seed."""
    shutil.rmtree(folder, ignore_errors=True)


def _steps(folder: Path) -> list[int]:
    return sorted(int(p.name) for p in folder.glob('*') if p.name.isdigit()) if folder.is_dir() else []


def _whole(path: Path) -> bool:
    """True if every file of a step has the digest that was taken when it was saved."""
    if not (path / DIGESTS).exists():
        return False
    digests = fs.read_json(path / DIGESTS)
    return all((path / n).is_file() and fs.sha256_file(path / n) == d for n, d in digests.items())


def _bytes(tree: Any) -> int:
    import jax

    return sum(a.size * a.dtype.itemsize for a in jax.tree.leaves(tree))
