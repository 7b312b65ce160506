"""A job in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from jbench import files
from jbench.grid.job import Job, command

SAVED = 75  # the status of a command that a signal stopped, once it has saved
EVERY = 0.02  # s between looks at a process


def run(job: Job, log: Path, stop: Callable[[], bool] = lambda: False, more: Mapping[str, str] = {}) -> int:
    """Run a job to its end; it ends, saved, when this process does or `stop` says so.

    Args:
        job: what runs.
        log: where what it prints goes, after what it printed before.
        stop: asked many times a second; True: the job is told to save and to leave, and is waited for.
        more: environment of the process beside ours.

    Returns: its exit status; 128 + the number of the signal that killed it. Raises: RequestError for a log that cannot
    be written.
    """
    files.make_dir(log.parent)
    with_parent = ['setpriv', '--pdeathsig', 'TERM', '--'] if shutil.which('setpriv') else []
    with files.explained(log, 0), open(log, 'ab') as out:
        process = subprocess.Popen(
            [*with_parent, *command(job)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **more},
            start_new_session=True,  # Ctrl-C reaches us alone, and we tell it once
        )
        told = False
        while process.poll() is None:
            if stop() and not told:
                process.terminate()
                told = True
            time.sleep(EVERY)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
