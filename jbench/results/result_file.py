"""Result files: a seed has one JSON, one NPZ of predictions, and its weights. All that a person sees comes from them.

A result is a plain dict, checked against `result.schema.json` when it is written and when it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.results import checked, forged, older, place
from jbench.results.predictions import arrange, load_predictions, opened
from jbench.results.schema import SCHEMA, as_text, mismatches, plain, schema
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json
from jbench.spec.model import ModelSpec
from jbench.spec.task import full_name
from jbench.stores import results as stored
from jbench.targets import score

BESIDE = ('.npz', '.safetensors')  # files of a seed: predictions, and the variables that were tested
SCORES = ('headline', 'normalised', 'chance', 'metrics', 'per_subject')  # the fields that `rescore` computes


def result_dir(workdir: str | Path, cell: Cell) -> Path:
    """Where the seeds of a cell lie: <workdir>/results/<task>@<version>/<dataset>/<model>/<key>."""
    task = f'{cell.task.full_name}@{cell.task.version}'
    return Path(
        workdir, 'results', files.slug(task), files.slug(cell.dataset.name), files.slug(cell.model.full_name), cell.key
    )


def write(
    folder: str | Path, result: Mapping[str, Any], predictions: Mapping[str, Any] | None, weights: bytes | None = None
) -> dict[str, Any]:
    """Write seed<k>.npz and seed<k>.safetensors, then seed<k>.json; each is whole or absent.

    Args:
      folder: from `result_dir`.
      result: the fields of the schema. Those in `SCORES` are computed here from the predictions as stored, and so are
        `schema`, `weights` and the digests; `dummy` is read.
      predictions: `id` int [N], `outputs` float [N, K], `y` [N] or [N, K], `subject` text [N], in any order; of
        embeddings also `group` text [N] and `vectors` float [stimuli, K]; None for a failed seed (then the scores of
        `result` are kept, empty where it has none).
      weights: the tested variables as the bytes of a safetensors file; None: none are kept.

    Returns: the result as written.

    Raises: RequestError where the disk refuses; ValueError for a result that the schema does not allow.
    """
    full, beside = whole(result, predictions, weights)
    path = Path(folder, f'seed{full["seed"]}.json')
    _write_beside(path, beside)
    files.write_atomic(path, as_text(full))
    _remove_beside(path, beside)
    return full


def write_if_absent(
    folder: str | Path, result: Mapping[str, Any], predictions: Mapping[str, Any] | None, weights: bytes | None = None
) -> tuple[dict[str, Any], bool]:
    """As `write`, unless a result that counts (see `finished`) is there; of many that try at once, one writes: on a
    disk that knows locks.

    Returns: the result that is there in the end, and whether it is the one given.

    Raises: as `write`.
    """
    full, beside = whole(result, predictions, weights)
    path = Path(folder, f'seed{full["seed"]}.json')
    with files.locked(path.with_name(f'.{path.stem}.lock')):
        there, _ = finished(folder, full['seed'], full.get('prepared_hash', ''))
        if there is None:
            path.unlink(missing_ok=True)  # one that does not count
            _write_beside(path, beside)
            if files.write_absent(path, as_text(full)):
                _remove_beside(path, beside)
                return full, True
            there = read(path)
    return there, False


def read(path: str | Path) -> dict[str, Any]:
    """A result file, checked: JSON, schema, its own digest, and the digest of the predictions beside it.

    Weights are large, and may be removed: `verify` and `load_model` alone look at them. A result of an older schema is
    given the fields that came later.

    Raises: FileNotFoundError; RequestError naming the file, the field and what was expected.
    """
    path = Path(path)
    result = checked.read(path)
    expected, npz = result.get('predictions_sha256'), path.with_suffix('.npz')
    if expected is not None and not npz.is_file():
        raise RequestError(f'{npz}: no such file: put the predictions of {path.name} there, or run its command again')
    if expected is not None and (actual := files.sha256_file(npz)) != expected:
        raise RequestError(f'{npz}: expected predictions_sha256 {expected}, found {actual}; {files.ANEW}')
    return result


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
    if result.get('prepared_hash', prepared_hash) != prepared_hash:
        old = result['prepared_hash']
        return None, f'{path}: made from other prepared data ({old}, now {prepared_hash}); it runs again'
    return result, ''


def rescore(path: str | Path) -> dict[str, Any]:
    """The fields `SCORES` of a result file, computed again from its predictions: equal to the last digit.

    Raises: FileNotFoundError; RequestError for a damaged file, or one without predictions.
    """
    result = read(path)
    if result.get('predictions_sha256') is None:
        raise RequestError(f'{path}: holds no predictions (status {result["status"]}), so there is nothing to rescore')
    return plain(_score_arrays(result, load_predictions(path, packed=True)), '', [])


def verify(path: str | Path, *, predictions: bool = True) -> list[str]:
    """What speaks against a result that somebody hands in, one text a problem; [] for none.

    Beyond what `read` checks: its scores follow from its predictions, its words from its config, no field contradicts
    another (`forged.problems`), and it lies where it belongs. What nobody can tell: docs/results_repository.md;
    whether its task is the registered one, `jbench.report.verify.problems`.
    `predictions`: whether they must lie beside it; without them its scores are taken as they are written.
    """
    path = Path(path)
    try:
        result = read(path) if predictions else checked.read(path)
        task, dataset = result['config']['task'], result['config']['dataset']
        cell, old = result['config'], result['schema'] == 1
        true = {
            'kind': 'decoding',
            'task': full_name(task['device'], task['name']),
            'task_version': task['version'],
            'dataset': dataset['name'],
            'simulated': dataset['simulated'],
            'model': result['model'] if old else from_json(ModelSpec, cell['model'], 'config.model').full_name,
            'pretraining': [] if old else cell['model']['pretraining'],
            'protocol': result['protocol'] if old else {**result['protocol'], **_asked(cell)},
            'key': older.key(result) if old else from_json(Cell, cell, 'config').key,
            'weights': result['weights'] and {**result['weights'], 'sha256': _digest_of_weights(path, result)},
        }
        arrays = load_predictions(path, packed=True) if predictions and result['predictions_sha256'] else None
        if predictions:
            true |= rescore(path)
        if arrays is not None:
            true |= _counted(result, arrays)
        others = [f'{path}: {problem}' for problem in forged.problems(path, result, arrays)]
        others += [f'{path}: belongs at {there}'] if (there := place.expected(path, result)) else []
    except FileNotFoundError:
        return [f'{path}: {checked.absent(path)}']
    except RequestError as error:
        return [str(error)]
    except (KeyError, TypeError, ValueError) as error:  # predictions or a config that no run writes
        return [f'{path}: its scores cannot be computed: {type(error).__name__}: {error}']
    wrong = [f'{path}: {k}: written {result[k]}, expected {v}' for k, v in true.items() if result[k] != v]
    return wrong + others


def _counted(result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """What of a result follows from its predictions, apart from the scores."""
    n, subjects = len(arrays['id']), list(dict.fromkeys(arrays['subject'].tolist()))
    records = {**result['n_records'], 'test': n, 'evaluated': n}
    return {'n_records': records, 'subjects': {**result['subjects'], 'test': subjects}}


def _asked(cell: Mapping[str, Any]) -> dict[str, Any]:
    """What of a protocol follows from a config."""
    custom = [f'{path}={value}' for path, value in cell['overrides']]
    if cell.get('companions'):
        custom.append(f'companions={" + ".join(name for name, _ in cell["companions"])}')
    return {'debug': cell['debug'], 'custom': custom}


def _digest_of_weights(path: Path, result: Mapping[str, Any]) -> str:
    """That of the file beside a result; where it was removed, the written one."""
    kept = path.with_suffix('.safetensors')
    return files.sha256_file(kept) if kept.exists() else str(result['weights']['sha256'])


def load_all(workdir: str | Path, damaged: Callable[[str], object] | None = None) -> list[dict[str, Any]]:
    """Every result under a work folder, in the order of the paths.

    Args:
      workdir: as given to the command.
      damaged: called with a text on each damaged file (`print`, say); the others are returned.

    Raises: RequestError naming all damaged files at once, where `damaged` is not given.
    """
    stored.bring(Path(workdir))
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


def whole(
    result: Mapping[str, Any], predictions: Mapping[str, Any] | None, weights: bytes | None
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `write` would write: a result with every field that is computed, and the files beside it by their suffix.
    Raises: ValueError."""
    full = {'kind': 'decoding', 'pretraining': [], 'attachments': {}, **result}
    full |= {'schema': SCHEMA, 'weights': None}
    beside: dict[str, bytes] = {}
    if full['kind'] == 'decoding':
        full = {'dummy': None, 'resumed_at': [], **_no_scores(full), **full, 'predictions_sha256': None}
    if predictions is not None:
        decoding = full['kind'] == 'decoding'  # of alignment the arrays come as they are kept, its scores are in `full`
        arrays = arrange(predictions) if decoding else dict(predictions)
        beside['.npz'] = files.npz_bytes(arrays)
        full |= _score_arrays(full, opened(arrays)) if decoding else {}
        full['predictions_sha256'] = hashlib.sha256(beside['.npz']).hexdigest()
    if weights is not None:
        beside['.safetensors'] = weights
        full['weights'] = {'sha256': hashlib.sha256(weights).hexdigest(), 'bytes': len(weights)}
    null: list[str] = []
    full = plain(full, '', null)
    full['warnings'] = list(dict.fromkeys([*full.get('warnings', []), *_undefined(full, null)]))
    full['sha256'] = checked.digest(full)
    if problems := list(mismatches(full, schema())):
        raise ValueError(f'seed {full.get("seed")} of {full.get("model")}: ' + '; '.join(problems))
    return full, beside


