"""Sentences of findings: they name what is above the floor alone, and call things what they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from autopsies import case_of, planted, written

from jbench.report.autopsy import findings
from jbench.report.autopsy.ablation import Ablation
from jbench.report.autopsy.attribution import Attribution
from jbench.report.autopsy.examine import Parts, examine
from jbench.report.autopsy.page import page
from jbench.report.autopsy.pictures import pictures


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


@pytest.mark.parametrize(('better', 'said'), [(0.0, 'as good as'), (1e-17, 'as good as'), (-0.25, '0.250 worse than')])
def test_a_tie_is_called_one(better, said):
    other = SimpleNamespace(name='dummy', value=0.5, better=better, alike=None, only_mine=None, only_other=None)
    (found,) = findings._compared(SimpleNamespace(answers=SimpleNamespace(compared=[other])))
    assert found.text == f'This run is {said} dummy (0.500).'


@pytest.mark.parametrize(('kind', 'what'), [('keystrokes', 'the answer given'), ('value', 'the right answer')])
def test_what_is_explained_is_named(kind, what):
    """Of keystrokes the best output is, also where it is wrong."""
    case = planted()._replace(kind=kind, classes=())
    samples = np.ones((8, 4, 3)) * np.float64([0, 1, 0, 0])[:, None]
    found = Attribution(samples, samples[..., :2], np.array([0.0, 20.0]), samples.sum((1, 2)), 0.0, 32)
    base = SimpleNamespace(value=1.0, p=0.005, orders=201, shuffled=np.zeros(3))
    answers = SimpleNamespace(confusion=None)
    parts = Parts(answers, base, attribution=found, explained=np.arange(8))
    (first, *_) = findings._attributed(case, parts)
    assert first.text.startswith(f'Of what speaks for {what}, 100% comes from C3')
    captions = [caption for _, caption, _ in pictures(case, parts).values() if 'positive' in caption]
    assert len(captions) == 3 and all(f'positive: speaks for {what}' in caption for caption in captions)


@pytest.mark.slow
def test_windows_of_one_sample_have_a_page_without_frequencies():
    """Of volumes of fMRI, one at a time."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    x = (rng.normal(0, 1, (24, 3, 1)) + np.float32([0, 4, 0])[:, None] * (2 * y - 1)[:, None, None]).astype(np.float32)
    weights = np.float32([[0, 0], [-1, 1], [0, 0]])
    case = case_of(written(lambda p, x: (x[..., 0] @ p['w'], {}), {'w': weights}), x, y)
    parts = examine(case)
    assert 'Attribution over time' in page(case, parts) and 'frequencies' not in pictures(case, parts)
    texts = [one.text for one in findings.findings(case, parts)]
    assert any('comes from C3' in text for text in texts) and not any('Hz' in text for text in texts)
