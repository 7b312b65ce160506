"""How much worse a run answers without a channel, a stretch of time, or a band of frequencies.

What is taken away is replaced by the mean of its channel over training windows (frequencies are removed). A fall of the
headline stands out where it is above the floor: the largest fall, over all parts of the family, that chance gives
where the answers with and without the part are exchanged at random, window by window (max-T: Westfall & Young 1993).
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jbench import targets
from jbench.events import SHIFT
from jbench.report.autopsy.case import Arrays, Case, Network, Predict, chosen, gain, headline
from jbench.spec.metrics import METRICS

GROUPS = 64  # parts of a family at most: of more channels, neighbours in the list go together
STRETCHES = 16  # of time
BANDS = 32  # of frequencies, up to MOST_POWER; of all at most twice as many
BAND = 2.0  # Hz, the least width of one where there are many
DRAWS = 200  # exchanges, and shufflings
LEVEL = 0.95
SHORT = 8  # samples: windows with fewer have no bands
MOST_POWER = 0.99  # below the frequency by which the width of bands is chosen; they go on above it
LEAST_POWER = 1e-4  # of all power: bands with less are not there


class Ablation(NamedTuple):
    """A family of parts and what the headline loses without each."""

    family: str  # 'channel', 'time', 'frequency'
    parts: tuple[str, ...]
    edges: tuple[tuple[float, float], ...]  # of parts: s, or Hz; of channels their numbers [first, last)
    falls: np.ndarray  # [P], in the unit of the headline
    floor: float

    @property
    def order(self) -> np.ndarray:
        """Numbers of the parts, the largest fall first."""
        return np.argsort(-self.falls, kind='stable')

    @property
    def out(self) -> tuple[int, ...]:
        """Numbers of the parts that stand out, the largest fall first."""
        return tuple(int(k) for k in self.order if self.falls[k] > self.floor)


class Base(NamedTuple):
    """Whether a run answers at all."""

    value: float  # headline
    shuffled: np.ndarray  # headlines with shuffled targets
    p: float  # share of the orders that are as good, its own counted
    orders: int  # different orders of the targets that were seen, its own counted


def base(case: Case) -> Base:
    """The headline, and what it is where targets are shuffled.

    Targets that differ inside of a subject change places there, those that a recording has in common with it; subjects
    with one target exchange theirs. An order that comes again counts once.
    """
    value, rng = headline(case, case.answers), np.random.default_rng(0)
    units = _units(case.answers)
    values, orders = [], {_order(case.answers): value}
    for _ in range(DRAWS):
        answers = _shuffled(case, units, rng)
        values.append(headline(case, answers))
        orders.setdefault(_order(answers), values[-1])
    _, *others = orders.values()
    others = [v for v in others if np.isfinite(v)]
    as_good = sum(gain(case, v, value) >= -1e-12 for v in others) if np.isfinite(value) else len(others)
    found = np.array(values)
    return Base(float(value), found[np.isfinite(found)], float((1 + as_good) / (1 + len(others))), len(orders))


def _order(answers: Arrays) -> bytes:
    return hashlib.sha256((answers['y'] + 0).tobytes()).digest()


def _shuffled(case: Case, units: tuple[np.ndarray, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Answers with the targets of other windows; `units` of `_units`."""
    answers = dict(case.answers)
    block, unit = units
    first = np.unique(unit, return_index=True)[1]  # a window of each unit
    source = np.arange(len(first))
    for name in np.unique(block[first]):
        mine = np.flatnonzero(block[first] == name)
        source[mine] = rng.permutation(mine)
    rows = first[source[unit]]
    for name in {'y', 'group'} & set(answers):
        answers[name] = answers[name][rows]
    return answers


