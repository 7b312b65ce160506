"""STEEGFormer and EEGPT against braindecode itself, and files that it writes; skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_peers_steegformer_eegpt.py -m 'slow or not slow'
"""

from __future__ import annotations

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

from jbench.models.foundation import eegpt, steegformer, steegformer_channels
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

pytestmark = pytest.mark.slow
if find_spec('braindecode') is None:  # importing it here could fail: see make_foundation_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
SHAPE = (5, 200, 3)
BUILT: dict[str, tuple[str, dict[str, Any]]] = {  # names of recorded networks: the factory and its options
    'steegformer_short': ('steegformer_small', {}),
    'eegpt_short': ('eegpt', {}),
    'eegpt_named': ('eegpt', {'adapter': 'none', 'stride': 64}),
    'eegpt_probe': ('eegpt', {'head': 'probe', 'stride': 16}),
}


def build(name: str) -> Model:
    c, t, n = SHAPE
    factory, options = BUILT[name]
    module, known = (eegpt, recorded.EEGPT_CHANNELS)
    if factory != 'eegpt':
        module, known = steegformer, recorded.STEEGFORMER_CHANNELS
    signal = Signal(n_chans=c, n_times=t, sfreq=128.0, ch_names=tuple(known)[:c])
    return getattr(module, factory)(signal, n, **options)


@pytest.fixture
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    size = steegformer.SIZES['steegformer_small']
    monkeypatch.setitem(steegformer.SIZES, 'steegformer_small', size._replace(layers=recorded.SHORT))
    sizes = (512, recorded.SHORT, 8) if name == 'eegpt_short' else recorded.NARROW
    for constant, value in zip(('WIDTH', 'LAYERS', 'HEADS'), sizes, strict=True):
        monkeypatch.setattr(eegpt, constant, value)
    return name


@pytest.mark.parametrize('small', BUILT, indirect=True)
def test_equals_braindecode(small: str) -> None:
    """Evaluation and the gradient of the mean loss, in float64 on both sides; weights are handed over as float32."""
    import torch
    from make_foundation_fixtures import BUILDERS, gradient, still

    torch.manual_seed(3)
    net = still(BUILDERS[small](SHAPE))
    state = {k: v.numpy().copy() for k, v in net.state_dict().items()}
    x, y = weights.windows(SHAPE, recorded.ROWS)
    expected = net.double().train()(torch.tensor(x).double())
    torch.nn.functional.cross_entropy(expected, torch.tensor(y)).backward()
    with jax.enable_x64(True):
        model = build(small)
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


@pytest.mark.parametrize('small', ['steegformer_short', 'eegpt_short', 'eegpt_named'], indirect=True)
def test_a_file_of_braindecode(small: str, tmp_path: Path) -> None:
    """Of a network with another montage and head: the encoder is read, the rest stays; less is refused."""
    import torch
    from make_foundation_fixtures import models
    from safetensors.numpy import save_file as save
    from safetensors.torch import save_file

    torch.manual_seed(3)
    if small == 'steegformer_short':
        net = models().STEEGFormer(n_chans=9, n_times=1000, n_outputs=2, depth=recorded.SHORT)
        exceptions, new = steegformer.CHECKPOINT, ('head.',)
    else:
        exceptions, new = eegpt.CHECKPOINT[BUILT[small][1].get('adapter', 'random')], ('head.', 'adapter.')
        sizes = {'embed_dim': eegpt.WIDTH, 'depth': eegpt.LAYERS, 'num_heads': eegpt.HEADS}
        net = models().EEGPT(n_chans=58, n_times=1024, n_outputs=2, **sizes)
    file = tmp_path / 'model.safetensors'
    save_file({key: value.contiguous() for key, value in net.state_dict().items()}, file)
    written = {key: value.numpy() for key, value in net.state_dict().items()}
    model = build(small)
    start = compiled(model.init)(jax.random.key(0))
    state, before = model.to_torch(load(model, file, exceptions=exceptions, start=start)), model.to_torch(start)
    for key, value in state.items():
        np.testing.assert_array_equal(value, (before if key.startswith(new) else written)[key], err_msg=key)
    missing = next(key for key in written if key.endswith(('projection.weight', 'attn.proj.weight')))
    save({key: value for key, value in written.items() if key != missing}, file)
    with pytest.raises(RequestError, match=f'missing: {missing}'):
        load(model, file, exceptions=exceptions, start=start)


def test_whole_eegpt_is_braindecodes_class() -> None:
    """With the authors' head and windows whose channels have mean zero: its very outputs, from its own layout."""
    import torch
    from make_foundation_fixtures import models

    torch.manual_seed(3)
    net = models().EEGPT(n_chans=4, n_times=300, n_outputs=3, depth=8).double().eval()
    state = {k: v.numpy().astype(np.float32) for k, v in net.state_dict().items() if k != 'chans_id'}
    pairs = (('chan_proj.proj.', 'adapter.'), ('final_layer.', 'head.'))
    for theirs, ours in pairs:
        state = {k.replace(theirs, ours): v for k, v in state.items()}
    x = weights.windows((4, 300, 3), recorded.ROWS)[0].astype(float)
    x -= x.mean(1, keepdims=True)
    with torch.no_grad():
        expected = net(torch.tensor(x)).numpy()
    with jax.enable_x64(True):
        model = eegpt.eegpt(Signal(n_chans=4, n_times=300, sfreq=256.0), 3, head='probe')
        variables = jax.tree.map(lambda v: jnp.asarray(v, float), model.from_torch(state))
        batch = {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool)}
        found = compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(variables)
    close(found, expected, 1e-10)
    assert sum(p.numel() for p in net.parameters()) == recorded.count(model)


def test_tables_of_names_are_braindecodes() -> None:
    from make_foundation_fixtures import models

    assert tuple(models().eegpt.EEGPT_CHANNELS) == eegpt.NAMES
    assert tuple(models().eegpt.EEGPT_19_CHANNELS) == eegpt.TARGETS
    assert steegformer_channels.ROWS == models().steegformer._CHANNELS_VOCAB_SIZE
