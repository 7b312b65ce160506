"""Findings in words: what is wrong with many recordings is said once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jbench.data.recording import Finding

SHOWN = 10  # names in a message, of many
ALIKE = 3  # groups of recordings of which the same is to be said, in a note, of many


def faults(refused: list[Finding]) -> Iterator[str]:
    """A line for all of which the same is to be said; of a rule that many break in different ways, one line too."""
    rules: dict[tuple[str, str], dict[Finding, list[str]]] = {}
    for f in refused:
        rules.setdefault((f.rule, f.remedy), {}).setdefault(f._replace(where=''), []).append(f.where)
    for (rule, remedy), alike in rules.items():
        if len(alike) <= ALIKE:
            yield from (f'{some(where)}{f}' for f, where in alike.items())
            continue
        shown = [f'{some(where)}: found {f.found}, expected {f.expected}' for f, where in alike.items()][:ALIKE]
        rest = sum(len(where) for where in [*alike.values()][ALIKE:])
        yield f'{rule}: {"; ".join(shown)}; and {rest} more; {remedy}'


def grouped(findings: list[Finding]) -> list[str]:
    """Notes on single recordings, a line a rule: recordings of which the same is to be said stand together."""
    rules: dict[str, dict[str, list[str]]] = {}
    for f in findings:
        rules.setdefault(f.rule, {}).setdefault(f.found, []).append(f.where.rpartition('/')[2])
    notes = []
    for rule, alike in rules.items():
        shown = [f'{some(where)}: {found}' for found, where in alike.items()][:ALIKE]
        rest = sum(len(where) for where in [*alike.values()][ALIKE:])
        notes.append(f'{rule}: {"; ".join(shown)}' + f'; and {rest} more recordings' * (rest > 0))
    return notes


def left_out(bad: Sequence[tuple[str, Sequence[Finding]]]) -> str:
    """The note on recordings that are left out for their faults, of all recordings (name, its fatal findings)."""
    each = [f'{name} ({found[0].rule}: found {found[0].found})' for name, found in bad if found]
    return f'partial: {len(each)} of {len(bad)} recordings are bad and left out: {some(each)}'


def some(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    return ', '.join(names[:SHOWN]) + (f' and {len(names) - SHOWN} more' if len(names) > SHOWN else '')
