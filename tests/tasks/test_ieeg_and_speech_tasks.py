"""Contacts in the brain and a story in MEG, from the request to the table, on the simulated stand-ins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import jbench


@pytest.fixture
def workdir(tmp_path: Path) -> Iterator[Path]:
    """A work folder; the environment is put back."""
    before = dict(os.environ)
    os.environ.pop('JBENCH_DATA', None)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.slow
def test_one_person_and_one_story_are_learnt(workdir: Path) -> None:
    """A network on one fold of one person, as wide as his contacts; a baseline on all sessions of all people."""
    fold = {'split.folds': '', 'split.fold': '3:1/2', 'recipe.max_epochs': 2}
    (result,) = jbench.run('ieeg/onset', 'eegnet', seeds=[33], workdir=workdir, simulated=True, changes=fold)
    assert result['dataset'] == 'SimulatedIeegFilm' and result['simulated'] and result['headline']['name'] == 'auroc'
    (all_of_them,) = jbench.run('ieeg/onset', 'ts_lr', seeds=[33], workdir=workdir, simulated=True)
    assert all_of_them['headline']['value'] > 0.6 and len(all_of_them['per_subject']) == 6
    (speech,) = jbench.run('meg/speech', 'ts_lr', seeds=[33], workdir=workdir, simulated=True)
    assert speech['headline']['value'] > 0.8 > 0.5 > speech['chance']
