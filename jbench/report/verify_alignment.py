"""What speaks against a result of alignment that somebody hands in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.alignment import ceiled, select
from jbench.alignment.metrics.measured import Measured
from jbench.results import checked, result_file
from jbench.spec.benchmark import WORDS, AlignmentCell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json

CLOSE = 1e-9  # of scores that are computed again from what the file says


def problems(path: str | Path, *, predictions: bool = True) -> list[str]:
    """One text a problem; [] for none: its words against its config, this against the registered benchmark, its place,
    its score from raw score and ceiling, and these from the values beside it.

    Args:
        path: of the result.
        predictions: whether the values before aggregation must lie beside it.
    """
    path = Path(path)
    try:
        result = result_file.read(path) if predictions else checked.read(path)
        config = {k: v for k, v in result['config'].items() if k != 'digests'}
        comparison = from_json(AlignmentCell, config, 'config')
    except (FileNotFoundError, RequestError) as error:
        return [str(error)]
    benchmark = comparison.benchmark
    true = {
        'task': comparison.task,
        'task_version': benchmark.version,
        'dataset': benchmark.data,
        'model': comparison.model,
        'key': comparison.key,
        'simulated': benchmark.simulated,
    }
    wrong = [f'{k}: written {result[k]}, expected {v}' for k, v in true.items() if result[k] != v]
    ours = select.benchmarks().get(benchmark.identifier)
    if ours is not None and ours.version == benchmark.version:
        mine, theirs = to_json(benchmark), to_json(ours)
        differing = [k for k in theirs if mine[k] != theirs[k] and k not in WORDS]
        wrong += [f'config.benchmark.{k}: written {mine[k]}, expected {theirs[k]}' for k in differing]
    wrong += _score(result, benchmark.ceiled, benchmark.chance)
    wrong += _values(result, files.read_npz(path.with_suffix('.npz'))) if predictions else []
    names = (f'{comparison.task}@{benchmark.version}', benchmark.data, comparison.model)
    place = Path(*map(files.slug, names), comparison.key, f'seed{result["seed"]}.json')
    wrong += [f'belongs at .../{place}'] if path.parts[-5:] != place.parts else []
    return [f'{path}: {text}' for text in wrong]


def _score(result: Mapping[str, Any], how: str, chance: float | None) -> list[str]:
    """The score against raw score and ceiling; of neuroids each beside its own ceiling it cannot be told."""
    said = dict.fromkeys(('raw', 'raw_error', 'ceiling', 'ceiling_error'), math.nan) | result['metrics']
    apart = how in ('explained_variance_per_neuroid', 'ratio_root') or bool(result['config']['benchmark']['per'])
    if apart and result['metrics'].get('ceiling') is not None:
        return []  # of neuroids, halves or subjects, each beside its own ceiling
    raw = Measured(said['raw'], said['raw_error'], np.empty(0))
    ceiling = None
    if result['metrics'].get('ceiling') is not None:
        ceiling = Measured(said['ceiling'], said['ceiling_error'], np.empty(0))
    expected, written = ceiled.beside(raw, ceiling, how, chance=chance).value, result['headline']['value']
    return [] if _same(written, expected) else [f'headline.value: written {written}, expected {expected}']


def _values(result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The raw score against the values of each split, where it is their mean."""
    per_split, written = arrays.get('per_split', np.empty(0)), result['metrics'].get('raw')
    expected = float(np.nanmean(per_split)) if len(per_split) and not np.isnan(per_split).all() else math.nan
    if not len(per_split) or _same(written, expected):
        return []
    return [f'metrics.raw: written {written}, expected {expected}, the mean over splits']


def _same(written: float | None, expected: float) -> bool:
    if written is None:
        return math.isnan(expected)
    return math.isclose(written, expected, rel_tol=CLOSE, abs_tol=CLOSE)
