"""`python -m jbench.run --task=bci --model=eegnet`: parse, plan, run the stages, show the table.

Exit status: 0 all cells done; 1 some failed; 2 the request or its data are wrong; 75 interrupted after a save.
"""

from __future__ import annotations

import sys

if __name__ == '__main__' and not (sys.flags.safe_path or __file__.startswith(f'{sys.path[0]}/jbench/')):
    del sys.path[0]  # `python -m` puts the current folder there: a numpy.py that lies in it would be run

import argparse
import gc
import itertools
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from jbench.cli.arguments import parse
from jbench.cli.environment import environment
from jbench.plan import cells as plan_cells
from jbench.plan import select, user_files
from jbench.progress import say
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    try:
        status = _main(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except RequestError as error:
        say(f'jbench: {error}')
        status = 2
    except KeyboardInterrupt:  # before or after the stages, which save
        say('interrupted: the same command goes on from there')
        status = 75
    except BrokenPipeError:  # the reader of our output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except OSError as error:
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        say(f'jbench: cannot write the output: {error.strerror}; results are in the work folder')
        status = 2
    return status


def program() -> NoReturn:
    """The command as a process of its own, which may leave while a thread still compiles (a plain exit would crash)."""
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if threading.active_count() > 1:
        gc.collect()  # frees what worker processes shared
        os._exit(status)
    sys.exit(status)


def _main(argv: list[str]) -> int:
    """What was asked for. Raises RequestError."""
    args = parse(argv)
    if args.list or args.info:
        from jbench.cli import catalogue

        print(catalogue.info(args.info, args.format, args.data_dir) if args.info else catalogue.listing(args))
        return 0
    return _run(args)


def _plan(args: argparse.Namespace) -> tuple[list[Cell], list[plan_cells.Choice], list[str]]:
    """Cells in the order of the table, what each stands on, and why tasks are left out."""
    models = select.select_models(args.model, args.device)
    user = plan_cells.parse_overrides(args.set)
    if args.config:
        user = tuple(sorted(dict((*user_files.config_overrides(args.config), *user)).items()))
    selected = select.select_tasks(args.task)
    if args.simulated == 'yes' and all(d is not None and not d.simulated for _, d in selected):
        raise RequestError('--simulated=yes: unused, because every dataset is named, and a named one is never replaced')
    choices, absent = [], []
    for task, dataset in selected:
        try:
            choices.append(plan_cells.choose_dataset(task, dataset, args.data_dir, args.workdir, args.simulated))
        except RequestError as error:
            if dataset is not None or len(selected) == 1:
                raise
            absent.append(str(error))  # one of several tasks, its dataset not named: the others run
    cells = []
    for choice, model in itertools.product(choices, models):
        try:
            cells += plan_cells.make_cells([choice], [model], user, args.debug)
        except plan_cells.UnfitError as error:
            if len(choices) == 1:
                raise
            absent.append(str(error))
    if not cells:
        absent = absent or [f'no model of --model={args.model} fits; one that is named runs on every paradigm']
        raise RequestError('no task can run:\n  ' + '\n  '.join(absent))
    recipe = [p for p, _ in user if p.startswith('recipe.') and p != 'recipe.published']
    if recipe and all(m.kind == 'estimator' for m, _ in models):
        names = ', '.join(m.name for m, _ in models)
        raise RequestError(f'--set {recipe[0]}: unused, because {names} follows no recipe')
    return list({c.key: c for c in cells}.values()), choices, absent


def _run(args: argparse.Namespace) -> int:
    """Download, plan, then the other stages that were asked for."""
    fetched, go_on = _download(args) if 'download' in args.stages else (0, True)
    if not go_on:
        return fetched
    if 'check' in args.stages:
        from jbench.report.dataset import facts as dataset_facts

        dataset_facts.require()
    cells, choices, absent = _plan(args)
    if notice := plan_cells.simulated(choices):
        say(notice)
    for reason in absent:
        say(f'not run: {reason}')
    if args.dry_run:
        from jbench.cli import catalogue

        print(catalogue.dry_run(cells, args))
        return 0
    who = environment(args)
    from jbench.progress import Progress, StopSignal
    from jbench.train import compilation_cache

    with (
        StopSignal() as stop,
        Progress(who) as progress,
        compilation_cache.kept(args.workdir / 'xla', progress.say) as seal,
    ):
        from jbench import processes, stages
        from jbench.context import Context

        compiler = stages.Compiler(seal)
        context = Context(args.workdir, args.data_dir, progress, stop, args.if_exists, args.keep_weights)
        try:
            status, rows = _stages(args, cells, compiler, context)
        except stages.Interrupted:
            processes.leave()
            again = 'the same command' if args.if_exists == 'resume' else 'the same command with --if_exists=resume'
            progress.say(f'interrupted: what was done is saved; {again} goes on from there')
            return 75  # without waiting for the program that compiles now
        except BaseException:
            compiler.close()
            raise
        compiler.close()
        processes.leave()
    if 'report' in args.stages and (rows or args.format == 'json') and not who:
        _report(rows, args.format)
    missing = absent and 'all' not in args.task.split(',')  # which means: all that can run here
    return max(status, 1) if missing or fetched else status


def _download(args: argparse.Namespace) -> tuple[int, bool]:
    """Fetch the datasets that are named, and the Core ones of tasks that name none; and encoders of their stimuli.

    Returns: 0 if all are there, 1 if some are, 2 if none is; and whether the stages that follow should run.
    """
    from jbench.data.download import fetch
    from jbench.data.stimuli import embed
    from jbench.progress import Progress

    chosen = [(task, named or select.datasets()[task.datasets[0]]) for task, named in select.select_tasks(args.task)]
    wanted = list(dict.fromkeys(dataset for _, dataset in chosen))
    needed = {} if args.data_dir is None else dict.fromkeys(embed.lacking(*c, args.data_dir) for c in chosen)
    wanted_encoders = [name for name in needed if name]
    others = args.stages != ['download']
    if args.dry_run:
        print('\n'.join([*map(fetch.steps, wanted), *map(fetch.encoder_steps, wanted_encoders)]))
        return 0, others
    with Progress() as progress:
        outcome = fetch.fetch_all(wanted, args.data_dir, progress.update, progress.say, wanted_encoders)
    if outcome.failed and others:
        say(f'not run: the other stages, which need {", ".join(outcome.failed)}')
    return outcome.status, others and not outcome.failed


def _stages(
    args: argparse.Namespace, cells: list[Cell], compiler: Any, context: Any
) -> tuple[int, list[dict[str, Any]]]:
    """Prepare every set, then train every cell; a cell whose data are wrong does not keep the others from running.

    Returns: the exit status, and all results.
    """
    from jbench import stages

    prepared: dict[str, Any] = {}
    refused: list[Cell] = []
    broken: list[Cell] = []
    found: list[dict[str, Any]] = []
    if 'train' in args.stages:
        compiler.foresee([c for c in cells if stages.needs_training(c, args.seeds, context)])

    def attempt(cell: Cell, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except RequestError as error:
            if args.distributed:  # the others may not have met it, and would wait for this process
                raise
            context.progress.say(f'jbench: {error}')
            refused.append(cell)
        except stages.Interrupted:
            raise
        except Exception as error:  # ours, or a library's: the other cells still run
            context.progress.say(stages.failure(error, cell, context))
            broken.append(cell)
            if args.distributed:  # as above
                raise RequestError('stopped: the other processes may not have met this') from error

    for c in cells if args.stages != ['report'] else ():
        if c.source not in prepared:
            prepared[c.source] = attempt(c, partial(stages.prepare, c, context))
        elif prepared[c.source] is None:
            refused.append(c)
    if 'check' in args.stages:
        _look(args, [c for c in cells if prepared[c.source]], prepared, attempt)
    for c in cells:
        if 'report' in args.stages and 'train' not in args.stages:
            found += attempt(c, partial(stages.stored, c, args.seeds, context)) or []
        if 'train' in args.stages and prepared[c.source] is not None:
            found += attempt(c, partial(stages.train, c, prepared[c.source], args.seeds, compiler, context)) or []
    if 'train' not in args.stages and 'report' in args.stages and not (found or refused or broken):
        raise RequestError(f'no results of these cells under {args.workdir}/results; run without --stage first')
    failed = [r for r in found if r['status'] == 'failed']
    for r in failed:
        context.progress.say(f'failed: {r["task"]}/{r["dataset"]} {r["model"]} seed {r["seed"]}: {r["warnings"][-1]}')
    for c in refused[: 0 if len(cells) == 1 else None]:
        context.progress.say(f'not run: {c.title}')
    if len(refused) == len(cells):
        return 2, found
    return (1 if failed or refused or broken else 0), found


def _look(args: argparse.Namespace, cells: list[Cell], prepared: dict[str, Any], attempt: Callable[..., Any]) -> None:
    """What the data of each task hold, on stdout and as pages."""
    from jbench.report import text
    from jbench.report.dataset import facts as dataset_facts

    seen = [
        attempt(c, partial(dataset_facts.look, c, prepared[c.source][0], args.data_dir, args.workdir)) for c in cells
    ]
    shown = [facts for facts in seen if facts is not None]
    print(text.as_json(shown) if args.format == 'json' else '\n'.join(map(dataset_facts.text, shown)))


def _report(found: list[dict[str, Any]], form: str) -> None:
    """The table, on stdout."""
    from jbench.report import table

    rows = table.rows(found)
    if form == 'json':
        print(table.as_json(rows))
        return
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process with status 1
            raise BrokenPipeError

    console = Output()
    table.show(rows, console if console.width >= 72 else Output(width=72))


if __name__ == '__main__':
    program()
