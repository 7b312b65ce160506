"""Protocols that any model may be asked to take: few training windows, none for validation, channels that fail.

Draws depend on what is drawn from alone, never on a model; those of few windows on the seed that it learns with, too,
unless the recipe numbers them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import numpy as np

from jbench.spec.errors import RequestError
from jbench.spec.recipe import Recipe, seeds_draw
from jbench.spec.task import Task

SEED = 33  # of all other draws, and of those that no seed is known of
ZERO = 10**9  # the number of the draw of seed 0, as a draw 0 stands for that of each seed
LEFT_OUT = 'left out'  # part of training windows that were not drawn; nobody reads them


def of_seed(task: Task, seed: int) -> Task:
    """The task as a seed learns it: with the number of its own draw of few windows."""
    recipe = replace(task.recipe, few_shot_draw=seed or ZERO) if seeds_draw(task.recipe) else task.recipe
    return replace(task, recipe=recipe)


def asked(split: np.ndarray, y: np.ndarray, subjects: np.ndarray, recipe: Recipe) -> np.ndarray:
    """The parts of windows [N] as a recipe asks for them: few training windows; those of validation among them."""
    if recipe.few_shot:
        split = few_shot(split, y, subjects, recipe.few_shot, recipe.few_shot_draw or SEED)
    return np.where(split == 'valid', 'train', split) if recipe.final == 'all' else split


def few_shot(split: np.ndarray, y: np.ndarray, subjects: np.ndarray, k: int, draw: int = SEED) -> np.ndarray:
    """The parts of windows, with k training windows of each class and subject, or all where there are no more.

    Args:
        split: [N] part of each window.
        y: int [N] classes.
        subjects: text [N].
        k: at least 1. Those of a smaller k are among those of a larger one.
        draw: its number.
    """
    out = np.array(split, object)
    for subject in np.unique(subjects[split == 'train']):
        for c in np.unique(y):
            there = np.flatnonzero((split == 'train') & (subjects == subject) & (y == c))
            drawn = _rng(f'{subject} {c}', draw).permutation(len(there))
            out[there[drawn[k:]]] = LEFT_OUT
    return out.astype(str)


def failing(ids: np.ndarray, n_chans: int, share: float) -> np.ndarray:
    """Which channels of windows fail: bool [N, n_chans], of each the largest whole number up to the share, at least one
    and not all; drawn by its id. Those of a smaller share are among those of a larger one.

    Raises: RequestError where there is one channel.
    """
    if n_chans < 2:
        raise RequestError('recipe.mask_channels: windows have one channel, and it cannot fail; leave it at 0')
    n = min(max(1, math.floor(share * n_chans + 1e-9)), n_chans - 1)
    out = np.zeros((len(ids), n_chans), bool)
    for row, number in zip(out, ids.tolist(), strict=True):
        row[_rng(f'window {number}').permutation(n_chans)[:n]] = True
    return out


def _rng(what: str, number: int = SEED) -> np.random.Generator:
    digest = hashlib.sha256(f'{number} {what}'.encode()).digest()
    return np.random.Generator(np.random.Philox(key=np.frombuffer(digest[:16], np.uint64)))
