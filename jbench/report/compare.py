"""Two models on the same subjects, task by task and over datasets; nothing is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.report import compare_folds, compare_headlines
from jbench.report.aggregate import Score, customised
from jbench.report.statistics import datasets, many, paired
from jbench.report.statistics.folds import Resampled
from jbench.spec.errors import RequestError

ALPHA = paired.ALPHA
EQUAL = 'equal on every subject'
NONE = 'without a verdict'
RAREST = 3  # subjects of a class, where each has one: of fewer the test says too much (docs/statistics.md)
FEW = 5  # datasets: of fewer nothing is said of how different they are


class Pair(NamedTuple):
    """Two models on one dataset of one task. What is None is not known, or not tested."""

    task: str
    version: int
    dataset: str
    protocol: str
    metric: str
    better: str
    a: float  # headlines, means over seeds
    b: float
    n: int  # subjects that both have
    only: tuple[int, int]  # subjects that A alone has, and B alone
    difference: float  # of what is tested, else of the headlines; positive where A is better
    each: float | None  # mean of the subjects' own differences
    basis: str = ''  # what is tested: 'headline'; 'subjects', the mean of their differences; '' for nothing
    n_seeds: int | None = None  # of each, that were compared; None where no predictions were read
    sd: float | None = None  # of a subject: standard error times sqrt(n)
    interval: tuple[float, float] | None = None  # 95 %
    p: float | None = None  # paired permutation
    least: float | None = None  # the smallest p that so many subjects can give
    rarest: int | None = None  # where each subject shows one class, the fewest subjects that show the same
    adjusted: float | None = None  # p, Holm over the tasks
    wilcoxon: float | None = None  # of subjects' own differences, as are g and the ranks: not where one lacks classes
    wilcoxon_adjusted: float | None = None  # Holm over the tasks that have one
    g: float | None = None  # standardised mean difference
    rank_biserial: float | None = None
    detectable: float | None = None  # least difference found with a power of 0.8, of this task alone
    folds: Resampled | None = None  # of a cross-validation, fold by fold; it decides nothing
    changes: tuple[str, ...] = ()  # how the protocol departs from the task's own
    verdict: str = ''


class Over(NamedTuple):
    """Two models over datasets."""

    n: int  # datasets
    stouffer: datasets.Combined
    effects: datasets.RandomEffects | None  # of g; None where no dataset has one
    verdict: str


class Comparison(NamedTuple):
    """Two models, over everything that both were run on."""

    a: str
    b: str
    pairs: tuple[Pair, ...]
    over: Over | None  # None for a single dataset
    left_out: tuple[tuple[str, str], ...]  # task/dataset, reason
    verdict: str


def compare(a: Sequence[Score], b: Sequence[Score], names: tuple[str, str]) -> Comparison:
    """Compare two models where their protocols are equal; of a task on a dataset in the newest version that both have,
    if possible without changes of the user's.

    Each task has a permutation test of the headlines that exchanges subjects (`compare_headlines`), adjusted by Holm
    over the tasks: it decides the verdict. Over datasets, Stouffer's test decides, and a random-effects meta-analysis
    says whether that holds for datasets like these; tasks on one dataset share its subjects, and make one entry
    (`datasets.entry`).

    Args:
        a, b: scores of one model each, at most one of a protocol.
        names: what they are called.
    Raises: RequestError where they have no task in common, or no subject in any.
    """
    ours, theirs = ({s.protocol: s for s in side} for side in (a, b))
    shared = sorted(ours.keys() & theirs.keys(), key=lambda p: (-ours[p].version, customised(p), p))
    if not shared:
        raise _nothing_in_common(a, b, names)
    left_out = _one_sided(ours, theirs, names)
    first: dict[tuple[str, str], str] = {}
    for protocol in shared:
        chosen = first.setdefault((ours[protocol].task, ours[protocol].dataset), protocol)
        if chosen != protocol:
            left_out.append((_place(ours[protocol]), f'another protocol than {chosen}: {protocol}'))
    both = [first[place] for place in sorted(first)]
    found: list[tuple[Pair, float | None]] = []
    for protocol in both:
        pair = _pair(ours[protocol], theirs[protocol])
        if pair is None:
            left_out.append((_place(ours[protocol]), _no_subjects(ours[protocol], theirs[protocol], names)))
        else:
            found.append(pair)
    if not found:
        reasons = '\n'.join(f'  {place}: {reason}' for place, reason in left_out)
        raise RequestError(f'{names[0]} and {names[1]} have no subject in common in any task\n{reasons}')
    adjusted = [many.holm_of_known([getattr(pair, name) for pair, _ in found]) for name in ('p', 'wilcoxon')]
    pairs = tuple(
        _judged(pair._replace(adjusted=p, wilcoxon_adjusted=wilcoxon), names)
        for (pair, _), p, wilcoxon in zip(found, *adjusted, strict=True)
    )
    over = _over([(pair, z) for pair, (_, z) in zip(pairs, found, strict=True) if z is not None], names)
    return Comparison(*names, pairs, over, tuple(left_out), _verdict(pairs, over, names))


def plain(comparison: Comparison) -> dict[str, Any]:
    """A comparison as dictionaries of plain values, for JSON."""
    over = comparison.over
    return {
        **comparison._asdict(),
        'alpha': ALPHA,
        'pairs': [{**pair._asdict(), 'folds': pair.folds and pair.folds._asdict()} for pair in comparison.pairs],
        'over': over
        and {
            **over._asdict(),
            'stouffer': over.stouffer._asdict(),
            'effects': over.effects and over.effects._asdict(),
        },
        'left_out': [{'place': place, 'reason': reason} for place, reason in comparison.left_out],
    }


def _pair(a: Score, b: Score) -> tuple[Pair, float | None] | None:
    """Two scores of one protocol, and the normal score of their test; None where no subject is in both."""
    common = sorted(a.per_subject.keys() & b.per_subject.keys())
    x, y = (np.array([score.per_subject[s] for s in common], np.float64) for score in (a, b))
    d = paired.differences(x, y, a.better)
    found = compare_headlines.headlines(a, b)
    if not len(d) and isinstance(found, str):
        return None
    pair = Pair(
        task=a.task,
        version=a.version,
        dataset=a.dataset,
        protocol=a.protocol,
        metric=a.metric,
        better=a.better,
        a=a.mean,
        b=b.mean,
        n=len(d),
        only=(len(a.per_subject) - len(common), len(b.per_subject) - len(common)),
        difference=(a.mean - b.mean) * (1 if a.better == 'higher' else -1),
        each=float(d.mean()) if len(d) else None,
        folds=compare_folds.by_folds(a, b),
        changes=a.changes,
    )
    if isinstance(found, str):
        return _by_subjects(
            pair, d, found if found != compare_headlines.NEEDED else compare_headlines.by_subjects(a, b, d)
        )
    sd = None if found.error is None else found.error * float(np.sqrt(found.n))
    pair = pair._replace(
        a=found.a,
        b=found.b,
        n=found.n,
        basis='headline',
        n_seeds=found.n_seeds,
        difference=found.difference,
        sd=sd,
        interval=found.interval,
        p=found.test.p,
        least=found.test.least,
        rarest=found.rarest,
        detectable=paired.detectable(sd, found.n),
    )
    return _with_effects(pair, d) if found.alike and len(d) == found.n else pair, found.test.z


def _by_subjects(pair: Pair, d: np.ndarray, why_not: str) -> tuple[Pair, float | None]:
    """A pair of which there are the subjects' own differences [n] alone: tested, unless there is a reason not to."""
    if why_not:
        return pair._replace(verdict=f'no verdict: {why_not}'), None
    mean, test = paired.difference(d), paired.permutation(d)
    pair = pair._replace(
        basis='subjects',
        difference=float(d.mean()),
        sd=mean.sd,
        interval=mean.interval,
        p=test.p,
        least=test.least,
        detectable=paired.detectable(mean.sd, len(d)),
    )
    return _with_effects(pair, d), test.z


