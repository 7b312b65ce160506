"""Splits equal scikit-learn's, on every subject split of the benchmark and on random tables."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES, HELPERS

from jbench.data.load import grouping, split_windows, splits
from jbench.spec.errors import RequestError, SplitError
from jbench.spec.task import ByGroup, BySimilarity, Predefined, SplitSpec

FIXTURE = FIXTURES / 'splits.json'
CASES = json.loads(FIXTURE.read_text())
STRATIFIED = ByGroup(stratify='diagnosis')


def table(subjects: list[str], **columns: list) -> dict[str, np.ndarray]:
    """One event a subject name given, each in its own recording."""
    n = len(subjects)
    base = {'recording': np.arange(n), 'onset': np.zeros(n), 'duration': np.ones(n), 'subject': np.array(subjects)}
    return base | {'type': np.array(['Eeg'] * n)} | {k: np.array(v) for k, v in columns.items()}


def positions(assigned: np.ndarray, name: str) -> list[int]:
    return np.flatnonzero(assigned == name).tolist()


def subject_split(n: int, strata: int) -> np.ndarray:
    events = table([f'S{i + 1}' for i in range(n)], diagnosis=[f'k{i % max(strata, 1)}' for i in range(n)])
    return splits.assign(events, STRATIFIED if strata else ByGroup())


def sklearn_split(groups: list, split: ByGroup, labels: dict | None = None) -> dict[str, set]:
    """NeuralBench's SklearnSplit on groups in first-seen order."""
    from sklearn.model_selection import train_test_split

    kinds = None if labels is None else [labels[g] for g in groups]
    rest, test = train_test_split(groups, test_size=split.test, random_state=split.seed, stratify=kinds)
    kinds = None if labels is None else [labels[g] for g in rest]
    share = split.valid / (1.0 - split.test)
    train, valid = train_test_split(rest, test_size=share, random_state=split.seed, stratify=kinds)
    return {'train': set(train), 'valid': set(valid), 'test': set(test)}


# --- every subject split of the benchmark ---------------------------------------------------------------------------


def test_fixture_covers_the_benchmark() -> None:
    tasks = {case[0] for case in CASES['cases']}
    assert len(CASES['cases']) > 70 and len(tasks) > 20
    assert {'eeg/p3', 'eeg/motor_imagery', 'eeg/ssvep', 'eeg/sleep_stage', 'eeg/dementia_diagnosis'} <= tasks
    assert {f'{n}/{k}' for _, _, n, k in CASES['cases']} == set(CASES['splits'])


@pytest.mark.parametrize('size', sorted(CASES['splits'], key=lambda s: tuple(map(int, s.split('/')))))
def test_subject_splits_equal_the_recorded_and_the_live_scikit_learn(size: str) -> None:
    n, strata = map(int, size.split('/'))
    found = subject_split(n, strata)
    assert {name: positions(found, name) for name in ('test', 'valid')} == CASES['splits'][size]
    live = sklearn_split(list(range(n)), ByGroup(), {i: i % strata for i in range(n)} if strata else None)
    assert {name: set(positions(found, name)) for name in splits.SPLITS} == live


def digest_of_all() -> str:
    found = {size: subject_split(*map(int, size.split('/'))).tolist() for size in sorted(CASES['splits'])}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


