"""Are the models adequate on real recordings? Every open set with every model, against floors measured without jbench.

Command: python configs/real_check.py --data_dir=DIR
Minutes: 46 on 2 cores beside some other work, most of it networks; --sets=muse,haxby and --models=baselines
choose; the same command goes on where it was.

Three tables, and exit status 1 if a floor is missed or a control is beaten:

- floors: each baseline over the folds that the floor was measured on (one subject, run or recording left out; fitted on
  all others, as `recipe.published` has it), predictions pooled. A floor is met if one baseline reaches it.
- networks: one seed and ten epochs on the split of the task. They are shown beside chance and floor, and owe none of
  them anything: most sets are too small. A network that cannot be built says why.
- controls: what must stay at chance, because nothing is known to be there or because labels are shuffled.

Intervals: Student's t, 95 %, over the groups that were left out (floors, controls) or over test subjects (networks).
A control is beaten if chance lies below a 99.9 % interval: some hundred are looked at.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from jbench.cli import environment
from jbench.plan import select
from jbench.plan.cells import Choice, apply, make_cells, parse_overrides
from jbench.report.text import table
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError, unknown
from jbench.spec.task import ByGroup, Exclusion, Predefined, Task
from jbench.targets.score import evaluate, headline

SEED = 33
SHORT = 'recipe.max_epochs=10'  # of networks: a whole cycle of the learning rate
SURE = 0.999  # of the interval that chance must lie below
HEADS = ('task', 'model', 'score', '95 %', 'chance', 'floor', 'verdict')


class Check(NamedTuple):
    """A floor, or (`floor` None) a control: a task, the groups that are left out in turn, and how it is scored."""

    task: str
    name: str  # as in FLOORS.json of the recordings
    floor: float | None
    chance: float
    metric: str = 'acc'  # of all folds pooled | 'auroc' of each subject, averaged | 'auroc_subjects': of their means
    by: str = 'subject'  # column of the groups; 'within:<column>': those of one subject alone
    changes: tuple[str, ...] = ()  # as --set
    n: int = 0  # folds; 0: one group is left out
    among: tuple[str, ...] = ()  # only windows and outputs of these classes


CHECKS = (
    Check('kalunga_ssvep', 'cca3', 0.849, 1 / 3, among=('13', '21', '17')),
    Check('kalunga_ssvep', 'ssvep4_loso', 0.793, 0.25, 'bal_acc'),
    Check('kalunga_ssvep', 'ssvep4_loso_tangent', 0.637, 0.25, 'bal_acc'),
    Check('zyma_arithmetic', 'rest_task_5s_loso', 0.718, 0.5, 'bal_acc'),
    Check(
        'zyma_arithmetic',
        'rest_task_4s_gkf12',
        0.696,
        0.5,
        'bal_acc',
        changes=('window.duration=4', 'window.stride=4'),
        n=12,
    ),
    Check('schalk_eyes', 'eo_ec', 0.933, 0.5, by='block'),
    Check('schalk_fists', 'mi_lr_csp', 0.689, 0.5, by='within:run'),
    Check('schalk_fists', 'mi_lr_tangent', 0.778, 0.5, by='within:run'),
    Check('muse_p3', 'within', 0.616, 0.5, 'auroc', by='within:p300_recording'),
    Check('muse_n170', 'within', 0.592, 0.5, 'auroc', by='within:n170_recording'),
    Check('dreams_sleep_stage', 'stage4_loso_context', 0.627, 0.25, 'bal_acc'),
    Check(
        'dreams_sleep_stage',
        'stage4_loso',
        0.559,
        0.25,
        'bal_acc',
        changes=('window.start=0', 'window.duration=5'),
    ),
    Check('dreams_spindles', 'spindle_loso', 0.896, 0.5, 'auroc'),
    Check('smni_alcoholism', 'alcoholic_loso', 0.818, 0.5),
    Check('smni_match', 'match_nomatch_loso', 0.664, 0.5),
    Check('emg/lower_limb_activity', 'activity3_loso', 0.756, 1 / 3, 'bal_acc'),
    Check('fmri/haxby_objects', 'cat8', 0.657, 0.125, by='run'),
    Check('fmri/haxby_faces', 'face_house', 0.963, 0.5, by='run'),
    Check('fnirs/finger_tapping', 'tapping_loso', 0.694, 0.5),
    Check('muse_p3', 'loso_NEGATIVE', None, 0.5, 'auroc', by='p300_subject'),
    Check('muse_n170', 'loso_NEGATIVE', None, 0.5, 'auroc', by='n170_subject'),
    Check('zyma_quality', 'quality_task_NEGATIVE', None, 0.5, 'auroc_subjects', n=6),
    Check('emg/lower_limb_pathology', 'group_NEGATIVE', None, 0.5),
)
SHUFFLED = ('kalunga_ssvep', 'zyma_arithmetic', 'emg/lower_limb_activity')


class Pooled(NamedTuple):
    """Predictions on all test parts: outputs [N, K], y [N], group left out [N], subject [N], and class names."""

    outputs: np.ndarray
    y: np.ndarray
    group: np.ndarray
    subject: np.ndarray
    classes: list[str]


class Bench(NamedTuple):
    """What the stages of jbench need."""

    compiler: Any
    context: Any


def result(bench: Bench, cell: Cell) -> dict[str, Any]:
    """The result of a cell, computed if it is not there. Raises RequestError, also where the seed failed."""
    from jbench import stages

    prepared = stages.prepare(cell, bench.context)
    (found,) = stages.train(cell, prepared, [SEED], bench.compiler, bench.context)
    if found['status'] != 'done':
        raise RequestError(found['warnings'][-1])
    return found


class Line(NamedTuple):
    """A row of a table; `bad`: it makes the command fail."""

    what: str
    model: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    chance: float | None = None
    floor: float | None = None
    said: str = ''
    bad: bool = False


def students_t(values: dict[str, float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Interval of the mean over groups, between 0 and 1; None below two."""
    x = np.array(list(values.values()))
    if len(x) < 2:
        return None
    half = stats.t.ppf(0.5 + confidence / 2, len(x) - 1) * stats.sem(x)
    return max(0.0, float(x.mean() - half)), min(1.0, float(x.mean() + half))


