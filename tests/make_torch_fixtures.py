"""Records what PyTorch and braindecode compute, for tests that run without them.

    pip install torch==2.13.0 braindecode==1.8.1
    python tests/make_torch_fixtures.py            # writes tests/fixtures/*_torch.npz

Inputs are not stored: `inputs` makes them again from a seed (the test file has the same function).
"""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import torch

FIXTURES = Path(__file__).parent / 'fixtures'
CASES = {'wide': (8, 480, 12), 'short': (3, 120, 2)}  # channels, samples, outputs
BATCH, STEPS, INITS = 8, 10, 50
SGD_LR = 0.3  # large: the norms of the spatial filters cross the limit during the steps


def inputs(case: str) -> tuple[np.ndarray, np.ndarray]:
    """Windows f32[B, C, T], each channel with its own offset, and labels i64[B]."""
    c, t, n = CASES[case]
    rng = np.random.default_rng([c, t, n])
    x = rng.standard_normal((BATCH, c, t)) + rng.standard_normal((1, c, 1))
    return x.astype(np.float32), rng.integers(0, n, BATCH)


def braindecode_eegnet(c: int, t: int, n: int) -> torch.nn.Module:
    """EEGNet with its defaults, its batch-norm buffers reset (the constructor runs zeros through them)."""
    # torchaudio's wheel wants CUDA libraries; EEGNet never calls it.
    for name in ('torchaudio', 'torchaudio.functional', 'torchaudio.transforms'):
        sys.modules.setdefault(name, mock.MagicMock())
    from braindecode.models import EEGNet

    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        model = EEGNet(n_chans=c, n_times=t, n_outputs=n)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.reset_running_stats()
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def record_steps(case: str) -> dict[str, np.ndarray]:
    """State, logits, and ten plain gradient steps with spatial filters whose norms start around the limit of 1."""
    torch.manual_seed(7)
    model = braindecode_eegnet(*CASES[case])
    raw = model.conv_spatial.parametrizations.weight.original
    with torch.no_grad():
        goal = torch.linspace(0.7, 1.6, len(raw)).reshape(-1, 1, 1, 1)
        raw *= goal / raw.pow(2).sum((1, 2, 3), keepdim=True).sqrt()
        for module in model.modules():  # values that a test can tell from the initial ones
            if isinstance(module, torch.nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.3)
                module.running_var.uniform_(0.5, 2)
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.3)
    out = {f'{case}/state/{k}': v.numpy().copy() for k, v in model.state_dict().items()}
    x, y = (torch.tensor(v) for v in inputs(case))
    with torch.no_grad():
        out[f'{case}/eval_logits'] = model.eval()(x).numpy()
    model.train()
    losses, norms, active = [], [], []
    for step in range(STEPS):
        logits = model(x)
        if step == 0:
            out[f'{case}/train_logits'] = logits.detach().numpy()
        loss = torch.nn.functional.cross_entropy(logits, y)
        model.zero_grad()
        loss.backward()
        if step == 0:
            out |= {f'{case}/grad/{k}': p.grad.numpy().copy() for k, p in model.named_parameters()}
        losses.append(loss.item())
        norms.append(math.sqrt(sum(float((p.grad.double() ** 2).sum()) for p in model.parameters())))
        active.append(int((raw.detach().flatten(1).norm(dim=1) > 1).sum()))
        with torch.no_grad():
            for p in model.parameters():
                p -= SGD_LR * p.grad
    print(case, 'losses', np.round(losses, 4), 'norms', np.round(norms, 3), 'filters beyond the limit', active)
    out |= {f'{case}/final/{k}': v.numpy().copy() for k, v in model.state_dict().items()}
    return out | {f'{case}/loss': np.array(losses), f'{case}/grad_norm': np.array(norms)}


