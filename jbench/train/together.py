"""Several tasks learnt by one encoder, with a head for each (`recipe.together`).

Each step of the optimiser takes a batch of one task. An epoch has as many steps as all tasks have batches; each task
has a share of them in proportion to n ** (1 / T) of its n training windows (temperature-scaled mixing: Raffel et al.
2020, section 3.5.2; T is `recipe.task_temperature`), at least one, in an order drawn by (data seed, epoch). The batches
of a task follow one another as they do when it is learnt alone.

Shared are all parameters but those of the heads, their moments, and the number of the step. A task has of its own: its
head with moments, and what else is new on every dataset (mixtures of channels, spatial filters); batch statistics,
weights of classes, recipe (loss, rate, batch size), validation and best epoch.
Training ends where no task has had a better monitor for its patience.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from jbench import processes
from jbench.data.load.loader import Loader, n_batches
from jbench.models.model import Model
from jbench.progress import Interrupted
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.recipe import Recipe
from jbench.train import checkpoint, fit, kept_memory
from jbench.train.parallel import Programs, copy, on_host, predict, release
from jbench.train.step import State
from jbench.train.turns import batches, shares, turns

COUNTERS = ('step', 'count')  # of optimisers


class Part(NamedTuple):
    """One of the tasks."""

    title: str
    network: Model
    recipe: Recipe  # resolved
    programs: Programs  # of which `train` is one step: (state, batch [devices, B / devices, ...])
    train: Loader
    valid: Loader
    metric: str  # monitor
    progress: Callable[[dict[str, Any]], None]


def require_shared(parts: Sequence[Part], states: Sequence[State]) -> None:
    """Raises: RequestError where what the tasks are to share has another shape in one of them."""
    first, others = _shapes(parts[0], states[0]), zip(parts[1:], states[1:], strict=True)
    for part, shapes in ((part, _shapes(part, state)) for part, state in others):
        for name in sorted({*first, *shapes}):
            if first.get(name) != shapes.get(name):
                raise RequestError(
                    f'recipe.together: {name} of the encoder is {first.get(name, "absent")} for {parts[0].title} and '
                    f'{shapes.get(name, "absent")} for {part.title}; expected the same: tasks with the same channels '
                    '(--set signal.picks=..., signal.sfreq=...; of some networks also window.duration=...), '
                    'or an encoder that takes any (--model=foundation)'
                )


def adopted(state: State, latest: State, own: set[str]) -> State:
    """The state of a task with all that it shares as another task's state has it; `own`: dotted paths of its head."""

    def pick(path: Any, mine: Any, theirs: Any) -> Any:
        name = '.'.join(str(key.key) for key in path if isinstance(key, jax.tree_util.DictKey))
        if name:  # a parameter, or a moment of it
            return mine if name in own else theirs
        return theirs if getattr(path[-1], 'name', '') in COUNTERS else mine

    params, opt = (jax.tree_util.tree_map_with_path(pick, state[k], latest[k]) for k in ('params', 'opt'))
    return state | {'params': params, 'opt': opt, 'step': latest['step']}


def head_of(network: Model) -> set[str]:
    """Dotted paths of the parameters of a network's head, and of what else is new on every dataset (pairs of low rank
    are not: tasks share them). Raises: RequestError where the head is not known."""
    found = {'.'.join(tensor.path[1:]) for tensor in network.new() if tensor.path[1:2] != ('lora',)}
    if not network.own_head():
        raise RequestError(
            'recipe.together: of this network it is not known what its head is; docs/pretraining.md names those of '
            'which it is'
        )
    return found


def fit_together(
    parts: Sequence[Part], states: Sequence[State], watch: fit.Watch, temperature: float
) -> list[fit.Fitted]:
    """Train until no task improves, or the schedule ends.

    Args:
        parts: the tasks, in an order that does not depend on how they were asked for.
        states: of each before the first step, whose optimisers hold the length of the schedule (`length`); what they
            share is taken from the first.
        watch: signals and checkpoints; progress is that of the parts.
        temperature: of `shares`.

    Returns: of each task the network at its own best epoch; `seconds` are those of its own steps and validation.

    Raises: Interrupted after a save; NonFinite; RequestError for encoders that differ.
    """
    run = _Run(parts, states, watch, temperature)
    while not run.ended():
        run.epoch()
    return run.fitted()


def length(parts: Sequence[tuple[Recipe, int]]) -> tuple[int, int]:
    """(epochs, steps of each) of the schedule of tasks with so many batches: the longest that a recipe asks for."""
    steps = sum(n for _, n in parts)
    return max(fit.length(recipe, steps).most for recipe, _ in parts), steps


