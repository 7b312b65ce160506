"""Result files of alignment, written by the real writer from made scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from jbench.alignment import ceiled, record
from jbench.alignment.metrics.measured import Measured
from jbench.spec.benchmark import AlignmentCell, Benchmark, Candidate

FIELDS: dict[str, Any] = {
    'title': 'made',
    'procedure': 'neural',
    'data': 'Made',
    'visual_degrees': 8.0,
    'metric': 'pls',
    'citation': '',
}


def store(
    work: Path,
    identifier: str = 'Made.V4-pls',
    model: str = 'pixels',
    *,
    r: float = 0.5,
    ceiling: float | None = 0.8,
    parent: str = 'V4',
    seed: int = 33,
    arrays: dict[str, np.ndarray] | None = None,
) -> Path:
    """A result whose neuroids score about `r`. Returns: its path."""
    benchmark = Benchmark(identifier=identifier, parent=parent, ceiling='made' * (ceiling is not None), **FIELDS)
    candidate = Candidate(name=model, title='made', target='nowhere:at_all')
    values = r + np.random.default_rng(seed).normal(0, 0.05, (10, 20))
    medians = np.median(values, 1)
    measured = Measured(float(medians.mean()), float(medians.std() / np.sqrt(10)), values, ('neuroid 3 is constant',))
    top = None if ceiling is None else Measured(ceiling, 0.01, np.full((10, 20), ceiling))
    score = ceiled.beside(measured, top, 'explained_variance')
    comparison = AlignmentCell(benchmark=benchmark, candidate=candidate)
    digests = record.Digests('a' * 64, '', 'b', 'c')
    made = ceiled.Scored(score, 'b' * 64, arrays or {})
    record.write(work, comparison, seed, made, digests, {'total': 1.0})
    return record.folder(work, comparison) / f'seed{seed}.json'
