"""The seeds of a cell whose model is an estimator: fitted once for all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from jbench import targets
from jbench.context import Context
from jbench.data.load import prepared_set
from jbench.data.load.class_names import class_names
from jbench.models import factory
from jbench.models.baselines.estimator import Labelled, Training
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.train import stream


def fit_estimator(
    cell: Cell, data: prepared_set.PreparedSet, seeds: list[int], context: Context
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (seed, outcome) of an estimator: fitted once, the same for every seed."""
    rows = {'train': data.rows('train'), 'valid': data.rows('valid'), 'both': data.rows('train', 'valid')}
    test_rows = data.rows('test')
    vectors = data.fitted_vectors(cell.task.recipe.published and cell.model.family == 'baselines')
    taught = {} if vectors is None else {'vectors': vectors}
    y = targets.of(data.kind).answered(data.y, data.n_out)
    given = Training(
        **{k: Labelled(prepared_set.View(data, r), y[r], data.about(r) | taught) for k, r in rows.items()},
        kind=data.kind,
        n_out=data.n_out,
        signal=data.signal,
        metric=cell.task.metric,
        published=cell.task.recipe.published,
        classes=tuple(class_names(cell.dataset, data)),
    )
    what = cell.title
    context.progress.update(what, 0, 1)
    began = time.monotonic()
    predict = factory(cell.model)(given, **dict(cell.model.options))
    fitted = time.monotonic()
    context.guard()
    outputs, shape = _answered(data, predict, test_rows), (len(test_rows), data.n_out)
    if targets.of(data.kind).frames and outputs.ndim == 2:  # a path of any number of frames
        shape = (len(test_rows), outputs.shape[1])
    if outputs.shape != shape or outputs.dtype.kind not in 'biuf' or not np.isfinite(outputs).all():
        raise RequestError(
            f'model {cell.model.name}: expected finite numbers {list(shape)} ([windows, n_out]) as its outputs on the '
            f'test part, got {outputs.dtype} {list(outputs.shape)}' + ', not all finite' * (outputs.shape == shape)
        )
    tested = time.monotonic()
    context.progress.update(what, 1, 1)
    predictions = data.predictions(test_rows, outputs)
    for seed in seeds:
        context.guard()
        yield (
            seed,
            {
                'predictions': predictions,
                'timings': {'compile': 0.0, 'fit': fitted - began, 'test': tested - fitted, 'total': tested - began},
            },
        )
        began = fitted = tested  # the other seeds took no time


def _answered(data: prepared_set.PreparedSet, predict: Any, rows: np.ndarray) -> np.ndarray:
    """What an estimator answers to windows: all at once, or each alone and in order where they are streamed."""
    if data.places is None:
        return np.asarray(predict(prepared_set.View(data, rows)))
    one = [prepared_set.View(data, rows[k : k + 1]) for k in range(len(rows))]
    return stream.answers(predict, one.__getitem__, data.places.of(rows), lambda model, window: model(window))
