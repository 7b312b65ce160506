"""Packages of the extra `alignment`, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from jbench.spec.errors import MissingExtraError


def need(package: str, purpose: str) -> Any:
    """The module of an optional package.

    Args:
      package: as it is imported, `xarray`.
      purpose: what needs it, the start of the message.

    Raises: MissingExtraError, with the pip command.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise MissingExtraError(package.partition('.')[0], 'alignment', purpose) from error
