"""Which events train, which validate and which test.

Reproduces scikit-learn's `train_test_split` (numpy's legacy RandomState, fixed by its compatibility promise) on the
groups that NeuralBench makes of an event table, so that a split does not depend on the version of scikit-learn.
The table must be in canonical order (see `assign`): groups count from their first row.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jbench.events import Table, as_text, column, present, unique_sorted
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByBlock, ByGroup, BySimilarity, Predefined

SPLITS = ('train', 'valid', 'test')
MAX_TERMS = 5000
TIE_DECIMALS = 9


def assign(events: Table, split: ByGroup | Predefined | BySimilarity) -> np.ndarray:
    """The split of every event.

    Args:
        events: dict of equally long columns, [n] rows, in canonical order: recordings as first seen, then onset
            ascending, then duration descending. Missing: '' in text, nan in floats.
        split: how. ByGroup: distinct values of `by` in first-seen order (of rows sorted by `order`), split by
            scikit-learn's rule into test and the rest, the rest into valid and train ('_index': each row is a group;
            with `stratify`, only rows that have the stratum count); with `fold`, as `_fold` deals them. Predefined:
            rows whose `field` is in `test` are test (`test` empty: the table's own column 'split' decides), valid is
            a share of the groups of `valid_by` among the other rows. BySimilarity: groups are clusters of similar
            texts.
    Returns:
        str [n]: 'train', 'valid', 'test', or '' for a row without group.
    Raises:
        RequestError: unknown column, a group with two strata; SplitError: too few groups, no test row.
        MissingExtraError: BySimilarity without scikit-learn.
    """
    if isinstance(split, Predefined):
        return _predefined(events, split)
    check_shares(split)
    if isinstance(split, ByGroup) and split.order:
        sorted_by = [np.array([as_text(v) for v in column(events, name)]) for name in split.order]
        rows = np.lexsort(sorted_by[::-1])
        part = assign({k: np.asarray(v)[rows] for k, v in events.items()}, replace(split, order=()))
        return part[np.argsort(rows)]
    group_of = _groups(events, split.by)
    if isinstance(split, ByGroup) and split.fold:
        return _fold(events, group_of, split)
    if isinstance(split, ByGroup):
        return _by_group(events, group_of, split, split.by)
    first = _first_rows(group_of)
    texts = [as_text(v) for v in column(events, split.by)[first]]
    if len(texts) < 3:
        raise _too_few(split.by, texts)
    clusters = similar_texts(texts, split.threshold)
    return _by_group(events, np.where(group_of >= 0, clusters[group_of], -1), split, f'cluster of {split.by}')


def train_test_positions(n: int, share: float, seed: int, strata: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Positions (train, test) of `train_test_split(range(n), test_size=share, random_state=seed, stratify=strata)`.

    Args:
        n: number of groups.
        share: of the test part, in (0, 1); its size is ceil(share * n).
        seed: of RandomState.
        strata: [n], sortable: the class of each group, or None.
    Returns:
        Two int arrays, in scikit-learn's order.
    """
    n_test = math.ceil(share * n)
    rng = np.random.RandomState(seed)
    if strata is None:
        order = rng.permutation(n)
        return order[n_test:], order[:n_test]
    _, kinds, counts = np.unique(strata, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(kinds, kind='stable'), np.cumsum(counts)[:-1])
    n_i = _approximate_mode(counts, n - n_test, rng)
    t_i = _approximate_mode(counts - n_i, n_test, rng)
    train: list[int] = []
    test: list[int] = []
    for members, n_here, t_here in zip(rows, n_i, t_i, strict=True):
        order = members[rng.permutation(len(members))]
        train.extend(order[:n_here])
        test.extend(order[n_here : n_here + t_here])
    return rng.permutation(train), rng.permutation(test)


def similar_texts(texts: Sequence[str], threshold: float) -> np.ndarray:
    """Cluster of each distinct text, int [n]: complete linkage of cosine distances, cut at `threshold`.

    TF-IDF of at most 5000 terms without English stop words, each vector layer-normalised (as NeuralBench does).

    Raises: RequestError if the texts hold no word but stop words.
    """
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.metrics.pairwise import cosine_similarity

    try:
        x = TfidfVectorizer(max_features=MAX_TERMS, stop_words='english').fit_transform(texts).toarray()
    except ValueError as error:
        raise RequestError(f'split by similarity: {error}; first text: {texts[0]!r}') from None
    x = x - x.mean(1, keepdims=True)  # the rest of the layer norm, a factor, cancels in the cosine
    tree = AgglomerativeClustering(
        n_clusters=None, metric='precomputed', distance_threshold=threshold, linkage='complete'
    )
    # Short texts have many equal distances: rounded, they tie on every machine, and the linkage takes the first.
    return np.asarray(tree.fit_predict(np.round(1 - cosine_similarity(x), TIE_DECIMALS)))


def split_hash(ids: Mapping[str, np.ndarray]) -> str:
    """16 hex digits that change when any record (int64 id) changes its split; the order of records does not count."""
    digest = hashlib.sha256()
    for name in sorted(ids):
        records = np.sort(np.asarray(ids[name], dtype='<i8'))
        digest.update(f'{name}:{len(records)};'.encode())
        digest.update(records.tobytes())
    return digest.hexdigest()[:16]


def _predefined(events: Table, split: Predefined) -> np.ndarray:
    field = 'split' if not split.test else split.field
    values = np.array([as_text(v) for v in column(events, field)])
    if split.test:
        out = np.where(np.isin(values, split.test), 'test', 'train')
    else:
        values[np.isin(values, ['val', 'validation'])] = 'valid'
        out = np.where(np.isin(values, SPLITS), values, '')
    if 'test' not in out:
        wanted = listed(sorted(split.test or ('test',)))
        raise SplitError(
            f'no event has {wanted} in column {field!r}, which holds {listed(unique_sorted(values.tolist()))}'
        )
    if not 0 < split.valid < 1:
        raise RequestError(f'split.valid={split.valid:g} must lie between 0 and 1')
    others = out == 'train'
    group_of = _groups(events, split.valid_by, others)
    n = int(group_of.max(initial=-1)) + 1
    if n - math.ceil(split.valid * n) < 1:
        left = (
            f'valid takes {split.valid:g} of the {n} values of {split.valid_by!r} outside test: none is left to train'
        )
        raise SplitError(left)
    valid = train_test_positions(n, split.valid, split.seed)[1]
    out = out.astype('<U5')
    out[others & (group_of < 0)] = ''
    out[np.isin(group_of, valid)] = 'valid'
    return out


def _by_group(events: Table, group_of: np.ndarray, split: ByGroup | BySimilarity, what: str) -> np.ndarray:
    """`group_of`: int [n], a number for each group, -1 for none; `what`: the name of the groups in messages."""
    strata = column(events, split.stratify) if isinstance(split, ByGroup) and split.stratify else None
    first = _first_rows(group_of if strata is None else np.where(present(strata), group_of, -1))
    ids = group_of[first]
    n_test = math.ceil(split.test * len(ids))
    share = split.valid / (1.0 - split.test)
    if len(ids) < 3 or len(ids) - n_test - math.ceil(share * (len(ids) - n_test)) < 1:
        names = column(events, what)[first] if what in events else first
        raise _too_few(what, [as_text(v) for v in names])
    kinds = None if strata is None else _strata(group_of, strata, first, what)
    rest, test = _held_out(kinds, np.arange(len(ids)), split.test, split.seed, what)
    _, valid = _held_out(kinds, rest, share, split.seed, what)
    out = np.full(len(group_of), '', '<U5')
    for name, members in (('train', np.arange(len(ids))), ('valid', valid), ('test', test)):
        out[np.isin(group_of, ids[members])] = name
    return out


def _fold(events: Table, group_of: np.ndarray, split: ByGroup) -> np.ndarray:
    """Fold k of n: groups are dealt in first-seen order, as cards are; fold k tests, the next one (after the last the
    first) validates, the others train. With as many folds as groups, one group is left out.

    Raises: RequestError for a fold that is not k/n, for more folds than groups, and together with `stratify`.
    """
    k, n = split.fold_numbers()
    if split.stratify:
        raise RequestError('--set split.fold: folds are not stratified; add --set split.stratify=none')
    n_groups = int(group_of.max(initial=-1)) + 1
    if n > n_groups:
        first = _first_rows(group_of)
        names = listed([as_text(v) for v in column(events, split.by)[first]]) if split.by in events else 'rows'
        raise SplitError(f'--set split.fold: {n} folds, but {split.by!r} has {n_groups} groups: {names}')
    dealt = group_of % n + 1
    parts = [group_of < 0, dealt == k, dealt == k % n + 1]
    return np.select(parts, ['', 'test', 'valid'], 'train').astype('<U5')


def check_shares(split: ByGroup | BySimilarity | ByBlock) -> None:
    """Raises: RequestError for shares of the groups (blocks) that leave no part for one of the three."""
    if not (split.valid > 0 and split.test > 0 and split.valid + split.test < 1):
        raise RequestError(f'split.valid={split.valid:g}, split.test={split.test:g}: above 0, with a rest to train on')


def _held_out(
    kinds: np.ndarray | None, groups: np.ndarray, share: float, seed: int, what: str
) -> tuple[np.ndarray, np.ndarray]:
    """`groups` as (kept, held out), stratified by `kinds` under scikit-learn's conditions on the strata."""
    own = None if kinds is None else kinds[groups]
    if own is not None:
        counts = np.unique(own, return_counts=True)[1]
        n_test = math.ceil(share * len(own))
        if counts.min() < 2 or min(n_test, len(own) - n_test) < len(counts):
            raise SplitError(
                f'too few groups of {what!r} to stratify: strata of {counts.tolist()} groups, {n_test} of '
                f'{len(own)} to hold out, but each stratum needs one in either part'
            )
    kept, held = train_test_positions(len(groups), share, seed, own)
    return groups[kept], groups[held]


def _strata(group_of: np.ndarray, strata: np.ndarray, first: np.ndarray, what: str) -> np.ndarray:
    """Rank of each group's stratum, int [groups]: numbers by value, texts by code point even where they are digits, as
    scikit-learn sorts them. Raises: RequestError for a group with two."""
    labels = np.array([as_text(v) for v in strata])
    own = dict(zip(group_of[first].tolist(), labels[first].tolist(), strict=True))
    used = present(labels) & (group_of >= 0)
    for group, label in set(zip(group_of[used].tolist(), labels[used].tolist(), strict=True)):
        if own[group] != label:
            pair = listed(sorted((own[group], label)))
            raise RequestError(f'one {what!r} is in two strata ({pair}), but needs one; set split.stratify=none')
    return np.unique(strata[first], return_inverse=True)[1]


def _groups(events: Table, by: str, among: np.ndarray | None = None) -> np.ndarray:
    """Number of each row's group, in first-seen order among the rows `among` (default all); -1 for none."""
    by = 'recording' if by == 'timeline' else by
    among = np.ones(len(events['onset']), bool) if among is None else among
    if by == '_index':
        return np.where(among, np.cumsum(among) - 1, -1)
    values = column(events, by)
    names, keys = np.unique(values, return_inverse=True)
    keys = np.where(among & present(values), keys, -1)
    first = _first_rows(keys)
    number = np.full(len(names) + 1, -1)
    number[keys[first]] = np.arange(len(first))
    return np.asarray(number[keys])


def _first_rows(group_of: np.ndarray) -> np.ndarray:
    """The first row of each group, ascending."""
    ids, rows = np.unique(group_of, return_index=True)
    return np.sort(rows[ids >= 0])


def _approximate_mode(counts: np.ndarray, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """How many of n_draws fall on each class: near the mode of the multivariate hypergeometric (scikit-learn's rule,
    drawing from `rng` to break ties in the same order)."""
    exact = counts / counts.sum() * n_draws
    drawn: np.ndarray = np.floor(exact).astype(np.int64)
    left = int(n_draws - drawn.sum())
    if left > 0:
        remainder = exact - drawn
        for value in np.unique(remainder)[::-1]:
            ties = np.flatnonzero(remainder == value)
            now = min(len(ties), left)
            drawn[rng.choice(ties, size=now, replace=False)] += 1
            left -= now
            if left == 0:
                break
    return drawn


def _too_few(what: str, names: Sequence[str]) -> SplitError:
    there = f'there {"is" if len(names) == 1 else "are"} {len(names)}' + (f': {listed(names)}' if names else '')
    return SplitError(f'a split by {what!r} needs at least 3 groups, one each for train, valid and test; {there}')


def listed(names: Sequence[str], limit: int = 8) -> str:
    """Names as they stand in a message, the first few of many."""
    return ', '.join(map(repr, names[:limit])) + (f', ... ({len(names)})' if len(names) > limit else '')
