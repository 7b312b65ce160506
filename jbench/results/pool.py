"""One result of the folds of a cross-validation: each window by the model that had not seen its group."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jbench.data.load import splits
from jbench.data.load.prepared_set import PreparedSet
from jbench.metrics.keystrokes import NONE
from jbench.results import record, result_file
from jbench.results.learnt import ENDED_EARLY
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
    rows = [part.rows('test') for part in parts]
    tested = np.sort(np.concatenate(rows))
    outcome: dict[str, Any] = {
        'dummy': _dummy(cell, parts[0], tested),
        'n_parameters': next((r for r in found if r['status'] != 'failed'), found[0])['n_parameters'],
        'timings': {k: sum(r['timings'][k] for r in found) for k in ('compile', 'fit', 'test', 'total')},
    }
    if failed:
        reason = failed[0]['warnings'][-1]
        outcome['failed'] = f'{len(failed)} of {len(found)} folds failed, the first of them: {reason}'
    split = np.full_like(parts[0].split, '')
    split[tested] = 'test'
    said = _warnings(parts, found, len(tested))
    data = dataclasses.replace(parts[0], split=split, scaled=False, warnings=said)
    result = record.describe(cell, data, found[0]['seed'], found[0]['prepared_hash'], outcome)
    dealt = enumerate(zip(parts, rows, strict=True))
    result['split_hash'] = splits.split_hash({str(k): part.ids[mine] for k, (part, mine) in dealt})
    result['channels'] = next((r['channels'] for r in found if r.get('channels')), None)
    result |= {k: found[0][k] for k in ('checkpoint',) if k in found[0]}
    result['timings']['prepare'] = found[0]['timings']['prepare']
    predictions = None if failed else joined([load_predictions(path) for path in paths])
    return result_file.write(home, result, predictions)


def _dummy(cell: Cell, part: PreparedSet, tested: np.ndarray) -> float | None:
    """The headline of one rule for all folds, fitted on all that was tested: it looks at no signal. A dummy fitted by
    each fold would know what its test part lacks, and its answers together would say so."""
    outputs = score.dummy(part.kind, part.y[tested], len(tested), n_out=part.n_out)
    return score.level_score(part.kind, cell.task.metric, part.predictions(tested, outputs), cell.task.level)


def joined(predictions: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Predictions of all folds; outputs of frames are as long as the longest, nothing follows the others."""
    width = max(arrays['outputs'].shape[1] for arrays in predictions)
    missing = [((0, 0), (0, width - arrays['outputs'].shape[1])) for arrays in predictions]
    same = [
        {**arrays, 'outputs': np.pad(arrays['outputs'], pad, constant_values=NONE)}
        for arrays, pad in zip(predictions, missing, strict=True)
    ]
    return {name: np.concatenate([arrays[name] for arrays in same]) for name in same[0]}


def _warnings(parts: Sequence[PreparedSet], found: Sequence[dict[str, Any]], n_tested: int) -> tuple[str, ...]:
    """How the result came about; what is said of every fold, and an example of what is said of some."""
    lines = [f'{len(parts)} folds, as many models; {n_tested} of {len(parts[0].ids)} windows were tested, each once']
    if any(r['versions'] != found[0]['versions'] or r['devices'] != found[0]['devices'] for r in found):
        lines.append('folds were made by different versions or on different devices; those of the last are named')
    early = [next((w for w in r['warnings'] if w.startswith(ENDED_EARLY)), '') for r in found]
    if any(early):
        reason = next(filter(None, early)).removeprefix(f'{ENDED_EARLY}: ')
        n_early = sum(map(bool, early))
        lines.append(f'{ENDED_EARLY}: {n_early} of {len(found)} folds; of the first, {reason}')
    common = [w for w in parts[0].warnings if all(w in part.warnings for part in parts)]
    own = [(k, w) for k, part in enumerate(parts, 1) for w in part.warnings if w not in common]
    n_own = len({k for k, _ in own})
    some = [f'{n_own} of {len(parts)} folds have notes of their own; fold {own[0][0]}: {own[0][1]}'] if own else []
    return (*lines, *common, *some)
