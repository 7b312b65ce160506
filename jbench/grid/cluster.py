"""Jobs on any Dask cluster: one started here, one that runs somewhere, or what a Python file makes, by one path.

Dask places, watches its workers, and starts a job anew whose worker was lost. It promises neither once nor at least
once; that a cell is computed once, its lock and its result files see to.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import re
import secrets
import time
import warnings
from collections.abc import Iterator, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, build_opener

from jbench import files
from jbench.data.prepare.workers import free_memory
from jbench.grid import engine, local, worker
from jbench.grid.engine import Grid, Outcome
from jbench.grid.futures import Futures, Offer
from jbench.grid.job import Job
from jbench.plan import user_files
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.stores import mirror
from jbench.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER = 15.0  # s within which a scheduler answers
PATIENCE = 2.0  # s after which it is said that a worker is waited for
LOOK = 0.005  # s between looks at the first worker
PAGE, NO_BOKEH = 1000, b'Dask needs'  # bytes read of a dashboard, and what it says in them where it is none
QUIET = {  # by default the clocks and samples of Dask take 2 to 4 % of a core in each process, jobs or none
    'distributed.admin.tick.interval': '500ms',
    'distributed.admin.system-monitor.interval': '5s',
    'distributed.worker.profile.enabled': False,
}
EXAMPLES = 'tcp://HOST:8786, local:4, or a Python file with get() as configs/slurm_cluster.py'


def run(jobs: Sequence[Job], address: str, grid: Grid) -> Outcome:
    """Run jobs to their end on a Dask cluster, as `engine.run`.

    Args:
        jobs: what runs; what they need is looked for first.
        address: of a scheduler; `local:N`, N workers on this machine; or a Python file whose get() gives a cluster.
        grid: folders, progress, signals, and what is finished already.

    Raises: RequestError where nothing answers, a file gives no cluster, Dask is not installed, or the workers lack what
    jobs need (this jbench, the work folder, devices); KeyboardInterrupt for a signal before a worker is there.
    """
    with place(address, jobs, grid) as futures:
        return engine.run(jobs, futures, grid)


@contextlib.contextmanager
def place(address: str, jobs: Sequence[Job], grid: Grid) -> Iterator[Futures]:
    """A Dask cluster as the place where jobs run; arguments and errors as of `run`."""
    device = next((a.partition('=')[2] for job in jobs for a in job.argv if a.startswith('--device=')), None)
    with _client(address) as client:
        if dashboard := _dashboard(client):
            grid.progress.say(f'--cluster={address}: what it does is shown at {dashboard}')
        _first_worker(client, address, grid)
        offer = _offer(client)
        if address.startswith('local:'):
            each = max((job.devices for job in jobs), default=1)
            slots = local.slots(address.removeprefix('local:'), local.accelerators(device), each)
            seen = tuple(s.environment for s in slots if s.trains and s.environment)
            offer = offer._replace(environments=seen, shared=free_memory())
        else:
            check_resources(jobs, offer, address, device)
        futures = Futures(client, offer, grid)
        try:
            yield futures
        finally:
            futures.close()


@contextlib.contextmanager
def _client(address: str) -> Iterator[Client]:
    """A client of a cluster; a cluster that was made here ends with it. Raises: RequestError."""
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError:
        raise MissingExtraError('distributed', 'cluster', f'--cluster={address}') from None
    for name in ('distributed', 'distributed.client'):  # each has a level of its own; what is lost we say in our words
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    with contextlib.ExitStack() as stack:
        # see worker.undo_environment
        stack.enter_context(dask.config.set({'distributed.nanny.pre-spawn-environ': {}}))
        at: Any = address
        if address.startswith('local:'):
            stack.enter_context(dask.config.set(QUIET))
            at = stack.enter_context(_local(address))
        elif address.endswith('.py'):
            at = _made(address)
            if hasattr(at, 'close'):
                stack.callback(at.close)
        try:
            client = _connected(at)
        except (OSError, ValueError, TypeError, TimeoutError, ImportError, AssertionError) as error:
            # AssertionError: the thread of its loop did not start within Dask's ten seconds
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            if reason.startswith('invalid literal for int'):
                reason = 'its port is no number'
            raise RequestError(
                f'--cluster={address}: no Dask scheduler answers there ({reason}); expected {EXAMPLES}'
            ) from error
        yield stack.enter_context(client)


def _connected(at: Any) -> Client:
    """A client of a cluster or of an address, which is closed if it does not come up.

    Dask itself closes it for some errors alone. One that is left half open may block the next for ever, when it is
    freed while that one starts.
    """
    from distributed import Client

    client = Client.__new__(Client)
    try:
        Client.__init__(client, at, timeout=ANSWER, set_as_default=False)
    except BaseException:
        with contextlib.suppress(Exception):
            client.close()
        raise
    return client


def _local(address: str) -> Any:
    """Workers on this machine, each a process for one job at a time. Raises: RequestError."""
    from distributed import LocalCluster

    number = address.removeprefix('local:')
    if not re.fullmatch(r'[1-9][0-9]{0,3}', number):
        raise RequestError(f'--cluster={address}: expected local:N, N workers on this machine, as local:4')
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Port .* is already in use')  # another is taken, and said
        return LocalCluster(
            n_workers=int(number),
            threads_per_worker=1,
            dashboard_address='127.0.0.1:8787',
            silence_logs=logging.CRITICAL,
            preload=worker.__name__,
        )


def _made(path: str) -> Any:
    """What get() of a Python file gives: a cluster of Dask, or the address of one. Raises: RequestError."""
    get = user_files.names_in('--cluster', path).get('get')
    if not callable(get):
        raise RequestError(
            f'--cluster={path}: expected a function get() that returns a Dask cluster; see configs/slurm_cluster.py'
        )
    try:
        made = get()
    except (Exception, SystemExit) as error:  # the user's own code
        raise RequestError(f'--cluster={path}: get(): {type(error).__name__}: {error}') from error
    if not isinstance(made, str) and not hasattr(made, 'scheduler_address'):
        raise RequestError(f'--cluster={path}: get() returns {made!r}, which is no Dask cluster and no address of one')
    return made


def _dashboard(client: Client) -> str:
    """Where a page shows what a cluster does; '' where its scheduler has none, lacks bokeh, or does not answer here."""
    try:
        link = client.dashboard_link or ''
        with build_opener(ProxyHandler({})).open(link, timeout=PATIENCE) as page:
            found = page.read(PAGE)
    except (KeyError, OSError, ValueError, HTTPException):
        return ''
    return '' if NO_BOKEH in found else link


def _first_worker(client: Client, address: str, grid: Grid) -> None:
    """Wait for a worker, and see that all that are there run this jbench and see the work folder.

    Raises: RequestError where one does not; KeyboardInterrupt where a signal ends the wait.
    """
    workdir = grid.workdir.absolute()
    mark = files.make_dir(workdir / 'logs') / f'.{secrets.token_hex(8)}.seen'
    store, name, place = mirror.of(workdir), f'logs/{mark.name}', mirror.name(workdir)  # as a worker calls it
    files.write_atomic(mark, b'')
    try:
        mirror.take(workdir, [mark])
        # a cluster that grows with its queue has no worker before; one without jbench never answers to its functions
        able = client.submit(importlib.import_module, worker.__name__, pure=False)
        _wait(able, address, grid)
        if able.status == 'error':
            raise able.exception()
        first = client.submit(worker.look, f'{place}/{name}', pure=False)
        _wait(first, address, grid)
        found = {'': first.result(), **client.run(worker.look, f'{place}/{name}', on_error='ignore')}
    except ImportError as error:
        raise RequestError(
            f'--cluster={address}: a worker cannot import what it needs ({error}); install jbench {__version__} with '
            'the extra cluster where the workers run'
        ) from error
    finally:
        mark.unlink(missing_ok=True)
        if store:
            with contextlib.suppress(RequestError):  # it is empty, and nothing looks at it
                store.remove([name])
    for sight in found.values():
        if sight.jbench != __version__:
            raise RequestError(
                f'--cluster={address}: the worker on {sight.host} has jbench {sight.jbench}, here it is {__version__}; '
                'install the same'
            )
        if not sight.sees:
            needed = 'its environment must name the same server and account, with credentials (docs/stores.md)'
            if not store:
                needed = '--workdir must name a folder that all machines share, under one path'
            why = f' ({sight.why})' if sight.why else ''
            raise RequestError(f'--cluster={address}: the worker on {sight.host} does not see {place}{why}; {needed}')


def _wait(first: Future, address: str, grid: Grid) -> None:
    """Wait for the first future. Raises: KeyboardInterrupt where a signal ends that."""
    until = time.monotonic() + PATIENCE
    while not first.done():
        if grid.stop():
            raise KeyboardInterrupt
        if time.monotonic() > until:
            until = float('inf')
            grid.progress.say(f'--cluster={address}: waiting for a worker ...')
        time.sleep(LOOK)


def _offer(client: Client) -> Offer:
    """What the workers have that are there now."""
    workers = client.scheduler_info(n_workers=-1)['workers'].values()
    most = {name: max((w['resources'].get(name, 0) for w in workers), default=0) for name in ('GPU', 'MEMORY')}
    return Offer(max(1, sum(w['nthreads'] for w in workers)), int(most['GPU']), int(most['MEMORY']))


def check_resources(jobs: Sequence[Job], offer: Offer, address: str, device: str | None) -> None:
    """Dask lets a task wait for ever whose resources no worker has. Raises: RequestError, in its place."""
    wanted = max((job.devices for job in jobs), default=0)
    how = 'dask worker ... --resources "GPU=1"'
    if not offer.devices and device == 'gpu':
        raise RequestError(
            f'--cluster={address} --device=gpu: no worker offers the resource GPU; start workers with it ({how}), or '
            'leave --device out'
        )
    if wanted > max(1, offer.devices):
        raise RequestError(
            f'--cluster={address}: a job needs {wanted} GPUs, and no worker offers more than {offer.devices} ({how})'
        )