def record_initial(case: str) -> dict[str, np.ndarray]:
    """(mean, sd, largest magnitude) of every parameter over many fresh networks."""
    torch.manual_seed(11)
    states = [braindecode_eegnet(*CASES[case]).state_dict() for _ in range(INITS)]
    out = {}
    for name in states[0]:
        values = torch.stack([s[name].double() for s in states])
        out[f'{case}/initial/{name}'] = np.array([values.mean(), values.std(unbiased=False), values.abs().max()])
    return out


def torch_cycle(params: list[torch.nn.Parameter], lr_max: float, total: int, decay: float) -> tuple:
    """AdamW and OneCycleLR as the reference sets them."""
    optimiser = torch.optim.AdamW(params, lr=lr_max, weight_decay=decay)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=lr_max, total_steps=total, pct_start=0.1)
    return optimiser, cycle


def record_cycles() -> dict[str, np.ndarray]:
    """Learning rate and beta1 of every step."""
    out = {}
    for total in (1, 2, 7, 9, 11, 40, 100, 1237):
        optimiser, cycle = torch_cycle([torch.nn.Parameter(torch.zeros(3))], 3e-3, total, 0.05)
        rows = []
        for step in range(total):
            rows.append((optimiser.param_groups[0]['lr'], optimiser.param_groups[0]['betas'][0]))
            optimiser.step()
            if step < total - 1:
                cycle.step()
        out[f'cycle/{total}'] = np.array(rows)
    return out


def record_trajectory(total: int = 200) -> dict[str, np.ndarray]:
    """50 numbers over 200 steps of clipped AdamW, float64; gradients [200, 50] from seed 5, every third small."""
    rng = np.random.default_rng(5)
    start, grads = rng.standard_normal(50), rng.standard_normal((total, 50))
    grads[::3] *= 0.05  # norm below the limit of 1: not clipped
    weight = torch.nn.Parameter(torch.tensor(start))
    optimiser, cycle = torch_cycle([weight], 1e-2, total, 0.05)
    path = []
    for step in range(total):
        weight.grad = torch.tensor(grads[step])
        torch.nn.utils.clip_grad_norm_([weight], 1.0)
        optimiser.step()
        if step < total - 1:
            cycle.step()
        if step % 10 in (0, 9):
            path.append(weight.detach().numpy().copy())
    return {'trajectory': np.array(path)}


def record_losses() -> dict[str, np.ndarray]:
    """Losses and gradients of the three training losses, with weights and label smoothing."""
    rng = np.random.default_rng(5)
    logits, y = rng.standard_normal((9, 4)).astype(np.float32) * 2, rng.integers(0, 4, 9)
    labels, weights = (rng.random((9, 4)) < 0.4).astype(np.float32), np.array([0.5, 1.0, 2.0, 3.5], np.float32)
    out: dict[str, np.ndarray] = {'logits': logits, 'y': y, 'labels': labels, 'weights': weights}
    losses = {
        'cross_entropy': (torch.nn.CrossEntropyLoss(torch.tensor(weights), label_smoothing=0.1), torch.tensor(y)),
        'binary_cross_entropy': (torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weights)), torch.tensor(labels)),
        'squared_error': (torch.nn.MSELoss(), torch.tensor(labels)),
    }
    for name, (loss, target) in losses.items():
        x = torch.tensor(logits, requires_grad=True)
        value = loss(x, target)
        value.backward()
        out |= {f'{name}/value': value.detach().numpy(), f'{name}/grad': x.grad.numpy()}
    return out


def main() -> None:
    """Writes all files."""
    FIXTURES.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    eegnet: dict[str, np.ndarray] = {}
    for case in CASES:
        eegnet |= record_steps(case) | record_initial(case)
    np.savez_compressed(FIXTURES / 'eegnet_torch.npz', **eegnet)
    np.savez_compressed(FIXTURES / 'onecycle_adamw_torch.npz', **record_cycles(), **record_trajectory())
    np.savez_compressed(FIXTURES / 'losses_torch.npz', **record_losses())
    for file in sorted(FIXTURES.glob('*_torch.npz')):
        print(file.name, file.stat().st_size, 'bytes')


if __name__ == '__main__':
    main()
