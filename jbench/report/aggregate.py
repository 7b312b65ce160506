"""From results to scores: seeds averaged, and only what has an equal protocol side by side."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jbench.results.index import Index, LeftOut, Row
from jbench.results.origin import believable
from jbench.spec.metrics import METRICS

Group = tuple[str, str, str, str]  # protocol, model, key, prepared data
Seed = tuple[str, str, str, str, int]  # and the seed
CUSTOM = 'custom: '  # how the user's own among the `changes` begin


class Score(NamedTuple):
    """One model on one dataset of one task, its seeds averaged; scores are fractions, None where not known."""

    device: str  # that recorded
    category: str
    task: str  # 'p3', 'meg/typing'
    version: int  # of the task
    dataset: str
    core: bool  # the first dataset of the task, or its simulated stand-in
    model: str
    title: str  # how tables may call the model
    family: str
    origin: str  # 'own', 'published'
    metric: str
    better: str
    mean: float
    sd: float | None  # over seeds, ddof 1; None for one seed
    n_seeds: int
    interval: tuple[float, float] | None  # 95 % over test subjects: the ends of the seeds, averaged
    n_subjects: int | None
    chance: float | None
    floor: float | None  # the dummy, else chance
    normalised: float | None  # 0 at the floor, 1 perfect
    per_subject: dict[str, float]  # mean over the seeds
    seconds: dict[str, float]  # stage: mean over the seeds
    n_parameters: int | None
    suite: str | None
    protocol: str  # equal only where scores may be compared
    changes: tuple[str, ...]  # how the protocol departs from the task's own
    metrics: dict[str, float]  # mean over the seeds
    pretraining: tuple[str, ...]
    seen_beside: bool  # people of its test, in a task that its encoder learnt together with it
    date: str | None  # of the newest result
    paths: tuple[str, ...]  # of the result files


def protocol(row: Row) -> str:
    """What has to be equal before two results are compared, in one line."""
    at = '' if row.level == 'window' else f' of a {row.level}'
    name = f'{row.task}@{row.version}/{row.dataset}, {row.metric}{at}, split {row.split_hash}, asked {row.asked}'
    return '; '.join([name, *changes(row)])


def changes(row: Row) -> tuple[str, ...]:
    """How a result departs from the protocol of its task, in words; recordings that were generated count as that."""
    flags = {'simulated': row.simulated, 'debug': row.debug, 'as published': row.as_published}
    marks = [name for name, there in flags.items() if there]
    marks += [f'{CUSTOM}{", ".join(row.custom)}'] if row.custom else []
    return (*marks, *([f'partial: {", ".join(row.partial)}'] if row.partial else []))


def customised(protocol: str) -> bool:
    """Whether the user changed a protocol, by settings or by a try: 'partial', 'simulated' and 'as published' are not
    the user's."""
    return CUSTOM in protocol or '; debug' in protocol


def comparable(rows: Iterable[Row]) -> Index:
    """Rows of which each counts: one file a seed, the newest; and of a model in a protocol the seeds of one key on the
    same prepared data: of these the most, then the newest. The others are left out; rows keep their order.
    """
    left_out: list[LeftOut] = []
    seeds: dict[Seed, Row] = {}
    for row in rows:
        name = (protocol(row), row.model, row.key, row.prepared_hash, row.seed)
        other = seeds.get(name)
        if other is None:
            seeds[name] = row
            continue
        old, new = sorted((other, row), key=_age)
        why = 'a copy of' if old.sha256 == new.sha256 else 'the same seed, older than'
        left_out.append(LeftOut(old.path, f'repeated: {why} {new.path}'))
        seeds[name] = new
    groups: dict[Group, list[Row]] = {}
    for name, row in seeds.items():
        groups.setdefault(name[:4], []).append(row)
    best: dict[tuple[str, str], list[Row]] = {}
    for whose, group in groups.items():
        cell = whose[:2]
        if cell not in best or _weight(group) > _weight(best[cell]):
            best[cell] = group
    kept = []
    for name, row in seeds.items():
        taken = best[name[:2]]
        if (row.key, row.prepared_hash) == (taken[0].key, taken[0].prepared_hash):
            kept.append(row)
        else:
            left_out.append(LeftOut(row.path, _why_not(groups[name[:4]], taken)))
    return Index(kept, left_out)