@pytest.mark.slow
def test_splits_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    code = 'import sys; sys.path.insert(0, sys.argv[1]); import test_splits; print(test_splits.digest_of_all())'
    here = Path(__file__).parent
    path = os.pathsep.join([str(HELPERS), os.environ.get('PYTHONPATH', '')])
    running = [
        subprocess.Popen(
            [sys.executable, '-c', code, str(here)],
            env={**os.environ, 'PYTHONHASHSEED': str(seed), 'PYTHONPATH': path},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in range(4)
    ]
    assert {p.communicate(timeout=60)[0].strip() for p in running} == {digest_of_all()}


# --- published facts ------------------------------------------------------------------------------------------------


def test_forty_subjects_have_these_test_positions_in_this_order() -> None:
    assert grouping.train_test_positions(40, 0.2, 33)[1].tolist() == [15, 5, 0, 26, 17, 25, 36, 21]


def test_mental_arithmetic_subjects() -> None:
    found = splits.assign(table([f'Subject{i:02d}' for i in range(1, 36)]), ByGroup())
    assert [i + 1 for i in positions(found, 'test')] == [6, 9, 18, 22, 30, 32, 35]
    assert [i + 1 for i in positions(found, 'valid')] == [10, 13, 14, 19, 24, 25, 29]


def test_hbn_validates_on_release_10() -> None:
    releases = [f'R{i}' for i in range(1, 12)]
    split = Predefined(field='release', test=('R5',), valid_by='release', valid=0.091)
    found = splits.assign(table([f's{i}' for i in range(11)], release=releases), split)
    assert [releases[i] for i in positions(found, 'test')] == ['R5']
    assert [releases[i] for i in positions(found, 'valid')] == ['R10']
    assert (found == 'train').sum() == 9


def test_hoffmann_has_two_validation_sessions_of_three() -> None:
    split = Predefined(field='session', test=('3',), valid_by='session', valid=0.334)
    found = splits.assign(table(['s'] * 8, session=list('01230123')), split)
    assert [(found[i] == 'valid', found[i + 4] == 'valid') for i in range(4)].count((True, True)) == 2
    assert positions(found, 'test') == [3, 7] and len(positions(found, 'train')) == 2


def test_chavarriaga_validates_on_the_sessions_at_0_14_1() -> None:
    sessions = [str(i) for i in range(20)]
    split = Predefined(field='session', test=('16', '17', '18', '19'), valid_by='session', valid=0.1875)
    found = splits.assign(table(['s'] * 20, session=sessions), split)
    assert positions(found, 'valid') == [0, 1, 14]
    assert grouping.train_test_positions(16, 0.1875, 33)[1].tolist() == [0, 14, 1]


# --- rules of the event table ---------------------------------------------------------------------------------------


def test_own_split_column_and_rows_without_group() -> None:
    own = ['train'] * 8 + ['test', 'val', 'other']
    events = table([f's{i}' for i in range(7)] + ['', 's8', 's9', 's10'], split=own)
    found = splits.assign(events, Predefined(valid_by='subject'))
    assert found[8] == 'test' and found[9] == 'valid' and found[10] == '' and found[7] == ''
    assert positions(found[:7], 'valid') == sorted(grouping.train_test_positions(7, 0.2, 33)[1])


def test_index_validation_counts_only_rows_that_are_not_test() -> None:
    session = ['1' if i % 3 == 0 else '0' for i in range(30)]
    split = Predefined(field='session', test=('1',), valid_by='_index', valid=0.1)
    found = splits.assign(table(['s'] * 30, session=session), split)
    others = [i for i in range(30) if i % 3]
    assert positions(found, 'valid') == sorted(others[i] for i in grouping.train_test_positions(20, 0.1, 33)[1])


def test_index_split_drops_rows_without_stratum() -> None:
    codes = [np.nan] + [float(i % 2) for i in range(40)] + [np.nan]
    found = splits.assign(table(['s'] * 42, code=codes), ByGroup(by='_index', stratify='code'))
    expected = sklearn_split(list(range(1, 41)), ByGroup(), {i: codes[i] for i in range(1, 41)})
    assert found[0] == found[41] == ''
    assert {name: set(positions(found, name)) for name in splits.SPLITS} == expected


def test_rows_without_stratum_follow_their_subject() -> None:
    """Seizure: the stratum stands on seizure events, the windows come from the row of the recording."""
    subjects = [f's{i}' for i in range(20) for _ in range(2)]
    states = [v for i in range(20) for v in ('', 'seiz' if i != 4 else '')]
    found = splits.assign(table(subjects, state=states), ByGroup(stratify='state'))
    assert (found[0::2] == found[1::2]).all()
    assert found[8] == found[9] == '' and (np.delete(found, [8, 9]) != '').all()


@pytest.mark.parametrize('kind', [int, float, str])
def test_strata_sort_as_numpy_sorts_them_numbers_by_value_and_digits_as_text(kind: type) -> None:
    codes = [kind((2, 10, 9)[i % 3]) for i in range(37)]
    events = table(['s'] * 37, code=codes)
    found = splits.assign(events, ByGroup(by='_index', stratify='code'))
    expected = sklearn_split(list(range(37)), ByGroup(), dict(enumerate(codes)))
    assert {name: set(positions(found, name)) for name in splits.SPLITS} == expected


@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 10_000),
    st.integers(12, 90),
    st.integers(1, 4),
    st.sampled_from([(0.2, 0.2), (0.1, 0.2), (0.1, 0.1)]),
)
def test_stratified_equals_scikit_learn_on_random_tables(
    seed: int, n: int, n_classes: int, shares: tuple[float, float]
) -> None:
    rng = np.random.default_rng(seed)
    labels = [f'k{v}' for v in rng.choice(n_classes, n, p=rng.dirichlet(np.full(n_classes, 3.0)))]
    split = ByGroup(stratify='diagnosis', valid=shares[0], test=shares[1])
    names = [f's{i}' for i in rng.permutation(n)]
    events = table(names, diagnosis=labels)
    try:
        expected = sklearn_split(names, split, dict(zip(names, labels, strict=True)))
    except ValueError:
        with pytest.raises(RequestError):
            splits.assign(events, split)
        return
    found = splits.assign(events, split)
    assert {part: {names[i] for i in positions(found, part)} for part in splits.SPLITS} == expected


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from([f's{i}' for i in range(12)] + ['']), min_size=1, max_size=60),
    st.randoms(use_true_random=False),
)
def test_groups_stay_whole_and_cover_and_columns_have_no_order(subjects: list[str], random: Random) -> None:
    events = table(subjects)
    names = list(dict.fromkeys(s for s in subjects if s))
    if len(names) < 3:
        with pytest.raises(RequestError, match='at least 3 groups'):
            splits.assign(events, ByGroup())
        return
    found = splits.assign(events, ByGroup())
    assert all((part == '') == (subject == '') for part, subject in zip(found, subjects, strict=True))
    assert all(len({p for p, s in zip(found, subjects, strict=True) if s == name}) == 1 for name in names)
    assert set(splits.SPLITS) <= set(found)
    shuffled = list(events)
    random.shuffle(shuffled)
    assert (splits.assign({k: events[k] for k in shuffled}, ByGroup()) == found).all()
    expected = sklearn_split(names, ByGroup())
    assert {part: {subjects[i] for i in positions(found, part)} for part in splits.SPLITS} == expected


