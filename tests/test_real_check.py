"""configs/real_check.py: how it scores, what it refuses, and one whole table of it."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

CHECK = SimpleNamespace(**runpy.run_path(str(Path(__file__).parents[1] / 'configs' / 'real_check.py')))


def pooled(outputs: np.ndarray, y: np.ndarray, group: str, classes: str = '01') -> SimpleNamespace:
    """Predictions of groups of one letter each; groups are subjects."""
    letters = np.array(list(group))
    return CHECK.Pooled(outputs, y, letters, letters, list(classes))


def test_areas_are_averaged_over_subjects_and_accuracies_pooled() -> None:
    y = np.array([0, 1, 0, 1, 0, 1])
    outputs = np.stack([np.zeros(6), np.array([0, 1, 0, 1, 1, 0])], 1)  # right for a, wrong for b
    p = pooled(outputs, y, 'aaaabb')
    check = CHECK.Check('t', 'n', 0.5, 0.5, 'auroc')
    assert CHECK.score(check, p) == (0.5, {'a': 1.0, 'b': 0.0})
    value, groups = CHECK.score(check._replace(metric='acc'), p)
    assert value == pytest.approx(4 / 6) and groups == {'a': 1.0, 'b': 0.0}


def test_only_the_classes_of_a_check_count() -> None:
    outputs = np.array([[9, 1, 0], [9, 0, 1], [0, 0, 1.0]])
    p = pooled(outputs, np.array([1, 2, 0]), 'aab', ['rest', '13', '17'])
    value, _ = CHECK.score(CHECK.Check('t', 'n', 0.5, 0.5, among=('13', '17')), p)
    assert value == 1.0  # rest, which would win, is no answer, and its window is left out


def test_a_control_is_beaten_only_beyond_doubt() -> None:
    groups = {str(k): 0.6 + 0.01 * (k % 2) for k in range(9)}
    assert CHECK.control('t', 'm', 0.6, groups, 0.5, 0.0).bad
    assert not CHECK.control('t', 'm', 0.6, {'1': 0.4, '2': 0.8, '3': 0.6}, 0.5, 0.0).bad
    assert CHECK.control('t', 'm', 0.67, {}, 0.5, 0.05).bad
    assert not CHECK.control('t', 'm', 0.66, {}, 0.5, 0.05).bad


@pytest.mark.parametrize('metric', ['auroc', 'bal_acc'])
def test_scores_of_guesses_spread_as_is_said(metric: str) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2][: 2 + (metric == 'bal_acc')], [20, 90, 40][: 2 + (metric == 'bal_acc')])
    guesses = rng.standard_normal((2000, len(y), len(set(y))))
    scores = [CHECK.evaluate('classes', g, y)[metric] for g in guesses]
    assert np.std(scores) == pytest.approx(CHECK.spread(metric, y), rel=0.06)


def test_a_set_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert CHECK.main([f'--data_dir={tmp_path}', '--sets=muse_p4']) == 2
    assert "unknown set 'muse_p4'; did you mean 'muse_p3'" in capsys.readouterr().err


@pytest.mark.long
def test_floors_of_one_set_are_met_twice(data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [f'--data_dir={data_dir}', f'--workdir={tmp_path}', '--sets=haxby,lower_limb_activity']
    for _ in range(2):
        assert CHECK.main([*command, '--models=mean_lr,time_domain_lr']) == 0
        shown = capsys.readouterr().out
        assert shown.count('met (') >= 2 and 'at chance' in shown and 'as it must be' in shown
