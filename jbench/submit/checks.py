"""What an archive has to pass before it is written; everything is asked of a fresh process (process.py)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jbench.data.load import prepared_set
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.load.streams import Places, ordered
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.submit.export import in_microvolts
from jbench.submit.process import Process
from jbench.submit.tracks import GENERATORS, Track, generated, noise
from jbench.targets import score
from jbench.trained import TrainedModel, prepared_folder

CLOSE = 1e-4  # of the outputs of a twin, as shares of the largest (at least 1, in units of what the network learnt)
SCORE_CLOSE = 1e-3  # of scores, as shares: of ties that fall otherwise
ALONE = 1e-5  # of the same window in other company, as trial.py has it
FEW = 4  # windows of noise
AT_ONCE = 16  # windows of the test part
MICRO = 1e6


class Trial(NamedTuple):
    """What trying an archive gave."""

    difference: float  # largest, from the network in JAX, in units of what the network learnt
    seconds: float  # a window, here
    local: dict[str, Any] | str  # headline of the archive's own predictions; in words why there is none
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
    process.ask('load', meta=meta)
    report, _ = process.ask('contract', noise((FEW, *track.shape), track.unit), alone=track.alone)
    _answered(report, track, meta, 'windows of the platform')
    n_streams = 0
    for windows, about, order in generated(track.name):
        process.ask('load', meta=about)
        found, _ = process.ask('contract', windows[:FEW], alone=track.alone)
        _answered(found, track, about, "the organisers' Simulated windows")
        if order is not None:
            _streamed(process, windows, order, track, about)
            n_streams += len({*order.stream.tolist()})
    if track.name in GENERATORS:
        streams = f' and in their streams ({n_streams} of them)' if n_streams else ''
        lines.append(f"answers the organisers' Simulated windows ({len(GENERATORS[track.name][1])} sizes){streams}")
    size, names = (model.signal.n_chans, model.signal.n_times), list(model.signal.ch_names)
    if size != track.shape:
        lines.append(
            f'learnt on windows {list(size)}, the platform gives {list(track.shape)}: channels by name, else by place; '
            'times by interpolation'
        )
    own = {**meta, 'n_chans': size[0], 'n_times': size[1], 'ch_names': names or None}
    process.ask('load', meta=meta if track.name == '2025' else own)  # TorchScript has one size
    difference = _parity(model, track, process)
    local, more = _local(model, track, process, update)
    return Trial(max(difference, more), report['seconds'], local, tuple(lines))


def _answered(report: dict[str, Any], track: Track, meta: dict[str, Any], what: str) -> None:
    """Raises: RequestError for faults of a contract, or answers of another shape or type than the track asks for."""
    width, shape = meta.get(track.asked, track.n_out), report['shape']
    wanted = {'class': [FEW], 'number': [FEW] if track.asked else [FEW, 1]}.get(track.answer, [FEW, width])
    if track.answer == 'joints':
        wanted.append(min([meta['n_times'], *shape[2:3]]))  # steps: as many as samples, or fewer
    faults, kind = list(report['faults']), 'int64' if track.answer == 'class' else 'float32'
    if shape != wanted or report['dtype'] != kind:
        faults.append(f'answers {report["dtype"]} {shape}, expected {kind} {wanted}')
    if faults:
        raise RequestError(f'the archive fails on {what} [{meta["n_chans"]}, {meta["n_times"]}]: {"; ".join(faults)}')


def _streamed(process: Process, windows: np.ndarray, order: Places, track: Track, meta: dict[str, Any]) -> None:
    """Windows one at a time and in order, each stream answered by a copy of the model as it was loaded; then the first
    stream once more. Raises: RequestError where an answer is not of one window, or not that to the window alone."""
    ordered(order)
    process.ask('load', meta=meta)
    expected = process.ask('answer', windows)[1][0]
    names, faults, first = order.stream.tolist(), list[str](), np.flatnonzero(order.stream == order.stream[0]).tolist()
    kind, allowed = 'int64' if track.answer == 'class' else 'float32', ALONE * max(1.0, float(np.abs(expected).max()))
    for k, again in [*((k, '') for k in range(len(windows))), *((k, ' again') for k in first)]:
        outputs, said = process.ask('answer', windows[k : k + 1], stream=names[k] + again)[1]
        where = f'window {order.onset[k]:.0f} of recording {order.record[k]}, stream {names[k]}{again}'
        if said.shape != (1,) or said.dtype != kind:
            faults.append(f'{where}: answers {said.dtype} {list(said.shape)}, expected {kind} [1]')
        elif not np.abs(outputs - expected[k]).max() <= allowed:
            faults.append(f'{where}: another answer than to the window by itself')
    if faults:
        more = f'; and {len(faults) - 1} more' if faults[1:] else ''
        size = f'[{meta["n_chans"]}, {meta["n_times"]}]'
        raise RequestError(f"the archive fails on the organisers' Simulated streams {size}: {faults[0]}{more}")


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
) -> tuple[dict[str, Any] | str, float]:
    """The headline of the archive's own answers to the test windows, each as the platform would give it (where they are
    not here, that in words), and the largest difference of its outputs.

    Raises: RequestError where they are not those of the result.
    """
    try:
        folder = prepared_folder(model.path, model.result, model.cell)
    except RequestError:
        return 'its test windows are not here (the work folder of the result has its prepared set)', 0.0
    kept, task = result_file.load_predictions(model.path), model.cell.task
    data = dataclasses.replace(prepared_set.open_set(folder, task), factor=1.0)
    rows = data.rows('test')
    if not np.array_equal(data.ids[rows], kept['id']):
        return 'its prepared set is here, and this jbench makes its test part of other windows; train it again', 0.0
    outputs: list[np.ndarray] = []
    answers: list[np.ndarray] = []
    for x, stream in _windows(model, track, data, rows):
        update('test windows', sum(len(found) for found in outputs), len(rows))
        found, answer = _asked(x, track, process, stream)
        outputs.append(found)
        answers.append(answer)
    update('test windows', len(rows), len(rows))
    found, answer = np.concatenate(outputs), np.concatenate(answers)
    difference = _difference(model, found, kept['outputs'], 'the test windows')

    def headline(outputs: np.ndarray) -> dict[str, Any]:
        arrays = {**kept, 'outputs': outputs}
        scored = score.score(task.target.kind, task.metric, arrays, model.result['dummy'], task.level)
        return dict(scored['headline'])

    _same(headline(found), model)
    return headline(_decided(answer, track, found)), difference


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
