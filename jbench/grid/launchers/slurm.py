"""A plan as one script for Slurm: it submits itself as arrays, of which each task runs one job.

What each line is for was seen on a real Slurm 22.05; tests/grid/test_slurm.py runs the script on one.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from jbench.grid.job import Job, line
from jbench.grid.launchers.planned import Planned, listed, logs, memory, words

LIMIT = 120  # s before the time limit: the cell is told to save
TURNS = 20  # a task whose limit came this often is not sent back once more

TASK = """\
late=
task=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID  # SLURM_JOB_ID of the last task would mean all of the array
trap 'late=1; kill -TERM $job 2>/dev/null' USR1  # the time limit comes: save, then another turn
trap 'late=; kill -TERM $job 2>/dev/null' TERM  # cancelled, preempted or sent back: Slurm knows what comes next
export NPROC=$SLURM_CPUS_PER_TASK  # threads of jax: as many as are ours
{setup}line=$(commands | sed -n "$(($1 + SLURM_ARRAY_TASK_ID))p")
[ "$line" ] || exit 2
if [ ${{SLURM_RESTART_COUNT:-0}} -gt 0 ]; then  # a further turn goes on from what the one before has saved
    line=$(sed -E 's/ --if_exists=(overwrite|skip) / --if_exists=resume /' <<< "$line")
fi
echo "$line"
eval "exec $line" & job=$!
while kill -0 $job 2>/dev/null; do wait $job; done  # a trap ends `wait` early
wait $job; status=$?
if [ $status = 75 ] && [ "$late" ] && [ ${{SLURM_RESTART_COUNT:-0}} -lt {turns} ]; then
    scontrol requeue $task && sleep 60  # Slurm ends this task before that
fi
exit $status
"""

SUBMIT = """\
if [ $# = 0 ]; then  # a person's shell: submit
    set -eo pipefail
    self=$(readlink -f "$0") logs={logs}
    mkdir -p "$logs"
    submit() {{ sbatch --parsable --output="$logs/%x-%A_%a.log" "$@" | cut -d';' -f1; }}
{arrays}
    echo "submitted: {names}; squeue --me shows them, $logs has what they print"
    exit
fi
"""


class Options(NamedTuple):
    """What a plan cannot know of a cluster."""

    time: str = '04:00:00'
    accelerator: str = 'gpu:1'  # as --gres has it, for jobs that use one; '': none
    memory: str = ''  # as 16G; '': the largest that is expected in an array
    cpus: int = 4
    at_once: int = 0  # tasks of the plan that run at once; 0: as many as Slurm allows
    array_size: int = 1000  # with MaxArraySize 1001, Slurm's default, the largest index is 1000
    setup: str = ''  # shell, before the command
    more: tuple[str, ...] = ()  # further options of sbatch


Group = tuple[tuple[Job, ...], bool]  # jobs, and whether they wait for all that prepare


class Array(NamedTuple):
    """Jobs that are one array of Slurm."""

    start: int  # jobs of the script before its first one
    jobs: tuple[Job, ...]
    waits: bool  # for all arrays that prepare


def text(plan: Planned, options: Options) -> str:
    """The script: run by a person it submits, run by Slurm it runs one job."""
    groups = _groups(plan)
    head = [
        '#!/bin/bash',
        f'# {words(plan)}. Submit: bash THIS_FILE',
        '# Each task of its arrays runs this file. What is done is not computed again: submitting twice does no harm.',
        f'#SBATCH --job-name={plan.name} --time={options.time} --cpus-per-task={options.cpus}',
        f'#SBATCH --requeue --open-mode=append --signal=B:USR1@{LIMIT}',
        *(f'#SBATCH {option}' for option in options.more),
    ]
    commands = listed(line(job) for jobs, _ in groups for job in jobs)
    task = TASK.format(setup=f'{options.setup}\n' if options.setup else '', turns=TURNS)
    return '\n'.join([*head, '', *commands, '', _submit(plan, _arrays(groups, options.array_size), options), task])


def _groups(plan: Planned) -> list[Group]:
    """Jobs that prepare, cells that can start at once, and cells that wait."""
    ready = tuple(job for job in plan.cells if not job.after)
    return [(plan.prepare, False), (ready, False), (tuple(job for job in plan.cells if job.after), True)]


def _arrays(groups: Sequence[Group], size: int) -> list[Array]:
    """Groups, cut where an array would have too large an index."""
    found, start = [], 0
    for jobs, waits in groups:
        found += [Array(start + k, jobs[k : k + size], waits) for k in range(0, len(jobs), size)]
        start += len(jobs)
    return found


def _submit(plan: Planned, arrays: Sequence[Array], options: Options) -> str:
    """The part that submits. Of arrays that are limited together the next starts when the one before has ended."""
    lines: list[str] = []
    names: list[str] = []
    prepared: list[str] = []
    for array in arrays:
        after = names[-1:] if options.at_once else prepared if array.waits else []
        name = f'array{len(names) + 1}'
        lines.append(f'    {name}=$(submit {_sbatch(array, after, options)})')
        names.append(name)
        if array.jobs[0] in plan.prepare:
            prepared.append(name)
    shown = ' '.join(f'${name}' for name in names)
    return SUBMIT.format(logs=shlex.quote(logs(plan)), arrays='\n'.join(lines), names=shown)


def _sbatch(array: Array, after: Sequence[str], options: Options) -> str:
    """What sbatch is told of one array."""
    needed = memory(array.jobs, options.memory, 'G')
    accelerator = options.accelerator if array.jobs[0].devices else ''
    words = [f'--array=1-{len(array.jobs)}' + (f'%{options.at_once}' if options.at_once else '')]
    words += [f'--dependency=afterany:{":".join(f"${name}" for name in after)}'] if after else []
    words += [shlex.quote(f'--gres={accelerator}')] if accelerator else []
    words += [shlex.quote(f'--mem={needed}')] if needed else []
    return f'{" ".join(words)} "$self" {array.start}'
