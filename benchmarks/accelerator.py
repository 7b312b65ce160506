"""What does the device of this machine make of jbench? One command, less than nine minutes.

    python benchmarks/accelerator.py --write           # measures, and writes the tables of docs/accelerator.md
    python benchmarks/accelerator.py --models=eegnet,labram --minutes=3
    python benchmarks/accelerator.py --parts=steps     # this part alone
    python benchmarks/accelerator.py --minutes=0 --json=FILE --write    # tables of what was measured elsewhere

On whatever jax finds: a GPU, a TPU, else the processor. Of all networks, or of those named: a training step as a run
compiles it (forward, backward, clipping, AdamW; up to 16 steps a call, on random windows that lie on the device) in
float32 and bfloat16, of one seed, and of 3, 8 and 32 at once (vmapped); torch's own step, eager, under autocast and
compiled, where torch sees the device; the whole command on prepared simulations; what share of the device's peak
arithmetic and bandwidth a step reaches; and how far apart full float32 products, those that jax takes by default, and
bfloat16 are.

The time is dealt to these parts, each in processes of its own, the most asked for first; a row that nobody came to is
not in the tables. Figures are kept in --json: the same command again, of the same commit on the same kind of device,
measures what is missing. A row that kills its process, or does not fit, says so, and the others go on.

--toy measures two networks at sizes that mean nothing: that the command works is all that it shows.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import accelerator_tables
import marks
from accelerator_rows import ROOT, Row

from jbench import files
from jbench.models import MODELS
from jbench.spec.errors import RequestError, unknown

PAGE = ROOT / 'docs' / 'accelerator.md'
MINUTES = 8.5
SEEDS = (3, 8, 32)
TOYS = ('eegnet', 'signal_jepa_post_local')
HEAD_S = 120.0  # until the device must have answered
LOOK = 0.1  # s between looks at a process
SAME = ('device', 'count', 'jax', 'commit', 'toy')  # of two runs whose figures may stand in one table


class Part(NamedTuple):
    """Rows that are measured one after the other, and their share of the time."""

    name: str
    share: float
    rows: list[Row]


def parts(names: list[str], toy: bool) -> list[Part]:
    """All that is measured, the most asked for first."""
    seeds, low = (SEEDS[:1], ()) if toy else (SEEDS, ('bfloat16',))
    tasks = [('eegnet', 'cvep')] if toy else [('eegnet', 'p3'), ('eegnet', 'motor_imagery'), ('labram', 'p3')]
    first, others = names[:1], names[1:]
    return [
        Part('steps', 0.32, [Row('step', n, what) for what in ('float32', 'bfloat16', 'default') for n in names]),
        Part('torch', 0.16, [Row('torch', n, what) for what in ('float32', 'bfloat16') for n in names]),
        Part(
            'seeds',
            0.2,
            [
                Row('step', n, what, k)
                for group in (first, others)
                for what in ('float32', *low)
                for k in seeds
                for n in group
            ],
        ),
        Part('whole command', 0.12, [Row('whole', n, task) for n, task in tasks if n in names]),
        Part('precision', 0.1, [Row('numerics', n, 'float32') for n in names]),
        Part('compiled torch', 0.1, [Row('torch', n, 'compiled') for n in names]),
    ]


def child(part: str, rows: list[Row], until: float, options: list[str], log: Path) -> tuple[list[dict[str, Any]], int]:
    """What a process says until it ends, or until its time is over (then it is killed); and its exit status."""
    with tempfile.TemporaryDirectory() as folder, open(log, 'ab') as to:
        out, asked = Path(folder) / 'said', Path(folder) / 'rows'
        out.touch()
        asked.write_text(json.dumps([r._asdict() for r in rows]), encoding='utf-8')
        command = [sys.executable, str(ROOT / 'benchmarks' / 'accelerator_rows.py'), part]
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
        process = subprocess.Popen(
            [*command, f'--rows={asked}', f'--out={out}', f'--until={until}', *options],
            stdin=subprocess.DEVNULL,
            stdout=to,
            stderr=to,
            env={**os.environ, 'PYTHONPATH': path} | ({'JAX_PLATFORMS': 'cpu'} if part == 'torch' else {}),
            start_new_session=True,  # with all that it starts it is one group, which is killed as one
        )
        said: list[dict[str, Any]] = []
        try:
            while process.poll() is None and time.time() < until:
                time.sleep(LOOK)
                said = _tell(out, said)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return _tell(out, said), process.returncode


def _tell(out: Path, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All lines so far; rows that are new are printed."""
    now = [json.loads(line) for line in out.read_text(encoding='utf-8').splitlines(True) if line.endswith('\n')]
    for line in now[len(said) :]:
        if row := line.get('row'):
            print('  ' + accelerator_tables.line(row), flush=True)
    return now