def _units(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Of each window: inside of what its target changes places (-1: among subjects), and the number of what shares
    one."""
    n = len(answers['id'])
    subject = np.unique(answers['subject'], return_inverse=True)[1]
    recording = np.unique(answers['id'] >> SHIFT, return_inverse=True)[1]
    known: dict[bytes, int] = {}  # np.unique of rows is slow where these are long
    digests = (hashlib.sha256((row + 0).tobytes()).digest() for row in answers['y'].reshape(n, -1))
    target = np.array([known.setdefault(digest, len(known)) for digest in digests])
    several = _vary(target, subject)
    alone = (np.bincount(subject, _vary(target, recording)) > 0)[subject]  # windows, where a recording has several
    unit = np.where(several, np.where(alone, np.arange(n), n + recording), 2 * n + subject)
    return np.where(several, subject, -1), np.unique(unit, return_inverse=True)[1]


def _vary(target: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Whether the owner of each window has several targets."""
    pairs = np.unique(np.stack([owner, target]), axis=1)
    return np.asarray((np.bincount(pairs[0]) > 1)[owner])


class _Parts(NamedTuple):
    """What is taken away, one after the other."""

    family: str
    names: list[str]
    edges: list[tuple[float, float]]
    without: Iterator[np.ndarray]  # the windows that are left


def channels(case: Case, network: Network, predict: Predict) -> Ablation:
    """Without each channel (of many: each group of neighbours in the list)."""
    names, n = case.signal.ch_names, network.x.shape[1]
    edges = _cut(n, GROUPS)
    parts = [_named(names, *e) for e in edges]

    def without(a: int, b: int) -> np.ndarray:
        x = network.x.copy()
        x[:, a:b] = network.usual[a:b, None]
        return x

    return _family(case, network, predict, _Parts('channel', parts, list(edges), (without(a, b) for a, b in edges)))


def _cut(n: int, most: int) -> list[tuple[int, int]]:
    """0..n cut into at most so many equal pieces [first, last)."""
    cuts = np.unique(np.linspace(0, n, min(n, most) + 1).round().astype(int)).tolist()
    return list(itertools.pairwise(cuts))


def _named(names: tuple[str, ...], a: int, b: int) -> str:
    first, last = (names[k] if k < len(names) else f'channel {k}' for k in (a, b - 1))
    return first if b - a == 1 else f'{first} to {last}'


def stretches(case: Case, network: Network, predict: Predict) -> Ablation:
    """Without each stretch of time."""
    n, sfreq = network.x.shape[2], case.signal.sfreq
    samples = _cut(n, STRETCHES)
    edges = [(case.start + a / sfreq, case.start + b / sfreq) for a, b in samples]
    parts = [f'{a:.3g} to {b:.3g} s' for a, b in edges]

    def without(a: int, b: int) -> np.ndarray:
        x = network.x.copy()
        x[:, :, a:b] = network.usual[:, None]
        return x

    return _family(case, network, predict, _Parts('time', parts, edges, (without(a, b) for a, b in samples)))


def bands(case: Case, network: Network, predict: Predict) -> Ablation | None:
    """Without each band of frequencies that the windows hold; None of windows too short to have any."""
    x, n = network.x - network.usual[:, None], network.x.shape[2]
    edges = band_edges(x, case.signal.sfreq)
    if not edges:
        return None
    spectrum, hz = np.fft.rfft(x), np.fft.rfftfreq(n, 1 / case.signal.sfreq)

    def without(low: float, high: float) -> np.ndarray:
        rest = np.where((hz >= low) & (hz < high), 0, spectrum)
        return np.asarray(np.fft.irfft(rest, n) + network.usual[:, None], np.float32)

    parts = [f'{low:g} to {high:g} Hz' for low, high in edges]
    return _family(case, network, predict, _Parts('frequency', parts, edges, (without(*e) for e in edges)))


def band_edges(x: np.ndarray, sfreq: float) -> list[tuple[float, float]]:
    """Bands of equal width, a round number (or, of too many, 2, 4, ... times one), that hold a share of the power of
    windows x [N, C, T]."""
    n = x.shape[2]
    hz, power = np.fft.rfftfreq(n, 1 / sfreq), (np.abs(np.fft.rfft(x)) ** 2).sum((0, 1))
    if n < SHORT or not power.any():
        return []
    top = hz[np.searchsorted(power.cumsum(), MOST_POWER * power.sum())]
    width = max(BAND if top > 4 * BAND else 0.0, sfreq / n, top / BANDS)
    digits = 10.0 ** np.floor(np.log10(width))
    width = float(np.ceil(width / digits - 1e-9) * digits)
    while True:
        found = [(float(k * width), float((k + 1) * width)) for k in range(int(np.ceil(hz[-1] / width + 1e-9)))]
        found = [e for e in found if power[(hz >= e[0]) & (hz < e[1])].sum() > LEAST_POWER * power.sum()]
        if len(found) <= 2 * BANDS:
            return found
        width *= 2


def _family(case: Case, network: Network, predict: Predict, parts: _Parts) -> Ablation:
    """The falls of a family of parts, and its floor."""
    answers = chosen(case.answers, network.rows)
    whole = predict(network.x)
    lacking = [predict(x) for x in parts.without]
    if errors := targets.of(case.kind).errors:
        whole, *lacking = (errors(one, answers['y']) for one in (whole, *lacking))
    falls = np.array([_fall(case, answers, whole, one) for one in lacking])
    floor = _floor(case, answers, whole, lacking)
    return Ablation(parts.family, tuple(parts.names), tuple(parts.edges), falls, floor)


def _fall(case: Case, answers: dict[str, np.ndarray], whole: np.ndarray, lacking: np.ndarray) -> float:
    """By how much answers are worse than the whole ones. One without a score (a constant has no correlation) has that
    of chance; 0 where that is not known. Of kinds with errors, these stand for the answers."""
    if targets.of(case.kind).errors:
        better, worse = float(whole.mean()), float(lacking.mean())
    else:
        better, worse = (headline(case, answers | {'outputs': o}) for o in (whole, lacking))
        chance = METRICS[case.metric].chance
        if chance is not None:
            better, worse = (v if np.isfinite(v) else chance for v in (better, worse))
    return float(np.nan_to_num(gain(case, better, worse)))


def _floor(case: Case, answers: dict[str, np.ndarray], whole: np.ndarray, lacking: list[np.ndarray]) -> float:
    """The largest fall that chance gives: LEVEL of DRAWS exchanges."""
    rng, unit = np.random.default_rng(0), _exchanged(case, answers)
    most = []
    for _ in range(DRAWS):
        swap = (rng.random(unit.max() + 1) < 0.5)[unit].reshape(-1, *(1,) * (whole.ndim - 1))
        most.append(max(_fall(case, answers, np.where(swap, o, whole), np.where(swap, whole, o)) for o in lacking))
    return float(np.quantile(most, LEVEL))


def _exchanged(case: Case, answers: dict[str, np.ndarray]) -> np.ndarray:
    """The number of what is exchanged together, of each window: that of which the headline is."""
    owner: dict[str, Callable[[], np.ndarray]] = {
        'window': lambda: answers['id'],
        'recording': lambda: answers['id'] >> SHIFT,
        'subject': lambda: answers['subject'],
    }
    return np.unique(owner[case.level](), return_inverse=True)[1]
