"""The files of a dataset from its host, each whole or not there.

A file is `x.part` until its sum is the listed one, and `x` from then on. A process that ends at any moment leaves a
part, from whose last byte the next run goes on; what came with another sum is kept as `x.bad`. A file that is there
already is compared with the list, and never replaced. The sum alone decides: a file that changed at its host between
two parts has a wrong one, and is fetched once more from its start. The list of the host is kept beside the files.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import requests

from jbench.data.download import archives, hosts, wanted_files
from jbench.data.download.file_list import BAD, KEPT, KINDS, LOCK, File, digest_of
from jbench.data.download.http import Progress, Refused, check_space, public, receive, size_of
from jbench.data.source import fetch_of
from jbench.files import TEMP_SUFFIX, explained, locked, publish
from jbench.spec import encoders
from jbench.spec.checkpoints import BANKS, checkpoint_of, place_of
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError

Report = Callable[[str, int, int, str], None]  # work, done, total, note


class Outcome(NamedTuple):
    """What became of the datasets and encoders that were wanted, by name."""

    there: list[str]
    by_hand: list[str]
    failed: list[str]

    @property
    def status(self) -> int:
        """0 if all are there, 1 if some are, 2 if none is."""
        return 0 if not self.by_hand + self.failed else 1 if self.there else 2


def fetch_all(
    wanted: Sequence[Dataset],
    data_dir: Path | None,
    report: Report,
    say: Callable[[str], None],
    wanted_encoders: Sequence[str] = (),
    wanted_weights: Sequence[str] = (),
) -> Outcome:
    """Fetch every dataset that can be fetched, and say of the others how to get them; then encoders of stimuli, and
    pretrained weights of models.

    Args:
      data_dir: files go to `<data_dir>/<dataset>/`, `.../encoders/<encoder>/`, `.../weights/<model>/`, which are made.
      report: progress of one dataset.
      say: a line of text.
      wanted_encoders, wanted_weights: names of encoders, and of models or places; none without a data_dir.

    Raises: RequestError without a `data_dir`; KeyboardInterrupt on Ctrl-C and SIGTERM.
    """
    names = [d.name for d in wanted if can_fetch(d)]
    if names and data_dir is None:
        raise RequestError(f'{", ".join(names)}: name the folder for the files by --data_dir=DIR or JBENCH_DATA')
    outcome = Outcome([], [], [])
    with _stoppable():
        for dataset in wanted:
            if data_dir is None or not can_fetch(dataset):
                say(steps(dataset))
                (outcome.there if dataset.simulated else outcome.by_hand).append(dataset.name)
                continue
            try:
                fetch(dataset, data_dir / dataset.name, report, say)
                outcome.there.append(dataset.name)
            except RequestError as error:
                say(f'jbench: {error}\n  by hand: {steps(dataset)}')
                outcome.failed.append(dataset.name)
        others = [(name, fetch_encoder) for name in wanted_encoders] + [
            (name, fetch_weights) for name in wanted_weights
        ]
        for name, fetch_other in others:
            assert data_dir is not None
            try:
                came = fetch_other(name, data_dir, report, say)
                (outcome.there if came else outcome.by_hand).append(name)
            except RequestError as error:
                say(f'jbench: {error}')
                outcome.failed.append(name)
    return outcome


def can_fetch(dataset: Dataset) -> bool:
    """Whether jbench may fetch the files: it knows where they are, and their host asks for no agreement first, or
    knows by the user's token that it was given."""
    place = dataset.download
    return place is not None and (dataset.access == 'open' or bool(hosts.token(place.url)))


