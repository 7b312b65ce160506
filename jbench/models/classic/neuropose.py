"""NeuroPose: a window of the electrodes of a wrist as an image that is made small, looked at, and made large again.

Liu, Zhang & Gowda (2021). NeuroPose: 3D Hand Pose Tracking using EMG Wearables. The Web Conference, 1471-1482.
As changed by Salter et al. (2024), emg2pose, arXiv:2412.02725 (appendix C).

The function computed is that of braindecode 1.8.1 `NeuroPose` with its defaults. Windows x [B, C, T] are images of T
times and C electrodes; every convolution is 3 times x 2 electrodes, its borders zero, with BN, ReLU and dropout (0.05):

    three times: convolution to 32, 128, 256 -> the largest of 10 x 2, 8 x 2, 4 x 4
    -> five times: three convolutions of 256, added to their input
    -> three times: convolution to 128, 32, 1 -> each repeated 10 x 4, 8 x 4, 4 x 2
    -> at each time: linear, of what electrodes have become, to the joints -> interpolated to T

Outputs [B, joints * T]: the steps of the first joint, then those of the next. Weights begin as braindecode draws them.

How it is computed. An electrode and the next one are features of one convolution over time, which is fast on CPUs.

Parameters at 16 electrodes and 20 joints: 6354903, whatever T.
"""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers import blocks, filters
from jbench.models.layers.blocks import BatchNorm, Linear
from jbench.models.layers.resize import linear
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, batch_norm_tensors, linear_tensors
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

ENCODER = ((32, (10, 2)), (128, (8, 2)), (256, (4, 4)))  # features, and what is made one
DECODER = ((128, (10, 4)), (32, (8, 4)), (1, (4, 2)))  # features, and how often each is repeated
N_RESIDUAL, N_CONVS = 5, 3
TAPS = (3, 2)
DROPOUT = 0.05
NORMAL, ZEROS = nn.initializers.normal(0.02), nn.initializers.zeros
LEAST_TIMES, LEAST_CHANS = 320, 16  # of which one is left


class _Conv(nn.Module):
    """x [b, t, e, f] -> [b, t, e, n]: convolution, BN, ReLU, dropout."""

    n_in: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array, *, train: bool, key: jax.Array | None) -> jax.Array:
        taps = self.param('taps', NORMAL, (self.n_out, self.n_in, *TAPS))
        bias = self.param('bias', ZEROS, (self.n_out,))
        h = over_both(x, taps)
        norm = BatchNorm(self.n_out, axis_name=self.axis_name, last=True, name='norm')
        flat = norm(h.reshape(len(h), -1, self.n_out), mask, train=train, bias=bias)
        return blocks.dropout(nn.relu(flat).reshape(h.shape), DROPOUT, key, self.axis_name, batch_axis=0)


def over_both(x: jax.Array, taps: jax.Array) -> jax.Array:
    """Cross-correlation of x [b, t, e, f] with taps [n, f, 3, 2], zeros around it: [b, t, e, n].

    An electrode and the next one are features of one convolution over time (see filters.py); the last has no next."""
    b, t, e, _ = x.shape
    after = jnp.pad(x[:, :, 1:], ((0, 0), (0, 0), (0, 1), (0, 0)))
    both = x if e == 1 else jnp.concatenate([x, after], 3)
    weight = taps[..., 0] if e == 1 else jnp.concatenate([taps[..., 0], taps[..., 1]], 1)
    flat = both.transpose(0, 2, 1, 3).reshape(b * e, t, -1)
    return filters.conv(flat, weight, (1, 1), last=True).reshape(b, e, t, -1).transpose(0, 2, 1, 3)


class _NeuroPose(nn.Module):
    n_chans: int
    n_times: int
    n_joints: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        keys = iter(blocks.split(key, len(ENCODER) + N_RESIDUAL * N_CONVS + len(DECODER)))

        def conv(x: jax.Array, n: int, name: str) -> jax.Array:
            made = _Conv(x.shape[-1], n, self.axis_name, name=name)
            return made(x, batch['mask'], train=train, key=next(keys))

        x = batch['x'].transpose(0, 2, 1)[..., None]  # [b, t, e, 1]
        for i, (n, size) in enumerate(ENCODER):
            x = nn.max_pool(conv(x, n, f'encoder{i}'), size, size)
        for i in range(N_RESIDUAL):
            h = x
            for k in range(N_CONVS):
                h = conv(h, x.shape[-1], f'residual{i}_{k}')
            x = x + h
        self.sow('features', 'penultimate', x.reshape(len(x), x.shape[1], -1))  # [b, t / 320, 256]
        for i, (n, (times, electrodes)) in enumerate(DECODER):
            x = jnp.repeat(jnp.repeat(conv(x, n, f'decoder{i}'), times, 1), electrodes, 2)
        x = x.transpose(0, 1, 3, 2).reshape(len(x), x.shape[1], -1)  # features, then electrodes
        x = Linear(x.shape[-1], self.n_joints, NORMAL, ZEROS, name='head')(x)
        return linear(x.transpose(0, 2, 1), self.n_times).reshape(len(x), -1)


def _electrodes(n: int) -> int:
    """Electrodes of what the last layer sees."""
    for _, (_, size) in ENCODER:
        n //= size
    for _, (_, times) in DECODER:
        n *= times
    return n


def _tensors(signal: Signal, n_joints: int) -> list[Tensor]:
    """The reference's state_dict (braindecode 1.8.1), in its order."""
    n, named = 1, []
    for i, (n_out, _) in enumerate(ENCODER):
        named.append((f'encoder.{i}.network', 0, f'encoder{i}', n, n_out))
        n = n_out
    named += [
        (f'resnet.{i}.network', 4 * k, f'residual{i}_{k}', n, n) for i in range(N_RESIDUAL) for k in range(N_CONVS)
    ]
    for i, (n_out, _) in enumerate(DECODER):
        named.append((f'decoder.{i}.network', 0, f'decoder{i}', n, n_out))
        n = n_out
    found: list[Tensor] = []
    for name, k, path, n_in, n_out in named:
        found += [
            Tensor(f'{name}.{k}.weight', (n_out, n_in, *TAPS), ('params', path, 'taps')),
            Tensor(f'{name}.{k}.bias', (n_out,), ('params', path, 'bias')),
            *batch_norm_tensors(f'{name}.{k + 1}', (path, 'norm'), n_out),
        ]
    return [*found, *linear_tensors('final_layer', ('head',), n * _electrodes(signal.n_chans), n_joints)]


def neuropose(signal: Signal, n_out: int, *, n_joints: int = 20, axis_name: str | None = None) -> Model:
    """NeuroPose for windows of `signal` (any rate: all lengths are in samples); its answer has n_joints * n_times
    numbers, whatever n_out.

    Args:
        signal: n_chans >= 16 and n_times >= 320 are used.
        n_out: a multiple of n_joints.
        n_joints: angles to answer.
        axis_name: mapped axis over which batch statistics are shared; None on one device.

    Raises: RequestError for fewer channels, shorter windows, or outputs that are no whole number of joints.
    """
    require('neuropose', signal, n_out, min_chans=LEAST_CHANS, min_times=LEAST_TIMES)
    if n_joints < 1 or n_out % n_joints:
        raise RequestError(f'neuropose: {n_out} outputs are no multiple of n_joints={n_joints}')
    made = _NeuroPose(signal.n_chans, signal.n_times, n_joints, axis_name)
    return network(made, signal, _tensors(signal, n_joints))
