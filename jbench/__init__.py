"""jbench: how well a model decodes brain recordings, in JAX."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jbench.version import __version__

if TYPE_CHECKING:
    from jbench.api import load, task
    from jbench.cli.evaluate import evaluate
    from jbench.cli.features import features
    from jbench.run import results as run
    from jbench.trained import load_model

__all__ = ['__version__', 'evaluate', 'features', 'load', 'load_model', 'run', 'task']
MODULES = {  # of the Python interface
    'load': 'jbench.api',
    'task': 'jbench.api',
    'load_model': 'jbench.trained',
    'features': 'jbench.cli.features',
    'evaluate': 'jbench.cli.evaluate',
}


def __getattr__(name: str) -> Any:
    """The Python interface, imported when it is first used."""
    if name == 'run':  # the module of the command, which is callable
        return import_module('jbench.run')
    if name in MODULES:
        return getattr(import_module(MODULES[name]), name)
    raise AttributeError(f"module 'jbench' has no attribute {name!r}")
