"""The loop: epochs of compiled chunks, selection of the best epoch, early stopping, interruption and resumption."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jbench import processes
from jbench.data.load.loader import Loader, n_batches
from jbench.data.load.sampling import class_weights
from jbench.progress import Interrupted
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.task import Recipe, Task
from jbench.targets import score
from jbench.train import checkpoint, kept_memory
from jbench.train.parallel import Programs, copy, on_host, predict, release, shard
from jbench.train.step import State

SAVE_EVERY = 60.0  # s between checkpoints, at least; a save costs more than an epoch on a small set
SAVE_SHARE = 0.05  # of the time of training, about: of 157 million weights a save takes many seconds ...
SAVE_WITHIN = 600.0  # s after which the next one is due, however long it takes
LOWER_RATE = 'a lower recipe.lr may mend it'


class NonFinite(Exception):
    """The loss is no longer a number, or the monitor was never defined; the seed has failed."""


class Fitted(NamedTuple):
    """A trained model and how it came about."""

    variables: dict[str, Any]
    history: list[dict[str, float]]  # an entry per epoch: epoch, train_loss, monitor
    best_epoch: int
    seconds: float
    resumed_at: list[int]  # epochs


class Length(NamedTuple):
    """How long a fit goes on, in epochs."""

    most: int  # the whole schedule
    least: int  # early stopping ends nothing before
    patience: int  # without a better monitor


@dataclass
class Course:
    """Where a fit stands, apart from its arrays: plain values that a checkpoint carries as JSON."""

    epoch: int = 0
    chunk: int = 0  # chunks of this epoch that are done
    loss: float = 0.0  # sum over the batches of this epoch
    grad_norm: float = 0.0  # the same of the gradient's norm
    best: float = -math.inf
    best_epoch: int = -1
    wait: int = 0  # epochs without a better monitor
    undefined: bool = False  # the monitor was, which ends the run
    seconds: float = 0.0
    resumed_at: list[int] = field(default_factory=list)  # the epoch at which each resume began
    history: list[dict[str, float]] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)

    def close_epoch(self, value: float | None, sign: float, n_batches: int, min_delta: float = 0.0) -> bool:
        """Record an epoch whose monitor is `value`; True if it is the best so far by more than `min_delta` (the first
        of equals is kept)."""
        better = value is not None and sign * value > self.best + min_delta
        if value is not None and better:
            self.best, self.best_epoch, self.wait = sign * value, self.epoch, 0
        else:
            self.wait += 1
        self.undefined = value is None
        self.record(n_batches, {'monitor': math.nan if value is None else value})
        return better

    def record(self, n_batches: int, seen: dict[str, float]) -> None:
        """Add an epoch to the history, with what was `seen` of it beside its training, and begin the next one."""
        means = {'train_loss': self.loss / n_batches, 'grad_norm': self.grad_norm / n_batches}  # before clipping
        self.history.append({'epoch': self.epoch, **means, **seen})
        self.epoch, self.chunk, self.loss, self.grad_norm = self.epoch + 1, 0, 0.0, 0.0

    def ended(self, length: Length) -> bool:
        """Whether training is over."""
        patient = self.wait < length.patience or self.epoch < length.least
        return self.undefined or self.epoch >= length.most or not patient


@dataclass(frozen=True)
class Watch:
    """How the loop talks to the outside: progress, a question whether to stop, and where to save."""

    progress: Callable[[dict[str, Any]], None] = lambda facts: None
    say: Callable[[str], None] = lambda text: None
    stop: Callable[[], bool] = lambda: False
    folder: Path | None = None  # of checkpoints; None: nothing is saved
    machine: dict[str, Any] = field(default_factory=dict)  # bits are equal only where these are
    save_end: bool = False  # also once it is over, so that what follows can go on without it


def length(recipe: Recipe, n_batches: int) -> Length:
    """The epochs that a recipe asks for, where an epoch has so many batches; what it says in steps is rounded up."""
    least, patience = (math.ceil(n / max(n_batches, 1)) for n in (recipe.least_steps, recipe.patience_steps))
    return Length(max(recipe.max_epochs, least), least, max(recipe.patience, patience))


def monitor_of(task: Task) -> str:
    """The score on the validation part that selects the epoch: the headline, or what the reference looks at."""
    return (METRICS[task.metric].monitor if task.recipe.published else '') or task.metric


def loss_weights(recipe: Recipe, train: Loader) -> np.ndarray:
    """Weights of the classes in the loss, f32 [n_out]."""
    n_out = train.prepared.n_out
    if not recipe.class_weights:
        return np.ones(n_out, np.float32)
    return class_weights(train.y, train.prepared.kind, n_out=n_out)


def fit(
    programs: Programs, start: State, train: Loader, valid: Loader | None, recipe: Recipe, metric: str, watch: Watch
) -> Fitted:
    """Train until the monitor has not improved for the patience of the recipe, or its schedule ends (`length`).

    Args:
        programs: compiled for these shapes.
        start: the state before the first step (its optimiser holds the length of the schedule); that step takes its
            arrays over.
        train, valid: loaders; without `valid` nothing is selected, and the state after the last epoch is kept.
        recipe: epochs and patience.
        metric: monitor on the validation part; the first of equal bests is kept.
        watch: where to report and save.

    Raises: Interrupted after a save; NonFinite if the loss is no number, or no epoch has a monitor.
    """
    began = time.monotonic()
    train.carry(programs.precompute)
    course, state, best = _begin(start, watch)
    batches = n_batches(len(train), recipe.batch_size)
    limits = length(recipe, batches)
    before, save_at = course.seconds, next_save(time.monotonic())
    sign = 1.0 if METRICS[metric].better == 'higher' else -1.0

    def save_if(due: bool) -> None:
        nonlocal save_at
        if watch.folder is not None and (due or time.monotonic() > save_at):
            now = time.monotonic()
            course.seconds = before + now - began
            if processes.first():
                tree = {'now': on_host(state), 'best': best}
                checkpoint.save(watch.folder, int(state['step']), tree, course.__dict__)
            save_at = next_save(now)

    def guard() -> None:
        if watch.stop():
            save_if(True)
            raise Interrupted

    while not course.ended(limits):
        for chunk in train.chunks(course.epoch, course.chunk):
            guard()
            kept_memory.make_room(programs.train)
            state, sums = programs.train(state, shard(chunk), np.int32(chunk.n))
            course.loss += float(sums['loss'])
            course.grad_norm += float(sums['grad_norm'])
            if not math.isfinite(course.loss):
                raise NonFinite(
                    f'the loss is not finite in epoch {course.epoch} (step {int(state["step"])}); {LOWER_RATE}'
                )
            course.chunk += 1
            save_if(False)
        guard()
        variables = {'params': state['params'], 'batch_stats': state['batch_stats']}
        if valid is None:
            course.record(batches, {})
            watch.progress(course.history[-1])
            continue
        outputs = predict(programs, variables, valid, guard)
        value = monitor(valid, outputs, metric)
        if course.close_epoch(value, sign, batches, recipe.min_delta):
            best = copy(variables)
        watch.progress({**course.history[-1], 'best': sign * course.best})
    if watch.save_end:
        save_if(True)
    if valid is None:
        best, course.best_epoch = copy({name: state[name] for name in best}), course.epoch - 1
    if course.best_epoch < 0:
        raise NonFinite(never_defined(metric))
    return Fitted(best, course.history, course.best_epoch, before + time.monotonic() - began, course.resumed_at)


def never_defined(metric: str) -> str:
    """What is said where no epoch had a score on the validation part."""
    words = f'answers are no numbers or all alike ({LOWER_RATE}), or the targets are'
    return f'{metric} on the validation part was never defined: {words}'


def next_save(began: float) -> float:
    """When the next save is due, now that one ends, or a training starts, that `began` then (s, monotonic clock)."""
    now = time.monotonic()
    return now + min(max(SAVE_EVERY, (now - began) / SAVE_SHARE), SAVE_WITHIN)


def monitor(valid: Loader, outputs: np.ndarray, metric: str) -> float | None:
    """The score that selects the epoch; None where outputs are no numbers, or it is not defined."""
    if not np.isfinite(outputs).all():
        return None
    data = valid.prepared
    return score.headline(score.evaluate(data.kind, outputs, valid.y, data.about(valid.rows)), metric)


def _begin(start: State, watch: Watch) -> tuple[Course, State, dict[str, Any]]:
    """The first state, or that of the last checkpoint of the same machine kind."""
    best = {'params': start['params'], 'batch_stats': start['batch_stats']}
    found = restored(watch, {'now': start, 'best': best}, lambda arrays: arrays['now'])
    if found is not None:
        course = Course(**found[1])
        course.resumed_at.append(course.epoch)
        release(start)
        return course, found[0]['now'], found[0]['best']
    return Course(machine=watch.machine), start, copy(best)


def restored(watch: Watch, like: Any, state_of: Callable[[Any], State]) -> tuple[Any, dict[str, Any]] | None:
    """The last checkpoint of the same machine kind, as (arrays like `like`, facts), `state_of` which is a state.

    Raises: RequestError where not every process has it.
    """
    if watch.folder is None:
        return None
    found = checkpoint.restore(watch.folder, like, partial(_same_machine, watch), watch.say)
    step = -1 if found is None else int(state_of(found[0])['step'])
    if processes.anywhere(step != int(processes.agreed(np.array(step)))):
        raise RequestError(f'{watch.folder}: not every process can go on from there; give all the same NPROC')
    return found


def _same_machine(watch: Watch, facts: dict[str, Any]) -> bool:
    """Whether a checkpoint was made where the same bits come out; says so where it was not."""
    theirs = {k: v for k, v in facts.get('machine', {}).items() if watch.machine.get(k) != v}
    if theirs:
        watch.say(f'a checkpoint made with {theirs} is not used here, bits would differ: the seed starts again')
    return not theirs


def warm_batch_stats(programs: Programs, start: State, train: Loader) -> dict[str, Any]:
    """An untrained model whose batch statistics have seen one batch (NeuralBench's `chance`)."""
    train.carry(programs.precompute)
    chunk = next(train.chunks(0))
    state, _ = programs.train(copy(start), shard(chunk), np.int32(1))
    return {'params': start['params'], 'batch_stats': state['batch_stats']}
