"""Where a licence forbids to share what is made of weights, results, kept files and archives say so; elsewhere not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
import small
import stores
from safetensors import safe_open

from jbench import training
from jbench.context import Context
from jbench.models import MODELS, factory, seen
from jbench.progress import Progress
from jbench.results import record
from jbench.spec.cell import Cell
from jbench.spec.checkpoints import CHECKPOINTS, not_to_share
from jbench.spec.model import SCRATCH, Signal
from jbench.submit import make

DIGEST = '1a2b3c4d' * 8
TERMS = (
    'licence of the weights: CC BY-ND 4.0: nothing that is made of it may be shared; what is learnt from them is for '
    'you alone'
)


def cell(name: str, weights: str = DIGEST) -> Cell:
    return dataclasses.replace(small.cell(), model=dataclasses.replace(MODELS[name], weights=weights))


def test_models_whose_weights_may_not_be_changed_and_shared() -> None:
    said = {name: not_to_share(cell(name).model) for name in MODELS}
    assert {name for name, terms in said.items() if terms} == {'luna_base', 'luna_large', 'luna_huge'}
    assert {said['luna_base'], said['luna_large'], said['luna_huge']} == {TERMS}
    assert [not_to_share(cell('luna_base', weights).model) for weights in (SCRATCH, '')] == [None, None]


PEOPLE = SimpleNamespace(
    subjects=np.array(['S1', 'S2']), split=np.array(['train', 'test']), rows=lambda *parts: np.array([0])
)


def test_a_result_says_it() -> None:
    assert record._seen(cell('luna_base'), PEOPLE)[-1] == TERMS
    for free in (cell('luna_base', SCRATCH), cell('labram'), cell('eegnet', '')):
        assert not any('licence' in said for said in record._seen(free, PEOPLE))


@pytest.fixture
def keep(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., tuple[Path, list[str]]]:
    """Keeps weights of models in one run: the file of the last one, and what was said."""
    network = factory(MODELS['eegnet'])(Signal(n_chans=3, n_times=64, sfreq=128.0), 2)
    outcome = {'network': network, 'variables': network.init(jax.random.key(0))}

    def kept(workdir: Path, *cells: Cell) -> tuple[Path, list[str]]:
        context = Context(workdir, None, Progress(), lambda: False, 'skip')
        for seed, c in enumerate(cells):
            content = training._weights(c, PEOPLE, seed, outcome, context, ())  # type: ignore[arg-type]
            (tmp_path / 'w').write_bytes(content or b'')
        return tmp_path / 'w', capsys.readouterr().err.splitlines()

    return kept


def test_a_kept_file_says_it_and_a_run_once(keep: Any, tmp_path: Path) -> None:
    luna, labram = cell('luna_base'), cell('labram')
    path, said = keep(tmp_path, labram, luna, luna)
    assert said == [f'luna_base: {TERMS}'] and seen.declared(path)['licence'] == TERMS
    with safe_open(path, 'np') as file:
        assert TERMS in file.metadata()['jbench']
    for free in (labram, cell('luna_base', SCRATCH)):
        path, said = keep(tmp_path, free)
        assert said == [] and 'licence' not in seen.declared(path)


def test_a_store_that_gets_them_is_named(keep: Any, tmp_path: Path) -> None:
    with stores.in_memory(tmp_path) as machines:
        workdir = machines.on('a')
        assert keep(workdir, cell('luna_base'))[1] == [
            f'luna_base: {TERMS}; it is put into {machines.store().url}, too'
        ]
        assert keep(workdir, cell('labram'))[1] == []


def test_an_archive_says_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No network of such weights has a twin yet: LaBraM stands for one."""
    model = SimpleNamespace(path=tmp_path / 'seed33.json', cell=cell('labram'), result={'seed': 33})
    monkeypatch.setattr(make.export, 'fitting', lambda results, name: results)
    monkeypatch.setattr(make, 'find_spec', lambda name: True)
    monkeypatch.setattr(make, 'load_model', lambda path: model)

    def first() -> list[str]:
        lines: Iterator[str] = make.make([model.path], '2026-2', tmp_path / 'a.zip')
        return [line for line in islice(lines, 2) if not line.startswith('SIMULATED')]

    assert first() == [f'{model.path}: {model.cell.title}, seed 33']
    bound = CHECKPOINTS['labram']._replace(licence=CHECKPOINTS['luna_base'].licence, shared=False)
    monkeypatch.setitem(CHECKPOINTS, 'labram', bound)
    assert first() == [f'{model.path}: {TERMS}']