def _write_beside(path: Path, beside: Mapping[str, bytes]) -> None:
    for suffix, content in beside.items():
        files.write_atomic(path.with_suffix(suffix), content)


def _remove_beside(path: Path, beside: Mapping[str, bytes]) -> None:
    """Remove what an earlier result of the seed had and this one has not."""
    for suffix in BESIDE:
        if suffix not in beside:
            path.with_suffix(suffix).unlink(missing_ok=True)


def _score_arrays(result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """`score` of arrays as stored, asked as the result's config says."""
    task = to_json(result['config'])['task']
    scores = score.score(task['target']['kind'], task['metric'], arrays, result['dummy'], task.get('level', 'window'))
    if result['schema'] < 3:
        scores |= {'headline': older.without_interval(scores['headline']), 'per_subject': result['per_subject']}
    return scores


def _no_scores(result: Mapping[str, Any]) -> dict[str, Any]:
    """The fields `SCORES` of a seed that gave no predictions."""
    task = to_json(result['config'])['task']
    name = task['metric']
    empty = dict.fromkeys(('value', 'n_subjects', 'interval', 'differs_from_chance'))
    headline = {'name': name, 'better': score.METRICS[name].better, 'level': task.get('level', 'window'), **empty}
    return {'headline': headline, 'normalised': None, 'chance': None, 'metrics': {}, 'per_subject': {}}


def _undefined(result: Mapping[str, Any], null: list[str]) -> list[str]:
    """Warnings about scores that do not exist: null is never left without a word."""
    names = [name for name, value in result['metrics'].items() if value is None]
    found = [f'not finite, written as null: {_some(null)}'] if null else []
    found += [f'not defined on these windows, so null: {_some(names)}'] if names else []
    tested = result.get('subjects', {}).get('test', []) if result['metrics'] else []
    silent = sorted(set(tested) - set(result.get('per_subject', tested)))
    return found + ([f'no score of their own for {len(silent)} test subjects: {_some(silent)}'] if silent else [])


def _some(names: list[str]) -> str:
    """The first names of a list, and how many more there are."""
    return ', '.join(names[:5]) + (f' and {len(names) - 5} more' if len(names) > 5 else '')
