"""Result files: one JSON and one NPZ of predictions a seed. Everything that a person sees is computed from them.

A result is a plain dict, checked against `result.schema.json` when it is written and when it is read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.spec.cell import Cell, cell_key
from jbench.spec.errors import RequestError
from jbench.spec.identity import canonical, to_json
from jbench.spec.task import full_name
from jbench.targets import score
from jbench.version import __version__

SCHEMA = 1
SCORES = ('headline', 'normalised', 'chance', 'metrics', 'per_subject')  # the fields that `rescore` computes
PACKAGES = (  # installed versions that can change a number
    *('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'grain', 'array_record', 'tensorflow-datasets'),
    *('numpy', 'scipy', 'mne', 'scikit-learn', 'pyriemann'),
)
REMEDY = 'remove it and run the same command again'


def result_dir(workdir: str | Path, cell: Cell) -> Path:
    """Where the seeds of a cell lie: <workdir>/results/<task>@<version>/<dataset>/<model>/<key>."""
    task = f'{cell.task.full_name}@{cell.task.version}'
    return Path(workdir, 'results', _slug(task), _slug(cell.dataset.name), _slug(cell.model.name), cell.key)


def write(folder: str | Path, result: Mapping[str, Any], predictions: Mapping[str, Any] | None) -> dict[str, Any]:
    """Write seed<k>.npz, then seed<k>.json; each is whole or absent.

    Args:
      folder: from `result_dir`.
      result: the fields of the schema. Those in `SCORES` are computed here from the predictions as stored, and so are
        `schema` and the digests; `dummy` is read.
      predictions: `id` int [N], `outputs` float [N, K], `y` [N] or [N, K], `subject` text [N], in any order; of
        embeddings also `group` text [N] and `vectors` float [stimuli, K]; None for a failed seed (then the scores of
        `result` are kept, empty where it has none).

    Returns: the result as written.

    Raises: RequestError where the disk refuses; ValueError for a result that the schema does not allow.
    """
    path = Path(folder, f'seed{result["seed"]}.json')
    full = {'dummy': None, **_no_scores(result), **result, 'schema': SCHEMA, 'predictions_sha256': None}
    blob = b''
    if predictions is not None:
        arrays = arrange(predictions)
        blob = files.npz_bytes(arrays)
        full.update(_score_arrays(full, arrays), predictions_sha256=hashlib.sha256(blob).hexdigest())
    null: list[str] = []
    full = _plain(full, '', null)
    full['warnings'] = list(dict.fromkeys([*full.get('warnings', []), *_undefined(full, null)]))
    full['sha256'] = _digest(full)
    if problems := list(files.mismatches(full, schema())):
        raise ValueError(f'{path}: ' + '; '.join(problems))
    if blob:
        files.write_atomic(path.with_suffix('.npz'), blob)
    files.write_atomic(path, (json.dumps(full, indent=1, sort_keys=True, allow_nan=False) + '\n').encode())
    if not blob:
        path.with_suffix('.npz').unlink(missing_ok=True)
    return full


def read(path: str | Path) -> dict[str, Any]:
    """A result file, checked: JSON, schema, its own digest, and the digest of the predictions beside it.

    Raises: FileNotFoundError; RequestError naming the file, the field and what was expected.
    """
    path = Path(path)
    result = files.read_json(path)
    version = result.get('schema') if isinstance(result, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise RequestError(f'{path}: expected schema {SCHEMA}, found the newer {version}: update jbench, or {REMEDY}')
    if problems := list(files.mismatches(result, schema())):
        raise RequestError(f'{path}: {"; ".join(problems)}; {REMEDY}')
    own = _digest(result)
    if own != result['sha256']:
        raise RequestError(f'{path}: changed since written: expected sha256 {result["sha256"]}, found {own}; {REMEDY}')
    expected, npz = result['predictions_sha256'], path.with_suffix('.npz')
    if expected is not None:
        actual = files.sha256_file(npz) if npz.is_file() else 'no such file'
        if actual != expected:
            raise RequestError(f'{npz}: expected predictions_sha256 {expected}, found {actual}; {REMEDY}')
    return result


def load_predictions(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays `id`, `outputs`, `y`, `subject` beside a result file, sorted by id (`read` checks their digest); of
    embeddings also `group`, and `vectors` of the stimuli that `y` counts.

    Raises: RequestError for a file that is no such archive.
    """
    npz = Path(path).with_suffix('.npz')
    arrays = files.read_npz(npz)
    if set(arrays) - {'group', 'vectors'} != {'id', 'outputs', 'y', 'subject'}:
        raise RequestError(f'{npz}: expected the arrays id, outputs, y, subject, found {sorted(arrays)}; {REMEDY}')
    return arrays


