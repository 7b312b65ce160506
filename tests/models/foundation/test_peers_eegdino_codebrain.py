"""EEG-DINO, CodeBrain and Signal-JEPA without its transformer against braindecode itself and the files that it writes;
skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_peers_eegdino_codebrain.py -m 'slow or not slow'
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

from jbench.models.foundation import codebrain, eegdino, signal_jepa_local
from jbench.models.foundation.tueg_channels import NAMES
from jbench.models.model import Model, load
from jbench.models.torch_weights import Exceptions
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

if find_spec('braindecode') is None:  # importing it here could fail: see make_foundation_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
pytestmark = pytest.mark.slow

SHAPE = (4, 450, 3)
SIGNAL = Signal(n_chans=4, n_times=450, sfreq=200.0, ch_names=NAMES[:4])
POST, PRE = signal_jepa_local.POST_CHECKPOINT, signal_jepa_local.PRE_CHECKPOINT
BUILT: dict[str, tuple[Any, Exceptions, dict[str, Any]]] = {
    'eegdino_small': (eegdino.eegdino_small, eegdino.CHECKPOINT, {}),
    'codebrain': (codebrain.codebrain, codebrain.CHECKPOINT, {'montage': 'given'}),
    'codebrain_short_window': (codebrain.codebrain, codebrain.CHECKPOINT, {'montage': 'given', 'window': 5}),
    'signal_jepa_post_local': (signal_jepa_local.signal_jepa_post_local, POST, {}),
    'signal_jepa_pre_local': (signal_jepa_local.signal_jepa_pre_local, PRE, {}),
}


def build(name: str) -> Model:
    factory, _, options = BUILT[name]
    return factory(SIGNAL, SHAPE[2], **options)


@pytest.fixture(autouse=True)
def blocks_of_codebrain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if 'codebrain_short' in request.node.name:
        monkeypatch.setattr(codebrain, 'BLOCKS', recorded.SHORT)


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
        exported = model.to_torch(variables | {'params': grads})
        whole = max(float(gradient(p).abs().max()) for p in net.parameters())
        for key, p in net.named_parameters():
            close(exported[key], gradient(p).numpy(), 1e-6, key, floor=whole / 100)


def write(name: str, path: Path, *, passes: int) -> None:
    """What braindecode writes of a fresh network that has computed so many times."""
    import torch
    from make_foundation_fixtures import models
    from safetensors.torch import save_file

    torch.manual_seed(3)
    chs = [{'ch_name': str(i), 'loc': place} for i, place in enumerate(recorded.places(4))]
    net = {
        'eegdino_small': lambda: models().EEGDINO(n_chans=19, n_times=1000, sfreq=200, n_outputs=5),
        'codebrain': lambda: models().CodeBrain(n_chans=19, n_times=200, n_outputs=5),
        'signal_jepa_post_local': lambda: models().SignalJEPA(chs_info=chs, n_times=256, sfreq=128),
    }[name]()
    with torch.no_grad():
        for _ in range(passes):
            net(torch.zeros(1, net.n_chans, net.n_times))
    state = {key: value.contiguous() for key, value in net.state_dict().items()}
    save_file({k: v for k, v in state.items() if not k.startswith('pos_encoder')}, path)


@pytest.mark.parametrize('name', ['eegdino_small', 'codebrain', 'signal_jepa_post_local'])
def test_a_file_of_braindecode(name: str, tmp_path: Path) -> None:
    """Each tensor that both have is read; the head stays as it started; braindecode reads what we write; less is
    refused."""
    import torch
    from make_foundation_fixtures import BUILDERS
    from safetensors.numpy import load_file, save_file

    file, model, exceptions = tmp_path / 'model.safetensors', build(name), BUILT[name][1]
    write(name, file, passes=1)
    written, start = load_file(file), compiled(model.init)(jax.random.key(0))
    variables, before = load(model, file, exceptions=exceptions, start=start), model.to_torch(start)
    state = model.to_torch(variables)
    for key, value in state.items():
        new = key.startswith(('head.', 'final_layer.'))
        np.testing.assert_array_equal(value, (before if new else written)[key], err_msg=key)
    peer = BUILDERS[name](SHAPE)
    peer.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    x = weights.windows(SHAPE, recorded.ROWS)[0]
    with torch.no_grad():
        outputs = peer.double().eval()(torch.tensor(x).double()).numpy()
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool)}
    close(compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(variables), outputs, 1e-5)
    missing = next(key for key in state if key in written and key.endswith('weight'))
    save_file({key: value for key, value in written.items() if key != missing}, file)
    with pytest.raises(RequestError, match=f'missing: {missing}'):
        load(model, file, exceptions=exceptions, start=start)


def test_a_file_before_the_first_pass_is_refused(tmp_path: Path) -> None:
    file, model = tmp_path / 'model.safetensors', build('codebrain')
    write('codebrain', file, passes=0)
    with pytest.raises(RequestError, match=r'another value: .*kernel_norm_initialized is False, expected 1'):
        load(model, file, exceptions=codebrain.CHECKPOINT, start=jax.eval_shape(model.init, jax.random.key(0)))
