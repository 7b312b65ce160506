"""Records what braindecode's networks compute, for tests that run without it.

    pip install -e '.[peers]'
    python tests/make_network_fixtures.py            # writes tests/fixtures/networks/*.npz, in about ten minutes
    python tests/make_network_fixtures.py ctnet      # one of them

A file holds, in float64: logits in evaluation ('eval/C,T,n'); ten steps of gradient descent without dropout
('steps/C,T,n/...'); what a state_dict consists of ('layout/C,T,n'), numbers of parameters, the moments of initial
weights, and the spread of logits under dropout. Weights and windows are made again from names and shapes (weights.py).
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import torch
import weights
from weights import Shape

FOLDER = Path(__file__).parent / 'fixtures' / 'networks'
PEERS = {
    'shallow_fbcsp_net': 'ShallowFBCSPNet',
    'deep4net': 'Deep4Net',
    'eegnet': 'EEGNet',
    'bdtcn': 'BDTCN',
    'atcnet': 'ATCNet',
    'eegconformer': 'EEGConformer',
    'ctnet': 'CTNet',
    'eegnex': 'EEGNeX',
}  # names in braindecode.models


def braindecode(network: str, shape: Shape, *, dropout: bool = False) -> torch.nn.Module:
    """The network with its defaults and its own initial weights; without dropout unless asked."""
    # torchaudio's wheel wants CUDA libraries; these networks never call it.
    for name in ('torchaudio', 'torchaudio.functional', 'torchaudio.transforms'):
        sys.modules.setdefault(name, mock.MagicMock())
    from braindecode import models

    c, t, n = shape
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        net = getattr(models, PEERS[network])(n_chans=c, n_times=t, n_outputs=n)
    for module in net.modules() if not dropout else ():
        for name in ('p', 'att_drop'):  # of a dropout, of an attention
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return net


def layout(net: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the state_dict."""
    return {name: tuple(value.shape) for name, value in net.state_dict().items()}


def lively(network: str, shape: Shape, *, dropout: bool = False) -> torch.nn.Module:
    """The network with the weights of weights.py, in float64."""
    net = braindecode(network, shape, dropout=dropout)
    net.load_state_dict({k: torch.tensor(v) for k, v in weights.lively(network, layout(net)).items()})
    return net.double()


def record_evaluation(network: str, shape: Shape) -> dict[str, np.ndarray]:
    """Logits of a few windows; prints how far float32 is from them."""
    net, x = lively(network, shape).eval(), torch.tensor(weights.windows(shape, weights.EVAL_ROWS)[0])
    with torch.no_grad():
        logits = net(x.double()).numpy()
        narrow = net.float()(x).numpy()
    scale = np.abs(logits).max()
    print(network, shape, f'logits up to {scale:.3g}, float32 off by {np.abs(narrow - logits).max() / scale:.1e}')
    assert logits.shape == (weights.EVAL_ROWS, shape[2])
    return {f'eval/{name_of(shape)}': logits}


def take_steps(net: torch.nn.Module, x: torch.Tensor, y: torch.Tensor, lr: float) -> dict[str, np.ndarray]:
    """Loss and gradient norm of each plain gradient step, first logits and gradients, the last state_dict."""
    net.train()
    losses, norms = [], []
    out: dict[str, np.ndarray] = {}
    for step in range(weights.STEPS):
        logits = net(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        net.zero_grad()
        loss.backward()
        if step == 0:
            out['logits'] = logits.detach().numpy()
            # A parameter that no logit depends on has no gradient.
            out |= {
                f'grad/{k}': np.zeros(p.shape) if p.grad is None else p.grad.numpy().copy()
                for k, p in net.named_parameters()
            }
        losses.append(loss.item())
        norms.append(math.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in net.parameters())))
        with torch.no_grad():
            for p in net.parameters():
                p -= lr * p.grad
    out |= {f'final/{k}': v.numpy().copy() for k, v in net.state_dict().items()}
    return out | {'loss': np.array(losses), 'grad_norm': np.array(norms)}


def record_steps(network: str, shape: Shape) -> dict[str, np.ndarray]:
    """Ten steps, as small as they can be told: of gradients their norm and one projection, of states the buffers."""
    x, y = (torch.tensor(v) for v in weights.windows(shape, weights.TRAIN_ROWS))
    net, lr = lively(network, shape), weights.LR[network]
    wide = take_steps(net, x.double(), y, lr)
    narrow = take_steps(lively(network, shape).float(), x, y, lr)
    off = {k: np.abs(wide[k] - narrow[k]).max() / np.abs(wide[k]).max() for k in ('loss', 'grad_norm')}
    print(network, shape, 'losses', np.round(wide['loss'], 4), 'norms', np.round(wide['grad_norm'], 3), off)
    gradients = weights.sketch(network, {k: wide[f'grad/{k}'] for k, _ in net.named_parameters()})
    buffers = [wide[f'final/{k}'] for k, _ in net.named_buffers() if '.running_' in k]
    out = {
        **{k: wide[k] for k in ('logits', 'loss', 'grad_norm')},
        'gradients': gradients,
        'buffers': np.concatenate([np.zeros(0), *buffers]),
    }
    return {f'steps/{name_of(shape)}/{k}': v for k, v in out.items()}


def record_dropout(network: str) -> dict[str, np.ndarray]:
    """What dropout does to the logits of a training pass: its places, rates and kinds show in their spread."""
    torch.manual_seed(5)
    x = torch.tensor(weights.windows(weights.DROPPED, weights.DROPOUT_ROWS)[0])
    net = lively(network, weights.DROPPED, dropout=True).float().train()
    with torch.no_grad():
        draws = np.array([net(x).double().numpy() for _ in range(weights.DROPOUT_DRAWS)])
    return {'dropout': weights.spread(draws)}


def record_initial(network: str) -> dict[str, np.ndarray]:
    """What the tensors of fresh networks look like: see `weights.moments`."""
    torch.manual_seed(11)
    draws = [braindecode(network, weights.INITIAL).state_dict() for _ in range(weights.INITS)]
    return {'initial': np.array([weights.moments([d[name].numpy() for d in draws]) for name in draws[0]])}


def record_layout(network: str, shape: Shape) -> dict[str, np.ndarray]:
    """Lines 'name 40 1 25 1'."""
    lines = [' '.join([name, *map(str, sizes)]) for name, sizes in layout(braindecode(network, shape)).items()]
    return {f'layout/{name_of(shape)}': np.array(lines)}


def name_of(shape: Shape) -> str:
    """C,T,n."""
    return ','.join(map(str, shape))


def main(*networks: str) -> None:
    """Writes the files of these networks, of all where none is named."""
    FOLDER.mkdir(exist_ok=True)
    torch.backends.mkldnn.enabled = False  # its float32 gradients are wrong for some shapes (Conv2d, kernel 25 x 19)
    for network in networks or PEERS:
        out = record_initial(network) | record_dropout(network)
        nets = [braindecode(network, shape) for shape in weights.COUNTED]
        out['counts'] = np.array([sum(p.numel() for p in net.parameters()) for net in nets])
        for shape in weights.TRAINED:
            out |= record_layout(network, shape) | record_steps(network, shape)
        for shape in weights.EVALUATED:
            out |= record_evaluation(network, shape)
        file = FOLDER / f'{network}.npz'
        np.savez_compressed(file, **out)
        print(file.name, file.stat().st_size, 'bytes', flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
