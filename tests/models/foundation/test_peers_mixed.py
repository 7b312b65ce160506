"""Files that braindecode itself writes, read and compared with braindecode; skipped where it is not installed.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_peers_mixed.py -m 'slow or not slow'
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

from jbench.models.foundation import bendr, biot, signal_jepa
from jbench.models.model import Model, load
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

if find_spec('braindecode') is None:  # importing it here could fail: see make_network_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
SHAPE = (4, 300, 2)
WHERE: dict[str, Any] = {'ch_names': ('Fp1', 'F7', 'T3', 'Cz'), 'positions': recorded.places(4)}


def write(name: str, path: Path) -> dict[str, np.ndarray]:
    """What braindecode writes of a fresh network with a head of its own; its state_dict."""
    import torch
    from make_foundation_fixtures import models
    from safetensors.torch import save_file

    torch.manual_seed(3)
    chs = [{'ch_name': str(i), 'loc': place} for i, place in enumerate(WHERE['positions'])]
    net = {
        'biot': lambda: models().BIOT(n_chans=18, n_times=1000, sfreq=200, n_outputs=5),
        'bendr': lambda: models().BENDR(n_chans=20, n_times=512, n_outputs=2, final_layer=False),
        'signal_jepa': lambda: models().SignalJEPA(chs_info=chs, n_times=256, sfreq=128),
    }[name]()
    state = {key: value.contiguous() for key, value in net.state_dict().items()}
    save_file(state, path)
    return {key: value.numpy() for key, value in state.items()}


def build(name: str) -> tuple[Model, Any]:
    c, t, n = SHAPE
    signal = Signal(n_chans=c, n_times=t, sfreq=200.0, **WHERE)
    made = {'biot': biot.biot, 'bendr': bendr.bendr, 'signal_jepa': signal_jepa.signal_jepa}[name](signal, n)
    exceptions = {'biot': biot.CHECKPOINT, 'bendr': bendr.CHECKPOINT, 'signal_jepa': WITH_CHANNELS}[name]
    return made, exceptions


WITH_CHANNELS = signal_jepa.CHECKPOINT['names']


@pytest.mark.parametrize('name', ['biot', 'signal_jepa', pytest.param('bendr', marks=pytest.mark.slow)])
def test_a_file_of_braindecode(name: str, tmp_path: Path) -> None:
    """Each tensor that both have is read; what stays is as it started; outputs are braindecode's; less is refused."""
    import torch
    from make_foundation_fixtures import BUILDERS
    from safetensors.numpy import save_file

    file = tmp_path / 'model.safetensors'
    written = write(name, file)
    model, exceptions = build(name)
    start = compiled(model.init)(jax.random.key(0))
    variables = load(model, file, exceptions=exceptions, start=start)
    state, before = model.to_torch(variables), model.to_torch(start)
    for key, value in state.items():
        expected = before if key.startswith(('head.', 'adapter.', 'final_layer.')) else written
        np.testing.assert_array_equal(value, expected[key], err_msg=key)
    peer = BUILDERS['bendr_whole' if name == 'bendr' else name](SHAPE)
    peer.load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    x = weights.windows(SHAPE, recorded.ROWS)[0]
    with torch.no_grad():
        outputs = peer.double().eval()(torch.tensor(x).double()).numpy()
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(len(x), bool)}
    close(compiled(lambda v: model.apply(v, batch, train=False, key=None).outputs)(variables), outputs, 1e-5)
    missing = next(key for key in written if key.endswith('linear1.weight' if name != 'biot' else 'w1.weight'))
    save_file({key: value for key, value in written.items() if key != missing}, file)
    with pytest.raises(RequestError, match=f'missing: {missing}'):
        load(model, file, exceptions=exceptions, start=start)


def test_a_file_without_channels(tmp_path: Path) -> None:
    """Signal-JEPA's table of channels keeps its start where the file has none."""
    from safetensors.numpy import save_file

    file, table = tmp_path / 'model.safetensors', 'pos_encoder.pos_encoder_spat.weight'
    written = write('signal_jepa', file)
    save_file({key: value for key, value in written.items() if key != table}, file)
    model, _ = build('signal_jepa')
    start = compiled(model.init)(jax.random.key(0))
    found = load(model, file, exceptions=signal_jepa.CHECKPOINT['positions'], start=start)
    np.testing.assert_array_equal(found['params']['table'], start['params']['table'])
