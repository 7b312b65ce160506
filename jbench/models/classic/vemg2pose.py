"""VEMG2Pose: convolutions over the electrodes of a wrist, and a recurrent decoder that knows the pose it said last.

Salter et al. (2024). emg2pose: A Large and Diverse Benchmark for Surface Electromyographic Hand Pose Estimation.
NeurIPS Datasets and Benchmarks. arXiv:2412.02725. Blocks after Hannun et al. (2019), as in emg2qwerty.py.

The function computed is that of braindecode 1.8.1 `VEMG2Pose` (its defaults, the regression regime: from a pose of
zeros), for windows x [B, C, T] before which 1790 samples are mirrored, as the template of the challenge of 2026 does
(NeuralBench takes 1790 samples more of the recording instead):

    conv 11/5 -> ReLU -> LN -> conv 5/2 -> ReLU -> LN: 256 features
    -> conv 17/4 -> ReLU -> LN -> two TDS blocks of 9 frames -> conv 9/2 -> ReLU -> LN -> two TDS blocks of 5 frames
    -> linear to 64, interpolated to 50 Hz
    -> step by step: two LSTMs of 512 on [features, last pose] -> leaky ReLU -> linear, times 0.01: a pose and a change
       for each joint; the pose counts in the first 12 steps (250 ms), later the last pose plus the change
    -> interpolated to T

A TDS block: convolution over frames, of the 256 features seen as 16 channels x 16 places, -> ReLU, added to the last
frames -> LN -> linear -> ReLU -> linear, added to its input -> LN. No convolution is padded.

Outputs [B, joints * T]: the steps of the first joint, then those of the next. Weights begin as braindecode draws them.

How it is computed. A convolution with a stride sees as many samples as features of one, and has no stride.

Parameters at 16 electrodes and 20 joints: 5980328, whatever T.
"""

from __future__ import annotations

from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from jbench.models.layers import filters
from jbench.models.layers.blocks import PRECISION, LayerNorm, Linear
from jbench.models.layers.resize import linear
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, layer_norm_tensors, linear_tensors
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

CONTEXT = 1790  # samples before its first answer
WIDTH, N_FEATURES, HIDDEN, LSTMS = 256, 64, 512, 2
CHANNELS = 16  # of a TDS block
STEM = ((11, 5), (5, 2))  # taps and stride
STAGES = ((17, 4, 9), (9, 2, 5))  # taps, stride, and the taps of its blocks
BLOCKS = 2
RATE, POSES, SCALE = 50.0, 0.25, 0.01  # Hz of the decoder; s that are poses; of its outputs
LEAK = 0.01
NORMAL, ZEROS = nn.initializers.normal(0.02), nn.initializers.zeros


class _Conv(nn.Module):
    """Over time, x [b, t, f] -> [b, s, 256], with ReLU and LN."""

    n_in: int
    taps: int
    stride: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        taps = self.param('taps', NORMAL, (WIDTH, self.n_in, self.taps))
        bias = self.param('bias', ZEROS, (WIDTH,))
        return LayerNorm(WIDTH, name='norm')(nn.relu(strided(x, taps, self.stride) + bias))


def strided(x: jax.Array, taps: jax.Array, stride: int) -> jax.Array:
    """Cross-correlation of x [b, t, f] with taps [g, f, k] at every `stride` samples: [b, (t - k) // stride + 1, g].

    As many samples as a stride are seen as features of one: the convolution has no stride then (see filters.py)."""
    b, t, f = x.shape
    k = taps.shape[2]
    n, wide = (t - k) // stride + 1, -(-k // stride)
    length = (n - 1 + wide) * stride
    x = jnp.pad(x, ((0, 0), (0, max(0, length - t)), (0, 0)))[:, :length]
    taps = jnp.pad(taps, ((0, 0), (0, 0), (0, wide * stride - k)))
    taps = taps.reshape(len(taps), f, wide, stride).transpose(0, 3, 1, 2).reshape(len(taps), stride * f, wide)
    return filters.conv(x.reshape(b, -1, stride * f), taps, last=True)


