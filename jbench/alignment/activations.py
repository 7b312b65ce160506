"""Activations of an image model: in batches, each image once, kept on disk by content, never more than a budget.

Nothing runs before the size of what comes out is known and fits. A kept file holds one layer for one batch; its name is
a digest of the model, its preprocess, the layer and the images, so changed data or weights are never served stale, and
a run that ended early goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jbench import files
from jbench.alignment.image_model import ImageModel, check_layers, prepared
from jbench.alignment.stimuli import content_digest
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.alignment.stimuli import StimulusSet

BATCH = 64  # images


class Limits(NamedTuple):
    """What running a model may take, and where activations are kept."""

    memory: int = 4 * 2**30  # bytes of activations held at once
    folder: Path | None = None  # for kept activations; None: none are kept
    disk: int = 20 * 2**30  # bytes of kept activations; the oldest go first
    seed: int = 0  # of stochastic models
    report: Callable[[str, int, int], object] = lambda what, done, total: None  # told what is done; may raise


LIMITS = Limits()


class Work(NamedTuple):
    """The images to run, each once."""

    ids: list[str]  # of the stimulus that shows it
    contents: list[str]  # digest of its pixels
    trials: list[int]  # which draw of a stochastic model; else 0
    rows: np.ndarray  # [stimulus, trial] -> the image


def shapes(model: ImageModel, layers: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The shape of what each layer gives for one image; nothing is computed."""
    import jax
    import jax.numpy as jnp

    size = model.preprocess.size
    asked: list[Any] = [jax.ShapeDtypeStruct((1, size, size, 3), jnp.float32)]
    asked += [jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 1))] if model.stochastic else []
    found = jax.eval_shape(lambda *a: _chosen(model.apply(*a), tuple(layers)), *asked)
    return {layer: tuple(found[layer].shape[1:]) for layer in layers}


def n_bytes(found: Mapping[str, tuple[int, ...]], n_rows: int) -> dict[str, int]:
    """Bytes of the activations of layers with these `shapes`, in single precision, for so many rows."""
    return {layer: 4 * n_rows * math.prod(shape) for layer, shape in found.items()}


def check_memory(identifier: str, sizes: Mapping[str, int], n_rows: int, budget: int) -> int:
    """Bytes of layers that are held together.

    Args:
      identifier: of the model.
      sizes: bytes by layer.
      n_rows: stimuli times trials.
      budget: bytes that are allowed.

    Raises: RequestError where they are more.
    """
    total = sum(sizes.values())
    if total > budget:
        each = ', '.join(f'{layer} {_shown(size)}' for layer, size in sizes.items())
        raise RequestError(
            f'{identifier}: activations for {n_rows} rows take {_shown(total)} ({each}), allowed are {_shown(budget)}; '
            'choose a later layer, reduce layers to principal components (layers.reduced), show fewer stimuli, or '
            'allow more memory'
        )
    return total


def _shown(size: int) -> str:
    return f'{size / 2**30:.3g} GiB' if size >= 2**30 else f'{size / 2**20:.3g} MiB'


def activations(
    model: ImageModel, stimuli: StimulusSet, layer: str, *, n_trials: int = 1, limits: Limits = LIMITS
) -> np.ndarray:
    """What one layer gives for the stimuli.

    Args:
      model: the model.
      stimuli: images.
      layer: its name.
      n_trials: draws for each stimulus, of a stochastic model; others answer once.
      limits: memory, kept files, seed.

    Returns: f32 [stimulus, trial, ...]; one trial of models that are not stochastic.

    Raises: RequestError for an unknown layer, texts, activations over the budget, values that are not finite.
    """
    ((_, found),) = stream(model, stimuli, [layer], n_trials=n_trials, limits=limits)
    return found


def stream(
    model: ImageModel, stimuli: StimulusSet, layers: Sequence[str], *, n_trials: int = 1, limits: Limits = LIMITS
) -> Iterator[tuple[str, np.ndarray]]:
    """Each layer and its activations, one after the other, as `activations` gives them.

    The network runs once for as many layers as fit into the budget together. Every layer is checked before the first
    one is computed. Raises: as `activations`.
    """
    check_layers(model, tuple(layers))
    n_trials = n_trials if model.stochastic else 1
    n_rows = len(stimuli) * n_trials
    sizes = n_bytes(shapes(model, layers), n_rows)
    for layer, size in sizes.items():
        check_memory(model.identifier, {layer: size}, n_rows, limits.memory)
    return _streamed(model, stimuli, groups(sizes, limits.memory), n_trials, limits)


def groups(sizes: dict[str, int], budget: int) -> list[tuple[str, ...]]:
    """Layers in their order, in groups that fit into the budget."""
    out: list[list[str]] = [[]]
    room = budget
    for layer, size in sizes.items():
        if size > room and out[-1]:
            out.append([])
            room = budget
        out[-1].append(layer)
        room -= size
    return [tuple(group) for group in out if group]


def _streamed(
    model: ImageModel, stimuli: StimulusSet, parts: list[tuple[str, ...]], n_trials: int, limits: Limits
) -> Iterator[tuple[str, np.ndarray]]:
    work = _work(model, stimuli, n_trials)
    for layers in parts:
        found: dict[str, np.ndarray] = {}
        for start in range(0, len(work.ids), BATCH):
            batch = slice(start, start + BATCH)
            limits.report(f'{model.identifier} looks at {stimuli.identifier}', start, len(work.ids))
            for layer, values in _batch(model, stimuli, work, batch, layers, limits).items():
                if layer not in found:
                    found[layer] = np.empty((len(work.ids), *values.shape[1:]), np.float32)
                found[layer][batch] = values
        for layer in layers:
            values = found.pop(layer)
            one_each = np.array_equal(work.rows.ravel(), np.arange(len(values)))
            values = values if one_each else values[work.rows.ravel()]
            yield layer, values.reshape(*work.rows.shape, *values.shape[1:])


