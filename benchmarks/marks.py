"""Tables in pages of docs/, between marks: what a benchmark writes there, and nobody by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from jbench.spec.errors import RequestError


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    return '\n'.join('| ' + ' | '.join(cells) + ' |' for cells in (head, ('---',) * len(head), *lines))


def write(page: Path, of: str, made: Mapping[str, str]) -> None:
    """Put texts between their marks in a page.

    Args:
        page: a file of Markdown.
        of: whose marks they are, as `accelerator`.
        made: the texts, by name.

    Raises: RequestError where a page has no such marks.
    """
    try:
        text = page.read_text(encoding='utf-8')
    except OSError as error:
        raise RequestError(f'{page}: cannot read this page: {error.strerror or error}') from error
    for name, new in made.items():
        begin, end = f'<!-- {of}: {name} -->', f'<!-- {of}: end of {name} -->'
        if text.count(begin) != 1 or text.count(end) != 1:
            raise RequestError(f'{page}: expected the marks {begin} and {end}, once each')
        between = re.escape(begin) + '.*?' + re.escape(end)
        text = re.sub(between, lambda _, b=begin, n=new, e=end: f'{b}\n{n}\n{e}', text, flags=re.S)
    page.write_text(text, encoding='utf-8')
