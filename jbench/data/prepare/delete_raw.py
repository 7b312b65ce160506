"""Recordings deleted once their prepared sets are there (`--delete_raw_after=prepared`), so that a disk holds what is
larger than itself, one dataset after the other.

Only files of recordings that a set was made of go, after every byte of every such set was compared with its manifest.
A note stays in the folder (raw_files.NOTE): the sets serve from then on, and `--download` fetches nothing of it again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from jbench import files
from jbench.data.absent_content import below
from jbench.data.discover import find_recordings
from jbench.data.prepare import build_set, raw_files
from jbench.data.recording import RecordingRef
from jbench.data.source import is_own, is_whole
from jbench.data.sources import mixture
from jbench.data.windows import possible
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Task
from jbench.stores import mirror

FLAG = '--delete_raw_after=prepared'


def check(datasets: Iterable[Dataset], data_dir: Path | None = None) -> None:
    """Raises: RequestError for a dataset of one's own, which nobody can fetch again; one whose source does not say that
    it names all files of a recording, so that parts of them would stay; several as one; the copy of a store."""
    mirror.refuse(data_dir, FLAG)
    for dataset in datasets:
        if dataset.source == mixture.__name__:
            raise RequestError(
                f'{FLAG}: {dataset.name} is several datasets, whose recordings go with each of them alone: prepare it '
                'without the flag, then give the flag with a task of each'
            )
        if is_own(dataset):
            raise RequestError(
                f'{FLAG}: {dataset.name} is a dataset of your own, whose recordings no host has: leave the flag out'
            )
        if not dataset.simulated and not is_whole(dataset):
            raise RequestError(
                f'{FLAG}: {dataset.name} is read by {dataset.source}, which does not name every file of a recording: '
                'parts of them would stay. Leave the flag out, and delete them by hand once they are prepared'
            )


def after_prepared(
    dataset: Dataset, tasks: Sequence[Task], data_dir: Path | None, workdir: Path, say: Callable[[str], None]
) -> None:
    """Delete the recordings of a dataset that the prepared sets of `tasks` were made of, all of which are there.

    What is damaged, or would keep a later run from finding the sets, keeps everything where it is: `say` tells why.

    Args:
        tasks: all tasks of this run on this dataset, as applied to it.
    Raises: RequestError for a file that cannot be deleted.
    """
    if dataset.simulated or data_dir is None:
        return
    check([dataset], data_dir)
    root, refs = data_dir / dataset.name, find_recordings(dataset, data_dir)
    used = [r for r in refs if any(possible(r.fields, t.window) for t in tasks)]
    left = [r for r in refs if r not in used]
    late = [str(root / name) for name in raw_files.note(root).get('files', ())]  # of a run that was stopped
    paths = _files([*_own(used, refs), *late], left)
    if not paths:
        return
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(raw_files.held(root, _busy, alone=True))
            for lock in (workdir / 'prepared' / dataset.name).glob('*.lock'):
                stack.enter_context(files.locked(lock, _busy))
            folders = _verified(dataset, tasks, data_dir, workdir)
            _check_places(root, paths)
            _check_rest(dataset, root, paths, left)
        except RequestError as error:
            say(f'{dataset.name}: no recording is deleted: {error}')
            return
        n_bytes = sum(os.path.getsize(p) for p in paths)
        raw_files.note_down(root, refs, used, [*paths, *late])
        for path in paths:
            _delete(path)
        _prune(root, [*paths, *late])
        raw_files.note_end(root)
    more = f'; {len(left)} recordings that no task of this run reads are left' if left else ''
    say(
        f'{dataset.name}: deleted {len(paths)} files ({n_bytes / 1e9:.2f} GB) of {len(used)} recordings{more}; their '
        f'prepared sets were verified and serve from now on: {", ".join(map(str, folders))}; to fetch the recordings '
        f'again, remove {root / raw_files.NOTE} first'
    )


def _busy() -> None:
    raise RequestError('another process prepares some of them')


def _own(used: list[RecordingRef], refs: list[RecordingRef]) -> list[str]:
    """The signals of recordings, and of their other files those that lie beside or in the signal and are of one
    recording alone: no tables of all, no stimuli."""
    shared = Counter(p for r in refs for p in dict.fromkeys(r.files))
    return [
        p
        for r in used
        for p in r.files
        if p == r.files[0] or (shared[p] == 1 and Path(p).is_relative_to(Path(r.files[0]).parent))
    ]


def _files(named: Iterable[str], left: list[RecordingRef]) -> list[str]:
    """Files that are there and are none of other recordings; of a folder those in it."""
    paths = {p for p in named if os.path.lexists(p)}
    paths |= {p for folder in paths if os.path.isdir(folder) for p in below(Path(folder))}
    return sorted(p for p in paths - {p for r in left for p in r.files} if not os.path.isdir(p) or os.path.islink(p))


def _verified(dataset: Dataset, tasks: Sequence[Task], data_dir: Path, workdir: Path) -> list[Path]:
    """The sets of all tasks, every file compared with its manifest. Raises: RequestError for one that is not whole."""
    found = []
    for task in tasks:
        folder, _ = build_set.locate(task, dataset, data_dir, workdir)
        if folder is None or not build_set.is_ready(folder):
            raise RequestError(f'task {task.full_name} still needs them: it has no prepared set')
        found.append(folder)
    folders = list(dict.fromkeys(found))
    for folder in folders:
        build_set.verify(folder)
    return folders


def _check_places(root: Path, paths: list[str]) -> None:
    """Raises: RequestError where a file is a link, or lies elsewhere than in the folder of its dataset."""
    home = root.parent.resolve() / root.name
    for path in map(Path, paths):
        if path.is_symlink() or not path.parent.resolve().is_relative_to(home):
            raise RequestError(
                f'{path} is a link, or lies outside of {home}: whoever put it there deletes it (of a DataLad clone: '
                'datalad drop)'
            )


def _check_rest(dataset: Dataset, root: Path, paths: list[str], left: list[RecordingRef]) -> None:
    """Raises: RequestError where the files that stay would not be found to be the recordings that are left."""
    gone = {os.path.realpath(p) for p in paths}
    with tempfile.TemporaryDirectory() as folder:
        for path in below(root):
            if os.path.realpath(path) not in gone:
                link = Path(folder) / dataset.name / os.path.relpath(path, root)
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.abspath(path))
        try:
            found = {r.name for r in find_recordings(dataset, Path(folder))}
        except RequestError as error:
            raise RequestError(f'what would stay of {root} could not be listed') from error
    if found != {r.name for r in left}:
        raise RequestError(f'what would stay in {root} looks like other recordings')


def _delete(path: str) -> None:
    """Raises: RequestError."""
    try:
        os.unlink(path)
    except FileNotFoundError:  # another process did
        pass
    except OSError as error:
        raise RequestError(
            f'{path}: cannot be deleted: {error.strerror}; its prepared set is whole: delete it by hand, or give this '
            'user the right and run the same command again'
        ) from error


def _prune(root: Path, paths: list[str]) -> None:
    """Remove the folders that are empty now, below that of the dataset."""
    folders = {p for path in paths for p in Path(path).parents if p.is_relative_to(root) and p != root}
    for folder in sorted(folders, reverse=True):
        try:
            folder.rmdir()
        except OSError:  # something else lies there
            continue
