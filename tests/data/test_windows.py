"""Where windows lie and what they hold: rounding, padding, strides, baselines."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jbench.data import windows
from jbench.spec.errors import RequestError
from jbench.spec.task import Classes, Trim, Value, Where, Window

EVENTS = {
    'onset': np.array([0.0, 1.0, 2.0, 2.0]),
    'duration': np.array([10.0, 0.5, 0.5, 0.5]),
    'type': np.array(['Eeg', 'Stimulus', 'Stimulus', 'Action']),
    'label': np.array(['', 'rest', 'imagery_left', 'imagery_right']),
}


def ramp(n: int, channels: int = 2) -> np.ndarray:
    """Samples 1, 2, 3, ... so that each tells its place; channel c is offset by 1000 c."""
    return (np.arange(1, n + 1) + 1000.0 * np.arange(channels)[:, None]).astype(np.float32)


def test_triggers_are_the_events_of_one_type() -> None:
    assert windows.triggers(EVENTS, Window(trigger='Stimulus'), Classes(field='label')) == [1, 2]
    assert windows.triggers(EVENTS, Window(trigger='Eeg'), Value()) == [0]
    assert windows.triggers(EVENTS, Window(trigger='Word'), Classes(field='label')) == []


def test_a_prefix_keeps_some_labels() -> None:
    assert windows.triggers(EVENTS, Window(), Classes(field='label', prefix='imagery_')) == [2]
    with pytest.raises(RequestError, match="unknown column of the event table 'lable'; did you mean 'label'"):
        windows.triggers(EVENTS, Window(), Classes(field='lable', prefix='imagery_'))


def test_two_events_of_one_type_at_one_time_are_refused() -> None:
    events = {**EVENTS, 'onset': np.array([0.0, 2.0, 2.0, 2.0])}
    with pytest.raises(RequestError, match=r'two Stimulus events at 2\.000 s'):
        windows.triggers(events, Window(), Classes(field='label', prefix='imagery_'))
    assert windows.triggers(events, Window(trigger='Action'), Classes(field='label')) == [3]


def test_an_event_that_began_before_its_recording_makes_no_window() -> None:
    events = {**EVENTS, 'onset': np.array([0.0, -0.2, 2.0, 2.0])}
    assert windows.triggers(events, Window(), Classes(field='label')) == [2]


FACTS = {
    'onset': np.arange(5.0),
    'duration': np.array([170.0, 180.0, 200.5, 179.9, 300.0]),
    'type': np.array(['Eeg', 'Eeg', 'Eeg', 'Stimulus', 'Stimulus']),
    'task': np.array(['rest', 'film', 'rest', '', 'rest']),
    'age': np.array([7.0, np.nan, 10.0, 9.5, 8.0]),
    'grade': np.array(['2', '', '10', '9.5', '-1']),
}


@pytest.mark.parametrize(
    ('where', 'want'),
    [
        (Where(field='task', values=('rest',)), [0, 2, 4]),
        (Where(field='task', values=('rest', 'film')), [0, 1, 2, 4]),
        (Where(field='task', values=('rest',), keep=False), [1, 3]),
        (Where(field='task'), [0, 1, 2, 4]),  # any value
        (Where(field='task', keep=False), [3]),
        (Where(field='age'), [0, 2, 3, 4]),
        (Where(field='age', values=('7', '9.5')), [0, 3]),  # 7.0 as text is '7', as everywhere
        (Where(field='age', least=8.0), [2, 3, 4]),
        (Where(field='age', least=8.0, keep=False), [0, 1]),
        (Where(field='grade', least=9.0), [2, 3]),  # numbers, though the column is text
        (Where(field='duration', least=180.0), [1, 2, 4]),
        (Where(field='task', values=('rest',), least=1.0), None),
    ],
)
def test_a_condition_names_events(where: Where, want: list[int] | None) -> None:
    if want is None:
        with pytest.raises(RequestError, match=r"events with 'task' of at least 1: could not .*'rest'"):
            windows.fitting(FACTS, where)
    else:
        assert np.flatnonzero(windows.fitting(FACTS, where)).tolist() == want


def test_a_condition_on_a_column_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(RequestError, match="unknown column of the event table 'aeg'; did you mean 'age'"):
        windows.fitting(FACTS, Where(field='aeg'))


def test_triggers_that_do_not_fit_every_condition_leave_the_table_and_nothing_else_does() -> None:
    asked = Window(trigger='Eeg', where=(Where(field='task', values=('rest',)), Where(field='duration', least=180.0)))
    table = windows.chosen(FACTS, asked)
    assert table['onset'].tolist() == [2.0, 3.0, 4.0] and set(table) == set(FACTS)
    assert windows.triggers(table, asked, Value()) == [0]
    np.testing.assert_array_equal(windows.chosen(FACTS, Window())['onset'], FACTS['onset'])


def night(*stages: tuple[str, float]) -> dict[str, np.ndarray]:
    """Sleep stages one after the other: (stage, seconds), and a recording that is longer."""
    seconds = np.array([s for _, s in stages])
    return {
        'onset': np.concatenate([[0.0], seconds.cumsum() - seconds]),
        'duration': np.concatenate([[seconds.sum() + 9], seconds]),
        'type': np.array(['Eeg'] + ['SleepStage'] * len(stages)),
        'stage': np.array(['', *(s for s, _ in stages)]),
    }


OLD = Trim(every=False)  # wanted values are those of NeuralBench's CropSleepRecordings on the same nights


@pytest.mark.parametrize(
    ('stages', 'trim', 'want'),
    [  # (onset, duration) of what was cut, None of what is left out
        ([('W', 9000), ('N1', 60), ('W', 90), ('N2', 30), ('W', 8000)], Trim(), {0: (7200, 1800), 4: (9180, 1800)}),
        ([('W', 9000), ('N1', 60), ('W', 8000)], OLD, {0: (7200, 1800), 2: (9060, 1800)}),
        ([('N1', 60), ('', 2000), ('W', 4000)], OLD, {2: (2060, 1800)}),
        ([('N2', 60), ('W', 9000), ('W', 700)], OLD, {1: (60, 1800)}),  # the last event stays
        ([('W', 4000), ('', 2000), ('N1', 60)], OLD, {0: (2200, 1800)}),  # measured from its own end
        ([('W', 4000), ('', 2000), ('N1', 60)], Trim(), {0: None}),
        ([('W', 9000), ('N1', 60), ('W', 8000)], Trim(longest=600.0), {0: (8400, 600), 2: (9060, 600)}),
        ([('W', 900), ('N1', 60), ('W', 1800)], Trim(), {}),  # short enough
        ([('W', 9000)], Trim(), {}),  # nobody slept
        ([('N1', 60), ('W', 9000), ('N2', 60)], Trim(), {}),  # wake inside of a night stays
        ([('W', 3000), ('W', 600), ('N2', 60), ('W', 9000)], Trim(), {0: (1800, 1200), 3: (3660, 1800)}),
        ([('W', 3000), ('W', 1790), ('N2', 60)], Trim(), {0: None}),  # ten seconds are no window
        ([('W', 30), ('W', 9000), ('N2', 60), ('W', 9000)], OLD, {1: (7230, 1800), 3: (9090, 1800)}),
        ([*[('W', 30)] * 62, ('N2', 60), *[('W', 30)] * 61], Trim(), {0: None, 1: None, 123: None}),
        ([*[('W', 30)] * 99, ('N2', 60), *[('W', 30)] * 99], OLD, {}),  # scored by epochs: nothing, as published
    ],
)
def test_long_events_at_the_edges_are_trimmed(stages: list, trim: Trim, want: dict[int, tuple[float, float]]) -> None:
    """As published, only the neighbours of the first and the last event of another value."""
    before = night(*stages) | {'number': np.arange(len(stages) + 1) - 1}
    before = {k: v[(before['stage'] != '') | (before['type'] == 'Eeg')] for k, v in before.items()}  # '': not scored
    untouched = {k: v.copy() for k, v in before.items()}
    after = windows.chosen(before, Window(trigger='SleepStage', duration=30.0, stride=30.0, trim=trim))
    left = dict(zip(after['number'].tolist(), zip(after['onset'], after['duration'], strict=True), strict=True))
    rows = zip(before['number'].tolist(), before['onset'], before['duration'], strict=True)
    assert {k: left.get(k) for k, *was in rows if left.get(k) != tuple(was)} == want
    for k in before:
        np.testing.assert_array_equal(before[k], untouched[k])


@pytest.mark.parametrize(
    ('duration', 'window', 'want'),
    [
        (9.0, Window(start=0.5, duration=2.0), [10.5]),  # one window an event, however long it is
        (0.0, Window(start=-0.5, duration=2.0), [9.5]),
        (10.0, Window(duration=5.0, stride=5.0), [10, 15]),
        (14.9, Window(duration=5.0, stride=5.0), [10, 15]),
        (14.9, Window(duration=5.0, stride=5.0, keep_incomplete=True), [10, 15, 20]),
        (15.0, Window(duration=5.0, stride=5.0, keep_incomplete=True), [10, 15, 20]),
        (10.0, Window(duration=5.0, stride=2.5), [10, 12.5, 15]),
        (10.0, Window(duration=5.0, stride=2.5, keep_incomplete=True), [10, 12.5, 15, 17.5]),
        (10.0, Window(start=1.0, duration=5.0, stride=2.0), [11, 13, 15]),  # the block ends with the event
        (10.0, Window(start=-1.0, duration=5.0, stride=5.0), [9, 14]),
        (3.0, Window(duration=5.0, stride=5.0, keep_incomplete=True), [10]),
        (34.5, Window(duration=5.0, stride=5.0, last=30.0), [14.5, 19.5, 24.5, 29.5, 34.5, 39.5]),
        (30.0, Window(duration=15.0, stride=15.0, last=30.0), [10, 25]),
        (12.0, Window(duration=5.0, stride=5.0, last=30.0), [10, 15]),  # a shorter event: all of it, and no more
        (34.0, Window(start=-0.5, duration=1.0, last=30.0), [13.5]),
    ],
)
def test_window_starts(duration: float, window: Window, want: list[float]) -> None:
    assert windows.starts(10.0, duration, window) == pytest.approx(want)


def test_a_block_of_whole_windows_is_full_in_floats_too() -> None:
    assert (0.3 - 0.1) / 0.1 < 2
    assert windows.starts(0.0, 0.3, Window(duration=0.1, stride=0.1)) == pytest.approx([0, 0.1, 0.2])
    assert len(windows.starts(0.0, 0.3, Window(duration=0.1, stride=0.1, keep_incomplete=True))) == 3


@pytest.mark.parametrize(
    'window',
    [
        Window(duration=5.0, stride=5.0),
        Window(start=5.0, duration=1.0, stride=1.0, keep_incomplete=True),
    ],
)
def test_an_event_shorter_than_its_window_is_refused(window: Window) -> None:
    with pytest.raises(RequestError, match=r'an event of 4\.90 s, shorter than one window'):
        windows.starts(0.0, 4.9, window)
    with pytest.raises(RequestError, match=r'an event of 4\.90 s, shorter than one window'):
        windows.starts(0.0, 60.0, dataclasses.replace(window, last=4.9))


@pytest.mark.parametrize(
    ('duration', 'sfreq', 'n'),
    [
        (4.0, 120.0, 480),
        (0.5, 1.0, 1),
        (0.5, 5.0, 2),
        (0.7, 5.0, 4),
        (0.3, 5.0, 2),
        (1.0, 128.5, 128),
        (0.001, 10.0, 1),
    ],
)
def test_samples_of_a_window_round_half_to_even(duration: float, sfreq: float, n: int) -> None:
    assert windows.n_samples(duration, sfreq) == n
    assert windows.cut(ramp(2000), sfreq, 3.0, duration).shape == (2, n)
    assert np.all(windows.cut(ramp(2000), sfreq, 3.0, duration) > 0)


@pytest.mark.parametrize(('start', 'first'), [(0.25, 2), (0.35, 4), (0.45, 4), (0.55, 6), (0.24, 2), (0.26, 3)])
def test_the_first_sample_rounds_half_to_even(start: float, first: int) -> None:
    assert windows.cut(ramp(100), 10.0, start, 1.0)[0, 0] == first + 1


@given(st.integers(-3000, 9000), st.integers(1, 4000), st.sampled_from([100.0, 120.0, 128.0, 250.0, 256.0]))
def test_every_sample_is_that_of_its_time_or_zero_outside(start_ms: int, ms: int, sfreq: float) -> None:
    """Independent of the formula, in exact numbers; at the recording's edge the rounding may cost a sample."""
    n = round(6 * sfreq)
    out = windows.cut(ramp(n), sfreq, start_ms / 1000, ms / 1000)
    first, length = Fraction(start_ms, 1000) * Fraction(sfreq), Fraction(ms, 1000) * Fraction(sfreq)
    inside = first >= 0 and first + length <= n
    for j, value in enumerate(out[0]):
        place = first + j  # in samples of the recording
        if value:
            assert abs(value - 1 - place) <= (1 if inside else Fraction(3, 2))  # less than half a sample is still one
        else:
            assert not inside and (place < 1 or place > n - 2 or j == out.shape[1] - 1)
    if inside:
        assert np.all(np.diff(out[0]) == 1)
        assert abs(out[0, 0] - 1 - first) <= Fraction(1, 2) or out[0, -1] == n
    np.testing.assert_array_equal(out[1], np.where(out[0] > 0, out[0] + 1000, 0))