def _work(model: ImageModel, stimuli: StimulusSet, n_trials: int) -> Work:
    """Equal images are run once; of a stochastic model they are further draws of one."""
    ids: list[str] = []
    contents: list[str] = []
    trials: list[int] = []
    known: dict[tuple[str, int], int] = {}
    times: dict[str, int] = {}
    rows = np.empty((len(stimuli), n_trials), int)
    for row, stimulus in enumerate(stimuli.ids):
        content = content_digest(stimuli.image(stimulus))
        before = times.get(content, 0) if model.stochastic else 0
        times[content] = before + n_trials
        for trial in range(n_trials):
            key = (content, before + trial)
            if key not in known:
                known[key] = len(ids)
                ids.append(stimulus)
                contents.append(content)
                trials.append(before + trial)
            rows[row, trial] = known[key]
    return Work(ids, contents, trials, rows)


def _batch(
    model: ImageModel, stimuli: StimulusSet, work: Work, batch: slice, layers: tuple[str, ...], limits: Limits
) -> dict[str, np.ndarray]:
    """Layers for one batch: those that are kept are read, the others computed and kept."""
    out: dict[str, np.ndarray] = {}
    paths: dict[str, Path] = {}
    if limits.folder is not None:
        paths = {layer: limits.folder / f'{_key(model, work, batch, layer, limits.seed)}.npz' for layer in layers}
        out = {layer: values for layer, path in paths.items() if (values := _kept(path)) is not None}
    missing = tuple(layer for layer in layers if layer not in out)
    if missing:
        out |= _run(model, stimuli, work, batch, missing, limits.seed)
    for layer in missing if paths else ():
        files.write_atomic(paths[layer], files.npz_bytes({'values': out[layer]}))
    if missing and limits.folder is not None:
        trim(limits.folder, limits.disk)
    return out


def _run(
    model: ImageModel, stimuli: StimulusSet, work: Work, batch: slice, layers: tuple[str, ...], seed: int
) -> dict[str, np.ndarray]:
    """Layers for one batch, computed; a short batch is filled with its last image, so that one program serves all."""
    import jax

    images = [prepared(stimuli.image(i), model.preprocess) for i in work.ids[batch]]
    n, most = len(images), min(BATCH, len(work.ids))
    inputs: list[Any] = [np.stack([*images, *[images[-1]] * (most - n)])]
    if model.stochastic:
        draws = [(int(c[:8], 16), t) for c, t in zip(work.contents[batch], work.trials[batch], strict=True)]
        inputs.append(_keys(seed, np.array([*draws, *[draws[-1]] * (most - n)], np.uint32)))
    found = jax.device_get(called(model.apply, layers, *inputs))
    for layer, values in found.items():
        if not np.isfinite(values[:n]).all():
            raise RequestError(
                f'{model.identifier}: layer {layer} gives values that are not finite for some of {stimuli.identifier}; '
                'look at its weights and its preprocess'
            )
    return {layer: np.asarray(values[:n], np.float32) for layer, values in found.items()}


def called(apply: Any, layers: tuple[str, ...], *inputs: Any) -> dict[str, Any]:
    """Some layers of a model, as one compiled program; what they do not need is left out of it.

    Args:
      apply: of an `ImageModel`; the weights of a `Partial` are arguments of the program and not constants in it.
      layers: their names.
      inputs: of `apply`.
    """
    from jax.tree_util import Partial

    found: dict[str, Any] = _program()(apply if isinstance(apply, Partial) else Partial(apply), layers, *inputs)
    return found


@cache
def _program() -> Any:
    import jax

    return jax.jit(lambda apply, layers, *inputs: _chosen(apply(*inputs), layers), static_argnums=1)


def _chosen(found: dict[str, Any], layers: tuple[str, ...]) -> dict[str, Any]:
    return {layer: found[layer] for layer in layers}


def _keys(seed: int, draws: np.ndarray) -> Any:
    """A random key for each pair of image and trial [n, 2], the same in whatever batch it comes."""
    import jax

    def one(pair: Any) -> Any:
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), pair[0]), pair[1])

    return jax.vmap(one)(draws)


def _key(model: ImageModel, work: Work, batch: slice, layer: str, seed: int) -> str:
    """The name under which one layer of a batch is kept."""
    drawn = [seed, work.trials[batch]] if model.stochastic else []
    whole = [model.digest, list(model.preprocess), layer, work.contents[batch], drawn]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()


def _kept(path: Path) -> np.ndarray | None:
    """A kept layer; None where there is none. A damaged file is removed."""
    try:
        values = files.read_npz(path)['values']
        os.utime(path)  # used now: others are older
    except FileNotFoundError:
        return None
    except (RequestError, KeyError):
        path.unlink(missing_ok=True)
        return None
    return values


def trim(folder: Path, limit: int) -> None:
    """Remove the kept files that were not used for longest, until the others take at most `limit` bytes."""
    found = []
    for path in folder.glob('*.npz'):
        try:
            stat = path.stat()
        except FileNotFoundError:  # another process was faster
            continue
        found.append((stat.st_mtime_ns, stat.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        path.unlink(missing_ok=True)
        total -= size
