"""One result of the folds of a cross-validation: each window by the model that had not seen its group."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.data.load import splits
from jbench.data.load.prepared_set import PreparedSet
from jbench.results import record, result_file
from jbench.results.predictions import load_predictions
from jbench.spec.cell import Cell
from jbench.targets import score


def write(cell: Cell, home: Path, parts: Sequence[PreparedSet], paths: Sequence[Path]) -> dict[str, Any]:
    """The result of a seed, written to `home`.

    Args:
        cell: with `split.folds`.
        home: its folder of results.
        parts: the prepared set as each fold divides it.
        paths: result files of the seed, one a fold; they have predictions, or say why they failed.
    Raises: as `result_file.write`.
    """
    found = [result_file.read(path) for path in paths]
    failed = [r for r in found if r['status'] == 'failed']
    outcome: dict[str, Any] = {
        'dummy': _dummy(cell, parts),
        'n_parameters': found[0]['n_parameters'],
        'timings': {k: sum(r['timings'][k] for r in found) for k in ('compile', 'fit', 'test', 'total')},
    }
    if failed:
        reason = failed[0]['warnings'][-1]
        outcome['failed'] = f'{len(failed)} of {len(found)} folds failed, the first of them: {reason}'
    tested = [part.rows('test') for part in parts]
    split = np.full_like(parts[0].split, '')
    split[np.concatenate(tested)] = 'test'
    data = dataclasses.replace(parts[0], split=split, scaled=False, warnings=_warnings(parts))
    result = record.describe(cell, data, found[0]['seed'], found[0]['prepared_hash'], outcome)
    result['split_hash'] = splits.split_hash(
        {f'{k}': part.ids[rows] for k, (part, rows) in enumerate(zip(parts, tested, strict=True))}
    )
    result['timings']['prepare'] = found[0]['timings']['prepare']
    predictions = None if failed else _joined([load_predictions(path) for path in paths])
    return result_file.write(home, result, predictions)


def _dummy(cell: Cell, parts: Sequence[PreparedSet]) -> float | None:
    """The headline of the dummies of all folds, each fitted on what its fold learns from."""
    task, answers = cell.task, []
    for part in parts:
        test = part.rows('test')
        outputs = score.dummy(part.kind, part.y[part.rows('train', 'valid')], len(test), n_out=part.n_out)
        answers.append(part.predictions(test, outputs))
    return score.level_score(parts[0].kind, task.metric, _joined(answers), task.level)


def _joined(predictions: Sequence[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Predictions of all folds; paths of keystrokes are as long as the longest."""
    return {name: np.concatenate([arrays[name] for arrays in predictions]) for name in predictions[0]}


def _warnings(parts: Sequence[PreparedSet]) -> tuple[str, ...]:
    """What is said of every fold, and an example of what is said of some."""
    common = [w for w in parts[0].warnings if all(w in part.warnings for part in parts)]
    own = [(k, w) for k, part in enumerate(parts, 1) for w in part.warnings if w not in common]
    folds = len({k for k, _ in own})
    some = [f'{folds} of {len(parts)} folds have notes of their own; fold {own[0][0]}: {own[0][1]}'] if own else []
    return (f'{len(parts)} folds, as many models; every window was tested once', *common, *some)
