"""Fields of a spec by dotted path: which there are, and copies with one of them replaced (`--set`, configs)."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Iterator
from typing import Any, TypeVar

from jbench.spec.errors import RequestError
from jbench.spec.identity import field_types, typed

Spec = TypeVar('Spec')
Override = tuple[str, Any]  # ('window.start', 2.0)
ONE = {bool: 'yes or no', int: 'a whole number', float: 'a number', str: 'a text', type(None): 'none'}
SEVERAL = {int: 'whole numbers', float: 'numbers', str: 'texts'}


def paths(spec: Any, prefix: str = '') -> Iterator[str]:
    """Every dotted path that `override` can set; a part that may be absent counts as a field of its own too."""
    hints = field_types(type(spec))
    for f in dataclasses.fields(spec):
        if f.name == 'kind':
            continue
        value = getattr(spec, f.name)
        if not dataclasses.is_dataclass(value) or type(None) in typing.get_args(hints[f.name]):
            yield prefix + f.name
        if dataclasses.is_dataclass(value):
            yield from paths(value, f'{prefix}{f.name}.')


def override(spec: Spec, path: str, value: Any, full: str = '') -> Spec:
    """A copy of `spec` with the field at a dotted path replaced; the value is checked against the field's type.

    `full` is the path that messages name. Raises: KeyError for an unknown path; RequestError for a value of the wrong
    type.
    """
    head, _, rest = path.partition('.')
    hints = field_types(type(spec))
    if head not in {f.name for f in dataclasses.fields(spec)} - {'kind'}:  # type: ignore[arg-type]
        raise KeyError(path)
    if rest:
        inner = getattr(spec, head)
        if not dataclasses.is_dataclass(inner):
            raise KeyError(path)
        new = override(inner, rest, value, full or path)
    else:
        new = coerce(value, hints[head], full or path)
    return dataclasses.replace(spec, **{head: new})  # type: ignore[type-var]


def coerce(value: Any, kind: Any, path: str) -> Any:
    """`value` as the type `kind`; text (from the command line) is parsed. Raises RequestError."""
    try:
        return _parsed(value, kind, path)
    except RequestError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise RequestError(f'--set {path}: got {value!r}, expected {described(kind)}') from None


def _parsed(value: Any, kind: Any, path: str) -> Any:
    """As `coerce`, but a value that is no such thing is a TypeError, ValueError or OverflowError."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(value) and type(value) in (kind, *args):
        return value
    if isinstance(value, dict) or (isinstance(value, tuple) and any(isinstance(v, dict) for v in value)):
        return typed(kind, list(value) if isinstance(value, tuple) else value, path)  # of a spec that was JSON
    if origin is typing.Literal and value in args:
        return value
    if origin in (typing.Union, types.UnionType):
        empty = value is None or (isinstance(value, str) and value.lower() in ('none', 'null'))
        if empty and type(None) in args:
            return None
        rest = [a for a in args if a is not type(None)]
        if len(rest) == 1:
            return _parsed(value, rest[0], path)
    plain = not any(dataclasses.is_dataclass(k) or typing.get_origin(k) is tuple for k in args or (kind,))
    if not plain and not (origin is tuple and isinstance(value, list | tuple)):
        raise RequestError(f'--set {path}: got {value!r}; only a task or a --config file can give it, as a whole')
    if origin is tuple:
        items = (
            value if isinstance(value, list | tuple) else [v for v in str(value).strip('()[]').split(',') if v.strip()]
        )
        inner = [args[0]] * len(items) if args[-1] is Ellipsis else list(args)
        pairs = zip(items, inner, strict=True)
        return tuple(_parsed(v.strip() if isinstance(v, str) else v, k, path) for v, k in pairs)
    if kind is bool and str(value).lower() in ('true', 'false', '1', '0', 'yes', 'no'):
        return str(value).lower() in ('true', '1', 'yes')
    if kind is int and float(value).is_integer():
        return int(float(value))
    if kind is float and math.isfinite(float(value)):
        return float(value)
    if kind is str and isinstance(value, str):
        return value
    raise ValueError(value)


def described(kind: Any) -> str:
    """What a user calls values of a type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return ' or '.join(map(described, args))
    if origin is typing.Literal:
        return f'one of {", ".join(args)}'
    if origin is tuple:
        several = SEVERAL.get(args[0], 'values')
        if args[-1] is Ellipsis:
            return f'{several} (A,B,...)'
        return f'{len(args)} {several} ({",".join("ABCDEF"[: len(args)])})'
    return ONE.get(kind, str(kind))