def test_what_lies_outside_the_recording_is_zero() -> None:
    x = ramp(100, 1)
    np.testing.assert_array_equal(windows.cut(x, 10.0, -0.5, 1.0)[0], [0, 0, 0, 0, 0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(windows.cut(x, 10.0, 9.5, 1.0)[0], [96, 97, 98, 99, 100, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(windows.cut(x, 10.0, -1.0, 12.0)[0], [0] * 10 + list(range(1, 101)) + [0] * 10)
    for start in (-5.0, -1.0, 10.0, 20.0):
        np.testing.assert_array_equal(windows.cut(x, 10.0, start, 1.0), np.zeros((1, 10)))


def test_a_start_that_rounds_past_the_end_is_shifted_left() -> None:
    assert list(windows.cut(ramp(20, 1), 10.0, 1.96, 0.5)[0]) == [20, 0, 0, 0, 0]  # 19.6 -> 20, one sample left
    assert list(windows.cut(ramp(20, 1), 10.0, 1.05, 0.95)[0]) == list(range(11, 21))  # 10.5 -> 10, 9.5 -> 10
    assert list(windows.cut(ramp(20, 1), 10.0, 1.65, 0.35)[0]) == [17, 18, 19, 20]  # 16.5 -> 16, 3.5 -> 4


def test_baseline_counts_from_the_window_and_may_lie_outside_of_it() -> None:
    x = ramp(100).astype(np.float64) ** 2
    x = x.astype(np.float32)
    window = Window(duration=1.0)
    plain = np.stack(list(windows.windows(x, 10.0, [2.0, 5.0], window, None)))
    np.testing.assert_array_equal(plain[1], x[:, 50:60])
    inner = np.stack(list(windows.windows(x, 10.0, [2.0, 5.0], window, (0.0, 0.2))))
    np.testing.assert_allclose(inner, plain - np.stack([x[:, 20:22], x[:, 50:52]]).mean(2, keepdims=True), rtol=1e-5)
    (before,) = windows.windows(x, 10.0, [2.0], window, (-1.0, 0.0))
    np.testing.assert_allclose(before, x[:, 20:30] - x[:, 10:20].mean(1, keepdims=True), rtol=1e-5)
    assert list(windows.windows(x, 10.0, [], window, (0.0, 0.2))) == []


@pytest.mark.parametrize(
    ('start', 'baseline', 'value'),  # a constant of 5: what is left of it in the recording (10 s at 10 Hz)
    [
        (-0.5, (0.0, 1.0), 0.0),  # half of the baseline lies before the recording
        (-0.5, (0.0, 0.5), 5.0),  # all of it: nothing is subtracted, as published
        (-0.2, (0.0, 0.4), 0.0),
        (9.5, (0.0, 0.2), 0.0),  # the window runs off its end
        (9.5, (-0.2, 1.0), 0.0),
        (9.5, (0.6, 0.9), 5.0),
        (-0.2, (-1.0, 0.3), 0.0),  # the baseline begins before the window
    ],
)
def test_what_lies_outside_the_recording_is_no_part_of_the_baseline(start, baseline, value) -> None:
    x = np.full((2, 100), 5.0, np.float32)
    (out,) = windows.windows(x, 10.0, [start], Window(duration=1.0), baseline)
    inside = windows.cut(x, 10.0, start, 1.0) != 0
    np.testing.assert_allclose(out, np.where(inside, value, 0), atol=1e-6)  # what misses stays zero
