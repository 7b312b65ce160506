"""Calibration and AUROC of one result, from the predictions beside it."""

from __future__ import annotations

from pathlib import Path

from jbench import targets
from jbench.report.statistics.calibration import Calibration, calibration
from jbench.results import predictions, result_file
from jbench.targets import score


def of_result(path: str | Path) -> Calibration | None:
    """Calibration of what the headline is of: windows, recordings or subjects.

    Returns: None where an answer is no class out of several, and where the result has no predictions.
    Raises: FileNotFoundError; RequestError for a damaged file.
    """
    result = result_file.read(path)
    task = result['config']['task']
    kind = task['target']['kind']
    if not targets.of(kind).single or result['predictions_sha256'] is None:
        return None
    outputs, y, _ = score.pooled(kind, predictions.load_predictions(path), task.get('level', 'window'))
    return calibration(outputs, y)
