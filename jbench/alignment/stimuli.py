"""Sets of stimuli: a table with a row for each, and a function that reads one, an image or a text."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from pandas import DataFrame

Stimulus = np.ndarray | str  # uint8 [height, width, 3], or a text


@dataclass(frozen=True, eq=False)
class StimulusSet:
    """Stimuli in an order, read when they are asked for."""

    identifier: str
    table: DataFrame  # `stimulus_id`, unique; `degrees`, `image_label` and others where they are known
    read: Callable[[str], Stimulus]  # stimulus_id -> its content
    digest: str  # sha256 over the table and the contents, or what stands for them

    @property
    def ids(self) -> list[str]:
        """Every `stimulus_id`, in order."""
        return list(self.table['stimulus_id'])

    def __len__(self) -> int:
        """How many stimuli there are."""
        return len(self.table)

    def image(self, stimulus_id: str) -> np.ndarray:
        """One image, uint8 [height, width, 3]. Raises: RequestError for an unknown id, or a text."""
        found = self._read(stimulus_id)
        if isinstance(found, str):
            raise RequestError(
                f'stimulus {stimulus_id!r} of {self.identifier} is a text; choose a model that reads texts'
            )
        if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3:
            shown = f'{found.dtype} {list(found.shape)}'
            raise RequestError(f'stimulus {stimulus_id!r} of {self.identifier} is {shown}, expected uint8 [h, w, 3]')
        return found

    def text(self, stimulus_id: str) -> str:
        """One text. Raises: RequestError for an unknown id, or an image."""
        found = self._read(stimulus_id)
        if not isinstance(found, str):
            raise RequestError(f'stimulus {stimulus_id!r} of {self.identifier} is an image; choose a model of images')
        return found

    @functools.cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.ids)

    def _read(self, stimulus_id: str) -> Stimulus:
        if stimulus_id not in self._known:
            raise RequestError(f'stimulus set {self.identifier} has no {stimulus_id!r}; its ids begin {self.ids[:3]}')
        return self.read(stimulus_id)


def make(
    identifier: str,
    table: DataFrame | Mapping[str, Any],
    read: Callable[[str], Stimulus],
    digest_of: Callable[[str], str],
) -> StimulusSet:
    """A stimulus set, checked.

    Args:
      identifier: its name.
      table: `stimulus_id` and other columns, a row for each stimulus.
      read: stimulus_id -> uint8 [h, w, 3] or text.
      digest_of: stimulus_id -> sha256 of its content.

    Raises: RequestError for a table without `stimulus_id`, or with an id that comes twice or is no text.
    """
    frame = need('pandas', 'a stimulus set').DataFrame(table).reset_index(drop=True).infer_objects()
    if 'stimulus_id' not in frame.columns:
        raise RequestError(
            f'stimulus set {identifier}: no column stimulus_id (there: {", ".join(map(str, frame.columns))})'
        )
    ids = frame['stimulus_id'].tolist()
    if not ids:
        raise RequestError(f'stimulus set {identifier}: no rows; give it at least one stimulus')
    wrong = [i for i in ids if not isinstance(i, str) or not i]
    if wrong:
        raise RequestError(f'stimulus set {identifier}: stimulus_id {wrong[0]!r} is no text; make each a unique text')
    if len(set(ids)) < len(ids):
        twice = next(i for i in ids if ids.count(i) > 1)
        raise RequestError(f'stimulus set {identifier}: stimulus_id {twice!r} comes twice; make each unique')
    return StimulusSet(identifier, frame, read, _digest(frame, [digest_of(i) for i in ids]))


def _digest(frame: DataFrame, contents: Sequence[str]) -> str:
    """SHA-256 over the columns of a table and the digests of the contents: the same on every machine."""
    columns = {str(c): [v if isinstance(v, str) else repr(v) for v in frame[c].tolist()] for c in sorted(frame.columns)}
    return hashlib.sha256(json.dumps([columns, list(contents)], sort_keys=True).encode()).hexdigest()


def content_digest(stimulus: Stimulus) -> str:
    """SHA-256 of one stimulus: of the text as UTF-8, or of the shape and pixels of the image."""
    if isinstance(stimulus, str):
        return hashlib.sha256(stimulus.encode()).hexdigest()
    return hashlib.sha256(f'{stimulus.dtype} {stimulus.shape} '.encode() + stimulus.tobytes()).hexdigest()


def of_arrays(identifier: str, table: DataFrame | Mapping[str, Any], stimuli: Sequence[Stimulus]) -> StimulusSet:
    """Stimuli that lie in memory: images uint8 [h, w, 3], or texts, in the order of the table. Raises: as `make`."""
    frame = need('pandas', 'a stimulus set').DataFrame(table)
    if len(frame) != len(stimuli):
        raise RequestError(
            f'stimulus set {identifier}: {len(stimuli)} stimuli for {len(frame)} rows; give one for each'
        )
    by_id = dict(zip(frame['stimulus_id'].tolist(), stimuli, strict=True)) if 'stimulus_id' in frame else {}
    return make(identifier, frame, by_id.__getitem__, lambda i: content_digest(by_id[i]))


def of_folder(identifier: str, table: DataFrame | Mapping[str, Any], folder: str | Path) -> StimulusSet:
    """Image files in a folder, named by the column `filename`; the digest is over their bytes.

    Raises: RequestError, as `make`, and for a file that is not there.
    """
    frame = need('pandas', 'a stimulus set').DataFrame(table)
    if 'filename' not in frame.columns:
        raise RequestError(
            f'stimulus set {identifier}: no column filename; say which file of {folder} each stimulus is'
        )
    paths = {
        i: Path(folder) / f for i, f in zip(frame['stimulus_id'].tolist(), frame['filename'].tolist(), strict=True)
    }
    absent = [p for p in paths.values() if not p.is_file()]
    if absent:
        raise RequestError(
            f'stimulus set {identifier}: {len(absent)} files are missing, {absent[0]} first; put them there'
        )
    digests = {i: hashlib.sha256(p.read_bytes()).hexdigest() for i, p in paths.items()}
    return make(identifier, frame, lambda i: decode(paths[i].read_bytes(), str(paths[i])), digests.__getitem__)


def absent(identifier: str, table: DataFrame | Mapping[str, Any], why: str) -> StimulusSet:
    """Stimuli of which the ids alone are known: models of recorded features can answer, others learn `why` not."""

    def read(stimulus_id: str) -> Stimulus:
        raise RequestError(f'stimulus {stimulus_id!r} of {identifier} cannot be shown: {why}')

    return make(identifier, table, read, lambda i: content_digest(i))


def decode(data: bytes, name: str) -> np.ndarray:
    """An image file as uint8 [height, width, 3]; gray becomes three equal channels. Raises: RequestError."""
    import io

    image = need('PIL.Image', 'reading images')
    try:
        with image.open(io.BytesIO(data)) as opened:
            return np.array(opened.convert('RGB'))
    except (OSError, ValueError) as error:
        raise RequestError(f'{name}: not a readable image ({error}); fetch the file again') from error


def choose(stimuli: StimulusSet, stimulus_ids: Sequence[str], identifier: str) -> StimulusSet:
    """Some of the stimuli, in this order, under a name of their own. Raises: RequestError for an unknown id."""
    row = {stimulus: k for k, stimulus in enumerate(stimuli.ids)}
    unknown = [i for i in stimulus_ids if i not in row]
    if unknown:
        raise RequestError(f'stimulus set {stimuli.identifier} has no {unknown[0]!r}; its ids begin {stimuli.ids[:3]}')
    table = stimuli.table.iloc[[row[i] for i in stimulus_ids]].reset_index(drop=True)
    return derived(stimuli, identifier, table, stimuli.read)


def derived(
    stimuli: StimulusSet, identifier: str, table: DataFrame, read: Callable[[str], Stimulus], how: str = ''
) -> StimulusSet:
    """A set made from another; its digest is over that of the other, the table and `how` it was made."""
    return StimulusSet(identifier, table, read, _digest(table, [stimuli.digest, how]))
