"""LUNA and REVE against braindecode itself, and files that it writes; skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_peers_luna_reve.py -m 'slow or not slow'
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import recorded_encoders as recorded
import weights
from networks import close, compiled

from jbench.models.foundation import luna, reve
from jbench.models.model import Model, load
from jbench.spec.model import Signal

if find_spec('braindecode') is None:  # importing it here could fail: see make_foundation_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
pytestmark = pytest.mark.slow

SHAPE = (5, 450, 3)
OPTIONS = luna._Options(None, dropout=0.1, drop_path=0.1, mlp_norm=False, remat=False)


def build(name: str, depth: int = 2) -> Model:
    c, t, n = SHAPE
    signal = Signal(n_chans=c, n_times=t, sfreq=200.0, positions=recorded.places(c))
    if name == 'reve':
        return reve.build(name, reve.BASE._replace(depth=depth), signal, n, positions='', remat=None)
    return luna.build(name, luna.LARGE._replace(depth=depth), signal, n, OPTIONS._replace(mlp_norm='norms' in name))


def flat_in_parts() -> np.ndarray:
    """Windows with a flat channel, a flat piece of another, and a piece of zeros."""
    x = weights.windows(SHAPE, recorded.ROWS)[0]
    x[0, 0] = 0.25
    x[:, 2, 40:200] = -0.5
    x[1, 3, 300:] = 0
    return x


@pytest.mark.parametrize('name', ['luna', 'luna_norms', 'reve'])
def test_equals_braindecode(name: str) -> None:
    """Evaluation and the gradient of the mean loss, in float64 on both sides; weights are handed over as float32."""
    import torch
    from make_foundation_fixtures import BUILDERS, gradient, still

    torch.manual_seed(3)
    net = still(BUILDERS[name](SHAPE))
    state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    x, y = flat_in_parts(), weights.windows(SHAPE, recorded.ROWS)[1]
    expected = net.double().train()(torch.tensor(x).double())
    torch.nn.functional.cross_entropy(expected, torch.tensor(y)).backward()
    with jax.enable_x64(True):
        model = build(name)
        variables = jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(state))
        batch = {'x': jnp.asarray(x, float), 'mask': jnp.ones(len(x), bool)}

        @compiled
        def loss(params: Any) -> Any:
            def mean(params: Any) -> Any:
                outputs = model.apply(variables | {'params': params}, batch, train=True, key=None).outputs
                return -jax.nn.log_softmax(outputs)[jnp.arange(len(y)), y].mean(), outputs

            return jax.grad(mean, has_aux=True)(params)

        grads, outputs = loss(variables['params'])
        close(outputs, expected.detach().numpy(), 1e-9)
        exported = model.to_torch({'params': grads, 'batch_stats': {}})
        whole = max(float(gradient(p).abs().max()) for p in net.parameters())
        for key, p in net.named_parameters():
            close(exported[key], gradient(p).numpy(), 1e-6, key, floor=whole / 100)


def outputs_of(model: Model, variables: Any, x: np.ndarray) -> np.ndarray:
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool)}
    return compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(variables)


def read(model: Model, net: Any, exceptions: Any, file: Path) -> Any:
    """Our variables from what braindecode writes of a network, with a head of zeros and ones."""
    from safetensors.torch import save_file

    save_file({key: value.contiguous() for key, value in net.state_dict().items()}, file)
    start = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), jax.eval_shape(model.init, jax.random.key(0)))
    start['params']['head']['weight'][:, ::2] = 0
    return load(model, file, exceptions=exceptions, start=start)


def test_luna_untouched(tmp_path: Path) -> None:
    """A file of braindecode's own class, and its answers in float64 from windows of noise, where no part of a spectrum
    is rounding; its rotary frequencies have seven digits."""
    import torch
    from make_foundation_fixtures import known_places, models

    torch.manual_seed(3)
    net = models().LUNA(n_outputs=4, n_chans=4, n_times=480, num_queries=6, embed_dim=96, depth=2, drop_path=0.1)
    model, (used, places) = build('luna'), known_places(SHAPE[0])
    variables = read(model, net, luna.CHECKPOINT['braindecode'], tmp_path / 'luna.safetensors')
    net.final_layer = torch.nn.Identity()
    x = weights.windows(SHAPE, recorded.ROWS)[0]
    wide = torch.tensor(x[:, used]).double()
    scaled = (wide - wide.mean(2, keepdim=True)) / wide.std(2, keepdim=True)
    padded = torch.nn.functional.pad(scaled, (0, 30))
    with torch.no_grad():
        tokens = net.double().eval()(padded, channel_locations=places.expand(len(x), -1, -1)).numpy()
    head = variables['params']['head']
    close(outputs_of(model, variables, x), tokens.mean(1) @ head['weight'].T + head['bias'], 1e-5)


def test_reve_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of braindecode's own class, and its answers; a file of places gives each name what braindecode gives."""
    import torch
    from make_foundation_fixtures import models

    places = {'Cz': [0.0, 0.01, 0.1], 'Fpz': [0.0, 0.09, 0.0], 'Oz': [0.0, -0.09, 0.02]}
    bank = tmp_path / 'reve_positions.json'
    bank.write_text(json.dumps(places))
    monkeypatch.setenv('REVE_POSITIONS_PATH', str(tmp_path))
    torch.manual_seed(3)
    chs = [{'ch_name': name} for name in ('Oz', 'Cz')]
    net = models().REVE(n_outputs=4, n_chans=2, n_times=450, chs_info=chs, depth=2)
    signal = Signal(n_chans=3, n_times=450, sfreq=200.0, ch_names=('Oz', '?', 'Cz'))
    model = reve.build('reve', reve.BASE._replace(depth=2), signal, 3, positions=str(bank), remat=None)
    variables = read(model, net, reve.CHECKPOINT, tmp_path / 'reve.safetensors')
    x = weights.windows((3, 450, 3), recorded.ROWS)[0]
    with torch.no_grad():
        tokens = net.eval()(torch.tensor(x[:, [0, 2]]), return_features=True)['features'].numpy()
    head = variables['params']['head']
    close(outputs_of(model, variables, x), tokens.mean((1, 2)) @ head['weight'].T + head['bias'], 1e-5)
