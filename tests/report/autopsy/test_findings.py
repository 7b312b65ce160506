"""Sentences of findings: they name what is above the floor alone, and call things what they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from autopsies import planted

from jbench.report.autopsy import findings
from jbench.report.autopsy.ablation import Ablation


@pytest.mark.parametrize(('falls', 'named'), [((0.08484, 0.0), ()), ((0.3, 0.0848), ('Fz',))])
def test_what_is_not_above_the_floor_is_not_named(falls, named):
    one = Ablation('channel', ('Fz', 'C3'), ((0, 1), (1, 2)), np.array(falls), 0.08484)
    found = findings._fell(planted(), one)
    assert found.names == named and 'C3' not in found.text and ('Fz' in found.text) is bool(named)
    if not named:
        assert 'the largest fall of bal_acc, 0.0848, is not above the floor (0.0848, ' in found.text


@pytest.mark.parametrize(
    ('name', 'called'),
    [('chance', 'the untrained network chance ('), ('chance (no changes)', 'the untrained'), ('dummy', 'than dummy (')],
)
def test_the_model_chance_is_no_chance_level(name, called):
    other = SimpleNamespace(name=name, value=0.5, better=0.1, alike=None, only_mine=None, only_other=None)
    (found,) = findings._compared(SimpleNamespace(answers=SimpleNamespace(compared=[other])))
    assert called in found.text and found.names == (name,)
