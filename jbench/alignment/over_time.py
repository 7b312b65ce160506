"""Alignment over time: neurons, sensors of EEG and MEG, voxels. Responses are cut into bins; each bin has a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jbench.alignment.metrics import regression, similarity
from jbench.alignment.metrics.measured import Measured
from jbench.alignment.metrics.splits import Splits
from jbench.spec.errors import RequestError

Bins = Sequence[tuple[float, float]]  # start and end of each, ms


def binned(responses: np.ndarray, times: np.ndarray, bins: Bins) -> np.ndarray:
    """Means over bins of time.

    Args:
        responses: [..., time].
        times: of each sample, ms.
        bins: start (part of the bin) and end (not part of it), ms.
    Returns:
        [..., bin].
    Raises:
        RequestError: a bin holds no sample.
    """
    held = [(times >= start) & (times < end) for start, end in bins]
    if empty := [bins[k] for k, mask in enumerate(held) if not mask.any()]:
        raise RequestError(
            f'no sample lies in the bin from {empty[0][0]:g} to {empty[0][1]:g} ms; there are samples from '
            f'{times.min():g} to {times.max():g} ms'
        )
    return np.stack([responses[..., mask].mean(-1) for mask in held], -1)


def condition_means(responses: np.ndarray, condition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean response to each stimulus or condition, and their names, sorted: [trial, ...] -> [condition, ...]."""
    names, index = np.unique(condition, return_inverse=True)
    return np.stack([responses[index == k].mean(0) for k in range(len(names))]), names


def rsa(model_rdm: np.ndarray, responses: np.ndarray) -> Measured:
    """Spearman's correlation of a model's dissimilarities with those of the responses, bin by bin.

    Args:
        model_rdm: [stimulus, stimulus].
        responses: [stimulus, neuroid, bin].
    Returns:
        The greatest over bins (error: nan), and the value of each bin.
    Raises:
        RequestError: shapes do not fit.
    """
    n, _, n_bins = _shape(responses)
    if model_rdm.shape != (n, n):
        raise RequestError(f'dissimilarities of {model_rdm.shape} for responses to {n} stimuli')
    found = [similarity.compare(model_rdm, similarity.rdm(responses[..., k])) for k in range(n_bins)]
    return _peak(np.array(found))


def encode(
    name: str, x: np.ndarray, responses: np.ndarray, *, how: Splits | None = None, labels: np.ndarray | None = None
) -> Measured:
    """Responses predicted from features, each bin by a regression of its own, on stimuli left out.

    Args:
        name: of `regression.REGRESSIONS`.
        x: [stimulus, unit].
        responses: [stimulus, neuroid, bin].
        how, labels: splits, as of `regression.regress_cv`; the same in all bins.
    Returns:
        The greatest over bins of (median over neuroids, mean over splits), and [bin, split, neuroid].
    Raises:
        RequestError: shapes do not fit, or stimuli are too few.
    """
    _, _, n_bins = _shape(responses)
    each = [regression.regress_cv(name, x, responses[..., k], how=how, labels=labels) for k in range(n_bins)]
    best = max(each, key=lambda m: -np.inf if np.isnan(m.value) else m.value)
    notes = tuple(dict.fromkeys(note for m in each for note in m.notes if not note.startswith('alpha')))
    return Measured(best.value, best.error, np.stack([m.values for m in each]), notes)


def decode(responses: np.ndarray, labels: np.ndarray, folds: np.ndarray) -> Measured:
    """Which class a response belongs to: the one whose mean over the training trials correlates best with it, each
    neuroid z-scored by the training trials (Meyers et al. 2008, J. Neurophysiol. 100:1407).

    Args:
        responses: [trial, neuroid, bin].
        labels: class of each trial.
        folds: of each trial; each fold is tested once, by all others.
    Returns:
        The greatest accuracy over bins (error: nan), and [bin, fold].
    Raises:
        RequestError: shapes do not fit, or a class is missing from the training trials of a fold.
    """
    n, _, n_bins = _shape(responses)
    if len(labels) != n or len(folds) != n:
        raise RequestError(f'{len(labels)} labels and {len(folds)} folds for {n} trials; one each')
    classes, truth = np.unique(labels, return_inverse=True)
    names = np.unique(folds)
    right = np.empty((n_bins, len(names)))
    for k, fold in enumerate(names):
        test = folds == fold
        if missing := [str(c) for j, c in enumerate(classes) if not ((truth == j) & ~test).any()]:
            raise RequestError(f'fold {fold}: no training trial of {missing[0]}; every class is in several folds')
        mean, sd = responses[~test].mean(0), responses[~test].std(0)
        z = (responses - mean) / np.where(sd > 0, sd, 1)
        for b in range(n_bins):
            means = np.stack([z[~test & (truth == j), :, b].mean(0) for j in range(len(classes))])
            right[b, k] = (_correlations(z[test, :, b], means).argmax(1) == truth[test]).mean()
    found = right.mean(1)
    return Measured(float(found.max()), float('nan'), right)


def pseudo_trials(
    responses: Sequence[np.ndarray], labels: Sequence[np.ndarray], n: int, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Trials of neurons that were not recorded together: of each neuron and class `n` trials, drawn without
    replacement, side by side.

    Args:
        responses: of each neuron, [trial, bin].
        labels: of each neuron, the class of its trials.
        n: pseudo-trials of each class.
        draws: what draws.
    Returns:
        [pseudo-trial, neuron, bin], the class and the number within the class of each.
    Raises:
        RequestError: a neuron has fewer trials of a class.
    """
    classes = np.unique(np.concatenate(labels))
    made = np.empty((len(classes) * n, len(responses), responses[0].shape[1]))
    for k, (one, label) in enumerate(zip(responses, labels, strict=True)):
        for j, c in enumerate(classes):
            mine = np.flatnonzero(label == c)
            if len(mine) < n:
                raise RequestError(f'neuron {k} has {len(mine)} trials of {c}, {n} pseudo-trials need as many')
            made[j * n : (j + 1) * n, k] = one[draws.choice(mine, n, replace=False)]
    return made, np.repeat(classes, n), np.tile(np.arange(n), len(classes))


def _peak(values: np.ndarray) -> Measured:
    """The greatest value over bins."""
    if np.isnan(values).all():
        return Measured(float('nan'), float('nan'), values, ('no bin has a value: patterns are constant',))
    return Measured(float(np.nanmax(values)), float('nan'), values)


def _correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pearson's r of each row of a with each row of b; 0 of a constant one."""
    a, b = (m - m.mean(1, keepdims=True) for m in (a, b))
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    return np.divide(a @ b.T, norms, out=np.zeros(norms.shape), where=norms > 0)


def _shape(responses: np.ndarray) -> tuple[int, int, int]:
    if np.ndim(responses) != 3:
        raise RequestError(f'responses of shape {np.shape(responses)}; expected [stimulus or trial, neuroid, bin]')
    n, q, b = responses.shape
    return n, q, b
