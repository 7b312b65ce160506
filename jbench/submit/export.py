"""A trained network as arrays and settings that its twin answers from, or why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files
from jbench.models.classic import deep4net
from jbench.models.foundation import labram, labram_channels, steegformer, steegformer_channels
from jbench.plan import cells, select
from jbench.results import checked
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json
from jbench.spec.recipe import DEFAULT, PROBES
from jbench.submit.tracks import TRACKS, Track
from jbench.trained import TrainedModel

MICRO = {'micro': 1.0, 'none': 1e-6}  # scalers of a single factor: from uV to what a network of each was given
HOW_LEARNT = ('scaled', 'steps', 'answers')  # fields of a target that change no question
Arrays = dict[str, np.ndarray]
Beside = tuple[dict[str, Any], Arrays]  # settings and arrays of a twin beside the weights


def _plain(model: TrainedModel) -> Beside:
    return {}, {}


def _deep4net(model: TrainedModel) -> Beside:
    return {'pool': deep4net.sizes(model.signal.n_times).pool}, {}


def _steegformer(model: TrainedModel) -> Beside:
    size = steegformer.SIZES[model.spec.name]
    names, known = model.signal.ch_names, steegformer_channels.channels(model.signal.ch_names)
    rows = {i: steegformer_channels.INDEX[known[name].upper()] for i, name in enumerate(names) if name in known}
    codes = steegformer.codes(model.signal.n_times // steegformer.PATCH + 1, size.width).astype(np.float32)
    pool = dict(model.spec.options).get('pool', 'avg')
    arrays = {'used': np.array(list(rows)), 'rows': np.array(list(rows.values())), 'codes': codes}
    return {'layers': size.layers, 'heads': size.heads, 'pool': pool}, arrays


def _labram(model: TrainedModel) -> Beside:
    known = labram_channels.channels(model.signal.ch_names)
    index = {name: i + 1 for i, name in enumerate(labram_channels.NAMES)}
    rows = {i: index[known[name]] for i, name in enumerate(model.signal.ch_names) if name in known}
    stretch = labram.stretch(labram.n_patches(model.signal.n_times)).astype(np.float32)
    return {}, {'used': np.array(list(rows)), 'rows': np.array(list(rows.values())), 'stretch': stretch}


TWINS: dict[str, tuple[str, Callable[[TrainedModel], Beside]]] = {  # of a model: its twin, and what that needs beside
    'eegnet': ('eegnet', _plain),
    'shallow_fbcsp_net': ('shallow_fbcsp_net', _plain),
    'deep4net': ('deep4net', _deep4net),
    'eegconformer': ('eegconformer', _plain),
    'ctnet': ('ctnet', _plain),
    'eegnex': ('eegnex', _plain),
    'steegformer_small': ('steegformer', _steegformer),
    'steegformer_base': ('steegformer', _steegformer),
    'steegformer_large': ('steegformer', _steegformer),
    'labram': ('labram', _labram),
}


def fitting(paths: list[Path], name: str) -> list[Path]:
    """Result files in the order of the tasks of a track, each checked before anything is loaded.

    Raises: RequestError for a number of files or a task that the track does not ask for, a model without a twin, a
        result without weights, a recipe or signal that an archive could not repeat.
    """
    track = TRACKS[name]
    each = 'two results, of ' + ' and '.join(track.tasks) if len(track.tasks) > 1 else f'one, of {track.tasks[0]}'
    if len(paths) != len(track.tasks):
        raise RequestError(f'--results: {len(paths)} files, and track {name} takes {each}: choose one seed by its file')
    found: dict[str, Path] = {}
    for path in paths:
        try:
            result = checked.read(path)
        except FileNotFoundError:
            raise RequestError(f'--results: no file {path}; expected <workdir>/results/.../seed<k>.json') from None
        if result.get('kind') != 'decoding' or result['task'] not in track.tasks:
            raise RequestError(f'{path}: a result of {result.get("task")}, and track {name} takes {each}')
        if result['task'] in found:
            raise RequestError(f'{path}: a second result of {result["task"]}, and track {name} takes {each}')
        _check(path, result, track)
        found[result['task']] = path
    return [found[task] for task in track.tasks]


def _check(path: Path, result: Mapping[str, Any], track: Track) -> None:
    """Raises: RequestError for a result that no archive can be made of."""
    if result['config'].get('model') is None:
        raise RequestError(f'{path}: made by an older jbench; train it again')
    cell = from_json(Cell, result['config'], f'{path}: config')
    if cell.model.name not in TWINS:
        raise RequestError(f'{path}: {cell.model.name} has no twin in torch; those that have: {", ".join(TWINS)}')
    if result['status'] != 'done':
        raise RequestError(f'{path}: its status is {result["status"]}; train it whole, without --debug')
    if result['weights'] is None or not path.with_suffix('.safetensors').is_file():
        raise RequestError(f'{path}: its weights are not here; train it again with --keep_weights=yes')
    recipe = cell.task.recipe
    if not recipe.own_head or recipe.adaptation in ('lora', *PROBES) or recipe.precision != DEFAULT.precision:
        raise RequestError(
            f'{path}: learnt with recipe.adaptation={recipe.adaptation}, head={recipe.head or "its own"}, '
            f'precision={recipe.precision}; a twin has the whole network with its own head in float32 alone'
        )
    if cell.dataset.simulated:
        return
    joints = result['n_out'] % track.n_out == 0 if track.answer == 'joints' else result['n_out'] == track.n_out
    if not joints:
        raise RequestError(f'{path}: a network of {result["n_out"]} outputs, and track {track.name} has {track.n_out}')
    if faults := departures(cell, track):
        raise RequestError(f'{path}: the platform of track {track.name} gives or asks otherwise: {"; ".join(faults)}')


def departures(cell: Cell, track: Track) -> list[str]:
    """What a network was given, or asked, otherwise than by a platform, in words."""
    (asked, _), *_ = select.select_tasks(cell.task.full_name)
    there = cells.apply(asked, cell.dataset, ())
    theirs, own = there.signal, cell.task.signal
    named = ['sfreq', 'band', 'notch', 'reference', 'baseline', 'crop', *(['scaler'] if track.unit == 'scaled' else [])]
    pairs = [(f'signal.{name}', getattr(own, name), getattr(theirs, name)) for name in named]
    if track.unit != 'scaled' and own.scaler not in MICRO:
        pairs.append(('signal.scaler', own.scaler, theirs.scaler))
    if track.unit == 'scaled' and (own.factor != 1 or own.clamp is None or own.clamp > (theirs.clamp or 0)):
        pairs.append(('signal.factor and clamp', (own.factor, own.clamp), (1.0, theirs.clamp)))
    if cell.task.window.duration != asked.window.duration:
        pairs.append(('window.duration', cell.task.window.duration, asked.window.duration))
    mine, wanted = to_json(cell.task.target), to_json(there.target)
    vectors = ['scaled'] if track.answer == 'vector' else []  # which no decoder scales back
    free = set(HOW_LEARNT).difference(vectors)
    pairs += [(f'target.{name}', mine.get(name), wanted[name]) for name in wanted if name not in free]
    return [f'{name} is {to_json(found)}, there {to_json(given)}' for name, found, given in pairs if found != given]


def otherwise(cell: Cell) -> Iterator[str]:
    """What a network learnt from other windows than those of a platform, and can be asked all the same."""
    (asked, _), *_ = select.select_tasks(cell.task.full_name)
    if cell.task.window.start != asked.window.start:
        mine, theirs = cell.task.window.start, asked.window.start
        yield f'  learnt on windows that begin {mine:g} s from their event, those of the platform {theirs:g} s'
    if cell.task.signal.bads != asked.signal.bads:
        yield f'  learnt with signal.bads={cell.task.signal.bads}; the platform leaves bad channels as they are'
    if cell.dataset.name != asked.datasets[0] and not cell.dataset.simulated:
        yield f'  learnt on {cell.dataset.name}; the warm-up of the platform is on {asked.datasets[0]}'


def in_microvolts(model: TrainedModel) -> float:
    """What the windows of a network's prepared set are multiplied with to be those of a platform, in uV."""
    return 1 / MICRO.get(model.cell.task.signal.scaler, 1.0)


def weights(model: TrainedModel, track: Track) -> bytes:
    """The file `weights.npz` of an archive: tensors by name, and its settings as JSON."""
    twin, beside = TWINS[model.spec.name]
    state = model.model.to_torch(model.variables)
    settings, arrays = beside(model)
    signal = model.cell.task.signal
    settings |= {
        'twin': twin,
        'answer': track.answer,
        'n_joints': track.n_out if track.answer == 'joints' else 0,
        'ch_names': list(model.signal.ch_names or [''] * model.signal.n_chans),
        'n_times': model.signal.n_times,
        'factor': signal.factor * MICRO.get(signal.scaler, 1.0),
        'clamp': signal.clamp,
        'unit_unsure': track.unit == 'unsure',
        'scaling': model.result['scaling'],
        'clip': track.clip,
    }
    kept = {name: a for name, a in state.items() if not name.endswith('num_batches_tracked')}
    return files.npz_bytes({**kept, **arrays, 'settings': np.array([json.dumps(settings)])})
