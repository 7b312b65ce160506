"""Records what the reference networks of fMRI and EMG compute, for tests that run without them.

    git clone https://github.com/facebookresearch/neuroai
    pip install ./neuroai/neuraltrain-repo -e '.[peers]'    # neuraltrain 0.2.3, braindecode 1.8.1
    python tests/make_device_fixtures.py                    # writes tests/fixtures/devices.npz, in a minute

In float64: outputs in evaluation; of one training step without dropout and masks the loss, a sketch of the gradients,
and the running statistics after it. Weights and windows are made again from names and shapes. torch is imported only
where it records.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import weights

FILE = Path(__file__).parent / 'fixtures' / 'devices.npz'
SHAPES = {  # channels, samples, outputs
    'fmri_linear': ((50, 4, 6), (7, 1, 3)),
    'fmri_mlp': ((50, 4, 6), (9, 4, 3)),
    'emg2qwerty': ((8, 2080, 5), (32, 2400, 7)),
}
ROWS = 3
MLP = {
    'hidden': 128,
    'n_blocks': 2,
    'n_repetition_times': 4,
    'time_agg': 'out_linear',
}  # NeuralBench's models/fmri_mlp.yaml


def windows(name: str, shape: weights.Shape) -> np.ndarray:
    """f32 [ROWS, C, T]; of EMG the power must be well above the floor, and differ between electrodes."""
    return weights.windows(shape, ROWS)[0] * (10 if name == 'emg2qwerty' else 1)


def reference(name: str, shape: weights.Shape) -> Any:
    """The network in float64, with the weights of the record and without anything random; its state_dict's layout."""
    import torch

    c, t, n = shape
    if name == 'emg2qwerty':
        # torchaudio's wheel wants CUDA libraries for parts that this network never calls.
        sys.modules.setdefault('torchaudio._extension', mock.MagicMock())
        torch.ops.torchaudio = mock.MagicMock()
        from braindecode.models import EMG2QwertyNet

        net = EMG2QwertyNet(n_outputs=n, n_chans=c, electrodes_per_band=c // 2, n_times=t, log_softmax=True)
    else:
        from neuraltrain.models import fmri_mlp as peer

        head = peer.Mlp(hidden_sizes=[n], norm_layer=None, activation_layer=None)
        made = peer.FmriLinear() if name == 'fmri_linear' else peer.FmriMlp(**MLP, output_head_config=head)
        net = made.build(c, n)
        net(torch.zeros(1, c, t))  # lazy layers take their shapes
    layout = {key: tuple(value.shape) for key, value in net.state_dict().items()}
    net.load_state_dict({k: torch.tensor(v) for k, v in weights.lively(name, layout).items()})
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    net = net.double().eval()
    if name == 'emg2qwerty':
        net.spectrogram.spectrogram.window = torch.hann_window(64, dtype=torch.float64)  # was rounded to float32
    return net, layout


def record(name: str, shape: weights.Shape) -> dict[str, np.ndarray]:
    """Outputs and one step; the loss is the mean square of outputs minus one."""
    import torch

    net, layout = reference(name, shape)
    x = torch.tensor(windows(name, shape)).double()
    with torch.no_grad():
        found = {'eval': net(x).numpy()}
    net.train()
    loss = torch.square(net(x) - 1).mean()
    loss.backward()
    gradients = {k: p.grad.numpy() for k, p in net.named_parameters()}
    found |= {'loss': np.array(loss.item()), 'gradients': weights.sketch(name, gradients)}
    buffers = [b.numpy() for k, b in net.named_buffers() if '.running_' in k]
    found['buffers'] = np.concatenate([np.zeros(0), *buffers])
    found['layout'] = np.array([' '.join([k, *map(str, sizes)]) for k, sizes in layout.items()])
    found['count'] = np.array(sum(p.numel() for p in net.parameters()))
    return {f'{name}/{shape[0]}/{k}': v for k, v in found.items()}


def main() -> None:
    """Write the record."""
    found: dict[str, np.ndarray] = {}
    for name, shapes in SHAPES.items():
        for shape in shapes:
            found |= record(name, shape)
    np.savez_compressed(FILE, **found)
    print(f'{FILE}: {FILE.stat().st_size} bytes')


if __name__ == '__main__':
    main()
