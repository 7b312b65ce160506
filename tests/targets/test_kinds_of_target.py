"""The table of kinds: what specs, scores, losses and samplers say of a kind fits together."""

from __future__ import annotations

import numpy as np
import pytest

from jbench import targets
from jbench.data.load.sampling import SAMPLERS
from jbench.spec.metrics import METRICS, of_kind
from jbench.spec.task import TARGETS
from jbench.targets.packed import packed
from jbench.train.losses import LOSSES, TAUGHT


def test_every_kind_of_the_specs_has_its_module() -> None:
    assert set(targets.KINDS) == set(TARGETS)
    assert {k.name for k in targets.KINDS.values()} == set(TARGETS) - {'state'}, 'states are classes like others'
    assert set(TAUGHT) == set(LOSSES) == {loss for t in TARGETS.values() for loss in t.losses}
    assert set(SAMPLERS) == {sampler for t in TARGETS.values() for sampler in t.samplers}


@pytest.mark.parametrize('kind', TARGETS)
def test_outputs_are_averaged_where_a_metric_may_be_of_a_subject(kind: str) -> None:
    levels = {METRICS[name].levels for name in of_kind(kind) if not METRICS[name].cells}
    assert len(levels) == 1 and (levels != {('window',)}) == (targets.of(kind).pooled is not None)


@pytest.mark.parametrize('kind', TARGETS)
def test_what_a_row_teaches_has_the_shape_of_what_is_encoded(kind: str) -> None:
    raw = {'value': [1.0, 2.0], 'classes': ['a', 'b'], 'embedding': [['a', 'g'], ['b', 'g']]}
    raw['angles'] = [packed(np.zeros((2, 50))), packed(np.ones((2, 50)))]
    raw['moment'] = raw['next'] = [['a', '0'], ['b', '1']]
    raw = raw.get(kind, [['a'], ['b']])
    encoded = targets.encode(TARGETS[kind](), raw)
    vectors = np.ones((2, 5), np.float32) if kind == 'embedding' else None
    n_out = targets.of(kind).n_out(encoded.y, encoded.classes, vectors)
    y = encoded.y if vectors is None else vectors[encoded.y]
    for loss in TARGETS[kind].losses:
        length = y.shape[1] if targets.of(kind).measured else 128 * targets.of(kind).frames
        tail, dtype = TAUGHT[loss](n_out, length)
        assert tail == y.shape[1:] and np.dtype(dtype).kind == y.dtype.kind


def test_an_unknown_kind_names_those_there_are() -> None:
    with pytest.raises(
        ValueError, match="'words'; there are classes, state, labels, value, embedding, keystrokes, angles, moment"
    ):
        targets.of('words')