def _with_effects(pair: Pair, d: np.ndarray) -> Pair:
    """A pair with what the subjects' own differences [n] say."""
    effect = paired.effect(d)
    return pair._replace(wilcoxon=paired.wilcoxon(d).p, g=effect.g, rank_biserial=effect.rank_biserial)


def _judged(pair: Pair, names: tuple[str, str]) -> Pair:
    """A pair with what follows from its adjusted p."""
    if pair.adjusted is None or pair.least is None:
        return pair
    if _equal(pair):
        verdict = EQUAL
    elif pair.rarest is not None and pair.rarest < RAREST:
        few = f'{pair.rarest} subject{"s" * (pair.rarest != 1)}'
        verdict = f'cannot be told apart: {few} of a class cannot show a difference'
    elif pair.adjusted <= ALPHA and pair.difference:
        verdict = f'{names[0] if pair.difference > 0 else names[1]} is better'
    elif pair.least > ALPHA:
        verdict = f'cannot be told apart: {pair.n} subject{"s" * (pair.n != 1)} cannot show a difference'
    else:
        verdict = 'cannot be told apart'
    return pair._replace(verdict=verdict)


def _equal(pair: Pair) -> bool:
    """Whether two models are equal on every subject."""
    return pair.p == 1.0 and not pair.difference and not pair.sd


