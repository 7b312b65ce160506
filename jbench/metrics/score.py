"""Every score of a task, in plain numpy float64; those of single numbers here, the others in modules of their own.

The rules are those of torchmetrics (which NeuralBench reports), computed once over all windows of a split. Outputs are
always read as logits: torchmetrics applies softmax or sigmoid only to a batch with a value outside [0, 1], so that
its score depends on how the windows are batched; here they are always applied. A score that is not defined is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from jbench.metrics import classification, keystrokes, retrieval
from jbench.metrics.regression import Scores, _value
from jbench.metrics.uncertainty import best_constant, differs_from_chance, interval

SHARES = ('bal_acc', 'acc', 'f1_macro', 'auroc', 'auprc', 'f1_score_macro', 'exact_match', *retrieval.METRICS)
ERRORS = ('rmse', 'mae', 'normalized_rmse', 'bmae', 'cer')
HIGHER = (*SHARES, 'pearsonr', 'r2')
LOWER = ('hamming', *ERRORS)
BETTER = {**dict.fromkeys(HIGHER, 'higher'), **dict.fromkeys(LOWER, 'lower')}
PERFECT = {**dict.fromkeys(HIGHER, 1.0), **dict.fromkeys(LOWER, 0.0)}
CHANCE = {'pearsonr': 0.0}  # where the dummy, a constant, has no score: what any answer without the signal expects
BOUNDS = {
    **dict.fromkeys((*SHARES, 'hamming'), (0.0, 1.0)),
    **dict.fromkeys(ERRORS, (0.0, np.inf)),
    'pearsonr': (-1.0, 1.0),
    'r2': (-np.inf, 1.0),
}
DUMMY_SEED = 33
SHIFT = 20  # id of a window = recording << 20 | window (data/windows.py)

KINDS = ('classes', 'state', 'labels', 'value', 'embedding', 'keystrokes')
About = Mapping[str, np.ndarray]  # of windows, beside their targets: subject, group, vectors


def evaluate(kind: str, outputs: np.ndarray, y: np.ndarray, about: About = MappingProxyType({})) -> Scores:
    """All scores of a split.

    Args:
        kind: 'classes' (or 'state'), 'labels', 'value', 'embedding' or 'keystrokes'.
        outputs: float [N, K], logits; [N, 1] for values, [N, D] for embeddings, [N, frames] paths of keystrokes.
        y: int [N] in 0..K-1 for classes, 0/1 [N, K] for labels, float [N, 1] for values, int [N] numbers of stimuli,
            int [N, length] keys.
        about: of embeddings: text `subject` and `group` [N], `vectors` [stimuli, D].
    Returns:
        Fractions or the target's unit, never nan: None where a score is not defined.
        classes: bal_acc, acc, f1_macro, auroc, auprc.
        labels: f1_score_macro (threshold 0.5 after the sigmoid, plain mean over labels: a label that is neither true
        nor predicted counts 0), hamming (share of wrong label decisions), exact_match.
        value: pearsonr, rmse, mae, r2, normalized_rmse (rmse / population sd of y), bmae (`binned_mae`).
        embedding: retrieval.METRICS. keystrokes: cer, edit distances over lengths of the references.
    Raises:
        ValueError: unknown kind, shapes that do not fit, no window, outputs that are not finite.
    """
    outputs, y = _checked(kind, outputs, y)
    if kind == 'embedding':
        return {**retrieval.evaluate(outputs, about['vectors'][y], about['group'], about['subject'])}
    if kind == 'keystrokes':
        return {'cer': keystrokes.error_rate(outputs, y)}
    if kind == 'labels':
        return classification.labels(outputs, y)
    return _value(outputs[:, 0], y[:, 0]) if kind == 'value' else classification.classes(outputs, y)


def headline(metrics: Mapping[str, float | None], name: str) -> float | None:
    """The score called `name`. Raises: KeyError naming the scores there are."""
    if name not in metrics:
        raise KeyError(f'no metric {name!r} among {", ".join(sorted(metrics))}')
    return metrics[name]


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
        float64 [n, K] logits. Classes: the most frequent one (the first of equals). Labels: each drawn with its
        prevalence, RandomState(33), as +1 or -1. Value, embedding: the mean. Keystrokes: a path of the most frequent
        key, as often as the median window has keys (none where that has none).
    """
    y_fit = np.asarray(y_fit)
    if kind in ('classes', 'state'):
        counts = np.bincount(y_fit, minlength=n_out or 0)
        return np.tile(np.eye(len(counts))[counts.argmax()], (n, 1))
    if kind == 'labels':
        prevalence = (y_fit > 0).mean(0)
        return np.where(np.random.RandomState(DUMMY_SEED).random_sample((n, len(prevalence))) < prevalence, 1.0, -1.0)
    if kind == 'value':
        return np.tile(y_fit.astype(np.float64).mean(0), (n, 1))
    if kind == 'embedding' and vectors is not None:
        counts = np.bincount(y_fit, minlength=len(vectors))
        return np.tile(counts @ vectors.astype(np.float64) / counts.sum(), (n, 1))
    if kind == 'keystrokes':
        pressed = y_fit[y_fit != keystrokes.NONE]
        modal = np.bincount(pressed).argmax() if len(pressed) else 0
        lengths = np.sort((y_fit != keystrokes.NONE).sum(1))
        often = lengths[(len(lengths) - 1) // 2]  # of two in the middle the lower one, as published
        path = keystrokes.encode(np.full(often, modal)) if often else np.array([keystrokes.NONE])
        return np.tile(path, (n, 1)).astype(np.float64)
    raise ValueError(f'no dummy for targets of kind {kind!r}')


def normalised(value: float | None, dummy: float | None, metric: str) -> float | None:
    """(value - dummy) / (perfect - dummy): 0 as good as the dummy, 1 perfect; None where not defined."""
    if value is None or dummy is None or dummy == PERFECT[metric]:
        return None
    return (value - dummy) / (PERFECT[metric] - dummy)


def per_subject(
    kind: str,
    metric: str,
    outputs: np.ndarray,
    y: np.ndarray,
    subjects: np.ndarray,
    about: About = MappingProxyType({}),
) -> dict[str, float]:
    """One score for each subject [N], sorted by name; subjects for whom it is not defined are left out.

    Of embeddings, the candidates are those of all subjects.

    A subject need not show every class (in a diagnosis task it shows one). So here, unlike in `evaluate`, classes
    without a window of the subject are left out of the mean of bal_acc, f1_macro and auroc (scikit-learn's rule for
    balanced accuracy): predicting them already lowers the scores of the others.
    """
    outputs, y = _checked(kind, outputs, y)
    if kind == 'embedding':
        return retrieval.per_subject(outputs, about['vectors'][y], about['group'], subjects, metric)
    names, owner = np.unique(np.asarray(subjects, str), return_inverse=True)
    order = np.argsort(owner, kind='stable')
    scores: dict[str, float] = {}
    for name, rows in zip(names, np.split(order, np.cumsum(np.bincount(owner))[:-1]), strict=True):
        if kind in ('classes', 'state'):
            value = headline(classification.classes(outputs[rows], y[rows], only_true=True), metric)
        else:
            value = headline(evaluate(kind, outputs[rows], y[rows]), metric)
        if value is not None:
            scores[str(name)] = value
    return scores


def level_score(
    kind: str, metric: str, predictions: Mapping[str, np.ndarray], level: str = 'window'
) -> tuple[float | None, dict[str, float], np.ndarray, np.ndarray]:
    """The headline of a set of predictions (see `score`), that of each subject, and the targets and subjects behind."""
    outputs, y, subjects = pooled(kind, predictions, level)
    value = headline(evaluate(kind, outputs, y, {**predictions, 'subject': subjects}), metric)
    return value, per_subject(kind, metric, outputs, y, subjects, predictions), y, subjects


def pooled(kind: str, predictions: Mapping[str, np.ndarray], level: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outputs, targets and subjects of windows, or of whole recordings or subjects.

    Of several windows the outputs are averaged, those of classes as probabilities (and given as their logarithms); the
    class is the commonest one (the first of equals), the value the mean.
    """
    outputs, y, subjects = (np.asarray(predictions[name]) for name in ('outputs', 'y', 'subject'))
    if level == 'window':
        return outputs, y, subjects
    owner = np.asarray(predictions['id']) >> SHIFT if level == 'recording' else subjects
    _, first, unit = np.unique(owner, return_index=True, return_inverse=True)
    if kind == 'value':
        return retrieval.means(outputs, unit), retrieval.means(y, unit), subjects[first]
    if kind not in ('classes', 'state'):
        raise ValueError(f'targets of kind {kind!r} are not averaged over a {level}')
    odds = np.exp(outputs.astype(np.float64) - outputs.max(1, keepdims=True))
    p = retrieval.means(odds / odds.sum(1, keepdims=True), unit)
    votes = np.zeros(p.shape, int)
    np.add.at(votes, (unit, y), 1)
    return np.log(np.maximum(p, np.finfo(float).tiny)), votes.argmax(1), subjects[first]


def score(
    kind: str, metric: str, predictions: Mapping[str, np.ndarray], dummy_value: float | None, level: str = 'window'
) -> dict[str, Any]:
    """Every score of a set of predictions: the one function behind each number in a result file.

    Args:
      kind: of the target ('classes', 'value', ...).
      metric: name of the headline metric.
      predictions: `id` int [N], `outputs` f32 [N, K] as the model gives them, `y` [N] or [N, K], `subject` text [N];
        of embeddings `group` text [N] and `vectors` f32 [stimuli, K], too.
      dummy_value: headline metric of the dummy; None where it is undefined (a constant has no correlation).
      level: what the headline and the scores of subjects are of: 'window', 'recording' or 'subject' (`pooled`).

    Returns: headline, normalised, chance, metrics (of windows), per_subject; None where a score is not defined.

    Raises: ValueError for outputs that are not finite, or that do not fit the targets.
    """
    values = evaluate(kind, predictions['outputs'], predictions['y'], predictions)
    value, each, y, subjects = level_score(kind, metric, predictions, level)
    chance = CHANCE.get(metric) if dummy_value is None else float(dummy_value)
    floor = chance
    if chance is not None and kind in ('classes', 'state') and metric == 'bal_acc':
        floor = max(chance, best_constant(y, subjects))
    first = {
        'name': metric,
        'value': value,
        'better': BETTER[metric],
        'level': level,
        'interval': interval(each, BOUNDS[metric]),
        'chance_over_subjects': floor,
        'differs_from_chance': None if floor is None else differs_from_chance(each, floor),
    }
    grade = normalised(value, chance, metric)
    return {'headline': first, 'normalised': grade, 'chance': chance, 'metrics': values, 'per_subject': each}


def _checked(kind: str, outputs: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if kind not in KINDS:
        raise ValueError(f'no metrics for targets of kind {kind!r}; there are {", ".join(KINDS)}')
    outputs, y = np.asarray(outputs, np.float64), np.asarray(y)
    single = kind in ('classes', 'state')
    expected = outputs.shape[:1] if single or kind == 'embedding' else outputs.shape
    fits = outputs.ndim == 2 and (y.shape == expected or (kind == 'keystrokes' and y.shape[:1] == expected[:1]))
    if not fits or not len(y) or (kind == 'value' and outputs.shape[1] != 1):
        raise ValueError(f'{kind}: outputs {outputs.shape} and targets {y.shape} do not fit, or there is no window')
    if not np.isfinite(outputs).all():
        raise ValueError(f'{int((~np.isfinite(outputs)).any(1).sum())} of {len(y)} outputs are not finite')
    if single and (y.dtype.kind not in 'iu' or y.min() < 0 or y.max() >= outputs.shape[1]):
        raise ValueError(f'classes must be integers in 0..{outputs.shape[1] - 1}, got {y.min()}..{y.max()} ({y.dtype})')
    return outputs, y.astype(np.float64) if kind in ('labels', 'value') else y
