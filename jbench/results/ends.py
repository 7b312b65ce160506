"""How result files ended, and no more: what `--status` counts, of many files.

A file that lies as it was written is not parsed: its digest says that nothing in it has changed since it was checked
and written. Any other is read as tables read it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from jbench.results import checked, index
from jbench.results.schema import SCHEMA

FACT = re.compile(r'\n "(key|kind|schema|seed|sha256|status)": ("?)([^"\\\n,]*)\2,?(?=\n)')  # of a result itself
N_FACTS = 6
LEAN = {'kind': 'decoding', 'schema': str(SCHEMA)}  # others are read whole


class End(NamedTuple):
    """How a seed of a cell ended."""

    path: str
    key: str  # of the cell
    seed: int
    failed: bool
    damaged: str  # why it does not count, in words; '': it does


def scan(folders: Iterable[str | os.PathLike[str]]) -> list[End]:
    """How the results below some folders ended, in the order of their paths. Raises: RequestError for no folder."""
    return [end for part in index.in_shares(index.result_paths(folders), read) for end in part]


def read(paths: Sequence[str]) -> list[End]:
    """How the results at some paths ended."""
    return [_lean(path) or _whole(path) for path in paths]


def _lean(path: str) -> End | None:
    """Of a result that lies as this version wrote it; None of any other."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
            return None
        with open(path, 'rb', buffering=0) as file:
            text = file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None
    found = FACT.findall(text)
    facts = {name: value for name, _, value in found}
    if len(found) != N_FACTS or len(facts) != N_FACTS or any(facts[name] != value for name, value in LEAN.items()):
        return None
    if not facts['seed'].isdecimal() or not checked.as_written(text, facts['sha256']):
        return None
    return End(path, facts['key'], int(facts['seed']), facts['status'] == 'failed', '')


def _whole(path: str) -> End:
    """Of a result that is read and checked as a whole."""
    found = index.read([path], index.MARKS)
    if found.rows:
        return End(path, found.rows[0].key, found.rows[0].seed, False, '')
    reason, place = found.left_out[0].reason, Path(path)
    damaged = reason if reason.startswith('damaged') else ''
    return End(path, place.parent.name, int(place.stem.removeprefix('seed')), reason.startswith('failed'), damaged)
