"""What a source module is: the facts of its datasets, and the two functions that find and read their recordings."""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import numpy as np

NEEDED = ('recordings', 'read')
Progress = Callable[[int, int, str], None]  # (done, total, of what)
Fetch = Callable[[Dataset, Path, Progress, Callable[[str], None]], None]  # (dataset, folder, progress, say)
Vectors = Callable[[Sequence[str], int], 'np.ndarray']  # (names of stimuli, size) -> f32 [N, size]


class Source(Protocol):
    """A module of `jbench.data.sources`.

    It may also have `VERSION`, raised when it reads other events than before (1, where none is said), so that sets are
    prepared anew; `DATASETS`, the facts; `fetch`, where its package brings the files (`Fetch`); `vectors`, where its
    stimuli need no encoder (`Vectors`); and `WHOLE = True`, where the `files` of each reference are all that its signal
    consists of (of BrainVision the .eeg and .vmrk too, of EEGLAB the .fdt): they may then be deleted once prepared.
    """

    __file__: str  # beside it lies the list of sums that `Download.registered` names

    def recordings(self, dataset: Dataset, root: Path) -> list[RecordingRef]:
        """What lies under `<data_dir>/<dataset>`, from names and small tables alone; [] for nothing."""
        ...

    def read(self, ref: RecordingRef) -> Recording | Finding:
        """One recording, or what is wrong with its file."""
        ...


def source_of(dataset: Dataset) -> Source:
    """The module that reads a dataset, imported now.

    Raises: RequestError where there is none, or it lacks a function.
    """
    try:
        module = import_module(dataset.source)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{dataset.source}.'.startswith(f'{error.name}.'):
            raise  # it is there, and lacks something else
        raise RequestError(
            f'dataset {dataset.name}: source={dataset.source!r} is no module; expected one of jbench.data.sources '
            '(docs/add_a_dataset.md)'
        ) from error
    if lacking := [name for name in NEEDED if not callable(getattr(module, name, None))]:
        raise RequestError(
            f'dataset {dataset.name}: its source {dataset.source} has no function {" and no ".join(lacking)}; expected '
            'recordings(dataset, root) and read(ref) (docs/add_a_dataset.md)'
        )
    return cast(Source, module)


@functools.cache
def catalogue() -> dict[str, Dataset]:
    """All datasets that the modules of `jbench.data.sources` state, by name."""
    folder = import_module('jbench.data.sources').__path__
    modules = [import_module(f'jbench.data.sources.{m.name}') for m in pkgutil.iter_modules(folder)]
    return {d.name: d for module in modules for d in getattr(module, 'DATASETS', ())}


def is_own(dataset: Dataset) -> bool:
    """Whether a dataset is a user's own: no module of jbench states its facts."""
    return dataset.name not in {d.name for d in getattr(source_of(dataset), 'DATASETS', ())}


def is_whole(dataset: Dataset) -> bool:
    """Whether the `files` of a recording are all that its signal consists of, as its source says."""
    return getattr(source_of(dataset), 'WHOLE', False) is True


def fetch_of(dataset: Dataset) -> Fetch | None:
    """The function by which its source fetches a dataset, where it has one."""
    return cast('Fetch | None', getattr(source_of(dataset), 'fetch', None))


def vectors_of(dataset: Dataset) -> Vectors | None:
    """The function by which its source embeds the stimuli of a dataset, where it has one."""
    return cast('Vectors | None', getattr(source_of(dataset), 'vectors', None))
