"""Encoders against braindecode itself, from its own initial weights; skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_foundation_peers.py
"""

from __future__ import annotations

from importlib.util import find_spec

import jax
import jax.numpy as jnp
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled

from jbench.models.foundation.cbramod import cbramod
from jbench.models.foundation.labram import labram
from jbench.spec.model import Signal

if find_spec('braindecode') is None:  # importing it here could fail: see make_foundation_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
BUILT = {'labram': labram, 'cbramod': cbramod}
SHAPE = (6, 600, 3)


@pytest.mark.parametrize('name', BUILT)
def test_equals_braindecode(name: str) -> None:
    """Evaluation and the gradient of the mean loss, in float64 on both sides; weights are handed over as float32."""
    import torch
    from make_foundation_fixtures import BUILDERS, gradient, still

    torch.manual_seed(3)
    net = still(BUILDERS[name](SHAPE))
    state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    x, y = weights.windows(SHAPE, recorded.ROWS)
    expected = net.double().train()(torch.tensor(x).double())
    torch.nn.functional.cross_entropy(expected, torch.tensor(y)).backward()
    c, t, n = SHAPE
    signal = Signal(n_chans=c, n_times=t, sfreq=200.0, ch_names=tuple(recorded.LABRAM_CHANNELS)[:c])
    with jax.enable_x64(True):
        model = BUILT[name](signal, n)
        variables = jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(state))
        batch = {'x': jnp.asarray(x, float), 'mask': jnp.ones(len(x), bool)}

        @compiled
        def loss(params):
            def mean(params):
                outputs = model.apply(variables | {'params': params}, batch, train=True, key=None).outputs
                return -jax.nn.log_softmax(outputs)[jnp.arange(len(y)), y].mean(), outputs

            return jax.grad(mean, has_aux=True)(params)

        grads, outputs = loss(variables['params'])
        close(outputs, expected.detach().numpy(), 1e-10)
        exported = model.to_torch({'params': grads, 'batch_stats': {}})
        whole = max(float(gradient(p).abs().max()) for p in net.parameters())
        for key, p in net.named_parameters():
            close(exported[key], gradient(p).numpy(), 1e-6, key, floor=whole / 100)
