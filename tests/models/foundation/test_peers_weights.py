"""A file that braindecode writes of each kind of encoder, given to the command by --weights; skipped without it.

pip install -e '.[peers,test]'
python -m pytest tests/models/foundation/test_peers_weights.py -m slow
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded_encoders as recorded
import shapes

from jbench.context import Context
from jbench.models import MODELS
from jbench.plan.request import Request, plan
from jbench.progress import Progress, StopSignal
from jbench.spec.errors import RequestError
from jbench.train import parallel, seeds
from jbench.train.programs import build

if find_spec('braindecode') is None:  # importing it here could fail: see make_foundation_fixtures.py
    pytest.skip('braindecode is not installed: the extra peers', allow_module_level=True)
pytestmark = pytest.mark.slow

CHS = [
    {'ch_name': name, 'loc': place} for name, place in zip(('Fp1', 'F7', 'T7', 'Cz'), recorded.places(4), strict=True)
]
# as on the hub: with montages, lengths and heads of their own
CLASSES: dict[str, tuple[str, dict[str, Any]]] = {
    'bendr': ('BENDR', {'n_chans': 20, 'n_times': 512, 'n_outputs': 2, 'final_layer': False}),
    'biot': ('BIOT', {'n_chans': 18, 'n_times': 1000, 'sfreq': 200, 'n_outputs': 5}),
    'labram': ('Labram', {'n_chans': 128, 'n_times': 3000, 'n_outputs': 0}),
    'cbramod': ('CBraMod', {'n_chans': 19, 'n_times': 2000, 'return_encoder_output': True}),
    'luna_base': ('LUNA', {'n_outputs': 4, 'n_chans': 4, 'n_times': 480}),
    'reve_small': ('REVE', {'n_outputs': 4, 'n_chans': 4, 'n_times': 450, 'chs_info': CHS, 'depth': 4}),
    'signal_jepa': ('SignalJEPA', {'chs_info': CHS, 'n_times': 256, 'sfreq': 128}),
    'signal_jepa_post_local': ('SignalJEPA', {'chs_info': CHS, 'n_times': 256, 'sfreq': 128}),
    'signal_jepa_pre_local': ('SignalJEPA', {'chs_info': CHS, 'n_times': 256, 'sfreq': 128}),
    'steegformer_small': ('STEEGFormer', {'n_chans': 9, 'n_times': 1000, 'n_outputs': 2}),
    'eegpt': ('EEGPT', {'n_chans': 58, 'n_times': 1024, 'n_outputs': 2}),
    'eegdino_small': ('EEGDINO', {'n_chans': 19, 'n_times': 1000, 'sfreq': 200, 'n_outputs': 5}),
    'codebrain': ('CodeBrain', {'n_chans': 19, 'n_times': 200, 'n_outputs': 5}),
}


def written(name: str, path: Path, monkeypatch: pytest.MonkeyPatch, *, pickled: bool = False) -> dict[str, np.ndarray]:
    """What braindecode writes of a fresh network; its state_dict."""
    import torch
    from make_foundation_fixtures import models
    from safetensors.torch import save_file

    (path.parent / 'reve_positions.json').write_text(
        '{"Fp1": [0, 0.1, 0], "F7": [-0.1, 0, 0], "T7": [0, 0, 0], "Cz": [0, 0, 0.1]}'
    )
    monkeypatch.setenv('REVE_POSITIONS_PATH', str(path.parent))
    torch.manual_seed(3)
    which, options = CLASSES[name]
    net = getattr(models(), which)(**options)
    if name == 'codebrain':  # whose kernels are scaled when it first computes
        with torch.no_grad():
            net(torch.zeros(1, net.n_chans, net.n_times))
    state = {key: value.contiguous() for key, value in net.state_dict().items()}
    if name == 'signal_jepa':  # that of the hub is without the places of other electrodes
        state = {key: value for key, value in state.items() if not key.startswith('pos_encoder')}
    if pickled:
        torch.save(state, path)
    else:
        save_file(state, path)
    return {key: value.numpy() for key, value in state.items()}


def begun(name: str, path: Path, work: Path) -> tuple[dict[str, np.ndarray], ...]:
    """Tensors of the network of a request with this file, before and after the file is read, as a run does it."""
    found = plan(Request('mental_arithmetic', name, weights=str(path), simulated='yes'), None, work)
    (cell,) = found.cells
    assert cell.model.own_weights and found.weights == {cell.model.weights: path}
    network = build(cell.model, shapes.fitting(MODELS[name], 600), 2)
    context = Context(work, None, Progress(), StopSignal(), 'resume', weights=found.weights)
    drawn = parallel.init_state(network, 33)
    after = seeds.begin_from(cell, network, context)(drawn)
    return tuple(network.to_torch({n: v[n] for n in ('params', 'batch_stats')}) for v in (drawn, after))


@pytest.mark.parametrize('name', CLASSES)
def test_a_file_of_each_kind(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor of the encoder is the file's; what is new keeps its start."""
    path = tmp_path / 'model.safetensors'
    state = written(name, path, monkeypatch)
    before, after = begun(name, path, tmp_path / 'work')
    read = [key for key in after if key in state and np.array_equal(after[key], state[key].reshape(after[key].shape))]
    new = [key for key in after if key not in read]
    size = sum(after[key].size for key in new)
    assert all(np.array_equal(after[key], before[key]) for key in new)
    assert {key.partition('.')[0] for key in new} <= {
        'head',
        'adapter',
        'final_layer',
        'spatial_conv',
        'pos_encoder',
    }, new
    assert any(key.startswith('head.') for key in new) and size < 0.5 * sum(a.size for a in after.values())


def test_a_pickled_file_and_a_wrong_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / 'model.pth'
    state = written('eegdino_small', path, monkeypatch, pickled=True)
    _, after = begun('eegdino_small', path, tmp_path / 'work')
    assert np.array_equal(after['global_tokens'], state['global_tokens'])
    with pytest.raises(RequestError, match='do not fit the network'):
        begun('cbramod', path, tmp_path / 'work')
