"""Versions that a result says it was made with; nothing is imported to know them."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform

from jbench.version import __version__

PACKAGES = (  # installed versions that can change a number
    *('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'grain', 'array_record', 'tensorflow-datasets'),
    *('numpy', 'scipy', 'mne', 'scikit-learn', 'pyriemann'),
)


def versions() -> dict[str, str]:
    """Versions of jbench, Python and the packages that can change a number; nothing is imported for it."""
    found = {'jbench': __version__, 'python': platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found
