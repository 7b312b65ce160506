"""The error of a wrong request, in one message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RequestError(ValueError):
    """The request or its data are wrong: shown to the user as one message, exit status 2."""


class SplitError(RequestError):
    """What is there cannot be divided as the task asks."""


class MissingExtraError(RequestError):
    """An optional package is not installed: one line with the pip command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(package, extra, purpose)  # so that it can come from another process

    def __str__(self) -> str:
        package, extra, purpose = self.args
        remedy = f"pip install 'jbench[{extra}]' (in a checkout: -e '.[{extra}]')"
        return f'{purpose} needs {package}, which is not installed: {remedy}'


def unknown(what: str, name: str, known: Iterable[str], listed_by: str | None = None) -> RequestError:
    """The error for a name that does not exist: did-you-mean, then what there is, or what lists that."""
    names = sorted(set(known))
    lower = {n.lower(): n for n in names}
    near = [lower[n] for n in lower if len(name) > 2 and n.startswith(name.lower())][:2]
    near += [lower[n] for n in difflib.get_close_matches(name.lower(), list(lower), n=2, cutoff=0.6)]
    near = list(dict.fromkeys(near)) or [lower[n] for n in lower if len(name) > 2 and name.lower() in n][:2]
    hint = f'; did you mean {" or ".join(map(repr, near))}?' if near else ''
    shown = f'available: {", ".join(names[:40])}' + (', ...' if len(names) > 40 else '')
    if listed_by:
        shown = f'{listed_by} lists what there is'
    return RequestError(f'unknown {what} {name!r}{hint}\n  {shown}')
