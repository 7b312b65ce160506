"""A prepared set under one task: its windows with targets and splits, made, opened and read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files, targets
from jbench.data import discover
from jbench.data.load import folds, protocols, targets_of_set
from jbench.data.load.grouping import listed
from jbench.data.load.shards import Scale, Shards, of_unit, scale_by_training_part
from jbench.data.load.split_windows import divide, drawn_from, undivided
from jbench.data.load.streams import Places, places
from jbench.data.prepare import band, build_set
from jbench.data.prepare.siblings import Other, same_signal
from jbench.data.sources import mixture
from jbench.data.stimuli import embed
from jbench.data.windows import n_samples
from jbench.events import Table
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash
from jbench.spec.model import Signal
from jbench.spec.task import ByGroup, Task
from jbench.stores import sets
from jbench.targets import alike


@dataclass(frozen=True)
class PreparedSet:
    """A prepared set under one task: its windows with targets and splits, in canonical order."""

    folder: Path
    manifest: dict[str, Any]
    signal: Signal
    clamp: float | None
    kind: str  # of the target
    y: Any  # [N] int classes or stimuli, [N, K] labels, [N, 1] values, or int [N, length] keys; `Packed` where large
    classes: tuple[str, ...]  # or the stimuli
    ids: np.ndarray  # [N] int64, stable
    subjects: np.ndarray  # [N] text
    split: np.ndarray  # [N] 'train' | 'valid' | 'test' | '' | protocols.LEFT_OUT
    warnings: tuple[str, ...]
    scale: Scale | None = None  # of signal.scaler='train'
    scaled: bool = False  # values are learnt centred and scaled by the training part
    groups: np.ndarray | None = None  # [N] text: what is to be retrieved
    vectors: np.ndarray | None = None  # f32 [stimuli, D], scaled where the task says so
    factor: float = 1.0  # of windows, before the clamp: signal.factor
    raw_vectors: np.ndarray | None = None  # of a scaled embedding: the vectors before that
    mask_channels: float = 0.0  # share of the channels of test windows that fail
    places: Places | None = None  # of a task whose test windows are streamed

    def shards(self, clamp: float | None) -> Shards:
        """Its windows as they are read, clamped if a clamp is given."""
        failing = None
        if self.mask_channels:
            test = np.flatnonzero(self.split == 'test')
            drawn = protocols.failing(self.ids[test], self.signal.n_chans, self.mask_channels)
            failing = dict(zip(test.tolist(), drawn, strict=True))
        return Shards(self.folder, self.manifest, clamp, self.scale, self.factor, failing)

    def rows(self, *names: str) -> np.ndarray:
        """Window numbers of the named splits, one after the other, each in canonical order."""
        return np.concatenate([np.flatnonzero(self.split == n) for n in names])

    @property
    def n_out(self) -> int:
        """Width of the output layer."""
        return targets.of(self.kind).n_out(self.y, self.classes, self.vectors)

    @property
    def length(self) -> int:
        """Of a sequence of keys, or of angles; 0 for other targets."""
        return int(self.y.shape[1]) if (kind := targets.of(self.kind)).frames or kind.measured else 0

    def learnt(self, y: Any) -> np.ndarray:
        """What a network learns of targets y: int32 or float32 [N, ...]."""
        if self.vectors is not None:
            return self.vectors[y]
        y = np.asarray(y)
        if self.scaled:
            y = (y - self._scaling[0]) / self._scaling[1]
        return y.astype(np.int32 if y.dtype.kind == 'i' else np.float32)

    def unscaled(self, outputs: np.ndarray) -> np.ndarray:
        """Outputs of a network in the unit of the targets."""
        return (outputs * self._scaling[1] + self._scaling[0]).astype(np.float32) if self.scaled else outputs

    def fitted_vectors(self, published: bool) -> np.ndarray | None:
        """Vectors of stimuli that baselines are fitted on: as published those that were not scaled, although scores
        are against scaled ones (docs/differences.md)."""
        return self.raw_vectors if published and self.raw_vectors is not None else self.vectors

    def about(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """What scores need to know of windows beside their targets."""
        known = {'subject': self.subjects[rows]}
        if self.groups is not None and self.vectors is not None:
            known |= {'group': self.groups[rows], 'vectors': self.vectors}
        return known if self.places is None else known | {'cell': self.places.cell[rows]}

    def predictions(self, rows: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
        """What a result keeps of the answers to some windows."""
        return {'id': self.ids[rows], 'outputs': outputs, 'y': self.y[rows], **self.about(rows)}

    @property
    def scaling(self) -> dict[str, Any] | None:
        """`mean` and `sd` [K] by which values are learnt; None where they are learnt as they are."""
        return dict(zip(('mean', 'sd'), self._scaling, strict=True)) if self.scaled else None

    @functools.cached_property
    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        return targets.scaling(self.y[self.rows('train')])


def ready(
    task: Task,
    dataset: Dataset,
    data_dir: Path | None,
    workdir: Path,
    report: build_set.Progress,
    say: Callable[[str], None],
    others: Sequence[Task] = (),
    *,
    own_band: bool = True,
) -> Path:
    """The folder of the prepared set of a task as applied to a dataset, made if it is not there. Its stimuli are
    embedded by `embed.provide`. Of `others`, on this dataset, those that ask for the same signal get their parts too.
    With `own_band` every recording must hold the band (Cell.own_band).

    Raises: RequestError for bad data, or none; what `report` raises.
    """
    folder, refs = build_set.locate(task, dataset, data_dir, workdir)
    if folder is None:
        raise RequestError(f'{dataset.name}: no recordings, and no prepared set of this signal and window')
    if not refs:
        few = 'not all' if dataset.source == mixture.__name__ else 'no'
        say(f'{dataset.name}: {few} recordings here, the set prepared earlier serves: {folder}')
    if own_band and not build_set.is_ready(folder):
        band.refuse_by_head(task, dataset, refs)
    if not sets.stored(workdir, folder):
        siblings = []
        if not build_set.is_ready(folder):
            discover.fill(dataset, data_dir, report)
            more = (t for t in others if same_signal(task, t))
            siblings = [Other(t, *build_set.locate(t, dataset, data_dir, workdir)) for t in more]
        build_set.prepare(task, dataset, folder, refs, report, siblings, data_dir and data_dir / dataset.name)
    if own_band and build_set.is_ready(folder):
        band.refuse_by_set(task, folder)
    return folder


@functools.cache
def _verify_once(folder: Path, digest: str) -> None:
    """Compare every file with the manifest, once in a process for each manifest."""
    build_set.verify(folder)


def digest(folder: Path) -> str:
    """16 hex digits that change with anything in a prepared set, the embeddings of its stimuli included."""
    found = ''.join(files.sha256_file(folder / name) for name in ('manifest.json', *embed.stored_files(folder)))
    return found[:16] if len(found) == 64 else spec_hash(found)


def open_set(
    folder: Path, task: Task, *, verified: bool = True, divided: bool = True, embedded: bool = True
) -> PreparedSet:
    """Read manifest and index, encode the targets and assign the splits of a task.

    Args:
        folder: of the prepared set.
        task: as applied to its dataset.
        verified: every file is compared with its digest before, once.
        divided: else all windows are in no part, whether the task can be learnt from them or not.
        embedded: its stimuli must be.
    Raises: RequestError if damaged, or where the task cannot be learnt from what is there.
    """
    if verified:
        _verify_once(folder, files.sha256_file(folder / 'manifest.json') if (folder / 'manifest.json').exists() else '')
    manifest, events, windows = _tables(folder)
    split, counted, notes = divide(events, windows, task, manifest['dataset']) if divided else undivided(windows)
    manifest = of_unit(manifest, task.split, events['recording'][windows['event']], split)
    encoded, y = targets_of_set.encoded(folder, manifest, windows, counted, task.target)
    if divided:
        _require_classes(task, manifest['dataset'], encoded.classes, events['type'])
    kind, subjects = targets.of(task.target.kind), events['subject'][windows['event']]
    split = protocols.asked(split, y, subjects, task.recipe) if divided else split
    warnings = [*manifest['notes'], *notes, *(alike.told(encoded.classes) if kind.least else ())]
    if kind.single and divided:
        for name in ('train', 'valid', 'test') if task.recipe.final == 'chosen' else ('train', 'test'):
            absent = sorted(set(range(len(encoded.classes))) - set(y[split == name].tolist()))
            if absent:
                warnings.append(f'{name} holds no window of class {", ".join(encoded.classes[k] for k in absent)}')
    signal = Signal(
        n_chans=len(manifest['ch_names']),
        n_times=n_samples(task.window.duration, task.signal.sfreq),
        sfreq=task.signal.sfreq,
        ch_names=tuple(manifest['ch_names']),
    )
    return PreparedSet(
        folder,
        manifest,
        signal,
        task.signal.clamp,
        kind.name,
        y,
        encoded.classes,
        windows['id'],
        subjects,
        split,
        tuple(warnings),
        scale_by_training_part(folder, manifest, split, subjects, signal.n_times)
        if task.signal.scaler == 'train' and divided
        else None,
        **(_taught(folder, task, encoded, y[split == 'train'], counted, embedded) if divided else {}),
        factor=task.signal.factor,
        mask_channels=task.recipe.mask_channels if divided else 0.0,
        places=places(events, windows, task.stream, split == 'test') if task.stream else None,
    )


def _tables(folder: Path) -> tuple[dict[str, Any], Table, Table]:
    manifest, index = files.read_json(folder / 'manifest.json'), files.read_npz(folder / 'index.npz')
    parts = ({k[len(p) :]: v for k, v in index.items() if k.startswith(p)} for p in ('event.', 'window.'))
    return manifest, *parts


def fold_names(folder: Path, task: Task) -> list[str]:
    """Every fold of `task.split.folds`, as `split.fold` names it. Raises: as `folds.fold_names`."""
    manifest, events, _ = _tables(folder)
    assert isinstance(task.split, ByGroup)
    return folds.fold_names(drawn_from(events, task, manifest['dataset']), task.split)


def _require_classes(task: Task, dataset: str, classes: tuple[str, ...], types: np.ndarray) -> None:
    """Raises RequestError where there is nothing to tell apart."""
    target, least = task.target, targets.of(task.target.kind).least
    if len(classes) >= least:
        return
    event, there = getattr(target, 'event', task.window.trigger), listed(sorted(set(types.tolist())))
    raise RequestError(
        f'{dataset}: {target.kind} of the field {target.field!r} of events of type {event}: found '
        f'{listed(classes) or "none"}, expected at least {least}; types of events there: {there}'
    )


def _taught(
    folder: Path, task: Task, encoded: targets.Encoded, train: np.ndarray, counted: np.ndarray, embedded: bool
) -> dict[str, Any]:
    """What a set says of its targets beside y; a scaled embedding is so in every part."""
    scaled = bool(getattr(task.target, 'scaled', False))
    if not encoded.groups:
        return {'scaled': scaled}
    groups = np.full(len(counted), '', object)
    groups[counted] = encoded.groups
    try:
        vectors = embed.stored(folder, encoded.classes)
    except RequestError:
        if embedded:
            raise
        return {'scaled': scaled, 'groups': groups.astype(str)}
    taught = {'groups': groups.astype(str), 'vectors': vectors}
    if scaled:
        mean, sd = targets.scaling(vectors, np.bincount(train, minlength=len(vectors)))
        taught |= {'vectors': ((vectors - mean) / sd).astype(np.float32), 'raw_vectors': vectors}
    return taught


def read(prepared: PreparedSet, rows: np.ndarray, clamp: float | None) -> np.ndarray:
    """Windows of the given numbers, f32 [N, C, T]. Raises RequestError that names a damaged shard."""
    return _read(prepared.shards(clamp), prepared.signal, rows)


def _read(shards: Shards, signal: Signal, rows: np.ndarray) -> np.ndarray:
    out = np.empty((len(rows), signal.n_chans, signal.n_times), np.float32)
    shards.read(rows, out)
    return out


@dataclass(frozen=True)
class View:
    """Some windows of a prepared set, unclamped, read when they are asked for: `view[numbers]` is f32 [N, C, T]."""

    prepared: PreparedSet
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, numbers: Any) -> np.ndarray:
        return _read(self._shards, self.prepared.signal, self.rows[numbers])

    @functools.cached_property
    def _shards(self) -> Shards:
        return self.prepared.shards(None)
