"""Features of a model for the windows of a task, before it is trained.

import jbench

found = jbench.features('cbramod', 'sleep', layer='tokens', changes={'window.duration': 30.0})
found.values  # f32 [windows, tokens, d]
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.cli import arguments
from jbench.plan import request
from jbench.spec.errors import RequestError
from jbench.stores import mirror

if TYPE_CHECKING:
    from jbench.train.features import Features

Folder = str | os.PathLike[str]


def features(
    model: str,
    task: str,
    *,
    layer: str = 'penultimate',
    weights: str | os.PathLike[str] | None = None,
    seed: int = 33,
    data_dir: Folder | None = None,
    workdir: Folder | None = None,
    simulated: bool | str = 'auto',
    changes: Mapping[str, Any] | None = None,
    pooled: bool = False,
) -> Features:
    """Features of all windows of a task, in evaluation mode, at the weights that training starts from.

    Windows are those that train, validate or test, in canonical order, as the network gets them. The features of a
    trained network: `jbench.load_model(path).features()`.

    Example: jbench.features('cbramod', 'sleep', weights='none', pooled=True, layer='tokens')

    Args:
        model: one network, as --model: 'cbramod', 'eegnet:F1=16', 'mine.py:net'.
        task: one task, as --task: 'sleep', 'sleep@1', 'ssvep/Kalunga2016Online'.
        layer: name of the feature: 'penultimate', what the last layer reads; of the encoders also 'tokens', [windows,
            tokens, d]. A name that the network lacks is answered with those that it has.
        weights: as --weights: a file, a folder, or 'none' for random ones; None: the published ones, of a network that
            has some.
        seed: of random weights, and of what pretrained ones do not hold.
        data_dir, workdir: as --data_dir and --workdir.
        simulated: 'auto', 'yes' or True, 'no' or False: as --simulated.
        changes: fields to change, as `--set` has them: {'window.duration': 2.0}.
        pooled: whether to take the mean over tokens, of a feature [windows, tokens, d].
    Raises: RequestError for a request, data or weights that are wrong; for more than one task or model; where the
        features do not fit in memory.
    """
    flags: dict[str, Any] = {'weights': weights, 'seeds': seed, 'data_dir': data_dir, 'workdir': workdir}
    flags['simulated'] = ('no', 'yes')[simulated] if isinstance(simulated, bool) else simulated
    given = [f'--{name}={value}' for name, value in flags.items() if value is not None]
    args = arguments.parse([f'--task={task}', f'--model={model}', *given])
    typed = tuple(sorted((changes or {}).items()))
    asked = request.Request(args.task, args.model, typed, args.simulated, weights=args.weights)
    plan = request.plan(asked, args.data_dir, args.workdir)
    if len(plan.cells) > 1:
        raise RequestError(
            f'jbench.features({model!r}, {task!r}): {len(plan.cells)} tasks with models, expected one: '
            + ', '.join(cell.title for cell in plan.cells[:4])
        )
    if len(args.seeds) > 1:
        raise RequestError(f'jbench.features: seed={seed!r}: expected one integer')
    (found,) = of_plan(plan, args.data_dir, args.workdir, args.seeds[0], layer=layer, pooled=pooled)
    return found


def of_plan(
    plan: request.Plan, data_dir: Path | None, workdir: Path, seed: int, *, layer: str, pooled: bool
) -> Iterator[Features]:
    """Features of each cell of a plan, at the weights that training starts from. Raises: RequestError."""
    mirror.refuse(workdir, 'features')
    os.environ.setdefault('NPROC', str(os.cpu_count() or 1))  # as the command does: bits depend on it
    from jbench.context import Context
    from jbench.progress import Progress, StopSignal
    from jbench.train.features import of_cell

    with Progress() as progress:
        for reason in plan.told:
            progress.say(reason)
        context = Context(workdir, data_dir, progress, StopSignal(), 'resume', weights=plan.weights)
        for cell in plan.cells:
            yield of_cell(cell, seed, context, layer, pooled)
