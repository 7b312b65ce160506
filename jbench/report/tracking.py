"""Logs of epochs and results, replayed into TensorBoard or Weights & Biases after the fact: training never waits.

The same command may be given again, while a run goes on or after it: TensorBoard's files are replaced; Weights & Biases
takes the epochs that it does not have yet.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from jbench import epochs, files
from jbench.results import checked
from jbench.spec.errors import MissingExtraError, RequestError

PACKAGES = {'tensorboard': 'tensorboardX', 'wandb': 'wandb'}  # of the extra `tracking`
FACTS = ('task', 'task_version', 'dataset', 'model', 'key', 'seed')  # of a run, in each line of its log
CURVES = ('train_loss', 'grad_norm', 'monitor', 'best')


class Run(NamedTuple):
    """One seed of a cell, as a tracker shows it."""

    name: str  # 'p3@2/Schreuder2010New/eegnet/seed33', which is its folder too: each part is a safe name
    key: str  # '0a1b.../seed33', of the cell and the seed
    metric: str  # of the validation part, in 'monitor' and 'best'
    epochs: list[dict[str, Any]]
    scores: dict[str, float]  # of the test part, once the seed is done
    facts: dict[str, str]


def runs(workdir: Path, say: Callable[[str], object] = lambda text: None) -> list[Run]:
    """Every logged seed of a work folder, with its result where it is done.

    Args:
        say: told which logs are passed over, and which results are damaged: their runs have epochs alone.

    Raises: RequestError where none is.
    """
    done = {f'{p.parent.name}/{p.stem}': p for p in (workdir / 'results').glob('*/*/*/*/seed*.json')}
    found = []
    for log in sorted((workdir / 'epochs').glob('*/seed*.jsonl')):
        try:
            lines = epochs.read(log)
        except OSError as error:
            say(f'{log}: cannot be read: {error.strerror}; passed over')
            continue
        missing = [name for name in (*FACTS, 'metric') if lines and not isinstance(lines[0].get(name), str | int)]
        if missing:
            say(f'{log}: its first epoch names no {", ".join(missing)}; passed over')
        elif lines:
            found.append(_run(log, lines, done, say))
    if not found:
        raise RequestError(f'{workdir}/epochs: no log of epochs; --workdir=DIR names where networks were trained')
    return found


def sync(
    workdir: Path, to: str, out: Path, *, project: str = 'jbench', say: Callable[[str], object] = lambda text: None
) -> list[str]:
    """Replay every logged seed of a work folder.

    Args:
        to: 'tensorboard' (event files below `out`) or 'wandb' (its client decides by WANDB_MODE whether they leave the
            machine; its files go below `out`).
        project: of wandb.
        say: as of `runs`.

    Returns: the names of the runs.
    Raises: RequestError without logs, without the extra `tracking`, and where `out` cannot be written.
    """
    if find_spec(PACKAGES[to]) is None:
        raise MissingExtraError(PACKAGES[to], 'tracking', f'sync --to={to}')
    every = runs(workdir, say)
    files.make_dir(out)
    replay: Callable[[Run], None] = {'tensorboard': _tensorboard(out), 'wandb': _wandb(out, project)}[to]
    for run in every:
        with files.explained(out, 0):
            replay(run)
    return [run.name for run in every]


def _run(log: Path, lines: list[dict[str, Any]], done: Mapping[str, Path], say: Callable[[str], object]) -> Run:
    """The run of a log; `done`: result files by 'key/seed33'."""
    first, key = lines[0], f'{log.parent.name}/{log.stem}'
    parts = (f'{first["task"]}@{first["task_version"]}', str(first['dataset']), str(first['model']), log.stem)
    facts = {k: str(first[k]) for k in FACTS}
    scores: dict[str, float] = {}
    if key in done:
        try:
            result = checked.read(done[key])
        except (FileNotFoundError, RequestError) as error:
            say(f'{error}; its run has no scores')
        else:
            named = {**result['metrics'], 'headline': result['headline']['value'], 'normalised': result['normalised']}
            scores = {k: v for k, v in named.items() if v is not None}
            facts |= {k: str(result[k]) for k in ('date', 'commit', 'simulated')}
    return Run('/'.join(map(files.slug, parts)), key, str(first['metric']), lines, scores, facts)


def _points(run: Run) -> list[tuple[str, int, float, float]]:
    """(curve, epoch, value, time) of everything that was logged."""
    names = {**{c: f'train/{c}' for c in CURVES[:2]}, **{c: f'valid/{c} {run.metric}' for c in CURVES[2:]}}
    return [
        (names[c], line['epoch'], line[c], _time(line) or 0.0)
        for line in run.epochs
        for c in CURVES
        if isinstance(line.get(c), int | float)
    ]


def _time(line: Mapping[str, Any]) -> float | None:
    when = line.get('time')
    return when if isinstance(when, int | float) else None


def _tensorboard(out: Path) -> Callable[[Run], None]:
    from tensorboardX import SummaryWriter

    def replay(run: Run) -> None:
        folder = out / run.name / files.slug(run.facts['key'])
        shutil.rmtree(folder, ignore_errors=True)
        with SummaryWriter(str(folder)) as writer:
            for curve, epoch, value, when in _points(run):
                writer.add_scalar(curve, value, epoch, walltime=when)
            for name, value in run.scores.items():
                writer.add_scalar(f'test/{name}', value, run.epochs[-1]['epoch'], walltime=_time(run.epochs[-1]))
            writer.add_text('facts', '  \n'.join(f'{k}: {v}' for k, v in run.facts.items()))

    return replay


def _wandb(out: Path, project: str) -> Callable[[Run], None]:
    import wandb

    def replay(run: Run) -> None:
        quiet = wandb.Settings(silent=True, console='off')
        how: dict[str, Any] = {'project': project, 'dir': str(out), 'config': run.facts, 'settings': quiet}
        with wandb.init(id=run.key.replace('/', '-'), name=run.name, resume='allow', **how) as tracked:
            rows: dict[int, dict[str, float]] = {}
            for curve, epoch, value, _ in _points(run):
                rows.setdefault(epoch, {})[curve] = value
            for epoch, row in rows.items():
                tracked.log(row, step=epoch)
            tracked.summary.update({f'test/{k}': v for k, v in run.scores.items()})

    return replay