def finished(folder: str | Path, seed: int, prepared_hash: str) -> tuple[dict[str, Any] | None, str]:
    """Whether a seed need not run again.

    Returns: (result, '') for a whole file of a finished seed on the same prepared data; (None, '') where there is
      none; (None, reason) where there is one that does not count: the caller prints the reason.
    """
    path = Path(folder, f'seed{seed}.json')
    try:
        result = read(path)
    except FileNotFoundError:
        return None, ''
    except RequestError as error:
        return None, f'{error} (it is replaced now)'
    if result['status'] == 'failed':
        return None, f'{path}: this seed failed before; it runs again'
    if result['prepared_hash'] != prepared_hash:
        old = result['prepared_hash']
        return None, f'{path}: made from other prepared data ({old}, now {prepared_hash}); it runs again'
    return result, ''


def rescore(path: str | Path) -> dict[str, Any]:
    """The fields `SCORES` of a result file, computed again from its predictions: equal to the last digit.

    Raises: FileNotFoundError; RequestError for a damaged file, or one without predictions.
    """
    result = read(path)
    if result['predictions_sha256'] is None:
        raise RequestError(f'{path}: holds no predictions (status {result["status"]}), so there is nothing to rescore')
    return _plain(_score_arrays(result, load_predictions(path)), '', [])


def verify(path: str | Path) -> list[str]:
    """What speaks against a result that somebody hands in, one text a problem; [] for none.

    Beyond what `read` checks: its scores follow from its predictions, its words from its config, and it lies where it
    belongs. Which data and which seed gave the predictions, nobody can tell from the file.
    """
    path = Path(path)
    try:
        result = read(path)
        again, arrays = rescore(path), load_predictions(path)
        task, dataset = result['config']['task'], result['config']['dataset']
        true = {
            **again,
            'task': full_name(task['device'], task['name']),
            'task_version': task['version'],
            'dataset': dataset['name'],
            'simulated': dataset['simulated'],
            'key': cell_key(result['config']),
            'n_records': {**result['n_records'], 'test': len(arrays['id']), 'evaluated': len(arrays['id'])},
            'subjects': {**result['subjects'], 'test': list(dict.fromkeys(arrays['subject'].tolist()))},
        }
    except (FileNotFoundError, RequestError) as error:
        return [str(error)]
    except (KeyError, TypeError, ValueError) as error:  # predictions or a config that no run writes
        return [f'{path}: its scores cannot be computed: {type(error).__name__}: {error}']
    names = [_slug(f'{result["task"]}@{result["task_version"]}'), *(_slug(result[k]) for k in ('dataset', 'model'))]
    place = Path(*names, result['key'], f'seed{result["seed"]}.json')
    wrong = [f'{path}: {k}: written {result[k]}, expected {v}' for k, v in true.items() if result[k] != v]
    return wrong + ([] if path.parts[-5:] == place.parts else [f'{path}: belongs at .../{place}'])