def measured(part: str, rows: list[Row], until: float, options: list[str], log: Path) -> tuple[list[Any], str]:
    """Rows of a part as its time lets, each what was found or why not; and why the part is left out, or ''."""
    found: list[dict[str, Any]] = []
    while rows and time.time() < until:
        said, status = child(part, rows, until, options, log)
        found += [line['row'] for line in said if 'row' in line]
        skipped = [line['skipped'] for line in said if 'skipped' in line]
        if skipped or status == 0 or time.time() >= until:
            return found, ''.join(skipped)
        done = {str(Row(*(r[f] for f in Row._fields))) for r in found}
        begun = {line['begun'] for line in said if 'begun' in line} - done
        if not begun:
            return found, f'its process ended with status {status}: {log}'
        found += [r._asdict() | {'failed': f'its process ended with status {status}'} for r in rows if str(r) in begun]
        rows = [r for r in rows if str(r) not in done | begun]
    return found, ''


def kept(path: Path, head: dict[str, Any]) -> dict[str, Any]:
    """What earlier runs of the same commit found on the same device; nothing else.

    Raises: RequestError where the file is another one.
    """
    if path.exists():
        before = accelerator_tables.stored(path)
        if all(before['head'].get(name) == head[name] for name in SAME):
            return before | {'head': head, 'skipped': {}}
    return {'head': head, 'rows': [], 'skipped': {}}


def measure(todo: list[Part], minutes: float, toy: bool, commit: str, path: Path) -> dict[str, Any]:
    """Measure what is not there yet, in so many minutes, and keep it at `path`; `commit`: if a copy, of what.

    Raises: RequestError where jax finds no device, or `path` holds something else.
    """
    end, log = time.time() + 60 * minutes, path.with_suffix('.log')
    files.make_dir(path.parent)
    log.write_bytes(b'')
    short = ['--toy'] if toy else []
    said, status = child('head', [], min(end, time.time() + HEAD_S), [f'--commit={commit}'], log)
    if status or not said:
        raise RequestError(f'jax finds no device here, or does not answer: {log} has what it says')
    head = said[0]['head'] | {'toy': toy}
    facts = kept(path, head)
    print(f'{head["device"]} ({head["count"]}), jax {head["jax"]}, commit {head["commit"]}', flush=True)
    options = [f'--backend={head["backend"]}', *short]
    for i, part in enumerate(todo):
        there = {str(Row(*(r[f] for f in Row._fields))) for r in facts['rows']}
        rows = [row for row in part.rows if str(row) not in there]
        share = part.share / sum(p.share for p in todo[i:])  # what the parts before it left is dealt, too
        until = time.time() + share * (end - time.time())
        if rows and (why := facts['skipped'].get(rows[0].part)) is None:
            print(f'{part.name}: {len(rows)} rows, {until - time.time():.0f} s', flush=True)
            found, why = measured(rows[0].part, rows, until, options, log)
            facts['rows'] += found
            if why:
                print(f'  left out: {why}', flush=True)
                facts['skipped'][rows[0].part] = why
        files.write_atomic(path, f'{json.dumps(facts, indent=1)}\n'.encode())
    return facts


def main(argv: list[str]) -> int:
    """Measure and print; 2 for an unknown network, without a device, or where figures cannot be read."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--models', help='names [all networks]')
    part_names = [part.name for part in parts([], toy=False)]
    p.add_argument('--parts', help=f'of {", ".join(part_names)} [all]')
    p.add_argument('--minutes', type=float, default=MINUTES, help=f'of all [{MINUTES}]; 0: measure nothing')
    p.add_argument('--json', type=Path, default=ROOT / 'build' / 'accelerator.json', help='where figures are kept')
    p.add_argument('--write', action='store_true', help='write the tables, and what they are of, into --page')
    p.add_argument('--page', type=Path, default=PAGE, help='[docs/accelerator.md]')
    p.add_argument('--commit', default='', help='that this is a copy of, instead of what git says')
    p.add_argument('--toy', action='store_true', help='two networks at sizes that mean nothing')
    args = p.parse_args(argv)
    known = [m.name for m in MODELS.values() if m.kind == 'network' and m.family != 'baselines']
    known.sort(key=lambda name: (name != 'eegnet', MODELS[name].n_parameters or 0))
    names = args.models.split(',') if args.models else list(TOYS) if args.toy else known
    try:
        for name in names:
            if name not in known:
                raise unknown('network', name, known)
        asked = args.parts.split(',') if args.parts else part_names
        for name in asked:
            if name not in part_names:
                raise unknown('part', name, part_names)
        if args.minutes > 0:
            todo = [part for part in parts(names, args.toy) if part.name in asked]
            facts = measure(todo, args.minutes, args.toy, args.commit, args.json)
        elif args.json.exists():
            facts = accelerator_tables.stored(args.json)
        else:
            raise RequestError(f'{args.json}: no figures there; measure some without --minutes=0')
        if args.write and facts['head']['toy'] and args.page.resolve() == PAGE:
            raise RequestError(f'figures of toys say nothing, and stay out of {PAGE.name}; --page=FILE takes them')
        tables = accelerator_tables.tables(facts)
        if args.write:
            marks.write(args.page, 'accelerator', tables)
    except RequestError as error:
        print(f'accelerator: {error}', file=sys.stderr)
        return 2
    print('', *(f'{text}\n' for text in tables.values()), sep='\n')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
