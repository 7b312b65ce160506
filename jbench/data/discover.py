"""What lies on the machine, from names and small tables alone: no signal is opened and nothing heavy is imported."""

from __future__ import annotations

import csv
from pathlib import Path

from jbench.data import absent_content
from jbench.data.recording import RecordingRef, forbidden, is_hidden
from jbench.data.source import source_of
from jbench.data.sources import mixture
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.stores import recordings


def fill(dataset: Dataset, data_dir: Path | None, report: recordings.Report) -> None:
    """Bring all files of a dataset, or of those of a mixture, whole from the store. Raises: as `recordings.fill`."""
    for one in mixture.parts(dataset):
        recordings.fill(data_dir, one.name, report)


def find_recordings(dataset: Dataset, data_dir: Path | None) -> list[RecordingRef]:
    """The recordings of a dataset under `<data_dir>/<dataset>`, of a mixture those of each that is there; [] if nothing
    lies there.

    A simulated dataset needs no folder: all its recordings are there.

    Raises: RequestError for a damaged table, or a file where none belongs, that keeps a source from telling;
    in one line, where no recording has its content (clones of DataLad, git-annex, git-LFS).
    """
    root = (data_dir or Path('<data_dir>')) / dataset.name
    source = source_of(dataset)
    for one in mixture.parts(dataset):
        if not one.simulated:
            recordings.look(data_dir, one.name)
    try:
        mixed = dataset.source == mixture.__name__  # its members lie beside each other, each in a folder of its own
        if not (dataset.simulated or mixed or root.is_dir()):
            return []
        refs = source.recordings(dataset, root)
    except PermissionError as error:
        raise forbidden(error) from error
    except (RequestError, OSError, ValueError, LookupError, csv.Error) as error:
        absent_content.refuse(root, absent_content.below(root))  # a table without content is no damaged one
        if isinstance(error, RequestError):
            raise
        reason = f'{type(error).__name__}: {error}'
        remedy = 'a table there may be damaged, or a file be none of the set: fetch the one again, remove the other'
        raise RequestError(f'{root}: the recordings of {dataset.name} cannot be listed ({reason}); {remedy}') from error
    refs = [_without_hidden(r) for r in refs if not (r.files and is_hidden(r.files[0]))]
    if dataset.simulated:
        return refs
    there = absent_content.whole(refs)  # some recordings of a clone, as of any other copy, are a partial set
    if not there:
        absent_content.refuse(root, (p for r in refs for p in r.files) if refs else absent_content.below(root))
    return there


def refuse_absent(dataset: Dataset, one: Dataset, place: Path) -> None:
    """Raises: RequestError that tells what to do about `one` of a mixture, of which nothing is in `place`."""
    absent_content.refuse(place, absent_content.below(place))
    raise RequestError(f'{dataset.name}: {place} holds no recording; put there: {one.layout} (from {one.host})')


def _without_hidden(ref: RecordingRef) -> RecordingRef:
    """The reference less files of the operating system that lie beside its own."""
    if any(map(is_hidden, ref.files)):
        return ref._replace(files=tuple(p for p in ref.files if not is_hidden(p)))
    return ref
