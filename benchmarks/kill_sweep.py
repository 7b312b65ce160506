"""Ends the whole command at random moments, runs it again to its end, and compares that with an undisturbed run.

    python benchmarks/kill_sweep.py --kills=30

Every stage is in it: six recordings are fetched from a server on this machine, prepared, trained on, tested. Half of
the ends are kill -9, half are SIGTERM (which must save and end with status 75). A run is disturbed one to three times
before it may end; its predictions must then be the same bytes, and its result the same but for times.
Prints the seed, which repeats the moments (not the machine's speed), and exits with 1 at the first difference.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'helpers'))
import run_whole  # noqa: E402
from serve import serving  # noqa: E402

SAVE_EVERY = 0.5  # s
# what a worker says that was just starting when its parent was killed
WITHIN = r'(?:(?!Traceback).)*?'
ORPHAN = (
    rf'Traceback \(most recent call last\):\n  File "<string>", line 1{WITHIN}in spawn_main\n{WITHIN}EOFError: [^\n]*'
)


def stage(workdir: Path) -> str:
    """How far a run had come."""
    for name, pattern in (
        ('with a result', 'results/*/*/*/*/seed33.json'),
        ('with a checkpoint', 'checkpoints/*/*/*/sha256.json'),
        ('with a prepared set', 'prepared/*/*/manifest.json'),
        ('with all recordings', 'prepared/*/*.parts'),
        ('with some recordings', f'data/{run_whole.SERVED}/*'),
    ):
        if any(workdir.glob(pattern)):
            return name
    return 'with nothing'


def half_done(workdir: Path) -> list[Path]:
    """What claims to be finished and is not."""
    results = [p for p in workdir.glob('results/*/*/*/*/seed33.json') if not p.with_suffix('.npz').exists()]
    sizes = {p: p.stat().st_size for p in workdir.glob(f'data/{run_whole.SERVED}/*.edf')}
    return results + [p for p, size in sizes.items() if size != (workdir.parent / 'served' / p.name).stat().st_size]


class Sweep:
    """Runs in folders of their own, beside the files that are served to them."""

    def __init__(self, root: Path, url: str, rng: random.Random) -> None:
        self.root, self.url, self.rng = root, url, rng
        self.places: Counter[str] = Counter()
        self.waits: list[float] = []  # s from SIGTERM to the end
        self.seconds = 0.0  # of the undisturbed run

    def start(self, workdir: Path) -> object:
        """The command in a process."""
        flags = [*run_whole.FROM_THE_NETWORK, f'--data_dir={workdir / "data"}']
        return run_whole.start(workdir, *flags, save_every=SAVE_EVERY, url=self.url)

    def whole(self, workdir: Path) -> tuple:
        """Run to the end; returns its outcome."""
        status, said = run_whole.finish(self.start(workdir))
        if status != 0:
            sys.exit(f'{workdir}: status {status}: {said}')
        return run_whole.outcome(workdir)

    def disturb(self, workdir: Path) -> bool:
        """One run that is ended at a random moment; False if it was faster."""
        number = self.rng.choice([signal.SIGKILL, signal.SIGTERM])
        process = self.start(workdir)
        time.sleep(self.rng.uniform(0.3, self.seconds))
        early, began = process.poll() is not None, time.monotonic()
        os.kill(process.pid, number) if not early else None
        _, said = process.communicate(timeout=300)
        wait = time.monotonic() - began
        status, place = process.returncode, stage(workdir)
        fine = {0, 75, -number} if number == signal.SIGTERM else {0, -number}  # -15: before jbench is imported
        if status == -signal.SIGKILL:
            said = re.sub(ORPHAN, '', said, flags=re.DOTALL)
        if status not in fine or 'Traceback' in said or half_done(workdir):
            sys.exit(f'{workdir}: {number.name}, status {status}, {place}, {half_done(workdir)}: {said}')
        self.waits += [wait] if status == 75 else []
        self.places[f'{number.name} {place}'] += status != 0
        return status != 0


def main() -> None:
    """Sweep, and say what was found."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--kills', type=int, default=30)
    p.add_argument('--seed', type=int, default=random.SystemRandom().randrange(10**6))
    p.add_argument('--data_dir', type=Path, default=os.environ.get('JBENCH_TEST_DATA', ROOT.parent / 'shared' / 'data'))
    args = p.parse_args()
    print(f'seed {args.seed}', flush=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / 'served').mkdir()
        files = sorted((args.data_dir / run_whole.SERVED).glob('Subject0[1-3]_[12].edf'))
        if len(files) != 6:
            sys.exit(
                f'{args.data_dir / run_whole.SERVED}: expected Subject01_1.edf ... Subject03_2.edf; see --data_dir'
            )
        for path in files:
            shutil.copy(path, root / 'served')
        with serving(root / 'served') as server:
            sweep = Sweep(root, server.url, random.Random(args.seed))
            expected = sweep.whole(root / 'undisturbed')
            shutil.rmtree(root / 'undisturbed' / 'data')
            for name in ('prepared', 'results'):
                shutil.rmtree(root / 'undisturbed' / name)
            began = time.monotonic()
            if sweep.whole(root / 'undisturbed') != expected:
                sys.exit('two undisturbed runs differ')
            sweep.seconds = time.monotonic() - began
            done = trial = 0
            while done < args.kills:
                workdir, n = root / f'{trial}', min(sweep.rng.randint(1, 3), args.kills - done)
                shutil.copytree(root / 'undisturbed' / 'xla', workdir / 'xla')
                done += sum(sweep.disturb(workdir) for _ in range(n))
                if sweep.whole(workdir) != expected:
                    sys.exit(f'seed {args.seed}, trial {trial}: another outcome than undisturbed')
                trial += 1
                shutil.rmtree(workdir)
                print(f'{done} of {args.kills} ends, {trial} runs: all as undisturbed', flush=True)
    for place, n in sorted((+sweep.places).items()):
        print(f'{n:4d}  {place}')
    print(
        f'undisturbed {sweep.seconds:.1f} s; from SIGTERM to status 75: at most {max(sweep.waits, default=0.0):.1f} s'
    )


if __name__ == '__main__':
    main()
