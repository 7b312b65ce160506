"""The stage download of the command: what is fetched before the others run, and which of them can run then."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from jbench.data.prepare import raw_files
from jbench.data.sources import mixture
from jbench.files import sha256_file
from jbench.models import seen
from jbench.plan import cell_file, places, select, weights
from jbench.plan.request import Plan
from jbench.plan.select import Pick
from jbench.progress import say
from jbench.spec.checkpoints import CHECKPOINTS, PACKAGED
from jbench.spec.dataset import Dataset
from jbench.spec.model import SCRATCH, ModelSpec

Lost = tuple[str, str]  # a task and the dataset of it that could not be fetched, by their names


def fetch(
    task: str | None,
    cell_paths: Sequence[str],
    data_dir: Path | None,
    *,
    models: Sequence[str] = (),
    alone: bool,
    dry_run: bool,
) -> tuple[int, set[Lost]]:
    """Fetch the datasets that are named, and the Core ones of tasks that name none; encoders of their stimuli; and
    pretrained weights of models.

    Args:
        task, cell_paths: as --task and --cell, one of which is given.
        data_dir: as --data_dir.
        models: as `of_request` and `of_cells` name what is wanted of them.
        alone: no stage follows.
        dry_run: only say where everything comes from, and how large weights are.
    Returns: 0 if all are there, 1 if some are, 2 if none is; and what did not come, half of which may be there.
    """
    from jbench.data.download import fetch as files
    from jbench.data.stimuli import embed
    from jbench.progress import Progress

    cells = [cell_file.read(path) for path in cell_paths]
    asked = [(c.task, c.dataset) for c in cells] if cells else select.select_tasks(task or '')
    chosen = [(t, named or select.datasets()[t.datasets[0]]) for t, named in asked]
    single = dict.fromkeys(one for _, dataset in chosen for one in mixture.parts(dataset))
    wanted = [d for d in single if not _was_deleted(d, data_dir)]
    needs = {c: embed.lacking(*c, data_dir) if data_dir else '' for c in chosen}
    wanted_encoders = [name for name in dict.fromkeys(needs.values()) if name]
    shared = weights.published(models, data_dir)
    if dry_run:
        print('\n'.join([*map(files.steps, wanted), *map(files.encoder_steps, wanted_encoders)]))
        print(''.join(f'{file.line}\n' for file in shared), end='')
        return 0, set()
    with Progress() as progress:
        outcome = files.fetch_all(
            wanted,
            data_dir,
            progress.update,
            progress.say,
            wanted_encoders,
            [*dict.fromkeys(s.models[0] for s in shared)],
        )
    failed = {
        name: [c for c in chosen if name in (needs[c], *(d.name for d in mixture.parts(c[1])))]
        for name in outcome.failed
    }
    for name, need in () if alone else ((name, need) for name, need in failed.items() if need):
        say(f'not run, since {name} did not come: {", ".join(dict.fromkeys(t.full_name for t, _ in need))}')
    return outcome.status, {(t.full_name, d.name) for need in failed.values() for t, d in need}


def of_request(models: Sequence[Pick], asked: str | None, data_dir: Path | None) -> list[str]:
    """What is fetched of the models of a request: names of those whose published weights are wanted, and of the places
    of electrodes that others go by, which start from a file of weights; `asked`, `data_dir`: as in the command."""
    names = [m.name for m, _ in models if m.name in CHECKPOINTS and not (m.weights or asked)]
    others = [m for m, _ in models if not _learnt_without(m, m.weights or asked or '', data_dir)]
    return _of_hosts(names, [places.bank_of(m) for m in others if places.OPTION not in dict(m.options)])


def _learnt_without(model: ModelSpec, given: str, data_dir: Path | None) -> bool:
    """Whether a model starts from no file, or from one of one's own that says of no places that it was learnt with."""
    if given in ('', SCRATCH):
        return True
    if not os.path.isfile(given) or not os.access(given, os.R_OK):  # which the plan will say
        return False
    return not seen.places(Path(given)) and not weights.is_published(model.name, sha256_file(given), data_dir)


def of_cells(paths: Iterable[str]) -> list[str]:
    """The same of the models of cells, each of a file."""
    models = [cell_file.read(path).model for path in paths]
    names = [name for model in models for name in weights.of_cell(model)]
    return _of_hosts(names, [places.bank_of(m) for m in models if m.places and not m.own_places])


def _of_hosts(names: Sequence[str], banks: Sequence[str]) -> list[str]:
    """What does not come with jbench, and the places that do not come with such weights."""
    beside = {CHECKPOINTS[name].bank for name in names}
    alone = [bank for bank in dict.fromkeys(banks) if bank and bank not in beside]
    return [*(name for name in names if CHECKPOINTS[name].url != PACKAGED), *alone]


def _was_deleted(dataset: Dataset, data_dir: Path | None) -> bool:
    """Whether --delete_raw_after removed recordings of a dataset, which are not fetched again; it is told."""
    place = data_dir and data_dir / dataset.name / raw_files.NOTE
    if not place or not place.exists():
        return False
    say(f'{dataset.name}: not fetched, since --delete_raw_after removed its recordings; to have them again: rm {place}')
    return True


def without(lost: set[Lost], plan: Plan) -> Plan:
    """A plan less the cells whose recordings did not come: neither half of them nor a stand-in is a result."""
    tasks = {task for task, _ in lost}
    cells = [
        c
        for c in plan.cells
        if (c.task.full_name, c.dataset.name) not in lost and not (c.dataset.simulated and c.task.full_name in tasks)
    ]
    said = plan.simulated if any(c.dataset.simulated for c in cells) else ''
    return plan._replace(cells=cells, simulated=said) if lost else plan
