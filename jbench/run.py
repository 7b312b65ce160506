"""`python -m jbench.run --task=bci --model=eegnet`: parse, plan, run the stages, show the table.

In Python the same, without the table: `jbench.run('bci', 'eegnet')`, which is `results` here.

Exit status: 0 all cells done; 1 some failed; 2 the request or its data are wrong; 75 interrupted after a save.
"""

from __future__ import annotations

import sys

if __name__ == '__main__' and not (sys.flags.safe_path or __file__.startswith(f'{sys.path[0]}/jbench/')):
    del sys.path[0]  # `python -m` puts the current folder there: a numpy.py that lies in it would be run

import argparse
import gc
import io
import os
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from jbench.cli import download, tables
from jbench.cli.arguments import FINDERS, SEARCH, parse, parse_cite
from jbench.cli.environment import environment
from jbench.plan import cell_file, request, select, weights
from jbench.plan.request import Plan
from jbench.progress import say
from jbench.spec.errors import RequestError, unknown

if TYPE_CHECKING:
    from jbench import stages
    from jbench.spec.cell import Cell

SWITCHES = ('debug', 'exclude_bad')  # flags without a value
OF_PYTHON = (
    *('seeds', 'weights', 'data_dir', 'workdir', 'simulated', 'if_exists', 'keep_weights', 'device', 'config'),
    *SWITCHES,
)


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    try:
        status = _main(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except RequestError as error:
        say(f'jbench: {error}')
        status = 2
    except KeyboardInterrupt:  # before or after the stages, which save
        say('interrupted: the same command goes on from there; with --if_exists=overwrite it begins anew')
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
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding lacks (PYTHONIOENCODING=ascii) becomes '?'
        sys.stdout.reconfigure(errors='replace')
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if threading.active_count() > 1:
        gc.collect()  # frees what worker processes shared
        os._exit(status)
    sys.exit(status)


def results(
    task: str | Sequence[str],
    model: str | Sequence[str] = 'eegnet',
    *,
    changes: Mapping[str, Any] | None = None,
    **flags: Any,
) -> list[dict[str, Any]]:
    """Run tasks with models, as the command does, and give their results, as files hold them; finished ones are read.

    Example: jbench.run('p3', 'eegnet,xdawn_lda', seeds=[33], workdir='work', changes={'recipe.max_epochs': 5})

    Args:
        task: as --task, or a list of such.
        model: as --model, or a list of such.
        changes: fields to change, as `--set` has them.
        flags: further flags by name, as `OF_PYTHON` lists them: seeds (whole numbers), weights, data_dir, workdir,
            simulated and keep_weights (True, False), if_exists, device, config, debug and exclude_bad (True).
    Raises: RequestError for a request or data that are wrong, and where nothing gives a result (stderr says why);
        KeyboardInterrupt where a signal stops it: the same call goes on from there.
    """
    if strange := [name for name in flags if name not in OF_PYTHON]:
        raise unknown('argument of jbench.run', strange[0], ['task', 'model', 'changes', *OF_PYTHON])
    if not isinstance(changes or {}, Mapping):
        raise RequestError(f'jbench.run: changes={changes!r}: expected a dict, as {{"recipe.max_epochs": 5}}')
    given = {name: value for name, value in flags.items() if value is not None and (value or name not in SWITCHES)}
    argv = [f'--{name}' if name in SWITCHES else f'--{name}={_flag(value)}' for name, value in given.items()]
    args = parse([f'--task={_flag(task)}', f'--model={_flag(model)}', '--stage=prepare,train', *argv])
    plan = _plan(args, changes or {})
    for reason in plan.told:
        say(reason)
    outcome = _stages(args, plan)
    if outcome is None:
        raise KeyboardInterrupt
    if not outcome.results:
        raise RequestError(f'jbench.run({task!r}, {model!r}): no result; the lines before this one say why')
    return outcome.results


def _flag(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return 'yes' if value else 'no'
    return ','.join(map(str, value)) if isinstance(value, list | tuple | range) else str(value)


class _Callable(ModuleType):
    """This module where Python calls it: a package has one name for its module `run` and its function."""

    def __call__(
        self,
        task: str | Sequence[str],
        model: str | Sequence[str] = 'eegnet',
        *,
        changes: Mapping[str, Any] | None = None,
        **flags: Any,
    ) -> list[dict[str, Any]]:
        return results(task, model, changes=changes, **flags)

    __call__.__doc__ = results.__doc__


sys.modules[__name__].__class__ = _Callable


def _main(argv: list[str]) -> int:
    """What was asked for. Raises RequestError."""
    if argv[:1] == ['cite']:
        from jbench.cli import cite

        print(cite.bibtex(parse_cite(argv[1:])))
        return 0
    if argv[:1] in (['report'], ['compare']):
        from jbench.cli import report

        return report.main(argv[argv[0] == 'report' :])
    args = parse(argv)
    if args.list or args.info:
        from jbench.cli import catalogue

        print(catalogue.show(args))
        return 0
    if not (args.task or args.cell or args.status):
        return tables.report_all(args.workdir, args.format)
    if 'alignment' in (args.task or '').lower():
        from jbench.cli import alignment

        return alignment.run(args)
    if args.status:
        from jbench.cli import grid

        return grid.show_status(args, _plan(args) if args.task or args.cell else None)
    return _search(args) if args.search else _run(args)


def _search(args: argparse.Namespace) -> int:
    """Trials of a space of fields, each as `_run` would train it. Raises RequestError."""
    from jbench.cli import search
    from jbench.report.dataset import facts as dataset_facts

    dataset_facts.require(f'--stage={SEARCH}')
    search.require()
    args.stages = ['prepare', 'train']

    def attempt(changes: dict[str, Any]) -> tuple[list[Cell], list[dict[str, Any]] | None]:
        plan = _plan(args, {**typed, **changes})
        outcome = _stages(args, plan)
        return plan.cells, None if outcome is None else outcome.results

    typed = dict(request.changes(args.set, args.config))
    plan = _plan(args)
    for reason in plan.told:
        say(reason)
    return search.run(args, plan, attempt)


def _run(args: argparse.Namespace) -> int:
    """Download, plan, then the other stages that were asked for."""
    fetched, lost, alone = 0, set[download.Lost](), args.stages == ['download']
    if 'download' in args.stages:
        where = (args.task, args.cell, args.data_dir)
        if args.cell:
            models = download.of_cells(args.cell)
        else:
            models = download.of_request(select.select_models(args.model, args.device), args.weights, args.data_dir)
        fetched, lost = download.fetch(*where, models=models, alone=alone, dry_run=args.dry_run)
    if alone or (lost and fetched == 2) or ('download' in args.stages and args.dry_run):  # what would run, files tell
        return fetched
    if drawn := [s for s in args.stages if s in ('check', *FINDERS)]:
        from jbench.report.dataset import facts as dataset_facts

        dataset_facts.require(f'--stage={drawn[0]}')
    plan = download.without(lost, _plan(args))
    if not plan.cells:
        return fetched
    for reason in plan.told:
        say(reason)
    if args.dry_run:
        from jbench.cli import dry_run
        from jbench.data.prepare import header

        how: dict[str, Any] = {
            'again': args.if_exists == 'overwrite',
            'keep_weights': args.keep_weights and 'train' in args.stages,
        }
        how['look'] = header.remembered()
        plans = [dry_run.plan_cell(c, args.seeds, args.data_dir, args.workdir, **how) for c in plan.cells]
        files = weights.published([n for c in plan.cells for n in weights.of_cell(c.model)], args.data_dir)
        print(dry_run.show(plans, args.stages, args.workdir, args.format, verbose=args.verbose, checkpoints=files))
        return 0
    if args.plan or args.jobs or args.cluster:
        from jbench.cli import grid

        status = grid.run(args, plan)
    else:
        outcome = _stages(args, plan)
        status = 75 if outcome is None else outcome.status
    missing = plan.absent and 'all' not in (args.task or '').split(',')  # which means: all that can run here
    return max(status, 1) if (missing or fetched) and not args.plan else status


def _plan(args: argparse.Namespace, typed: Mapping[str, Any] = {}) -> Plan:
    """Which cells run; `typed`: changes that Python gives. Raises RequestError."""
    trained = {*args.stages} != {'prepare'}  # prepared sets are the same for all weights
    if args.cell:
        needed = trained and 'train' in args.stages
        return cell_file.plan(args.cell, args.data_dir, args.workdir, args.weights, trained=needed)
    changes = tuple(sorted({**dict(request.changes(args.set, args.config)), **typed}.items()))
    asked = request.Request(
        args.task, args.model, changes, args.simulated, args.debug, args.device, args.weights, trained
    )
    return request.plan(asked, args.data_dir, args.workdir)


def _stages(args: argparse.Namespace, plan: Plan) -> stages.Outcome | None:
    """Run the stages and show what they found; None where a signal stopped them."""
    who = environment(args.workdir, args.device, args.distributed)
    from jbench.progress import Interrupted, Progress, StopSignal
    from jbench.train import compilation_cache

    with (
        StopSignal() as stop,
        Progress(who) as progress,
        compilation_cache.kept(args.workdir / 'xla', progress.say) as seal,
    ):
        from jbench import afresh, processes, stages
        from jbench.context import Context
        from jbench.train.programs import Compiler

        compiler = Compiler(seal)
        flags = (args.if_exists, args.keep_weights, plan.weights, args.delete_raw_after == 'prepared')
        context = Context(args.workdir, args.data_dir, progress, stop, *flags)
        try:
            asked = (plan.cells, args.stages, args.seeds)
            outcome = stages.run(*asked, context=context, compiler=compiler, distributed=args.distributed)
        except Interrupted as stopped:
            processes.leave()
            progress.say(str(stopped) or afresh.goes_on(args.if_exists))
            return None  # without waiting for the program that compiles now
        except BaseException:
            compiler.close()
            raise
        compiler.close()
        processes.leave()
    if {'check', *FINDERS} & {*args.stages}:
        from jbench.cli import found

        print(found.text(outcome.facts, args.format))
    if 'report' in args.stages and (outcome.results or args.format == 'json') and not who:
        wanted = [(cell.key, seed) for cell in plan.cells for seed in args.seeds]
        tables.report(outcome.results, args.format, wanted)
    return outcome


if __name__ == '__main__':
    program()
