"""Files that are whole or absent when written (temp file, fsync, rename) and checked when read.

Imports nothing of ours but the error type, and numpy only where arrays are meant.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import numpy as np

ANEW = 'remove it and run the command again that made it'
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES, errno.ENOSYS)
LONGEST = 120  # characters of a folder's name
TEMP_SUFFIX = '.part'  # a file with this ending is never read


def write_atomic(path: str | os.PathLike[str], data: bytes) -> Path:
    """Write `data` to `path` so that a reader sees the old file or the whole new one, never a part.

    Args:
      path: the target; missing parent folders are made.
      data: the whole content.

    Returns: the target.

    Raises: RequestError (disk full, quota, no permission, read-only disk) with the path, the bytes needed and what
      to do; nothing is left behind.
    """
    target = Path(path)
    with _replacing(target, len(data)) as temp, open(temp, 'xb') as file:
        file.write(data)
    return target


def write_absent(path: str | os.PathLike[str], data: bytes) -> bool:
    """Write `data` to `path` unless a file is there; of many that try at once, one does.

    Returns: whether this call wrote it.

    Raises: RequestError, as `write_atomic`.
    """
    target = Path(path)
    whole = write_atomic(target.with_name(f'.{secrets.token_hex(8)}{TEMP_SUFFIX}'), data)
    with explained(target, len(data)):
        try:
            _give_name(whole, target)
        except FileExistsError:
            return False
        finally:
            whole.unlink(missing_ok=True)
        sync_dir(target.parent)
    return True


def _give_name(whole: Path, target: Path) -> None:
    """Let a whole file be called `target` too. Raises: FileExistsError where that name is taken."""
    try:
        os.link(whole, target)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
    else:
        return
    os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o666))  # empty for a moment; left so, it counts as damaged
    os.replace(whole, target)


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file.

    Raises: FileNotFoundError; RequestError for a damaged file (with its name, the position and what to do).
    """
    return read_json_text(path)[0]


def read_json_text(path: str | os.PathLike[str]) -> tuple[Any, str]:
    """The content of a JSON file, and its text. Raises: as `read_json`."""
    remedy = f'the file is damaged: {ANEW}'
    source = os.fspath(path)
    try:
        with open(source, 'rb', buffering=0) as file:
            text = file.read().decode('utf-8')
        return json.loads(text, parse_constant=_no_constant, parse_float=_finite), text
    except json.JSONDecodeError as error:
        raise RequestError(f'{source}: line {error.lineno}, column {error.colno}: {error.msg}; {remedy}') from error
    except UnicodeDecodeError as error:
        raise RequestError(f'{source}: byte {error.start} is not UTF-8; {remedy}') from error
    except (ValueError, RecursionError) as error:
        raise RequestError(f'{source}: {error}; {remedy}') from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RequestError(f'cannot read {source}: {error.strerror or error}') from error


def npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Named arrays as an NPZ archive whose bytes depend on the arrays alone: no dates, no compression, no pickle."""
    import numpy as np

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, 'w', zipfile.ZIP_STORED) as file:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(arrays[name]), version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f'{name}.npy', date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            file.writestr(entry, member.getvalue())
    return archive.getvalue()


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """The arrays of an NPZ archive; nothing executable is loaded.

    Raises: FileNotFoundError; RequestError for a damaged archive, or one that would take more memory than its size.
    """
    import numpy as np

    blob = io.BytesIO(Path(path).read_bytes())
    try:
        with zipfile.ZipFile(blob) as archive:
            members = archive.infolist()
            if sum(m.file_size for m in members) > len(blob.getbuffer()):
                raise ValueError('compressed, as npz_bytes never writes, or larger inside than outside')
            arrays = {m.filename.removesuffix('.npy'): io.BytesIO(archive.read(m)) for m in members}
        return {name: np.lib.format.read_array(array, allow_pickle=False) for name, array in arrays.items()}
    except Exception as error:  # whatever zipfile and numpy say of cut and flipped bytes
        raise RequestError(f'{path}: not a whole NPZ archive ({error}); {ANEW}') from error


def sha256_file(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content, as 64 hex digits."""
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Hold the lock file `path` alone; waits while another process (or thread) holds it.

    `waiting` is called twice a second meanwhile; what it raises ends the wait.

    The kernel frees the lock when its holder ends, however it ends, so no lock is ever stale. The file itself stays:
    removing it would let two holders in.
    """
    lock = Path(path)
    with explained(lock, 0):
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        while not _try_lock(descriptor):
            waiting()
            time.sleep(0.5)
        yield
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def publish(temp: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Flush a finished temp file to disk and give it its name, in the same folder. Raises OSError."""
    with open(temp, 'rb') as file:
        os.fsync(file.fileno())
    os.replace(temp, target)
    sync_dir(Path(target).parent)


