"""What an archive has to pass before it is written; everything is asked of a fresh process (process.py)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jbench.data.load import prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.submit.export import in_microvolts
from jbench.submit.process import Process
from jbench.submit.tracks import GENERATORS, Track, generated, noise
from jbench.targets import score
from jbench.trained import TrainedModel, prepared_folder

CLOSE = 1e-4  # of the outputs of a twin, as shares of the largest (at least 1, in units of what the network learnt)
SCORE_CLOSE = 1e-3  # of scores, as shares: of ties that fall otherwise
FEW = 4  # windows of noise
AT_ONCE = 16  # windows of the test part
MICRO = 1e6


class Trial(NamedTuple):
    """What trying an archive gave."""

    difference: float  # largest, from the network in JAX, in units of what the network learnt
    seconds: float  # a window, here
    local: dict[str, Any] | None  # headline of the archive's own predictions; None: no test windows here
    lines: tuple[str, ...]  # more to say


def tried(
    model: TrainedModel, track: Track, process: Process, meta: dict[str, Any], update: Callable[[str, int, int], None]
) -> Trial:
    """Everything at once.

    Args:
        model, track: whose archive, and for what.
        process: it, in a process of its own.
        meta: what the platform says of its windows.
        update: called with how far it is.
    Raises: RequestError for an archive that fails at any of it.
    """
    lines = []
    own = {**meta, 'n_chans': model.signal.n_chans, 'n_times': model.signal.n_times}
    own['ch_names'] = list(model.signal.ch_names) or None
    fits = (own['n_chans'], own['n_times']) == track.shape
    if not fits:
        size = f'[{own["n_chans"]}, {own["n_times"]}]'
        lines.append(
            f'learnt on windows {size}, the platform gives {list(track.shape)}: channels by name, time by interpolation'
        )
    process.ask('load', meta=meta if track.name == '2025' else own)  # TorchScript has one size
    difference = _parity(model, track, process)
    local = _local(model, track, process, update)
    process.ask('load', meta=meta)
    x = noise((FEW, *track.shape), track.unit)
    report, _ = process.ask('contract', x, alone=track.alone)
    _answered(report, track, FEW, f'windows {list(track.shape)}')
    for windows, about in generated(track.name):
        process.ask('load', meta=about)
        found, _ = process.ask('contract', windows[:FEW], alone=track.alone)
        _answered(found, track, FEW, f"the organisers' Simulated windows {list(windows.shape[1:])}", about)
    if track.name in GENERATORS:
        lines.append(f"answers the organisers' Simulated windows ({len(GENERATORS[track.name][1])} sizes)")
    return Trial(difference, report['seconds'], local, tuple(lines))


def _answered(report: dict[str, Any], track: Track, n: int, what: str, about: dict[str, Any] | None = None) -> None:
    """Raises: RequestError for faults of a contract, or answers of another shape or type than the track asks for."""
    width = (about or {}).get(track.asked, track.n_out)
    start = {'class': [n], 'value': [n] if track.asked else [n, 1], 'angles': [n, width], 'embedding': [n, width]}
    wanted, kind = start[track.answer], 'int64' if track.answer == 'class' else 'float32'
    faults = list(report['faults'])
    shape = report['shape'][: len(wanted)] if track.answer == 'angles' else report['shape']
    if shape != wanted or report['dtype'] != kind:
        faults.append(f'answers {report["dtype"]} {report["shape"]}, expected {kind} {wanted}')
    if faults:
        raise RequestError(f'the archive fails on {what}: {"; ".join(faults)}')


# ---- the same answers as in JAX ----


def _learnt(model: TrainedModel, outputs: np.ndarray) -> np.ndarray:
    """Outputs in units of what the network learnt."""
    scaling = model.result['scaling']
    return outputs if scaling is None else (outputs - np.array(scaling['mean'])) / np.array(scaling['sd'])


def _difference(model: TrainedModel, found: np.ndarray, expected: np.ndarray, what: str) -> float:
    """The largest. Raises: RequestError where it is too large."""
    ours, theirs = _learnt(model, found), _learnt(model, expected)
    largest, allowed = float(np.abs(ours - theirs).max()), CLOSE * max(1.0, float(np.abs(theirs).max()))
    if not largest <= allowed:
        raise RequestError(
            f'the archive answers {what} otherwise than {model.cell.title}: outputs differ by up to {largest:.2g}, '
            f'allowed are {allowed:.2g}'
        )
    return largest


def _asked(x: np.ndarray, track: Track, process: Process, stream: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and answers of the archive for windows in uV; of 2025 in V, in their places among 129 channels."""
    if track.name == '2025':
        (taken,) = process.ask('taken')[1]
        given = np.zeros((len(x), *track.shape), np.float32)
        given[:, taken] = x / np.float32(MICRO)
        x = given
    found, answer = process.ask('answer', x, stream=stream)[1]
    return found, answer


