"""Tables of an Excel workbook (.xlsx), which is a zip archive of XML: enough to read cells of text and numbers."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import IO
from xml.etree import ElementTree

MAIN = '{http://schemas.openxmlformats.org/spreadsheetml/2006/main}'
RELATION = '{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id'


def sheet(file: str | Path | IO[bytes], name: str) -> list[dict[str, str]]:
    """The rows of a sheet below its first one, which names the columns: the text of each cell, '' for an empty one.

    Names are in lower case with `_` for other signs; of two columns with one name the second has `_1` behind it.

    Raises: KeyError for a workbook without the sheet; BadZipFile.
    """
    with zipfile.ZipFile(file) as archive:
        book = ElementTree.fromstring(archive.read('xl/workbook.xml'))
        links = ElementTree.fromstring(archive.read('xl/_rels/workbook.xml.rels'))
        target = {link.get('Id'): link.get('Target', '') for link in links}
        sheets = {s.get('name'): target[s.get(RELATION)] for s in book.iter(f'{MAIN}sheet')}
        place = sheets[name].lstrip('/').removeprefix('xl/')
        table = ElementTree.fromstring(archive.read(f'xl/{place}'))
        shared = 'xl/sharedStrings.xml'
        strings = ElementTree.fromstring(archive.read(shared)) if shared in archive.namelist() else ()
    texts = [_text(item) for item in strings]
    rows = [{_letters(cell): _value(cell, texts) for cell in row} for row in table.iter(f'{MAIN}row')]
    names: dict[str, str] = {}
    for letters, heading in (rows[0] if rows else {}).items():
        plain = re.sub('[^a-z0-9]+', '_', heading.lower()).strip('_')
        names[letters] = plain if plain not in names.values() else f'{plain}_1'
    return [{heading: row.get(letters, '') for letters, heading in names.items()} for row in rows[1:]]


def _text(item: ElementTree.Element) -> str:
    """The text of a string, of which each run may have a font of its own."""
    return ''.join(t.text or '' for t in item.iter(f'{MAIN}t'))


def _letters(cell: ElementTree.Element) -> str:
    """The column of a cell: B of B12."""
    return re.sub('[^A-Z]', '', cell.get('r', ''))


def _value(cell: ElementTree.Element, texts: list[str]) -> str:
    if cell.get('t') == 'inlineStr':
        return _text(cell)
    value = cell.findtext(f'{MAIN}v') or ''
    return texts[int(value)] if cell.get('t') == 's' else value
