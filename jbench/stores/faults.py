"""What the libraries of object stores raise, in our words: whether it may pass, and without credentials."""

from __future__ import annotations

import os
import re

SECRET = re.compile(r'(AWS|AZURE|GOOGLE|GCS|GCLOUD|FSSPEC)_.*(KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|CONNECTION|SAS)')
PASSING = (408, 409, 429)  # statuses below 500 that another try may not meet


class DamagedError(Exception):
    """A file came with other bytes than were to come."""


def told(error: BaseException) -> str:
    """One line on an error of a library, without the values of variables that hold credentials."""
    text = ' '.join(str(error).split()) or type(error).__name__
    for name, value in os.environ.items():
        if len(value) > 3 and SECRET.match(name):
            text = text.replace(value, f'${name}')
    return re.sub(r'://[^/@\s]+@', '://***@', text)


def status(error: BaseException | None) -> int | None:
    """The HTTP status that an error is about, as s3fs, gcsfs and adlfs keep it."""
    while error is not None and type(error).__module__ != 'aiohttp.http_exceptions':  # a body that was cut: no status
        response = getattr(error, 'response', None)
        if isinstance(response, dict):
            return response.get('ResponseMetadata', {}).get('HTTPStatusCode')
        for name in ('status_code', 'status', 'code'):
            if str(found := getattr(error, name, None)).isdigit():
                return int(str(found))
        error = error.__cause__
    return None


def passing(error: Exception) -> bool:
    """Whether another try may not meet this fault."""
    if isinstance(error, TimeoutError | DamagedError | EOFError):
        return True
    number = status(error)
    if number is not None:
        return number in PASSING or number >= 500
    lasting = (PermissionError, ValueError, TypeError, LookupError, ImportError, AttributeError)
    return not isinstance(error, lasting) and 'Credential' not in type(error).__name__