def steps(dataset: Dataset) -> str:
    """How to get a dataset, in words."""
    name = dataset.name
    if dataset.simulated:
        return f'{name}: generated on this machine, nothing to fetch'
    terms = f'licence {dataset.licence}, access {dataset.access}'
    if dataset.access != 'open':
        terms += ': accept the terms of the host there; jbench does not do that for you'
    how = 'fetched by --download' if can_fetch(dataset) else 'jbench cannot fetch it'
    variable = hosts.TOKENS.get(dataset.download.url.partition(':')[0]) if dataset.download else None
    if variable and not can_fetch(dataset):
        how += f' before {variable} is the token of an account that has accepted them'
    return f'{name}: from {dataset.host}, {terms}; {how}\n  by hand, put into DIR/{name}/: {dataset.layout}'


def encoder_steps(name: str) -> str:
    """Where an encoder of stimuli comes from, in words."""
    return f'{name}: {encoders.find(name).model} from huggingface.co, under the licence that stands there'


def fetch(dataset: Dataset, folder: Path, report: Report, say: Callable[[str], None]) -> None:
    """Fetch into `folder` what is missing of a dataset; of several processes one does, the others find the files.

    Raises: RequestError where a file of another content is there, the disk is too small, or the host fails.
    """
    say(f'{dataset.name}: from {dataset.host}, licence {dataset.licence}; cite {dataset.citation}')
    places = wanted_files.places_of(dataset)
    if places[0].url.startswith('moabb:') and (own := fetch_of(dataset)):
        what = f'download {dataset.name}'
        with locked(folder / LOCK, lambda: report(what, 0, 1, 'waits for another process')):
            return own(dataset, folder, partial(report, what), say)
    for place in places:
        _fetch(dataset.name, place, wanted_files.list_of(dataset, place, folder), folder, report, say)


def fetch_encoder(name: str, data_dir: Path, report: Report, say: Callable[[str], None]) -> bool:
    """Fetch what is missing of an encoder of stimuli; as `fetch`. Returns whether it is here."""
    say(encoder_steps(name))
    encoder, folder = encoders.find(name), data_dir / 'encoders' / name
    place = Download(url=f'hf:models/{encoder.model}', files=encoder.files, without='*.whl')
    _fetch(name, place, folder / KEPT, folder, report, say)
    return True


def fetch_weights(model: str, data_dir: Path, report: Report, say: Callable[[str], None]) -> bool:
    """Fetch the published weights of a model and the places of electrodes that belong to them, or such places alone (a
    name of BANKS), if they are missing; as `fetch`. Returns whether they are here."""
    bank, own = checkpoint_of(model).bank, 'places of electrodes' if model in BANKS else 'weights of'
    for what, name in ((f'places of electrodes for {model}', bank), (f'{own} {model}', model)):
        if name:
            checkpoint, folder = checkpoint_of(name), place_of(name, data_dir).parent
            say(f'{what}: {checkpoint.words}')
            place = Download(url=checkpoint.url, files=checkpoint.file)
            if checkpoint.access != 'open' and not hosts.token(place.url) and not (folder / checkpoint.file).is_file():
                return False
            _fetch(what, place, folder / KEPT, folder, report, say, checkpoint.sha256)
    return True


def _fetch(
    name: str, place: Download, kept: Path, folder: Path, report: Report, say: Callable[[str], None], sha256: str = ''
) -> None:
    """Fetch into `folder` what is missing of a place, by the list `kept` if it is there; `sha256`: of its only file."""
    what = f'download {name}'
    lock = partial(locked, folder / LOCK, lambda: report(what, 0, 1, 'waits for another process'))
    hosts.check_address(place)
    files = wanted_files.kept(place, kept)
    missing = _missing(folder, files, partial(report, what)) if files else None
    came = 0
    if missing != []:
        with lock(), hosts.signed(place) as session:
            try:
                files = wanted_files.kept(place, kept) or wanted_files.asked(session, place, kept, say)
                wanted_files.check_known(name, files, sha256)
                missing = _missing(folder, missing or files, partial(report, what))
                came = _fetch_missing(session, folder, missing, partial(report, what), say)
            except Refused as error:
                raise RequestError(f'{error}{hosts.remedy(place, error.status)}') from error
    _unpack(folder, files or [], place.unpack, partial(report, what), lock)
    n, sizes = len(files or []), sum(f.kind == 'size' for f in files or [])
    before = f', {n - came} were there' if came < n else ''
    alone = f'; of {sizes} the host tells the size alone' if sizes else ''
    say(f'{name}: {n} files with the listed sums in {folder}: {came} fetched{before}{alone}')


