"""The seeds of a cell: what a network is given that asks for it, and what a result says of its parameters."""

from __future__ import annotations

import dataclasses
import shutil

import montages
import numpy as np
import pytest
import small

from jbench.context import Context
from jbench.data.load import loader, prepared_set
from jbench.progress import Progress, StopSignal
from jbench.train import seeds
from jbench.train.programs import Compiler


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return montages.prepared(tmp_path_factory.mktemp('montages'))


@pytest.mark.parametrize('kept', [{}, {'resident_bytes': 0}], ids=['resident', 'streamed'])
def test_chunks_carry_the_channels_of_each_window_where_asked(data, kept):
    made = loader.Loader(data, ('train', 'test'), 5, channel_mask=True, **kept)
    for epoch in (None, 0, 1):
        for chunk in made.chunks(epoch):
            assert chunk.extra['channel_mask'].dtype == bool
            for k in range(chunk.n):
                np.testing.assert_array_equal(chunk.extra['channel_mask'][k], montages.there(chunk.id[k]))
                assert not chunk.x[k][~chunk.extra['channel_mask'][k]].any()
    plain = next(loader.Loader(data, ('train',), 5, **kept).chunks())
    assert plain.extra == {}


@pytest.mark.slow
def test_a_network_that_asks_learns_and_answers_with_its_mask(data, tmp_path):
    """Its outputs are those of the channels that are there; of its parameters those that are trained are counted."""
    cell = small.cell(batch_size=8, max_epochs=2, trainable=(('offset', 0.0),))
    cell = dataclasses.replace(cell, model=montages.MODEL)
    context = Context(tmp_path, None, Progress(), StopSignal(), 'resume')
    ((seed, outcome),) = seeds.train_network(cell, data, [33], Compiler(), context)
    assert seed == 33 and outcome['n_parameters'] == {'total': 4, 'trainable': 2}
    rows = data.rows('test')
    x, mask = prepared_set.read(data, rows, None), montages.there(rows)
    expected = (x.mean(-1) * mask).sum(1) / mask.sum(1)
    scale = outcome['predictions']['outputs'] / expected[:, None]
    np.testing.assert_allclose(scale, scale[:1].repeat(len(scale), 0), rtol=1e-4)
    assert abs(scale[0] - 1).max() > 1e-3  # it moved


def test_a_checkpoint_tells_sets_of_one_name_apart(data, tmp_path):
    """Whose vectors, say, were made anew."""
    context, cell = Context(tmp_path, None, Progress(), StopSignal(), 'resume'), small.cell()
    other = shutil.copytree(data.folder, tmp_path / data.folder.name)
    with (other / 'manifest.json').open('a') as file:
        file.write(' ')
    sets = (data, data, dataclasses.replace(data, folder=other))
    one, same, changed = (seeds.watch_of(cell, d, 33, 1, context).machine for d in sets)
    assert one == same != changed
