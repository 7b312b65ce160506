"""What of a result no table can hold: numbers that overflow where they are added, texts that no file takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jbench.spec.errors import RequestError

LARGEST = 1e15  # in absolute value, of scores, counts and seconds


def check(values: Mapping[str, Any]) -> None:
    """Look through plain values by name, and what is inside them.

    Raises: RequestError naming a number beyond LARGEST, or a text that UTF-8 does not have.
    """
    for name, value in values.items():
        _check(name, name)
        _check(value, name)


def _check(value: Any, where: str) -> None:
    if isinstance(value, str):
        if not value.isascii() and any('\ud800' <= c <= '\udfff' for c in value):
            raise RequestError(f'{where}: {value!a:.80} holds half of a character, which no file takes')
    elif isinstance(value, dict):
        for name, inner in value.items():
            _check(name, where)
            _check(inner, where)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check(inner, where)
    elif isinstance(value, int | float) and abs(value) > LARGEST:
        raise RequestError(f'{where}: {value!s:.24} is beyond {LARGEST:g}, more than tables hold')
