"""Every score of a set of predictions, in plain numpy float64; the numbers come from jbench/metrics.

The rules are those of torchmetrics (which NeuralBench reports), computed once over all windows of a split. Outputs are
always read as logits: torchmetrics applies softmax or sigmoid only to a batch with a value outside [0, 1], so that
its score depends on how the windows are batched; here they are always applied. A score that is not defined is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from jbench import targets
from jbench.events import SHIFT
from jbench.metrics import single_answers, uncertainty
from jbench.metrics.regression import Scores
from jbench.spec.metrics import METRICS
from jbench.targets.kind import About, headline
from jbench.targets.packed import as_it_lies


def evaluate(kind: str, outputs: np.ndarray, y: np.ndarray, about: About = MappingProxyType({})) -> Scores:
    """All scores of a split.

    Args:
        kind: of the target, a key of `targets.KINDS`.
        outputs: float [N, K], logits; [N, 1] for values, [N, D] for embeddings, [N, frames] paths of keystrokes.
        y: int [N] in 0..K-1 for classes, 0/1 [N, K] for labels, float [N, 1] for values, int [N] numbers of stimuli,
            int [N, length] keys, rad [N, J, steps] of angles (or flat), nan where they are not known.
        about: of embeddings: text `subject` and `group` [N], `vectors` [stimuli, D].
    Returns:
        Fractions or the target's unit, never nan: None where a score is not defined.
    Raises:
        ValueError: unknown kind, shapes that do not fit, no window, outputs that are not finite.
    """
    outputs, y = _checked(kind, outputs, y)
    return targets.of(kind).evaluate(outputs, y, about)


def dummy(
    kind: str, y_fit: np.ndarray, n: int, *, n_out: int | None = None, vectors: np.ndarray | None = None
) -> np.ndarray:
    """Outputs of the rule that looks at no signal, fitted on train and valid targets.

    Args:
        kind: as for `evaluate`.
        y_fit: targets of train and valid windows.
        n: number of windows to predict.
        n_out: number of classes, where the last ones may have no window in y_fit.
        vectors: of stimuli, [stimuli, D].
    Returns:
        float64 [n, K] logits (paths of keystrokes).
    """
    return targets.of(kind).dummy(as_it_lies(y_fit), n, n_out, vectors)


def normalised(value: float | None, dummy: float | None, metric: str) -> float | None:
    """(value - dummy) / (perfect - dummy): 0 as good as the dummy, 1 perfect; None where not defined."""
    if value is None or dummy is None or dummy == METRICS[metric].perfect:
        return None
    return (value - dummy) / (METRICS[metric].perfect - dummy)


def per_subject(
    kind: str,
    metric: str,
    outputs: np.ndarray,
    y: np.ndarray,
    subjects: np.ndarray,
    about: About = MappingProxyType({}),
) -> dict[str, float]:
    """One score for each subject [N], sorted by name; subjects for whom it is not defined are left out."""
    outputs, y = _checked(kind, outputs, y)
    return targets.of(kind).per_subject(outputs, y, subjects, about, metric)


def level_score(kind: str, metric: str, predictions: Mapping[str, np.ndarray], level: str = 'window') -> float | None:
    """The headline of a set of predictions (see `score`)."""
    outputs, y, subjects = pooled(kind, predictions, level)
    return headline(evaluate(kind, outputs, y, {**predictions, 'subject': subjects}), metric)


def pooled(kind: str, predictions: Mapping[str, np.ndarray], level: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outputs, targets and subjects of windows, or of whole recordings or subjects."""
    outputs, y, subjects = (as_it_lies(predictions[name]) for name in ('outputs', 'y', 'subject'))
    if level == 'window':
        return outputs, y, subjects
    owner = np.asarray(predictions['id']) >> SHIFT if level == 'recording' else subjects
    _, first, unit = np.unique(owner, return_index=True, return_inverse=True)
    known = targets.of(kind)
    if known.pooled is None:
        raise ValueError(f'targets of kind {kind!r} are not averaged over a {level}')
    return *known.pooled(outputs, y, unit), subjects[first]


def score(
    kind: str, metric: str, predictions: Mapping[str, np.ndarray], dummy_value: float | None, level: str = 'window'
) -> dict[str, Any]:
    """Every score of a set of predictions: the one function behind each number in a result file.

    Args:
      kind: of the target (a key of `targets.KINDS`).
      metric: name of the headline metric.
      predictions: `id` int [N], `outputs` f32 [N, K] as the model gives them, `y` [N] or [N, K], `subject` text [N];
        of embeddings `group` text [N] and `vectors` f32 [stimuli, K], too.
      dummy_value: headline metric of the dummy; None where it is undefined (a constant has no correlation).
      level: what the headline and the scores of subjects are of: 'window', 'recording' or 'subject' (`pooled`).

    Returns: headline, normalised, chance, metrics (of windows), per_subject; None where a score is not defined.

    Raises: ValueError for outputs that are not finite, or that do not fit the targets.
    """
    values = evaluate(kind, predictions['outputs'], predictions['y'], predictions)
    value = level_score(kind, metric, predictions, level)
    outputs, y, subjects = pooled(kind, predictions, level)
    each = per_subject(kind, metric, outputs, y, subjects, predictions)
    row = METRICS[metric]
    chance = row.chance if dummy_value is None else float(dummy_value)
    n_subjects, interval, differs = _uncertainty(kind, metric, chance, (outputs, y, subjects), predictions)
    first = {
        'name': metric,
        'value': value,
        'better': row.better,
        'level': level,
        'n_subjects': n_subjects,
        'interval': interval,
        'differs_from_chance': differs,
    }
    grade = normalised(value, chance, metric)
    return {'headline': first, 'normalised': grade, 'chance': chance, 'metrics': values, 'per_subject': each}


def _uncertainty(
    kind: str, metric: str, chance: float | None, answers: tuple[np.ndarray, np.ndarray, np.ndarray], about: About
) -> tuple[int, uncertainty.Interval | None, bool | None]:
    """How many subjects there are, the interval of a headline, and whether it differs from chance."""
    outputs, y, subjects = answers
    names, owner = np.unique(subjects, return_inverse=True)
    n, row = len(names), METRICS[metric]
    if n < uncertainty.LEAST:
        return n, None, None
    if row.shares and len(y) == n:
        said = np.asarray(outputs).argmax(1)
        found = single_answers.interval(said, y, balanced=row.balanced)
        if chance is None:
            return n, found, None
        return n, found, single_answers.differs_from_chance(said, y, chance, balanced=row.balanced)
    outputs, y = _checked(kind, outputs, y)
    weighted = targets.of(kind).by_weights(outputs, y, owner, about, metric)
    bootstrapped = None if weighted is None else uncertainty.interval(weighted, n, row.bounds)
    if weighted is None or bootstrapped is None or chance is None:
        return n, bootstrapped, None
    return n, bootstrapped, uncertainty.differs_from_chance(weighted, n, chance, bootstrapped, row.bounds)


def _checked(kind: str, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = targets.of(kind)
    # those of angles may be large, and are made float64 some windows at a time
    outputs, y = np.asarray(outputs, None if known.measured else np.float64), as_it_lies(y)
    if outputs.ndim != 2 or not known.fits(outputs.shape, y.shape) or not len(y):
        raise ValueError(f'{kind}: outputs {outputs.shape} and targets {y.shape} do not fit, or there is no window')
    if not np.isfinite(outputs).all():
        raise ValueError(f'{int((~np.isfinite(outputs)).any(1).sum())} of {len(y)} outputs are not finite')
    return outputs, known.checked(y, outputs.shape[1])
