"""Labels that look like one and are several: written in another case or Unicode form, or with blanks at an edge."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

SHOWN = 5  # groups of labels


def told(labels: Iterable[str]) -> list[str]:
    """A warning that names labels which are classes of their own though they may mean the same; [] for none."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault(_form(_form(label).strip().casefold()), []).append(label)
    found = [' and '.join(map(_visible, same)) for same in groups.values() if len(same) > 1]
    if not found:
        return []
    more = f' and {len(found) - SHOWN} more' if len(found) > SHOWN else ''
    return [
        'labels that differ in case, Unicode form or blanks at their edges alone are classes of their own: '
        f'{"; ".join(found[:SHOWN])}{more}; write them alike where they stand, or make them one by target.mapping'
    ]


def _form(label: str) -> str:
    return unicodedata.normalize('NFKC', label)


def _visible(label: str) -> str:
    """A label in quotes, with the code of what may look like something else."""
    return repr(label) if label == unicodedata.normalize('NFC', label) == _form(label) else ascii(label)
