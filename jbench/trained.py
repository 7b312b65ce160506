"""A network as its run left it, from the result of a seed: it answers windows as it answered in its test.

import jbench

model = jbench.load_model('jbench-work/results/p3@2/SimulatedP3/eegnet/<key>/seed33.json')
outputs = model.predict()  # of the test windows, as they are stored
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from jbench import targets
from jbench.data.load import prepared_set, protocols
from jbench.data.load.loader import Chunk, Loader, n_batches
from jbench.data.load.splits import SPLITS
from jbench.data.prepare import build_set
from jbench.models import MODELS, options, user_model
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.plan import places
from jbench.results import place, result_file, weights
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import from_json
from jbench.spec.model import ModelSpec, Signal
from jbench.spec.task import Recipe
from jbench.spec.validate import NO_FAILING
from jbench.train import parallel, programs, stream
from jbench.train.features import LAYER, Encoder, Features, of_set, of_windows
from jbench.train.seeds import few_windows
from jbench.version import __version__


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A network with the variables that were tested, those of its best epoch."""

    path: Path  # of the result
    result: dict[str, Any] = field(repr=False)
    cell: Cell = field(repr=False)  # what was asked: task, dataset, model, changes
    spec: ModelSpec = field(repr=False)  # its line in the table of models
    signal: Signal  # of a window
    classes: tuple[str, ...]  # what outputs 0..K-1 stand for; () for values and embeddings
    model: Model = field(repr=False)  # pure functions: model.apply(variables, {'x', 'mask'}, train=False, key=None)
    variables: Variables = field(repr=False)

    def predict(self, x: np.ndarray | None = None) -> np.ndarray:
        """Outputs of windows: f32 [N, n_out], values in the unit of their targets; of keystrokes the path f32 [N,
        frames]; of samples that are hidden six sums over them (metrics/contrast.py), of the test windows alone.

        They are computed by the programs of the benchmark, in batches of the same size. Where `devices` of the result
        are those of this process, the test windows in their order are answered with the bits that are stored; elsewhere
        the same within rounding; so too of a probe, whose head was tested on features as they are kept.

        Args:
            x: windows f32 [N, C, T] of all channels, scaled and clamped as `jbench.load(...).test.arrays().x` has them
                (of a model that wants another signal: loaded with those changes). None: the test windows of the
                prepared set, in the order of `results.load_predictions(path)['id']`.
        Raises: RequestError for windows of another shape, or where x is None and the prepared set is not there; for
            windows handed to a network of hidden samples.
        """
        if x is None:
            loader = self._test_windows(self._data(', or hand windows in: predict(x)'))
            return self._outputs(loader.chunks(), len(loader))
        if self._hides:
            raise RequestError(
                f'predict: {self.cell.title} hides samples of the windows of its set alone, and answers sums over '
                'them: predict() answers its test windows, features(x) reads windows of yours, whole'
            )
        x = self._checked(x, 'predict')
        return self._outputs(self._chunks(x), len(x))

    def masked(self, share: float) -> dict[str, Any]:
        """Predictions (id, outputs, y, subject, ...) on the test windows while a share of the channels of each fails:
        those that fail with `recipe.mask_channels`. Nothing is learnt.

        Args:
            share: 0 to below 1.
        Raises: RequestError for a task whose test windows are streamed, or hide samples; else as `predict`.
        """
        if self._hides:
            raise RequestError(f'{self.path}: {NO_FAILING}')
        data = dataclasses.replace(self._data(), mask_channels=share)
        if data.places is not None:
            raise RequestError(f'{self.path}: the windows of its test are streamed, and no channels fail there')
        loader = self._test_windows(data)
        return data.predictions(loader.rows, self._outputs(loader.chunks(), len(loader)))

    @overload
    def features(
        self, x: None = None, *, layer: str = LAYER, pooled: bool = False, split: str | None = None
    ) -> Features: ...

    @overload
    def features(self, x: np.ndarray, *, layer: str = LAYER, pooled: bool = False) -> np.ndarray: ...

    def features(
        self, x: np.ndarray | None = None, *, layer: str = LAYER, pooled: bool = False, split: str | None = None
    ) -> Features | np.ndarray:
        """A named feature of windows, in evaluation mode, at the tested weights.

        Args:
            x: windows as `predict` takes them: then the feature alone is returned, f32 [N, ...]. None: the windows of
                the prepared set.
            layer: name of the feature, as 'penultimate' or 'tokens'.
            pooled: whether to take the mean over tokens, of a feature [windows, tokens, d].
            split: which windows of the prepared set: 'train', 'valid' or 'test'; None: all three.
        Raises: RequestError as `predict`; for a feature that the network lacks, that has no tokens, or does not fit in
            memory.
        """
        recipe, signal, *_ = self._shape
        encoder = Encoder(
            self.cell.title, self.spec.family, self.model, self.variables, signal, recipe.batch_size, layer, pooled
        )
        if x is not None:
            return of_windows(encoder, self._checked(x, 'features'))
        if split not in (None, *SPLITS):
            raise unknown('part', str(split), SPLITS)
        data = self._data()
        few = few_windows(data) if self.cell.debug else data
        return of_set(encoder, few, self.cell, (split,) if split else ())

    def _data(self, otherwise: str = '') -> prepared_set.PreparedSet:
        """The prepared set that the result was made from, as its seed learnt it; `otherwise`: of `prepared_folder`."""
        task = protocols.of_seed(self.cell.task, self.result['seed'])
        return prepared_set.open_set(prepared_folder(self.path, self.result, self.cell, otherwise), task)

    def _checked(self, x: np.ndarray, what: str) -> np.ndarray:
        """Windows f32 of the shape of the network's own. Raises: RequestError for others."""
        x, window = np.asarray(x, np.float32), (self.signal.n_chans, self.signal.n_times)
        if x.ndim != 3 or x.shape[1:] != window or not len(x):
            raise RequestError(
                f'{what}: got windows {list(x.shape)}, expected [N, {window[0]}, {window[1]}] (windows, channels, '
                f'samples at {self.signal.sfreq:g} Hz), at least one'
            )
        return x

    def _outputs(self, chunks: Iterator[Chunk], n: int) -> np.ndarray:
        found, scaling = parallel.outputs(self._program, self.variables, chunks, n), self.result['scaling']
        if scaling is None:
            return found
        return (found * np.array(scaling['sd']) + np.array(scaling['mean'])).astype(np.float32)

    @property
    def _hides(self) -> bool:
        return self.cell.task.target.kind == 'hidden'

    @functools.cached_property
    def _shape(self) -> tuple[Recipe, Signal, int, int]:
        """What programs are compiled for."""
        task = self.cell.task
        length = getattr(task.target, 'length', 0)
        recipe = stream.alone(task.recipe) if task.stream else dataclasses.replace(task.recipe, microbatch=0)
        return recipe, programs.asked_signal(self.spec, self.signal), self.result['n_out'], length

    @property
    def _program(self) -> Callable[..., Any]:
        return _compiled(self.spec, *self._shape)

    def _chunks(self, x: np.ndarray) -> Iterator[Chunk]:
        """Windows as a loader would give them."""
        shapes, (d, k, rows) = parallel.chunk_shapes(*self._shape)
        size = d * rows
        for first in range(0, len(x), k * size):
            part = x[first : first + k * size]
            n = n_batches(len(part), size)
            filled = np.zeros((k * size, *x.shape[1:]), np.float32)
            filled[: n * size] = x[:1]
            filled[: len(part)] = part
            yield Chunk(
                filled.reshape(k, size, *x.shape[1:]),
                np.zeros((k, size, *shapes['y'].shape[3:]), shapes['y'].dtype),
                (np.arange(k * size) < len(part)).reshape(k, size),
                np.zeros((k, size), np.int64),
                n,
                {name: np.ones((k, size, *shapes[name].shape[3:]), bool) for name in shapes if name == 'channel_mask'},
            )

    def _test_windows(self, data: prepared_set.PreparedSet | None = None) -> Loader:
        """The test windows of the prepared set that the result was made from (`data`: with other fields)."""
        data = data or self._data()
        masked = 'channel_mask' in self.spec.asks
        loader = Loader(
            few_windows(data) if self.cell.debug else data,
            ('test',),
            self._shape[0].batch_size,
            channel_mask=masked,
        )
        if not np.array_equal(data.ids[loader.rows], result_file.load_predictions(self.path, packed=True)['id']):
            made, now = self.result['versions']['jbench'], __version__
            raise RequestError(
                f'{self.path}: its test windows are not those of this jbench (made with {made}, this is {now}); hand '
                'windows in, or train it again with --if_exists=overwrite'
            )
        return loader