def show(lines: list[Line]) -> bool:
    """Print a table; whether nothing in it is bad."""
    numbers = [[f'{v:.3f}' if v is not None else '-' for v in (x.value, x.chance, x.floor)] for x in lines]
    spans = [f'{x.interval[0]:.2f} to {x.interval[1]:.2f}' if x.interval else '-' for x in lines]
    rows = [(x.what, x.model, a, i, b, c, x.said) for x, (a, b, c), i in zip(lines, numbers, spans, strict=True)]
    print('\n' + table(HEADS, rows), flush=True)
    return not any(x.bad for x in lines)


def task_of(name: str, *changes: str) -> Task:
    """The newest version of a task, with changes as --set has them."""
    task = select.tasks()[name][-1]
    return apply(task, select.find_dataset(task.datasets[0]), parse_overrides(changes))


def cells_of(task: Task, models: list[Any]) -> list[Cell]:
    """A cell for each model that fits the task."""
    return make_cells([Choice(task, select.find_dataset(task.datasets[0]), True)], models, ())


def folds(task: Task, check: Check, folder: Path) -> dict[str, Task]:
    """One task for each group (or fold of groups) that is left out, by its name."""
    by = check.by
    index = np.load(folder / 'index.npz')
    used = ~np.isin(index['event.subject'], [e.subject for e in task.exclude])
    column = by.removeprefix('within:')
    values = index[f'event.{column}']
    rows = np.unique(index['window.event'])
    groups = dict.fromkeys(v for v in values[used].tolist() if v)
    if column == by:
        names = [f'fold {k}' for k in range(1, check.n + 1)] or groups
        n = len(names)
        return {g: dataclasses.replace(task, split=ByGroup(by=by, fold=f'{k}/{n}')) for k, g in enumerate(names, 1)}
    out, subjects = {}, index['event.subject']
    for group in dict.fromkeys(values[rows].tolist()):
        own = subjects[rows][values[rows] == group][0]
        if len(set(values[rows][subjects[rows] == own].tolist())) > 1:  # another recording to learn from
            others = [str(s) for s in dict.fromkeys(subjects.tolist()) if s != own]
            left = tuple(Exclusion(task.datasets[0], s, 'within one subject') for s in others)
            split = Predefined(field=column, test=(group,), valid_by='_index')
            out[group] = dataclasses.replace(task, split=split, exclude=task.exclude + left)
    return out


