"""Two models, paired by subject, task by task and over datasets; from scores, nothing is computed anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jbench.report.aggregate import Score, customised
from jbench.report.statistics import datasets, many, paired
from jbench.spec.errors import RequestError

ALPHA = paired.ALPHA
FEW = 5  # datasets: of fewer nothing is said of how different they are


class Pair(NamedTuple):
    """Two models on one dataset of one task. Scores are means over the subjects that both have."""

    task: str
    version: int
    dataset: str
    protocol: str
    metric: str
    better: str
    a: float
    b: float
    n: int  # subjects that both have
    only: tuple[int, int]  # subjects that A alone has, and B alone
    difference: float  # positive where A is better
    sd: float | None
    interval: tuple[float, float] | None  # 95 %
    p: float  # paired permutation
    least: float  # the smallest p that so many subjects can give
    wilcoxon: float
    adjusted: float  # p, Holm over the tasks
    g: float | None  # standardised mean difference
    rank_biserial: float
    detectable: float | None  # least difference found with a power of 0.8, of this task alone
    verdict: str


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

    Each task has a paired permutation test, adjusted by Holm over the tasks: it decides the verdict. Over datasets,
    Stouffer's test decides, and a random-effects meta-analysis says whether that holds for datasets like these; tasks
    on one dataset share its subjects, and make one entry (`datasets.entry`).

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
    found: list[tuple[Pair, np.ndarray]] = []
    for protocol in both:
        pair = _pair(ours[protocol], theirs[protocol])
        if pair is None:
            left_out.append((_place(ours[protocol]), _no_subjects(ours[protocol], theirs[protocol], names)))
        else:
            found.append(pair)
    if not found:
        reasons = '\n'.join(f'  {place}: {reason}' for place, reason in left_out)
        raise RequestError(f'{names[0]} and {names[1]} have no subject in common in any task\n{reasons}')
    adjusted = many.holm([pair.p for pair, _ in found])
    pairs = tuple(_judged(pair, float(p), names) for (pair, _), p in zip(found, adjusted, strict=True))
    over = _over([(pair.dataset, d) for pair, d in found], names)
    return Comparison(*names, pairs, over, tuple(left_out), _verdict(pairs, over, names))


def plain(comparison: Comparison) -> dict[str, Any]:
    """A comparison as dictionaries of plain values, for JSON."""
    over = comparison.over
    return {
        **comparison._asdict(),
        'alpha': ALPHA,
        'pairs': [pair._asdict() for pair in comparison.pairs],
        'over': over
        and {
            **over._asdict(),
            'stouffer': over.stouffer._asdict(),
            'effects': over.effects and over.effects._asdict(),
        },
        'left_out': [{'place': place, 'reason': reason} for place, reason in comparison.left_out],
    }


def _pair(a: Score, b: Score) -> tuple[Pair, np.ndarray] | None:
    """Two scores of one protocol, and the differences [n]; None where no subject is in both."""
    common = sorted(a.per_subject.keys() & b.per_subject.keys())
    x, y = (np.array([score.per_subject[s] for s in common], np.float64) for score in (a, b))
    d = paired.differences(x, y, a.better)
    if not len(d):
        return None
    both = np.isfinite(x) & np.isfinite(y)
    mean, test, effect = paired.difference(d), paired.permutation(d), paired.effect(d)
    pair = Pair(
        task=a.task,
        version=a.version,
        dataset=a.dataset,
        protocol=a.protocol,
        metric=a.metric,
        better=a.better,
        a=float(x[both].mean()),
        b=float(y[both].mean()),
        n=len(d),
        only=(len(a.per_subject) - len(common), len(b.per_subject) - len(common)),
        difference=float(d.mean()),
        sd=mean.sd,
        interval=mean.interval,
        p=test.p,
        least=test.least,
        wilcoxon=paired.wilcoxon(d).p,
        adjusted=1.0,
        g=effect.g,
        rank_biserial=effect.rank_biserial,
        detectable=paired.detectable(mean.sd, len(d)),
        verdict='',
    )
    return pair, d


def _judged(pair: Pair, adjusted: float, names: tuple[str, str]) -> Pair:
    """A pair with its adjusted p, and what follows from it."""
    if adjusted <= ALPHA:
        verdict = f'{names[0] if pair.difference > 0 else names[1]} is better'
    elif pair.p == 1.0 and not pair.difference and not pair.sd:
        verdict = 'equal on every subject'
    elif pair.least > ALPHA:
        verdict = f'cannot be told apart: {pair.n} subject{"s" * (pair.n != 1)} cannot show a difference'
    else:
        verdict = 'cannot be told apart'
    return pair._replace(adjusted=adjusted, verdict=verdict)


def _over(found: Sequence[tuple[str, np.ndarray]], names: tuple[str, str]) -> Over | None:
    """What all datasets say together; None for a single one."""
    by_dataset: dict[str, list[np.ndarray]] = {}
    for dataset, d in found:
        by_dataset.setdefault(dataset, []).append(d)
    if len(by_dataset) < 2:
        return None
    entries = [datasets.entry(tasks) for tasks in by_dataset.values()]
    stouffer = datasets.stouffer([z for z, *_ in entries], [n for _, n, *_ in entries])
    known = [(g, variance) for *_, g, variance in entries if g is not None and variance is not None]
    effects = datasets.random_effects([g for g, _ in known], [v for _, v in known])
    verdict = 'cannot be told apart'
    if stouffer.p <= ALPHA:
        verdict = f'{names[0] if stouffer.z > 0 else names[1]} is better'
        if effects is None or effects.p is None or effects.p > ALPHA or effects.effect * stouffer.z < 0:
            verdict += f' on these; they are too {"few" if len(known) < FEW else "different"} to say so of others'
    return Over(len(entries), stouffer, effects, verdict)


def _verdict(pairs: Sequence[Pair], over: Over | None, names: tuple[str, str]) -> str:
    """The comparison in a sentence or two."""
    better = [[p for p in pairs if p.adjusted <= ALPHA and (p.difference > 0) is side] for side in (True, False)]
    if len(pairs) == 1:
        text = f'{names[0]} and {names[1]}: {pairs[0].verdict}.'
    else:
        told = [f'{name} is better on {len(on)}' for name, on in zip(names, better, strict=True) if on]
        apart = len(pairs) - len(better[0]) - len(better[1])
        told += [f'{apart} cannot be told apart'] if apart else []
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
