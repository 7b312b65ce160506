"""What a test needs that the extra `test` does not bring."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest


def needs_torch(test: Callable[..., Any]) -> Callable[..., Any]:
    """Skipped without torch; slow, since `.ci/run` installs it for the slow ones."""
    absent = find_spec('torch') is None
    marked: Callable[..., Any] = pytest.mark.skipif(absent, reason="pip install -e '.[checkpoints]'")(test)
    return pytest.mark.slow(marked)
