"""What tasks of challenges ask beyond others: windows as a stream, windows moved at random, angles of joints."""

from __future__ import annotations

import typing
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Test windows are answered one at a time, in the order of their recordings; what a model keeps from one window to
    the next ends with the stream. Scores of cells are means over streams (and over the values of `context` in them)."""

    by: tuple[str, ...] = ('recording',)  # columns of the event table: windows with equal values are one stream
    context: str = ''  # a column that divides a stream into cells, for scores alone; '', or absent: one cell a stream


@dataclass(frozen=True, kw_only=True)
class Jitter:
    """Windows lie somewhere in longer ones, by `span` s: each begins random.Random(seed).randint(0, span / step) steps
    later than without; a generator an event, used in the order of windows."""

    span: float = 2.0  # s
    step: float = 0.01  # s
    seed: int = 42


@dataclass(frozen=True, kw_only=True)
class Angles:
    """Angles of joints over the window, in radians: channels of the recording, learnt and scored at every sample.
    What answers at fewer steps holds each answer for its share of the window. A stretch of the recording in which an
    angle is not known makes no window."""

    field: str = 'joint'  # with which the names of these channels begin
    steps: int = 0  # that are kept of a window, means of equal parts of it (much less memory); 0: every sample
    answers: int = 50  # steps at which a model answers that knows no time
    kind: typing.Literal['angles'] = 'angles'
    losses: typing.ClassVar = ('absolute_error',)
    samplers: typing.ClassVar = ('shuffle',)
