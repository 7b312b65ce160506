"""The predictions beside a result file: one NPZ a seed, from which every score is computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.spec.errors import RequestError
from jbench.targets.packed import Packed, integers

KINDS = {'i': 'integers', 'f': 'floats', 'U': 'text', 'S': 'packed text'}
SHAPES = {  # of each array: kinds of numpy's types, and how many dimensions it may have
    'id': ('i', (1,)),
    'outputs': ('f', (2,)),
    'y': ('ifS', (1, 2)),
    'subject': ('U', (1,)),
    'group': ('U', (1,)),
    'cell': ('U', (1,)),
    'vectors': ('f', (2,)),
}


def load_predictions(path: str | Path, *, packed: bool = False) -> dict[str, Any]:
    """The arrays `id`, `outputs`, `y`, `subject` beside a result file, sorted by id (`read` checks their digest); of
    embeddings also `group`, and `vectors` of the stimuli that `y` counts; of streams also `cell`. With `packed`, large
    targets stay so (`targets.Packed`), and scores unpack some windows at a time.

    Raises: RequestError for a file that is no such archive, or with an array of another kind or length.
    """
    npz = Path(path).with_suffix('.npz')
    arrays = files.read_npz(npz)
    if set(arrays) - {'group', 'vectors', 'cell'} != {'id', 'outputs', 'y', 'subject'}:
        raise RequestError(f'{npz}: expected the arrays id, outputs, y, subject, found {sorted(arrays)}; {files.ANEW}')
    n = len(arrays['id']) if arrays['id'].ndim else 0
    for name, array in arrays.items():
        kinds, axes = SHAPES[name]
        rows = n if name != 'vectors' else len(array) if array.ndim else 0
        if array.dtype.kind not in kinds or array.ndim not in axes or len(array) != rows or not n:
            wanted = f'{" or ".join(KINDS[k] for k in kinds)} in {" or ".join(map(str, axes))} dimensions'
            rest = '' if name == 'vectors' else ', as many as ids and at least one'
            raise RequestError(
                f'{npz}: {name}: expected {wanted}{rest}; found {array.dtype} {list(array.shape)}, {n} ids; '
                f'{files.ANEW}'
            )
    if (np.diff(arrays['id']) <= 0).any():
        raise RequestError(f'{npz}: id: expected each once, in ascending order; {files.ANEW}')
    try:
        arrays = opened(arrays)
        return arrays if packed else arrays | {'y': np.asarray(arrays['y'])}
    except ValueError as error:
        raise RequestError(f'{npz}: y: {error}; {files.ANEW}') from None


def opened(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays as they are stored, their targets as scores take them. Raises: ValueError for a damaged target."""
    y = arrays['y']
    if y.dtype.kind != 'S' or not len(y):
        return dict(arrays)
    width = integers(y[0].decode()).size
    return {**arrays, 'y': Packed(lambda rows: [text.decode() for text in y[rows].tolist()], np.arange(len(y)), width)}


def arrange(predictions: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Predictions as they are stored: little-endian, outputs float32, all arrays sorted by id.

    Raises: ValueError for arrays of different length, repeated ids, or targets that are not numbers.
    """
    ids = np.asarray(predictions['id']).astype('<i8')
    y = predictions['y']
    y = np.array([text.encode() for text in y.texts()]) if isinstance(y, Packed) else np.asarray(y)
    types = {'b': '<i8', 'i': '<i8', 'u': '<i8', 'f': f'<f{y.dtype.itemsize}', 'S': y.dtype.str}
    arrays = {
        'id': ids,
        'outputs': np.asarray(predictions['outputs']).astype('<f4'),
        'y': y.astype(types[y.dtype.kind], copy=False),
        'subject': np.asarray([str(s) for s in predictions['subject']], dtype='<U'),
    }
    for name in ('group', 'cell'):
        if name in predictions:
            arrays[name] = np.asarray([str(g) for g in predictions[name]], dtype='<U')
    if len({len(array) for array in arrays.values()}) != 1 or len(np.unique(ids)) != len(ids):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(f'predictions differ in length, or ids are repeated: {shapes}, {len(np.unique(ids))} ids')
    order = np.argsort(ids)
    arrays = {name: np.ascontiguousarray(array[order]) for name, array in arrays.items()}
    if 'vectors' in predictions:  # those that occur
        shown, number = np.unique(arrays['y'], return_inverse=True)
        arrays |= {'y': number.astype('<i8'), 'vectors': np.asarray(predictions['vectors'])[shown].astype('<f4')}
    return arrays
