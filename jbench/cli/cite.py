"""`jbench cite RESULT...`: what results rest on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jbench.report import bibtex as entries
from jbench.results import result_file
from jbench.spec.errors import RequestError


def bibtex(paths: Sequence[Path]) -> str:
    """BibTeX of results. Raises: RequestError for a file that is absent, or no result."""
    try:
        return entries.cite([result_file.read(path) for path in paths])
    except FileNotFoundError as error:
        raise RequestError(f'cite {error.filename}: no such file; expected results, as .../seed33.json') from None
