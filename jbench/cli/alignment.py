"""`python -m jbench.run --task=alignment/...`: benchmarks with candidates."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jbench.alignment import select
from jbench.alignment.own import Reader
from jbench.cli.arguments import DEFAULT
from jbench.cli.environment import environment
from jbench.progress import Interrupted, Progress, StopSignal
from jbench.report.text import as_json, table
from jbench.spec.benchmark import AlignmentCell
from jbench.spec.errors import RequestError
from jbench.stores import mirror

UNUSED: dict[str, Any] = {  # flags of decoding, and when they are as they come
    'set': [],
    'config': None,
    'simulated': 'auto',
    'debug': False,
    'exclude_bad': False,
    'distributed': False,
    'plan': False,
    'status': False,
    'jobs': None,
    'cluster': None,
}


def run(args: argparse.Namespace) -> int:
    """Compare, and show the table; the exit status. Raises: RequestError."""
    for folder in (args.workdir, args.data_dir):
        mirror.refuse(folder, 'alignment')
    if not select.asked(args.task):
        raise RequestError(f'--task={args.task}: expected alignment, or alignment/NAME; --list shows the names')
    for name, plain in UNUSED.items():
        if getattr(args, name) != plain:
            raise RequestError(f'--{name}: decoding alone uses it, not --task={args.task}; leave it out')
    if args.stages != list(DEFAULT):
        raise RequestError(
            f'--stage={",".join(args.stages)}: alignment has no stages; --dry_run says which files lie where, and '
            f'jbench report --results={args.workdir} shows what is finished'
        )
    if args.model == 'eegnet':
        names = ', '.join(select.candidates())
        raise RequestError(f'--model is missing: --task={args.task} compares one of {names}, or all')
    chosen = select.select_benchmarks(args.task)
    who, weights = select.with_weights(select.select_candidates(args.model), args.weights)
    if not chosen.benchmarks or not who:
        raise RequestError(f'--task={args.task} --model={args.model}: nothing is named; --list shows what there is')
    comparisons = [AlignmentCell(benchmark=b, candidate=c) for b in chosen.benchmarks for c in who]
    if args.dry_run:
        print(_plan(comparisons, chosen.readers, args.data_dir, args.format))
        return 0
    return _run(comparisons, chosen, weights, args)


def _run(
    comparisons: list[AlignmentCell], chosen: select.Chosen, weights: dict[str, Path], args: argparse.Namespace
) -> int:
    environment(args.workdir, args.device, False)
    from jbench import afresh
    from jbench.alignment import run_benchmark
    from jbench.context import Context
    from jbench.report import alignment_table
    from jbench.train import compilation_cache

    with (
        StopSignal() as stop,
        Progress() as progress,
        compilation_cache.kept(args.workdir / 'xla', progress.say),
    ):
        context = Context(args.workdir, args.data_dir, progress, stop, args.if_exists, False, weights)
        try:
            outcome = run_benchmark.run(comparisons, args.seeds, context, readers=chosen.readers, named=chosen.named)
        except Interrupted:
            progress.say(afresh.goes_on(args.if_exists))
            return 75
    lines = alignment_table.rows(outcome.results)
    if lines or args.format == 'json':
        print(as_json(lines) if args.format == 'json' else alignment_table.text(lines))
    return outcome.status


def _plan(comparisons: list[AlignmentCell], readers: Mapping[str, Reader], data_dir: Path | None, form: str) -> str:
    """What would run: of each comparison its data, and whether they are here."""
    from jbench.alignment.benchmark import state

    facts = [
        {
            'benchmark': f'{c.benchmark.identifier}@{c.benchmark.version}',
            'model': c.model,
            'key': c.key,
            'data': state(c.benchmark, data_dir, readers),
        }
        for c in comparisons
    ]
    return (
        as_json(facts)
        if form == 'json'
        else table(('benchmark', 'model', 'key', 'data'), [tuple(f.values()) for f in facts])
    )