def _parity(model: TrainedModel, track: Track, process: Process) -> float:
    """On windows of noise, of the size that the network was learnt on."""
    signal, clamp = model.cell.task.signal, model.cell.task.signal.clamp
    x = noise((FEW, model.signal.n_chans, model.signal.n_times), track.unit)
    scaled = x * np.float32(signal.factor / in_microvolts(model))
    expected = model.predict(scaled if clamp is None else scaled.clip(-clamp, clamp))
    found, _ = _asked(x, track, process)
    return _difference(model, found, expected, f'windows of noise [{model.signal.n_chans}, {model.signal.n_times}]')


# ---- the local score ----


def _local(
    model: TrainedModel, track: Track, process: Process, update: Callable[[str, int, int], None]
) -> dict[str, Any] | None:
    """The headline of the archive's own answers to the test windows, each as the platform would give it.

    Raises: RequestError where they are not those of the result.
    """
    try:
        folder = prepared_folder(model.path, model.result, model.cell)
    except RequestError:
        return None
    kept = result_file.load_predictions(model.path)
    data = dataclasses.replace(prepared_set.open_set(folder, model.cell.task), factor=1.0)
    rows = data.rows('test')
    if not np.array_equal(data.ids[rows], kept['id']):
        return None
    outputs, answers, at_once = [], [], 1 if track.alone else AT_ONCE
    for k, (x, stream) in enumerate(_windows(model, track, data, rows)):
        update('test windows', k * at_once, len(rows))
        found, answer = _asked(x, track, process, stream)
        outputs.append(found)
        answers.append(answer)
    update('test windows', len(rows), len(rows))
    found, answer = np.concatenate(outputs), np.concatenate(answers)
    _difference(model, found, kept['outputs'], 'the test windows')
    task = model.cell.task
    said = score.score(task.target.kind, task.metric, {**kept, 'outputs': found}, model.result['dummy'], task.level)
    _same(said['headline'], model)
    decided = _decided(answer, track, found)
    return dict(
        score.score(task.target.kind, task.metric, {**kept, 'outputs': decided}, model.result['dummy'], task.level)[
            'headline'
        ]
    )


def _windows(
    model: TrainedModel, track: Track, data: PreparedSet, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, str | None]]:
    """Windows [B, C, T] and the stream that they belong to."""
    shards, at_once = data.shards(None), 1 if track.alone else AT_ONCE
    streams = data.places.of(rows).stream if data.places is not None else None
    for first in range(0, len(rows), at_once):
        mine = rows[first : first + at_once]
        x = np.empty((len(mine), data.signal.n_chans, data.signal.n_times), np.float32)
        shards.read(mine, x)
        clamp = model.cell.task.signal.clamp
        if track.unit == 'scaled':  # the platform clamps before
            x = x if clamp is None else x.clip(-clamp, clamp)
        else:
            x *= np.float32(in_microvolts(model))
        yield x, None if streams is None else str(streams[first])


def _same(headline: dict[str, Any], model: TrainedModel) -> None:
    """Raises: RequestError where a score is not that of the result."""
    mine, theirs = headline['value'], model.result['headline']['value']
    if mine is None or theirs is None:
        equal = mine is theirs
    else:
        equal = abs(mine - theirs) <= SCORE_CLOSE * max(1.0, abs(theirs))
    if not equal:
        raise RequestError(f'{model.path}: its {headline["name"]} is {theirs}, that of the archive {mine}')


def _decided(answer: np.ndarray, track: Track, outputs: np.ndarray) -> np.ndarray:
    """What a track is told, as outputs that scores take."""
    if track.answer == 'class':
        return np.eye(outputs.shape[1], dtype=np.float32)[answer]
    return answer.reshape(len(answer), -1)
