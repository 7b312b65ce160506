"""The one JSON form of a spec, and its hash."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any


def to_json(value: Any) -> Any:
    """A spec as JSON-able values: dataclasses become dicts, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value


def canonical(value: Any) -> str:
    """The one JSON text of a spec: sorted keys, no spaces, shortest floats."""
    return json.dumps(to_json(value), sort_keys=True, separators=(',', ':'), allow_nan=False)


def spec_hash(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]
