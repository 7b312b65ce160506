"""The files of an archive: one module of plain torch, made of our own source, and its weights."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from jbench.version import __version__

LINE = '\n# ---- copied from here on ----\n'
HEADER = '''\
"""Made by jbench {version} (python -m jbench.submit): {title}."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
'''
OF_2026 = '\nfrom benchmark_utils.base_solver import CompetSolver\n'


def source(parts: tuple[str, ...], title: str) -> str:
    """The text of `submission.py` from modules of this folder, each from its line on."""
    header = HEADER.format(version=__version__, title=title)
    texts = [(Path(__file__).parent / f'{part}.py').read_text().partition(LINE)[2] for part in parts]
    return header + (OF_2026 if 'solver' in parts else '') + ''.join(texts)


def zipped(contents: Mapping[str, bytes]) -> bytes:
    """A flat archive, whose bytes depend on its files alone."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(contents.items()):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def unzipped(whole: bytes, folder: Path) -> None:
    """The files of an archive, in a new folder."""
    folder.mkdir()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        archive.extractall(folder)
