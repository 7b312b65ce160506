"""Figures of models beside brains, from result files of alignment and the arrays beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench import files
from jbench.report import alignment_table
from jbench.report.figures import alignment, style
from jbench.report.figures.plan import Plan, there
from jbench.spec.benchmark import PREFIX

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jbench.report.figures.style import Table

Result = Mapping[str, Any]
PARTS = re.compile(r'(\d+)')  # of the name of a layer: 'features.9' stands before 'features.10'
CONFLICT = re.compile(r'([a-z]+)\d+-([a-z]+)\d+')  # of an image of Geirhos et al. (2019): its shape, its texture


def plans(results: Sequence[Result]) -> Iterator[Plan]:
    """The figures of each benchmark, and of the tree. One seed of each model stands for it where arrays are drawn.

    Args:
        results: of kind 'alignment', as files hold them, each with its `path`.
    """
    if not results:
        return
    yield _plan(
        'alignment_tree', '', 'Models beside brains: means over the tree of benchmarks', partial(_tree, results)
    )
    for name in sorted({r['config']['candidate']['name'] for r in results if _layer(r)}):
        mine = [r for r in results if _layer(r) and r['config']['candidate']['name'] == name]
        yield _plan('alignment_layers', name, f'{name}: layers beside brains', partial(_layers, mine))
    for task in sorted({r['task'] for r in results}):
        mine = [r for r in results if r['task'] == task]
        name = task.removeprefix(PREFIX)
        first = list({r['model']: r for r in sorted(mine, key=lambda r: -r['seed'])}.values())
        for kind, words, make in (
            ('alignment_scores', 'scores of models', partial(_scores, mine)),
            ('alignment_neuroids', 'scores of neuroids', partial(_neuroids, first)),
            ('alignment_over_time', 'scores over time', partial(_over_time, first)),
            ('alignment_rdms', 'dissimilarities', partial(_rdms, first)),
            ('alignment_shape_bias', 'shape or texture', partial(_shape_bias, first)),
        ):
            yield _plan(kind, name, f'{name}: {words}', make)


def _plan(kind: str, name: str, title: str, make: Any) -> Plan:
    return Plan(style.stem(kind, *([name] if name else [])), kind, 'own', name, '', title, partial(make, title))


def _tree(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    table = [
        {'row': line['model'], 'column': line['node'], 'value': line['score']}
        for line in alignment_table.tree_rows(results)
    ]
    there(table, 1, 'no benchmark of the tree has a result')
    return alignment.grid(table, title=title, rows='model', columns='node of the tree'), table


def _layer(result: Result) -> str:
    """The layer that stands for every region in a result; '': each region has its own."""
    return str(result['config']['candidate'].get('layer', ''))


def _layers(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    """Layers by regions; regions with several benchmarks have several columns."""
    region = {r['task']: r['config']['benchmark']['region'] for r in results}
    layer = {r['model']: _layer(r) for r in results}
    table = [
        {
            'row': layer[line['model']],
            'column': f'{region[PREFIX + line["benchmark"]]}: {line["benchmark"]}',
            'value': line['score'],
        }
        for line in alignment_table.rows(results)
    ]
    table.sort(key=lambda row: (str(row['column']), [int(n) if n.isdigit() else n for n in PARTS.split(row['row'])]))
    return alignment.grid(there(table, 1, 'no layer has a score'), title=title, rows='layer', columns='region'), table


def _scores(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    lines = [line for line in alignment_table.rows(results) if line['raw'] is not None and line['score'] is not None]
    lines = sorted(lines, key=lambda line: -line['raw'])
    table = [{k: line[k] for k in ('model', 'raw', 'raw_error', 'ceiling', 'score')} for line in lines]
    return alignment.scores(there(table, 1, 'no score is defined'), title=title), table


def _arrays(result: Result) -> dict[str, np.ndarray]:
    """What lies beside a result; nothing where it was removed."""
    path = Path(result['path']).with_suffix('.npz')
    return files.read_npz(path) if path.is_file() else {}


def _neuroids(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    table = [
        {'model': r['model'], 'neuroid': k, 'value': float(v)}
        for r in results
        for k, v in enumerate(_arrays(r).get('per_neuroid', np.empty(0)))
        if np.isfinite(v)
    ]
    return alignment.neuroids(there(table, 1, 'no score of single neuroids lies beside it'), title=title), table


def _over_time(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    table: Table = []
    for r in results:
        arrays = _arrays(r)
        for (start, end), value, error in zip(
            *(arrays.get(k, ()) for k in ('bins', 'over_time', 'over_time_error')), strict=True
        ):
            line = {'model': r['model'], 'start': float(start), 'end': float(end), 'value': float(value)}
            table.append({**line, 'error': float(error) if np.isfinite(error) else None})
    there(table, 1, 'its score has no bins of time')
    return alignment.over_time(table, title=title, label='score of a bin'), table


def _rdms(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    found = {r['model']: _arrays(r) for r in results}
    mine = [(model, arrays['rdm_model']) for model, arrays in found.items() if 'rdm_model' in arrays]
    recording = next((a['rdm_recording'] for a in found.values() if 'rdm_recording' in a), None)
    matrices = [*([('recording', recording)] if recording is not None else []), *mine][:4]
    table = there(alignment.rdm_rows(matrices), 1, 'it compares no dissimilarities')
    return alignment.rdms(matrices, title=title), table


def _shape_bias(results: Sequence[Result], title: str) -> tuple[Figure, Table]:
    table: Table = []
    for r in results:
        arrays = _arrays(r)
        ids = [CONFLICT.search(str(name)) for name in arrays.get('stimulus_id', ())]
        if ids and all(ids):
            shapes, textures = zip(*(m.groups() for m in ids if m), strict=True)
            table += alignment.shape_rows(r['model'], arrays['choice'], shapes, textures)
    there(table, 1, 'its images have no shape and texture of different objects')
    return alignment.shape_bias(table, title=title), table
