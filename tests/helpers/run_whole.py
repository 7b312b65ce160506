"""The whole command on a few simulated recordings, as a process that can be stopped at a named place.

`start(workdir)` runs this file; as a program it lowers the size of the set and of the chunks (so that an epoch has
several), saves as often as asked, and sends itself a signal at the n-th call of a function.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from places import ROOT

FLAGS = [
    *('--task=p3', '--model=eegnet', '--seeds=33', '--set=recipe.max_epochs=6', '--set=recipe.patience=6'),
    '--format=json',
]
TIMES = (
    'date',
    'timings',
    'memory',
    'resumed_at',
    'sha256',
)  # what may differ between an undisturbed run and a resumed one
N_SUBJECTS = 6
SERVED = 'Zyma2019Electroencephalograms'
FROM_THE_NETWORK = [  # every stage: six recordings are fetched, prepared, trained on, tested
    *('--task=mental_arithmetic', '--model=eegnet', '--seeds=33', '--set=recipe.max_epochs=8', '--format=json'),
    *('--set=recipe.patience=8', '--stage=download,prepare,train,report'),
]


class At(NamedTuple):
    """Where a run is disturbed: at the n-th call of a function whose arguments hold some text."""

    function: str  # module:name
    text: str = ''
    n: int = 1
    number: int = signal.SIGTERM


def start(
    workdir: Path,
    *flags: str,
    at: At | None = None,
    save_every: float = 60.0,
    url: str | None = None,
    disks: dict[str, str] | None = None,
    **streams: Any,
) -> subprocess.Popen[str]:
    """A process that runs the command.

    Args:
      workdir: of the command.
      flags: in place of the usual ones.
      at: where it is disturbed.
      save_every: seconds between checkpoints.
      url: where the files of `SERVED` are fetched from, with `serve.serving`.
      disks: folders of the work folder that lie on a small disk of their own, and its size ('300k').
      streams: stdout or stderr, in place of pipes.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(('JBENCH', 'JAX_', 'PYTHONSAFEPATH'))}
    how = json.dumps({'at': at, 'save_every': save_every, 'url': url})
    argv = [sys.executable, __file__, how, *(flags or FLAGS), f'--workdir={workdir}']
    if disks:
        folders = {workdir / name: size for name, size in disks.items()}
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
        mounts = [f'mount -t tmpfs -o size={size} tmpfs {folder}' for folder, size in folders.items()]
        argv = ['unshare', '-rm', 'sh', '-c', ' && '.join([*mounts, 'exec "$@"']), 'sh', *argv]
    return subprocess.Popen(
        argv,
        **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **streams},
        text=True,
        start_new_session=True,
        env=env | {'NPROC': '2', 'PYTHONPATH': str(ROOT)},
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status, and what was said."""
    _, err = process.communicate(timeout=300)
    return process.returncode, err


def outcome(workdir: Path) -> tuple[bytes, bytes, dict[str, Any]]:
    """Predictions and weights as bytes, and the result without its timings."""
    (path,) = workdir.glob('results/*/*/*/*/seed33.json')
    result = json.loads(path.read_text())
    predictions, weights = (path.with_suffix(s).read_bytes() for s in ('.npz', '.safetensors'))
    return predictions, weights, {k: v for k, v in result.items() if k not in TIMES}


def disturb(at: At) -> None:
    """Send this process a signal at the call that `at` names."""
    module, _, names = at.function.partition(':')
    *path, name = names.split('.')
    owner = functools.reduce(getattr, path, import_module(module))
    function, left = getattr(owner, name), at.n

    def call(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= at.text in str(args)
        if left == 0 and at.text in str(args):
            os.kill(os.getpid(), at.number)
        return function(*args, **options)

    setattr(owner, name, call)


def main(how: str, argv: list[str]) -> None:
    """Run the command on a few subjects, disturbed as `how` says."""
    from jbench import run
    from jbench.cli import arguments, environment
    from jbench.plan import select

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background ignores it
    args = arguments.parse(argv)
    environment.environment(args.workdir, args.device, args.distributed)  # what jax reads at its import, now
    from serve import redirected

    from jbench.data.load import loader
    from jbench.train import fit

    full = select.datasets()
    small = dataclasses.replace(full['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    asked = json.loads(how)
    known = {**full, 'SimulatedP3': small} | ({SERVED: redirected(SERVED, asked['url'])} if asked['url'] else {})
    select.datasets = lambda: known
    loader.CHUNK_BATCHES = 2
    fit.next_save = lambda began: time.monotonic() + asked['save_every']
    if asked['at'] is not None:
        disturb(At(*asked['at']))
    sys.argv[1:] = argv
    run.program()


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2:])
