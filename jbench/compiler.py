"""Networks of the table as compiled programs, those foreseen in the background while data are prepared."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from jbench import optim, parallel
from jbench.data.windows import n_samples
from jbench.models import MODELS
from jbench.models.blocks import Model
from jbench.spec import Cell, Recipe, RequestError, Signal


class Compiler:
    """Compiled programs by what they depend on; those foreseen compile in one background thread."""

    def __init__(self, seal: Callable[[], None] = lambda: None) -> None:
        self._seal = seal  # called after each compilation: see xla_cache
        self._made: dict[Any, parallel.Programs] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False

    def get(self, model: str, signal: Signal, n_out: int, recipe: Recipe) -> parallel.Programs:
        """The programs, compiled now if they were not foreseen."""
        signal = dataclasses.replace(signal, ch_names=())  # names do not change a program
        default = Recipe()  # these are not in the program but in the state that it carries, or outside of it
        free = {f: getattr(default, f) for f in ('lr', 'max_epochs', 'patience', 'class_weights')}
        key = (MODELS[model].target, signal, n_out, dataclasses.replace(recipe, **free))
        with self._lock:
            if key not in self._made:
                self._made[key] = parallel.compile_programs(
                    build(model, signal, n_out), optim.adamw(recipe, 1), recipe, signal, n_out
                )
                self._seal()
            return self._made[key]

    def foresee(self, cells: list[Cell]) -> None:
        """Start compiling what the specs alone let one expect, while the data are prepared."""
        wanted = [
            (c.model, _expected_signal(c), len(c.dataset.event_id), c.task.recipe)
            for c in cells
            if MODELS[c.model].kind == 'network' and c.dataset.event_id
        ]

        def work() -> None:
            for args in wanted:
                if self._closed:
                    return
                with contextlib.suppress(RequestError):  # the cell itself will raise it, in its place
                    self.get(*args)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the program that compiles now: a process that ends under it would crash."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()


def _expected_signal(cell: Cell) -> Signal:
    signal, window = cell.task.signal, cell.task.window
    return Signal(n_chans=cell.dataset.n_chans, n_times=n_samples(window.duration, signal.sfreq), sfreq=signal.sfreq)


def build(model: str, signal: Signal, n_out: int) -> Model:
    """A network of the table, its batch statistics synchronised over devices."""
    module, _, name = MODELS[model].target.partition(':')
    return getattr(import_module(module), name)(signal, n_out, axis_name=parallel.AXIS)
