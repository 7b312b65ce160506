"""Patterns of confusions between objects, of a model and of people: i1, i1n, i2, i2n, o1, o2 (Rajalingham, Issa et
al. 2018, J. Neurosci. 38:7255).

People saw an image and chose between its object and one distractor. From either side comes a rate r(s, o), how often
the distractor o was taken for the object t of the image s, and from it d'(s, o) = z(1 - r(s, o)) - z(f(o, t)), where
f(o, t) is the mean of r(., t) over the images of o. A score is the correlation of the d' of the model with those of a
random half of the trials; its ceiling is the correlation of the two halves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jbench.alignment.metrics.measured import Measured
from jbench.spec.errors import RequestError, unknown

CAP = 5.0  # the greatest d': z of a rate of 0 or 1 is infinite
HALVINGS = 2
SEED = 0


class Form(NamedTuple):
    """What is correlated."""

    collapsed: bool  # the mean over distractors: a value an image, not an image and distractor
    normalised: bool = False  # less the mean over the images of an object, distractor by distractor
    by_object: bool = False  # rates are averaged over the images of an object first


FORMS = {
    'i1': Form(collapsed=True),
    'i1n': Form(collapsed=True, normalised=True),
    'i2': Form(collapsed=False),
    'i2n': Form(collapsed=False, normalised=True),
    'o1': Form(collapsed=True, by_object=True),
    'o2': Form(collapsed=False, by_object=True),
}


class Trials(NamedTuple):
    """Choices between the object of an image and a distractor, one a row. The order of rows decides the halves."""

    image: np.ndarray  # its row in the matrix of rates
    choice: np.ndarray  # index of the object that was chosen
    target: np.ndarray  # index of the object of the image
    distractor: np.ndarray


def trials_of_names(trials: Mapping[str, np.ndarray], *, images: Sequence[str], objects: Sequence[str]) -> Trials:
    """Trials whose images and objects are given by name.

    Args:
        trials: the fields of Trials, names instead of indices.
        images: in the order of the rows of rates.
        objects: in the order of their columns.
    Raises:
        RequestError: an image or object is not among those.
    """
    known = dict(zip(Trials._fields, (images, objects, objects, objects), strict=True))
    columns = []
    for field, names in known.items():
        place = {name: k for k, name in enumerate(names)}
        given = np.asarray(trials[field]).tolist()
        if strange := [name for name in given if name not in place]:
            raise RequestError(f'choices: {field} {strange[0]!r} is not among the {len(place)} that there are')
        columns.append(np.array([place[name] for name in given], int))
    return Trials(*columns)


def choice_score(
    name: str,
    probabilities: np.ndarray,
    trials: Trials,
    truth: np.ndarray,
    *,
    halvings: int = HALVINGS,
    seed: int = SEED,
) -> Measured:
    """Correlation of the pattern of a model with that of half of the trials.

    Args:
        name: of FORMS.
        probabilities: of the model, [image, object].
        trials: of people.
        truth: index of the object of each image, [image].
        halvings: random halves that are averaged over.
        seed: of the halves.
    Returns:
        Mean, standard deviation and values over the halves.
    Raises:
        RequestError: images, objects and trials do not fit.
    """
    _check(name, trials, probabilities.shape, truth)
    rates = rates_of_probabilities(probabilities, truth)
    model = pattern(name, rates, truth)

    def correlation(first: np.ndarray, _: np.ndarray) -> float:
        people = pattern(name, rates_of_trials(trials, first, rates.shape), truth)
        return _correlation(model, people)

    notes: tuple[str, ...] = ()
    if n := int(np.isnan(model[_defined(name, model, truth)]).sum()):
        notes = (f'{n} of the values of the model are not defined: left out',)
    return _over_halves(correlation, len(trials.image), halvings, seed, notes)


def choice_ceiling(
    name: str, trials: Trials, *, truth: np.ndarray, n_objects: int, halvings: int = HALVINGS, seed: int = SEED
) -> Measured:
    """Correlation between the patterns of two halves of the trials, the halves of `choice_score` being the first.

    Args:
        name: of FORMS.
        trials: of people.
        truth: index of the object of each image, [image].
        n_objects: how many objects there are.
        halvings: random halves that are averaged over.
        seed: of the halves.
    Raises:
        RequestError: images, objects and trials do not fit.
    """
    shape = len(truth), n_objects
    _check(name, trials, shape, truth)

    def correlation(*halves: np.ndarray) -> float:
        return _correlation(*(pattern(name, rates_of_trials(trials, rows, shape), truth) for rows in halves))

    return _over_halves(correlation, len(trials.image), halvings, seed, ())


def ceiled_choices(score: Measured, ceiling: Measured) -> Measured:
    """A score over the square root of its ceiling, half by half; nan and a note where a ceiling is not above zero."""
    values = np.full(len(score.values), np.nan)
    good = ceiling.values > 0
    values[good] = score.values[good] / np.sqrt(ceiling.values[good])
    notes = () if good.all() else (f'the ceiling of {(~good).sum()} of {len(good)} halvings is not above zero',)
    return Measured(float(values.mean()), float(values.std()), values, (*score.notes, *notes))


def rates_of_probabilities(probabilities: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """r[image, object] of a model: p(object) / (p(object) + p(truth)); nan at the truth and where both are zero."""
    own = np.take_along_axis(probabilities, truth[:, None], 1)
    with np.errstate(invalid='ignore'):
        rates = probabilities / (probabilities + own)
    np.put_along_axis(rates, truth[:, None], np.nan, 1)
    return rates


def rates_of_trials(trials: Trials, rows: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """r[image, object] of people: how often an object was chosen where it was offered; nan at the truth and where it
    never was.

    Args:
        trials: of people.
        rows: the trials that count.
        shape: images, objects.
    """
    image, choice, target, distractor = (part[rows] for part in trials)
    chosen, offered = np.zeros(shape), np.zeros(shape)
    np.add.at(chosen, (image, choice), 1)
    np.add.at(offered, (image, distractor), 1)
    with np.errstate(invalid='ignore', divide='ignore'):
        rates = np.where(offered > 0, chosen / offered, np.nan)
    rates[image, target] = np.nan
    return rates


def pattern(name: str, rates: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The pattern that is correlated.

    Args:
        name: of FORMS.
        rates: r, [image, object].
        truth: index of the object of each image, [image].
    Returns:
        d' [image], [image, object], [object] or [object, object], within ±5; nan at the truth.
    """
    from scipy.special import ndtri

    form = FORMS[name]
    mine = np.arange(rates.shape[1])[:, None] == truth  # [object, image]
    false_alarms = np.stack([_mean(rates[rows], 0) for rows in mine])  # [object of the image, taken for]
    with np.errstate(invalid='ignore'):
        if form.by_object:
            values = ndtri(1 - false_alarms.T) - ndtri(false_alarms)
        else:
            values = ndtri(1 - rates) - ndtri(false_alarms[:, truth].T)
    values = np.clip(values, -CAP, CAP)
    if form.normalised:
        for rows in mine:
            values[rows] -= _mean(values[rows], 0)
    return _mean(values, 1) if form.collapsed else values


