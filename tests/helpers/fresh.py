"""A virtual environment as a newcomer has it: the packages that jbench needs, and no jbench; made without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from places import ROOT

OURS = ('jbench', '__editable__')  # what an installed jbench is called among packages


def environment(home: Path) -> Path:
    """A fresh environment at `home`, which sees the packages of this one through links; returns its Python."""
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', home], check=True, timeout=300)  # pip is linked too
    links = home / 'packages'
    links.mkdir()
    for folder in (Path(p) for p in sys.path if Path(p).name == 'site-packages'):
        for entry in folder.iterdir():
            known = entry.name.startswith(OURS) or entry.suffix == '.pth' or (links / entry.name).exists()
            if not known:
                (links / entry.name).symlink_to(entry)
    (own,) = home.glob('lib/python*/site-packages')
    (own / 'packages.pth').write_text(f'{links}\n')
    return home / 'bin' / 'python'


def variables(**more: str) -> dict[str, str]:
    """The environment variables of a process that is to know nothing of this checkout."""
    left_out = ('JBENCH', 'PYTHON', 'PYTEST', 'COVERAGE')
    return {k: v for k, v in os.environ.items() if not k.startswith(left_out)} | more


def copy(at: Path) -> Path:
    """The files of the repository, without what was built or run in it."""
    built = ('.git', '*.egg-info', 'build', 'dist', 'jbench-work', '.venv', '__pycache__', '.*_cache', '.hypothesis')
    return Path(shutil.copytree(ROOT, at, ignore=shutil.ignore_patterns(*built)))
