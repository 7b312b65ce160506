"""jbench_tiny: any montage, weights that come with the package."""

from __future__ import annotations

import hashlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.data.electrodes import positions
from jbench.models import MODELS, factory, pretrained, seen
from jbench.models.foundation.jbench_tiny import SITES, jbench_tiny, mixture
from jbench.plan import request, weights
from jbench.spec.checkpoints import CHECKPOINTS, place_of
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.spec.pretraining import history

PATH = place_of('jbench_tiny', Path())


def signal(names: tuple[str, ...], n_times: int = 60) -> Signal:
    return Signal(n_chans=len(names), n_times=n_times, sfreq=100.0, ch_names=names, positions=positions(names))


def test_a_site_takes_most_of_its_own_electrode_and_the_order_of_channels_is_no_matter():
    names = tuple('Cz C3 Oz Fp1 P4 FCz'.split())
    found = mixture(positions(names))
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-6)
    assert found[SITES.index('C3')].argmax() == 1 and found[SITES.index('P4')].argmax() == 4
    turned = mixture(positions(names[::-1]))
    np.testing.assert_allclose(turned[:, ::-1], found, rtol=1e-6)
    unplaced = mixture((*positions(names), None))
    np.testing.assert_array_equal(unplaced[:, :-1], found)
    assert not unplaced[:, -1].any()
    with pytest.raises(RequestError, match='no channel has a position'):
        mixture((None, None))


def test_its_weights_come_with_the_package_and_say_what_they_have_seen():
    checkpoint = CHECKPOINTS['jbench_tiny']
    assert hashlib.sha256(PATH.read_bytes()).hexdigest() == checkpoint.sha256 and PATH.stat().st_size < 1 << 20
    (listed,) = weights.published(['jbench_tiny'], None)
    assert listed.here and listed.bytes == PATH.stat().st_size, 'without a folder of data, too'
    known = history('jbench_tiny')
    assert {*seen.datasets(PATH)} <= {*known.datasets}
    (cell,) = request.plan(request.Request('p3', 'jbench_tiny', simulated='yes'), None, PATH.parent).cells
    assert (cell.model.full_name, cell.model.weights) == ('jbench_tiny', checkpoint.sha256)
    assert cell.model.pretraining == known.datasets and cell.task.signal.sfreq == 100.0


@pytest.mark.slow
def test_the_encoder_starts_from_them_and_the_head_does_not(tmp_path):
    at = signal(('Fz', 'C3', 'C4', 'Pz'))
    model = factory(MODELS['jbench_tiny'])(at, 3)
    drawn = jax.tree.map(np.asarray, model.init(jax.random.key(0)))
    found = pretrained.arrays(PATH, CHECKPOINTS['jbench_tiny'].sha256, tmp_path)
    begun = pretrained.begin(model, found, drawn, str(PATH))
    np.testing.assert_array_equal(begun['params']['linear'], drawn['params']['linear'])
    assert np.abs(begun['params']['spatial'] - drawn['params']['spatial']).max() > 0.01
    batch = {'x': jnp.ones((2, 4, 60)), 'mask': jnp.ones(2, bool)}
    assert model.apply(begun, batch, train=False, key=None).outputs.shape == (2, 3)


def test_windows_without_positions_are_refused():
    with pytest.raises(RequestError, match='needs the positions of all 4 channels, got 0'):
        jbench_tiny(Signal(n_chans=4, n_times=60, sfreq=100.0), 2)
