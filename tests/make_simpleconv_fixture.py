"""Records what neuraltrain's SimpleConvTimeAgg computes, for tests that run without it.

    git clone https://github.com/facebookresearch/neuroai
    pip install ./neuroai/neuraltrain-repo            # version 0.2.3
    python tests/make_simpleconv_fixture.py           # writes tests/fixtures/simpleconv_time_agg.npz, in a minute

In float64: logits in evaluation, the mixtures around a silenced point, ten steps of gradient descent without dropout.
Weights, windows and positions are made again from names and shapes. torch is imported only where it records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import weights

NAME = 'simpleconv_time_agg'
FILE = Path(__file__).parent / 'fixtures' / f'{NAME}.npz'
EVALUATED = ((8, 40, 3), (19, 12, 2), (300, 5, 1))  # channels, samples, outputs; convolutions are slow in float64
TRAINED = (8, 40, 3)
TRAIN_ROWS, LR = 4, 0.01
MERGER = {
    'n_virtual_channels': 270,
    'fourier_emb_config': {'n_freqs': None, 'total_dim': 2000, 'n_dims': 3},
    'dropout': 0.2,
    'per_subject': False,
    'embed_ref': False,
}
CONFIG = {
    'hidden': 320,
    'depth': 4,
    'linear_out': False,
    'complex_out': False,
    'kernel_size': 3,
    'dilation_period': 5,
    'skip': True,
    'glu': 2,
    'glu_context': 1,
    'gelu': True,
    'dropout_input': 0.0,
    'batch_norm': True,
    'merger_config': MERGER,
    'subject_layers_config': None,
    'initial_linear': 270,
    'backbone_out_channels': 512,
    'time_agg_out': 'linear',
    'output_head_config': {'hidden_sizes': [-1], 'norm_layer': None, 'activation_layer': None},
}  # NeuralBench's models/simpleconv_time_agg.yaml


def places(n_chans: int) -> np.ndarray:
    """Positions [C, 3]; the second channel has none, the third lies close to the first, the fourth not far."""
    found = weights.own_rng('places', str(n_chans)).uniform(0, 1, (n_chans, 3))
    found[1], found[2], found[3] = -0.1, found[0] + 0.05, found[0] + (0.35, 0.1, 0.1)
    return found


def lively(layout: weights.Layout) -> dict[str, np.ndarray]:
    """The weights of the record; the frequencies of the embedding are constants, and the mixtures differ from means."""
    found = weights.lively(NAME, layout)
    found['merger.heads'] = 4 * found['merger.heads']
    found['merger.embedding.pos'] = (2 * np.pi / 1.4 * np.arange(10)).astype(np.float32)
    return found


def neuraltrain(shape: weights.Shape) -> Any:
    """The network in float64, with the weights of the record; and its state_dict's layout."""
    import torch
    from neuraltrain.models.simpleconv import SimpleConvTimeAgg

    c, t, n = shape
    net = SimpleConvTimeAgg(**CONFIG).build(c, n).eval()
    net(torch.zeros(1, c, t), channel_positions=torch.tensor(places(c)[None]).float())  # lazy layers take their shapes
    layout = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    net.load_state_dict({k: torch.tensor(v) for k, v in lively(layout).items()})
    return net.double(), layout


def steps() -> dict[str, np.ndarray]:
    """Ten steps: losses, norms of gradients; of the first, logits and a sketch of the gradients; buffers at the end."""
    import torch

    net, _ = neuraltrain(TRAINED)
    net.merger.dropout = 0
    net.train()
    x, y = (torch.tensor(a) for a in weights.windows(TRAINED, TRAIN_ROWS))
    where = torch.tensor(places(TRAINED[0])).expand(TRAIN_ROWS, -1, -1)
    optimiser = torch.optim.SGD(net.parameters(), lr=LR)
    found: dict[str, Any] = {'loss': [], 'grad_norm': []}
    for i in range(weights.STEPS):
        optimiser.zero_grad()
        logits = net(x.double(), channel_positions=where)
        loss = torch.nn.functional.cross_entropy(logits, y)
        loss.backward()
        gradients = {k: p.grad.numpy() for k, p in net.named_parameters()}
        if i == 0:
            found |= {'logits': logits.detach().numpy(), 'gradients': weights.sketch(NAME, gradients)}
        found['loss'].append(loss.item())
        found['grad_norm'].append(np.sqrt(sum((g**2).sum() for g in gradients.values())))
        optimiser.step()
    found['buffers'] = np.concatenate([b.numpy() for k, b in net.named_buffers() if '.running_' in k])
    return {f'steps/{k}': np.asarray(v) for k, v in found.items()}


def main() -> None:
    """Write the record."""
    import torch

    found = steps()
    for shape in EVALUATED:
        net, layout = neuraltrain(shape)
        x = torch.tensor(weights.windows(shape, weights.EVAL_ROWS)[0]).double()
        where = torch.tensor(places(shape[0])).expand(len(x), -1, -1)
        with torch.no_grad():
            found[f'eval/{shape[0]}'] = net(x, channel_positions=where).numpy()
        if shape == TRAINED:
            found['layout'] = np.array([' '.join([k, *map(str, sizes)]) for k, sizes in layout.items()])
            found['centre'] = places(shape[0])[0] + 0.1  # that of the first channel, which it silences
            with mock.patch.object(torch, 'rand', return_value=torch.tensor(found['centre'])):
                found['mixtures'] = net.train().merger._get_weights(None, where, where.device)[0].detach().numpy()
    np.savez_compressed(FILE, **found)
    print(f'{FILE}: {FILE.stat().st_size} bytes')


if __name__ == '__main__':
    main()
