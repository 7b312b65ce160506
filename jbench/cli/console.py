"""What tables are printed on."""

from __future__ import annotations

from rich.console import Console


class Output(Console):
    """stdout."""

    def on_broken_pipe(self) -> None:
        """The reader has left, as `head` does: rich would end the process with status 1."""
        raise BrokenPipeError
