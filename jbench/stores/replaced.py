"""Results that are to be replaced (`--if_exists=overwrite`): set aside until the new ones are written.

A result that is set aside is no result to any reader, so that each further run goes on as with `--if_exists=resume`.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
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
        put_aside(path)
    return len(here)


def put_aside(path: Path) -> None:
    """Set a result aside by its JSON; one that failed leaves a good one there that was set aside before. Raises:
    RequestError where the disk refuses."""
    lost = aside(path).exists() and not _is_good(path)
    for part in (path.with_suffix(suffix) for suffix in PARTS):
        with files.explained(part, 0), contextlib.suppress(FileNotFoundError):
            if lost:
                part.unlink()
            else:
                os.replace(part, aside(part))


def put_back(home: Path, seeds: Collection[int]) -> int:
    """Let the results of seeds of a cell count again that were set aside here, where no new ones are; how many. Raises:
    RequestError where the disk refuses."""
    old = [path for path in (home / f'seed{seed}.json' for seed in seeds) if aside(path).exists() and not path.exists()]
    for path in old:
        for part in (path.with_suffix(suffix) for suffix in reversed(PARTS)):  # the JSON last
            with files.explained(part, 0), contextlib.suppress(FileNotFoundError):
                os.replace(aside(part), part)
    return len(old)


def told(n: int) -> str:
    """What is said of so many that were set aside."""
    return f'overwrite: {n} result{"s" * (n != 1)} set aside (seed*{ASIDE}) until the new ones are written'


def aside(path: Path) -> Path:
    """What a file is called that is set aside."""
    return path.with_name(f'{path.name}{ASIDE}')


def forget(home: Path) -> None:
    """Remove what was set aside of results below a folder whose new ones are written, and did not fail."""
    for old in list(home.rglob(f'seed*.json{ASIDE}')):
        path = old.with_name(old.name.removesuffix(ASIDE))
        if _is_good(path):
            for suffix in PARTS:
                aside(path.with_suffix(suffix)).unlink(missing_ok=True)


def forget_in(store: Remote, name: str, path: Path) -> None:
    """Remove the result `name` that was set aside in a store, unless the new one, at `path` here, failed."""
    if _is_good(path):
        store.remove([f'{name}{ASIDE}'])


def is_older(path: Path, moment: int) -> bool:
    """Whether a result was made before a moment, s since 1970."""
    with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
        date = datetime.datetime.fromisoformat(json.loads(path.read_bytes())['date'])
        return date.replace(tzinfo=datetime.UTC).timestamp() < moment
    return False


def _in_store(store: Remote, name: str) -> None:
    """Set the JSON of a result aside, as `put_aside`; what lies beside it stays until the new one has its own."""
    content = store.read(name)
    if content is not None:
        if _did_not_fail(content) or store.facts(f'{name}{ASIDE}') is None:
            store.write(f'{name}{ASIDE}', content)
        store.remove([name])


def _is_good(path: Path) -> bool:
    """Whether a result is there that did not fail."""
    with contextlib.suppress(OSError):
        return _did_not_fail(path.read_bytes())
    return False


def _did_not_fail(content: bytes) -> bool:
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return bool(json.loads(content)['status'] != 'failed')
    return False
