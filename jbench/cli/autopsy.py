"""`jbench report autopsy RESULT`: the run of a result file as `report.autopsy` looks at it, and its page."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jbench import files, targets
from jbench.data.load import prepared_set, protocols
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.load.sampling import class_weights
from jbench.report.autopsy import case as autopsy_case
from jbench.report.autopsy.case import Case, Loss, Network, Other
from jbench.report.autopsy.examine import examine
from jbench.report.autopsy.findings import Statement, findings
from jbench.report.autopsy.page import page
from jbench.report.dataset.facts import require
from jbench.report.text import as_json
from jbench.results import place, result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json
from jbench.spec.metrics import METRICS
from jbench.spec.objectives import OBJECTIVES
from jbench.targets import score
from jbench.train import losses
from jbench.train.losses import AXIS
from jbench.trained import TrainedModel, load_model, prepared_folder

WINDOWS, BYTES = 512, 128 << 20  # test windows that a network is looked at with, at most
MEAN_OF = 256  # training windows
BATCHES = 3  # of training windows, for gradients
OTHERS = 12  # results that stand beside, at most


def write(
    path: Path, out: Path | None, model: str | None = None, say: Callable[[str], object] = lambda text: None
) -> tuple[Path, list[Statement]]:
    """Examine the run of a result file, and write its page and findings.

    Args:
        path: of `seed<k>.json` in a work folder.
        out: folder for `<model>-<key>-seed<k>.html` and `.json`, of a fold `<model>-<key>-<k>_of_<n>-seed<k>`; None:
            `<work folder>/autopsy`.
        model: the file of a network of one's own, as --model has it.
        say: told what is being computed.

    Returns: the path of the page, and the findings.
    Raises: FileNotFoundError; RequestError for a damaged result or one without predictions, for a network whose
        weights or prepared set are not there, without matplotlib, and, before anything is computed, for a folder that
        cannot be written.
    """
    require('jbench report autopsy')
    path = Path(path).absolute()
    case = load(path, model)
    home = place.home(path) / 'autopsy' if out is None else out
    _try_to_write(home)
    parts = examine(case, say)
    found = findings(case, parts)
    cell, fold = place.cell_folder(path), [path.parent.name] if place.is_fold(path) else []
    name = '-'.join([cell.parent.name, cell.name, *fold, path.stem])
    told = {'result': str(path), 'facts': case.facts, 'findings': [one._asdict() for one in found]}
    files.write_atomic(home / f'{name}.json', as_json(told).encode())
    return files.write_atomic(home / f'{name}.html', page(case, parts).encode()), found


def _try_to_write(home: Path) -> None:
    """Minutes of computing are not lost to a folder that refuses them. Raises: RequestError."""
    with files.explained(files.make_dir(home), 0), tempfile.TemporaryFile(dir=home):
        pass


def load(path: Path, model: str | None = None) -> Case:
    """The run of a result file. Raises: as `write`."""
    result = result_file.read(path)
    if result['kind'] != 'decoding' or result['predictions_sha256'] is None:
        raise RequestError(f'{path}: it holds no predictions (status {result["status"]}), so there is nothing to see')
    cell = from_json(Cell, result['config'], f'{path}: config')
    if cell.task.target.kind in OBJECTIVES:
        raise RequestError(f'{path}: of pretraining ({cell.task.full_name}); an autopsy is of tasks that have labels')
    is_network = cell.model.kind == 'network'
    trained = load_model(path, model=model) if is_network else None
    answers = result_file.load_predictions(path)
    data = _prepared(path, result, cell, needed=is_network)
    signal = cell_signal(result, path)
    signal = dataclasses.replace(signal, channel_mask='channel_mask' in cell.model.asks)
    network = None if trained is None or data is None else _network(trained, data, answers)
    kind = data.kind if data is not None else _kind(cell)
    return Case(
        facts=_facts(path, result, cell, answers, network),
        kind=kind,
        metric=cell.task.metric,
        level=cell.task.level,
        classes=tuple(result['classes']),
        answers=answers,
        chance=result['chance'],
        others=_others(path, result, answers, cell, kind),
        places=() if data is None else _places(data, answers['id']),
        signal=signal,
        start=cell.task.window.start if cell.task.window.stride is None else 0.0,
        head=autopsy_case.head(signal.ch_names) if cell.task.device == 'eeg' else None,
        network=network,
    )


def cell_signal(result: dict[str, Any], path: Path) -> Any:
    """The signal that a result was made from."""
    from jbench.spec.model import Signal

    return from_json(Signal, result['signal'], f'{path}: signal')


def _kind(cell: Cell) -> str:
    return targets.of(cell.task.target.kind).name


def _prepared(path: Path, result: dict[str, Any], cell: Cell, *, needed: bool) -> PreparedSet | None:
    try:
        return prepared_set.open_set(prepared_folder(path, result, cell), protocols.of_seed(cell.task, result['seed']))
    except RequestError:
        if needed:
            raise
        return None


def _network(trained: TrainedModel, data: PreparedSet, answers: dict[str, np.ndarray]) -> Network:
    """A network with test windows of its own answers. Raises: RequestError where the set no longer has them."""
    at = np.searchsorted(order := np.sort(data.ids), answers['id'])
    where = np.argsort(data.ids)
    if not np.array_equal(order[np.minimum(at, len(order) - 1)], answers['id']):
        raise RequestError(f'{trained.path}: its test windows are not in the prepared set; train it again')
    size = 4 * trained.signal.n_chans * trained.signal.n_times
    rows = autopsy_case.some(len(answers['id']), max(1, min(WINDOWS, BYTES // size)))
    x = prepared_set.read(data, where[at[rows]], data.clamp)
    train = data.rows('train')
    few = train[autopsy_case.some(len(train), max(1, min(MEAN_OF, BYTES // size)))]
    usual = prepared_set.read(data, few, data.clamp).mean((0, 2))
    scaling = trained.result['scaling']
    return Network(
        trained.model,
        trained.variables,
        x,
        rows,
        usual,
        None if scaling is None else (np.array(scaling['mean']), np.array(scaling['sd'])),
        loss(trained, data),
        _batches(trained, data, train),
    )


def loss(trained: TrainedModel, data: PreparedSet) -> Loss:
    """The loss that a network was trained with, of a batch in training mode, dropout included."""
    recipe, stats = trained.cell.task.recipe, trained.variables['batch_stats']
    train = data.y[data.rows('train')]
    weights = np.ones(data.n_out, np.float32)
    if recipe.class_weights:
        weights = class_weights(train, data.kind, n_out=data.n_out)
    key = jax.random.key_data(jax.random.key(0, impl='threefry2x32'))

    def of_batch(params: Any, batch: Any) -> jax.Array:
        def device(batch: Any) -> jax.Array:
            variables = {'params': params, 'batch_stats': stats}
            outputs = trained.model.apply(variables, batch, train=True, key=key).outputs
            values, weight = losses.of(recipe)(outputs, batch, jnp.asarray(weights))
            return recipe.loss_scale * values.sum() / weight.sum()

        return jax.vmap(device, axis_name=AXIS)(jax.tree.map(lambda a: a[None], batch))[0]

    return of_batch


def _batches(trained: TrainedModel, data: PreparedSet, train: np.ndarray) -> tuple[dict[str, Any], ...]:
    """A few batches of training windows, drawn."""
    size, found = min(trained.cell.task.recipe.batch_size, len(train)), []
    drawn = np.random.default_rng(0).permutation(train)
    for first in range(0, min(BATCHES, max(1, len(train) // size)) * size, size):
        rows = drawn[first : first + size]
        batch = autopsy_case.given(
            dataclasses.replace(trained.signal, channel_mask='channel_mask' in trained.spec.asks),
            jnp.asarray(prepared_set.read(data, rows, data.clamp)),
        )
        found.append(batch | {'y': jnp.asarray(data.learnt(data.y[rows]))})
    return tuple(found)


def _places(data: PreparedSet, ids: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Recording, and onset in s, of windows."""
    index = files.read_npz(data.folder / 'index.npz')
    row = {int(i): k for k, i in enumerate(index['window.id'])}
    event, onset = index['window.event'], index['window.onset']
    columns = [index[f'event.{name}'] for name in ('subject', 'session', 'run')]
    found = []
    for i in ids:
        k = row.get(int(i))
        if k is None:
            found.append(('', float('nan')))
        else:
            words = zip(('subject', 'session', 'run'), (c[event[k]] for c in columns), strict=True)
            found.append((', '.join(f'{a} {b}' for a, b in words if b), float(onset[k])))
    return tuple(found)


