"""How sure shares of right answers are where each subject gave one answer: these are binary, and no bootstrap of few
binary numbers is right."""

from __future__ import annotations

import numpy as np

from jbench.metrics.uncertainty import ALPHA, CHUNK, CONFIDENCE, DRAWS, SEED, Interval, six_digits


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


def differs_from_chance(said: np.ndarray, y: np.ndarray, chance: float, *, balanced: bool) -> bool:
    """A two-sided test at 5 %: whether guesses would rarely have a score as far from chance.

    Accuracy: binomial, `chance` being the probability of a right answer. Balanced accuracy, whose chance is 1/K: of
    10,000 exchanges of classes between subjects, few have a score as far from their mean as the true one, which counts
    among them.

    Args: as for `interval`; chance: of a right answer.
    """
    from scipy import special

    n = len(y)
    if not balanced:
        right = int((said == y).sum())
        tails = special.bdtr(right, n, chance), special.bdtrc(right - 1, n, chance) if right else 1.0
        return bool(2 * min(tails) <= ALPHA)
    order = np.lexsort([said, y])  # the order of subjects does not count
    said, y = said[order], y[order]
    weight = 1 / np.bincount(y)[y]
    expected = float((weight * np.bincount(said, minlength=int(y.max()) + 1)[y]).sum() / n)
    random = np.random.RandomState(SEED)
    scores, rows = [(weight * (said == y)).sum(keepdims=True)], max(1, CHUNK // n)
    for first in range(0, DRAWS, rows):
        drawn = np.argsort(random.random_sample((min(rows, DRAWS - first), n)), axis=1)
        scores.append((weight[drawn] * (y[drawn] == said)).sum(1))
    far = np.abs(np.concatenate(scores) - expected)
    return bool((far >= far[0] - 1e-9).mean() <= ALPHA)
