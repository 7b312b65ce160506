"""What several sources ask of words: rows of events, sentences over words, and two lists of the same keys or triggers
of which each lacks some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]  # an event: onset, duration (s), type, and what else is known of it


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Events as the columns of a table, in order of their onsets; what a row lacks is ''. Times are float [n], all
    else is text [n], numbers that are whole without decimals."""
    from jbench.events import as_text

    rows = sorted(rows, key=lambda row: (row['onset'], -row['duration']))
    names = dict.fromkeys(name for row in rows for name in row) or {'type': None}
    times = {name: np.array([row[name] for row in rows], float) for name in ('onset', 'duration')}
    return times | {
        name: np.array([as_text(row.get(name, '')) for row in rows], str) for name in names if name not in times
    }


def with_sentences(words: Sequence[Row]) -> list[Row]:
    """The words of a recording, each with its `sentence`, and an event of type Sentence over those of each sequence.

    Args: words: events in order of their onsets, with `text` and `sequence_id`.
    Returns: the words, and events with `text` (the words, joined by spaces), `sentence` (the same) and `sequence_id`.
    """
    groups: dict[Any, list[Row]] = {}
    for word in words:
        groups.setdefault(word['sequence_id'], []).append(word)
    rows = []
    for number, group in groups.items():
        sentence = ' '.join(word['text'] for word in group)
        first, stop = group[0]['onset'], max(word['onset'] + word['duration'] for word in group)
        whole = {'type': 'Sentence', 'onset': first, 'duration': stop - first, 'text': sentence}
        rows += [{**whole, 'sentence': sentence, 'sequence_id': number}, *({**w, 'sentence': sentence} for w in group)]
    return rows


def matched(a: Sequence[int], b: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Which elements of two sequences are the same ones: int [n] of `a`, int [n] of `b`, both ascending.

    Those that stay as they are when `a` is changed into `b` by the least number of insertions, deletions and
    substitutions (Levenshtein); where several ways are as short, one without a substitution, which keeps more.
    """
    first, second = np.asarray(a), np.asarray(b)
    place = np.arange(len(second) + 1)
    cost = np.zeros((len(first) + 1, len(second) + 1), np.int32)
    cost[0] = place
    for i, value in enumerate(first, 1):
        best = np.concatenate([[i], np.minimum(cost[i - 1, 1:] + 1, cost[i - 1, :-1] + (second != value))])
        cost[i] = np.minimum.accumulate(best - place) + place  # insertions: one more for each step to the right
    pairs: list[tuple[int, int]] = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
        elif cost[i, j] == cost[i, j - 1] + 1:
            j -= 1
        else:
            i, j = i - 1, j - 1
    found = np.array(pairs[::-1], int).reshape(-1, 2)
    return found[:, 0], found[:, 1]
