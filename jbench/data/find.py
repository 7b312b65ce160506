"""What lies on the machine, from the file tree alone: no file is opened and nothing heavy is imported."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from jbench.data.recording import RecordingRef
from jbench.spec import Dataset


def find_recordings(dataset: Dataset, data_dir: Path | None) -> list[RecordingRef]:
    """The recordings of a dataset under `<data_dir>/<dataset>`; [] if nothing lies there.

    A simulated dataset needs no folder: all its recordings are there.
    """
    root = (data_dir / dataset.name) if data_dir else Path('absent')
    if not dataset.simulated and not root.is_dir():
        return []
    found: list[RecordingRef] = import_module(dataset.source).recordings(dataset, root)
    return found