def _weight(group: Sequence[Row]) -> tuple[int, tuple[str, str, str]]:
    """What sorts the seeds of a key on the same data."""
    return len(group), max(map(_age, group))


def _why_not(group: Sequence[Row], taken: Sequence[Row]) -> str:
    """Why the seeds of one key on the same data do not count beside others of the model."""
    (mine, first), n = (group[0], taken[0]), (len(group), len(taken))
    told = 'older' if n[0] == n[1] else 'fewer seeds'
    if mine.key != first.key:
        return f'other key: {mine.key} of {mine.model}, {told}; taken: {first.key} ({_seeds(n[1])})'
    return f'other data: {mine.prepared_hash} of {mine.key}, {told}; taken: {first.prepared_hash} ({_seeds(n[1])})'


def _seeds(n: int) -> str:
    return f'{n} seed{"s" * (n != 1)}'


def _age(row: Row) -> tuple[str, str, str]:
    """What sorts results by age: results without a date that can be believed (none in older schemas) come first."""
    return (row.date if row.date and believable(row.date) else '', row.key, row.sha256)


def scores(rows: Iterable[Row]) -> list[Score]:
    """The `averages` of the `comparable` rows."""
    return averages(comparable(rows).rows)


def averages(rows: Iterable[Row]) -> list[Score]:
    """One score for each protocol and model, of rows with a value; sorted by task, dataset, protocol and model.

    Args:
        rows: of `comparable`.
    """
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.value is not None and math.isfinite(row.value):
            cells.setdefault((protocol(row), row.model), []).append(row)
    found = [_score(sorted(cell, key=lambda row: row.seed)) for cell in cells.values()]
    return sorted(found, key=lambda s: (s.task, -s.version, s.dataset, s.protocol, s.model))


def _score(rows: Sequence[Row]) -> Score:
    """The score of one model, from its seeds."""
    first, values = rows[-1], [row.value for row in rows if row.value is not None]
    ends = [row.interval for row in rows if row.interval is not None]
    mean, floor = statistics.fmean(values), _mean([row.chance if row.dummy is None else row.dummy for row in rows])
    return Score(
        device=first.device,
        category=first.category,
        task=first.task,
        version=first.version,
        dataset=first.dataset,
        core=first.core,
        model=first.model,
        title=first.model,
        family=first.family,
        origin='own',
        metric=first.metric,
        better=first.better,
        mean=mean,
        sd=statistics.stdev(values) if len(values) > 1 else None,
        n_seeds=len(values),
        interval=(statistics.fmean(e[0] for e in ends), statistics.fmean(e[1] for e in ends)) if ends else None,
        n_subjects=first.n_subjects,
        chance=_mean([row.chance for row in rows]),
        floor=floor,
        normalised=normalised(mean, floor, first.metric),
        per_subject=_means([row.per_subject for row in rows]),
        seconds=_means([row.seconds for row in rows]),
        n_parameters=first.n_parameters,
        suite=first.suite,
        protocol=protocol(first),
        changes=changes(first),
        metrics=_means([row.metrics for row in rows]),
        pretraining=first.pretraining,
        seen_beside=any(row.seen_beside for row in rows),
        date=max((row.date for row in rows if row.date and believable(row.date)), default=None),
        paths=tuple(row.path for row in rows),
    )


def normalised(mean: float, floor: float | None, metric: str) -> float | None:
    """How far a score is on the way from the floor (0) to a perfect one (1); None where not defined."""
    perfect = METRICS[metric].perfect
    return None if floor is None or floor == perfect else (mean - floor) / (perfect - floor)


def _mean(values: Sequence[float | None]) -> float | None:
    there = [v for v in values if v is not None]
    return statistics.fmean(there) if there else None


def _means(tables: Sequence[dict[str, float | None]] | Sequence[dict[str, float]]) -> dict[str, float]:
    """Means of named values over those tables that have them."""
    found: dict[str, list[float]] = {}
    for table in tables:
        for name, value in table.items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return {name: statistics.fmean(values) for name, values in found.items()}
