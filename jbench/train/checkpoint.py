"""Where an interrupted seed goes on: orbax saves with a digest of every file, checked before anything is restored.

Orbax alone restores a flipped bit without a word; a save whose files do not match their digests is not used.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jbench import files
from jbench.spec.errors import RequestError

DIGESTS = 'sha256.json'  # written last: without it a save did not end
OVERHEAD = 1 << 20  # bytes of metadata, at most; the arrays themselves are written twice before the save ends


def save(folder: Path, step: int, tree: Any, meta: dict[str, Any]) -> None:
    """Save arrays and JSON-able facts as `folder/<step>`, or the next free number, then drop all other saves.

    Raises: RequestError (disk full); the last whole save then stays.
    """
    import jax
    import orbax.checkpoint as ocp

    before = _numbers(folder)
    target = folder / str(max([step, *(n + 1 for n in before)]))
    need = 2 * sum(a.nbytes for a in jax.tree.leaves(tree)) + OVERHEAD
    with files.explained(target, need):
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < need:  # asked before: orbax prints the tracebacks of its threads
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        try:
            with _alone() as checkpointer:
                checkpointer.save(
                    target.absolute(),
                    args=ocp.args.Composite(state=ocp.args.StandardSave(tree), meta=ocp.args.JsonSave(meta)),
                )
            saved = [p for p in sorted(target.rglob('*')) if p.is_file()]
            digests = {str(p.relative_to(target)): files.sha256_file(p) for p in saved}
            files.write_atomic(target / DIGESTS, json.dumps(digests).encode())
        finally:  # what was left of a save that did not end goes, and older saves once this one is whole
            keep = [target.name] if (target / DIGESTS).exists() else [str(n) for n in before]
            for other in folder.glob('*'):
                if other.name not in keep and other.is_dir():
                    shutil.rmtree(other)


def restore(
    folder: Path,
    like: Any,
    usable: Callable[[dict[str, Any]], bool],
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Any, dict[str, Any]] | None:
    """The newest whole save as (arrays shaped like `like`, facts); None if there is no usable one.

    Says which saves are passed over, and why.
    """
    import jax
    import numpy as np
    import orbax.checkpoint as ocp

    target = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), like)
    for number in reversed(_numbers(folder)):
        path = folder / str(number)
        if fault := _fault(path):
            say(f'{path}: not used ({fault})')
            continue
        try:
            with _alone() as checkpointer:
                facts = ocp.args.Composite(meta=ocp.args.JsonRestore())
                meta = checkpointer.restore(path.absolute(), args=facts)['meta']
                if not usable(meta):
                    return None
                arrays = ocp.args.Composite(state=ocp.args.StandardRestore(target))
                return checkpointer.restore(path.absolute(), args=arrays)['state'], meta
        except (KeyError, TypeError, ValueError) as error:  # whole, and of another shape: another version made it
            say(f'{path}: not used (it does not fit: {str(error).splitlines()[0]})')
    return None


def remove(folder: Path) -> None:
    """Forget the checkpoints of a finished seed."""
    shutil.rmtree(folder, ignore_errors=True)


def _alone() -> Any:
    """orbax for this process alone: of several, one saves and each restores, and orbax would wait for the others."""
    import jax
    import orbax.checkpoint as ocp

    here = jax.process_index()
    options = ocp.options.MultiprocessingOptions(here, {here}, f'process{here}')
    composite = ocp.CompositeOptions(multiprocessing_options=options)
    return ocp.Checkpointer(
        ocp.CompositeCheckpointHandler(composite_options=composite), multiprocessing_options=options
    )


def _numbers(folder: Path) -> list[int]:
    return sorted(int(p.name) for p in folder.glob('*') if p.name.isdigit()) if folder.is_dir() else []


def _fault(path: Path) -> str:
    """What is wrong with the files of a save; '' where every one has the digest that was taken when it was saved."""
    try:
        digests = files.read_json(path / DIGESTS)
    except FileNotFoundError:
        return 'the save did not end'
    except RequestError as error:
        return str(error)
    if not isinstance(digests, dict):
        return f'{DIGESTS} is damaged'
    found = {str(p.relative_to(path)): p for p in path.rglob('*') if p.is_file() and p.name != DIGESTS}
    bad = [n for n in {**digests, **found} if n not in found or files.sha256_file(found[n]) != digests.get(n)]
    return f'damaged: {", ".join(bad)}' if bad else ''
