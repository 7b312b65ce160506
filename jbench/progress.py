"""What a person sees while work is under way, and how he stops it. Everything goes to stderr."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupted(Exception):
    """A signal asked to stop; what was done is saved, and a rerun goes on from there."""


EVERY = 10.0  # s between lines in a log
COUNT, BAR, WIDE = 20, 22, 80  # characters of count and time left; of bar and time so far, in terminals so wide


def say(text: str) -> None:
    """One line on stderr. Where its disk is full or its reader has left (Ctrl-C ends `tee` too), work goes on."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def shortened(what: str, note: str, room: int) -> str:
    """What is under way and how it stands, in at most `room` characters and whole words: what is in brackets goes
    first, then the dataset (`p3/SimulatedP3`), the score, and words from the left. Seed and loss stay."""
    steps: tuple[Callable[[str, str], tuple[str, str]], ...] = (
        lambda w, n: (w, re.sub(r' *\(.*?\)', '', n)),
        lambda w, n: (re.sub(r'(\S)/\S+', r'\1', w), n),
        lambda w, n: (w, n.partition(' valid ')[0]),
    )
    for step in steps:
        if len(f'{what} {note}'.strip()) > room:
            what, note = step(what, note)
    words = f'{what} {note}'.split()
    while len(' '.join(words)) > room and len(words) > 1:
        words = words[1:]
    return ' '.join(words)


class Progress:
    """A live bar for each piece of work on a terminal; in a log, a line now and then and one at each end.

    Of several processes the first one shows them; what another says begins with `who`.
    """

    def __init__(self, who: str = '') -> None:
        self._who = who
        self._bars: Any = None
        self._room = 0  # characters beside the bar
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, float] = {}
        self._said: set[str] = set()

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and not self._who:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bars
            from rich.table import Column

            console, whole = Console(stderr=True), Column(no_wrap=True)
            self._room = console.width - COUNT
            columns = [MofNCompleteColumn(table_column=whole), TimeRemainingColumn(compact=True), TextColumn('left')]
            if console.width >= WIDE:
                columns = [columns[0], BarColumn(bar_width=12), TimeElapsedColumn(), *columns[1:]]
                self._room -= BAR
            text = TextColumn('{task.description}', table_column=Column(no_wrap=True, ratio=1))
            self._bars = Bars(*columns, text, console=console, expand=True)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """One line of text, above the bars."""
        if self._bars is not None:
            self._bars.console.print(text, highlight=False, markup=False)
        else:
            say(self._who + text)

    def say_once(self, text: str) -> None:
        """As `say`, for what every cell of a run would say alike."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    def update(self, what: str, done: int, total: int, note: str = '') -> None:
        """`done` of `total` of a piece of work."""
        if self._bars is not None:
            text = shortened(what, note, self._room)
            if what not in self._tasks:
                self._tasks[what] = self._bars.add_task(text, total=total)
            self._bars.update(self._tasks[what], completed=done, total=total, description=text)
            if done >= total:
                self.finish(what, f'{done}/{total} {note}'.rstrip())
            return
        if self._who:
            return
        now = time.monotonic()
        if done >= total:
            self._last.setdefault(what, now)
            self.finish(what, f'{done}/{total} {note}'.rstrip())
        elif what not in self._last or now - self._last[what] > EVERY:
            self._last[what] = now
            self.say(f'{what}: {done}/{total} {note}'.rstrip() if total > 1 else f'{what} ...')

    def finish(self, what: str, text: str) -> None:
        """The end of a piece of work, in words; said once."""
        if self._bars is None:
            if self._last.pop(what, None) is not None:
                self.say(f'{what}: {text}')
        elif what in self._tasks:
            self._bars.remove_task(self._tasks.pop(what))
            self.say(f'{what}: {text}')


class StopSignal:
    """Ctrl-C, SIGTERM or SIGHUP (a terminal that closes) sets a flag that the work looks at; a second Ctrl-C ends the
    process at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignal:
        if threading.current_thread() is threading.main_thread():  # elsewhere Python takes no signals
            ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # by nohup: it stays so
            ends = (signal.SIGINT, signal.SIGTERM, *(() if ignored else (signal.SIGHUP,)))
            self._before = {n: signal.signal(n, self._handle) for n in ends}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        return self.asked

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            if number == signal.SIGINT:
                os._exit(130)
            return  # a parent that is killed may say so more than once
        self.asked = True
        with contextlib.suppress(OSError):  # as in `say`
            os.write(2, b'\nstopping (Ctrl-C again: at once, without a save) ...\n')
