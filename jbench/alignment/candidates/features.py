"""Features that were computed elsewhere, a vector for each stimulus: for tests, and models that live elsewhere."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.alignment.brain_model import CommittedModel
from jbench.alignment.stimuli import StimulusSet
from jbench.alignment.units import Units
from jbench.spec.errors import RequestError

Vectors = Mapping[str, Any]  # stimulus_id -> numbers, as many for each


def recorded_features(
    identifier: str, features: Vectors | Mapping[str, Vectors], visual_degrees: float = 8
) -> CommittedModel:
    """A brain model that answers with these vectors, whatever region is asked for.

    Args:
      identifier: its name in results.
      features: stimulus_id -> vector, or identifier of a stimulus set -> {stimulus_id -> vector}.
      visual_degrees: what it says of the width of what it sees.

    Raises: RequestError for vectors of different lengths, or that are not finite; `look_at` does for a stimulus
      without a vector.
    """
    if not features:
        raise RequestError(f'{identifier}: no features; give a vector for each stimulus')
    by_set = isinstance(next(iter(features.values())), Mapping)
    tables = {name: _checked(identifier, v) for name, v in (features.items() if by_set else [('', features)])}

    def respond(stimuli: StimulusSet, what: str, n_trials: int) -> Units:
        name = stimuli.identifier.partition('--')[0] if by_set else ''  # as it was before it was placed on a screen
        if name not in tables:
            raise RequestError(f'{identifier}: no features for stimulus set {name}; there are: {", ".join(tables)}')
        row, values = tables[name]
        absent = [i for i in stimuli.ids if i not in row]
        if absent:
            more = f' and {len(absent) - 1} more' if len(absent) > 1 else ''
            raise RequestError(
                f'{identifier}: no features for stimulus {absent[0]!r}{more} of {stimuli.identifier}; give a vector '
                'for each stimulus'
            )
        found = values[[row[i] for i in stimuli.ids]]
        numbers = np.arange(found.shape[1])
        columns = {'neuroid_id': np.array([f'{identifier}.{k}' for k in numbers]), 'neuroid_num': numbers}
        return Units(found[:, None], columns)

    return CommittedModel(identifier, visual_degrees, _digest(tables), {}, respond, places=False)


def from_file(path: Path, visual_degrees: float = 8) -> CommittedModel:
    """The features of an NPZ file with the arrays `stimulus_id` [stimulus] and `features` [stimulus, feature].

    Raises: RequestError for a file that is absent, damaged, or holds other arrays; as `recorded_features`.
    """
    expected = "expected an NPZ file with 'stimulus_id' [stimulus] and 'features' [stimulus, feature]"
    if not path.is_file():
        raise RequestError(f'no file of features {path}; {expected}')
    try:
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError) as error:
        raise RequestError(f'{path}: not read ({error}); {expected}') from error
    ids, features = arrays.get('stimulus_id'), arrays.get('features')
    if ids is None or features is None or ids.ndim != 1 or features.ndim != 2 or len(ids) != len(features):
        there = ', '.join(f'{name} {list(a.shape)}' for name, a in arrays.items()) or 'nothing'
        raise RequestError(f'{path}: holds {there}; {expected}')
    names = ids.astype(str).tolist()
    if len(set(names)) < len(names):
        raise RequestError(f'{path}: a stimulus_id comes several times; give each stimulus one vector')
    return recorded_features(files.slug(path.stem), dict(zip(names, features, strict=True)), visual_degrees)


def _checked(identifier: str, vectors: Vectors) -> tuple[dict[str, int], np.ndarray]:
    """Rows by stimulus, and f32 or f64 [stimulus, feature]."""
    arrays = [np.asarray(v).ravel() for v in vectors.values()]
    lengths = {len(a) for a in arrays}
    if len(lengths) != 1:
        raise RequestError(f'{identifier}: vectors of {sorted(lengths)} numbers; all must be as long')
    values = np.stack(arrays)
    values = values if values.dtype in (np.float32, np.float64) else values.astype(np.float32)
    wrong = [i for i, fine in zip(vectors, np.isfinite(values).all(1), strict=True) if not fine]
    if wrong:
        raise RequestError(f'{identifier}: the features of {wrong[0]!r} are not all finite; leave that stimulus out')
    return {stimulus: row for row, stimulus in enumerate(vectors)}, values


def _digest(tables: Mapping[str, tuple[dict[str, int], np.ndarray]]) -> str:
    """SHA-256 over the vectors; the order in which they were given does not matter."""
    whole = hashlib.sha256()
    for name, (row, values) in sorted(tables.items()):
        whole.update(f'{name} {values.dtype} {values.shape}\n'.encode())
        for stimulus in sorted(row):
            whole.update(f'{stimulus}\n'.encode() + values[row[stimulus]].tobytes())
    return whole.hexdigest()
