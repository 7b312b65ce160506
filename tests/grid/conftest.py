"""What tests of grids share."""

from __future__ import annotations

from pathlib import Path

import pytest

from jbench.grid.engine import Grid
from jbench.progress import Progress


@pytest.fixture
def grid(tmp_path: Path) -> Grid:
    return Grid(tmp_path / 'work', Progress(), lambda: False)