class _Block(nn.Module):
    """A TDS block: x [b, t, 256] -> [b, t - taps + 1, 256]."""

    taps: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        taps = self.param('taps', NORMAL, (CHANNELS, CHANNELS, self.taps))
        bias = self.param('bias', ZEROS, (CHANNELS,))
        b, t, _ = x.shape
        places = x.reshape(b, t, CHANNELS, -1).transpose(0, 3, 1, 2)  # [b, places, t, channels]
        h = filters.conv(places.reshape(-1, t, CHANNELS), taps, last=True)
        h = nn.relu(h + bias).reshape(b, -1, t - self.taps + 1, CHANNELS)
        h = h.transpose(0, 2, 3, 1).reshape(b, -1, WIDTH)
        x = LayerNorm(WIDTH, name='conv_norm')(h + x[:, self.taps - 1 :])
        h = Linear(WIDTH, WIDTH, NORMAL, ZEROS, name='first')(x)
        h = Linear(WIDTH, WIDTH, NORMAL, ZEROS, name='second')(nn.relu(h))
        return LayerNorm(WIDTH, name='linear_norm')(h + x)


class _Lstm(NamedTuple):
    """The parameters of an LSTM as torch keeps them: gates i, f, g, o."""

    of_x: jax.Array  # [4 h, n_in]
    of_h: jax.Array  # [4 h, h]
    bias: jax.Array  # [4 h]

    def step(self, x: jax.Array, state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """(h, c) [b, h] after x [b, n_in]."""
        h, c = state
        both = jnp.concatenate([x, h], 1), jnp.concatenate([self.of_x, self.of_h], 1)
        i, f, g, o = jnp.split(jnp.matmul(both[0], both[1].T, precision=PRECISION) + self.bias, 4, 1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        return nn.sigmoid(o) * jnp.tanh(c), c


class _Decoder(nn.Module):
    """Features [b, steps, 64] -> poses [b, steps, joints]."""

    n_joints: int
    n_poses: int  # steps whose answer is a pose, not a change

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        lstms = []
        for k in range(LSTMS):
            n_in = N_FEATURES + self.n_joints if k == 0 else HIDDEN
            shapes = {'weight_ih': (4 * HIDDEN, n_in), 'weight_hh': (4 * HIDDEN, HIDDEN)}
            of_x, of_h = (self.param(f'{name}_l{k}', NORMAL, shape) for name, shape in shapes.items())
            biases = [self.param(f'{name}_l{k}', ZEROS, (4 * HIDDEN,)) for name in ('bias_ih', 'bias_hh')]
            lstms.append(_Lstm(of_x, of_h, biases[0] + biases[1]))
        bound = (
            self.param('weight', NORMAL, (2 * self.n_joints, HIDDEN)),
            self.param('bias', ZEROS, (2 * self.n_joints,)),
        )

        def step(carry: tuple, given: tuple[jax.Array, jax.Array]) -> tuple[tuple, jax.Array]:
            (pose, states), (features, is_pose) = carry, given
            h, new = jnp.concatenate([features, pose], 1), []
            for lstm, state in zip(lstms, states, strict=True):
                new.append(lstm.step(h, state))
                h = new[-1][0]
            out = SCALE * (jnp.matmul(nn.leaky_relu(h, LEAK), bound[0].T, precision=PRECISION) + bound[1])
            said, change = jnp.split(out, 2, 1)
            pose = jnp.where(is_pose, said, pose + change)
            return (pose, tuple(new)), pose

        rows, dtype = len(x), x.dtype
        zeros = jnp.zeros((rows, HIDDEN), dtype)
        start = jnp.zeros((rows, self.n_joints), dtype), ((zeros, zeros),) * LSTMS
        _, poses = lax.scan(step, start, (x.transpose(1, 0, 2), jnp.arange(x.shape[1]) < self.n_poses))
        return poses.transpose(1, 0, 2)


class _VEmg2Pose(nn.Module):
    n_chans: int
    n_times: int
    sfreq: float
    n_joints: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        x = jnp.pad(batch['x'], ((0, 0), (0, 0), (CONTEXT, 0)), mode='reflect').transpose(0, 2, 1)
        for i, (taps, stride) in enumerate(STEM):
            x = _Conv(WIDTH if i else self.n_chans, taps, stride, name=f'stem{i}')(x)
        for i, (taps, stride, of_block) in enumerate(STAGES):
            x = _Conv(WIDTH, taps, stride, name=f'stage{i}')(x)
            for k in range(BLOCKS):
                x = _Block(of_block, name=f'stage{i}_tds{k}')(x)
        x = Linear(WIDTH, N_FEATURES, NORMAL, ZEROS, name='features')(x)
        steps = max(1, round(self.n_times / self.sfreq * RATE))
        x = linear(x.transpose(0, 2, 1), steps).transpose(0, 2, 1)
        self.sow('features', 'penultimate', x)  # [b, steps, 64]
        poses = _Decoder(self.n_joints, round(POSES * RATE), name='decoder')(x)
        return linear(poses.transpose(0, 2, 1), self.n_times).reshape(len(x), -1)


def _tensors(signal: Signal, n_joints: int) -> list[Tensor]:
    """The reference's state_dict (braindecode 1.8.1), in its order."""
    found: list[Tensor] = []

    def conv(name: str, path: str, n_in: int, taps: int) -> None:
        found.extend(
            [
                Tensor(f'{name}.conv.0.weight', (WIDTH, n_in, taps), ('params', path, 'taps')),
                Tensor(f'{name}.conv.0.bias', (WIDTH,), ('params', path, 'bias')),
                *layer_norm_tensors(f'{name}.norm', (path, 'norm'), WIDTH),
            ]
        )

    for i, (taps, _) in enumerate(STEM):
        conv(f'encoder.{i}', f'stem{i}', WIDTH if i else signal.n_chans, taps)
    for i, (taps, _, of_block) in enumerate(STAGES):
        layers = f'encoder.{len(STEM) + i}.layers'
        conv(f'{layers}.conv1dblock', f'stage{i}', WIDTH, taps)
        for k in range(BLOCKS):
            path = f'stage{i}_tds{k}'
            first, second = (f'{layers}.tds_block.tds_conv_blocks.{2 * k + j}' for j in range(2))
            found += [
                Tensor(f'{first}.conv2d.weight', (CHANNELS, CHANNELS, 1, of_block), ('params', path, 'taps')),
                Tensor(f'{first}.conv2d.bias', (CHANNELS,), ('params', path, 'bias')),
                *layer_norm_tensors(f'{first}.layer_norm', (path, 'conv_norm'), WIDTH),
                *linear_tensors(f'{second}.fc_block.0', (path, 'first'), WIDTH, WIDTH),
                *linear_tensors(f'{second}.fc_block.2', (path, 'second'), WIDTH, WIDTH),
                *layer_norm_tensors(f'{second}.layer_norm', (path, 'linear_norm'), WIDTH),
            ]
    last = f'encoder.{len(STEM) + len(STAGES) - 1}.linear_layer'
    found += linear_tensors(last, ('features',), WIDTH, N_FEATURES)
    for k in range(LSTMS):
        n_in = N_FEATURES + n_joints if k == 0 else HIDDEN
        shapes: dict[str, tuple[int, ...]] = {'weight_ih': (4 * HIDDEN, n_in), 'weight_hh': (4 * HIDDEN, HIDDEN)}
        shapes |= {'bias_ih': (4 * HIDDEN,), 'bias_hh': (4 * HIDDEN,)}
        found += [Tensor(f'decoder.lstm.{n}_l{k}', s, ('params', 'decoder', f'{n}_l{k}')) for n, s in shapes.items()]
    return [*found, *linear_tensors('final_layer', ('decoder',), HIDDEN, 2 * n_joints)]


def vemg2pose(signal: Signal, n_out: int, *, n_joints: int = 20, axis_name: str | None = None) -> Model:
    """VEMG2Pose for windows of `signal`; its answer has n_joints * n_times numbers, whatever n_out.

    Args:
        signal: n_chans, n_times >= 1791 and sfreq are used.
        n_out: a multiple of n_joints.
        n_joints: angles to answer.
        axis_name: mapped axis; unused, the network has no batch statistics.

    Raises: RequestError for shorter windows, or outputs that are no whole number of joints.
    """
    require('vemg2pose', signal, n_out, min_times=CONTEXT + 1)
    if n_joints < 1 or n_out % n_joints:
        raise RequestError(f'vemg2pose: {n_out} outputs are no multiple of n_joints={n_joints}')
    made = _VEmg2Pose(signal.n_chans, signal.n_times, signal.sfreq, n_joints)
    return network(made, signal, _tensors(signal, n_joints))
