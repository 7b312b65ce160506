"""The one JSON form of a spec, and its hash."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from jbench.spec.errors import RequestError, unknown

Spec = TypeVar('Spec')
# Types of the fields of a class; they are written as texts, and reading these anew at each call is slow.
field_types: Callable[[Any], dict[str, Any]] = functools.cache(typing.get_type_hints)


def to_json(value: Any) -> Any:
    """A spec as JSON-able values: dataclasses become dicts, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value


def without_defaults(value: Any) -> Any:
    """As `to_json`, less the fields of dataclasses that have their defaults: fields that a later version adds change
    nothing. What a default means is part of every key, so that it never changes: a correction is a new version."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        defaults = {f.name: f.default for f in dataclasses.fields(value) if f.name != 'kind'}
        return {k: without_defaults(v) for k, v in fields.items() if k not in defaults or v != defaults[k]}
    return [without_defaults(v) for v in value] if isinstance(value, list | tuple) else value


def canonical(value: Any) -> str:
    """The one JSON text of a spec: sorted keys, no spaces, shortest floats."""
    return json.dumps(to_json(value), sort_keys=True, separators=(',', ':'), allow_nan=False)


def spec_hash(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def from_json(kind: type[Spec], value: Any, where: str = '') -> Spec:
    """The spec that `to_json` gave `value` of; fields that are absent take their defaults.

    Args:
        kind: a dataclass of `jbench.spec`.
        value: a dict, as JSON has it.
        where: what messages call it.
    Raises: RequestError that names the field, what was found and what was expected.
    """
    where = where or kind.__name__
    if not isinstance(value, dict):
        raise RequestError(f'{where}: found {value!r}, expected an object with the fields of {kind.__name__}')
    hints = field_types(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if strange := [name for name in value if name not in fields]:
        raise unknown(f'field of {where}', strange[0], fields)
    needed = [n for n, f in fields.items() if f.default is f.default_factory is dataclasses.MISSING]
    if absent := [name for name in needed if name not in value]:
        raise RequestError(f'{where}: lacks the field {absent[0]!r}')
    return kind(**{name: typed(hints[name], v, f'{where}.{name}') for name, v in value.items()})


def typed(kind: Any, value: Any, where: str) -> Any:
    """A JSON value as the type of a field. Raises: RequestError that names `where`."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _one_of(args, value, where)
    if kind is Any:
        return tuple(typed(Any, v, where) for v in value) if isinstance(value, list) else value
    if dataclasses.is_dataclass(kind):
        return from_json(typing.cast(type, kind), value, where)
    if origin is tuple and isinstance(value, list):
        kinds = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
        if len(kinds) == len(value):
            return tuple(typed(k, v, f'{where}[{i}]') for i, (k, v) in enumerate(zip(kinds, value, strict=True)))
    if origin is typing.Literal and value in args:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    expected = getattr(kind, '__name__', str(kind)).replace('typing.', '')
    raise RequestError(f'{where}: found {value!r}, expected {expected}')


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    """A JSON value as one of several types: none, or the dataclass whose `kind` it says."""
    if value is None and type(None) in kinds:
        return None
    rest = [k for k in kinds if k is not type(None)]
    if len(rest) == 1:
        return typed(rest[0], value, where)
    tagged = {typing.get_args(field_types(k)['kind'])[0]: k for k in rest}
    kind = value.get('kind') if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in tagged:
        raise unknown(f'kind of {where}', str(kind), tagged)
    return from_json(tagged[kind], value, where)