def _others(
    path: Path, result: dict[str, Any], answers: dict[str, np.ndarray], cell: Cell, kind: str
) -> tuple[Other, ...]:
    """Results in the same work folder that answer the same windows, each with this run's headline; of the seeds of one,
    the same or the first. Beside those of a fold also the same folds of others."""
    if place.work_folder(path) is None:
        return ()
    best: dict[Path, Path] = {}
    dataset, below = place.cell_folder(path).parents[1], path.parent.relative_to(place.cell_folder(path))
    for there in sorted({*dataset.glob('*/*/seed*.json'), *dataset.glob(f'*/*/{below}/seed*.json')}):
        if there.parent != path.parent and (there.parent not in best or there.name == path.name):
            best[there.parent] = there
    found = []
    for there in best.values():
        try:
            other = result_file.read(there)
            if other['split_hash'] != result['split_hash'] or other['predictions_sha256'] is None:
                continue
            theirs = result_file.load_predictions(there)
        except (FileNotFoundError, RequestError):
            continue  # not this result's fault; `verify` tells it
        head, measured = other['headline'], targets.of(kind).measured
        same = kind in METRICS[head['name']].kinds and (theirs['outputs'].shape == answers['outputs'].shape or measured)
        if np.array_equal(theirs['id'], answers['id']) and same:
            custom = other['protocol']['custom']
            name = other['model'] + (
                f' ({", ".join(custom) or "no changes"})' if custom != result['protocol']['custom'] else ''
            )
            value = head['value']
            if (head['name'], head['level']) != (cell.task.metric, cell.task.level):
                value = score.level_score(kind, cell.task.metric, {**theirs, 'y': answers['y']}, cell.task.level)
            found.append(Other(name, value, theirs['outputs']))
    return tuple(found[:OTHERS])


