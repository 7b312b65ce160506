"""Calibration of results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from result_files import HISTORIC

from jbench.report.calibrated import of_result
from jbench.report.statistics.calibration import calibration
from jbench.results import checked
from jbench.results.predictions import load_predictions
from jbench.spec.errors import RequestError


def historic(model: str = 'eegnet') -> Path:
    (path,) = (HISTORIC / 'v3').rglob(f'{model}/*/seed33.json')
    return path


def test_a_result_by_its_predictions() -> None:
    path = historic()
    found, arrays = of_result(path), load_predictions(path)
    assert found is not None and found == calibration(arrays['outputs'], arrays['y'])
    assert found.auroc == pytest.approx(json.loads(path.read_text())['metrics']['auroc'])
    assert 0 <= found.ece <= 1 and 0 <= found.brier <= 2 and sum(found.width.counts) == len(arrays['y'])


def changed(folder: Path, **changes: Any) -> Path:
    """A copy of a result with its predictions, changed, and a right digest."""
    path = folder / 'seed33.json'
    shutil.copy(historic().with_suffix('.npz'), path.with_suffix('.npz'))
    result = json.loads(historic().read_text()) | changes
    path.write_text(json.dumps({**result, 'sha256': checked.digest(result)}))
    return path


def of_task(**changes: Any) -> dict[str, Any]:
    config = json.loads(historic().read_text())['config']
    return {**config, 'task': {**config['task'], **changes}}


def test_a_result_of_whole_subjects_is_calibrated_by_subjects(tmp_path: Path) -> None:
    path = changed(tmp_path, config=of_task(level='subject'))
    found = of_result(path)
    assert found is not None and sum(found.width.counts) == len(set(load_predictions(path)['subject']))


def test_results_without_classes_or_predictions_have_none(tmp_path: Path) -> None:
    assert of_result(changed(tmp_path, config=of_task(target={'kind': 'value'}))) is None
    assert of_result(changed(tmp_path, predictions_sha256=None)) is None
    with pytest.raises(RequestError, match='predictions_sha256'):
        of_result(changed(tmp_path, predictions_sha256='0' * 64))
