"""What a result says apart from its scores: which windows, which protocol, which machine, which versions."""

from __future__ import annotations

import dataclasses
import resource
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench import processes
from jbench.data.load import protocols, splits
from jbench.data.load.class_names import listed_classes
from jbench.data.load.prepared_set import PreparedSet
from jbench.results import learnt, origin
from jbench.results.versions import versions
from jbench.spec.cell import Cell
from jbench.spec.checkpoints import not_to_share
from jbench.spec.dataset import Dataset
from jbench.spec.identity import to_json
from jbench.spec.pretraining import Verdict, verdict
from jbench.spec.task import Task
from jbench.targets import score
from jbench.tasks.suites import SUITES


def describe(cell: Cell, data: PreparedSet, seed: int, digest: str, outcome: dict[str, Any]) -> dict[str, Any]:
    """Everything that a result says, apart from its scores."""
    protocol = _protocol(cell, data)
    dealt = np.where(data.split == protocols.LEFT_OUT, 'train', data.split)  # the same whatever few windows are drawn
    counts = {name: int((data.split == name).sum()) for name in ('train', 'valid', 'test')}
    scale = 1 / 1024 if sys.platform != 'darwin' else 1 / 1024**2
    return {
        'kind': 'decoding',
        'task': cell.task.full_name,
        'task_version': cell.task.version,
        'dataset': cell.dataset.name,
        'model': cell.model.full_name,
        'seed': seed,
        'status': 'failed' if 'failed' in outcome else 'debug' if cell.debug else 'done',
        'simulated': cell.dataset.simulated,
        'protocol': protocol,
        'dummy': outcome['dummy'] if 'dummy' in outcome else _dummy(cell, data),
        'n_records': {
            'declared': None,
            'prepared': data.manifest['n_windows'],
            **counts,
            'evaluated': 0 if 'failed' in outcome else counts['test'],
        },
        'subjects': {name: list(dict.fromkeys(data.subjects[data.split == name].tolist())) for name in counts},
        'split_hash': splits.split_hash({name: data.ids[dealt == name] for name in counts}),
        'prepared_hash': digest,
        'key': cell.key,
        'config': portable(cell),
        'pretraining': cell.model.pretraining,
        'overlap': _overlap(cell, data).status,
        'channels': outcome['network'].channels if 'network' in outcome else None,
        'attachments': {},
        'date': origin.date(),
        'commit': origin.commit(),
        'versions': versions(),
        'devices': processes.devices(),
        'machine': origin.machine(),
        'signal': {name: getattr(data.signal, name) for name in ('n_chans', 'n_times', 'sfreq', 'ch_names')},
        'n_out': data.n_out,
        'scaling': data.scaling,
        'classes': listed_classes(cell.dataset, data),
        'memory': {'peak_rss_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale},
        'warnings': [*_marks(cell, protocol), *_seen(cell, data), *data.warnings, *_of_outcome(cell, outcome)],
        'n_parameters': outcome.get('n_parameters', {'total': None, 'trainable': None}),
        'history': outcome.get('history', []),
        'resumed_at': outcome.get('resumed_at', []),
        'timings': {'prepare': 0.0, **outcome.get('timings', dict.fromkeys(('compile', 'fit', 'test', 'total'), 0.0))},
    }


def _dummy(cell: Cell, data: PreparedSet) -> float | None:
    """The headline of the rule that looks at no signal."""
    test, fitted_on = data.rows('test'), data.rows('train', 'valid')
    vectors = data.fitted_vectors(cell.task.recipe.published)
    outputs = score.dummy(data.kind, data.y[fitted_on], len(test), n_out=data.n_out, vectors=vectors)
    return score.level_score(data.kind, cell.task.metric, data.predictions(test, outputs), cell.task.level)


def _of_outcome(cell: Cell, outcome: dict[str, Any]) -> list[str]:
    """What is to be said of a failed seed, or of one that may not have learnt; a try is short by itself."""
    early = outcome.get('history') and not cell.debug and learnt.warning(outcome)
    return [text for text in (early, outcome.get('failed')) if text]


def portable(cell: Cell) -> Cell:
    """A cell as its result keeps it: of the file of a user's model only the name, not the folder; of that of places of
    electrodes the digest."""
    file, digest = cell.model.target.rpartition('/')[2], cell.model.places_digest
    kept = dataclasses.replace(cell.model, target=file, places=digest and f'@{digest}')
    return cell if kept == cell.model else dataclasses.replace(cell, model=kept)


def _protocol(cell: Cell, data: PreparedSet) -> dict[str, Any]:
    """Which published protocol a result follows, and how it departs from it.

    A suite is named where its version of the task was run on a dataset of its own, the whole of it, nothing changed.
    """
    pinned = (cell.task.full_name, cell.task.version)
    served = cell.task.datasets
    suites = [
        s
        for s, (names, full) in SUITES.items()
        if pinned in names and cell.dataset.name in (served if full else served[:1])
    ]
    custom = [f'{p}={to_json(v)}' for p, v in cell.overrides]  # the same whether a cell comes from flags or from JSON
    if cell.companions:
        custom.append(f'companions={" + ".join(name for name, _ in cell.companions)}')
    partial = _partial(cell.task, cell.dataset, data)
    return {
        'suite': None if custom or cell.debug or partial or not suites else suites[0],
        'custom': custom,
        'partial': partial,
        'debug': cell.debug,
    }


def _marks(cell: Cell, protocol: dict[str, Any]) -> list[str]:
    """What sets a result apart from one of the published protocol on measured recordings, in words."""
    marks = ['simulated: the recordings were generated, not measured'] if cell.dataset.simulated else []
    marks += ['debug: a try on few windows, not a score'] if cell.debug else []
    marks += [f'custom: {c}' for c in protocol['custom']] + [f'partial: {p}' for p in protocol['partial']]
    return marks


def _partial(task: Task, dataset: Dataset, data: PreparedSet) -> list[str]:
    """What of the declared dataset is not here, in words."""
    if dataset.simulated:
        return []
    manifest = data.manifest
    here, all_ = present(task, dataset, manifest['found'])
    reasons = [n.removeprefix('partial: ') for n in manifest['notes'] if n.startswith('partial: ')]
    if here.recordings < all_.recordings or here.subjects < all_.subjects:
        reasons.append(
            f'{here.recordings} of {all_.recordings} recordings ({here.subjects} of {all_.subjects} subjects)'
        )
    return reasons


def _overlap(cell: Cell, data: PreparedSet) -> Verdict:
    """Whether the model's weights have seen what it is tested on."""
    names, tested = {cell.dataset.name, *cell.dataset.aliases}, {*data.subjects[data.split == 'test'].tolist()}
    return verdict(cell.model.full_name, cell.model.family, names, subjects=tested, declared=cell.model.pretraining)


def _seen(cell: Cell, data: PreparedSet) -> list[str]:
    """The same in words, of a model whose weights may have seen it, and whether their licence binds what it learns."""
    status, why = _overlap(cell, data)
    marks = [f'overlap: {why}' if status == 'overlap' else f'overlap unknown: {why}'] if status != 'clean' else []
    return [*marks, *filter(None, [not_to_share(cell.model)])]


class Counts(NamedTuple):
    """How many there are."""

    recordings: int
    subjects: int


def present(task: Task, dataset: Dataset, found: Sequence[str]) -> tuple[Counts, Counts]:
    """What is here of a dataset, and what should be, less the subjects that the task excludes; `found`: the subject of
    every recording that lies there, whether this task asks for it or another that shares the set."""
    left_out = {e.subject for e in task.exclude if e.dataset == dataset.name and not e.after_split}
    here = [s for s in found if s not in left_out]
    n_subjects = dataset.n_subjects - len(left_out)
    n_recordings = dataset.n_recordings * n_subjects // dataset.n_subjects
    return Counts(len(here), len(set(here))), Counts(n_recordings, n_subjects)
