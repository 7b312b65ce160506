"""A folder in an object store, through fsspec: list, read, write, write if absent, remove; faults that pass are waited
for, others are one clear error, without credentials."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jbench import files
from jbench.progress import say
from jbench.spec.errors import RequestError
from jbench.stores.address import Address
from jbench.stores.faults import DamagedError, passing, status, told

Value = TypeVar('Value')
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # s before each further try
TOLD = 4.0  # s of waiting that need a word
AT_ONCE = 8  # transfers
EVERY = 0.5  # s between looks at what stops the work
MARK = 271_828_000  # ns after a full second, in the times of copies
PROOF = '.written_once'  # a file by which a store shows that it refuses a second writer
HOW = {
    's3': 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of the machine',
    'gs': 'GOOGLE_APPLICATION_CREDENTIALS, gcloud auth, or the role of the machine',
    'az': 'AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_CONNECTION_STRING',
}
OPTIONS: dict[str, dict[str, Any]] = {  # of the file systems; the tries are ours, alike for all
    's3': {'config_kwargs': {'retries': {'mode': 'standard', 'total_max_attempts': 1}}},
}


class Facts(NamedTuple):
    """What a listing says of a file."""

    size: int  # bytes
    time: int  # s since 1970, of its last change; 0: not known

    def mark(self, path: Path) -> None:
        """Let the file at `path` be known as a copy of this one, by its size and a time that no other file has."""
        os.utime(path, ns=(self._mark, self._mark))

    def same(self, path: Path) -> bool:
        """Whether the file at `path` is a copy of this one."""
        try:
            found = path.stat()
        except OSError:
            return False
        return found.st_size == self.size and found.st_mtime_ns == self._mark and self.time != 0

    @property
    def _mark(self) -> int:
        return self.time * 10**9 + MARK


def marked(path: Path) -> bool:
    """Whether the file at `path` is as it came from a store, or went there: of this or an earlier content."""
    try:
        return path.stat().st_mtime_ns % 10**9 == MARK
    except OSError:
        return False


class Remote:
    """A folder in an object store. Names are relative to it. All its methods raise RequestError where the store does
    not answer, or refuses."""

    def __init__(self, address: Address) -> None:
        self.url, self._address = address.url, address
        self._found = self._proven = False
        self._lock, self._made = threading.Lock(), None

    @property
    def _fs(self) -> Any:
        with self._lock:
            self._made = self._made or self._make()
        return self._made

    def _make(self) -> Any:
        import fsspec

        logging.getLogger('gcsfs').setLevel(logging.CRITICAL)  # which prints the traceback of every try
        protocol = self._address.protocol
        return fsspec.filesystem(
            protocol, skip_instance_cache=True, use_listings_cache=False, **OPTIONS.get(protocol, {})
        )

    def _path(self, name: str) -> str:
        return f'{self._address.path}/{name}'.rstrip('/')

    def list(self, folder: str = '') -> dict[str, Facts]:
        """Every file below a folder, by its name; {} where there is none. Raises: RequestError where the bucket itself
        is not there."""

        def look() -> dict[str, Any]:
            self._fs.invalidate_cache()
            found: dict[str, Any] = self._fs.find(self._path(folder), detail=True)
            if not found and not self._found and not self._fs.exists(self._address.path.partition('/')[0]):
                raise FileNotFoundError(self._address.path)
            self._found = True
            return found

        start = len(self._address.path) + 1
        try:
            found = self._tried(look, folder)
        except FileNotFoundError:
            raise self._no_bucket() from None
        return {
            name[start:]: Facts(int(facts['size']), _time(facts))
            for path, facts in found.items()
            if facts['type'] == 'file' and (name := path.lstrip('/')) and not name.endswith('/')
        }

    def read(self, name: str) -> bytes | None:
        """The content of a small file; None where it is not there."""
        try:
            return bytes(self._tried(lambda: self._fs.cat_file(self._path(name)), name))
        except FileNotFoundError:
            return None

    def fetch(self, name: str, target: Path, facts: Facts, sha256: str = '') -> None:
        """A file as `target`, which is whole or as it was before. Raises: RequestError for another size or digest than
        expected, too."""

        def bring() -> None:
            whole = files.make_dir(target.parent) / f'.{secrets.token_hex(8)}{files.TEMP_SUFFIX}'
            try:
                self._get(name, whole, target, facts.size)
                if whole.stat().st_size != facts.size:
                    raise EOFError(f'{whole.stat().st_size} of {facts.size} bytes came')
                if sha256 and (found := files.sha256_file(whole)) != sha256:
                    raise DamagedError(f'expected SHA-256 {sha256}, found {found}')
                facts.mark(whole)
                with files.explained(target, facts.size):
                    files.publish(whole, target)
            finally:
                whole.unlink(missing_ok=True)

        try:
            self._tried(bring, name)
        except FileNotFoundError:
            raise RequestError(f'{self.url}/{name}: it was removed from the store meanwhile; run again') from None

    def _get(self, name: str, whole: Path, target: Path, size: int) -> None:
        try:
            self._fs.get_file(self._path(name), str(whole))
        except OSError as error:
            if error.errno not in files.FULL:
                raise
            with files.explained(target, size):  # our disk, not the store
                raise

    def write(self, name: str, source: bytes | Path) -> None:
        """Put a file there, in the place of what was there."""
        there = self._path(name)
        try:
            if isinstance(source, Path):
                self._tried(lambda: self._fs.put_file(str(source), there), name)
            else:
                self._tried(lambda: self._fs.pipe_file(there, source), name)
        except FileNotFoundError:
            raise self._no_bucket() from None

    def write_absent(self, name: str, content: bytes) -> bool:
        """Put a small file there unless there is one; of many that try at once, one does: the stores of
        `address.PACKAGES` decide that themselves.

        Returns: whether the content there is the given one.
        """
        if not self._proven:
            self._prove()
        return self._created(name, content) or self.read(name) == content  # or a try of ours whose answer was lost

    def _created(self, name: str, content: bytes) -> bool:
        try:
            self._tried(lambda: self._fs.pipe_file(self._path(name), content, mode='create'), name)
        except FileExistsError:
            return False
        except FileNotFoundError:
            raise self._no_bucket() from None
        return True

    def _prove(self) -> None:
        """Raises: RequestError where the store lets a second writer through, as some that speak S3 do."""
        if self._created(PROOF, b'once') and self._created(PROOF, b'twice'):
            self.remove([PROOF])
            raise RequestError(
                f'{self.url}: this store lets a file be written twice that may be written once (it ignores '
                'If-None-Match), so that two runs could mix their results; use another one, or a newer version of it'
            )
        self._proven = True

    def facts(self, name: str) -> Facts | None:
        """What a listing says of one file; None where it is not there."""

        def look() -> Facts:
            self._fs.invalidate_cache()
            found = self._fs.info(self._path(name))
            return Facts(int(found['size'] or 0), _time(found))

        try:
            return self._tried(look, name)
        except FileNotFoundError:
            return None

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there need not be."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._tried(functools.partial(self._fs.rm_file, self._path(name)), name)

    def _tried(self, call: Callable[[], Value], name: str) -> Value:
        """What a call gives, tried again while its faults may pass. Raises: FileNotFoundError, FileExistsError;
        RequestError for all other faults."""
        for pause in (*WAITS, None):
            try:
                return call()
            except (RequestError, FileNotFoundError, FileExistsError):
                raise
            except Exception as error:  # each store has errors of its own
                if status(error) == 412:
                    raise FileExistsError(name) from None
                if status(error) == 404:  # which adlfs passes on as Azure says it
                    raise FileNotFoundError(name) from None
                reason = told(error)
                if pause is None or not passing(error):
                    raise self._refusal(error, name, reason) from None
            if pause >= TOLD:
                say(f'{self.url}/{name}: {reason}; again in {pause:g} s')
            time.sleep(pause)
        raise AssertionError

    def _no_bucket(self) -> RequestError:
        bucket = self._address.path.partition('/')[0]
        return RequestError(f'{self.url}: these credentials see no bucket {bucket!r}; make it, or name another')

    def _refusal(self, error: Exception, name: str, reason: str) -> RequestError:
        """A fault in words."""
        if isinstance(error, DamagedError):
            remedy = 'what lies there is damaged: remove it, then run the same command again'
        elif 'Credential' in type(error).__name__ or 'credential' in reason.lower():
            reason, remedy = f'no credentials ({reason})', f'the environment gives them: {HOW[self._address.protocol]}'
        elif isinstance(error, PermissionError) or status(error) in (401, 403):
            reason = f'refused ({reason})'
            remedy = 'these credentials need the right to list, read, write and remove there'
        elif not passing(error):
            remedy = 'look at the address and at the settings of the store (docs/stores.md)'
        else:
            reason = f'no answer after {len(WAITS) + 1} tries ({reason})'
            remedy = 'what was done is kept on this machine: run the same command again'
        return RequestError(f'{self.url}/{name}'.rstrip('/') + f': {reason}; {remedy}')


def at_once(calls: Sequence[Callable[[], object]], report: Callable[[int], object] = lambda done: None) -> None:
    """Make calls beside each other. `report` is called with how many are done, twice a second; what it raises ends the
    work, as what a call raises does."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        waiting: set[Future[object]] = {pool.submit(call) for call in calls}
        try:
            while waiting:
                done, waiting = wait(waiting, EVERY, FIRST_COMPLETED)
                for future in done:
                    future.result()
                report(len(calls) - len(waiting))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _time(facts: dict[str, Any]) -> int:
    """When a file was changed, as the three file systems say it: s since 1970."""
    for name in ('LastModified', 'last_modified', 'mtime', 'updated', 'created'):
        found: Any = facts.get(name)
        if hasattr(found, 'timestamp'):
            return int(found.timestamp())
        if isinstance(found, int | float):
            return int(found)
        if isinstance(found, str):
            from datetime import datetime

            return int(datetime.fromisoformat(found).timestamp())
    return 0


@functools.cache
def opened(url: str, process: int) -> Remote:
    """The folder of an address, once in a process."""
    protocol, _, path = url.partition('://')
    return Remote(Address(protocol, path))
