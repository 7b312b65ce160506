"""What speaks against a result that somebody hands in, beyond scores and digests: fields that contradict each other,
the tables of jbench, or the files beside it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jbench import targets
from jbench.models import MODELS
from jbench.results import index, origin
from jbench.spec.cell import Cell, choosing
from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json
from jbench.spec.model import SCRATCH
from jbench.spec.pretraining import Verdict, seen_beside, verdict

PARTIAL = 'partial: '  # how the warning begins that goes with each entry of protocol.partial
# arrays of a safetensors file that are no parameters, by the end of their names, as PyTorch calls them
BUFFERS = (
    *('.running_mean', '.running_var', '.num_batches_tracked', 'merger.embedding.pos'),
    *('.sgconv.multiplier', '.sgconv.kernel_norm', '.sgconv.kernel_norm_initialized'),
)


def problems(path: Path, result: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None) -> Iterator[str]:
    """One text a problem.

    Args:
        path: of the result.
        result: as read, its config is one.
        arrays: its predictions; None: not looked at.
    """
    if result['kind'] != 'decoding':
        return
    try:
        index.read_row(str(path), result)
    except RequestError as error:
        yield str(error)
    if result['date'] is not None and not origin.believable(result['date']):
        yield f'date: written {result["date"]}, expected one in UTC as {origin.date()}, at most a day ahead'
    yield from _model(result['config'].get('model'))
    yield from _overlap(result)
    yield from _partial(result)
    yield from _parameters(path, result)
    yield from _final(result)
    if arrays is not None:
        yield from _classes(result, arrays)


def _model(written: Mapping[str, Any] | None) -> Iterator[str]:
    """What a config says of a model of the table, and the table otherwise; results of schema 1 say nothing."""
    known = MODELS.get(written['name']) if written else None
    if written is None or known is None:
        return
    of_weights = written['weights']
    if known.name in CHECKPOINTS:
        pinned, own = CHECKPOINTS[known.name].sha256, written.get('own_weights')
        if not of_weights:
            yield f'config.model.weights: written nothing, expected the SHA-256 of weights, or {SCRATCH!r}'
        if pinned and of_weights != SCRATCH and own != (of_weights != pinned):
            yield f'config.model.own_weights: written {own}, and the published weights have SHA-256 {pinned}'
        if of_weights == SCRATCH:
            known = dataclasses.replace(known, pretraining=())
        of_weights = of_weights if own else known.weights  # what these have seen, their file says
    same = (written['version'], of_weights) == (known.version, known.weights)
    for name in ('family', 'kind', *(('pretraining',) if same else ())):
        ours = getattr(known, name)
        if written[name] != (list(ours) if isinstance(ours, tuple) else ours):
            yield f'config.model.{name}: written {written[name]}, expected {ours}, as jbench has {known.name}'


def _overlap(result: Mapping[str, Any]) -> Iterator[str]:
    """Whether the weights have seen the test data, and its words; results of older versions do not say."""
    dataset, known = result['config']['dataset'], MODELS.get(result['config'].get('model', {}).get('name'))
    if 'overlap' not in result or known is None:
        return
    names, tested = {dataset['name'], *dataset['aliases']}, result['subjects']['test']
    found = verdict(result['model'], known.family, names, subjects=tested, declared=result['pretraining'])
    said = [w for w in result['warnings'] if w.startswith('overlap')]
    if seen_beside(said, result['config'].get('companions', ())):  # what its set cannot tell
        found = Verdict('overlap', 'a task learnt together with it did')
    if result['overlap'] != found.status or bool(said) != (found.status != 'clean'):
        yield f'overlap: written {result["overlap"]} with {said}, expected {found.status}: {found.why}'


def _partial(result: Mapping[str, Any]) -> Iterator[str]:
    """What of a dataset was not there stands in the protocol and, each with its mark, among the warnings."""
    if result['simulated']:
        return
    said, marked = (
        result['protocol']['partial'],
        [w.removeprefix(PARTIAL) for w in result['warnings'] if w.startswith(PARTIAL)],
    )
    if set(said) != set(marked):
        yield f'protocol.partial: written {said}, expected {marked}, as its warnings say'


def _final(result: Mapping[str, Any]) -> Iterator[str]:
    """Where the epochs of a network come from that learnt without a validation part."""
    said, asked = result.get('final'), result['config']['task']['recipe'].get('final') == 'all'
    if (said is None) == asked and result['status'] != 'failed':
        yield f'final: written {said}, expected {"the run that chose the epochs" if asked else "nothing"}'
    if said is None or not asked:
        return
    key = choosing(from_json(Cell, result['config'], 'config')).key
    for name, true in (('key', key), ('epochs', len(result['history']))):
        if said[name] != true and (name, result['status']) != ('epochs', 'failed'):
            yield f'final.{name}: written {said[name]}, expected {true}'
    if n := result['n_records']['valid']:
        yield f'n_records.valid: written {n}, expected 0, as all learnt from them'


def _parameters(path: Path, result: Mapping[str, Any]) -> Iterator[str]:
    """The number of parameters against the arrays of the weights, where these lie beside."""
    kept = path.with_suffix('.safetensors')
    if result['weights'] is None or not kept.is_file():
        return
    sizes = _sizes(kept)
    if sizes is None:
        yield f'weights: {kept.name} is no safetensors file'
        return
    n, total = n_parameters(sizes), result['n_parameters']['total']
    if total != n:
        yield f'n_parameters.total: written {total}, expected {n}, as {kept.name} has'


def n_parameters(sizes: Mapping[str, int]) -> int:
    """Parameters among the arrays of a safetensors file, as `weights.to_bytes` names them: their sizes by name."""
    if any(name.startswith('params.') for name in sizes):  # by our own paths
        return sum(size for name, size in sizes.items() if name.startswith('params.'))
    return sum(size for name, size in sizes.items() if not name.endswith(BUFFERS))


def _sizes(path: Path) -> dict[str, int] | None:
    """How many numbers each array of a safetensors file has, from its header; None where it is none."""
    try:
        with path.open('rb') as file:
            length = int.from_bytes(file.read(8), 'little')
            header = json.loads(file.read(min(length, path.stat().st_size)))
        return {name: math.prod(array['shape']) for name, array in header.items() if name != '__metadata__'}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _classes(result: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Iterator[str]:
    """The list of classes against the width of the outputs, where an output is a class; schema 1 has no `n_out`."""
    kind, width = result['config']['task']['target']['kind'], arrays['outputs'].shape[1]
    if targets.of(kind).frames or targets.of(kind).measured:  # which may have any number of steps
        return
    names, n_out = result['classes'], result['n_out']
    if n_out is not None and n_out != width:
        yield f'n_out: written {n_out}, expected {width}, the width of the outputs'
    if targets.of(kind).least and (len(names) != width or len(set(names)) != len(names)):
        yield f'classes: written {names}, expected {width} names, one for each output'
