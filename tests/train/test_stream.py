"""The rule of streams: windows alone, in order, state reset with each stream, nothing of what comes later."""

from __future__ import annotations

import copy
from typing import Any

import jax
import numpy as np
import pytest

from jbench.data.load.streams import Places, places
from jbench.spec.challenges import Stream
from jbench.spec.errors import RequestError
from jbench.train import stream


def lie(streams: str, records: str = '', onsets: list[float] | None = None) -> Places:
    """Places of windows: a letter a window."""
    n = len(streams)
    record = np.array([ord(c) for c in records or streams])
    return Places(np.array(list(streams)), record, np.array(onsets or np.arange(n), float), np.array(list(streams)))


class Running:
    """Answers the mean of all that it saw in its stream; it writes down what it was given."""

    def __init__(self) -> None:
        self.seen: list[float] = []
        self.resets = 0

    def reset_state(self) -> None:
        self.resets += 1

    def predict(self, x: np.ndarray) -> np.ndarray:
        assert x.shape == (1, 2, 3)
        self.seen.append(float(x.mean()))
        return np.array([np.mean(self.seen), self.resets])[None]


def windows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 1, 2, 3))


def test_state_lasts_as_long_as_its_stream() -> None:
    x, model = windows(5), Running()
    found = stream.answers(model, x.__getitem__, lie('aabbb'))
    level = x.mean((1, 2, 3))
    running = [level[0], level[:2].mean(), level[2], level[2:4].mean(), level[2:].mean()]
    np.testing.assert_allclose(found[:, 0], running)
    assert (found[:, 1] == 1).all() and model.seen == [] and model.resets == 0, 'the model itself is never asked'


def test_a_stream_may_span_recordings() -> None:
    found = stream.answers(Running(), windows(4).__getitem__, lie('aaaa', 'rrss', [3, 5, 0, 2]))
    assert found.shape == (4, 2)


def test_the_future_changes_nothing() -> None:
    """Other windows from some time on: every answer before it stays the same, bit by bit; no window is read early."""
    x, places_ = windows(8), lie('aaaabbbb')
    for k in range(8):
        other, read = x.copy(), []
        other[k:] = windows(8 - k, seed=k + 1) * 100
        before = stream.answers(Running(), x.__getitem__, places_)
        after = stream.answers(Running(), other.__getitem__, places_)
        np.testing.assert_array_equal(before[:k], after[:k])
        assert (before[k] != after[k]).any()

        def give(number: int, read: list = read, values: np.ndarray = other) -> np.ndarray:
            assert number == len(read), 'windows are read one by one'
            read.append(number)
            return values[number]

        stream.answers(Running(), give, places_)
        assert len(read) == 8


@pytest.mark.parametrize(
    ('lies', 'says'),
    [
        (lie('aba'), 'another stream interrupts one'),
        (lie('aaaa', 'rsrs'), 'another recording interrupts one'),
        (lie('aaa', 'rrr', [0, 10, 5]), 'in the order of their onsets'),
    ],
)
def test_windows_out_of_order_are_refused(lies: Places, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        stream.answers(Running(), windows(4).__getitem__, lies)


def test_an_answer_of_another_length_is_refused() -> None:
    with pytest.raises(RequestError, match=r'has the shape \[2\]; expected \[1'):
        stream.answers(None, windows(2).__getitem__, lie('aa'), lambda m, x: np.zeros(2))
    with pytest.raises(RequestError, match=r'has the shape \[\]'):
        stream.answers(None, windows(2).__getitem__, lie('aa'), lambda m, x: np.float64(1))


def test_a_model_that_cannot_be_copied_is_refused() -> None:
    class Fixed(Running):
        def __deepcopy__(self, memo: dict) -> Fixed:
            raise copy.Error('a handle')

    with pytest.raises(RequestError, match=r'survive copy\.deepcopy: a handle'):
        stream.answers(Fixed(), windows(1).__getitem__, lie('a'))


def running_mean() -> Any:
    seen: list[float] = []
    total = np.zeros(1)

    def level(x: np.ndarray) -> float:
        total[0] += x.mean()
        return float(total[0])

    def predict(x: np.ndarray, counted: list[int] = []) -> np.ndarray:  # noqa: B006
        counted.append(1)
        seen.append(level(x))
        return np.array([[seen[-1] / len(seen), len(counted), jax.jit(abs)(1)]])

    return predict


def test_a_closure_keeps_nothing_from_stream_to_stream() -> None:
    """Nor do the functions, the defaults and the numbers that it encloses; the closure itself is never asked."""
    x, predict = windows(5), running_mean()
    for _ in range(2):
        found = stream.answers(predict, x.__getitem__, lie('aabbb'), lambda m, one: m(one))
        level = x.mean((1, 2, 3))
        running = [level[0], level[:2].mean(), level[2], level[2:4].mean(), level[2:].mean()]
        np.testing.assert_allclose(found[:, 0], running)
        assert found[:, 1].tolist() == [1, 2, 1, 2, 3]


def test_a_closure_may_enclose_modules_and_itself() -> None:
    import math

    compiled = jax.jit(lambda x: x + 1)

    def countdown(n: int) -> float:
        return countdown(n - 1) if n else math.pi + float(compiled(1.0))

    found = stream.answers(countdown, lambda k: k, lie('aab'), lambda m, n: np.array([m(n)]))
    np.testing.assert_allclose(found, np.pi + 2)


# ---- places ----


def test_places_are_those_of_the_triggers() -> None:
    events = {
        'recording': np.array([0, 0, 1, 2]),
        'subject': np.array(['p', 'p', 'p', 'q']),
        'session': np.array(['1', '1', '1', '1']),
        'interface': np.array(['Graz', 'Graz', 'BrainHero', 'Graz']),
    }
    table = {'event': np.array([0, 1, 2, 3]), 'onset': np.array([1.0, 9.0, 1.0, 2.0])}
    found = places(events, table, Stream(by=('subject', 'session'), context='interface'))
    assert found.stream.tolist() == ['p/1', 'p/1', 'p/1', 'q/1']
    assert found.cell.tolist() == ['p/1/Graz', 'p/1/Graz', 'p/1/BrainHero', 'q/1/Graz']
    assert found.record.tolist() == [0, 0, 1, 2]
    without = places(events, table, Stream(by=('subject', 'session'), context='weather'))
    assert without.cell.tolist() == without.stream.tolist(), 'one context where there is no such column'
    assert places(events, table, Stream()).cell.tolist() == ['0', '0', '1', '2']
    with pytest.raises(RequestError, match='unknown column'):
        places(events, table, Stream(by=('weather',)))
    back = table | {'onset': np.array([9.0, 1.0, 1.0, 2.0])}
    with pytest.raises(RequestError, match='order of their onsets'):
        places(events, back, Stream(by=('subject', 'session')), np.array([True, True, False, False]))
    places(
        events, back, Stream(by=('subject', 'session')), np.array([True, False, True, True])
    )  # those alone that are streamed
    assert found.of(np.array([3, 0])).onset.tolist() == [2.0, 1.0]