def _facts(
    path: Path, result: dict[str, Any], cell: Cell, answers: dict[str, np.ndarray], network: Network | None
) -> dict[str, str]:
    head, n = result['headline'], len(answers['id'])
    value = 'not defined' if head['value'] is None else f'{head["value"]:.4f}'
    looked = f'; the network is looked at with {len(network.rows)}' if network is not None else ''
    return {
        'task': f'{result["task"]}@{result["task_version"]}, {result["dataset"]}',
        'data': 'SIMULATED: generated recordings' if result['simulated'] else 'measured recordings',
        'model': cell.model.full_name,
        'seed': str(result['seed']),
        'headline': f'{head["name"]} {value}, of each {head["level"]}',
        'test': f'{n} windows of {len(set(answers["subject"].tolist()))} subjects{looked}',
        'changes': ', '.join(result['protocol']['custom']) or 'none',
        **marks(result),
        'result': str(path),
    }


def marks(result: dict[str, Any]) -> dict[str, str]:
    """Why a result does not count, beside being simulated; {} for one that does."""
    said = ['DEBUG: a try on few windows'] if result['protocol']['debug'] or result['status'] == 'debug' else []
    said += [f'PARTIAL: {part}' for part in result['protocol']['partial']]
    return {'not counted': '; '.join(said)} if said else {}
