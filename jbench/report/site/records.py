"""What the tables of the site hold: plain records of scores, standings, results and reproductions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from jbench.plan import select
from jbench.report import alignment_table, calibrations, ranks, summary
from jbench.report.aggregate import Score, changes, normalised
from jbench.report.overlap import overlap
from jbench.results.index import Row
from jbench.tasks.suites import SUITES

Record = dict[str, Any]
APART = ('simulated', 'debug', 'custom', 'partial')  # changes with which a score is in no suite
ALL = 'all tasks (Core datasets)'  # what ranks are over at first
ON = {False: 'half of the datasets or more', True: 'fewer than half of the datasets'}  # what a model has scores on
PLACE = 5  # parts of a path that say what a result is of: <task>@<version>/<dataset>/<model>/<key>/seed<k>.json


def suites(score: Score) -> list[str]:
    """Names of the suites that a score belongs to."""
    if any(change.startswith(APART) for change in score.changes):
        return []
    name = (score.task, score.version)
    return [s for s, suite in SUITES.items() if name in suite.tasks and (suite.full or score.core)]


def of_scores(scores: Sequence[Score], beside: calibrations.Found) -> list[Record]:
    """A record a score, sorted by task and dataset, in each the best first; ranks are those of its protocol.

    Args:
        scores: of both origins.
        beside: calibration of the results.
    """
    groups: dict[tuple[str, str], list[Score]] = {}
    for s in scores:
        groups.setdefault((s.origin, s.protocol), []).append(s)
    found = []
    for group in groups.values():
        place = next(iter(ranks.ranks(group).values()), {})
        ordered = sorted(group, key=lambda s: (place.get(s.model, 0), s.model))
        found += [{**_score(s, beside), 'rank': place.get(s.model), 'of': len(group)} for s in ordered]
    return sorted(found, key=lambda r: (r['task'], -r['version'], r['dataset'], r['origin'], r['protocol']))


def _score(s: Score, beside: calibrations.Found) -> Record:
    low, high = s.interval or (None, None)
    ends = sorted((_normal(low, s), _normal(high, s))) if s.interval and s.normalised is not None else (None, None)
    return {
        **{k: getattr(s, k) for k in ('model', 'title', 'task', 'version', 'dataset', 'core', 'family', 'origin')},
        **{k: getattr(s, k) for k in ('device', 'category', 'metric', 'better', 'mean', 'sd', 'n_seeds')},
        'low': low,
        'high': high,
        'normalised': s.normalised,
        'normalised_low': ends[0],
        'normalised_high': ends[1],
        **{k: v for k, v in calibrations.of_score(s, beside).items() if k in calibrations.BESIDE},
        **{k: getattr(s, k) for k in ('n_subjects', 'chance', 'floor', 'n_parameters')},
        'seconds_fit': s.seconds.get('fit'),
        'overlap': overlap(s),
        'suites': suites(s),
        'changes': list(s.changes),
        'protocol': s.protocol,
        'date': s.date,
    }


def _normal(value: float | None, s: Score) -> float:
    """An end of an interval as a normalised score."""
    return normalised(value, s.floor, s.metric) or 0.0 if value is not None else 0.0


def of_standings(scores: Sequence[Score]) -> list[Record]:
    """A record a model, origin and set of tasks: all of them, each suite, device and category; models with scores on
    fewer than half of the datasets come last."""
    sets: dict[str, tuple[bool, Callable[[Score], bool]]] = {
        ALL: (False, lambda s: True),
        'all tasks (all datasets)': (True, lambda s: True),
    }
    for name, suite in SUITES.items():
        sets[f'suite {name}'] = (suite.full, lambda s, name=name: name in suites(s))  # type: ignore[misc]
    for field in ('device', 'category'):
        for value in sorted({getattr(s, field) for s in scores}):
            sets[f'{field} {value}'] = (False, lambda s, f=field, v=value: getattr(s, f) == v)  # type: ignore[misc]
    found = []
    for over, (full, wanted) in sets.items():
        table = ranks.one_protocol([s for s in scores if wanted(s)])[0]
        for origin in dict.fromkeys(s.origin for s in table):
            lines = summary.standings([s for s in table if s.origin == origin], full=full)
            found += [{'over': over, 'on': ON[line['few']], **line} for line in lines]
    return found


def of_results(rows: Iterable[Row]) -> list[Record]:
    """A record a result file."""
    names = ('model', 'task', 'version', 'dataset', 'seed', 'metric', 'value', 'simulated', 'n_subjects', 'n_windows')
    more = ('n_parameters', 'date', 'hardware', 'machine', 'jbench', 'commit', 'key', 'split_hash', 'sha256')
    return [
        {
            **{k: getattr(row, k) for k in names},
            'changes': list(changes(row)),
            'low': row.interval[0] if row.interval else None,
            'high': row.interval[1] if row.interval else None,
            'seconds': row.seconds.get('total'),
            **{k: getattr(row, k) for k in more},
            'path': '/'.join(PurePath(row.path).parts[-PLACE:]),
        }
        for row in rows
    ]


def of_reproductions(scores: Iterable[Score]) -> list[Record]:
    """A record a cell of one model: the published score, ours, and what is declared to differ between them.

    Args:
        scores: of one model, of both origins.
    """
    scores = list(scores)
    paper = {(s.task, s.dataset): s for s in scores if s.origin == 'published'}
    own = [s for s in scores if s.origin == 'own']
    alone = [p for place, p in paper.items() if place not in {(s.task, s.dataset) for s in own}]
    return [_pair(paper.get((s.task, s.dataset)), s) for s in own] + [_pair(p, None) for p in alone]


def _pair(paper: Score | None, own: Score | None) -> Record:
    said = own or paper
    assert said is not None
    low, high = (own.interval if own else None) or (None, None)
    alike = paper is not None and own is not None and paper.metric == own.metric
    return {
        **{k: getattr(said, k) for k in ('task', 'version', 'dataset', 'metric')},
        'paper': paper.mean if paper else None,
        'paper_sd': paper.sd if paper else None,
        'paper_metric': paper.metric if paper else None,
        'own': own.mean if own else None,
        'own_sd': own.sd if own else None,
        'low': low,
        'high': high,
        'difference': own.mean - paper.mean if alike and own and paper else None,
        'verdict': _verdict(paper, own),
        'differences': differences(own, paper) if own else [],
    }


def _verdict(paper: Score | None, own: Score | None) -> str:
    """Whether a published number is met, in words."""
    if own is None:
        return 'not run here'
    if paper is None:
        return 'not published'
    if paper.metric != own.metric:
        return 'another score'
    if own.interval is None:
        return 'no interval'
    return f'paper {"inside" if own.interval[0] <= paper.mean <= own.interval[1] else "outside"} interval'


def differences(own: Score, paper: Score | None) -> list[str]:
    """What is declared to differ between a score of ours and the published protocol, in words."""
    found = []
    versions: Mapping[int, Any] = {t.version: t for t in select.tasks().get(own.task, ())}
    task = versions.get(own.version)
    while task is not None and task.supersedes is not None:
        found.append(f'version {task.version}: {task.supersedes[1]}')
        task = versions.get(task.supersedes[0])
    if task is not None and task.recipe.published and 'as published' not in own.changes:
        found.append('recipe: ours, not as published')
    if paper is not None and paper.metric != own.metric:
        found.append(f'another score: {own.metric}, published {paper.metric}')
    return found + [change for change in own.changes if change != 'as published']


def of_brains(results: Sequence[Mapping[str, Any]]) -> list[Record]:
    """A record a benchmark and model of results of alignment."""
    return [
        {
            'benchmark': f'{row["benchmark"]}@{row["version"]}',
            **{k: row[k] for k in ('model', 'score', 'error', 'raw', 'ceiling', 'ceiling_error')},
            'seeds': len(row['scores']),
            'notes': '; '.join(row['notes']),
        }
        for row in alignment_table.rows(results)
    ]


def of_tree(results: Sequence[Mapping[str, Any]]) -> list[Record]:
    """A record a model and node of the tree."""
    return alignment_table.tree_rows(results)