@contextlib.contextmanager
def _replacing(target: Path, n_bytes: int) -> Iterator[Path]:
    """A temp name beside `target`: what the body writes there takes the target's place; if it raises, nothing stays."""
    temp = target.with_name(f'.{secrets.token_hex(8)}{TEMP_SUFFIX}')  # the same folder: a rename stays on one disk
    with explained(target, n_bytes):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temp
            publish(temp, target)
        finally:
            if os.path.lexists(temp):
                temp.unlink()


def link_or_copy(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> Path:
    """`target` with the content of `source`: a hard link on one disk, else a copy; replaces an old target at once.

    Raises: FileNotFoundError for a missing source; RequestError where the target cannot be written.
    """
    origin, goal = Path(source), Path(target)
    size = origin.stat().st_size
    if goal.exists() and goal.samefile(origin):
        return goal
    with _replacing(goal, size) as temp:
        try:
            os.link(origin, temp)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            shutil.copy(origin, temp)
    return goal


@contextlib.contextmanager
def explained(path: str | os.PathLike[str], n_bytes: int) -> Iterator[None]:
    """Inside: a failed write of `path` (about `n_bytes`), also one that a library tells in words alone, becomes the
    same clear RequestError."""
    try:
        yield
    except RequestError:
        raise
    except OSError as error:
        raise _write_error(Path(path), n_bytes, error) from error
    except (RuntimeError, ValueError) as error:
        number = next((e for e in (*FULL, *_FORBIDDEN) if os.strerror(e) in str(error)), None)
        if number is None:
            raise
        raise _write_error(Path(path), n_bytes, OSError(number, os.strerror(number))) from error


def slug(name: str) -> str:
    """A name as one safe path component, of at most LONGEST characters."""
    return re.sub(r'[^A-Za-z0-9@._-]+', '_', name).lstrip('._')[:LONGEST] or '_'


def make_dir(path: str | os.PathLike[str]) -> Path:
    """Make a folder and its parents. Raises RequestError where that cannot be done."""
    with explained(path, 0):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def sync_dir(path: str | os.PathLike[str]) -> None:
    """Make the names inside a directory (a rename, a new file) survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # network and FUSE disks that cannot sync a directory
            raise
    finally:
        os.close(descriptor)


def _write_error(path: Path, n_bytes: int, error: OSError) -> RequestError:
    """The one message of a failed write: what, where, how much, what to do."""
    reason, needed = error.strerror or str(error), ''
    if error.errno in FULL:
        remedy, needed = 'free space there, or choose another folder', f' ({n_bytes} bytes needed)'
    elif error.errno in _FORBIDDEN:
        remedy = 'give this user the right to write there, or choose another folder'
    else:
        remedy = 'choose another folder'
    return RequestError(f'cannot write {path}{needed}: {reason}; {remedy}, then run again')


def _no_constant(name: str) -> float:
    raise ValueError(f'{name} is not JSON')


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f'{text} is not a finite number')
    return value
