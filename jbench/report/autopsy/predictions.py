"""The answers of a run against the targets, and against those of other results on the same windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench import targets
from jbench.metrics import classification, keystrokes
from jbench.report.autopsy.case import Case, gain, headline

WORST = 10  # answers that are listed
SHOWN = 6  # numbers of one, of many


class Compared(NamedTuple):
    """Another result beside this one."""

    name: str
    value: float | None
    better: float | None  # by how much this run is better
    alike: float | None  # share of windows answered alike; None: no classes
    only_mine: int | None  # windows that this run alone answers right
    only_other: int | None


class Bad(NamedTuple):
    """One of the worst answers."""

    id: int
    subject: str
    recording: str  # '': not known
    onset: float | None  # s, of the window in its recording
    target: str
    answer: str
    cost: float


class Answers(NamedTuple):
    """What the answers of a run are like."""

    value: float
    confusion: np.ndarray | None  # [true, said], of classes
    cost: np.ndarray  # [N] of each window
    cost_name: str
    compared: tuple[Compared, ...]
    worst: tuple[Bad, ...]


def answers(case: Case) -> Answers:
    """The answers of a run."""
    found, kind = case.answers, targets.of(case.kind)
    cost, name = costs(case)
    confusion = None
    if kind.single:
        k = found['outputs'].shape[1]
        confusion = np.zeros((k, k), int)
        np.add.at(confusion, (found['y'], found['outputs'].argmax(1)), 1)
    worst = np.argsort(-cost, kind='stable')[:WORST]
    return Answers(
        headline(case, found),
        confusion,
        cost,
        name,
        tuple(_compared(case, other.name, other.value, other.outputs) for other in case.others),
        tuple(_bad(case, int(row), float(cost[row])) for row in worst),
    )


def costs(case: Case) -> tuple[np.ndarray, str]:
    """How bad the answer to each window is: f64 [N], and what that is."""
    found, kind = case.answers, targets.of(case.kind)
    outputs, y = np.asarray(found['outputs'], np.float64), found['y']
    if kind.errors:
        return kind.errors(outputs, y), case.metric
    if kind.frames:
        return keystrokes.errors(outputs, y)[0].astype(float), 'edit distance'
    if 'vectors' in found:
        true = found['vectors'][y]
        norms = np.linalg.norm(outputs, axis=1) * np.linalg.norm(true, axis=1)
        return 1 - (outputs * true).sum(1) / np.maximum(norms, 1e-12), '1 - cosine with the true vector'
    if kind.single:
        return -classification.log_probabilities(outputs)[np.arange(len(y)), y], '-log p of the true class'
    if case.classes:
        return np.logaddexp(0, np.where(y > 0, -outputs, outputs)).mean(1), 'mean cross-entropy of the labels'
    return np.abs(outputs - y).mean(1), 'absolute error'


def _compared(case: Case, name: str, value: float | None, outputs: np.ndarray) -> Compared:
    mine = headline(case, case.answers)
    better = None if value is None or not np.isfinite(mine) else gain(case, mine, value)
    if not targets.of(case.kind).single:
        return Compared(name, value, better, None, None, None)
    y, said, other = case.answers['y'], case.answers['outputs'].argmax(1), outputs.argmax(1)
    right, theirs = said == y, other == y
    alike = float((said == other).mean())
    return Compared(name, value, better, alike, int((right & ~theirs).sum()), int((theirs & ~right).sum()))


def _bad(case: Case, row: int, cost: float) -> Bad:
    found, (recording, onset) = case.answers, case.places[row] if case.places else ('', None)
    output, y = found['outputs'][row], found['y'][row]
    return Bad(int(found['id'][row]), str(found['subject'][row]), recording, onset, *_said(case, output, y, row), cost)


def _said(case: Case, output: np.ndarray, y: np.ndarray, row: int) -> tuple[str, str]:
    """Target and answer as words."""
    kind = targets.of(case.kind)
    if kind.frames:
        pressed = keystrokes.decode(np.asarray(output, float)).astype(int)
        return _keys(case, y[y != keystrokes.NONE]), _keys(case, pressed)
    if 'vectors' in case.answers:
        group = case.answers['group'][row] if 'group' in case.answers else ''
        return str(group or f'stimulus {int(y)}'), ''
    if kind.single:
        p = np.exp(classification.log_probabilities(output[None].astype(float))[0])
        said = int(output.argmax())
        return _name(case, int(y)), f'{_name(case, said)} (p {p[said]:.2f}; true class {p[int(y)]:.2f})'
    if case.classes:
        true, said_labels = (np.flatnonzero(v > 0).tolist() for v in (y, output))
        return ', '.join(_name(case, k) for k in true) or '-', ', '.join(_name(case, k) for k in said_labels) or '-'
    true = kind.answered(np.atleast_1d(y)[None], len(output))[0]
    return _numbers(true), _numbers(output)


def _numbers(values: np.ndarray) -> str:
    return ', '.join(f'{v:.4g}' for v in values[:SHOWN]) + ', ...' * (len(values) > SHOWN)


def _name(case: Case, number: int) -> str:
    return case.classes[number] if number < len(case.classes) else f'class {number}'


def _keys(case: Case, numbers: np.ndarray) -> str:
    return ' '.join(_name(case, int(k)) for k in numbers) or '-'
