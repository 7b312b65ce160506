"""What an autopsy looks at: the answers of one run and, of a network, its weights and some windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jbench import targets
from jbench.metrics import keystrokes
from jbench.models.model import Model
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.spec.model import Signal
from jbench.targets import score

BATCH = 32  # windows that a network answers at a time
LEAST_HEAD = 4  # channels that a head is drawn of

Arrays = Mapping[str, np.ndarray]
Predict = Callable[[np.ndarray], np.ndarray]  # windows f32 [N, C, T] -> outputs as a result stores them
Loss = Callable[[Any, Any], jax.Array]  # (params, batch) -> the loss that was trained


class Other(NamedTuple):
    """Another result on the same test windows."""

    name: str  # 'dummy', 'cov_ts_lr'
    value: float | None  # its headline
    outputs: np.ndarray


class Network(NamedTuple):
    """A trained network and the windows that it is looked at with."""

    model: Model
    variables: Variables
    x: np.ndarray  # f32 [n, C, T], test windows as they were answered
    rows: np.ndarray  # int [n], their rows among the answers
    usual: np.ndarray  # f32 [C], mean of the training windows: what stands in for what is taken away
    scaling: tuple[np.ndarray, np.ndarray] | None  # mean and sd [K] by which values are learnt
    loss: Loss | None = None
    batches: tuple[dict[str, Any], ...] = ()  # a few of training, for the loss


class Case(NamedTuple):
    """One run."""

    facts: dict[str, str]  # what it is, for the head of the page
    kind: str  # of target
    metric: str
    level: str  # of the headline
    classes: tuple[str, ...]
    answers: Arrays  # id, outputs, y, subject (group, vectors) of every test window
    chance: float | None
    others: tuple[Other, ...]
    places: tuple[tuple[str, float], ...]  # recording, and onset in s, of each answer; (): not known
    signal: Signal  # with the names of the channels
    start: float = 0.0  # s, of a window from the event
    head: Any = None  # mne.Info with the places of the channels that have one; None: none has
    network: Network | None = None


def chosen(answers: Arrays, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Some of the answers."""
    return {name: a if name == 'vectors' else a[rows] for name, a in answers.items()}


def headline(case: Case, answers: Arrays) -> float:
    """The headline of answers; nan where it is not defined."""
    value = score.level_score(case.kind, case.metric, answers, case.level)
    return np.nan if value is None else value


def gain(case: Case, value: float, other: float) -> float:
    """By how much a value is better than another, in the unit of the headline."""
    return value - other if METRICS[case.metric].better == 'higher' else other - value


def given(model_signal: Signal, x: Any) -> dict[str, Any]:
    """Windows as a batch in which every channel is there."""
    batch = {'x': x, 'mask': jnp.ones(len(x), bool)}
    return batch | ({'channel_mask': jnp.ones(x.shape[:2], bool)} if model_signal.channel_mask else {})


def predictor(case: Case, network: Network) -> Predict:
    """What gives the outputs of a network for windows as its result stores them; batches are of one size."""

    @jax.jit
    def run(variables: Variables, x: jax.Array) -> jax.Array:
        return network.model.apply(variables, given(case.signal, x), train=False, key=None).outputs

    def predict(x: np.ndarray) -> np.ndarray:
        parts = []
        for first in range(0, len(x), BATCH):
            part = x[first : first + BATCH]
            full = np.concatenate([part, np.repeat(part[:1], BATCH - len(part), 0)])
            parts.append(np.asarray(run(network.variables, full))[: len(part)])
        out = np.concatenate(parts)
        if targets.of(case.kind).frames:
            return keystrokes.path(out)
        if network.scaling is not None:
            out = out * network.scaling[1] + network.scaling[0]
        return out.astype(np.float32)

    return predict


def towards(case: Case, outputs: np.ndarray, answers: Arrays) -> np.ndarray:
    """What of the outputs is explained, as weights of them: the answer is sum(outputs * weights) of a window.

    Classes: the output of the true class less the mean of all; labels: outputs of true labels less those of others;
    embeddings: the product with the true vector; keystrokes: over frames, the best output, right or wrong, less the
    mean; angles: the product with how the true ones differ from their mean over windows; values: the output, or, where
    the true one is below the mean over windows, the output times -1.

    Args:
        case: the run.
        outputs: of the network itself, f32 [n, K] or [n, frames, K].
        answers: of these windows.
    """
    kind, y, width = targets.of(case.kind), answers['y'], outputs.shape[-1]
    if kind.frames:
        return (np.eye(width)[outputs.argmax(-1)] - 1 / width).astype(np.float32) / outputs.shape[1]
    if 'vectors' in answers:
        true = answers['vectors'][y]
        return _directions(true)
    if kind.measured:
        true = kind.answered(y, width)
        return _directions(true - true.mean(0))
    if kind.single:
        return (np.eye(width)[y] - 1 / width).astype(np.float32)
    if case.classes:
        return ((2 * (y > 0) - 1) / width).astype(np.float32)
    return (np.where(y < y.mean(0), -1, 1) / width).astype(np.float32)


def explained(case: Case) -> str:
    """What speaks for it is positive, in words."""
    return 'the answer given' if targets.of(case.kind).frames else 'the right answer'


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Vectors [n, K] of length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), np.float32)


def head(ch_names: Sequence[str]) -> Any:
    """Where channels lie on the head, as mne.Info of those whose place is known; None of fewer than four."""
    import mne

    from jbench.data.electrodes import positions

    try:
        places = dict(zip(ch_names, positions(ch_names), strict=True))
    except RequestError:  # none is an electrode
        return None
    known: dict[str, Any] = {}
    for name, place in places.items():
        if place is not None and place not in known.values():  # of two channels in one place the first
            known[name] = place
    if len(known) < LEAST_HEAD:
        return None
    info = mne.create_info(list(known), 100.0, 'eeg')
    with mne.use_log_level('ERROR'):
        info.set_montage(mne.channels.make_dig_montage({k: np.array(v) for k, v in known.items()}, coord_frame='head'))
    return info


def some(n: int, most: int) -> np.ndarray:
    """At most so many of 0..n-1, drawn and in order: every k-th one may always be of the same class."""
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def joined(names: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return ', '.join(names[:-1]) + (' and ' if len(names) > 1 else '') + names[-1] if names else ''
