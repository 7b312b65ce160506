"""Named arrays of a file, with the shapes that are expected."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jbench.spec.errors import RequestError


def read_arrays(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The arrays of an npz; nothing executable is loaded.

    Args:
      path: the file.
      shapes: what is read, and its shape.

    Raises: RequestError for an array that is not there or of another shape, or a file that is no npz.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in shapes if name in archive}
    except (OSError, ValueError) as error:
        raise RequestError(f'{path}: not a readable npz ({error}); fetch it again') from error
    for name, shape in shapes.items():
        found = arrays[name].shape if name in arrays else None
        if found != shape:
            raise RequestError(f'{path}: {name} has shape {found}, expected {shape}; fetch the file again')
    return arrays
