"""What is done of a plan, from the files of the work folder alone, whoever runs it."""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jbench import files
from jbench.data.prepare import build_set
from jbench.grid import plan
from jbench.grid.plan import Kept
from jbench.plan import cell_file
from jbench.report.text import WIDTH, as_json, listed, table
from jbench.results import ends
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.stores import mirror, notes, results

MANY = 40  # cells: more are shown as tasks by models
NAMED = 10  # failed cells that are named then
STATES = ('done', 'running', 'failed', 'missing')
SETS = ('ready', *STATES[1:])


class Wanted(NamedTuple):
    """A cell of a plan."""

    task: str  # with its version
    dataset: str
    model: str
    key: str
    seeds: tuple[int, ...]


class State(NamedTuple):
    """How far a cell is: its seeds, each in one of these."""

    task: str
    dataset: str
    model: str
    key: str
    done: tuple[int, ...]
    running: tuple[int, ...]  # a process holds the lock of the cell, or the store says so
    failed: tuple[int, ...]  # a result says so, or an error was kept
    missing: tuple[int, ...]


class SetState(NamedTuple):
    """How far a prepared set is that a plan asks for."""

    dataset: str
    task: str  # with its version; others may share the set
    folder: str
    state: str  # of SETS
    error: str  # where it is kept, or why nothing is known; '' for neither


def of_cells(cells: Iterable[Cell], seeds: Sequence[int]) -> list[Wanted]:
    """What a request asks for."""
    return [
        Wanted(f'{c.task.full_name}@{c.task.version}', c.dataset.name, c.model.full_name, c.key, tuple(seeds))
        for c in cells
    ]


def of_plans(plans: Iterable[Kept]) -> list[Wanted]:
    """What plans ask for together; a cell of several has the seeds of all."""
    found: dict[str, Wanted] = {}
    for kept in plans:
        for job, facts in zip(kept.jobs, kept.facts, strict=True):
            if facts['model']:
                before = found[job.key].seeds if job.key in found else ()
                found[job.key] = Wanted(**facts, key=job.key, seeds=tuple(dict.fromkeys((*before, *kept.seeds))))
    return sorted(found.values())


def look(wanted: Sequence[Wanted], workdir: Path, elsewhere: Collection[str] = ()) -> tuple[list[State], list[str]]:
    """How far cells are, and what is wrong with results that do not count, in words. Nothing is written.

    Args:
        wanted: the cells.
        workdir: where their results lie.
        elsewhere: keys of cells that run on other machines.
    """
    homes = {w.key: home(w, workdir) for w in wanted}
    places = {os.fspath(h) for h in homes.values() if h.is_dir()}
    everything = os.fspath(workdir / 'results')
    found = ends.scan([everything] if len(places) > MANY else sorted(places))
    damaged = [f'{e.path}: {e.damaged}' for e in found if e.damaged and os.path.dirname(e.path) in places]
    known = {(e.key, e.seed): 'failed' if e.failed else 'done' for e in found if not e.damaged}
    return [_state(w, homes[w.key], known, workdir, w.key in elsewhere) for w in wanted], damaged


def everywhere(wanted: Sequence[Wanted], workdir: Path) -> tuple[list[State], list[str]]:
    """As `look`; of the copy of a store, once it has what all machines put there. Raises: RequestError."""
    homes = [home(w, workdir) for w in wanted]
    if len(homes) > MANY:  # a listing for each task on its dataset
        homes = sorted({h.parent.parent for h in homes})
    results.bring(workdir, homes, suffixes=('.json',))
    notes.bring(workdir, [w.key for w in wanted])
    return look(wanted, workdir, notes.now_running(workdir))