# --- similarity -----------------------------------------------------------------------------------------------------

WORDS = ('fox', 'whale', 'keyboard', 'train', 'bread', 'moon', 'river', 'violin', 'copper', 'window')


def sentences(seed: int) -> list[str]:
    """Forty distinct sentences that share many words."""
    rng = np.random.default_rng(seed)
    drawn = [f'the {" ".join(sorted(rng.choice(WORDS, 4, replace=False)))}' for _ in range(100)]
    return list(dict.fromkeys(drawn))[:40]


def clusters_by_scipy(texts: list[str], linkage: str) -> np.ndarray:
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import pdist
    from sklearn.feature_extraction.text import TfidfVectorizer

    x = TfidfVectorizer(max_features=5000, stop_words='english').fit_transform(texts).toarray()
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)  # torch's layer norm
    return hierarchy.fcluster(hierarchy.linkage(pdist(x, 'cosine').round(9), linkage), 0.7, 'distance')


@pytest.mark.parametrize('seed', range(8))
def test_similarity_split_equals_a_direct_computation(seed: int) -> None:
    texts = sentences(seed)
    ids = clusters_by_scipy(texts, 'complete')
    groups = list(dict.fromkeys(ids.tolist()))
    assert 3 <= len(groups) < len(texts)
    assert len(set(clusters_by_scipy(texts, 'average'))) < len(groups)  # the example tells the linkages apart
    expected = sklearn_split(groups, ByGroup())
    found = splits.assign(table(['s'] * 81, text=[*texts, *texts, '']), BySimilarity())  # texts repeat, one is missing
    assert found[-1] == ''
    assert all(ids[row % 40] in expected[part] for row, part in enumerate(found[:-1]))


# --- messages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('subjects', 'split', 'words'),
    [
        (['A', 'B', 'A'], ByGroup(), ["there are 2: 'A', 'B'", 'train, valid and test']),
        (['A', 'B', 'C'], ByGroup(by='subjekt'), ["did you mean 'subject'"]),
        (['A', 'B', 'C', 'D'], ByGroup(stratify='subject'), ['too few groups', 'each stratum needs one']),
        (['A', 'B', 'C'], Predefined(field='subject', test=('Z',)), ["'Z'", "'A', 'B', 'C'"]),
        (['A', 'B', 'B'], Predefined(field='subject', test=('A',)), ['1 values']),
        (['A', 'B', 'C'], ByGroup(valid=0.5, test=0.5), ['split.valid=0.5']),
    ],
)
def test_errors_say_what_there_is(subjects: list[str], split: SplitSpec, words: list[str]) -> None:
    with pytest.raises(RequestError) as error:
        splits.assign(table(subjects), split)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_subject_with_two_strata_is_refused() -> None:
    events = table(['A', 'A', 'B', 'C'], diagnosis=['x', 'y', 'x', 'x'])
    with pytest.raises(RequestError, match=r"two strata \('x', 'y'\)"):
        splits.assign(events, STRATIFIED)


