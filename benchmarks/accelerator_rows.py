"""The rows that `accelerator.py` measures, one part of them in a process of its own, which ends when its time is over.

Rows come as a JSON list in --rows; each that begins, each that is measured, and why a part is left out, is a JSON line
in --out. A part: `step` (also of several seeds), `torch`, `whole` or `numerics`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jbench.cli import environment

ROOT = Path(__file__).parents[1]
SECONDS, MOST_CALLS = 0.6, 40  # of the calls of a row that count
LONG = 3.0  # s of a call that is the only one that counts
TOY_SECONDS = 0.05
Tell = Callable[[dict[str, Any]], None]


class Row(NamedTuple):
    """What is measured in one go."""

    part: str
    model: str
    what: str  # precision: 'float32' | 'default' | 'bfloat16', of torch also 'compiled'; of the whole command the task
    seeds: int = 1

    def __str__(self) -> str:
        return f'{self.part} {self.model} {self.what} {self.seeds}'


# ---- a row ----


def attempt(row: Row, work: Callable[[], dict[str, Any]], tell: Tell) -> None:
    """Measure a row, or tell why it cannot be."""
    try:
        found = work()
    except Exception as error:  # of whatever library: the other rows go on
        words = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        found = {'failed': 'out of memory' if 'RESOURCE_EXHAUSTED' in words or 'out of memory' in words else words}
    tell({'row': row._asdict() | found})


def timed(call: Callable[[], None], toy: bool) -> Any:
    """Seconds of each call that counts; two before do not, or one that takes long."""
    import numpy as np

    def once() -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    once()
    second = once()
    if second > LONG:
        return np.array([second])
    n = int(np.clip((TOY_SECONDS if toy else SECONDS) / second, 3, MOST_CALLS))
    return np.array([once() for _ in range(n)])


def times_of(seconds: Any) -> dict[str, float]:
    """Median and first decile, ms."""
    import numpy as np

    return {'ms': 1e3 * float(np.median(seconds)), 'p10_ms': 1e3 * float(np.quantile(seconds, 0.1))}


# ---- torch ----


def torch_row(row: Row, toy: bool, device: str) -> dict[str, Any]:
    """Times of the reference's step, eager or compiled, on the same windows."""
    import accelerator_steps
    import encoders
    import peers
    import torch

    from jbench.models import MODELS
    from jbench.spec.errors import RequestError

    if row.model not in (*peers.NAMES, *encoders.names()):
        raise RequestError('no reference here')
    found = accelerator_steps.case(row.model, toy)
    batch = accelerator_steps.windows(found, (found.recipe.batch_size,))
    torch.manual_seed(0)
    if MODELS[row.model].family == 'foundation':
        net = peers.encoder(encoders.Cell(row.model, found.recipe.batch_size, 19, 2 if toy else 4))
    else:
        net = peers.of_task(row.model, found.signal, found.n_out)
    net = net.to(device)
    inputs, labels = (torch.tensor(batch[k], device=device) for k in ('x', 'y'))
    train, _ = peers.steps(torch.compile(net) if row.what == 'compiled' else net, inputs, labels.long())

    def call() -> None:
        with torch.autocast(device, torch.bfloat16, enabled=row.what == 'bfloat16'):
            train(peers.STEPS)
        if device == 'cuda':
            torch.cuda.synchronize()

    return times_of(timed(call, toy) / peers.STEPS)


def torch_device(backend: str) -> tuple[str, str]:
    """Torch's name of the device that jax uses, or '' and why there is none."""
    try:
        import peers  # noqa: F401
        import torch
    except ImportError as error:
        return '', f"{error}: pip install -e '.[peers]'"
    if backend == 'gpu':
        return ('cuda', '') if torch.cuda.is_available() else ('', 'torch sees no GPU (a build for processors?)')
    return ('cpu', '') if backend == 'cpu' else ('', f'torch sees no {backend}')


# ---- the whole command ----


def whole(row: Row, toy: bool) -> dict[str, Any]:
    """Seconds of the command on a prepared simulation (`row.what`): programs not compiled before, and compiled."""
    import whole_command

    short = ['--debug', '--seeds=33'] if toy else []
    with tempfile.TemporaryDirectory(prefix='accelerator-') as folder:
        command = [sys.executable, '-m', 'jbench.run', f'--task={row.what}', f'--model={row.model}', *short]
        command += ['--simulated=yes', f'--workdir={folder}']
        command += ['--weights=none'] if row.model != 'eegnet' else []
        subprocess.run([*command, '--stage=prepare'], check=True, stdout=subprocess.DEVNULL)
        first, _ = whole_command.run(command)
        again, peak = whole_command.run([*command, '--if_exists=overwrite'])
    return {'first_s': first, 'again_s': again, 'peak_mb': peak}


# ---- a part ----


def head(commit: str) -> dict[str, Any]:
    """What computes, with what; `commit`: what this is a copy of, '': git says it."""
    import jax

    from jbench.results import origin

    device = jax.local_devices()[0]
    return {
        'device': device.device_kind,
        'backend': {'cuda': 'gpu', 'rocm': 'gpu'}.get(device.platform, device.platform),
        'count': jax.device_count(),
        'memory_gb': (device.memory_stats() or {}).get('bytes_limit', 0) / 1e9,
        'machine': f'{platform.machine()}, {os.cpu_count()} cores',
        'jax': jax.__version__,
        'commit': commit or origin.commit(ROOT / 'jbench') or 'unknown',
        'date': time.strftime('%Y-%m-%d'),
    }


def one_by_one(rows: list[Row], until: float, work: Callable[[Row], dict[str, Any]], tell: Tell) -> None:
    """Measure rows while there is time for one as long as the longest so far."""
    longest = 0.0
    for row in rows:
        if time.time() + longest >= until:
            return
        began = time.time()
        tell({'begun': str(row)})
        attempt(row, partial(work, row), tell)
        longest = max(longest, time.time() - began)


def measure(part: str, rows: list[Row], args: argparse.Namespace, tell: Tell) -> None:
    """Measure the rows of a part."""
    if part == 'torch':
        device, why = torch_device(args.backend)
        if why:
            tell({'skipped': why})
        else:
            one_by_one(rows, args.until, lambda row: torch_row(row, args.toy, device), tell)
    elif part == 'whole':
        one_by_one(rows, args.until, lambda row: whole(row, args.toy), tell)
    else:
        import accelerator_steps

        work = accelerator_steps.measured_step if part == 'step' else accelerator_steps.numerics
        one_by_one(rows, args.until, lambda row: work(row, args.toy), tell)


def main(argv: list[str]) -> int:
    """Measure what --rows names."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('part', choices=('head', 'step', 'torch', 'whole', 'numerics'))
    p.add_argument('--rows', required=True)
    p.add_argument('--out', required=True)
    p.add_argument('--until', type=float, required=True, help='s since 1970')
    p.add_argument('--backend', default='cpu', help='what jax computes on, for the part torch')
    p.add_argument('--commit', default='')
    p.add_argument('--toy', action='store_true')
    args = p.parse_args(argv)
    environment.without_triton()  # as a run
    with open(args.out, 'a', encoding='utf-8') as out:

        def tell(what: dict[str, Any]) -> None:
            print(json.dumps(what), file=out, flush=True)

        if args.part == 'head':
            tell({'head': head(args.commit)})
            return 0
        rows = [Row(**r) for r in json.loads(Path(args.rows).read_text(encoding='utf-8'))]
        measure(args.part, rows, args, tell)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
