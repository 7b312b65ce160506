"""Facts as plain text: values, folded `name: value` lines, tables, JSON. Imports nothing heavy."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jbench.spec.task import Task

WIDTH = 110  # characters, where lines fold
FORMULA = ('=', '+', '-', '@', '\t', '\r', '\n')  # a spreadsheet would compute a text that begins so


def listed(values: Iterable[Any]) -> str:
    """Values side by side; '-' for none."""
    return ', '.join(map(str, values)) or '-'


def shown(value: Any) -> str:
    """One plain value as a reader wants it: yes or no, '-' for nothing, `a = 1; b = 2` for a dictionary."""
    if isinstance(value, dict):
        return '; '.join(f'{k} = {shown(v)}' for k, v in value.items()) or '-'
    if isinstance(value, list | tuple):
        return listed(shown(v) for v in value)
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return '-' if value is None or value == '' else str(value)


def folded(facts: Mapping[str, Any]) -> str:
    """`name  value` lines; dictionaries and lists of dictionaries take one line an entry."""
    wide = max(len(name) for name in facts)
    out = []
    for name, value in facts.items():
        items = [shown(value)]
        if isinstance(value, dict) and value:
            items = [f'{k}: {shown(v)}' for k, v in value.items()]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            items = [shown(v) for v in value]
        for k, item in enumerate(items):
            out += _fold(item, WIDTH, f'{name if k == 0 else "":{wide}}  ')
    return '\n'.join(out)


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table in plain text; its last column folds."""
    texts = [list(heads), *([shown(v) for v in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(heads) - 1)]
    room = max(WIDTH, sum(widths) + 2 * len(widths) + 30)
    out = []
    for row in texts:
        out += _fold(row[-1], room, ''.join(f'{t:{w}}  ' for t, w in zip(row[:-1], widths, strict=True)))
    return '\n'.join(out)


def as_json(value: Any) -> str:
    """JSON text for other programs."""
    return json.dumps(value, indent=1, allow_nan=False)


def as_csv(lines: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Lines as CSV with a head, numbers to the last digit, texts as `harmless`; None is empty."""
    out = io.StringIO()
    names = list(dict.fromkeys(columns))
    writer = csv.DictWriter(out, names, lineterminator='\n')
    writer.writerow({name: harmless(name) for name in names})
    writer.writerows({k: harmless(v) if isinstance(v, str) else v for k, v in line.items()} for line in lines)
    return out.getvalue()


def harmless(text: str) -> str:
    """A text as a cell of CSV: an apostrophe before what a spreadsheet would compute, `?` for what UTF-8 lacks."""
    text = text.encode('utf-8', 'replace').decode()
    return f"'{text}" if text.startswith(FORMULA) else text


def unharmed(cell: str) -> str:
    """The text of a cell that `harmless` made."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def printable(text: str) -> str:
    """Text from a file without control characters (a terminal would obey them)."""
    return ''.join(c if c.isprintable() else '?' for c in text)


def windows(task: Task) -> str:
    """Where windows lie relative to their events, in words."""
    cut, low_high = task.window, task.signal.baseline
    last = '' if cut.last is None else f' for the last {cut.last:g} s of it'
    every = '' if cut.stride is None else f', and one every {cut.stride:g} s as long as it lasts'
    mean = (
        ''
        if low_high is None
        else (f'; the mean from {cut.start + low_high[0]:g} to {cut.start + low_high[1]:g} s is subtracted')
    )
    where = f'{cut.start:g} to {cut.start + cut.duration:g} s after the onset of an event of type {cut.trigger}'
    return f'{where}{every}{last}{mean}'


def _fold(text: str, width: int, head: str) -> list[str]:
    """Lines of `text` behind `head`, at most `width` wide unless a word is longer."""
    wrapped = textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=' ' * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped or [head.rstrip()]
