"""The files of a dataset from its host, each whole or not there.

A file is `x.part` until its SHA-256 is the listed one, and `x` from then on. A process that ends at any moment leaves
a part, from whose last byte the next run goes on; what came with another sum is kept as `x.bad`. A file that is there
already is compared with the list, and never replaced. The sum alone decides: a file that changed at its host between
two parts has a wrong one, and is fetched once more from its start.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import requests

from jbench.data import fs
from jbench.data.receive import Progress, check_space, public, receive, size_of
from jbench.spec import Dataset, Download, RequestError

Report = Callable[[str, int, int, str], None]  # work, done, total, note
LOCK, BAD = '.download.lock', '.bad'  # names of ours beside the files
HOST_LIST = 'SHA256SUMS.txt'  # PhysioNet publishes one in the folder of each project
_LINE = re.compile(r'([0-9a-f]{64}) [ *]?(?:(\d+) )?(\S.*)')


class File(NamedTuple):
    """A file that a list names."""

    name: str  # under the folder of the dataset, with '/'
    sha256: str
    size: int | None  # bytes; the list of a host does not tell


class Outcome(NamedTuple):
    """What became of the datasets that were wanted, by name."""

    there: list[str]
    by_hand: list[str]
    failed: list[str]

    @property
    def status(self) -> int:
        """0 if all are there, 1 if some are, 2 if none is."""
        return 0 if not self.by_hand + self.failed else 1 if self.there else 2


def fetch_all(
    wanted: Mapping[str, Dataset | None], data_dir: Path | None, report: Report, say: Callable[[str], None]
) -> Outcome:
    """Fetch every dataset that can be fetched, and say of the others how to get them.

    Args:
      wanted: datasets by name; None where a task knows the name alone.
      data_dir: files go to `<data_dir>/<dataset>/`, which is made.
      report: progress of one dataset.
      say: a line of text.

    Raises: RequestError without a `data_dir`; KeyboardInterrupt on Ctrl-C and SIGTERM.
    """
    names = [name for name, d in wanted.items() if d is not None and can_fetch(d)]
    if names and data_dir is None:
        raise RequestError(f'{", ".join(names)}: name the folder for the files by --data_dir=DIR or JBENCH_DATA')
    outcome = Outcome([], [], [])
    with _stoppable():
        for name, dataset in wanted.items():
            if dataset is None or data_dir is None or not can_fetch(dataset):
                say(steps(name, dataset))
                (outcome.there if dataset is not None and dataset.simulated else outcome.by_hand).append(name)
                continue
            try:
                fetch(dataset, data_dir / name, report, say)
                outcome.there.append(name)
            except RequestError as error:
                say(f'jbench: {error}\n  by hand: {steps(name, dataset)}')
                outcome.failed.append(name)
    return outcome


def can_fetch(dataset: Dataset) -> bool:
    """Whether jbench may fetch the files: it knows where they are, and their host asks for no agreement first."""
    return dataset.download is not None and dataset.access == 'open'


def steps(name: str, dataset: Dataset | None) -> str:
    """How to get a dataset, in words."""
    if dataset is None or dataset.source is None:
        return f'{name}: no reader in this version' + (f'; {dataset.host}' if dataset else '')
    if dataset.simulated:
        return f'{name}: generated on this machine, nothing to fetch'
    terms = f'licence {dataset.licence}, access {dataset.access}'
    if dataset.access != 'open':
        terms += ': accept the terms of the host there; jbench does not do that for you'
    how = 'fetched by --download' if can_fetch(dataset) else 'jbench cannot fetch it'
    return f'{name}: from {dataset.host}, {terms}; {how}\n  by hand, put into DIR/{name}/: {dataset.layout}'


def fetch(dataset: Dataset, folder: Path, report: Report, say: Callable[[str], None]) -> None:
    """Fetch into `folder` what is missing of a dataset; of several processes one does, the others find the files.

    Raises: RequestError where a file of another content is there, the disk is too small, or the host fails.
    """
    say(f'{dataset.name}: from {dataset.host}, licence {dataset.licence}; cite {dataset.citation}')
    path = _list_path(dataset, folder)
    missing = _missing(folder, _wanted(dataset, path)) if path.exists() else None
    came = _fetch_missing(dataset, folder, missing, report, say) if missing != [] else 0
    n_files = len(_wanted(dataset, path))
    before = f', {n_files - came} were there' if came < n_files else ''
    say(f'{dataset.name}: {n_files} files with the listed SHA-256 in {folder}: {came} fetched{before}')


def _fetch_missing(
    dataset: Dataset, folder: Path, missing: list[File] | None, report: Report, say: Callable[[str], None]
) -> int:
    """Fetch the files that are missing, all where that is not known, while no other process does. Returns how many."""
    what, path = f'download {dataset.name}', _list_path(dataset, folder)
    with (
        fs.locked(folder / LOCK, lambda: report(what, 0, 1, 'waits for another process')),
        requests.Session() as session,
    ):
        if not path.exists():
            _fetch_list(session, _url(dataset, HOST_LIST), path, say)
        missing = _missing(folder, missing or _wanted(dataset, path))
        total = sum(f.size or 0 for f in missing)
        check_space(folder, total - sum(size_of(_part(folder / f.name)) for f in missing) if total else 0)
        done = 0
        for k, file in enumerate(missing):
            progress = partial(_progress, partial(report, what, k, len(missing)), file.name, done, total)
            done += _fetch_file(session, _url(dataset, file.name), folder / file.name, file, progress, say)
    if missing:
        report(what, len(missing), len(missing), f'files, {_mb(done)} MB')
    return len(missing)


def parse_list(text: str, where: str) -> list[File]:
    """The files of a list: lines of SHA-256, bytes (optional) and name, as `sha256sum` writes them.

    Raises: RequestError for any other line, a name that leads out of the folder, or one that stands twice.
    """
    files = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(line)
        if not found:
            raise RequestError(f'{where}: line {number}: expected a SHA-256 and a name, found {line[:80]!r}')
        digest, size, name = found.groups()
        if not name.isprintable() or re.search(r'[\\:]', name) or {'', '.', '..'} & set(name.split('/')):
            raise RequestError(f'{where}: line {number}: {name!r} is no name of a file inside a folder')
        if name.endswith((fs.TEMP_SUFFIX, BAD, LOCK)):
            raise RequestError(f'{where}: line {number}: {name!r} is a name that jbench uses itself')
        files.append(File(name, digest, int(size) if size else None))
    if not files or len({f.name.casefold() for f in files}) < len(files):
        raise RequestError(f'{where}: expected at least one file, and each of them once')
    return files


def _list_path(dataset: Dataset, folder: Path) -> Path:
    """The list of the files: beside the source module, or the one of the host, which is kept with them."""
    registered = _place(dataset).registered
    return (
        Path(str(import_module(str(dataset.source)).__file__)).with_name(registered)
        if registered
        else folder / HOST_LIST
    )


def _wanted(dataset: Dataset, path: Path) -> list[File]:
    """The files of a list that are wanted. Raises RequestError where there is none."""
    pattern = _place(dataset).files
    files = [f for f in parse_list(path.read_text(errors='replace'), str(path)) if fnmatchcase(f.name, pattern)]
    if not files:
        raise RequestError(f'{path}: names no file like {pattern}')
    return files


def _fetch_list(session: requests.Session, url: str, path: Path, say: Callable[[str], None]) -> None:
    """Keep the list of a host, if it is one: it has no checksum itself."""
    part = _part(path)
    with fs.explained(path, 0):
        receive(session, url, part, None, lambda got, size: None, say)
        text = part.read_text(errors='replace')
        part.unlink()
    parse_list(text, public(url))
    fs.write_atomic(path, text.encode())


def _missing(folder: Path, files: list[File]) -> list[File]:
    """The files that are not there. Raises RequestError for those that are there with another content."""
    there = [f for f in files if (folder / f.name).exists()]
    other = [f.name for f in there if not _is_whole(folder / f.name, f)]
    if other:
        names = ', '.join(other[:5]) + (', ...' if len(other) > 5 else '')
        raise RequestError(
            f'{folder}: {len(other)} of {len(files)} files differ from the listed ones ({names}); jbench replaces no '
            'file: move them away, or choose another --data_dir, then run again'
        )
    return [f for f in files if f not in there]


def _is_whole(path: Path, file: File) -> bool:
    return file.size in (None, size_of(path)) and fs.sha256_file(path) == file.sha256


def _fetch_file(
    session: requests.Session, url: str, path: Path, file: File, progress: Progress, say: Callable[[str], None]
) -> int:
    """Fetch one file and give it its name; a wrong sum is tried once more. Returns its bytes. Raises RequestError."""
    part, bad = _part(path), path.with_name(path.name + BAD)
    with fs.explained(path, file.size or 0):
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.size == 0:
            part.touch()
        for _ in range(2):
            receive(session, url, part, file.size, progress, say)
            found = fs.sha256_file(part)
            if found == file.sha256:
                fs.publish(part, path)
                bad.unlink(missing_ok=True)
                return size_of(path)
            os.replace(part, bad)
    raise RequestError(f'{public(url)}: SHA-256 {found}, expected {file.sha256}; what came is kept as {bad}')


def _progress(report: Callable[[str], None], name: str, before: int, total: int, got: int, size: int | None) -> None:
    """Bytes of all files so far, and of this one."""
    of_all, of_one = (f' of {_mb(n)}' if n else '' for n in (total, size))
    report(f'files, {_mb(before + got)}{of_all} MB; {name} {_mb(got)}{of_one} MB')


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Inside, SIGTERM is Ctrl-C: both end a download at once, for every moment is one to go on from."""
    if threading.current_thread() is not threading.main_thread():  # elsewhere Python takes no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _place(dataset: Dataset) -> Download:
    assert dataset.download is not None, 'can_fetch'
    return dataset.download


def _url(dataset: Dataset, name: str) -> str:
    return _place(dataset).url + quote(name)


def _part(path: Path) -> Path:
    return path.with_name(path.name + fs.TEMP_SUFFIX)


def _mb(n_bytes: int) -> str:
    return f'{n_bytes / 1e6:.1f}'
