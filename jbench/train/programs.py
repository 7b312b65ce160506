"""Networks of the table as compiled programs, those foreseen in the background while data are prepared."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import threading
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from concurrent.futures import Future
from typing import Any

import jax

from jbench.data.windows import n_samples
from jbench.models import factory, pretrained, user_model, validate
from jbench.models.model import Model
from jbench.spec.cell import Cell
from jbench.spec.model import SCRATCH, ModelSpec, Signal
from jbench.spec.recipe import DEFAULT, PROBES
from jbench.spec.task import Classes, Recipe
from jbench.train import adaptation, hiding, optim, parallel, precision

KEPT = 20  # programs: each takes up to 2,000 memory maps, of which Linux gives a process 65,530
AHEAD = 6  # of them that no cell has asked for yet
# fields of a recipe that are not in the program but in the state that it carries, or outside of it
FREE = (
    *('lr', 'warmup', 'max_epochs', 'least_steps', 'patience', 'patience_steps', 'class_weights', 'sampler'),
    *('head_epochs', 'final', 'min_delta'),
)
LOOK = 0.2  # s between looks at signals while a program compiles


class Compiler:
    """Compiled programs by what they depend on; those foreseen compile in one background thread.

    At most KEPT are held: before another is compiled, those that were asked for are forgotten.
    """

    def __init__(self, seal: Callable[[], None] = lambda: None) -> None:
        self._seal = seal  # called after each compilation: see compilation_cache
        self._made: dict[Any, parallel.Programs] = {}
        self._used: set[Any] = set()  # keys of those that a cell asked for
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def get(
        self,
        model: ModelSpec,
        signal: Signal,
        n_out: int,
        recipe: Recipe,
        length: int = 0,
        wait: Callable[[], None] = lambda: None,
    ) -> parallel.Programs:
        """The programs, compiled now if they were not foreseen; `length` is that of a sequence of keys.

        A thread of its own compiles, so that signals are met meanwhile: `wait` is called several times a second. What
        it raises ends the wait, and the thread is left to itself.
        """
        made: Future[parallel.Programs] = Future()

        def work() -> None:
            try:
                made.set_result(self._make(model, signal, n_out, recipe, length))
            except BaseException as error:
                made.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        while not futures.wait([made], LOOK).done:
            wait()
        return made.result()

    def _make(
        self, model: ModelSpec, signal: Signal, n_out: int, recipe: Recipe, length: int = 0, *, foreseen: bool = False
    ) -> parallel.Programs:
        signal = asked_signal(model, signal)
        free = {f: getattr(DEFAULT, f) for f in FREE}
        which = (model.target, model.version, model.weights, model.options, model.places_digest)
        published = model.published if recipe.published else ()
        key = (which, published, signal, n_out, length, dataclasses.replace(recipe, **free))
        with self._lock:
            if len(self._made) >= KEPT and not foreseen:  # between cells, when nothing runs
                self._forget(self._used - {key})
            if key not in self._made:
                network = build(model, signal, n_out, recipe, recipe.frames)
                recipe = adaptation.resolved(recipe, network)
                tx = optim.make(recipe, 1)
                self._made[key] = parallel.compile_programs(network, tx, recipe, signal, n_out, length)
                self._seal()
            if not foreseen:
                self._used.add(key)
            return self._made[key]

    def _has_room(self) -> bool:
        return len(self._made) < KEPT and len(self._made) - len(self._used) < AHEAD

    def _forget(self, keys: set[Any]) -> None:
        for key in keys:
            del self._made[key]
        self._used -= keys
        jax.clear_caches()  # which hold the small programs around them
        gc.collect()

    def foresee(self, cells: list[Cell]) -> None:
        """Start compiling what the specs alone let one expect, while the data are prepared."""
        wanted = [
            (c.model, _expected_signal(c), len(c.dataset.event_id), c.task.recipe)
            for c in cells
            if c.model.kind == 'network' and _foreseeable(c) and c.task.recipe.adaptation not in PROBES
        ]
        for c in cells:
            if c.model.family == 'user':  # refused before anything is prepared
                factory(c.model)
        for model, signal, n_out, recipe in wanted:
            if model.family == 'user' or model.options:  # tried, too
                build(model, signal, n_out, Recipe(batch_size=recipe.batch_size, microbatch=recipe.microbatch))

        def work() -> None:
            for args in wanted:
                while not self._closed and not self._has_room():
                    time.sleep(0.1)
                if self._closed:
                    return
                with contextlib.suppress(Exception):  # the cell itself will raise it, in its place
                    self._make(*args, foreseen=True)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the program that compiles now: a process that ends under it would crash."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()


def require_heads(cells: Iterable[Cell]) -> None:
    """Refuse networks of one's own that are to have a head, and do not say what it is.

    Those are left to the preparation of which the specs alone do not tell how they are built. Raises: RequestError.
    """
    for c in cells:
        recipe, given = c.task.recipe, c.model.weights not in ('', SCRATCH)
        asked = given or recipe.adaptation != 'full' or not recipe.own_head or recipe.together == 'yes'
        if c.model.family == 'user' and asked and (known := expected(c)):
            made = factory(c.model)(*known, axis_name=parallel.AXIS, **dict(c.model.options))
            if isinstance(made, Model):
                pretrained.own_head(made, f'model {c.model.name}')


def expected(cell: Cell) -> tuple[Signal, int] | None:
    """Signal and number of outputs of a network as far as the specs alone tell; None: the data will."""
    known = cell.model.kind == 'network' and _foreseeable(cell)
    return (_expected_signal(cell), len(cell.dataset.event_id)) if known else None


def asked_signal(model: ModelSpec, signal: Signal) -> Signal:
    """The signal as a network is built for it: of names, positions and mask of the channels what it asks for, so that
    nothing else changes its program. MNE is imported only for positions."""
    names, known, asks = signal.ch_names, signal.positions, model.asks
    if 'positions' in asks and not known:
        from jbench.data.electrodes import positions

        known = positions(names)
    return dataclasses.replace(
        signal,
        ch_names=names if 'ch_names' in asks else (),
        positions=known if 'positions' in asks else (),
        channel_mask='channel_mask' in asks,
    )


def _foreseeable(cell: Cell) -> bool:
    """Whether channels and classes are known before the data: all electrodes, one class for each code of an event."""
    codes = cell.task.target == Classes(field='code') and bool(cell.dataset.event_id)
    electrodes = cell.task.signal.picks == ('eeg',)
    by_name = {'ch_names', 'positions'} & set(cell.model.asks)  # names come with the data
    return codes and electrodes and not by_name


def _expected_signal(cell: Cell) -> Signal:
    signal, window = cell.task.signal, cell.task.window
    return Signal(n_chans=cell.dataset.n_chans, n_times=n_samples(window.duration, signal.sfreq), sfreq=signal.sfreq)


def build(model: ModelSpec, signal: Signal, n_out: int, recipe: Recipe = DEFAULT, frames: bool = False) -> Model:
    """A network as a recipe adapts it, its batch statistics synchronised over devices; with `recipe.published` as the
    reference builds it; `frames`: it answers each frame of a window."""
    if model.family == 'user':
        _try(model, signal, n_out, frames, 0 < recipe.microbatch < recipe.batch_size)
    options = dict((*(model.published if recipe.published else ()), *model.options))
    options |= {'positions': model.places} if model.places else {}
    hides = recipe.loss == 'reconstruction'
    made = factory(model)(signal, hiding.width(signal) if hides else n_out, axis_name=parallel.AXIS, **options)
    computed = precision.computed(made, recipe)
    precision.check(computed, recipe, signal)
    adapted = adaptation.adapted(computed, signal, n_out, recipe, parallel.AXIS)
    if recipe.rotation:  # what is known beforehand is of windows as they were
        adapted = adapted._replace(precompute=lambda x: {})
    return hiding.hiding(adapted, signal, recipe) if hides else adapted


@functools.cache
def _try(model: ModelSpec, signal: Signal, n_out: int, frames: bool, in_parts: bool) -> None:
    """One's own network keeps the contract, or a RequestError says how it does not; once for each shape."""
    with user_model.explained(f'model {model.name}', user_model.file_of(model)):
        make = functools.partial(factory(model), signal, n_out, axis_name=parallel.AXIS, **dict(model.options))
        several = jax.device_count() > 1
        validate.check(
            make, model.name, signal, n_out, parallel.AXIS, several=several, in_parts=in_parts, frames=frames
        )
