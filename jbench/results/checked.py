"""A result file by itself, checked: what `result_file.read` and the index have in common; nothing beside it is read."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from typing import Any

from jbench import files
from jbench.results import older
from jbench.results.schema import SCHEMA, fits, mismatches, schema
from jbench.spec.errors import RequestError
from jbench.spec.identity import canonical

NAME = re.compile(r'seed[0-9]+\.json')
NO_RESULT = 'this is no result file; expected the path of a seed33.json that a run wrote'


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A result whose JSON, schema and own digest are right, with the fields of the newest schema.

    Raises: FileNotFoundError; RequestError naming the file, the field and what was expected.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
        raise RequestError(f'{path}: expected a file, found a folder, a pipe or a device')
    try:
        result, text = files.read_json_text(path)
    except RequestError as error:
        if isinstance(error.__cause__, ValueError) and not NAME.fullmatch(os.path.basename(path)):
            raise RequestError(f'{path}: {NO_RESULT}') from error
        raise
    if not isinstance(result, dict) or not {'kind', 'schema'} & result.keys():
        raise RequestError(f'{path}: {NO_RESULT}')
    version = result.get('schema')
    if isinstance(version, int) and version > SCHEMA:
        raise RequestError(
            f'{path}: expected schema {SCHEMA}, found the newer {version}: update jbench, or {files.ANEW}'
        )
    known = version if version in range(1, SCHEMA) else SCHEMA
    if not fits(known)(result):
        raise RequestError(f'{path}: {"; ".join(mismatches(result, schema(known)))}; {files.ANEW}')
    if not as_written(text, result['sha256']) and (own := digest(result)) != result['sha256']:
        raise RequestError(
            f'{path}: changed since written: expected sha256 {result["sha256"]}, found {own}; {files.ANEW}'
        )
    return older.raised(result) if result['schema'] < SCHEMA else result


def absent(path: str | os.PathLike[str]) -> str:
    """What to say of a result that was found and is no longer there."""
    return 'a link to a file that is not there' if os.path.islink(path) else 'removed meanwhile'


def digest(result: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of a result without the digest itself."""
    return hashlib.sha256(canonical({k: v for k, v in result.items() if k != 'sha256'}).encode()).hexdigest()


def as_written(text: str, sha256: str) -> bool:
    """Whether a text that `schema.as_text` laid out has this digest; where not, `digest` tells.

    Its lines without their indents, and without the blank behind each key, are the canonical JSON: in a string no line
    ends, and a quote with a colon behind it has a backslash before it.
    """
    own = f'\n "sha256": "{sha256}",'
    if text.count(own) != 1 or '\\": ' in text:
        return False
    lines = text.replace(own, '').split('\n')
    bare = ''.join(map(str.lstrip, lines)).replace('": ', '":')
    return hashlib.sha256(bare.encode()).hexdigest() == sha256
