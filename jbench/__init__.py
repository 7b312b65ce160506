"""jbench: how well a model decodes brain recordings, in JAX."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jbench.version import __version__

if TYPE_CHECKING:
    from jbench.api import load, task

__all__ = ['__version__', 'load', 'task']


def __getattr__(name: str) -> Any:
    """The Python interface, imported when it is first used."""
    if name in ('load', 'task'):
        return getattr(import_module('jbench.api'), name)
    raise AttributeError(f"module 'jbench' has no attribute {name!r}")
