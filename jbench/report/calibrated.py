"""Calibration and AUROC of one result, from the predictions beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from jbench import files, targets
from jbench.report.statistics.calibration import Calibration, calibration
from jbench.results import predictions, result_file
from jbench.spec.errors import RequestError
from jbench.targets import score
from jbench.targets.kind import Kind


def of_result(path: str | Path) -> Calibration | None:
    """Calibration of what the headline is of: windows, recordings or subjects.

    Returns: None where an answer is no class out of several, and where the result has no predictions.
    Raises: FileNotFoundError; RequestError for a damaged file, and for predictions that no run writes.
    """
    result = result_file.read(path)
    try:
        task = result['config']['task']
        kind = task['target']['kind']
        if not targets.of(kind).single or result['predictions_sha256'] is None:
            return None
        arrays = predictions.load_predictions(path)
        _check(targets.of(kind), arrays['outputs'], arrays['y'])
        outputs, y, _ = score.pooled(kind, arrays, task.get('level', 'window'))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        reason = f'{type(error).__name__}: {error}'
        raise RequestError(f'{path}: its predictions are not of its task: {reason}; {files.ANEW}') from error
    return calibration(outputs, y)


def _check(kind: Kind, outputs: np.ndarray, y: np.ndarray) -> None:
    """Raises: ValueError for answers [N, K] and classes [N] that no scores can be computed of."""
    if not kind.fits(outputs.shape, y.shape):
        raise ValueError(f'outputs {outputs.shape} and targets {y.shape} do not fit')
    if not np.isfinite(outputs).all():
        raise ValueError('outputs are not finite')
    kind.checked(y, outputs.shape[1])
