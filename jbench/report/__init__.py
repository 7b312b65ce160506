"""What people see: tables, computed from result files alone, and the catalogue of what can be run."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jbench.report.data_frame import frame

__all__ = ['frame']
MODULES = {'frame': 'jbench.report.data_frame'}  # of the Python interface


def __getattr__(name: str) -> Any:
    """The Python interface, imported when it is first used."""
    if name in MODULES:
        return getattr(import_module(MODULES[name]), name)
    raise AttributeError(f"module 'jbench.report' has no attribute {name!r}")
