"""From responses of a model to what it does in a task: labels, probabilities of objects, the odd one of three."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np

from jbench.spec.errors import RequestError, unknown

N_CLASSES = 1000  # of ImageNet
INVERSE_PENALTY = 1e-3  # C of the logistic regression
SIMILARITIES = ('dot', 'cosine')


def _but(first: int, last: int, *left_out: int) -> tuple[int, ...]:
    """Whole numbers from one to another."""
    return tuple(k for k in range(first, last + 1) if k not in left_out)


# classes of ImageNet that are an instance of a label
LABELS: dict[str, tuple[int, ...]] = {
    # the 16 of Geirhos et al. (2018, NeurIPS 31)
    'airplane': (404,),
    'bear': _but(294, 297),
    'bicycle': (444, 671),
    'bird': (8, *_but(10, 16), 18, 19, 20, *_but(22, 24), *_but(80, 83), *_but(87, 100, 97), *_but(127, 145, 134)),
    'boat': (472, 554, 625, 814, 914),
    'bottle': (440, 720, 737, 898, 899, 901, 907),
    'car': (436, 511, 817),
    'cat': _but(281, 286),
    'chair': (423, 559, 765, 857),
    'clock': (409, 530, 892),
    'dog': _but(152, 268, 192, 204, 227, 242, 251, 258, 260, 264),
    'elephant': (385, 386),
    'keyboard': (508, 878),
    'knife': (499,),
    'oven': (766,),
    'truck': (555, 569, 656, 675, 717, 734, 864, 867),
    # Baker & Elder (2022, iScience 25:104913)
    'frog': _but(30, 32),
    'lizard': _but(38, 48),
    'bunny': _but(330, 332),
    'tiger': _but(286, 293),
    'turtle': _but(33, 37),
    'wolf': _but(269, 275),
    # Zhu et al. (2019)
    'aeroplane': (404, 895),
    'motorbike': (670, 665),
    'bus': (779, 874, 654),
    # Scialom et al. (2024)
    'banana': (954,),
    'beanie': (439, 452, 515, 808),
    'binoculars': (447,),
    'boot': (514,),
    'bowl': (659, 809),
    'cup': (968,),
    'glasses': (837,),
    'lamp': (470, 607, 818, 846),
    'pan': (567,),
    'sewingmachine': (786,),
    'shovel': (792,),
}


@cache
def synsets() -> tuple[str, ...]:
    """WordNet ids of the 1000 classes of ImageNet, in order."""
    return tuple(resources.files('jbench.alignment').joinpath('imagenet_synsets.txt').read_text().split())


def imagenet_labels(logits: np.ndarray) -> tuple[list[str], np.ndarray]:
    """WordNet id and number of the class of each image.

    Args:
        logits: [image, 1000].
    Raises:
        RequestError: there are not 1000.
    """
    best = _logits(logits).argmax(1)
    return [synsets()[k] for k in best], best


def own_labels(logits: np.ndarray, choices: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The most probable label of each image, the first of equal ones, and the probability of each label: the mean over
    its classes of ImageNet.

    Args:
        logits: [image, 1000].
        choices: labels, names of LABELS (in any case, blanks left out).
    Returns:
        The labels as given, and f64 [image, label].
    Raises:
        RequestError: there are not 1000 logits, or a label has no classes.
    """
    p = _logits(logits)
    p = np.exp(p - p.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    keys = [choice.lower().replace(' ', '') for choice in choices]
    for key, choice in zip(keys, choices, strict=True):
        if key not in LABELS:
            raise unknown('label', choice, LABELS)
    means = np.stack([p[:, LABELS[key]].mean(1) for key in keys], 1)
    return [choices[k] for k in means.argmax(1)], means


def object_probabilities(features: np.ndarray, labels: Sequence[str], test: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Probabilities of objects from a multinomial logistic regression of standardised features (C = 1e-3).

    With more features than images the regression is fitted in the space the images span, where its solution lies.

    Args:
        features: of the images that it is fitted to, [image, feature].
        labels: object of each.
        test: features of other images.
    Returns:
        The objects, sorted, and f64 [test image, object].
    Raises:
        RequestError: fewer than two objects, or shapes that do not fit.
    """
    from sklearn.linear_model import LogisticRegression

    objects, y = np.unique(np.asarray(labels), return_inverse=True)
    if len(objects) < 2 or features.ndim != 2 or len(y) != len(features) or test.shape[1:] != features.shape[1:]:
        raise RequestError(
            f'read-out of probabilities: features {features.shape}, {len(y)} labels of {len(objects)} objects, test'
            f' features {test.shape}: expected [image, feature] of at least two objects'
        )
    mean, spread = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    spread[spread == 0] = 1
    z, z_test = ((v - mean) / spread for v in (features, test))
    if z.shape[1] > z.shape[0]:
        basis, z = np.linalg.qr(z.T)
        z, z_test = z.T, z_test @ basis
    c = INVERSE_PENALTY * (2 if len(objects) == 2 else 1)  # of two, one vector of weights stands for their difference
    fit = LogisticRegression(solver='newton-cg', C=c, tol=1e-10, max_iter=1000).fit(z, y)
    return objects.tolist(), fit.predict_proba(z_test)


def odd_one_out(features: np.ndarray, triplets: np.ndarray, *, similarity: str = 'dot') -> np.ndarray:
    """The stimulus of each triplet that is not of the most similar pair; of equal pairs the first counts.

    Args:
        features: [stimulus, feature].
        triplets: rows of three stimuli, [triplet, 3].
        similarity: 'dot' or 'cosine', where a stimulus without features is like no other.
    Returns:
        Its row, [triplet].
    Raises:
        RequestError: no such similarity, or not three stimuli each.
    """
    if similarity not in SIMILARITIES:
        raise unknown('similarity', similarity, SIMILARITIES)
    if triplets.ndim != 2 or triplets.shape[1] != 3:
        raise RequestError(f'odd one out: stimuli {triplets.shape}, expected three each')
    x = features.astype(np.float64)
    if similarity == 'cosine':
        norm = np.linalg.norm(x, axis=1, keepdims=True)
        x = x / np.where(norm == 0, 1, norm)
    first, second, third = (x[triplets[:, k]] for k in range(3))
    pairs = np.stack([(first * second).sum(1), (first * third).sum(1), (second * third).sum(1)], 1)
    return np.asarray(triplets[np.arange(len(triplets)), 2 - pairs.argmax(1)])


def _logits(logits: np.ndarray) -> np.ndarray:
    """Logits of the classes of ImageNet, checked."""
    if logits.ndim != 2 or logits.shape[1] != N_CLASSES:
        raise RequestError(
            f'labels: outputs {logits.shape}, expected [image, {N_CLASSES}]: a model that labels needs the classifier'
            ' of ImageNet as its last layer'
        )
    return logits.astype(np.float64)
