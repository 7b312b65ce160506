"""When, by which code and on what kind of machine a result was made; nothing that names the machine."""

from __future__ import annotations

import contextlib
import datetime
import functools
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
FORMAT, DATE = '%Y-%m-%dT%H:%M:%SZ', re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', re.ASCII)
SECONDS = 10  # for git to answer


def date() -> str:
    """Now in UTC, as 2026-01-31T12:00:00Z."""
    return datetime.datetime.now(datetime.UTC).strftime(FORMAT)


def believable(date: str) -> bool:
    """Whether a date is one as `date` gives it, and no more than a day ahead: clocks differ."""
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    return bool(DATE.fullmatch(date)) and date <= tomorrow.strftime(FORMAT)


@functools.cache
def commit(package: Path = PACKAGE) -> str | None:
    """The commit of the checkout that a package runs from, `-dirty` behind it where its files were changed since.

    Args:
        package: its folder.

    Returns: 40 digits; None where the package is installed elsewhere (a repository around it is not ours), or git
        cannot tell.
    """
    root = package.parent
    if not (root / '.git').exists():
        return None
    ours = {k: v for k, v in os.environ.items() if not k.startswith('GIT_')}  # a hook of another repository sets them
    ask = ['git', '-C', str(root), 'describe', '--always', '--dirty', '--abbrev=40', '--exclude=*']
    try:
        done = subprocess.run(ask, env=ours, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.strip()
    return said if done.returncode == 0 and re.fullmatch(r'[0-9a-f]{40}(-dirty)?', said) else None


@functools.cache
def machine() -> dict[str, Any]:
    """What the machine is, but not which: system, architecture, processor (null: not known), cores, memory in GB."""
    return {
        'system': platform.uname().system,
        'architecture': platform.machine(),
        'processor': _processor(),
        'cores': os.cpu_count() or 1,
        'memory_gb': _memory(),
    }


def _processor() -> str | None:
    with contextlib.suppress(OSError):
        found = re.search(r'^model name\s*:\s*(.+)$', Path('/proc/cpuinfo').read_text(errors='replace'), re.M)
        if found:
            return found[1].strip()
    return platform.processor() or None


def _memory() -> float | None:
    with contextlib.suppress(OSError, ValueError):
        return round(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9, 1)
    return None
