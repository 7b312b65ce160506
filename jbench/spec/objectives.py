"""What is asked of recordings without labels: targets of pretraining."""

from __future__ import annotations

import typing
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Which moment of a film a window shows: its film and when in it, told by what others see at the same moment."""

    field: str = 'filepath'  # the film
    kind: typing.Literal['moment'] = 'moment'
    losses: typing.ClassVar = ('info_nce',)
    samplers: typing.ClassVar = ('moments',)


@dataclass(frozen=True, kw_only=True)
class Next:
    """Which window of the same recording comes next."""

    field: typing.ClassVar = 'the recording'  # not a column
    kind: typing.Literal['next'] = 'next'
    losses: typing.ClassVar = ('next_window',)
    samplers: typing.ClassVar = ('stretches',)


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """The samples of a window that are hidden from the network: patches in time, and whole channels."""

    field: typing.ClassVar = 'the recording'  # not a column
    kind: typing.Literal['hidden'] = 'hidden'
    losses: typing.ClassVar = ('reconstruction',)
    samplers: typing.ClassVar = ('shuffle',)


OBJECTIVES = ('moment', 'next', 'hidden')  # kinds of target that need no labels