def load_model(path: str | os.PathLike[str], *, model: str | None = None) -> TrainedModel:
    """The trained network of a result file, from the weights beside it.

    Args:
        path: of `seed<k>.json` in a work folder, which also holds the prepared set; elsewhere it answers only windows
            that are handed in.
        model: the file of a network of one's own, as --model has it ('path/to/file.py:function'). It may lie elsewhere
            than before; a result alone never makes a file run.
    Raises: FileNotFoundError; RequestError for a damaged result, one without weights, weights that are missing or
        damaged, or a network that is no longer the one that was trained.
    """
    os.environ.setdefault('NPROC', str(os.cpu_count() or 1))  # as the command does: bits depend on it
    path = Path(path).absolute()
    result = result_file.read(path)
    kept = _kept(path, result)
    cell = from_json(Cell, result['config'], f'{path}: config')
    spec = places.found(_known(path, cell.model, model), None, place.home(path))
    signal = from_json(Signal, result['signal'], f'{path}: signal')
    asked, frames = programs.asked_signal(spec, signal), targets.of(cell.task.target.kind).frames
    recipe = dataclasses.replace(cell.task.recipe, microbatch=0)  # nothing is trained
    network = programs.build(spec, asked, result['n_out'], recipe, frames)
    variables = weights.load(weights.place(path), network, kept)
    return TrainedModel(path, result, cell, spec, signal, tuple(result['classes']), network, variables)


