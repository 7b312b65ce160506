"""The data of a task in Python, without the benchmark: batches for any framework, arrays, or a grain dataset.

    import jbench

    task = jbench.task('ssvep')
    splits = jbench.load(task, data_dir='recordings')
    for batch in splits.train:
        ...  # batch['x'] f32 [B, C, T], batch['y'], batch['mask'], batch['id']

Windows, targets and parts are those of the benchmark, to the bit: both read the same prepared set.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench.cli import arguments
from jbench.plan import cells, select
from jbench.progress import Progress
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.task import Task

if TYPE_CHECKING:
    import grain
    import numpy as np

    from jbench.data.load.loader import Loader
    from jbench.data.load.prepared_set import PreparedSet
    from jbench.data.load.shards import Shards

Batch = dict[str, 'np.ndarray']
Folder = str | os.PathLike[str]


class Arrays(NamedTuple):
    """All windows of a part, in canonical order."""

    x: np.ndarray  # f32 [N, C, T]
    y: np.ndarray  # as in batches
    subjects: np.ndarray  # text [N]


@dataclass(frozen=True, repr=False)
class Split:
    """The windows that train, validate or test: what iterates over it gets batches.

    A batch holds `x` f32 [B, C, T], scaled and clamped as networks get it; `y`: int32 [B] classes, f32 [B, K] labels,
    f32 [B, 1] values (centred and scaled by the training part where the task says so), f32 [B, D] embeddings of
    stimuli, or int32 [B, length] keys; `mask` bool [B]: the last batch is filled up by rows that are False here and
    count nowhere; `id` int64 [B]. B is recipe.batch_size, or the windows of a part that has fewer.

    Each pass over the training part is its next epoch, in the order (and by the sampler) of the benchmark; the other
    parts come as they lie. `len` counts batches.
    """

    data: PreparedSet
    name: str  # 'train' | 'valid' | 'test'
    task: Task

    def __repr__(self) -> str:
        return f'{self.name}: {self.n_windows} windows in {len(self)} batches'

    def __len__(self) -> int:
        return math.ceil(self.n_windows / self.task.recipe.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches(next(self._epochs))

    def batches(self, epoch: int = 0) -> Iterator[Batch]:
        """The batches of an epoch. Raises: RequestError that names a damaged file."""
        for chunk in self._loader.chunks(epoch if self.name == 'train' else None):
            x = chunk.x[: chunk.n].copy()  # the loader writes there again
            for k in range(chunk.n):
                yield {'x': x[k], 'y': chunk.y[k], 'mask': chunk.mask[k], 'id': chunk.id[k]}

    def arrays(self) -> Arrays:
        """x f32 [N, C, T], y and subjects of all windows, in memory. Raises: RequestError if they do not fit."""
        import numpy as np

        from jbench.data.prepare.workers import free_memory

        shape = (self.n_windows, self.data.signal.n_chans, self.data.signal.n_times)
        if 4 * math.prod(shape) > free_memory():
            raise RequestError(
                f'{self.data.folder}: the {self.name} part, f32 {list(shape)}, takes {4 * math.prod(shape) / 1e9:.1f} '
                f'GB, and {free_memory() / 1e9:.1f} GB of memory are free; take batches, or grain()'
            )
        x = np.empty(shape, np.float32)
        self._shards.read(self.rows, x)
        return Arrays(x, self.y, self.subjects)

    def grain(self) -> grain.MapDataset[Batch]:
        """One window after the other for a pipeline of your own: {'x': f32 [C, T], 'y', 'id'}, unshuffled, unbatched.

        Example: splits.train.grain().shuffle(seed=0).repeat(10).batch(32)
        """
        import grain

        return grain.MapDataset.source(_Windows(dataclasses.replace(self)))  # without the thread that makes batches

    @cached_property
    def rows(self) -> np.ndarray:
        """Numbers of its windows in the prepared set, int [N]."""
        return self.data.rows(self.name)

    @property
    def n_windows(self) -> int:
        """How many windows it has."""
        return len(self.rows)

    @cached_property
    def y(self) -> np.ndarray:
        """Targets of its windows [N, ...], as in batches."""
        return self.data.learnt(self.data.y[self.rows])

    @cached_property
    def subjects(self) -> np.ndarray:
        """Who was recorded in each window, text [N]."""
        return self.data.subjects[self.rows]

    @cached_property
    def ids(self) -> np.ndarray:
        """What a window is called in batches, int64 [N]."""
        return self.data.ids[self.rows]

    @cached_property
    def _loader(self) -> Loader:
        from jbench.data.load.loader import Loader
        from jbench.data.load.sampling import SAMPLERS

        sampler = SAMPLERS[self.task.recipe.sampler] if self.name == 'train' else None
        size = max(1, min(self.task.recipe.batch_size, self.n_windows))
        return Loader(self.data, (self.name,), size, sampler=sampler)

    @cached_property
    def _shards(self) -> Shards:
        return self.data.shards(self.data.clamp)

    @cached_property
    def _epochs(self) -> Iterator[int]:
        return itertools.count()


@dataclass(frozen=True)
class _Windows:
    """A part as grain wants a source: its windows by number."""

    part: Split

    def __len__(self) -> int:
        return self.part.n_windows

    def __getitem__(self, k: int) -> Batch:
        import numpy as np

        part = self.part
        x = np.empty((1, part.data.signal.n_chans, part.data.signal.n_times), np.float32)
        part._shards.read(part.rows[k : k + 1], x)
        return {'x': x[0], 'y': part.data.learnt(part.data.y[part.rows[k : k + 1]])[0], 'id': part.ids[k]}


@dataclass(frozen=True, repr=False)
class Splits:
    """The three parts of a task on a dataset."""

    task: Task  # as it runs on the dataset, changes included
    dataset: Dataset
    data: PreparedSet

    def __repr__(self) -> str:
        """Five lines: what it is, its windows, targets, parts and warnings."""
        of, signal, names = self.task.target, self.signal, self.classes
        parts = [f'{p.name} {p.n_windows}' for p in (self.train, self.valid, self.test)]
        known = textwrap.shorten(', '.join(names), 80, placeholder=' ...') if names else f'from {of.field!r}'
        told = f'{len(self.warnings)}: {textwrap.shorten(self.warnings[0], 80)}' if self.warnings else 'none'
        return (
            f'{self.task.full_name}@{self.task.version} on {self.dataset.name}{" (simulated)" * self.simulated}\n'
            f'  windows   {signal.n_chans} channels x {signal.n_times} samples at {signal.sfreq:g} Hz\n'
            f'  targets   {of.kind}: {known}\n'
            f'  parts     {", ".join(parts)} windows of {len({*self.data.subjects})} subjects\n'
            f'  warnings  {told}'
        )

    @cached_property
    def train(self) -> Split:
        """The windows to learn from."""
        return Split(self.data, 'train', self.task)

    @cached_property
    def valid(self) -> Split:
        """The windows that choose among epochs, or among models."""
        return Split(self.data, 'valid', self.task)

    @cached_property
    def test(self) -> Split:
        """The windows to be scored on, once."""
        return Split(self.data, 'test', self.task)

    @property
    def signal(self) -> Signal:
        """Shape and meaning of a window: n_chans, n_times, sfreq, ch_names."""
        return self.data.signal

    @property
    def classes(self) -> tuple[str, ...]:
        """What outputs 0..K-1 stand for; () for values and embeddings."""
        from jbench.data.load.class_names import listed_classes

        return tuple(listed_classes(self.dataset, self.data))

    @property
    def simulated(self) -> bool:
        """Whether the recordings are generated, not measured."""
        return self.dataset.simulated

    @property
    def warnings(self) -> tuple[str, ...]:
        """What sets these data apart: partial, duplicates, overlapping windows, a class that a part lacks."""
        return self.data.warnings


class Asked(NamedTuple):
    """What is to be loaded."""

    spec: Task  # asked.spec.window, .target, .split, ...
    dataset: Dataset | None  # None: the Core one of the task, or its simulation


def task(name: str | Task, dataset: Dataset | None = None) -> Asked:
    """A task by what `--task` takes: 'ssvep', 'ssvep@1', 'ssvep/Kalunga2016Online', 'meg/typing', 'mine.py:my_task'.

    A task of your own (`jbench.spec.task.Task`) may be given as it is, with the dataset that it is to run on.

    Raises: RequestError for an unknown name, or one of several tasks.
    """
    if isinstance(name, Task):
        return Asked(name, dataset)
    found = select.select_tasks(name)
    if len(found) > 1:
        raise RequestError(f'{name!r} names {len(found)} tasks; load them one by one, as {found[0][0].full_name!r}')
    return Asked(*found[0])


def load(
    task: Asked,
    *,
    data_dir: Folder | None = None,
    workdir: Folder | None = None,
    simulated: bool | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Splits:
    """The parts of a task, prepared if they are not yet; the second time they are there at once.

    Args:
        task: from `jbench.task`. A dataset that it names is never replaced by a simulation.
        data_dir: folder of the recordings, `<data_dir>/<dataset>/...`; without it JBENCH_DATA.
        workdir: where prepared sets are kept; without it JBENCH_WORKDIR, or ./jbench-work.
        simulated: True: generated recordings; False: never; None: where no measured ones are there, and a line on
            stderr says so.
        changes: fields to change, as `--set` has them: {'window.duration': 2.0, 'recipe.batch_size': 32}.
    Raises: RequestError for data that are absent or bad, or a field that does not exist.
    """
    if not isinstance(task, Asked):
        raise RequestError(f'jbench.load: got {task!r}, expected what jbench.task("ssvep") gives')
    spec, named = task
    if simulated and named is not None and not named.simulated:
        raise RequestError(f'simulated=True: {named.name} is named, and a named dataset is never replaced')
    from jbench.data.load import prepared_set
    from jbench.data.stimuli import embed

    flags = {'data_dir': data_dir, 'workdir': workdir}
    flags['simulated'] = {None: None, True: 'yes', False: 'no'}[simulated]
    args = arguments.parse(['--task=' + spec.full_name, *(f'--{k}={v}' for k, v in flags.items() if v is not None)])
    choice = cells.choose_dataset(spec, named, args.data_dir, args.workdir, args.simulated)
    asked = cells.apply(spec, choice.dataset, tuple(sorted((changes or {}).items())))
    with Progress() as progress:
        if notice := cells.simulated([choice]):
            progress.say(notice)
        where = (args.data_dir, args.workdir)
        folder = prepared_set.ready(asked, choice.dataset, *where, progress.update, progress.say)
        embed.provide(asked, choice.dataset, folder, *where, progress.update)
    return Splits(asked, choice.dataset, prepared_set.open_set(folder, asked))