def arrange(predictions: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Predictions as they are stored: little-endian, outputs float32, all arrays sorted by id.

    Raises: ValueError for arrays of different length, repeated ids, or targets that are not numbers.
    """
    ids = np.asarray(predictions['id']).astype('<i8')
    y = np.asarray(predictions['y'])
    arrays = {
        'id': ids,
        'outputs': np.asarray(predictions['outputs']).astype('<f4'),
        'y': y.astype({'b': '<i8', 'i': '<i8', 'u': '<i8', 'f': f'<f{y.dtype.itemsize}'}[y.dtype.kind]),
        'subject': np.asarray([str(s) for s in predictions['subject']], dtype='<U'),
    }
    if 'group' in predictions:
        arrays['group'] = np.asarray([str(g) for g in predictions['group']], dtype='<U')
    if len({len(array) for array in arrays.values()}) != 1 or len(np.unique(ids)) != len(ids):
        shapes = {name: array.shape for name, array in arrays.items()}
        raise ValueError(f'predictions differ in length, or ids are repeated: {shapes}, {len(np.unique(ids))} ids')
    order = np.argsort(ids)
    arrays = {name: np.ascontiguousarray(array[order]) for name, array in arrays.items()}
    if 'vectors' in predictions:  # those that occur
        shown, number = np.unique(arrays['y'], return_inverse=True)
        arrays |= {'y': number.astype('<i8'), 'vectors': np.asarray(predictions['vectors'])[shown].astype('<f4')}
    return arrays


def versions() -> dict[str, str]:
    """Versions of jbench, Python and the packages that can change a number; nothing is imported for it."""
    found = {'jbench': __version__, 'python': platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def load_all(workdir: str | Path, damaged: Callable[[str], object] | None = None) -> list[dict[str, Any]]:
    """Every result under a work folder, in the order of the paths.

    Args:
      workdir: as given to the command.
      damaged: called with a text on each damaged file (`print`, say); the others are returned.

    Raises: RequestError naming all damaged files at once, where `damaged` is not given.
    """
    results, problems = [], []
    for path in sorted(Path(workdir, 'results').glob('*/*/*/*/seed*.json')):
        try:
            results.append(read(path))
        except RequestError as error:
            problems.append(str(error))
    if damaged is not None:
        for problem in problems:
            damaged(problem)
    elif problems:
        remedy = 'load_all(workdir, damaged=print) names them and returns the others'
        raise RequestError(f'{len(problems)} damaged result files; {remedy}:\n  ' + '\n  '.join(problems))
    return results


@functools.cache
def schema() -> dict[str, Any]:
    """The published JSON Schema of a result file."""
    return json.loads(Path(__file__).with_name('result.schema.json').read_text(encoding='utf-8'))


def _score_arrays(result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """`score` of arrays as stored, asked as the result's config says."""
    task = to_json(result['config'])['task']
    scores = score.score(task['target']['kind'], task['metric'], arrays, result['dummy'], task.get('level', 'window'))
    if 'level' not in task:  # older results say nothing of it
        del scores['headline']['level']
    return scores


def _no_scores(result: Mapping[str, Any]) -> dict[str, Any]:
    """The fields `SCORES` of a seed that gave no predictions."""
    task = to_json(result['config'])['task']
    name = task['metric']
    empty = dict.fromkeys(('value', 'interval', 'chance_over_subjects', 'differs_from_chance'))
    headline = {'name': name, 'better': score.METRICS[name].better, 'level': task.get('level', 'window'), **empty}
    return {'headline': headline, 'normalised': None, 'chance': None, 'metrics': {}, 'per_subject': {}}


def _undefined(result: Mapping[str, Any], null: list[str]) -> list[str]:
    """Warnings about scores that do not exist: null is never left without a word."""
    names = [name for name, value in result['metrics'].items() if value is None]
    found = [f'not finite, written as null: {_some(null)}'] if null else []
    found += [f'not defined on these windows, so null: {_some(names)}'] if names else []
    tested = result.get('subjects', {}).get('test', []) if result['metrics'] else []
    silent = sorted(set(tested) - set(result['per_subject']))
    return found + ([f'no score of their own for {len(silent)} test subjects: {_some(silent)}'] if silent else [])


def _plain(value: Any, where: str, null: list[str]) -> Any:
    """A value of plain JSON types; numbers that JSON does not have become null, and their place is noted in `null`."""
    value = to_json(value)
    if isinstance(value, dict):
        return {str(k): _plain(v, f'{where}.{k}'.lstrip('.'), null) for k, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(v, f'{where}[{i}]', null) for i, v in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        null.append(where)
        return None
    return value


def _some(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    return ', '.join(names[:5]) + (f' and {len(names) - 5} more' if len(names) > 5 else '')


def _digest(result: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a result without the digest itself."""
    return hashlib.sha256(canonical({k: v for k, v in result.items() if k != 'sha256'}).encode()).hexdigest()


def _slug(name: str) -> str:
    """A name as one safe path component."""
    return re.sub(r'[^A-Za-z0-9@._-]+', '_', name).lstrip('._') or '_'
