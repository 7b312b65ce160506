"""What is made of a result later: side folders `seed<k>.<what>/`, inside by the digest of the result.

So what was made of one result never passes for that of another that took its place.
"""

from __future__ import annotations

import re
from pathlib import Path

from jbench.results import result_file


def attachment_folder(path: str | Path, what: str) -> Path:
    """Where something made of a result lies: seed<k>.<what>/<first 16 digits of the result's sha256>; not made here.

    Args:
      path: the result file.
      what: a name in small letters, digits and '_'.

    Raises: FileNotFoundError; RequestError for a damaged result; ValueError for another name.
    """
    if not re.fullmatch(r'[a-z][a-z0-9_]*', what) or f'.{what}' in ('.json', *result_file.BESIDE):
        raise ValueError(f'{what!r} cannot name a side folder')
    return Path(path).with_suffix(f'.{what}') / result_file.read(path)['sha256'][:16]


def attachments(path: str | Path) -> dict[str, Path]:
    """The side folders that belong to a result as it is, by what they hold. Raises: as `attachment_folder`."""
    path = Path(path)
    digest = result_file.read(path)['sha256'][:16]
    found = sorted(path.parent.glob(f'{path.stem}.*/{digest}/'))
    return {folder.parent.suffix[1:]: folder for folder in found}
