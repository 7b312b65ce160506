"""What training says of itself while it runs: a line of JSON an epoch, in <workdir>/epochs/<key>/seed<k>.jsonl.

For people, and for `python -m jbench.report sync`. Nothing else reads it, so that a disk that refuses it stops no
training. A result holds the same numbers of the whole course once its seed is done.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def log_file(workdir: Path, key: str, seed: int) -> Path:
    """Where the epochs of a seed of the cell with this key are written."""
    return workdir / 'epochs' / key / f'seed{seed}.jsonl'


def append(path: Path, facts: Mapping[str, Any]) -> None:
    """Add an epoch, with the time (s since 1970); epoch 0 begins a new file. Numbers that JSON lacks become null.

    Args:
        path: from `log_file`.
        facts: `epoch`, and plain values of it.
    """
    line = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in facts.items()}
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open('a' if facts['epoch'] else 'w', encoding='utf-8') as file:
            file.write(json.dumps({**line, 'time': time.time()}) + '\n')


def read(path: Path) -> list[dict[str, Any]]:
    """The epochs of a log in their order; of those that ran again after an interruption, the later run counts. A line
    that is cut off (a full disk, a machine that stopped) is passed over."""
    epochs: dict[int, dict[str, Any]] = {}
    for line in _lines(path):
        n = line['epoch']
        epochs = {k: v for k, v in epochs.items() if k < n} | {n: line}
    return list(epochs.values())


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for text in path.read_text(encoding='utf-8', errors='replace').splitlines():
        with contextlib.suppress(ValueError):
            line = json.loads(text)
            if isinstance(line, dict) and isinstance(line.get('epoch'), int):
                yield line
