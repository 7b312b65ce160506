"""Calibration of results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_files import HISTORIC

from jbench import files
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


def changed(folder: Path, copied: bool = True, **changes: Any) -> Path:
    """A copy of a result with its predictions (unless they are there), changed, and a right digest."""
    path = folder / 'seed33.json'
    if copied:
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


WRONG = {  # what is made of the arrays, and the words of the error
    'a class that there is not': (lambda z: z | {'y': z['y'] * 0 + 99}, 'classes must be integers in 0..1'),
    'a negative class': (lambda z: z | {'y': z['y'] - 1}, 'classes must be integers in 0..1'),
    'classes as floats': (lambda z: z | {'y': z['y'].astype(float)}, 'classes must be integers'),
    'not a number': (lambda z: z | {'outputs': z['outputs'] * np.nan}, 'outputs are not finite'),
    'fewer targets': (lambda z: z | {'y': z['y'][:5]}, r'seed33.npz: y: expected .*; found int64 \[5\]'),
    'a row of outputs': (lambda z: z | {'outputs': z['outputs'][:, 0]}, 'seed33.npz: outputs: expected floats in 2'),
    'several targets': (lambda z: z | {'y': np.stack([z['y']] * 2, 1)}, 'do not fit'),
    'complex outputs': (lambda z: z | {'outputs': z['outputs'].astype(complex)}, 'seed33.npz: outputs: .* complex128'),
    'no window': (lambda z: {k: v[:0] for k, v in z.items()}, 'seed33.npz: id: '),
}


@pytest.mark.parametrize('name', WRONG)
def test_predictions_that_no_run_writes_are_named(name: str, tmp_path: Path) -> None:
    change, words = WRONG[name]
    path = changed(tmp_path)
    path.with_suffix('.npz').write_bytes(files.npz_bytes(change(load_predictions(path))))
    path = changed(tmp_path, copied=False, predictions_sha256=files.sha256_file(path.with_suffix('.npz')))
    with pytest.raises(RequestError, match=words):
        of_result(path)


def test_a_config_that_no_run_writes_is_named(tmp_path: Path) -> None:
    for config in ({'task': 'x'}, {}, of_task(target={'kind': 'zzz'})):
        with pytest.raises(RequestError, match='its predictions are not of its task'):
            of_result(changed(tmp_path, config=config))
