"""Files of the user: benchmarks on recordings of one's own, image models of one's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jbench.alignment.data import SETS
from jbench.files import sha256_file
from jbench.models import user_model
from jbench.plan import user_files
from jbench.spec.benchmark import Benchmark, Candidate
from jbench.spec.errors import RequestError

Reader = Callable[[Path], Any]  # of the folder of the data: (stimuli, assembly)


class Own(NamedTuple):
    """What a file of benchmarks holds."""

    benchmarks: list[Benchmark]
    readers: dict[str, Reader]  # of recordings, by the name in `Benchmark.data`


def named(text: str) -> bool:
    """Whether a text means a file of one's own."""
    return text.endswith(('.py', '.npz')) or '.py:' in text


def benchmarks(path: str) -> Own:
    """What BENCHMARKS and READERS of a file hold.

    Raises: RequestError for a file that is absent, fails, or holds something else, with the line.
    """
    file, what = Path(path).expanduser(), f'--task=alignment/{path}'
    found = user_files.names_in('--task', str(file))
    made, readers = found.get('BENCHMARKS', ()), found.get('READERS', {})
    if not made or not isinstance(made, tuple | list) or not all(isinstance(b, Benchmark) for b in made):
        raise RequestError(f'{what}: expected BENCHMARKS, a tuple of jbench.spec.benchmark.Benchmark')
    if not isinstance(readers, dict) or not all(callable(r) for r in readers.values()):
        raise RequestError(f'{what}: expected READERS, a dict: name of a recording -> function of the data folder')
    from jbench.alignment.checks import check

    for benchmark in made:
        check(benchmark)
    if taken := sorted({*readers} & {*SETS}):
        raise RequestError(f'{what}: READERS: {taken[0]}: a recording that jbench has already; choose another name')
    return Own(list(made), {name: _explained(reader, what, file) for name, reader in readers.items()})


def _explained(reader: Reader, what: str, file: Path) -> Reader:
    """A reader whose own errors say where in the file they are."""

    def read(folder: Path) -> Any:
        with user_model.explained(what, file):
            return reader(folder)

    return read


def candidate(text: str) -> Candidate:
    """The model that 'path/to/file.py:function' names, or 'path/to/features.npz'; the file is read, not run. Its name
    holds the digest of the file, so that a result belongs to what the file said. A function with a parameter gets a
    seed.

    Raises: RequestError for text of another form, a file that is absent or no Python, a function that is not there.
    """
    if text.endswith('.npz'):
        file = Path(text).expanduser().absolute()
        if not file.is_file():
            raise RequestError(f'--model={text}: no such file of features')
        name = f'{file.stem}@{sha256_file(file)[:8]}'
        return Candidate(name=name, title='features of a file', target=str(file))
    place, _, name = text.rpartition(':')
    if not place or not name.isidentifier():
        raise RequestError(f'--model={text}: expected a file and a function in it, as path/to/file.py:function')
    path = Path(place).expanduser().absolute()
    drawn = bool(user_model.function(path, name).args.args)
    return Candidate(name=f'{name}@{sha256_file(path)[:8]}', title=name, target=f'{path}:{name}', drawn=drawn)
