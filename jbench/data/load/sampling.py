"""Which training windows come how often, and what each class counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jbench import targets
from jbench.data.load.grouping import listed
from jbench.data.load.loader import DATA_SEED, generator, order
from jbench.metrics import regression
from jbench.spec.errors import RequestError
from jbench.targets import classes, contrast

PEOPLE = 8  # of a batch who see the same moments
STRETCH = 8  # windows that follow one another


def class_weights(y: np.ndarray, kind: str, *, n_out: int | None = None) -> np.ndarray:
    """Loss weights against class imbalance, from the training windows.

    Args:
        y: of the training windows.
        kind: of the target, one that has classes or labels.
        n_out: number of classes, where the last ones may have no window.
    Returns:
        float32 [K].
    Raises:
        ValueError: the kind has no classes, or y is empty.
    """
    y = np.asarray(y)
    if not y.size:
        raise ValueError('class weights of no window')
    weights = targets.of(kind).class_weights
    if weights is None:
        raise ValueError(f'targets of kind {kind!r} have no class weights')
    return weights(y, n_out)


def _balanced(y: np.ndarray) -> np.ndarray:
    return classes.class_weights(y, None)[y]


def _by_bin(y: np.ndarray) -> np.ndarray:
    """One over the count of the bin that a value [N, 1] lies in; bins as the metric has them (binned_mae)."""
    number = np.digitize(y[:, 0], regression.BIN_EDGES[1:-1])
    return np.asarray(1 / np.bincount(number)[number])


Sampler = Callable[[np.ndarray, int, int], np.ndarray]  # (y, epoch, batch size) -> numbers of windows [N], in order


def _weighted(weigh: Callable[[np.ndarray], np.ndarray]) -> Sampler:
    """Windows drawn with replacement, each in proportion to its weight."""
    return lambda y, epoch, batch_size: order(len(y), epoch, weights=weigh(y))


def moments(y: np.ndarray, epoch: int, batch_size: int) -> np.ndarray:
    """Batches of several people at the same several moments, drawn with replacement; who saw as much comes as often.

    y int [N, 2]: moment and viewer. A batch is blocks of up to PEOPLE who saw one moment, and of as many moments that
    all of them saw: of each window it holds the same moment of others, and other moments of the same recording (a batch
    whose size is no multiple of 2 PEOPLE may end with windows that lack either). What one person alone saw is in none.

    Raises: RequestError where nobody shares a moment.
    """
    rng = generator(epoch, DATA_SEED)
    rows_of: dict[int, dict[int, int]] = {}  # viewer -> moment that others saw -> window, the last of several
    n_viewers = np.bincount(np.unique(y, axis=0)[:, 0])
    for row, (moment, viewer) in enumerate(y.tolist()):
        if n_viewers[moment] > 1:
            rows_of.setdefault(viewer, {})[moment] = row
    if not rows_of:
        raise RequestError('recipe.sampler=moments: no two people of the training part saw the same moment')
    viewers = np.array(sorted(rows_of))
    batches, most = [], min(PEOPLE, max(2, batch_size // 2))
    for first in range(0, len(y), batch_size):
        size, batch = min(batch_size, len(y) - first), list[int]()
        while len(batch) < size:
            one = rows_of[int(rng.choice(viewers))]
            seen = int(rng.choice(sorted(one)))
            people = [v for v in rng.permutation(viewers).tolist() if seen in rows_of[v]][:most]
            common = sorted(set.intersection(*({*rows_of[v]} for v in people)))
            n = max(1, (size - len(batch)) // len(people))
            shown = rng.permutation(common)[:n].tolist()
            batch += [rows_of[v][m] for m in shown for v in people]
        batches += batch[:size]
    return np.array(batches)


def stretches(y: np.ndarray, epoch: int, batch_size: int) -> np.ndarray:
    """Batches of stretches of STRETCH windows that follow one another, each stretch of a recording drawn at random.

    y int [N, 2]: recording and place in it. Every window comes once.
    """
    rng = generator(epoch, DATA_SEED)
    in_order = np.lexsort([y[:, 1], y[:, 0]])
    cuts = np.flatnonzero(np.diff(y[in_order, 0])) + 1
    parts = []
    for rows in np.split(in_order, cuts):
        begin = int(rng.integers(STRETCH))
        parts += [part for part in np.split(rows, range(begin, len(rows), STRETCH)) if len(part)]
    return np.concatenate([parts[k] for k in rng.permutation(len(parts))])


def require_answers(kind: str, y: np.ndarray, subjects: np.ndarray) -> None:
    """Refuse windows of validation, with targets y [N, 2] and `subjects` [N], that ask nothing: no epoch would be the
    best. Raises: RequestError."""
    asks, lacks = contrast.ASKS.get(kind, (None, ''))
    if asks is not None and len(y) and not asks(y):
        raise RequestError(
            f'no window of the validation part ({listed(sorted({*subjects.tolist()}))}) {lacks}, so that no epoch '
            'could be chosen: take more people for it (--set split.valid, split.seed), or longer recordings'
        )


WEIGHTS = {'balanced': _balanced, 'bins': _by_bin}  # of training windows, by their targets
# None: a random order of all
SAMPLERS: dict[str, Sampler | None] = {
    'shuffle': None,
    **{name: _weighted(weigh) for name, weigh in WEIGHTS.items()},
    'moments': moments,
    'stretches': stretches,
}
