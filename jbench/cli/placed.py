"""Which channels of a task a model uses, and as what: `--info=MODEL --task=TASK`."""

from __future__ import annotations

import argparse
from typing import Any

from jbench.cli import dry_run
from jbench.data.prepare import build_set, header
from jbench.models import MODELS, user_model
from jbench.plan import places, request
from jbench.report.text import listed
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError

Facts = dict[str, Any]


def facts(args: argparse.Namespace) -> Facts:
    """What each channel is used as in each dataset that the tasks run on, by its prepared set or the head of its first
    recording; `args`: the flags, with `info` and `task`.

    Raises: RequestError for a name that is no model's, and as `request.plan`.
    """
    if args.info.partition(':')[0].lower() not in MODELS and not user_model.named(args.info):
        raise RequestError(f'--info={args.info} --task={args.task}: --task is for models; leave it out')
    asked = request.Request(args.task, args.info, request.changes(args.set, args.config), args.simulated, trained=False)
    look, form = header.remembered(), args.format
    found: Facts = {}
    for cell in request.plan(asked, args.data_dir, args.workdir).cells:
        if places.unread(cell.model):
            found['places'] = f"those of MNE's montages; {places.lacking(cell.model.name, args.data_dir)}"
        where = f'channels of {cell.name}' + ' (simulated)' * cell.dataset.simulated
        found[where] = (
            _used(cell, args, look)
            if form == 'json'
            else _words(_used(cell, args, look), 'positions' in cell.model.asks)
        )
    return found


def _used(cell: Cell, args: argparse.Namespace, look: header.ReadHead) -> Facts:
    """What each channel is used as (None: all are, as they come), which are left out, and why the cell is refused."""
    plan = dry_run.plan_cell(cell, args.seeds[:1], args.data_dir, args.workdir, keep_weights=False, look=look)
    _, refs = build_set.locate(cell.task, cell.dataset, args.data_dir, args.workdir)
    head, used = look(cell.task.signal, cell.dataset, refs[0]) if refs else None, plan['channels']
    there = list(head.ch_names) if head is not None else []
    left = [name for name in there if used is not None and name not in used]
    return {'there': there, 'used': used, 'left_out': left, 'refused': plan['refused']}


def _words(found: Facts, placed: bool) -> str:
    used, left = found['used'], found['left_out']
    if found['refused']:
        return f'refused: {found["refused"]}'
    if used is None:
        return f'all, as they come: {listed(found["there"])}'
    words = [name if name == of else f'{name} at {of} mm' if placed else f'{name} as {of}' for name, of in used.items()]
    return listed(words) + (f'; left out: {listed(left)}' if left else '')
