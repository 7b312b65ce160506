"""A function of windows as the benchmark would score it, whatever computes it.

import jbench

found = jbench.evaluate(lambda x: x[:, :2].mean(-1), 'p3', simulated=True)
print(found)  # the row of the table
found.result['headline']  # as a result file has it
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jbench import targets
from jbench.cli import arguments, tensors
from jbench.cli.console import Output
from jbench.data.load import prepared_set
from jbench.data.load.class_names import listed_classes
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.stimuli import embed
from jbench.metrics import keystrokes
from jbench.plan import cells, select
from jbench.plan.select import Pick
from jbench.progress import Progress
from jbench.report import table
from jbench.results import record, result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import ModelSpec
from jbench.spec.task import Task
from jbench.train import stream
from jbench.trained import TrainedModel

WIDE = 160  # characters of the row
TAKES = ('numpy', 'jax', 'torch')
CLOSE = 1e-3  # a sum of probabilities is 1 within so much
Answer = Callable[[np.ndarray], Any]


@dataclass(frozen=True, repr=False)
class Evaluated:
    """A function's scores on the test part of a task; `str` is its row of the table."""

    result: dict[str, Any]  # as a result file has it, marked custom
    predictions: dict[str, np.ndarray] = field(repr=False)  # of each test window: id, outputs, y, subject

    def __str__(self) -> str:
        out = io.StringIO()
        table.show(table.rows([self.result]), Output(width=WIDE, file=out))
        return out.getvalue().rstrip()

    __repr__ = __str__


