"""Every network against braindecode itself, from braindecode's own initial weights; skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/test_peers.py
"""

from __future__ import annotations

from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import weights
from networks import NETWORKS, close, compiled, compiled_step

if find_spec('braindecode') is None:  # importing it here could fail: see make_network_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
SHAPE = weights.TRAINED[1]


@pytest.mark.parametrize('name', NETWORKS)
def test_equals_braindecode(name: str) -> None:
    """Evaluation, then ten steps on the same windows, in float64 on both sides; weights are handed over as float32."""
    import torch
    from make_network_fixtures import braindecode, take_steps

    torch.manual_seed(3)
    net = braindecode(name, SHAPE)
    state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    x, y = weights.windows(SHAPE, weights.TRAIN_ROWS)
    with torch.no_grad():
        expected = net.double().eval()(torch.tensor(x).double()).numpy()
    steps = take_steps(net, torch.tensor(x).double(), torch.tensor(y), weights.LR[name])
    with jax.enable_x64(True):
        model, step = compiled_step(name, SHAPE)
        variables = jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(state))
        batch = {'x': jnp.asarray(x, float), 'mask': jnp.ones(len(x), bool)}
        evaluate = compiled(lambda variables, batch: model.apply(variables, batch, train=False, key=None)[0])
        close(evaluate(variables, batch), expected, 1e-10)
        for i in range(weights.STEPS):
            found = step(variables, batch, y)
            variables = found['variables']
            for k in ('loss', 'grad_norm'):
                np.testing.assert_allclose(found[k], steps[k][i], rtol=1e-9, err_msg=f'{k} of step {i}')
        for key, value in model.to_torch(variables).items():
            if not key.endswith('num_batches_tracked'):
                np.testing.assert_allclose(value, steps[f'final/{key}'], rtol=1e-6, atol=1e-6, err_msg=key)
