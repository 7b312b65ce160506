"""Compiled programs: those foreseen are there when a cell asks, and only so many are held."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time
from functools import partial
from pathlib import Path

import jax
import narrow
import numpy as np
import pytest
import small
from families import often
from networks import NETWORKS, build

from jbench.progress import Interrupted
from jbench.spec.model import Signal
from jbench.spec.task import Recipe
from jbench.train import programs as train_programs
from jbench.train.parallel import draw_program, init_state


def asked(n_times: int) -> tuple:
    signal = Signal(n_chans=2, n_times=n_times, sfreq=120.0)
    return small.cell().model, signal, 2, Recipe(batch_size=2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='/proc is of Linux')
def test_programs_that_were_used_are_forgotten_so_that_memory_maps_never_run_out(monkeypatch):
    monkeypatch.setattr(train_programs, 'KEPT', 1)
    held, maps = train_programs.Compiler(), []
    for n_times in (64, 80):
        programs = held.get(*asked(n_times))
        programs.draw(np.uint32(33))
        maps.append(len(Path('/proc/self/maps').read_text().splitlines()))
        assert len(held._made) == 1
    assert maps[1] < maps[0] + 300, maps  # one alone takes some 700
    assert held.get(*asked(80)) is programs


@pytest.mark.parametrize('name', often([*NETWORKS, *narrow.NARROW], ('eegnet', 'luna_base')))
def test_first_weights_are_the_bits_of_full_optimisation(name, monkeypatch):
    monkeypatch.delenv('XLA_FLAGS', raising=False)
    network = build(name, (4, 250, 3)) if name in NETWORKS else narrow.built(name, monkeypatch)[0]
    quick = draw_program(network)(np.uint32(33))
    full = jax.jit(partial(init_state, network), compiler_options={'xla_backend_optimization_level': 3})(np.uint32(33))
    for a, b in zip(jax.tree.leaves(quick), jax.tree.leaves(full), strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def test_first_weights_compile_quickly_on_a_processor_unless_a_level_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(jax, 'jit', lambda draw, compiler_options: asked.append(compiler_options))
    for backend, flags in (('cpu', ''), ('cpu', '--xla_backend_optimization_level=2'), ('gpu', '')):
        monkeypatch.setattr(jax, 'default_backend', lambda backend=backend: backend)
        monkeypatch.setenv('XLA_FLAGS', flags)
        draw_program(None)
    assert asked == [{'xla_backend_optimization_level': 1}, None, None]


def test_a_signal_is_met_while_a_program_compiles(monkeypatch):
    """The thread that compiles is left to itself; what it raises reaches the cell, and what it makes is kept."""
    free, looks = threading.Event(), []

    def compile_programs(*args):
        free.wait(60)
        if args[3].n_times == 80:
            raise MemoryError('of XLA')
        return args[3].n_times

    def interrupted():
        looks.append(1)
        if len(looks) == 2:
            raise Interrupted

    monkeypatch.setattr(train_programs.parallel, 'compile_programs', compile_programs)
    held, began = train_programs.Compiler(), time.monotonic()
    with pytest.raises(Interrupted):
        held.get(*asked(64), wait=interrupted)
    assert time.monotonic() - began < 3 and not held._made
    free.set()
    assert held.get(*asked(64)) == 64
    with pytest.raises(MemoryError, match='of XLA'):
        held.get(*asked(80))


def test_only_so_many_are_foreseen_and_the_next_when_one_is_used(monkeypatch):
    cells = [
        dataclasses.replace(c, task=dataclasses.replace(c.task, window=dataclasses.replace(c.task.window, duration=d)))
        for c, d in ((small.cell(), 0.5), (small.cell(), 0.6), (small.cell(), 0.7))
    ]
    compiled, done = [], []
    monkeypatch.setattr(train_programs, 'AHEAD', 1)
    monkeypatch.setattr(train_programs.parallel, 'compile_programs', lambda *args: compiled.append(args[3].n_times))
    held = train_programs.Compiler(lambda: done.append(1))
    held.foresee(cells)
    for k, c in enumerate(cells, 1):
        wait_for(lambda k=k: len(done) == k)
        time.sleep(0.3)
        assert len(compiled) == k, 'one ahead'
        held.get(c.model, train_programs._expected_signal(c), len(c.dataset.event_id), c.task.recipe)
    held.close()
    assert compiled == [60, 72, 84]


def test_models_that_go_by_other_places_have_programs_of_their_own(monkeypatch):
    built = []
    monkeypatch.setattr(train_programs, 'build', lambda model, *args: built.append(model.places))
    monkeypatch.setattr(train_programs.adaptation, 'resolved', lambda recipe, network: recipe)
    monkeypatch.setattr(train_programs.parallel, 'compile_programs', lambda *args: None)
    held, (model, *rest) = train_programs.Compiler(), asked(60)
    for places in ('', 'a.json@11', 'b.json@11', 'a.json@22'):
        held.get(dataclasses.replace(model, places=places), *rest)
    assert built == ['', 'a.json@11', 'a.json@22'], 'a file is known by its digest'


def wait_for(come) -> None:
    end = time.monotonic() + 60
    while not come() and time.monotonic() < end:
        time.sleep(0.01)