def pool(bench: Bench, variants: dict[str, Task], model: Any) -> Pooled:
    """Predictions of one model on every fold. Raises RequestError where it fails on one."""
    found = {}
    for group, task in variants.items():
        (cell,) = cells_of(task, [model])
        classes = result(bench, cell)['classes']
        found[group] = _answers(bench, cell)
    parts = {k: np.concatenate([p[k] for p in found.values()]) for k in ('outputs', 'y', 'subject')}
    return Pooled(group=np.concatenate([[g] * len(p['y']) for g, p in found.items()]), classes=classes, **parts)


def score(check: Check, p: Pooled) -> tuple[float, dict[str, float]]:
    """The score of a check, and that of each group."""
    outputs, y, group, subject = p.outputs, p.y, p.group, p.subject
    if check.among:
        keep = np.array([p.classes.index(c) for c in check.among])
        used = np.isin(y, keep)
        outputs, y = outputs[used][:, keep], (y[used][:, None] == keep).argmax(1)
        group, subject = group[used], subject[used]
    rows = {g: group == g for g in dict.fromkeys(group.tolist())}
    if check.metric == 'auroc_subjects':
        people = {s: subject == s for s in dict.fromkeys(subject.tolist())}
        mean = np.stack([outputs[m].mean(0) for m in people.values()])
        one = np.array([y[m][0] for m in people.values()])
        return evaluate('classes', mean, one)['auroc'] or 0.0, {}  # no group has a score of its own
    if check.metric != 'auroc':
        hits = {g: float((outputs[m].argmax(1) == y[m]).mean()) for g, m in rows.items()}
        return headline(evaluate('classes', outputs, y), check.metric) or 0.0, hits
    own: dict[str, list[float]] = {}  # the areas of a subject: one for each of its recordings
    for m in rows.values():
        area = evaluate('classes', outputs[m], y[m])['auroc']
        own.setdefault(str(subject[m][0]), []).extend([] if area is None else [area])
    means = {s: float(np.mean(v)) for s, v in own.items() if v}
    return float(np.mean(list(means.values()))), means


def attempt(what: str, cell: Cell, work: Callable[[], Line]) -> Line:
    """The line of a model, or why it has none."""
    from jbench.progress import Interrupted

    try:
        return work()
    except RequestError as error:  # it does not fit these windows
        return Line(what, cell.model.name, said=' '.join(str(error).split('\n')[:2]))
    except Interrupted:
        raise
    except Exception as error:  # ours: seen, and not in the way of the others
        return Line(what, cell.model.name, said=f'FAILED: {type(error).__name__}: {error}'.partition('\n')[0], bad=True)


