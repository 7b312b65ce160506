"""What the tests of preparation share: sets prepared from some real recordings."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from places import ROOT

from jbench.data.prepare import build_set
from jbench.plan import cells, select
from jbench.spec.task import Task

KALUNGA, ZYMA, SCHALK = 'Kalunga2016Online', 'Zyma2019Electroencephalograms', 'Schalk2004Bci2000'
TASKS = {KALUNGA: 'ssvep', ZYMA: 'mental_arithmetic', SCHALK: 'motor_imagery'}
Said = list[tuple[str, int, int]]


def task_of(name: str) -> Task:
    return cells.apply(select.tasks()[TASKS[name]][-1], select.datasets()[name], ())


def prepare(name: str, data: Path, work: Path, say: Callable[[str, int, int], None] = lambda *facts: None) -> Path:
    """The folder of a prepared set."""
    task, dataset = task_of(name), select.datasets()[name]
    folder, refs = build_set.locate(task, dataset, data, work)
    assert folder is not None
    build_set.prepare(task, dataset, folder, refs, say)
    return folder


def manifest(folder: Path) -> dict:
    return json.loads((folder / 'manifest.json').read_text())


def content(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


def pick(data_dir: Path, target: Path, name: str, *patterns: str) -> Path:
    """A tree of copies of some files of a dataset; returns its data_dir."""
    for pattern in patterns:
        for path in sorted((data_dir / name).glob(pattern)):
            goal = target / name / path.relative_to(data_dir / name)
            goal.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, goal)
    return target


def python(code: str, *args: object, **options: object) -> subprocess.Popen[str]:
    """A fresh process, in a group of its own."""
    import textwrap

    return subprocess.Popen(
        [sys.executable, '-c', textwrap.dedent(code), *map(str, args)],
        text=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        **options,
    )  # type: ignore[call-overload]
