"""The headlines of two models from the predictions beside their results: their difference, how sure it is, a test."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jbench import targets
from jbench.metrics import uncertainty
from jbench.metrics.keystrokes import NONE
from jbench.metrics.weighted import Weighted
from jbench.report.aggregate import Score
from jbench.report.statistics import exchange, paired
from jbench.results import predictions, result_file
from jbench.spec.errors import RequestError
from jbench.spec.metrics import METRICS
from jbench.targets import score

SAME = ('id', 'y', 'subject', 'group', 'vectors', 'cell')  # what two results were asked
HITS = ('top5_acc', 'window_top5_acc', 'subject_top5_acc')
# what is (but for a root) a sum over windows, so that subjects' own scores make it up
SUMS = ('acc', 'hamming', 'exact_match', 'mae', 'rmse', 'cer', *HITS, *(f'{name}_250' for name in HITS))
ROUNDING = 1e-9
NEEDED = 'needs the predictions (.npz)'

Answers = tuple[np.ndarray, np.ndarray, np.ndarray]  # outputs, targets, subjects


class Headlines(NamedTuple):
    """Two headlines, means over seeds; differences are positive where A is better."""

    a: float
    b: float
    n: int  # subjects
    n_seeds: int  # of each
    difference: float
    error: float | None  # standard error, by the jackknife over subjects
    interval: tuple[float, float] | None  # 95 %, over subjects
    test: paired.Test
    alike: bool  # each subject has a score of its own that is of the same classes
    rarest: int | None  # where each subject shows one class, the fewest subjects that show the same


class _Seed(NamedTuple):
    """What one result gave."""

    kind: str
    level: str
    arrays: dict[str, np.ndarray]
    value: float  # its headline


def headlines(a: Score, b: Score) -> Headlines | str:
    """Two models on one protocol.

    Of seeds, those that both have; where there is none, the first of A and the first of B, and so on.

    Returns: in words, why there is no such comparison.
    """
    paths = _paired(a.paths, b.paths)
    if not paths or not all(Path(path).with_suffix('.npz').is_file() for path in itertools.chain(*paths)):
        return NEEDED
    try:
        both = [(_seed(mine), _seed(theirs)) for mine, theirs in paths]
    except RequestError as error:  # damaged: told, and the other tasks are compared
        return str(error)
    first = both[0][0].arrays
    for seed in itertools.chain(*both):
        if not all(_same(first.get(name), seed.arrays.get(name)) for name in SAME):
            return 'the predictions are not of the same windows'
    sides = [(_weighted([x], a.metric), _weighted([y], a.metric), _weighted([x, y], a.metric)) for x, y in both]
    n = len(np.unique(first['subject']))
    ours, theirs, stacks = ([w for w in column if w is not None] for column in zip(*sides, strict=True))
    if len(stacks) < len(both):
        return f'{a.metric} is no score of subjects'
    for stack, pair in zip(stacks, both, strict=True):
        found = stack(np.kron(np.eye(2), np.ones(n)))
        if not np.allclose(found, [seed.value for seed in pair], rtol=ROUNDING, atol=ROUNDING):
            return 'one of them gives answers that no window has: their headlines are not of the same classes'
    return _judged(a, both, n, (ours, theirs, stacks))


def _judged(
    a: Score, both: Sequence[tuple[_Seed, _Seed]], n: int, sides: tuple[list[Weighted], list[Weighted], list[Weighted]]
) -> Headlines:
    """Of seeds of A and B [(A, B)], and their scores by weights: of A, of B, of both."""
    ours, theirs, stacks = sides
    sign = 1 if a.better == 'higher' else -1
    means = [float(np.mean([pair[k].value for pair in both])) for k in (0, 1)]
    size = max(map(abs, means)) or 1.0
    difference = sign * (means[0] - means[1])
    of = exchange.difference(stacks)
    found = exchange.exchange(lambda who, counts: sign * of(who, counts), n, _differ(both), size)

    def gap(counts: np.ndarray) -> np.ndarray:
        return sign * np.asarray(np.mean([x(counts) - y(counts) for x, y in zip(ours, theirs, strict=True)], 0))

    shown = _shown(both[0][0]) if needs_classes(a.metric) else np.ones((n, 1), bool)
    single = shown.shape[1] > 1 and bool((shown.sum(1) == 1).all())
    return Headlines(
        a=means[0],
        b=means[1],
        n=n,
        n_seeds=len(both),
        difference=0.0 if abs(difference) <= ROUNDING * size else difference,
        error=found.error,
        interval=uncertainty.interval(gap, n, (-np.inf, np.inf)) if found.test.n else None,
        test=found.test,
        alike=bool(shown.all()),
        rarest=int(shown.sum(0).min()) if single else None,
    )


def _seed(path: str) -> _Seed:
    """A result with its predictions. Raises: RequestError."""
    result = result_file.read(path)
    task = result['config']['task']
    value = result['headline']['value']
    arrays = predictions.load_predictions(path)
    return _Seed(task['target']['kind'], task.get('level', 'window'), arrays, float(value))


def _paired(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, str]]:
    """Paths of the seeds that both have; of none, in their order."""
    ours, theirs = ({Path(path).name: path for path in side} for side in (a, b))
    common = [(ours[name], theirs[name]) for name in ours if name in theirs]
    return common or list(zip(a, b, strict=False))


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b is None or (a is not None and b is not None and np.array_equal(a, b))


def _answers(seed: _Seed) -> Answers:
    return score.pooled(seed.kind, seed.arrays, seed.level)


def _weighted(seeds: Sequence[_Seed], metric: str) -> Weighted | None:
    """The headline by how often each subject counts; of two results, the subjects of the first, then of the second."""
    known, arrays = targets.of(seeds[0].kind), seeds[0].arrays
    answers = [_answers(seed) for seed in seeds]
    outputs = _together([np.asarray(said, np.float64) for said, _, _ in answers])
    y = np.concatenate([known.checked(y, outputs.shape[1]) for _, y, _ in answers])
    owners = [np.unique(subjects, return_inverse=True)[1] for _, _, subjects in answers]
    owner = np.concatenate([owner + k * (owner.max() + 1) for k, owner in enumerate(owners)])
    about: dict[str, Any] = {k: np.concatenate([arrays[k]] * len(seeds)) for k in ('group', 'subject') if k in arrays}
    about |= {'vectors': arrays['vectors']} if 'vectors' in arrays else {}
    if 'cell' in arrays:  # those of each result are its own
        about['cell'] = np.concatenate([np.char.add(f'{k} ', arrays['cell']) for k in range(len(seeds))])
    return known.by_weights(outputs, y, owner, about, metric)


def _together(outputs: list[np.ndarray]) -> np.ndarray:
    """Outputs one after another; those of frames as long as the longest."""
    width = max(said.shape[1] for said in outputs)
    return np.concatenate([np.pad(o, ((0, 0), (0, width - o.shape[1])), constant_values=NONE) for o in outputs])


def _differ(both: Sequence[tuple[_Seed, _Seed]]) -> np.ndarray:
    """Numbers of the subjects to whom A and B do not answer alike in some seed."""
    names, owner = np.unique(both[0][0].arrays['subject'], return_inverse=True)
    differs = np.zeros(len(names), bool)
    for pair in both:
        a, b = np.split(_together([seed.arrays['outputs'] for seed in pair]), 2)
        differs[owner[(a != b).any(1)]] = True
    return np.flatnonzero(differs)


def _shown(seed: _Seed) -> np.ndarray:
    """Which subject shows which of the classes or labels that are shown, bool [S, K]."""
    _, y, subjects = _answers(seed)
    shown = y > 0 if y.ndim == 2 else y[:, None] == np.unique(y)
    owner = np.unique(subjects, return_inverse=True)[1]
    return np.stack([np.bincount(owner, column) > 0 for column in shown[:, shown.any(0)].T], 1)


def needs_classes(metric: str) -> bool:
    """Whether a score is of classes, so that a subject that lacks one has another score than all together."""
    return METRICS[metric].balanced or metric in ('auroc', 'auprc')


def by_subjects(a: Score, b: Score, differences: np.ndarray) -> str:
    """Why the mean of subjects' own differences f64 [n] does not stand for that of the headlines; '' where it may.

    A subject's own score is that of all windows where those are a sum over windows; and both have one sign.
    """
    if a.metric not in SUMS:
        return NEEDED
    size = max(abs(a.mean), abs(b.mean)) or 1.0
    gap = (a.mean - b.mean) * (1 if a.better == 'higher' else -1)
    signs = [np.sign(v) * (abs(v) > ROUNDING * size) for v in (gap, differences.mean())]
    return '' if signs[0] == signs[1] else f'{NEEDED}: headlines and subjects do not agree'