def _fetch_missing(
    session: requests.Session,
    folder: Path,
    missing: list[File],
    report: Callable[[int, int, str], None],
    say: Callable[[str], None],
) -> int:
    """Fetch the files that are missing, while no other process does. Returns how many."""
    total = sum(f.size or 0 for f in missing)
    if total:
        say(f'{folder}: {len(missing)} files to fetch, {_amount(total)}')
        check_space(folder, total - sum(size_of(_part(folder / f.name)) for f in missing))
    done = 0
    for k, file in enumerate(missing):
        progress = partial(_progress, partial(report, k, len(missing)), file.name, done, total)
        done += _fetch_file(session, folder / file.name, file, progress, say)
    if missing:
        report(len(missing), len(missing), f'files, {_amount(done)}')
    return len(missing)


def _missing(folder: Path, files: list[File], report: Callable[[int, int, str], None]) -> list[File]:
    """The files that are not there. Raises RequestError for those that are there with another content."""
    there, other = set(), []
    for k, file in enumerate(files):
        path = folder / file.name
        if path.exists():
            report(k, len(files), f'files; compares {file.name} with the list')
            there.add(file.name)
            if not _is_whole(path, file):
                other.append(file.name)
    if other:
        names = ', '.join(other[:5]) + (', ...' if len(other) > 5 else '')
        raise RequestError(
            f'{folder}: {len(other)} of {len(files)} files differ from the listed ones ({names}); jbench replaces no '
            'file: move them away, or choose another --data_dir, then run again'
        )
    return [f for f in files if f.name not in there]


def _is_whole(path: Path, file: File) -> bool:
    if file.size not in (None, size_of(path)):
        return False
    return file.kind == 'size' or digest_of(path, file.kind) == file.digest


def _fetch_file(
    session: requests.Session, path: Path, file: File, progress: Progress, say: Callable[[str], None]
) -> int:
    """Fetch one file and give it its name; a wrong sum is tried once more. Returns its bytes. Raises RequestError."""
    part, bad = _part(path), path.with_name(path.name + BAD)
    with explained(path, file.size or 0):
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.size == 0:
            part.touch()
        for _ in range(2):
            receive(session, file.url, part, file.size, progress, say)
            if _is_whole(part, file):
                publish(part, path)
                bad.unlink(missing_ok=True)
                return size_of(path)
            os.replace(part, bad)
        found = digest_of(bad, file.kind) if file.digest else f'{size_of(bad)} bytes'
    raise RequestError(
        f'{public(file.url)}: {KINDS[file.kind]} {found}, expected {file.digest or file.size}; what came is kept '
        f'as {bad}. Where the host has a newer file, remove {KEPT} there, and run again'
    )


def _unpack(
    folder: Path,
    files: list[File],
    pattern: str,
    report: Callable[[int, int, str], None],
    lock: Callable[[], contextlib.AbstractContextManager[None]],
) -> None:
    """Unpack what is wanted of the archives that have come."""
    found = [folder / f.name for f in files if pattern and f.name.endswith(archives.ENDINGS)]
    for path in [p for p in found if archives.lacking(p, pattern)]:
        with lock():
            archives.unpack(path, pattern, report)


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


def _part(path: Path) -> Path:
    return path.with_name(path.name + TEMP_SUFFIX)


def _mb(n_bytes: int) -> str:
    return f'{n_bytes / 1e6:.1f}'


def _amount(n_bytes: int) -> str:
    return f'{n_bytes / 1e9:.1f} GB' if n_bytes >= 1e9 else f'{_mb(n_bytes)} MB'
