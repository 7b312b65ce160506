"""How much of the variance of features is who was recorded, and how much is what is to be predicted.

Features that tell subjects apart let a network answer by who somebody is: identity confounding (Chaibub Neto et al.
2019, npj Digit. Med. 2:99). The sum of squares about the mean is divided, without rest and without overlap, into

    subject: of the means of subjects about the mean of all windows
    target: of the means of classes within a subject about the mean of that subject
    residual: of windows about the mean of their class within their subject

each summed over the features; its share is what it is of the whole. So the target has no part in what lies between
subjects, even where some saw other classes than others. Means of few windows differ by chance: a share is judged beside
the same share of shuffled windows. Shuffled are the targets within each subject, and subjects over all windows
(Anderson 2001, Austral Ecol. 26:32, of Euclidean distances: the same sums of squares).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

DRAWS = 999  # shuffles of each null
SEED = 33
ALPHA = 0.05
BINS = 5  # of equal counts, of targets that are numbers
ROUNDING = 1e-9
CONSTANT = 1e-12  # of the mean square of features: less variance than that is rounding


class Share(NamedTuple):
    """A share of the variance beside what chance makes of it."""

    share: float  # 0..1
    chance: float  # its mean over shuffles
    p: float  # how many of the shuffles, the true order among them, have one as large; at least 1 / (1 + draws)


class Partition(NamedTuple):
    """What the variance of features is; None where `words` says why there is no such share."""

    n_windows: int
    n_subjects: int
    n_classes: int  # or bins of numbers
    subject: Share | None
    target: Share | None
    residual: float | None  # share 0..1; None where one of the others is
    words: tuple[str, ...]  # why something is not there
    meaning: str  # in one line


def partition(
    values: np.ndarray, subjects: np.ndarray, y: np.ndarray, draws: int = DRAWS, alpha: float = ALPHA
) -> Partition:
    """The partition of the variance of features of N windows.

    Args:
        values: features [N, ...]; what follows the first axis is flattened.
        subjects: text [N].
        y: targets [N] or [N, K]. Rows that are equal are a class; numbers with more than five values become five
            classes of equal counts.
        draws: shuffles of each null.
        alpha: of the words in `meaning`.

    Raises: ValueError for windows without features, arrays of different lengths, values that are not finite, no draw.
    """
    if draws < 1:
        raise ValueError(f'draws={draws}: expected at least one shuffle')
    x = np.asarray(values, np.float64).reshape(len(values), -1)
    if not x.size or not len(x) == len(subjects) == len(y) or not np.isfinite(x).all():
        of = f'{len(subjects)} subjects and {len(y)} targets'
        raise ValueError(f'features {list(np.shape(values))} of {of}: expected as many of each, and finite numbers')
    who, what = _numbers(np.asarray(subjects, str)), classes(np.asarray(y))
    power = float((x**2).sum())
    x = x - x.mean(0)
    whole = float((x**2).sum())
    counts = len(x), int(who.max()) + 1, int(what.max()) + 1
    if whole <= CONSTANT * power or not whole:
        same = 'the features are the same of all windows: there is no variance to divide'
        return Partition(*counts, None, None, None, (same,), same)
    x = _turned(x)
    cell = _numbers(who * counts[2] + what)
    no_subject, no_target = _why_not(who, what, cell)
    subject = None if no_subject else _subject(x, who, whole, draws)
    target = None if no_target else _target(x, who, what, whole, draws)
    rest = None if subject is None or target is None else max(0.0, 1 - subject.share - target.share)
    words = tuple(filter(None, (no_subject, no_target)))
    return Partition(*counts, subject, target, rest, words, meaning(subject, target, words, alpha))


def sums_of_squares(values: np.ndarray, subjects: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Sums of squares of subjects, of classes within a subject, and residual: f64 [3, d], feature by feature.

    Args:
        values: features [N, d].
        subjects: text or numbers [N].
        target: numbers of classes [N].
    """
    x = np.asarray(values, np.float64)
    x = x - x.mean(0)
    who = _numbers(subjects)
    cell = _numbers(who * (int(np.max(target)) + 1) + target)
    between, cells = _each(x, who), _each(x, cell)
    return np.stack([between, cells - between, (x**2).sum(0) - cells])


