"""One test over many cheap values, in place of a test for each of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(names: str, values: Iterable[Any], ids: Callable[[Any], str] = str) -> Callable[..., Callable[..., None]]:
    """Written as `pytest.mark.parametrize`, yet one test: it goes on behind a value that fails, and names every one.

    Args:
      names: what a value is called in the test; several, with commas, where a value is a row.
      values: the values or rows.
      ids: the name of a value in a failure.
    """
    keys, rows = [name.strip() for name in names.split(',')], list(values)
    assert rows, f'no {names} to test'

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        asked = inspect.signature(check)
        fixtures = [p for name, p in asked.parameters.items() if name not in keys]
        own = inspect.Parameter('subtests', inspect.Parameter.POSITIONAL_OR_KEYWORD)

        @functools.wraps(check)
        def test(subtests: pytest.Subtests, **found: Any) -> None:
            for row in rows:
                try:
                    check(**found, **dict(zip(keys, row if len(keys) > 1 else [row], strict=True)))
                except (Exception, pytest.fail.Exception, pytest.skip.Exception):
                    with subtests.test(ids(row)):  # a report for each that passed takes more time than many a check
                        raise

        test.__signature__ = asked.replace(parameters=[own, *fixtures])  # type: ignore[attr-defined]
        return test

    return decorate
