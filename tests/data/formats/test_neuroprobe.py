"""Windows and labels of Neuroprobe, against its rules written out word by word."""

from __future__ import annotations

import numpy as np
import pytest

from jbench.data.formats import neuroprobe


def words(n: int = 400, seed: int = 0) -> dict[str, np.ndarray]:
    """Words of sentences of one to six."""
    rng = np.random.default_rng(seed)
    sentence = np.repeat(np.arange(n), rng.integers(1, 7, n))[:n]
    first = np.r_[True, sentence[1:] != sentence[:-1]]
    start = np.cumsum(rng.uniform(0.2, 1.0, n))
    table = {name: rng.standard_normal(n) for name in neuroprobe.NUMBERS.values()}
    table['word_length'] = rng.integers(1, 9, n).astype(float)  # with equal ones
    return {
        **{k: v.astype(str) for k, v in table.items()},
        'start': start.astype(str),
        'end': (start + rng.uniform(0.1, 0.2, n)).astype(str),
        'sentence': sentence.astype(str),
        'is_onset': first.astype(int).astype(str),
        'idx_in_sentence': (np.arange(n) - np.maximum.accumulate(np.where(first, np.arange(n), 0))).astype(str),
        'face_num': rng.integers(0, 3, n).astype(float).astype(str),
        'bin_head': rng.integers(0, 2, n).astype(str),
        'pos': rng.choice(['VERB', 'NOUN', 'DET'], n),
    }


@pytest.mark.parametrize('task', neuroprobe.NUMBERS)
def test_numbers_above_the_third_quartile_stand_against_those_below_the_first(task: str) -> None:
    """By shares of words that are below, one word after the other."""
    table = words()
    value = table[neuroprobe.NUMBERS[task]].astype(float)
    value[7] = np.nan
    share = np.array([np.mean(value < v) for v in value])
    one, other = neuroprobe.classes(task, {**table, neuroprobe.NUMBERS[task]: value.astype(str)}, 0)
    np.testing.assert_array_equal(one, np.flatnonzero(share > 0.75))
    np.testing.assert_array_equal(other, np.flatnonzero(share < 0.25))


def test_gaps_are_those_within_sentences() -> None:
    table = words()
    start, end, sentence = table['start'].astype(float), table['end'].astype(float), table['sentence']
    gaps = {i: start[i] - end[i - 1] for i in range(1, len(start)) if sentence[i] == sentence[i - 1]}
    every = np.array(list(gaps.values()))
    share = {i: np.mean(every < gap) for i, gap in gaps.items()}
    one, other = neuroprobe.classes('word_gap', table, 0)
    assert one.tolist() == [i for i, s in share.items() if s >= 0.75]
    assert other.tolist() == [i for i, s in share.items() if s < 0.25]


def test_words_stand_against_each_other_or_against_silence() -> None:
    table = words()
    pairs = {task: neuroprobe.classes(task, table, 55) for task in neuroprobe.TASKS}
    assert pairs['onset'][0].tolist() == np.flatnonzero(table['is_onset'] == '1').tolist()
    assert pairs['speech'][0].tolist() == list(range(400))
    assert pairs['onset'][1].tolist() == pairs['speech'][1].tolist() == list(range(55))
    assert set(table['pos'][pairs['word_part_speech'][0]]) == {'VERB'}
    assert set(table['pos'][pairs['word_part_speech'][1]]) == {'NOUN'}
    assert set(table['idx_in_sentence'][pairs['word_index'][0]]) == {'0'}
    assert set(table['idx_in_sentence'][pairs['word_index'][1]]) == {'1'}
    assert set(table['bin_head'][pairs['word_head_pos'][0]]) == {'0'}
    assert set(table['face_num'][pairs['face_num'][0]]) == {'1.0', '2.0'}
    assert set(table['face_num'][pairs['face_num'][1]]) == {'0.0'}


@pytest.mark.parametrize('task', ['face_num', 'word_index', 'word_head_pos', 'word_gap'])
def test_a_word_of_which_something_is_not_known_is_in_no_class(task: str) -> None:
    """Nor does a word without a sentence follow another one in it."""
    table = words()
    for name in ('face_num', 'idx_in_sentence', 'bin_head', 'sentence'):
        table[name] = table[name].astype('<U9')
        table[name][40:60] = 'nan'
    assert not {*range(40, 60)} & {*np.concatenate(neuroprobe.classes(task, table, 0)).tolist()}


def test_as_many_of_either_class_are_drawn_as_numpy_draws_them() -> None:
    """With one generator for both classes, the first one first; at most 1,750 each."""
    pair = np.arange(5000), 10 * np.arange(2000)
    one, other = neuroprobe.drawn(pair)
    rng = np.random.RandomState(42)
    for found, rows in ((one, pair[0]), (other, pair[1])):
        np.testing.assert_array_equal(found, np.sort(rng.choice(rows, size=1750, replace=False)))
    assert one[:3].tolist() == [1, 3, 4] or len(set(one.tolist())) == 1750
    assert [len(rows) for rows in neuroprobe.drawn((np.arange(5), np.arange(9)))] == [5, 5]


def test_windows_alternate_and_their_order_tells_halves_and_quarters() -> None:
    """KFold without shuffling, and the first half of what it tests, as the published splits have them."""
    table = words()
    start, silent = table['start'].astype(float) + 3, np.arange(5.0, 12.0)
    found = {k: np.array(v) for k, v in neuroprobe.events(table, start, silent).items()}
    mine = found['type'] == 'Onset'
    one, other = neuroprobe.drawn(neuroprobe.classes('onset', table, len(silent)))
    assert len(one) == 7
    onset, label = found['onset'][mine], found['label'][mine]
    np.testing.assert_array_equal(onset[0::2], start[one])
    np.testing.assert_array_equal(onset[1::2], silent[other])
    assert label.tolist() == ['1', '0'] * 7 and set(found['duration']) == {1.0}
    assert found['half'][mine].tolist() == ['1'] * 7 + ['2'] * 7
    assert found['quarter'][mine].tolist() == ['1'] * 3 + ['2'] * 4 + ['3'] * 3 + ['4'] * 4
    assert set(found['type']) == {neuroprobe.event_type(task) for task in neuroprobe.TASKS}