def _mean(values: np.ndarray, axis: int) -> np.ndarray:
    """Mean of what is there; nan where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)
        return np.asarray(np.nanmean(values, axis=axis))


def _defined(name: str, values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Where a pattern has a value unless something is wrong: everywhere but at the truth."""
    if FORMS[name].collapsed:
        return np.ones(len(values), bool)
    own = np.arange(len(values)) if FORMS[name].by_object else truth
    return own[:, None] != np.arange(values.shape[1])


def _over_halves(
    correlation: Callable[[np.ndarray, np.ndarray], float], n: int, halvings: int, seed: int, notes: tuple[str, ...]
) -> Measured:
    """Mean and standard deviation of a correlation of halves of the trials, shuffled by one stream of numbers."""
    state, values = np.random.RandomState(seed), []
    for _ in range(halvings):
        rows = np.arange(n)
        state.shuffle(rows)
        values.append(correlation(rows[: n // 2], rows[n // 2 :]))
    found = np.array(values)
    if n := int(np.isnan(found).sum()):
        notes = (*notes, f'{n} of {halvings} halvings have no correlation: too few values, or all alike')
    return Measured(float(found.mean()), float(found.std()), found, notes)


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Pearson correlation where both are defined; nan of fewer than two values or of equal ones."""
    there = np.isfinite(a) & np.isfinite(b)
    x, y = a[there], b[there]
    if x.size < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return float('nan')
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), -1, 1))


def _check(name: str, trials: Trials, shape: tuple[int, int], truth: np.ndarray) -> None:
    """Raise unless trials, images and objects fit."""
    if name not in FORMS:
        raise unknown('pattern of choices', name, FORMS)
    n_images, n_objects = shape
    if len(truth) != n_images or not len(trials.image):
        raise RequestError(f'choices: {n_images} images, {len(truth)} objects of images, {len(trials.image)} trials')
    limits = dict(zip(Trials._fields, (n_images, n_objects, n_objects, n_objects), strict=True))
    for field, part in trials._asdict().items():
        if part.min() < 0 or part.max() >= limits[field]:
            raise RequestError(f'choices: {field} {part.min()} to {part.max()}, expected 0 to {limits[field] - 1}')
    wrong = (truth[trials.image] != trials.target) | (trials.target == trials.distractor)
    wrong |= (trials.choice != trials.target) & (trials.choice != trials.distractor)
    if wrong.any():
        raise RequestError(
            f'choices: trial {int(np.argmax(wrong))}: target {trials.target[wrong][0]}, distractor'
            f' {trials.distractor[wrong][0]}, choice {trials.choice[wrong][0]}, object of the image'
            f' {truth[trials.image[wrong][0]]}; a choice is the object of the image or the distractor'
        )