def _over(found: Sequence[tuple[Pair, float]], names: tuple[str, str]) -> Over | None:
    """What all datasets say together, from pairs and their normal scores; None for a single one."""
    by_dataset: dict[str, list[datasets.OnTask]] = {}
    for pair, z in found:
        by_dataset.setdefault(pair.dataset, []).append(datasets.OnTask(z, pair.n, pair.g))
    if len(by_dataset) < 2:
        return None
    entries = [datasets.entry(tasks) for tasks in by_dataset.values()]
    stouffer = datasets.stouffer([e.z for e in entries], [e.n for e in entries])
    known = [(e.g, e.variance) for e in entries if e.g is not None and e.variance is not None]
    effects = datasets.random_effects([g for g, _ in known], [v for _, v in known])
    verdict = EQUAL if all(_equal(pair) for pair, _ in found) else 'cannot be told apart'
    if stouffer.p <= ALPHA:
        verdict = f'{names[0] if stouffer.z > 0 else names[1]} is better'
        if effects is None or effects.p is None or effects.p > ALPHA or effects.effect * stouffer.z < 0:
            verdict += f' on these; they are too {"few" if len(known) < FEW else "different"} to say so of others'
    return Over(len(entries), stouffer, effects, verdict)


def _verdict(pairs: Sequence[Pair], over: Over | None, names: tuple[str, str]) -> str:
    """The comparison in a sentence or two."""
    if len(pairs) == 1:
        text = f'{names[0]} and {names[1]}: {pairs[0].verdict}.'
    else:
        words = ('cannot be told apart', 'no verdict')  # reasons may follow
        count = Counter(next(filter(pair.verdict.startswith, words), pair.verdict) for pair in pairs)
        told = [f'{name} is better on {count[word]}' for name in names if count[word := f'{name} is better']]
        told += [f'{count[EQUAL]} {"are" if count[EQUAL] > 1 else "is"} {EQUAL}'] if count[EQUAL] else []
        told += [f'{count[word]} {with_}' for word, with_ in zip(words, (words[0], NONE), strict=True) if count[word]]
        text = f'Of {len(pairs)} tasks: {", ".join(told)}.'
    return text if over is None else f'{text} Over {over.n} datasets: {over.verdict}.'


def _place(score: Score) -> str:
    return f'{score.task}@{score.version}/{score.dataset}'


def _one_sided(ours: Mapping[str, Score], theirs: Mapping[str, Score], names: tuple[str, str]) -> list[tuple[str, str]]:
    """What only one of two models has, or has in another way."""
    told = []
    for mine, other, name in ((ours, theirs, names[0]), (theirs, ours, names[1])):
        places = {_place(s): s.protocol for s in other.values()}
        for score in mine.values():
            if score.protocol not in other:
                place = _place(score)
                ways = f'protocols differ: {score.protocol} | {places[place]}' if place in places else ''
                if not ways or mine is ours:  # which both have, once
                    told.append((place, ways or f'only {name} has it'))
    return told


def _no_subjects(a: Score, b: Score, names: tuple[str, str]) -> str:
    """Why two scores cannot be paired."""
    for score, name in zip((a, b), names, strict=True):
        if not score.per_subject:
            return f'the scores of {name} name no subjects' + ' (published)' * (score.origin == 'published')
    return 'no subject in common'


def _nothing_in_common(a: Sequence[Score], b: Sequence[Score], names: tuple[str, str]) -> RequestError:
    """The error for two models that cannot be compared anywhere."""
    told = _one_sided({s.protocol: s for s in a}, {s.protocol: s for s in b}, names)
    ways = [f'  {place}: {reason}' for place, reason in told if reason.startswith('protocols')]
    sides = zip(names, (a, b), strict=True)
    have = [f'  {name} has {", ".join(sorted({*map(_place, side)})) or "no result"}' for name, side in sides]
    return RequestError('\n'.join([f'{names[0]} and {names[1]} have no task in common', *have, *ways]))
