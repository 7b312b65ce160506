"""A model on a benchmark: one score."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jbench.alignment import assembly as assemblies
from jbench.alignment import ceiled, data, netcdf, procedures, select, store
from jbench.alignment.ceiled import CeiledScore, Scored
from jbench.alignment.checks import check
from jbench.alignment.metrics.measured import Measured
from jbench.alignment.own import Reader
from jbench.alignment.procedures import Compared
from jbench.spec.benchmark import PREFIX, Benchmark
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.alignment.brain_model import BrainModel
    from jbench.alignment.data import Recorded


PACKAGED = 'packaged'  # the store of one's own recordings, in the folder of the data


class Recordings(NamedTuple):
    """What a benchmark needs of data, checked and here."""

    test: Recorded
    train: Recorded | None
    digest: str  # SHA-256 of the recordings
    stimuli_digest: str  # '': there are none


def recordings(
    benchmark: Benchmark, data_dir: str | Path | None, readers: Mapping[str, Reader] | None = None
) -> Recordings:
    """The data of a benchmark. Raises: RequestError 'data missing: ...' with what to do."""
    names = [benchmark.data, *([benchmark.train_data] if benchmark.train_data else [])]
    there = [_load(benchmark, name, data_dir, readers or {}) for name in names]
    recordings = [netcdf.digest(r.assembly) for r in there]
    return Recordings(
        there[0], there[1] if len(there) > 1 else None, _joined(recordings), _joined([r.stimuli.digest for r in there])
    )


def _load(benchmark: Benchmark, name: str, data_dir: str | Path | None, readers: Mapping[str, Reader]) -> Recorded:
    folder, place = _places(data_dir)
    if name in readers:
        stimuli, assembly = readers[name](folder)
        return data.Recorded(
            stimuli, assemblies.check(assembly), data.Collection('', '', benchmark.licence, benchmark.citation, {})
        )
    if name in data.SETS:
        return data.load(name, folder)
    if _packaged(name, place):
        packaged = store.load(name, place)
        if packaged.assembly is None or packaged.stimuli is None:
            raise RequestError(f'{name} in {place}: a set of stimuli alone; package responses to them under this name')
        facts = data.Collection('', str(place), benchmark.licence, benchmark.citation, {})
        return data.Recorded(packaged.stimuli, packaged.assembly.load(), facts)
    raise RequestError(_absent(benchmark, name, data_dir, readers))


def state(benchmark: Benchmark, data_dir: str | Path | None, readers: Mapping[str, Reader]) -> str:
    """Where each recording of a benchmark would come from, or what is missing, in words; nothing is read."""
    said = []
    for name in filter(None, (benchmark.data, benchmark.train_data)):
        _, place = _places(data_dir)
        if name in readers:
            said.append('from your file')
        elif name in data.SETS:
            said.append(data.state(name, data_dir))
        elif _packaged(name, place):
            said.append(f'in {place}')
        else:
            said.append(_absent(benchmark, name, data_dir, readers))
    return '; '.join(dict.fromkeys(said))


def _absent(benchmark: Benchmark, name: str, data_dir: str | Path | None, readers: Mapping[str, Reader]) -> str:
    """What is said of a recording that is nowhere: where it was looked for, and what to do."""
    _, place = _places(data_dir)
    unnamed = '' if data_dir or os.environ.get('JBENCH_STORE') else ' (name the folder with --data_dir)'
    why = benchmark.missing or (
        f'READERS has {", ".join(sorted(readers)) or "nothing"}: add a reader of this name to your file, or package it '
        'there (docs/alignment.md, "A recording of your own")'
    )
    return f'data missing: {name} is not in {place}{unnamed}: {why}'


def _places(data_dir: str | Path | None) -> tuple[Path, str]:
    """The folder of the data, and the store of packaged recordings."""
    folder = Path(data_dir) if data_dir else Path('<data_dir>')
    return folder, os.environ.get('JBENCH_STORE') or str(folder / PACKAGED)


def _packaged(name: str, place: str) -> bool:
    return ('://' in place or Path(place).is_dir()) and name in store.names(place)


def _joined(digests: list[str]) -> str:
    return digests[0] if len(digests) == 1 else hashlib.sha256(' '.join(digests).encode()).hexdigest()


def score(
    model: BrainModel,
    benchmark: Benchmark | str,
    *,
    data_dir: str | Path | None = None,
    report: Callable[[str, int, int], object] | None = None,
) -> CeiledScore:
    """How brain-like a model is.

    Args:
        model: as `jbench.alignment.brain_model.BrainModel` says; `committed` and `recorded_features` make one.
        benchmark: one of `jbench.alignment.select.benchmarks()`, its identifier, or one of your own.
        data_dir: where recordings lie.
        report: told what is done, how much of it, of how much.

    Raises: RequestError for an unknown identifier, and for data that are missing, with what to do.
    """
    readers: Mapping[str, Reader] = {}
    if isinstance(benchmark, str):
        chosen = select.select_benchmarks(PREFIX + benchmark.removeprefix(PREFIX))
        if len(chosen.benchmarks) != 1 or not chosen.named:
            found = ', '.join(b.identifier for b in chosen.benchmarks[:5])
            raise RequestError(f'score: {benchmark!r} is not one benchmark; name one of: {found}')
        benchmark, readers = chosen.benchmarks[0], chosen.readers
    check(benchmark)
    return scored(model, benchmark, recordings(benchmark, data_dir, readers), report).score


def scored(
    model: BrainModel,
    benchmark: Benchmark,
    found: Recordings,
    report: Callable[[str, int, int], object] | None = None,
) -> Scored:
    """As `score`, of recordings that are here."""
    tell = report or (lambda what, done, total: None)
    tell(f'looking at stimuli, then {benchmark.metric}', 0, 1)
    compared: Compared = procedures.PROCEDURES[benchmark.procedure](model, benchmark, found.test, found.train)
    ceiling = compared.ceiling
    if benchmark.constant_ceiling is not None:
        import numpy as np

        ceiling = Measured(benchmark.constant_ceiling, float('nan'), np.empty(0), ('a published constant',))
    if compared.groups is not None:
        made = ceiled.of_groups(compared.measured, ceiling, benchmark.ceiled, compared.groups, chance=benchmark.chance)
    else:
        by_time = benchmark.metric.startswith(procedures.OVER_TIME)
        splits = benchmark.procedure in ('neural', 'train_test') and not by_time
        made = ceiled.beside(compared.measured, ceiling, benchmark.ceiled, chance=benchmark.chance, splits=splits)
    tell(f'looking at stimuli, then {benchmark.metric}', 1, 1)
    return Scored(made, compared.features, dict(compared.arrays))