def evaluate(
    model: TrainedModel | Callable[..., Any],
    task: str | tuple[Task, Any] | Task,
    *,
    name: str | None = None,
    takes: str | None = None,
    batch_size: int = 64,
    data_dir: str | os.PathLike[str] | None = None,
    workdir: str | os.PathLike[str] | None = None,
    simulated: bool | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Evaluated:
    """Score a function on the test windows of a task, by the rules and formulas of the command. Nothing is learnt, and
    no result file is written: the function is nowhere, so nobody could repeat it.

    Args:
        model: called with windows f32 [B, C, T], scaled and clamped as networks get them, the last batch being smaller.
            It returns finite outputs [B, n_out]: logits of classes and labels (not probabilities), values in the unit
            of the target, embeddings, angles (of each joint any number of steps, up to one a sample); of keystrokes
            logits [B, frames, n_out]. A NumPy or JAX function, a module of torch (asked in evaluation mode, without
            gradients, where its parameters are), or what `jbench.load_model` gives.
        task: as --task, or from `jbench.task`: one task. A dataset that it names is never replaced by a simulation.
        name: of the function, in the result; None: its own.
        takes: what it is given: 'numpy', 'jax' or 'torch' arrays; None: torch for a module of torch, else NumPy.
        batch_size: windows at once, B; a task with streams gives one at a time, in order, to a copy of the function for
            each stream (docs/challenges.md).
        data_dir, workdir, simulated, changes: as for `jbench.load`.
    Raises: RequestError for a request or data that are wrong, and for a function that fails, or whose outputs are no
        finite numbers of the shape that the task asks for.
    """
    if isinstance(model, str | os.PathLike):
        raise RequestError(
            f'jbench.evaluate: {str(model)!r} is a name; jbench.run(task, model) trains what a name says, and '
            'jbench.load_model(RESULT) gives what a result kept, which jbench.evaluate takes'
        )
    if not (callable(model) or isinstance(model, TrainedModel)):
        raise RequestError(f'jbench.evaluate: got a {type(model).__name__}, expected a function of windows [B, C, T]')
    if batch_size < 1:
        raise RequestError(f'jbench.evaluate: batch_size={batch_size}: expected at least 1')
    os.environ.setdefault('NPROC', str(os.cpu_count() or 1))  # as the command does: bits depend on it
    called = name or _name(model)
    answer = _answer(model, takes, called)
    flags = {'data_dir': data_dir, 'workdir': workdir}
    flags['simulated'] = None if simulated is None else ('no', 'yes')[simulated]
    given = [f'--{flag}={value}' for flag, value in flags.items() if value is not None]
    args = arguments.parse([f'--task={task if isinstance(task, str) else "p3"}', *given])
    spec = ModelSpec(name=called, title=called, family='user', target=f'jbench.evaluate:{called}', kind='estimator')
    with Progress() as progress:
        cell, data, digest = _data(task, spec, changes or {}, args, progress)
        began = time.monotonic()
        names = listed_classes(cell.dataset, data)
        if data.places is None:
            outputs = _outputs(answer, data, names, called, batch_size, progress)
        else:
            outputs = _streamed(model, takes, data, names, called, progress)
        _logits(outputs, data, called)
    seconds = time.monotonic() - began
    predictions = data.predictions(data.rows('test'), outputs)
    timings = {'compile': 0.0, 'fit': 0.0, 'test': seconds, 'total': seconds}
    described = record.describe(cell, data, 0, digest, {'predictions': predictions, 'timings': timings})
    result, _ = result_file.whole(_custom(described, called), predictions, None)
    return Evaluated(result, predictions | {'y': np.asarray(predictions['y'])})


def _data(
    task: Any, spec: ModelSpec, changes: Mapping[str, Any], args: Any, progress: Progress
) -> tuple[Cell, PreparedSet, str]:
    """The cell of a function on a task, its set, prepared if it is not, and the set's digest. Raises: RequestError."""
    asked, named = _asked(task)
    if args.simulated == 'yes' and named is not None and not named.simulated:
        raise RequestError(f'simulated=True: {named.name} is named, and a named dataset is never replaced')
    choice = cells.choose_dataset(asked, named, args.data_dir, args.workdir, args.simulated)
    (cell,) = cells.make_cells([choice], [Pick(spec, True)], tuple(sorted(changes.items())))
    if getattr(cell.task.split, 'folds', ''):
        raise RequestError(
            'jbench.evaluate: split.folds asks for a model of each fold, and a function is one; name a fold, as '
            "changes={'split.fold': '1/5'}"
        )
    if notice := cells.simulated([choice]):
        progress.say(notice)
    where = (args.data_dir, args.workdir)
    told = (progress.update, progress.say)
    folder = prepared_set.ready(cell.task, cell.dataset, *where, *told, own_band=cell.own_band)
    embed.provide(cell.task, cell.dataset, folder, *where, progress.update)
    return cell, prepared_set.open_set(folder, cell.task), prepared_set.digest(folder)


def _asked(task: Any) -> tuple[Task, Any]:
    """One task and the dataset that it names, or None. Raises: RequestError."""
    if isinstance(task, str):
        found = select.select_tasks(task)
        if len(found) > 1:
            raise RequestError(f'jbench.evaluate: {task!r} names {len(found)} tasks; evaluate on them one by one')
        return found[0]
    if isinstance(task, Task):
        return task, None
    if isinstance(task, tuple) and len(task) == 2 and isinstance(task[0], Task):
        return task[0], task[1]
    raise RequestError(f'jbench.evaluate: task={task!r}: expected a name, as "p3", or what jbench.task("p3") gives')


def _custom(described: dict[str, Any], called: str) -> dict[str, Any]:
    """A result that says what it is of."""
    mark = f'model=a function, {called}'
    protocol = described['protocol']
    protocol = {**protocol, 'suite': None, 'custom': [*protocol['custom'], mark]}
    return {**described, 'protocol': protocol, 'warnings': [f'custom: {mark}', *described['warnings']]}


def _name(model: Any) -> str:
    """What a function is called."""
    if isinstance(model, TrainedModel):
        return model.spec.full_name
    own = getattr(model, '__name__', None) or type(model).__name__
    return 'function' if own == '<lambda>' else str(own)


# ---- asking the function ----


def _answer(model: Any, takes: str | None, called: str) -> Answer:
    """A function of NumPy windows that gives NumPy outputs; its own errors become one of ours. Raises: RequestError."""
    if takes not in (None, *TAKES):
        raise unknown('kind of arrays of jbench.evaluate (takes)', str(takes), TAKES)
    if isinstance(model, TrainedModel):
        ask: Answer = model.predict
    elif takes == 'torch' or (takes is None and tensors.is_torch(model)):
        ask = tensors.of_torch(model)
    elif takes == 'jax':
        import jax.numpy as jnp

        def ask(x: np.ndarray) -> Any:
            return model(jnp.asarray(x))
    else:
        ask = model

    def explained(x: np.ndarray) -> Any:
        try:
            return _array(ask(x))
        except (RequestError, MemoryError):
            raise
        except Exception as error:  # of somebody's own function
            first = str(error).strip().partition('\n')[0]
            hint = '' if takes else "; takes='jax' or 'torch' gives it arrays of that library"
            raise RequestError(
                f'jbench.evaluate: {called} failed on windows {list(x.shape)}: {type(error).__name__}: {first}{hint}'
            ) from error

    return explained


def _array(found: Any) -> np.ndarray:
    """Outputs of any library as NumPy's."""
    if hasattr(found, 'detach'):
        found = found.detach().cpu()
    return np.asarray(found)


def _outputs(
    answer: Answer, data: PreparedSet, names: list[str], called: str, batch_size: int, progress: Progress
) -> np.ndarray:
    """Outputs of the test windows, f32 [N, n_out], or paths [N, frames]. Raises: RequestError."""
    rows, shards, parts = data.rows('test'), data.shards(data.clamp), []
    window = (data.signal.n_chans, data.signal.n_times)
    for first in range(0, len(rows), batch_size):
        progress.update(called, first, len(rows))
        mine = rows[first : first + batch_size]
        x = np.empty((len(mine), *window), np.float32)
        shards.read(mine, x)
        parts.append(_checked(answer(x), x, data, names, called))
    progress.update(called, len(rows), len(rows))
    if len({part.shape[1:] for part in parts}) > 1:
        raise RequestError(f'jbench.evaluate: {called} gives outputs of unlike shapes for batches of unlike sizes')
    return np.concatenate(parts)


def _streamed(
    model: Any, takes: str | None, data: PreparedSet, names: list[str], called: str, progress: Progress
) -> np.ndarray:
    """Outputs of the test windows, each alone, of a copy of the function for each stream. Raises: RequestError."""
    rows, shards = data.rows('test'), data.shards(data.clamp)
    assert data.places is not None
    stateless = isinstance(model, TrainedModel)

    def window(k: int) -> np.ndarray:
        progress.update(called, k, len(rows))
        x = np.empty((1, data.signal.n_chans, data.signal.n_times), np.float32)
        shards.read(rows[k : k + 1], x)
        return x

    def answer(mine: Any, x: np.ndarray) -> np.ndarray:
        return _checked(_answer(model if stateless else mine, takes, called)(x), x, data, names, called)

    found = stream.answers(None if stateless else model, window, data.places.of(rows), answer)
    progress.update(called, len(rows), len(rows))
    return found


def _logits(outputs: np.ndarray, data: PreparedSet, called: str) -> None:
    """Raises: RequestError for probabilities."""
    if targets.of(data.kind).single and _are_probabilities(outputs):
        raise RequestError(
            f'jbench.evaluate: the outputs of {called} are probabilities (in 0..1, and each row sums to 1), and scores '
            'take them for logits: return what softmax is given, or their logarithm'
        )


def _checked(found: np.ndarray, x: np.ndarray, data: PreparedSet, names: list[str], called: str) -> np.ndarray:
    """Outputs of one batch, f32. Raises: RequestError for another shape or type, or values that are not finite."""
    frames, n_out = targets.of(data.kind).frames, data.n_out
    path = frames and found.ndim == 2 and len(found) == len(x) and (found % 1 == 0).all()  # as `load_model` gives it
    wanted = f'[{len(x)}, frames, {n_out}]' if frames else f'[{len(x)}, {n_out}]'
    fits = found.ndim == 2 + frames and (found.shape[0], found.shape[-1]) == (len(x), n_out) and found.size > 0
    if targets.of(data.kind).measured and found.ndim == 2 and len(found) == len(x):  # any number of steps a joint
        joints = len({name.rpartition(' ')[0] for name in data.classes})
        fits = found.shape[1] % joints == 0 and 0 < found.shape[1] <= data.length
    if found.dtype.kind not in 'biuf' or not (fits or path):
        known = f' ({", ".join(names[:6])}{", ..." * (len(names) > 6)})' if names else ''
        hint = ': of classes one logit each, not their numbers' if found.ndim == 1 and n_out > 1 else ''
        raise RequestError(
            f'jbench.evaluate: {called} gave {found.dtype} {list(found.shape)} for windows {list(x.shape)}, expected '
            f'finite numbers {wanted}{known}{hint}'
        )
    if bad := int((~np.isfinite(found.reshape(len(found), -1))).any(1).sum()):
        raise RequestError(f'jbench.evaluate: {called} gave outputs that are not finite for {bad} of {len(x)} windows')
    found = np.asarray(found, np.float32)
    return keystrokes.path(found) if frames and not path else found


def _are_probabilities(outputs: np.ndarray) -> bool:
    """Whether every row lies in 0..1 and sums to 1."""
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        return False
    return bool(outputs.min() >= 0 and np.abs(outputs.sum(1) - 1).max() <= CLOSE)
