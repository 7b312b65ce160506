"""How sure shares of right answers are where each subject gave one answer: these are binary, and no bootstrap of few
binary numbers is right."""

from __future__ import annotations

import numpy as np

from jbench.metrics.uncertainty import CHUNK, CONFIDENCE, DRAWS, SEED, Interval, six_digits

ALPHA = 0.05


def interval(said: np.ndarray, y: np.ndarray, *, balanced: bool) -> Interval:
    """95 % interval of the accuracy, or of the balanced one, the mean of the classes' shares of right answers.

    Wilson's score interval (1927, J. Am. Stat. Assoc. 22:209) of each share; of several, the squares of their distances
    are added (Zou & Donner 2008, Stat. Med. 27:1693).

    Args:
        said, y: int [S], answer and class of each subject.
        balanced: whether every class counts alike; one that is said and has no subject counts 0.
    """
    from scipy import special  # scipy.stats takes half a second to import

    group, n_shares = (y, len(set(y) | set(said))) if balanced else (np.zeros_like(y), 1)
    asked = np.bincount(group)
    right = np.bincount(group, said == y)[asked > 0]
    asked = asked[asked > 0]
    z = special.ndtri(0.5 + CONFIDENCE / 2)
    p = right / asked
    centre = (p + z**2 / (2 * asked)) / (1 + z**2 / asked)
    half = z / (1 + z**2 / asked) * np.sqrt(p * (1 - p) / asked + z**2 / (4 * asked**2))
    down, up = (np.sqrt(((centre + side - p) ** 2).sum()) for side in (-half, half))
    return six_digits(np.clip(np.array([p.sum() - down, p.sum() + up]) / n_shares, 0, 1))


def differs_from_chance(said: np.ndarray, y: np.ndarray, *, balanced: bool) -> bool:
    """Permutation test at 5 %: whether, of 10,000 exchanges of classes between subjects, few have a score as far from
    the mean of all as the true one has, which counts among them. Exact however few subjects there are.

    Args: as for `interval`.
    """
    random = np.random.RandomState(SEED)
    weight = (1 / np.bincount(y)[y] if balanced else np.ones(len(y))) * np.ones(len(y))
    scores, rows = [(weight * (said == y)).sum(keepdims=True)], max(1, CHUNK // len(y))
    for first in range(0, DRAWS, rows):
        order = np.argsort(random.random_sample((min(rows, DRAWS - first), len(y))), axis=1)
        scores.append((weight[order] * (y[order] == said)).sum(1))
    found = np.concatenate(scores)
    far = np.abs(found - found[1:].mean())
    return bool((far >= far[0] - 1e-9).mean() <= ALPHA)