def on_folds(bench: Bench, check: Check, task: Task, cell: Cell) -> Line:
    """An estimator over the folds of a check."""
    from jbench import stages

    folder, _ = stages.prepare(cell, bench.context)
    pooled = pool(bench, folds(task, check, folder), select.Pick(cell.model, True))
    value, groups = score(check, pooled)
    if check.floor is None:
        each = np.unique(pooled.subject, return_index=True)[1]  # a label of each subject, where no group has a score
        sd = spread(check.metric, pooled.y[each])
        return control(f'{check.task} {check.name}', cell.model.name, value, groups, check.chance, sd)
    said = 'met' if round(value, 3) >= check.floor else 'below'
    what, shown = f'{check.task} {check.name}', students_t(groups)
    return Line(what, cell.model.name, value, shown, check.chance, check.floor, f'{said} ({len(groups)} groups)')


def control(what: str, model: str, value: float, groups: dict[str, float], chance: float, sd: float) -> Line:
    """A model that must be at chance: over groups, or (of one group, or none) within 3.3 `sd` of chance."""
    sure = students_t(groups, confidence=SURE)
    bad = sure[0] > chance if sure else value > chance + 3.3 * sd
    over = f'{len(groups)} groups' if sure else f'sd {sd:.3f}'
    said = f'{"ABOVE CHANCE" if bad else "at chance"} ({over})'
    return Line(what, model, value, students_t(groups), chance, None, said, bad)


def spread(metric: str, y: np.ndarray) -> float:
    """Standard deviation of the score of answers that know nothing of the classes y [N], each drawn by itself: of the
    area under the curve (Mann and Whitney 1947), else of balanced accuracy."""
    counts = np.unique(y, return_counts=True)[1]
    if metric.startswith('auroc'):
        return float(np.sqrt((counts.sum() + 1) / 12 / counts.prod()))
    k = len(counts)
    return float(np.sqrt((k - 1) / k**2 * (1 / counts).sum()) / k)


def on_split(bench: Bench, check: Check | None, cell: Cell) -> Line:
    """A model on the split of its task, one seed; with a control, against chance."""
    found = result(bench, cell)
    head, own, n = found['headline'], found['per_subject'], found['n_records']['evaluated']
    if check is not None:
        sd = spread(head['name'], _answers(bench, cell)['y'])
        return control(f'{check.task} {check.name}', cell.model.name, head['value'], own, check.chance, sd)
    asked = (cell.task.full_name, head['name'])
    floors = [c.floor for c in CHECKS if (c.task, c.metric) == asked and not c.among and not c.changes]
    said = f'{head["name"]}, {n} windows, {len(own)} subjects'
    floor = floors[0] if floors else None
    return Line(cell.task.full_name, cell.model.name, head['value'], head['interval'], found['chance'], floor, said)


def on_shuffled(bench: Bench, cell: Cell) -> Line:
    """A model on labels that are drawn anew: its windows are then independent of each other."""
    with shuffled_labels():
        found = result(bench, cell)
    head, sd = found['headline'], spread(found['headline']['name'], _answers(bench, cell)['y'])
    return control(f'{cell.task.full_name} shuffled', cell.model.name, head['value'], {}, found['chance'], sd)


def _answers(bench: Bench, cell: Cell) -> dict[str, np.ndarray]:
    """The predictions of a cell."""
    from jbench import files
    from jbench.results import result_file

    return files.read_npz(result_file.result_dir(bench.context.workdir, cell) / f'seed{SEED}.npz')


def check_floors(bench: Bench, checks: list[Check], models: list[Any]) -> list[Line]:
    """Estimators on the folds of every check, networks on one split of the controls."""
    lines = []
    for check in checks:
        task = task_of(check.task, *check.changes, 'recipe.published=true')
        mine = []
        for cell in cells_of(task, models):
            if cell.model.kind == 'estimator' and cell.model.name != 'dummy':
                mine.append(attempt(check.task, cell, partial(on_folds, bench, check, task, cell)))
        if check.floor is not None and mine and not any(line.said.startswith('met') for line in mine):
            mine.append(Line(f'{check.task} {check.name}', 'all', floor=check.floor, said='FLOOR MISSED', bad=True))
        if check.floor is None:
            for cell in cells_of(task_of(check.task, f'split.by={check.by}', SHORT), models):
                if cell.model.kind == 'network':
                    mine.append(attempt(check.task, cell, partial(on_split, bench, check, cell)))
        lines += mine
    return lines


