"""Records what PyTorch's losses, optimiser and schedule compute, for tests that run without it.

    pip install torch==2.13.0
    python tests/make_torch_fixtures.py            # writes tests/fixtures/*_torch.npz

The networks of braindecode: make_network_fixtures.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

FIXTURES = Path(__file__).parent / 'fixtures'


TYPING = {'pct_start': 0.4, 'div_factor': 1e5, 'final_div_factor': 1e3}  # the cycle of emg/typing


def torch_cycle(params: list[torch.nn.Parameter], lr_max: float, total: int, decay: float, **cycle: float) -> tuple:
    """AdamW and OneCycleLR as the reference sets them."""
    optimiser = torch.optim.AdamW(params, lr=lr_max, weight_decay=decay)
    settings = {'pct_start': 0.1} | cycle
    return optimiser, torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=lr_max, total_steps=total, **settings)


def record_cycles() -> dict[str, np.ndarray]:
    """Learning rate and beta1 of every step."""
    out = {}
    for name, total in [*(('cycle', n) for n in (1, 2, 7, 9, 11, 40, 100, 1237)), ('typing', 40), ('typing', 1237)]:
        settings = TYPING if name == 'typing' else {}
        optimiser, cycle = torch_cycle([torch.nn.Parameter(torch.zeros(3))], 3e-3, total, 0.05, **settings)
        rows = []
        for step in range(total):
            rows.append((optimiser.param_groups[0]['lr'], optimiser.param_groups[0]['betas'][0]))
            optimiser.step()
            if step < total - 1:
                cycle.step()
        out[f'{name}/{total}'] = np.array(rows)
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


def record_sequences() -> dict[str, np.ndarray]:
    """CTC of rows that fit, are empty, or do not fit their frames; CLIP as neuraltrain writes it (norm_kind y)."""
    rng = np.random.default_rng(6)
    logits = rng.standard_normal((6, 12, 7)).astype(np.float32) * 2
    keys = [[0, 1, 2], [3, 3, 3, 1], [], [5] * 7, [1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 0], [4]]  # [5] * 7 needs 13 frames
    y = np.full((6, 13), -1)
    for row, pressed in zip(y, keys, strict=True):
        row[: len(pressed)] = pressed
    out: dict[str, np.ndarray] = {'ctc/logits': logits, 'ctc/y': y}
    x = torch.tensor(logits, requires_grad=True)
    lengths = torch.tensor([len(k) for k in keys])
    value = torch.nn.CTCLoss(blank=6, zero_infinity=True)(
        x.log_softmax(-1).transpose(0, 1), torch.tensor(np.where(y < 0, 6, y)), torch.full((6,), 12), lengths
    )
    value.backward()
    out |= {'ctc/value': value.detach().numpy(), 'ctc/grad': x.grad.numpy()}
    outputs, targets = (rng.standard_normal((8, 5)).astype(np.float32) * 3 for _ in range(2))
    x = torch.tensor(outputs, requires_grad=True)
    candidates = torch.tensor(targets)
    scores = torch.einsum('bd,od,o->bo', x, candidates, 1 / (1e-15 + candidates.norm(dim=1)))
    value = torch.nn.functional.cross_entropy(scores, torch.arange(8))
    value.backward()
    out |= {'clip/outputs': outputs, 'clip/y': targets}
    return out | {'clip/value': value.detach().numpy(), 'clip/grad': x.grad.numpy()}


def main() -> None:
    """Writes all files."""
    FIXTURES.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    np.savez_compressed(FIXTURES / 'onecycle_adamw_torch.npz', **record_cycles(), **record_trajectory())
    np.savez_compressed(FIXTURES / 'losses_torch.npz', **record_losses(), **record_sequences())
    for file in sorted(FIXTURES.glob('*_torch.npz')):
        print(file.name, file.stat().st_size, 'bytes')


if __name__ == '__main__':
    main()
