"""How often are two models called different that are not, and how often are those found that are?

    python benchmarks/null_comparisons.py [--trials=1000] [--only=one_class]

Models are compared as `jbench compare` and the critical-difference diagram do it, on scores of subjects that are drawn:

  windows  each subject has an ability, normal, sd 0.1, around 0.7; a score is the share of right ones of 20 windows.
           Two seeds of one model have new windows: equal scores are common
  normal   the same, where the score adds normal noise, sd 0.05, to the ability: no two are equal
  heavy    the noise is Student's t of 3 degrees of freedom: few subjects differ by far more than the others
  answers  each subject gives one answer, right with the probability of its ability

and on subjects of one class each (a diagnosis), 50 windows a subject, whose share of right ones is that of the class
(BIASES) plus normal noise, sd 0.1, anew for each model; the headline is balanced accuracy.

On stdout tables in Markdown (docs/statistics.md has them), in per cent; the standard error of a trial of 1,000 is 0.7
at 5 and 1.3 at 80. Permutations are 2,000 (jbench: 10,000), exact up to ten subjects. Simulated.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from jbench.metrics import uncertainty, weighted
from jbench.report.statistics import datasets, exchange, folds, many, paired

SUBJECTS = (5, 6, 7, 8, 10, 15, 20, 30, 50)
KINDS = ('windows', 'normal', 'heavy', 'answers')
DATASETS = (2, 3, 5, 10, 20)
ROWS = (6, 8, 10, 20, 36)  # tasks of a critical-difference diagram
FOLDS = (5, 10, 30)
BIASES = {  # shares of right ones of healthy and ill, of two models
    'equal models': ((0.65, 0.65), (0.65, 0.65)),
    'opposite bias': ((0.75, 0.55), (0.55, 0.75)),
    'a coin and a dummy': ((0.5, 0.5), (1.0, 0.0)),
    'a net and a dummy': ((0.72, 0.72), (1.0, 0.0)),
    'a better net': ((0.75, 0.75), (0.65, 0.65)),
}
PATIENTS = ((5, 5), (10, 10), (16, 4), (27, 3), (28, 2))  # healthy, ill
Cell = dict[str, Any]


def seeds(kind: str, n: int, random: np.random.Generator, n_models: int = 2) -> np.ndarray:
    """Scores [n_models, n] of the same model with new seeds."""
    ability = random.normal(0.7, 0.1, n).clip(0, 1)
    if kind == 'windows':
        return random.binomial(20, ability, (n_models, n)) / 20
    if kind == 'answers':
        return random.binomial(1, ability, (n_models, n)).astype(float)
    noise = random.normal(0, 1, (n_models, n)) if kind == 'normal' else random.standard_t(3, (n_models, n)) / np.sqrt(3)
    return ability + 0.05 * noise


def one_task(kind: str, n: int, shift: float, random: np.random.Generator) -> dict[str, bool]:
    """Which tests call two models different, whose true difference is `shift` sd of the difference."""
    a, b = seeds(kind, n, random)
    d = paired.differences(a + shift * 0.05 * np.sqrt(2), b)
    interval = paired.difference(d).interval
    return {
        'permutation': paired.permutation(d).p <= paired.ALPHA,
        'wilcoxon': paired.wilcoxon(d).p <= paired.ALPHA,
        'interval': interval is not None and not interval[0] <= 0 <= interval[1],
    }


def one_class(bias: str, healthy: int, ill: int, random: np.random.Generator) -> dict[str, bool]:
    """Which tests call two models different on subjects of one class each, and whether the second is called better."""
    of = np.repeat([0, 1], (healthy, ill))
    n = len(of)
    owner, y = np.tile(np.repeat(np.arange(n), 50), 2), np.tile(np.repeat(of, 50), 2)
    shares = np.array(BIASES[bias])[:, of]
    varies = (shares > 0) & (shares < 1)
    right = random.binomial(50, (shares + 0.1 * varies * random.normal(size=shares.shape)).clip(0, 1))
    said = np.where(np.arange(50) < right[..., None], of[:, None], 1 - of[:, None]).ravel()
    owner[n * 50 :] += n
    stack = weighted.classes(np.eye(2)[said], y, owner, 'bal_acc')
    found = exchange.exchange(exchange.difference([stack]), n, np.arange(n)).test
    mean = paired.permutation(paired.differences(*(right / 50)))
    return {
        'exchange': found.p <= paired.ALPHA,
        'second': found.p <= paired.ALPHA and found.z < 0,
        'mean': mean.p <= paired.ALPHA,
        'mean second': mean.p <= paired.ALPHA and mean.z < 0,
    }


def five_tasks(kind: str, n: int, random: np.random.Generator) -> dict[str, bool]:
    """Whether any of five tasks is called different."""
    tests = [paired.permutation(paired.differences(*seeds(kind, n, random))).p for _ in range(5)]
    return {'holm': bool((many.holm(tests) <= paired.ALPHA).any())}


def over_datasets(k: int, spread: float, random: np.random.Generator) -> dict[str, bool]:
    """Two models over k datasets of 4 to 40 subjects, whose true differences vary around 0 with `spread` sd."""
    sizes = np.exp(random.uniform(np.log(4), np.log(40), k)).round().astype(int)
    entries = []
    for n in sizes:
        a, b = seeds('windows' if not spread else 'normal', n, random)
        shift = random.normal(0, spread) * 0.05 * np.sqrt(2)
        entries.append(datasets.entry([datasets.task(paired.differences(a + shift, b))]))
    stouffer = datasets.stouffer([z for z, *_ in entries], [n for _, n, *_ in entries])
    known = [(g, v) for *_, g, v in entries if g is not None]
    effects = datasets.random_effects([g for g, _ in known], [v for _, v in known])
    return {'stouffer': stouffer.p <= paired.ALPHA, 'effects': bool(effects and (effects.p or 1) <= paired.ALPHA)}


def diagram(n: int, random: np.random.Generator) -> dict[str, bool]:
    """Whether any two of five equal models are told apart over n tasks."""
    found = many.ranking(seeds('normal', n, random, 5).T)
    return {'diagram': found.groups != (tuple(range(5)),), 'friedman': found.friedman_p <= paired.ALPHA}


def resampled(k: int, random: np.random.Generator) -> dict[str, bool]:
    """Whether two classifiers that know different, equally good features are called different: nearest means, k random
    divisions of 100 windows into 90 to train and 10 to test."""
    y = np.arange(100) % 2
    x = random.normal(size=(100, 20)) + 0.25 * (2 * y[:, None] - 1)
    d = np.empty(k)
    for fold in range(k):
        order = random.permutation(100)
        train, test = order[:90], order[90:]
        right = []
        for half in (x[:, :10], x[:, 10:]):
            means = [half[train][y[train] == c].mean(0) for c in (0, 1)]
            said = np.linalg.norm(half[test] - means[0], axis=1) > np.linalg.norm(half[test] - means[1], axis=1)
            right.append((said == y[test]).mean())
        d[fold] = right[0] - right[1]
    p = folds.corrected_t(d, 90, 10).p
    t = d.mean() / (d.std(ddof=1) / np.sqrt(k)) if d.std() else 0.0
    return {'corrected': p is None or p <= paired.ALPHA, 'plain': 2 * special.stdtr(k - 1, -abs(t)) <= paired.ALPHA}


def trial(name: str, at: tuple[Any, ...]) -> Callable[[np.random.Generator], dict[str, bool]]:
    """What one trial of a cell does."""
    return functools.partial({f.__name__: f for f in TRIALS}[name], *at)


TRIALS = (one_task, one_class, five_tasks, over_datasets, diagram, resampled)


@functools.cache
def _all_weights(n: int, drawn: Any = uncertainty._weights) -> list[np.ndarray]:
    return list(drawn(n))


def cell(asked: tuple[str, tuple[Any, ...], int]) -> tuple[tuple[str, tuple[Any, ...]], Cell]:
    """The share of trials, in per cent, in which each test says that there is a difference."""
    name, at, trials = asked
    uncertainty.DRAWS, uncertainty._weights = 2000, _all_weights  # one set of draws, thousands of comparisons
    random = np.random.default_rng([hash_of(name), *map(hash_of, at)])
    run = trial(name, at)
    found = [run(random=random) for _ in range(trials)]
    return (name, at), {test: 100 * float(np.mean([f[test] for f in found])) for test in found[0]}


def hash_of(value: Any) -> int:
    """A number for a name or a number, the same each time."""
    return int.from_bytes(str(value).encode(), 'big') % 2**31


def table(title: str, heads: tuple[Any, ...], rows: list[tuple[str, list[float]]]) -> None:
    """A table in Markdown."""
    print(f'\n{title}\n')
    print('| |', ' | '.join(map(str, heads)), '|')
    print('|---' * (len(heads) + 1) + '|')
    for name, values in rows:
        print(f'| {name} |', ' | '.join(f'{v:.1f}' for v in values), '|')


def patients(trials: int) -> None:
    """The table of subjects of one class each."""
    asked = [('one_class', (bias, *counts), trials) for bias in BIASES for counts in PATIENTS]
    with multiprocessing.get_context('spawn').Pool() as pool:
        found = dict(pool.imap_unordered(cell, asked, chunksize=1))
    rows = [
        (f'{words}, {bias}', [found['one_class', (bias, *counts)][test] for counts in PATIENTS])
        for bias in BIASES
        for test, words in (
            ('exchange', 'subjects exchanged'),
            ('second', 'of these the second is better'),
            ('mean', 'mean over subjects'),
            ('mean second', 'of these the second is better (mean)'),
        )
        if 'second' not in test or bias == 'a net and a dummy'
    ]
    heads = tuple(f'{healthy} + {ill}' for healthy, ill in PATIENTS)
    table('subjects of one class each, called different, %, by subjects of the two', heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--trials', type=int, default=1000)
    parser.add_argument('--only', choices=('one_class',), help='this population alone')
    args = parser.parse_args()
    trials = args.trials
    patients(trials)
    if args.only:
        return
    least = {n: paired.detectable(1.0, n) or 0.0 for n in SUBJECTS}
    asked: list[tuple[str, tuple[Any, ...]]] = [('one_task', (kind, n, 0.0)) for kind in KINDS for n in SUBJECTS]
    asked += [('one_task', (kind, n, least[n])) for kind in ('normal', 'heavy') for n in SUBJECTS[1:]]
    asked += [('five_tasks', ('windows', n)) for n in SUBJECTS]
    asked += [('over_datasets', (k, spread)) for k in DATASETS for spread in (0.0, 0.5)]
    asked += [('diagram', (n,)) for n in ROWS] + [('resampled', (k,)) for k in FOLDS]
    with multiprocessing.get_context('spawn').Pool() as pool:
        found = dict(pool.imap_unordered(cell, [(name, at, trials) for name, at in asked], chunksize=1))
    rows = [
        (f'{words}, {kind}', [found['one_task', (kind, n, 0.0)][test] for n in SUBJECTS])
        for test, words in (
            ('permutation', 'permutation'),
            ('wilcoxon', 'Wilcoxon'),
            ('interval', 'interval without 0'),
        )
        for kind in KINDS
    ]
    rows.append(('five tasks, Holm, windows', [found['five_tasks', ('windows', n)]['holm'] for n in SUBJECTS]))
    table('two seeds of one model called different, %, by subjects', SUBJECTS, rows)
    rows = [
        (f'{words}, {kind}', [found['one_task', (kind, n, least[n])][test] for n in SUBJECTS[1:]])
        for test, words in TESTS
        for kind in ('normal', 'heavy')
    ]
    table('the minimum detectable difference found, %, by subjects', SUBJECTS[1:], rows)
    table(
        'over datasets of 4 to 40 subjects, %, by datasets',
        DATASETS,
        [
            (f'{words}, {how}', [found['over_datasets', (k, spread)][test] for k in DATASETS])
            for spread, how in ((0.0, 'no difference anywhere'), (0.5, 'differences vary around 0, sd 0.5'))
            for test, words in (('stouffer', 'Stouffer'), ('effects', 'random effects'))
        ],
    )
    rows = [(words, [found['diagram', (n,)][test] for n in ROWS]) for test, words in DIAGRAM]
    table('five equal models, %, by tasks', ROWS, rows)
    rows = [(words, [found['resampled', (k,)][test] for k in FOLDS]) for test, words in RESAMPLED]
    table('two equally good classifiers on resampled folds, %, by folds', FOLDS, rows)


TESTS = (('permutation', 'permutation'), ('wilcoxon', 'Wilcoxon'))
DIAGRAM = (('friedman', 'Friedman rejects'), ('diagram', 'any two told apart'))
RESAMPLED = (('corrected', 'corrected t'), ('plain', 'plain t'))

if __name__ == '__main__':
    main()
