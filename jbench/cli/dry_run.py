"""What a request would run: `--dry_run`. Nothing is prepared, trained or written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.report.text import as_json, folded, listed, shown, table
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json
from jbench.spec.model import Signal
from jbench.spec.overrides import override

if TYPE_CHECKING:
    from jbench.data.prepare.header import ReadHead
    from jbench.data.recording import RecordingRef
    from jbench.models.model import Model
    from jbench.plan.weights import Published

Facts = dict[str, Any]
FEW = 8  # cells that are listed one by one; of more a line for each task says enough
SETS = 24  # prepared sets that have a line each
VALUE = 2  # bytes that a prepared set takes for a value of a window
MORE = 'every cell: --dry_run --verbose'


def show(
    plans: Sequence[Facts],
    stages: Sequence[str],
    workdir: Path,
    form: str = 'table',
    *,
    verbose: bool = False,
    checkpoints: Sequence[Published] = (),
) -> str:
    """The plan: what each cell stands on, which of its seeds are finished, and what is measured about it so far. Of
    more than FEW cells a line for each task and dataset.

    Args:
        plans: of `plan_cell`.
        stages: that would run.
        workdir: where they would write.
        form: 'table' or 'json'; the JSON holds each cell as `--cell` takes it.
        verbose: every cell, however many there are.
        checkpoints: published weights that cells start from.
    """
    known = [p['weights_bytes'] for p in plans if p['weights_bytes'] is not None]
    total = sum(known) if len(known) == len(plans) else None
    if form == 'json':
        facts = {'workdir': str(workdir), 'stages': list(stages), 'weights_bytes': total, 'cells': list(plans)}
        facts |= {'checkpoints': [c._asdict() for c in checkpoints], 'prepared_sets': _sets(plans)}
        return as_json(facts)
    todo = sum(len(p['seeds']) - len(p['finished']) for p in plans if not p['refused'])
    sets = {p['prepared_set']: p['bytes'] for p in plans}
    head = f'plan: {len(plans)} cells, {todo} seeds to run, stages {listed(stages)}, into {workdir}; '
    head += f'prepared sets: {len(sets)}, {sum(b is None for b in sets.values())} of them to be made; '
    head += f'weights to be kept: {sum(known)} bytes'
    head += f', and those of {len(plans) - len(known)} cells' if total is None else ''
    refused = [f'refused: {p["cell"]}: {p["refused"]}' for p in plans if p['refused']]
    head += f'; refused: {len(refused)} cells' if refused else ''
    head = '\n'.join([head, *(c.line for c in checkpoints)])
    if len(plans) > FEW and not verbose:
        more = [f'... and {len(refused) - FEW} more: --dry_run --verbose'] if len(refused) > FEW else []
        return '\n\n'.join(filter(None, [head, _summary(plans), _set_lines(plans), *refused[:FEW], *more, MORE]))
    cells = map(folded, map(_filled, plans))
    return '\n\n'.join(filter(None, [head, _set_lines(plans, verbose=verbose), *cells]))


def _filled(plan: Facts) -> Facts:
    """The facts of a cell for a reader: words in the place of what is not known, without what is for programs alone, or
    says nothing of this cell."""
    words = {'windows': 'not prepared', 'seconds_to_go': 'not measured', 'finished': 'none'}
    words['bytes'] = 'not prepared'
    if plan['bytes_expected'] is not None:
        words['bytes'] += f'; about {_amount(plan["bytes_expected"])} then'
    words['weights_bytes'] = 'known once data are prepared (of a file of yours: once it ran)'
    hidden = ('config', 'bytes_expected', *(name for name in ('channels', 'weights', 'refused') if not plan[name]))
    return {k: words.get(k) if v in (None, []) else v for k, v in plan.items() if k not in hidden}


def _sets(plans: Sequence[Facts]) -> list[Facts]:
    """Of each prepared set its size in bytes, known or expected, and the models that read it."""
    out: dict[str, Facts] = {}
    for p in plans:
        same = {k: p[k] for k in ('bytes', 'bytes_expected')}
        one = out.setdefault(p['prepared_set'], {'name': p['prepared_set'], **same, 'tasks': [], 'models': []})
        task, _, model = p['cell'].rpartition(' ')
        for names, name in ((one['tasks'], task.partition('/')[0]), (one['models'], model)):
            names += [name] * (name not in names)
    return list(out.values())


def _set_lines(plans: Sequence[Facts], *, verbose: bool = False) -> str:
    """A table with a line for each prepared set; of many what they take together."""
    found = [s for s in _sets(plans) if s['name']]
    if len(found) > SETS and not verbose:
        known = [s['bytes'] or s['bytes_expected'] or 0 for s in found]
        return f'{len(found)} prepared sets take about {_amount(sum(known))}; a line for each: --dry_run --verbose'
    lines = [(s['name'], _size(s), listed(s['tasks']), listed(s['models'])) for s in found]
    return table(('prepared set', 'size', 'tasks', 'models'), lines) if lines else ''


def _size(one: Facts) -> str:
    if one['bytes'] is not None:
        return _amount(one['bytes'])
    return 'to be made' if one['bytes_expected'] is None else f'to be made, about {_amount(one["bytes_expected"])}'


def _amount(n_bytes: float) -> str:
    return f'{n_bytes / 1e9:.1f} GB' if n_bytes >= 1e9 else f'{n_bytes / 1e6:.1f} MB'


def _summary(plans: Sequence[Facts]) -> str:
    """A table with a line for each task on its dataset."""
    groups: dict[str, list[Facts]] = {}
    for plan in plans:
        groups.setdefault(plan['cell'].rpartition(' ')[0], []).append(plan)
    lines = []
    for name, cells in groups.items():
        task, _, dataset = name.rpartition('/')
        done = sum(len(p['finished']) for p in cells)
        todo = sum(len(p['seeds']) - len(p['finished']) for p in cells if not p['refused'])
        windows = 'not prepared' if cells[0]['windows'] is None else cells[0]['windows']
        lines.append((task, dataset, cells[0]['data'], cells[0]['recordings'], windows, len(cells), todo, done))
    return table(('task', 'dataset', 'data', 'recordings', 'windows', 'models', 'seeds to run', 'finished'), lines)


def plan_cell(
    cell: Cell,
    seeds: Sequence[int],
    data_dir: Path | None,
    workdir: Path,
    *,
    again: bool = False,
    keep_weights: bool = True,
    look: ReadHead | None = None,
) -> Facts:
    """One cell: prepared or not, which seeds are finished, how long the others take if they take as long, and whether
    it will be refused.

    Args:
        cell: what would run.
        seeds: of the model.
        data_dir, workdir: where recordings and results lie.
        again: finished seeds run again, too.
        keep_weights: those of tested networks stay.
        look: as `header.remembered` gives it, where several cells read the head of one recording.
    """
    from jbench import files
    from jbench.data.load import prepared_set
    from jbench.data.prepare import build_set
    from jbench.grid import estimates
    from jbench.results import result_file
    from jbench.stores import results, sets

    folder, refs = build_set.locate(cell.task, cell.dataset, data_dir, workdir)
    split = {k: v for k, v in to_json(cell.task.split).items() if v is not None}
    facts: Facts = {
        'cell': f'{cell.task.full_name}@{cell.task.version}/{cell.dataset.name} {cell.model.full_name}',
        'data': 'simulated' if cell.dataset.simulated else 'real',
        'split': f'{split.pop("kind")}: {shown(split)}',
        'recordings': len(refs),
        'windows': None,
        'bytes': None,
        'bytes_expected': None,
        'prepared_set': folder and f'{cell.dataset.name}/{folder.name}',
        'channels': None,
        'refused': None,
        'weights': cell.model.weights,
        'seeds': list(seeds),
        'finished': [],
        'seconds_to_go': None,
        'weights_bytes': None,
        'key': cell.key,
        'config': to_json(cell),
    }
    ready = folder is not None and (build_set.is_ready(folder) or sets.stored(workdir, folder))
    network: Model | None = None
    try:
        _require_band(cell, refs, folder if ready else None, look)
        network = _network(cell, folder if ready else None)
        seen = network or _placed(cell, data_dir, workdir, look)
        facts['channels'] = seen and seen.channels
    except RequestError as error:
        facts['refused'] = str(error)
    one = _weights_bytes(cell, network) if keep_weights else 0
    facts['weights_bytes'] = one and one * len(seeds)
    if folder is None or not ready:
        size = estimates.windows(cell, None, len(refs))
        facts['bytes_expected'] = VALUE * size.n_windows * size.n_chans * size.n_times if refs else None
        return facts
    manifest = files.read_json(folder / 'manifest.json')
    facts |= {'recordings': len(manifest['recordings']), 'windows': manifest['n_windows']}
    facts['bytes'] = sum(f['bytes'] for f in manifest['files'].values())
    digest, home = prepared_set.digest(folder), result_file.result_dir(workdir, cell)
    results.bring(workdir, [home])
    done = {s: r for s in seeds if (r := result_file.finished(home, s, digest)[0]) is not None}
    if done:
        facts['finished'] = [] if again else list(done)
        facts['weights_bytes'] = one and one * (len(seeds) - len(facts['finished']))
        per_seed = sum(r['timings']['fit'] + r['timings']['test'] for r in done.values()) / len(done)
        facts['seconds_to_go'] = round(per_seed * (len(seeds) - len(facts['finished'])), 1)
    return facts


def _require_band(cell: Cell, refs: Sequence[RecordingRef], folder: Path | None, look: ReadHead | None) -> None:
    """Raises: RequestError where the band that was asked for is beyond what recordings hold, by the head of the first,
    and by all of the set in `folder`."""
    from jbench.data.prepare import band, header

    if cell.own_band:
        band.refuse_by_head(cell.task, cell.dataset, refs, look or header.head)
    if cell.own_band and folder is not None and (folder / 'manifest.json').is_file():
        band.refuse_by_set(cell.task, folder)


def _placed(cell: Cell, data_dir: Path | None, workdir: Path, look: ReadHead | None) -> Model | None:
    """The network of a cell as the head of its first recording lets one build it. Raises: RequestError where the cell
    will be refused by that."""
    from jbench.data.prepare import header
    from jbench.train import channels

    return channels.placed(cell, data_dir, workdir, look or header.head)


def _weights_bytes(cell: Cell, network: Model | None) -> int | None:
    """Bytes of the weights of one seed: 0 of an estimator, None of a network that is not known yet."""
    from jbench.results import weights

    return 0 if cell.model.kind != 'network' else network and weights.size(network)


def _network(cell: Cell, folder: Path | None) -> Model | None:
    """The network of a cell; None for an estimator, where its width is not known before its data are prepared (in
    `folder`), or where a file of the user's would have to run. Raises: RequestError where it cannot be."""
    if cell.model.kind != 'network' or cell.model.family == 'user':
        return None
    from jbench.train import adaptation, programs

    shape = _shape(cell, folder)
    if shape is None:
        return None
    signal, n_out = shape
    asked = programs.asked_signal(cell.model, signal)
    made = programs.build(cell.model, asked, n_out, cell.task.recipe, cell.task.recipe.frames)
    for recipe in adaptation.stages(cell.task.recipe, made):
        adaptation.resolved(recipe, made)
    return made


def _shape(cell: Cell, folder: Path | None) -> tuple[Signal, int] | None:
    """Signal and number of outputs of a network; None where the data will tell."""
    from jbench.data.load import prepared_set
    from jbench.train import programs

    if folder is not None:  # no window is looked at
        unscaled = override(cell.task, 'signal.scaler', 'none')
        data = prepared_set.open_set(folder, unscaled, verified=False)
        return data.signal, data.n_out
    return programs.expected(cell)