class _Run:
    """A training of several tasks, as it goes on."""

    def __init__(self, parts: Sequence[Part], states: Sequence[State], watch: fit.Watch, temperature: float) -> None:
        require_shared(parts, states)
        self.parts, self.watch = parts, watch
        n = [n_batches(len(p.train), p.recipe.batch_size) for p in parts]
        most, self.n_steps = length([(p.recipe, k) for p, k in zip(parts, n, strict=True)])
        self.counts = shares([len(p.train) for p in parts], self.n_steps, temperature)
        self.limits = [fit.length(p.recipe, self.n_steps)._replace(most=most) for p in parts]
        self.heads = [head_of(p.network) for p in parts]
        for p in parts:
            p.train.carry(p.programs.precompute)
        like = {'now': _numbered(states), 'best': _numbered([_variables(s) for s in states])}
        arrays, facts = fit.restored(watch, like, lambda saved: saved['now']['0']) or (like, {})
        self.courses = [fit.Course(**c) for c in facts.get('courses', [{}] * len(parts))]
        self.step = int(facts.get('step', 0))  # of the epoch
        if facts:
            for course in self.courses:
                course.resumed_at.append(course.epoch)
        self.states, self.best = ([copy(arrays[k][str(i)]) for i in range(len(parts))] for k in ('now', 'best'))
        for state in states:
            release(state)
        self.latest = 0  # the task of the last step
        self.save_at = fit.next_save(time.monotonic())
        self.streams = [batches(p.train, self._done(i)) for i, p in enumerate(parts)]

    def ended(self) -> bool:
        """Whether every task is over."""
        return all(course.ended(limit) for course, limit in zip(self.courses, self.limits, strict=True))

    def epoch(self) -> None:
        """The steps of an epoch that are left, then the validation of all tasks."""
        order = turns(self.counts, self.courses[0].epoch)
        for i in order[self.step :].tolist():
            self._guard()
            self._learn(i)
            self.step += 1
            self._save_if(False)
        self._guard()
        variables = [_variables(self._state(i)) for i in range(len(self.parts))]
        values = [self._monitor(i, v) for i, v in enumerate(variables)]
        for i, value in enumerate(values):  # at once: a save holds all tasks before an epoch's end, or after it
            self._close_epoch(i, value, variables[i])
        self.step = 0

    def fitted(self) -> list[fit.Fitted]:
        """What came of each task. Raises: NonFinite."""
        for part, course in zip(self.parts, self.courses, strict=True):
            if course.best_epoch < 0:
                raise fit.NonFinite(f'{part.title}: {fit.never_defined(part.metric)}')
        return [
            fit.Fitted(best, c.history, c.best_epoch, c.seconds, c.resumed_at)
            for best, c in zip(self.best, self.courses, strict=True)
        ]

    def _done(self, i: int) -> int:
        """Batches of a task that were learnt."""
        epoch = self.courses[0].epoch
        return epoch * self.counts[i] + int((turns(self.counts, epoch)[: self.step] == i).sum())

    def _state(self, i: int) -> State:
        """The state of a task, what it shares as the last step left it."""
        return adopted(self.states[i], self.states[self.latest], self.heads[i])

    def _learn(self, i: int) -> None:
        began, course = time.monotonic(), self.courses[i]
        kept_memory.make_room(self.parts[i].programs.train)
        self.states[i], sums = self.parts[i].programs.train(self._state(i), next(self.streams[i]))
        self.latest = i
        course.loss += float(sums['loss'])
        course.grad_norm += float(sums['grad_norm'])
        if not math.isfinite(course.loss):
            raise fit.NonFinite(
                f'{self.parts[i].title}: the loss is not finite in epoch {course.epoch}; {fit.LOWER_RATE}'
            )
        course.seconds += time.monotonic() - began

    def _monitor(self, i: int, variables: dict[str, Any]) -> float | None:
        began, part = time.monotonic(), self.parts[i]
        outputs = predict(part.programs, variables, part.valid, self._guard)
        self.courses[i].seconds += time.monotonic() - began
        return fit.monitor(part.valid, outputs, part.metric)

    def _close_epoch(self, i: int, value: float | None, variables: dict[str, Any]) -> None:
        part, course = self.parts[i], self.courses[i]
        sign = 1.0 if METRICS[part.metric].better == 'higher' else -1.0
        if course.close_epoch(value, sign, self.counts[i], part.recipe.min_delta):
            self.best[i] = copy(variables)
        part.progress({**course.history[-1], 'best': sign * course.best})

    def _guard(self) -> None:
        if self.watch.stop():
            self._save_if(True)
            raise Interrupted

    def _save_if(self, due: bool) -> None:
        if self.watch.folder is None or not (due or time.monotonic() > self.save_at):
            return
        began, states = time.monotonic(), [self._state(i) for i in range(len(self.parts))]
        if processes.first():
            tree = {'now': _numbered([on_host(s) for s in states]), 'best': _numbered(self.best)}
            facts = {'courses': [c.__dict__ for c in self.courses], 'step': self.step, 'machine': self.watch.machine}
            checkpoint.save(self.watch.folder, int(states[0]['step']), tree, facts)
        self.save_at = fit.next_save(began)


def _variables(state: State) -> dict[str, Any]:
    return {name: state[name] for name in ('params', 'batch_stats')}


def _numbered(values: Sequence[Any]) -> dict[str, Any]:
    return {str(i): value for i, value in enumerate(values)}


def _shapes(part: Part, state: State) -> dict[str, tuple[int, ...]]:
    """Shapes of the parameters of the encoder, by dotted path."""
    head = head_of(part.network)
    leaves = jax.tree_util.tree_leaves_with_path(state['params'])
    named = ((jax.tree_util.keystr(path, simple=True, separator='.'), a.shape) for path, a in leaves)
    return {name: tuple(shape) for name, shape in named if name not in head}
