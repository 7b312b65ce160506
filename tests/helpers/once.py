"""What several files of tests ask for is made once in a session, in whichever process of pytest asks first."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

TOGETHER = 'TESTS_TOGETHER'  # names the folder that all processes of a session share; tests/conftest.py sets it


def once(name: str, target: Path, make: Callable[[Path], object]) -> Path:
    """A copy, at `target`, of the folder that `make` fills; a test may spoil it, the others keep theirs."""
    if target.exists():
        return target
    if TOGETHER not in os.environ:  # a script by itself
        make(target)
        return target
    shared = Path(os.environ[TOGETHER])
    with FileLock(shared / f'{name}.lock'):
        if not (shared / name).exists():
            make(shared / f'{name}.part' / target.name)
            (shared / f'{name}.part').rename(shared / name)
    shutil.copytree(shared / name / target.name, target)
    return target
