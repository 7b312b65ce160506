"""What a file of weights says of what it was learnt on: a line of JSON in the header of a safetensors file.

Files that a run of jbench keeps have it under `jbench`: `task`, `datasets` (those of weights that it began from, too),
`subjects` of the last dataset, `model`, `seed` and, where the network went by a file of places of electrodes, `places`
(its digest, as plan/places.py); `licence` where that of the weights it began from forbids to pass it on. Nothing is
known of other files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

KEY = 'jbench'
LONGEST = 100 << 20  # bytes of a header, as safetensors has it
SIZE = 8  # bytes that say how long the header is, and to a multiple of which it is filled up


def declared(path: Path) -> dict[str, Any]:
    """What a file says; {} where it says nothing, or cannot be read."""
    try:
        with path.open('rb') as file:
            length = int.from_bytes(file.read(SIZE), 'little')
            header = json.loads(file.read(length)) if length <= LONGEST else {}
        found = json.loads(header['__metadata__'][KEY])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def datasets(path: Path) -> tuple[str, ...]:
    """Names of the datasets that a file says it was learnt on."""
    found = declared(path).get('datasets')
    return tuple(map(str, found)) if isinstance(found, list) else ()


def places(path: Path) -> str:
    """Digest of the file of places of electrodes that a file says it was learnt with; '' where it names none."""
    return str(declared(path).get('places', ''))


def labelled(content: bytes, facts: Mapping[str, Any]) -> bytes:
    """A safetensors file that says `facts`, its header in an order of its own: the same bytes for the same numbers."""
    length = int.from_bytes(content[:SIZE], 'little')
    header = json.loads(content[SIZE : SIZE + length])
    told = {**header.pop('__metadata__', {}), KEY: json.dumps(facts, sort_keys=True)}
    text = json.dumps({'__metadata__': dict(sorted(told.items())), **header}, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % SIZE)
    return len(text).to_bytes(SIZE, 'little') + text + content[SIZE + length :]
