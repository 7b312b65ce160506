"""Tables of the site: plain records, the columns of them that a page shows, and the same records as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

from jbench.report.site.markup import clean, escape, script_json, tag
from jbench.report.text import harmless

FIRST = 100  # rows that stand in the page itself; table.js draws those that are seen, from the data beside them
NARROW, WIDE, PHONE = 5, 30, 14  # characters of a column
Record = Mapping[str, Any]
Show = Callable[[Record], str]


class Column(NamedTuple):
    """What a page shows of each record."""

    key: str  # of the record: a text, or a number, by which it sorts
    title: str
    about: str = ''  # what it says, for the legend
    show: Show | None = None  # the text; None: the value itself
    link: Show | None = None  # where it leads, from the folder of the site; '' nowhere
    number: bool = False
    bar: bool = False  # a number of which 0 to 1 is drawn, with the record's `<key>_low` and `<key>_high`
    widest: int = WIDE  # characters; longer texts are cut off
    choose: str = ''  # label of a list above the table; texts with ', ' are several words
    start: str = ''  # what of that list is chosen at first
    up: bool = False  # a number of which less is better
    only: tuple[str, str] | None = None  # label of a box to tick, and the text that a row then must have
    spare: bool = False  # left out where no record has it, or all have an empty list


class Table(NamedTuple):
    """A table of a page."""

    name: str  # of its files: <page>.<name>.csv
    title: str
    columns: tuple[Column, ...]
    records: Sequence[Record]
    words: str = ''  # what it is, under the title
    search: bool = False  # a field to search texts in


def as_csv(records: Sequence[Record]) -> str:
    """Records as CSV, with the line of names; a text that a spreadsheet would compute has an apostrophe before it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    names = list(records[0]) if records else []
    writer.writerow(map(_cell_text, names))
    writer.writerows([_cell_text(record[name]) for name in names] for record in records)
    return out.getvalue()


def _cell_text(value: Any) -> Any:
    """A value as a cell of a CSV file."""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        value = ', '.join(map(str, value))
    return harmless(clean(value))


def as_json(records: Sequence[Record]) -> str:
    """Records as JSON: a list of objects, one a line."""
    lines = ',\n'.join(json.dumps(record, allow_nan=False) for record in records)
    return f'[\n{lines}\n]\n'


def html(table: Table, root: str, files: str) -> str:
    """A table with its first rows, its data for table.js, and links to its files.

    Args:
        table: what to show.
        root: the folder of the site as seen from the page: '' or '../'.
        files: address of its CSV and JSON without the ending, from the page.
    """
    name = escape(table.name)
    head = tag('h2', escape(table.title), id=f'{table.name}-title') + (
        tag('p', escape(table.words)) * bool(table.words)
    )
    if not table.records:
        return f'<section>{head}<p>Nothing here.</p></section>'
    there = [
        c for c in table.columns if not c.spare or any(record[c.key] not in (None, []) for record in table.records)
    ]
    columns = [_drawn(column, table.records, root) for column in there]
    heads = ''.join(
        tag('th', escape(c.column.title), scope='col', **{'class': 'number' * c.column.number}) for c in columns
    )
    widths = ''.join(f'<col style="--wide:{c.width + 3};--narrow:{_narrow(c)}">' for c in columns)
    rows = ''.join(f'<tr>{"".join(_cell(c, k) for c in columns)}</tr>' for k in range(min(FIRST, len(table.records))))
    sums = f'--wide:{sum(c.width + 3 for c in columns)};--narrow:{sum(map(_narrow, columns))}'
    links = f'<a href="{escape(files)}.csv" download>CSV</a> <a href="{escape(files)}.json" download>JSON</a>'
    about = ''.join(f'<dt>{escape(c.title)}</dt><dd>{escape(c.about)}</dd>' for c in there if c.about)
    data = {
        'n': len(table.records),
        'search': table.search,
        'columns': [_data(c, table.records) for c in columns],
    }
    return (
        f'<section class="table" id="{name}">{head}<div class="filters"></div>'
        f'<p class="under"><span class="count" role="status">{len(table.records):,} rows</span> {links}</p>'
        f'<div class="scroll" tabindex="0" role="region" aria-labelledby="{name}-title">'
        f'<table style="{sums}"><colgroup>{widths}</colgroup><thead><tr>{heads}</tr></thead>'
        f'<tbody>{rows}</tbody></table></div>'
        f'{tag("details", f"<summary>What the columns say</summary><dl>{about}</dl>") if about else ""}'
        f'<script type="application/json">{script_json(data)}</script></section>'
    )


class _Drawn(NamedTuple):
    """A column as texts."""

    column: Column
    texts: list[str]
    links: list[str]  # from the page; empty for a column without
    width: int  # characters


def _drawn(column: Column, records: Sequence[Record], root: str) -> _Drawn:
    show, to = column.show or (lambda record: _plain(record[column.key])), column.link
    texts = [clean(show(record)) for record in records]
    links = [f'{root}{at}' if (at := to(record)) else '' for record in records] if to else []
    width = min(max(NARROW, len(column.title) + 2, *map(len, texts)), column.widest) + 8 * column.bar
    return _Drawn(column, texts, links, width)


def _narrow(drawn: _Drawn) -> int:
    """The width on a phone, where long texts are cut off."""
    return drawn.width + 2 if drawn.column.number else min(drawn.width + 2, PHONE * drawn.column.widest // WIDE)


def _plain(value: Any) -> str:
    return '–' if value is None or value == '' else str(value)


def _cell(drawn: _Drawn, k: int) -> str:
    """The cell of a row, as table.js draws it (but for bars, which it adds)."""
    text = escape(drawn.texts[k])
    long = f' title="{text}"' if len(drawn.texts[k]) > drawn.width else ''
    if drawn.links and drawn.links[k]:
        text = f'<a href="{escape(drawn.links[k])}">{text}</a>'
    return f'<td{" class=number" * drawn.column.number}{long}>{text}</td>'


def _data(drawn: _Drawn, records: Sequence[Record]) -> dict[str, Any]:
    """The column as table.js reads it: each different text once."""
    column, key = drawn.column, drawn.column.key
    places: dict[tuple[str, str], int] = {}
    at = [places.setdefault(x, len(places)) for x in zip(drawn.texts, drawn.links or repeat(''), strict=False)]
    found: dict[str, Any] = {'title': column.title, 'width': drawn.width, 'at': at}
    found['words'] = [text for text, _ in places]
    if drawn.links:
        found['links'] = [link for _, link in places]
    if column.number:
        values = [record[key] for record in records]
        found['values'] = [None if v is None else round(float(v), 6) for v in values]
    if column.bar:
        ends = [(record[f'{key}_low'], record[f'{key}_high']) for record in records]
        found['ends'] = [None if None in pair else [round(e, 4) for e in pair] for pair in ends]
    return found | {name: said for name in ('choose', 'start', 'up', 'only') if (said := getattr(column, name))}
