"""What a result file must look like: its published JSON Schema, of every version, the check against it,
and the bytes."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench.spec.identity import to_json

SCHEMA = 3  # the version that is written
_TYPES = {'object': dict, 'array': list, 'string': str, 'boolean': bool, 'null': type(None)}
_EXACT: dict[str, set[type]] = {
    **{name: {kind} for name, kind in _TYPES.items()},
    'integer': {int},
    'number': {int, float},
}
NONE: frozenset[type] = frozenset()


@functools.cache
def schema(version: int = SCHEMA) -> dict[str, Any]:
    """The JSON Schema of a result file, of this version or an older one."""
    name = 'result.schema.json' if version == SCHEMA else f'result.schema.{version}.json'
    return json.loads(Path(__file__).with_name(name).read_text(encoding='utf-8'))


def mismatches(value: Any, schema: Mapping[str, Any], where: str = '') -> Iterator[str]:
    """What in a JSON value breaks a JSON Schema, one text a problem: 'field: expected ..., found ...'.

    Knows the part of JSON Schema that result files use: type, enum, required, properties, additionalProperties, items,
    and if with then.
    """
    types = _types(schema)
    if types and not any(_is(value, name) for name in types):
        yield f'{where or "file"}: expected {" or ".join(types)}, found {_short(value)}'
        return
    choices = schema.get('enum')
    if choices is not None and not any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in choices):
        yield f'{where or "file"}: expected one of {_short(choices)}, found {_short(value)}'
    if isinstance(value, list) and 'items' in schema:
        for i, item in enumerate(value):
            yield from mismatches(item, schema['items'], f'{where}[{i}]')
    if isinstance(value, dict):
        dot = f'{where}.' if where else ''
        known, rest = schema.get('properties', {}), schema.get('additionalProperties', True)
        yield from (f'{dot}{name}: missing' for name in schema.get('required', []) if name not in value)
        for name, item in value.items():
            inner = known.get(name, rest)
            if inner is False:
                yield f'{dot}{name}: no such field is known'
            elif inner is not True:
                yield from mismatches(item, inner, dot + name)
    if 'if' in schema and not any(mismatches(value, schema['if'])):
        yield from mismatches(value, schema['then'], where)


@functools.cache
def fits(version: int = SCHEMA) -> Callable[[Any], bool]:
    """Whether a value has no `mismatches` with the schema of this version: the same answer, many times faster."""
    return _compiled(schema(version))


def _compiled(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """A JSON Schema as a function that tells whether a JSON value fits it, with the rules of `mismatches`."""
    types, leaf = _types(schema), frozenset(t for name in _types(schema) for t in _EXACT[name])
    doubtful = 'integer' in types and 'number' not in types  # of floats, 2.0 is one and 2.5 is none
    choices, items = schema.get('enum'), _compiled(schema['items']) if 'items' in schema else None
    required = tuple(schema.get('required', ()))
    known = {name: _compiled(inner) for name, inner in schema.get('properties', {}).items()}
    plain = {name: _enough(inner) for name, inner in schema.get('properties', {}).items()}
    rest = schema.get('additionalProperties', True)
    other, plain_other = (rest, NONE) if isinstance(rest, bool) else (_compiled(rest), _enough(rest))
    plain_items = _enough(schema.get('items', {}))
    case = (_compiled(schema['if']), _compiled(schema['then'])) if 'if' in schema else None

    def object_fits(value: dict[str, Any]) -> bool:
        for name in required:
            if name not in value:
                return False
        for name, item in value.items():
            if type(item) in plain.get(name, plain_other):
                continue
            inner = known.get(name, other)
            if inner is not True and (inner is False or not inner(item)):
                return False
        return True

    def check(value: Any) -> bool:
        kind = type(value)
        if leaf and kind not in leaf and not (doubtful and kind is float and value.is_integer()):
            return False
        if choices is not None and not any(value == v and (kind is bool) == isinstance(v, bool) for v in choices):
            return False
        if kind is dict and not object_fits(value):
            return False
        if kind is list and items and not (plain_items.issuperset(map(type, value)) or all(map(items, value))):
            return False
        return case is None or not case[0](value) or case[1](value)

    return check


def _types(schema: Mapping[str, Any]) -> list[str]:
    types: str | list[str] = schema.get('type', [])
    return [types] if isinstance(types, str) else types


def _enough(schema: Mapping[str, Any]) -> frozenset[type]:
    """The types of which every value fits: nothing else is asked of it."""
    if 'enum' in schema or 'if' in schema:
        return NONE
    return frozenset(t for name in _types(schema) for t in _EXACT[name]) - {dict, list}


def as_text(result: Mapping[str, Any]) -> bytes:
    """The bytes of a result file."""
    return (json.dumps(result, indent=1, sort_keys=True, allow_nan=False) + '\n').encode()


def plain(value: Any, where: str, null: list[str]) -> Any:
    """A value of plain JSON types; numbers that JSON does not have become null, and their place is noted in `null`."""
    value = to_json(value)
    if isinstance(value, dict):
        return {str(k): plain(v, f'{where}.{k}'.lstrip('.'), null) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(v, f'{where}[{i}]', null) for i, v in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        null.append(where)
        return None
    return value


def _is(value: Any, name: str) -> bool:
    """Whether a JSON value has the type that JSON Schema calls `name`."""
    if name in ('number', 'integer'):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (name == 'number' or float(value).is_integer())
    return isinstance(value, _TYPES[name])


def _short(value: Any) -> str:
    text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= 80 else text[:77] + '...'