@functools.lru_cache(programs.KEPT)  # the seeds of a cell have one
def _compiled(spec: ModelSpec, recipe: Recipe, signal: Signal, n_out: int, length: int) -> Callable[..., Any]:
    network = programs.build(spec, signal, n_out, recipe, length > 0)
    return parallel.compile_predict(network, recipe, signal, n_out, length)


def _kept(path: Path, result: dict[str, Any]) -> str:
    """The digest of the weights. Raises RequestError where none are kept."""
    model = result['config'].get('model')  # which results of schema 1 do not say
    if model is not None and model['kind'] != 'network':
        raise RequestError(f'{path}: {model["name"]} is an estimator, which keeps no weights; only networks do')
    if result['status'] == 'failed':
        raise RequestError(f'{path}: this seed failed, so it has no weights: {result["warnings"][-1]}')
    if result['weights'] is None and result['config']['task']['split'].get('folds'):
        below = [str(fold) for fold in place.folds(path)]
        raise RequestError(
            f'{path}: made of folds, each by a network of its own; name the result of one: '
            + (', '.join(below) if below else f'of which none is in {path.parent / place.FOLDS}')
        )
    if result['weights'] is None:
        raise RequestError(
            f'{path}: its weights were not kept (--keep_weights=no, or an older jbench); run the same command with '
            '--keep_weights=yes --if_exists=overwrite'
        )
    sha256: str = result['weights']['sha256']
    return sha256


def _known(path: Path, spec: ModelSpec, file: str | None) -> ModelSpec:
    """The network of the table, or of the user's file, if it is the one that was trained."""
    again = 'train it again'
    if spec.family == 'user':
        name = spec.target.rpartition(':')[2]
        if file is None:
            raise RequestError(
                f'{path}: its model {spec.name} is a file, which a result alone does not make run; say which: '
                f'jbench.load_model(..., model={spec.target!r}), or --model={spec.target} of a command'
            )
        found = user_model.find(file)
        if found.name != spec.name:
            raise RequestError(
                f'{path}: trained by {spec.name} (function, digest of the file), and {file} is {found.name}: the file '
                f'changed or {name} is another function; give the file as it was, or {again}'
            )
        return options.with_options(found, dict(spec.options))
    if file is not None:
        raise RequestError(f'model={file!r}: unused, because {path} is of {spec.name}, a model of jbench')
    known = MODELS.get(spec.name)
    if known is None or known.version != spec.version:
        now = 'is not in this jbench' if known is None else f'was mended since (version {known.version})'
        raise RequestError(f'{path}: trained by {spec.name}, version {spec.version}, which {now}; {again}')
    if spec.places:
        known = dataclasses.replace(known, places=spec.places, own_places=spec.own_places)
    return options.with_options(known, dict(spec.options))


def prepared_folder(path: Path, result: dict[str, Any], cell: Cell, otherwise: str = '') -> Path:
    """The prepared set that a result was made from. Raises RequestError where it is not in the work folder, with what
    else may be done (`otherwise`)."""
    workdir = place.home(path)
    folders = sorted((workdir / 'prepared' / cell.dataset.name).glob('*/manifest.json'))
    for folder in (p.parent for p in folders):
        if build_set.is_ready(folder) and prepared_set.digest(folder) == result['prepared_hash']:
            return folder
    data = '' if cell.dataset.simulated else ' --data_dir=DIR'
    raise RequestError(
        f'{path}: no prepared set {result["prepared_hash"]} in {workdir}/prepared/{cell.dataset.name}; make it with '
        f'python -m jbench.run --cell={path} --prepare --workdir={workdir}{data}{otherwise}'
    )
