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

from jbench.data.load import folds
from jbench.data.load.grouping import first_rows, groups, in_order, listed, strata_ranks, train_test_positions
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
            with `stratify`, only rows that have the stratum count); with `fold`, as `folds.fold_parts` deals them; with
            `folds`, the first of them. Predefined: rows whose `field` is in `test` are test (`test` empty: the table's
            own column 'split' decides), valid is a share of the groups of `valid_by` among the other rows (`apart`:
            of those without a test row); without `valid_by`, valid is what is given.
            BySimilarity: groups are clusters of similar texts.
    Returns:
        str [n]: 'train', 'valid', 'test', or '' for a row without group.
    Raises:
        RequestError: unknown column, a group with two strata; SplitError: too few groups, no test row.
    """
    if isinstance(split, Predefined):
        return _predefined(events, split)
    check_shares(split)
    if isinstance(split, ByGroup) and split.order:
        ordered, rows = in_order(events, split.order)
        part = assign(ordered, replace(split, order=()))
        return part[np.argsort(rows)]
    if isinstance(split, ByGroup) and (split.fold or split.folds):
        return folds.fold_parts(events, split if split.fold else folds.first_fold(events, split))
    group_of = groups(events, split.by)
    if isinstance(split, ByGroup):
        return _by_group(events, group_of, split, split.by)
    first = first_rows(group_of)
    texts = [as_text(v) for v in column(events, split.by)[first]]
    if len(texts) < 3:
        raise _too_few(split.by, texts)
    clusters = similar_texts(texts, split.threshold)
    return _by_group(events, np.where(group_of >= 0, clusters[group_of], -1), split, f'cluster of {split.by}')


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
    if split.test and split.valid_by:
        out = np.where(np.isin(values, split.test), 'test', 'train')
    else:
        values[np.isin(values, split.test)] = 'test'
        values[np.isin(values, ['val', 'validation'])] = 'valid'
        out = np.where(np.isin(values, SPLITS), values, '')
    if 'test' not in out:
        wanted = listed(sorted(split.test or ('test',)))
        raise SplitError(
            f'no event has {wanted} in column {field!r}, which holds {listed(unique_sorted(values.tolist()))}'
        )
    if not split.valid_by:  # as given
        if not (out == 'valid').any():
            raise SplitError(f'no event is of the part valid in column {field!r}, and split.valid_by names no groups')
        return out
    if not 0 < split.valid < 1:
        raise RequestError(f'split.valid={split.valid:g} must lie between 0 and 1')
    others = out == 'train'
    whole = groups(events, split.valid_by, others)
    group_of = _apart(groups(events, split.valid_by), whole, out == 'test') if split.apart else whole
    n = int(group_of.max(initial=-1)) + 1
    if n - math.ceil(split.valid * n) < 1:
        left = (
            f'valid takes {split.valid:g} of the {n} values of {split.valid_by!r} outside test: none is left to train'
        )
        raise SplitError(left)
    valid = train_test_positions(n, split.valid, split.seed)[1]
    out = out.astype('<U5')
    out[others & (whole < 0)] = ''
    out[np.isin(group_of, valid)] = 'valid'
    return out


def _apart(every: np.ndarray, others: np.ndarray, test: np.ndarray) -> np.ndarray:
    """The groups of rows outside test, int [n], that hold no test row, numbered anew; -1 for all other rows."""
    alone = (others >= 0) & ~np.isin(every, every[test & (every >= 0)])
    out = np.full(len(every), -1)
    out[alone] = np.unique(others[alone], return_inverse=True)[1]
    return out


def _by_group(events: Table, group_of: np.ndarray, split: ByGroup | BySimilarity, what: str) -> np.ndarray:
    """`group_of`: int [n], a number for each group, -1 for none; `what`: the name of the groups in messages."""
    strata = column(events, split.stratify) if isinstance(split, ByGroup) and split.stratify else None
    first = first_rows(group_of if strata is None else np.where(present(strata), group_of, -1))
    ids = group_of[first]
    n_test = math.ceil(split.test * len(ids))
    share = split.valid / (1.0 - split.test)
    if len(ids) < 3 or len(ids) - n_test - math.ceil(share * (len(ids) - n_test)) < 1:
        names = column(events, what)[first] if what in events else first
        raise _too_few(what, [as_text(v) for v in names])
    kinds = None if strata is None else strata_ranks(group_of, strata, first, what)
    rest, test = _held_out(kinds, np.arange(len(ids)), split.test, split.seed, what)
    _, valid = _held_out(kinds, rest, share, split.seed, what)
    out = np.full(len(group_of), '', '<U5')
    for name, members in (('train', np.arange(len(ids))), ('valid', valid), ('test', test)):
        out[np.isin(group_of, ids[members])] = name
    return out


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


def _too_few(what: str, names: Sequence[str]) -> SplitError:
    there = f'there {"is" if len(names) == 1 else "are"} {len(names)}' + (f': {listed(names)}' if names else '')
    return SplitError(f'a split by {what!r} needs at least 3 groups, one each for train, valid and test; {there}')
