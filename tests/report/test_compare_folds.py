"""Two models compared fold by fold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import result_files

from jbench import run
from jbench.report.statistics.folds import corrected_t
from jbench.results.schema import as_text

A, B = (0.7, 0.8, 0.75, 0.9), (0.6, 0.75, 0.77, 0.8)
SIZES = {'train': 300, 'valid': 0, 'test': 100, 'evaluated': 100}


def cross_validated(work: Path, model: str, values: tuple[float, ...], seeds: tuple[int, ...] = (33,)) -> list[Path]:
    """Results of some seeds, with a fold for each value."""
    paths = [result_files.store(work, model, float(np.mean(values)), seed=seed) for seed in seeds]
    for path in paths:
        for k, value in enumerate(values, 1):
            fold = result_files.make(model, value, seed=int(path.stem[4:]), split_hash=str(k), n_records=SIZES)
            place = path.parent / 'folds' / f'{k}_of_{len(values)}' / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(as_text(fold))
    return paths


def compared(work: Path, capsys: Any) -> dict[str, Any]:
    assert run.main(['compare', 'eegnet', 'ctnet', f'--results={work}', '--format=json']) == 0
    (pair,) = json.loads(capsys.readouterr().out)['pairs']
    return pair['folds']


def test_folds_beside_results_are_tested_with_the_variance_of_shared_training_data(tmp_path: Path, capsys) -> None:
    cross_validated(tmp_path, 'eegnet', A, (33, 34))
    cross_validated(tmp_path, 'ctnet', B, (33, 34))
    expected = corrected_t(np.array(A) - np.array(B), 300, 100)
    found = compared(tmp_path, capsys)
    assert (found['n'], found['p'], found['t']) == pytest.approx((4, expected.p, expected.t))
    assert found['interval'] == pytest.approx(expected.interval) and expected.t != 0
    assert run.main(['compare', 'eegnet', 'ctnet', f'--results={tmp_path}']) == 0
    mean, low, high = (100 * v for v in (expected.mean, *expected.interval))
    said = ' '.join(capsys.readouterr().out.split())
    assert f'4 folds: {mean:.1f} [{low:.1f}, {high:.1f}], corrected resampled t = {expected.t:.2f}, p =' in said


@pytest.mark.parametrize('what', ['absent', 'damaged', 'other windows', 'other folds'])
def test_folds_that_cannot_be_paired_are_not_tested(tmp_path: Path, capsys, what: str) -> None:
    (mine,), _ = cross_validated(tmp_path, 'eegnet', A), cross_validated(tmp_path, 'ctnet', B)
    fold = mine.parent / 'folds' / '2_of_4' / mine.name
    if what == 'absent':
        fold.unlink()
    elif what == 'damaged':
        fold.write_bytes(fold.read_bytes()[:-20])
    elif what == 'other windows':
        fold.write_bytes(as_text(result_files.make('eegnet', 0.5, split_hash='other', n_records=SIZES)))
    else:
        fold.parent.rename(fold.parent.with_name('2_of_5'))
    assert compared(tmp_path, capsys) is None


def test_results_without_folds_have_none(tmp_path: Path, capsys) -> None:
    for model, value in (('eegnet', 0.7), ('ctnet', 0.6)):
        result_files.store(tmp_path, model, value)
    assert compared(tmp_path, capsys) is None
