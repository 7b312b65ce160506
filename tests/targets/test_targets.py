"""Targets: what overlaps a window, class order, and the arrays that models learn from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.data.load.sampling import class_weights
from jbench.events import as_text, overlapping, present, unique_sorted
from jbench.metrics.keystrokes import NONE
from jbench.spec.encoders import split_name
from jbench.spec.errors import RequestError
from jbench.spec.task import Classes, Embedding, Keystrokes, Labels, StateClasses, Target, Value
from jbench.targets import collect, encode, scaling

EVENTS = {
    'recording': np.zeros(6, int),
    'onset': np.array([0.0, 2.0, 3.0, 4.0, 4.0, 9.0]),
    'duration': np.array([20.0, 2.0, 2.0, 0.0, 1.0, 0.0]),
    'type': np.array(['Eeg', 'Artifact', 'Artifact', 'Stimulus', 'Artifact', 'Stimulus']),
    'state': np.array(['', 'musc', 'eyem', '', 'musc', '']),
    'code': np.array(['', '', '', '10', '', '2']),
    'age': np.array([31.5, np.nan, np.nan, np.nan, np.nan, np.nan]),
    'n2': np.full(6, 12.0),
    'key': np.array(['', '', 'b', 'a', '', 'c']),
}
LABELS = Labels(event='Artifact')
KEYS = Keystrokes(event='Stimulus', core=(1.0, 2.0))


def test_overlap_is_strict_at_both_ends() -> None:
    assert overlapping(EVENTS, 'Artifact', 0.0, 2.0).tolist() == []  # the window stops where event 1 starts
    assert overlapping(EVENTS, 'Artifact', 0.0, 2.001).tolist() == [1]
    assert overlapping(EVENTS, 'Artifact', 4.0, 1.0).tolist() == [2, 4]  # event 1 stops where the window starts
    assert overlapping(EVENTS, 'Stimulus', 3.0, 2.0).tolist() == [3]  # an instant inside
    assert overlapping(EVENTS, 'Stimulus', 4.0, 2.0).tolist() == []  # an instant at the start stops there


@settings(deadline=None)
@given(st.integers(-8, 24), st.integers(1, 12))
def test_overlap_is_the_stated_rule(onset: int, duration: int) -> None:
    start, stop = onset / 2, (onset + duration) / 2
    rule = [
        i
        for i in range(6)
        if EVENTS['type'][i] == 'Artifact'
        and EVENTS['onset'][i] < stop
        and EVENTS['onset'][i] + EVENTS['duration'][i] > start
    ]
    assert overlapping(EVENTS, 'Artifact', start, duration / 2).tolist() == rule


@pytest.mark.parametrize(
    ('target', 'row', 'onset', 'duration', 'raw'),
    [
        (Classes(), 3, 4.0, 1.0, '10'),
        (Classes(), 5, 9.0, 1.0, '2'),
        (LABELS, 0, 3.0, 2.0, ['eyem', 'musc']),
        (LABELS, 0, 10.0, 2.0, []),
        (StateClasses(event='Artifact'), 0, 3.5, 2.0, ['musc', 'eyem', 'musc']),
        (StateClasses(event='Artifact'), 0, 6.0, 2.0, []),
        (Value(), 0, 5.0, 2.0, 31.5),
        (Value(field='n2', until=True, clip=(0, 600)), 0, 5.0, 2.0, 5.0),
        (Value(field='n2', until=True, clip=(0, 600)), 0, 11.0, 2.0, -1.0),
        (KEYS, 0, 3.0, 5.0, ['a']),  # [4, 5): from the start on, the end left out
        (replace(KEYS, core=(0.0, 6.5)), 0, 3.0, 7.0, ['a', 'c']),  # 'b' is of another type
        (replace(KEYS, core=(0.0, 1.0)), 0, 14.0, 5.0, []),
    ],
)
def test_collect(target: Target, row: int, onset: float, duration: float, raw: Any) -> None:
    found = collect(target, EVENTS, row, onset, duration)
    assert found == raw
    assert json.loads(json.dumps(found)) == raw


def test_keystrokes_come_in_time_order_whatever_the_order_of_rows() -> None:
    events = {k: v[::-1] for k, v in EVENTS.items()}
    assert collect(replace(KEYS, core=(0.0, 9.0)), events, 5, 3.0, 9.0) == ['a', 'c']


def test_keys_that_are_held_into_the_core_count_as_published_where_one_begins_in_it() -> None:
    events = {
        'onset': np.array([0.0, 0.5, 0.9, 1.2, 1.9, 2.0]),
        'duration': np.array([9.0, 0.7, 0.1, 0.1, 0.5, 0.1]),  # b is let go as the core begins
        'type': np.array(['Emg', *['Stimulus'] * 5]),
        'code': np.array(['', *'abcde']),
    }
    held = replace(KEYS, field='code', held=True)
    assert collect(held, events, 0, 0.0, 3.0) == ['a', 'c', 'd']  # core: 1 to 2 s
    assert collect(replace(held, held=False), events, 0, 0.0, 3.0) == ['c', 'd']
    assert collect(held, events, 0, 1.0, 3.0) == ['d', 'e']  # d once more
    assert collect(replace(held, core=(1.3, 1.8)), events, 0, 0.0, 3.0) == []
    assert collect(replace(held, core=(0.95, 1.1)), events, 0, 0.0, 3.0) == []  # held into it, but none begins


def test_collect_refuses_a_trigger_without_label() -> None:
    with pytest.raises(RequestError, match="no 'code'"):
        collect(Classes(), EVENTS, 1, 0.0, 1.0)
    with pytest.raises(RequestError, match="no 'age'"):
        collect(Value(), EVENTS, 1, 0.0, 1.0)
    with pytest.raises(RequestError, match="did you mean 'state'"):
        collect(Labels(event='Artifact', field='sate'), EVENTS, 1, 0.0, 1.0)
    with pytest.raises(RequestError, match="'musc', expected a number"):
        collect(Value(field='state'), EVENTS, 1, 0.0, 1.0)


def test_integers_sort_by_value_and_text_by_code_point() -> None:
    assert unique_sorted(['10', '9', '-1', '10']) == ('-1', '9', '10')
    assert unique_sorted(['10', '9', 'x']) == ('10', '9', 'x')
    assert unique_sorted(['b', 'B', 'a']) == ('B', 'a', 'b')
    assert unique_sorted(['1', '01']) == ('01', '1')
    assert unique_sorted([]) == ()


def test_a_code_reads_alike_in_every_kind_of_column() -> None:
    assert {as_text(v) for v in (3, np.int64(3), 3.0, np.float32(3), '3', np.str_('3'))} == {'3'}
    assert as_text(2.5) == '2.5' and as_text(float('nan')) == ''
    assert present(np.array([1.0, np.nan])).tolist() == [True, False]
    assert present(np.array(['a', ''])).tolist() == [True, False]
    assert present(np.array([0, 1])).all()


def test_encode_classes() -> None:
    y, classes, _ = encode(Classes(), ['10', '2', '9', '2'])
    assert classes == ('2', '9', '10') and y.tolist() == [2, 0, 1, 0] and y.dtype == np.int64
    y, classes, _ = encode(Classes(), ['b', 'a'], classes=('b', 'c', 'a'))
    assert classes == ('b', 'c', 'a') and y.tolist() == [0, 2]
    with pytest.raises(RequestError, match='available: a, b'):
        encode(Classes(), ['c'], classes=('a', 'b'))
    with pytest.raises(RequestError, match='no window'):
        encode(Classes(), [])


def test_encode_state_puts_no_event_last() -> None:
    raw = [[], ['seiz'], ['seiz', 'seiz'], []]
    y, classes, _ = encode(StateClasses(), raw)
    assert classes == ('seiz', '(none)') and y.tolist() == [1, 0, 0, 1]


def test_encode_state_takes_the_class_with_most_events_the_first_of_equals() -> None:
    y, classes, _ = encode(StateClasses(), [['b', 'a'], ['b', 'b', 'a'], [], ['a']])
    assert classes == ('a', 'b', '(none)') and y.tolist() == [0, 1, 2, 0]


def test_encode_labels() -> None:
    y, classes, _ = encode(LABELS, [['musc', 'eyem'], [], ['musc', 'musc']])
    assert classes == ('eyem', 'musc') and y.dtype == np.float32
    assert y.tolist() == [[1, 1], [0, 0], [0, 1]]


def test_encode_value_clips() -> None:
    target = Value(field='n2', until=True, clip=(0.0, 600.0))
    y, classes, _ = encode(target, [5.0, -1.0, 700.0])
    assert y.tolist() == [[5], [0], [600]] and y.dtype == np.float32 and classes == ()
    assert encode(Value(), [5.0, -1.0]).y.tolist() == [[5], [-1]]
    with pytest.raises(RequestError, match='1 of 2 windows'):
        encode(Value(), [1.0, float('nan')])


def test_encode_keystrokes() -> None:
    target = Keystrokes(length=4, blank=3)
    y, classes, _ = encode(target, [['b', 'a', 'b'], []])
    assert y.tolist() == [[1, 0, 1, NONE], [NONE] * 4] and y.dtype == np.int32
    assert classes == ('a', 'b', '', '(blank)'), 'as many as there are outputs'
    for raw, keys, words in (
        ([['a'] * 5], None, '5 keystrokes'),
        ([['z']], ('a',), "'z'"),
        ([list('abcd')], None, 'at most 3 keys'),
    ):
        with pytest.raises(RequestError, match=words):
            encode(target, raw, classes=keys)


def test_encode_classes_by_a_mapping() -> None:
    target = Classes(mapping=(('a', 1), ('b', 0), ('!', 2), ('?', 2)))
    y, classes, _ = encode(target, ['a', '?', 'b', '!'])
    assert y.tolist() == [1, 2, 0, 2] and y.dtype == np.int64 and classes == ('b', 'a', '!|?')
    with pytest.raises(RequestError, match="value of 'code' 'c'"):
        encode(target, ['c'])


SHOWN = {
    'onset': np.array([10.0, 10.0, 12.0, 20.0]),
    'duration': np.array([30.0, 1.0, 1.0, 1.0]),
    'type': np.array(['Audio', 'Word', 'Word', 'Word']),
    'filepath': np.array(['a.wav', '', '', 'b.jpg']),
    'text': np.array(['', 'so', 'it', 'so']),
}


def test_a_stimulus_is_that_of_the_trigger_or_of_the_event_that_overlaps() -> None:
    image = Embedding(encoder='dinov2_giant')
    assert collect(image, SHOWN, 3, 19.8, 1.0) == ['b.jpg', 'b.jpg']
    speech = Embedding(encoder='wav2vec2_xlsr', event='Audio', group='text')
    assert collect(speech, SHOWN, 2, 11.5, 3.0) == ['a.wav@1.500+3.000', 'it']
    assert collect(speech, SHOWN, 1, 9.5, 3.0) == ['a.wav@-0.500+3.000', 'so'], 'it may begin before the sound'
    assert split_name('a@b.wav@-0.500+3.000') == ('a@b.wav', (-0.5, 3.0))
    for target, row, onset, words in (
        (image, 1, 9.8, "no 'filepath'"),
        (speech, 1, 45.0, 'no Audio event'),
        (Embedding(encoder='gpt2', field='text', group='filepath'), 1, 10.0, "no 'filepath'"),
        (Embedding(encoder='gtp2', field='text', group='text'), 1, 10.0, "did you mean 'gpt2'"),
    ):
        with pytest.raises(RequestError, match=words):
            collect(target, SHOWN, row, onset, 1.0)


def test_encode_stimuli() -> None:
    y, names, groups = encode(Embedding(), [['b.jpg', 'g'], ['a.jpg', 'h'], ['b.jpg', 'g']])
    assert y.tolist() == [1, 0, 1] and y.dtype == np.int64 and names == ('a.jpg', 'b.jpg') and groups == ('g', 'h', 'g')


def test_scaling_is_by_mean_and_sd_of_what_occurs() -> None:
    y = np.random.default_rng(0).normal(5, 3, (50, 2))
    y[:, 1] = 7
    mean, sd = scaling(y)
    np.testing.assert_allclose(mean, y.mean(0))
    np.testing.assert_allclose(sd, [y[:, 0].std(), 1])
    counts = np.random.default_rng(1).integers(0, 4, 50)
    for found, expected in zip(scaling(y, counts), scaling(y[np.repeat(np.arange(50), counts)]), strict=True):
        np.testing.assert_allclose(found, expected)


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=80))
def test_class_weights_are_scikit_learns_balanced_rule(y: list[int]) -> None:
    from sklearn.utils.class_weight import compute_class_weight

    found = class_weights(np.array(y), 'classes', n_out=6)
    seen = np.unique(y)
    expected = np.ones(6)
    expected[seen] = compute_class_weight('balanced', classes=seen, y=y)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32


def test_label_weights_are_negatives_per_positive() -> None:
    y = np.array([[1, 0, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]])
    assert class_weights(y, 'labels').tolist() == [3.0, 1.0, 0.0]
    with pytest.raises(ValueError, match='no class weights'):
        class_weights(y, 'value')
    with pytest.raises(ValueError, match='no window'):
        class_weights(np.zeros(0, int), 'classes')
