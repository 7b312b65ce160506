"""Results on stdout."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from jbench.progress import say
from jbench.spec.errors import RequestError


def report_all(workdir: Path, form: str) -> int:
    """Every result of the work folder; a damaged one is told, and gives status 1. Raises: RequestError for none."""
    from jbench.results import result_file

    damaged: list[str] = []
    found = result_file.load_all(workdir, damaged.append)
    for text in damaged:
        say(f'jbench: {text}')
    if not found:
        raise RequestError(f'no results under {workdir}/results; --workdir=DIR names another folder')
    from jbench.grid import plan, status
    from jbench.stores import mirror

    try:
        mirror.bring(workdir, 'plans')
        asked = status.of_plans(plan.kept(workdir))
    except RequestError as error:  # the table stands without plans
        say(f'jbench: {error}')
        asked = []
    report(found, form, [(w.key, seed) for w in asked for seed in w.seeds])
    return int(bool(damaged))


def report(found: list[dict[str, Any]], form: str, asked: Collection[tuple[str, int]] = ()) -> None:
    """The table of results; where some of those that were asked for (key of the cell, seed) lack, how many cells it
    covers, which JSON is told on stderr."""
    _table(found, form)
    lacking = {
        key for key, seed in {*asked} - {(r.get('key'), r.get('seed')) for r in found if r['status'] != 'failed'}
    }
    if lacking:
        n = len({key for key, _ in asked})
        said = f'{n - len(lacking)} of {n} cells are whole; --status says what is missing'
        say(said) if form == 'json' else print(said)


def _table(found: list[dict[str, Any]], form: str) -> None:
    """The table of results."""
    from jbench.report import alignment_table, table, text

    decoding = [r for r in found if r['kind'] == 'decoding']
    aligned = alignment_table.rows(r for r in found if r['kind'] == 'alignment')
    if form == 'json':
        print(text.as_json([*table.rows(decoding), *aligned]) if aligned else table.as_json(table.rows(decoding)))
        return
    from jbench.cli.console import Output

    if decoding or not aligned:
        table.show(table.rows(decoding), Output())
    if aligned:
        print(alignment_table.text(aligned))