def of_sets(plans: Iterable[Kept], workdir: Path) -> list[SetState]:
    """How far the sets are that plans ask for, from the work folder, or its copy once it has what the store knows of
    them; a set whose cell cannot be read is missing, with the reason."""
    found: dict[str, list[str]] = {}  # keys of a cell, of the job, and of those of further plans
    for job in (job for kept in plans for job in kept.jobs):
        for name, key in zip(job.sets, plan.cells_of(job), strict=False):
            found.setdefault(name, []).extend((key, job.key))
    names = {f'cells/{keys[0]}.json' for keys in found.values()}
    if found:
        mirror.bring(workdir, 'cells', wanted=lambda name: name in names)
        notes.bring(workdir, [key for keys in found.values() for key in keys])
    states = []
    for name, keys in found.items():
        try:
            cell = cell_file.read(os.fspath(plan.cell_path(workdir, keys[0])))
        except RequestError as error:  # a file of the user's own that is gone, say
            dataset, _, folder = name.partition('/')
            states.append(SetState(dataset, '-', folder, 'missing', str(error)))
        else:
            states.append(_set_state(cell, workdir / 'prepared' / name, workdir, keys))
    return sorted(states)


def home(wanted: Wanted, workdir: Path) -> Path:
    """The folder of the results of a cell, as `result_file.result_dir` has it."""
    return Path(workdir, 'results', *map(files.slug, (wanted.task, wanted.dataset, wanted.model)), wanted.key)


