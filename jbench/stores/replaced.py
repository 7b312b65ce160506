"""Results that are to be replaced (`--if_exists=overwrite`): set aside until the new ones are written.

A result that is set aside is no result to any reader, so that each further run goes on as with `--if_exists=resume`.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Sequence
from pathlib import Path, PurePosixPath

from jbench import files
from jbench.stores import mirror
from jbench.stores.remote import Remote, at_once

ASIDE = '.replaced'  # after the name of a file
PARTS = ('.json', '.npz', '.safetensors')  # of a result; the first says that it is one


def set_aside(workdir: Path, homes: Sequence[Path], seeds: Collection[int]) -> int:
    """Set the results of seeds aside, here and in the store of the work folder.

    Args:
        workdir: of the results.
        homes: folders of cells; those of their folds lie below.
        seeds: which.
    Returns: how many were set aside here. Raises: RequestError where the store or the disk refuses.
    """
    names, store = [f'seed{seed}.json' for seed in seeds], mirror.of(workdir)
    if store is not None:  # first: of what it holds a copy would come back
        there = mirror.listed(store, *(home.relative_to(workdir).as_posix() for home in homes))
        at_once([functools.partial(_in_store, store, n) for n in there if PurePosixPath(n).name in names])
    here = [path for home in homes for path in home.rglob('seed*.json') if path.name in names]
    for path in here:
        for part in (path.with_suffix(suffix) for suffix in PARTS):
            if part.exists():
                with files.explained(part, 0):
                    os.replace(part, aside(part))
    return len(here)


def aside(path: Path) -> Path:
    """What a file is called that is set aside."""
    return path.with_name(f'{path.name}{ASIDE}')


def forget(home: Path) -> None:
    """Remove what was set aside of results below a folder whose new ones are written."""
    for old in list(home.rglob(f'seed*.json{ASIDE}')):
        path = old.with_name(old.name.removesuffix(ASIDE))
        for part in (path.with_suffix(suffix) for suffix in PARTS if path.exists()):
            aside(part).unlink(missing_ok=True)


def _in_store(store: Remote, name: str) -> None:
    """Set the JSON of a result aside; what lies beside it stays until the new one has its own."""
    content = store.read(name)
    if content is not None:
        store.write(f'{name}{ASIDE}', content)
        store.remove([name])