@contextlib.contextmanager
def shuffled_labels() -> Iterator[None]:
    """Inside, prepared sets come with their labels permuted over all windows (the same way every time)."""
    from jbench.data.load import prepared_set

    plain = prepared_set.open_set

    def shuffled(folder: Path, task: Task) -> Any:
        data = plain(folder, task)
        return dataclasses.replace(data, y=np.random.default_rng(SEED).permutation(data.y))

    prepared_set.open_set = shuffled
    try:
        yield
    finally:
        prepared_set.open_set = plain


def main(argv: list[str] | None = None) -> int:
    """Run the checks that were asked for, and print their tables as they are done."""
    p = argparse.ArgumentParser(description='Models on real recordings, against floors measured without jbench.')
    p.add_argument('--data_dir', required=True, type=Path, help='folder of the recordings')
    p.add_argument('--workdir', default='jbench-work/real_check', type=Path, help='what is written [%(default)s]')
    p.add_argument('--sets', default='', help='only tasks with one of these words in their names, as in muse,haxby')
    p.add_argument('--models', default='classic,baselines', help='as --model of jbench [%(default)s]')
    p.add_argument('--device', choices=('cpu', 'gpu', 'tpu'), default='cpu', help='as --device of jbench [%(default)s]')
    args = p.parse_args(argv)
    from jbench.progress import Interrupted

    try:
        names = [n for n, v in select.tasks().items() if v[-1].category == 'open_sets']
        words = args.sets.split(',')
        for word in words:
            if not any(word in name for name in names):
                raise unknown('set', word, names)
        models = select.select_models(args.models, args.device)
        environment.environment(args.workdir, args.device, False)
        return check_all(args, [n for n in names if any(w in n for w in words)], models)
    except RequestError as error:
        print(f'real_check: {error}', file=sys.stderr)
        return 2
    except Interrupted:
        print('real_check: interrupted: what was done is saved; the same command goes on from there', file=sys.stderr)
        return 75


def check_all(args: argparse.Namespace, names: list[str], models: list[Any]) -> int:
    """The three tables of the tasks, each printed when it is whole; 1 if a floor is missed or a control beaten."""
    from jbench import stages
    from jbench.context import Context
    from jbench.progress import Progress, StopSignal
    from jbench.train import compilation_cache

    began = time.monotonic()
    with (
        StopSignal() as stop,
        Progress() as progress,
        compilation_cache.kept(args.workdir / 'xla', progress.say) as seal,
        contextlib.closing(stages.Compiler(seal)) as compiler,
    ):
        bench = Bench(compiler, Context(args.workdir, args.data_dir, progress, stop, 'resume'))
        good = show(check_floors(bench, [c for c in CHECKS if c.task in names], models))
        cells = [cell for name in names for cell in cells_of(task_of(name, SHORT), models)]
        bench.compiler.foresee(cells)
        good &= show([attempt(c.task.full_name, c, partial(on_split, bench, None, c)) for c in cells])
        aside = args.workdir / 'shuffled'  # results of the same keys, on the same prepared sets
        aside.mkdir(parents=True, exist_ok=True)
        if not (aside / 'prepared').is_symlink():
            (aside / 'prepared').symlink_to('../prepared')
        bench = bench._replace(context=bench.context._replace(workdir=aside))
        cells = [cell for name in names if name in SHUFFLED for cell in cells_of(task_of(name, SHORT), models)]
        good &= show([attempt(f'{c.task.full_name} shuffled', c, partial(on_shuffled, bench, c)) for c in cells])
    print(f'\n{"as it must be" if good else "NOT as it must be"}; {time.monotonic() - began:.0f} s')
    return 0 if good else 1


if __name__ == '__main__':
    sys.exit(main())