# --- checks and hashes ----------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_overlaps_equal_a_comparison_of_all_pairs(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    events = table(['s'] * m) | {'recording': rng.integers(0, 3, m)}
    windows = {
        'event': rng.integers(0, m, m),
        'onset': rng.integers(0, 30, m) / 4,
        'duration': rng.integers(1, 9, m) / 4,
    }
    part = rng.choice(['train', 'valid', 'test', ''], m)
    who, own = events['recording'][windows['event']], part[windows['event']]
    start, stop = windows['onset'], windows['onset'] + windows['duration']
    clash = (start[:, None] < stop) & (stop[:, None] > start) & (who[:, None] == who) & (own[:, None] != own)
    clash &= (own != '') & (own != '')[:, None]
    found = split_windows.check(events, windows, own, ByGroup(by='_index'))
    assert len(found) == bool(clash.any())
    if found:
        assert found[0].startswith(f'{int(clash.any(1).sum())} of {int((own != "").sum())} windows')


def test_touching_windows_do_not_overlap_despite_rounding() -> None:
    onset = np.arange(30) * 0.1
    assert (onset[:-1] + 0.1 > onset[1:]).any()
    events = table(['s'] * 30) | {'recording': np.zeros(30, int)}
    windows = {'event': np.arange(30), 'onset': onset, 'duration': np.full(30, 0.1)}
    assert split_windows.check(events, windows, np.array(['train', 'test'] * 15)) == []


def test_shared_subjects() -> None:
    events, part = table(['a', 'a', 'b']), np.array(['train', 'test', 'valid'])
    windows = {'event': np.arange(3), 'onset': np.zeros(3), 'duration': np.ones(3)}
    with pytest.raises(RuntimeError, match="'a' are in several splits"):
        split_windows.check(events, windows, part, ByGroup())
    assert split_windows.check(events, windows, part, Predefined()) == ["1 subjects are in several splits: 'a'"]
    assert split_windows.check(events, windows, part, ByGroup(by='run')) == []
    halves = ByGroup(fold='1/2', validate_by='session')
    with pytest.raises(RuntimeError, match="'a' are in several splits"):
        split_windows.check(events, windows, part, halves)
    validates = np.array(['valid', 'test', 'train'])
    assert split_windows.check(events, windows, validates, halves) == ["1 subjects are in several splits: 'a'"]


def test_split_hash_sees_membership_and_nothing_else() -> None:
    ids = {'train': np.array([1, 2, 3]), 'valid': np.array([4]), 'test': np.array([5])}
    same = {'test': np.array([5], np.int32), 'valid': [4], 'train': [3, 1, 2]}
    assert splits.split_hash(ids) == splits.split_hash(same) == '0e959f1148098c69'
    assert splits.split_hash(ids | {'valid': np.array([5]), 'test': np.array([4])}) != splits.split_hash(ids)
    assert splits.split_hash(ids | {'train': np.array([1, 2])}) != splits.split_hash(ids)


# ---- parts of challenges ----


def test_apart_validates_by_groups_without_a_test_row() -> None:
    events = table(list('aabbcdefgh'), split=['train', 'test'] * 2 + ['train'] * 6)
    asked = Predefined(field='split', test=('test',), apart=True)
    found = splits.assign(events, asked)
    assert (found[[1, 3]] == 'test').all() and (found[[0, 2]] == 'train').all()
    assert (found == 'valid').sum() == 2, 'a fifth of the six others'
    shared = [splits.assign(events, replace(asked, apart=False, seed=k))[[0, 2]] for k in range(9)]
    assert 'valid' in np.concatenate(shared), 'without it, people who are tested validate too'


def test_all_parts_may_be_given() -> None:
    asked = Predefined(field='split', test=('test',), valid_by='')
    found = splits.assign(table(list('abcd'), split=['train', 'valid', 'test', 'unscored']), asked)
    assert found.tolist() == ['train', 'valid', 'test', '']
    with pytest.raises(SplitError, match='no event is of the part valid'):
        splits.assign(table(list('abc'), split=['train', 'train', 'test']), asked)