def held(lock: Path) -> bool:
    """Whether a process holds a lock file; the look takes a share of it for a moment, and whoever waits comes later."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a disk without locks
        return False
    finally:
        os.close(descriptor)
    return False


def show(
    states: Sequence[State],
    damaged: Sequence[str],
    workdir: Path,
    form: str,
    *,
    sets: Sequence[SetState] = (),
    verbose: bool = False,
) -> str:
    """How far cells and sets are, as text or JSON. Of more than MANY not one by one, unless `verbose`."""
    n = {state: sum(len(getattr(s, state)) for s in states) for state in STATES}
    total, whole = sum(n.values()), sum(not (s.running or s.failed or s.missing) for s in states)
    if form == 'json':
        facts = {'workdir': str(workdir), 'seeds': n, 'coverage': n['done'] / max(1, total), 'cells_done': whole}
        facts |= {'damaged': list(damaged), 'cells': [s._asdict() for s in states]}
        return as_json({**facts, 'sets': [s._asdict() for s in sets]})
    parts = ', '.join(f'{n[state]} {state}' for state in STATES[1:])
    head = f'{n["done"]} of {total} seeds done ({100 * n["done"] // max(1, total)} %), {parts}; '
    head += f'{whole} of {len(states)} cells whole'
    heads = [*([head] if states or not sets else []), *([_count(sets)] if sets else [])]
    heads[0] += f'; in {workdir}'
    lines = [*heads, *(f'damaged: {text}' for text in damaged)]
    if sets:
        lines += ['', _each_set(sets, verbose)]
    if states or not sets:
        lines += ['', *_cells(states, workdir, verbose)]
    if len(states) > MANY and not verbose:
        lines += ['', 'every cell: --status --verbose']
    return '\n'.join(lines)


def _count(sets: Sequence[SetState]) -> str:
    """How many sets are in which state."""
    n = Counter(s.state for s in sets)
    return f'{n[SETS[0]]} of {len(sets)} sets {SETS[0]}, ' + ', '.join(f'{n[state]} {state}' for state in SETS[1:])


def _each_set(sets: Sequence[SetState], verbose: bool) -> str:
    """A table with a line for each set; of more than MANY for those that are not ready, unless `verbose`."""
    shown = [s for s in sets if len(sets) <= MANY or verbose or s.state != SETS[0]]
    rows = [(s.dataset, s.task, s.folder, f'{s.state}: {s.error}' if s.error else s.state) for s in shown]
    return table(('dataset', 'task', 'set', 'state'), rows)


def _cells(states: Sequence[State], workdir: Path, verbose: bool) -> list[str]:
    """Lines on cells: on each, or of more than MANY on tasks by models, unless `verbose`."""
    if len(states) <= MANY or verbose:
        rows: list[tuple[Any, ...]] = [
            (s.task, s.dataset, s.model, *(listed(getattr(s, state)) for state in STATES)) for s in states
        ]
        return [table(('task', 'dataset', 'model', *STATES), rows)]
    failed = [f'{s.task}/{s.dataset} {s.model}: {notes.error_of(workdir, s.key)}' for s in states if s.failed]
    more = [f'and {len(failed) - NAMED} more'] if len(failed) > NAMED else []
    told = ['', 'failed:', *failed[:NAMED], *more] if failed else []
    blocks = [line for block in _matrix(states) for line in (block, '')]
    return [_by_task(states), '', f'seeds {"/".join(STATES)}:', *blocks[:-1], *told]


def _by_task(states: Iterable[State]) -> str:
    """A table with a line for each task on its dataset: how many cells and seeds."""
    groups: dict[tuple[str, str], list[State]] = {}
    for s in states:
        groups.setdefault((s.task, s.dataset), []).append(s)
    rows = [
        (*names, len(mine), *(sum(len(getattr(s, state)) for s in mine) for state in STATES))
        for names, mine in groups.items()
    ]
    return table(('task', 'dataset', 'models', *(f'seeds {state}' for state in STATES)), rows)


def _matrix(states: Iterable[State]) -> list[str]:
    """Tables of tasks by models, as many models beside each other as fit: how many seeds of each are in which state."""
    rows: dict[tuple[str, str], dict[str, list[int]]] = {}
    for s in states:
        sums = rows.setdefault((s.task, s.dataset), {}).setdefault(s.model, [0] * len(STATES))
        sums[:] = [n + len(getattr(s, state)) for n, state in zip(sums, STATES, strict=True)]
    texts = {names: {m: '/'.join(map(str, sums)) for m, sums in row.items()} for names, row in rows.items()}
    room = WIDTH - sum(2 + max(len(names[k]) for names in texts) for k in range(2)) if texts else 0
    blocks, used = list[list[str]](), WIDTH
    for model in dict.fromkeys(m for row in texts.values() for m in row):
        wide = 2 + max(len(model), *(len(row.get(model, '')) for row in texts.values()))
        if used + wide > room:
            blocks, used = [*blocks, []], 0
        blocks[-1].append(model)
        used += wide
    return [
        table(('task', 'dataset', *block), [(*names, *(row.get(m) for m in block)) for names, row in texts.items()])
        for block in blocks
    ]


def _state(wanted: Wanted, place: Path, ends: dict[tuple[str, int], str], workdir: Path, elsewhere: bool) -> State:
    """How far one cell is; `elsewhere`: it runs on another machine."""
    left = [seed for seed in wanted.seeds if ends.get((wanted.key, seed)) != 'done']
    done = tuple(seed for seed in wanted.seeds if seed not in left)
    failed = tuple(seed for seed in left if (wanted.key, seed) in ends)
    if left and (elsewhere or held(place / '.lock')):
        return State(*wanted[:4], done, tuple(left), (), ())
    if left and notes.error_of(workdir, wanted.key).exists():
        failed = tuple(left)
    return State(*wanted[:4], done, (), failed, tuple(seed for seed in left if seed not in failed))


def _set_state(cell: Cell, folder: Path, workdir: Path, keys: Iterable[str]) -> SetState:
    """How far the prepared set of a cell is; `keys`: of what may have kept an error."""
    errors = [os.fspath(log) for key in keys if (log := notes.error_of(workdir, key)).exists()]
    if plan.is_ready(cell, folder, workdir):
        state = 'ready'
    elif held(build_set.lock_of(cell.task, cell.dataset, folder)):
        state = 'running'
    else:
        state = 'failed' if errors else 'missing'
    task = f'{cell.task.full_name}@{cell.task.version}'
    return SetState(cell.dataset.name, task, folder.name, state, errors[0] if state == 'failed' else '')


def require(plans: Sequence[Kept], workdir: Path) -> Sequence[Kept]:
    """The same. Raises: RequestError for none."""
    if not plans:
        raise RequestError(f'no plan under {workdir}/plans; --status --task=... --model=... says what is asked for')
    return plans
