"""Comparisons one after the other: each seed's score is computed once and kept as a result file."""

from __future__ import annotations

import contextlib
import itertools
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.alignment import benchmark, record
from jbench.alignment.activations import LIMITS, Limits
from jbench.alignment.benchmark import Recordings, recordings
from jbench.alignment.build import build
from jbench.alignment.own import Reader
from jbench.context import Context
from jbench.data.prepare.workers import free_memory
from jbench.progress import Interrupted
from jbench.spec.benchmark import AlignmentCell, Benchmark
from jbench.spec.errors import RequestError
from jbench.stores import replaced

COPIES = 6  # of features that a metric holds at once, in bytes of their own
MISSING = 'data missing'  # how the error of absent recordings begins


class Outcome(NamedTuple):
    """What some comparisons gave."""

    status: int  # 0: all done; 1: some failed; 2: none could run, the request or its data are wrong
    results: list[dict[str, Any]]


def run(
    comparisons: Sequence[AlignmentCell],
    seeds: Sequence[int],
    context: Context,
    *,
    readers: Mapping[str, Reader] = {},
    named: bool = True,
) -> Outcome:
    """Score every comparison with every seed of its candidate; what cannot run does not keep the others from it.

    Args:
        comparisons: in the order in which they run.
        seeds: of candidates whose weights are drawn; others take the first alone.
        context: folders, progress, signals, files of weights by name of candidate, and what becomes of results that
            are there.
        readers: of recordings of one's own, by name.
        named: whether each was asked for by itself; of a group those whose data are missing are told, and no failure.

    Raises: Interrupted, after which the same call goes on with what is missing.
    """
    found: list[dict[str, Any]] = []
    refused = broken = 0
    files.make_dir(context.workdir / 'results')  # before hours of work
    if context.if_exists == 'overwrite':
        _set_aside(comparisons, seeds, context, readers)
    there: tuple[Benchmark, Recordings] | None = None  # the last one: comparisons of a benchmark follow each other
    for comparison in comparisons:
        for seed in _seeds(comparison, seeds):
            context.guard()
            try:
                if there is None or there[0] != comparison.benchmark:
                    there = comparison.benchmark, recordings(comparison.benchmark, context.data_dir, readers)
                found.append(_one(comparison, seed, context, there[1]))
            except RequestError as error:
                home, anew = record.folder(context.workdir, comparison), context.if_exists == 'overwrite'
                back = anew and replaced.put_back(home, _seeds(comparison, seeds))
                kept = '; old results count as before' if back else ''
                context.progress.say(f'not run: {comparison.title}: {error}{kept}')
                refused += named or not str(error).startswith(MISSING)
                break  # the other seeds would meet it too
            except Interrupted:
                raise
            except Exception as error:  # ours, or a library's: the others still run
                context.progress.say(_failure(error, comparison, context.workdir))
                broken += 1
                break
    return Outcome(2 if not (found or broken) else int(bool(refused or broken)), found)


def _set_aside(
    comparisons: Sequence[AlignmentCell], seeds: Sequence[int], context: Context, readers: Mapping[str, Reader]
) -> None:
    """Set the results that are to be replaced aside: those of data that are there."""
    n = 0
    for wanted, group in itertools.groupby(comparisons, key=lambda c: c.benchmark):
        state = MISSING
        with contextlib.suppress(Exception):  # a store that is away: what comes later meets it too, and tells it
            state = benchmark.state(wanted, context.data_dir, readers)
        for comparison in group if MISSING not in state else ():
            home = record.folder(context.workdir, comparison)
            n += replaced.set_aside(context.workdir, [home], _seeds(comparison, seeds))
    if n:
        context.progress.say(replaced.told(n))


def _seeds(comparison: AlignmentCell, seeds: Iterable[int]) -> list[int]:
    wanted = list(seeds)
    return wanted if comparison.candidate.drawn else wanted[:1]


def _one(comparison: AlignmentCell, seed: int, context: Context, data: Recordings) -> dict[str, Any]:
    """The result of a seed: the one that is there, or a new one."""
    began, workdir = time.monotonic(), context.workdir

    def report(what: str, done: int, total: int) -> None:
        context.guard()
        context.progress.update(f'{comparison.title}: {what}', done, total)

    memory = min(LIMITS.memory, free_memory() // COPIES)
    limits = Limits(memory, workdir / 'activations', seed=seed, report=report)
    model = build(comparison, seed, context.data_dir, context.weights.get(comparison.candidate.name), limits)
    prepared = time.monotonic() - began
    home = record.folder(workdir, comparison)
    rests_on = record.Digests(data.digest, data.stimuli_digest, '', model.digest)
    there, reason = record.finished(workdir, comparison, seed, rests_on)
    if there is not None and context.if_exists == 'fail':
        raise RequestError(f'a result is there, and --if_exists=fail: {home}')
    if there is not None and context.if_exists != 'overwrite':  # which left it while its data were out of reach
        context.progress.say(f'{comparison.title} seed {seed}: finished before')
        return there
    if reason:
        context.progress.say(reason)
    made = benchmark.scored(model, comparison.benchmark, data, report)
    digests = record.Digests(data.digest, data.stimuli_digest, made.features, model.digest)
    seconds = {'prepare': prepared, 'test': time.monotonic() - began - prepared, 'total': time.monotonic() - began}
    context.progress.say(f'{comparison.title} seed {seed}: {made.score.value:.4f} in {seconds["total"]:.1f} s')
    result = record.write(workdir, comparison, seed, made, digests, seconds)
    replaced.forget(home)
    return result


def _failure(error: Exception, comparison: AlignmentCell, workdir: Path) -> str:
    """One line on a comparison that broke, its traceback in a file."""
    log = files.write_atomic(workdir / 'errors' / f'{comparison.key}.log', traceback.format_exc().encode())
    reason = 'memory ran out' if isinstance(error, MemoryError) else f'{type(error).__name__}: {error}'
    return f'failed: {comparison.title}: {reason}; the details are in {log}'