def classes(y: np.ndarray) -> np.ndarray:
    """The class of each target [N] or [N, K], int [N] from 0; of numbers with more than five values the fifth of the
    windows that it lies in, equal ones in one."""
    rows = y.reshape(len(y), -1)
    if rows.shape[1] == 1 and y.dtype.kind == 'f' and len(np.unique(rows)) > BINS:
        ends = np.quantile(rows[:, 0], np.arange(1, BINS) / BINS, method='inverted_cdf')
        return _numbers(np.searchsorted(np.unique(ends), rows[:, 0], side='left'))
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def meaning(subject: Share | None, target: Share | None, words: tuple[str, ...] = (), alpha: float = ALPHA) -> str:
    """What two shares mean, in one line."""
    if subject is None or target is None:
        known = [(name, s) for name, s in (('who was recorded', subject), ('the target', target)) if s is not None]
        seen = ''.join(
            f'the features {"" if s.p <= alpha else "do not "}differ by {name} beyond chance; ' for name, s in known
        )
        return seen + '; '.join(words)
    who, what = subject.p <= alpha, target.p <= alpha
    if who and what:
        a, b = (max(ROUNDING, s.share - s.chance) for s in (subject, target))
        more, less = ('subject', 'target') if a >= b else ('target', 'subject')
        ratio = f'{max(a / b, b / a):.3g}'
        return f'the features hold both; beyond chance the {more} is {ratio} times as much of them as the {less}'
    if who:
        return (
            'the features hold who was recorded, and of the target no more than chance: who learns from them may '
            'learn who it is'
        )
    if what:
        return 'the features hold the target, and of who was recorded no more than chance'
    return 'the features hold neither who was recorded nor the target beyond chance'


def _why_not(who: np.ndarray, what: np.ndarray, cell: np.ndarray) -> tuple[str, str]:
    """Why there is no share of the subject, and none of the target; '' where there is."""
    n, subjects, groups = len(who), int(who.max()) + 1, int(cell.max()) + 1
    alone = 'no two windows are of one subject' if subjects == n else ''
    subject = 'one subject: no others to differ from' if subjects == 1 else alone
    if not what.any():
        return subject, 'one class: no other to differ from'
    if alone:
        return subject, f'{alone}, so nothing lies within a subject'
    if groups == subjects:
        return subject, 'each subject shows one class, so that target and subject cannot be told apart'
    if groups == n:
        return subject, 'no class has two windows of a subject, so that classes cannot be told from single windows'
    return subject, ''


def _subject(x: np.ndarray, who: np.ndarray, whole: float, draws: int) -> Share:
    """The share of subjects; subjects are shuffled over all windows."""
    edges = np.flatnonzero(np.diff(np.sort(who), prepend=-1))
    counts = np.bincount(who)[:, None]

    def squares(rows: np.ndarray) -> float:
        return float((np.add.reduceat(x[rows], edges, axis=0) ** 2 / counts).sum())

    random = np.random.RandomState(SEED)  # its numbers are the same in every release of numpy
    true = squares(np.argsort(who, kind='stable'))
    return _judged(true, [squares(random.permutation(len(x))) for _ in range(draws)], whole)


def _target(x: np.ndarray, who: np.ndarray, what: np.ndarray, whole: float, draws: int) -> Share:
    """The share of classes within subjects; targets are shuffled within each subject. A subject of one class, or of one
    window, adds nothing in any order."""
    order = np.lexsort((what, who))
    x, who, what = x[order], who[order], what[order]
    first = np.flatnonzero(np.diff(who, prepend=-1))
    counts = np.diff(np.append(first, len(x)))
    x = x - np.repeat(np.add.reduceat(x, first, axis=0) / counts[:, None], counts, axis=0)
    cell = who * (int(what.max()) + 1) + what
    edges = np.flatnonzero(np.diff(cell, prepend=-1))
    sizes = np.diff(np.append(edges, len(x)))[:, None]

    def squares(rows: np.ndarray) -> float:
        return float((np.add.reduceat(x[rows], edges, axis=0) ** 2 / sizes).sum())

    random = np.random.RandomState(SEED)
    # by random keys, rows of a subject change places among themselves
    shuffled = (np.lexsort((random.random_sample(len(x)), who)) for _ in range(draws))
    return _judged(squares(np.arange(len(x))), [squares(rows) for rows in shuffled], whole)


def _judged(true: float, shuffled: list[float], whole: float) -> Share:
    """A share beside those of shuffled windows; the true order counts among them (Phipson & Smyth 2010)."""
    null = np.array(shuffled) / whole
    share = min(1.0, true / whole)
    reached = int((null >= share * (1 - ROUNDING)).sum())
    return Share(share, float(null.mean()) if len(null) else float('nan'), (reached + 1) / (len(null) + 1))


def _each(x: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Sum of squares of the means of groups about 0, feature by feature."""
    sums = np.zeros((int(group.max()) + 1, x.shape[1]))
    np.add.at(sums, group, x)
    found: np.ndarray = (sums**2 / np.bincount(group)[:, None]).sum(0)
    return found


def _turned(x: np.ndarray) -> np.ndarray:
    """Windows in as few coordinates as they span: sums of squares over all features stay what they are."""
    if x.shape[1] <= x.shape[0]:
        return x
    values, vectors = np.linalg.eigh(x @ x.T)
    turned: np.ndarray = vectors * np.sqrt(np.maximum(values, 0))
    return turned


def _numbers(names: np.ndarray) -> np.ndarray:
    """The number of each name among the sorted ones, int [N]."""
    return np.unique(names, return_inverse=True)[1].reshape(-1)
