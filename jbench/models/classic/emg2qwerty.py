"""EMG2Qwerty: spectrograms of two wristbands, a perceptron that hardly minds how they sit, convolutions over time.

Sivakumar et al. (2024). emg2qwerty: A Large Dataset with Baselines for Touch Typing using Surface Electromyography.
Advances in Neural Information Processing Systems 37, 91373-91389. arXiv:2410.20081
Blocks after Hannun et al. (2019). Sequence-to-sequence speech recognition with time-depth separable convolutions.
Interspeech, 3785-3789.

The function computed is that of braindecode 1.8.1 `EMG2QwertyNet` with log_softmax and spec_augment, for windows x
[B, C, T] whose first and last C / 2 electrodes are the two bands, each in order around the wrist:

    power of 64 samples every 16, Hann window, without centring -> log10(p + 1e-6): 33 frequencies a frame
    -> in training: stretches of time and bands of frequency are blotted out -> BN by electrode
    -> for each band: linear to 384 -> ReLU, at three rotations of the electrodes (-1, 0, 1), their mean
    -> four times: convolution over 32 frames, of the 768 features seen as 24 channels x 32 places, -> ReLU, added to
       the last frames -> LN -> linear -> ReLU -> linear, added to its input -> LN
    -> linear -> log-softmax: [B, frames, n], the last output being the blank

A convolution drops 31 frames, so that an answer knows what lies before it, and the frames are (T - 64) // 16 + 1 - 124.
At 2 kHz one is 8 ms, and an answer sees 1.02 s.

Parameters: 2 C + 12672 C + 4811616 + 769 n. At (C, n) = (32, 99): 5293315, whatever T.

How it is computed. The spectrogram is a product with the 33 cosines and sines, which have the window and its norm in
them. A rotation of the electrodes is one of the weights, so that all three are one product and no input is copied.
"""

from __future__ import annotations

import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models.layers import blocks, filters, rows
from jbench.models.layers.blocks import PRECISION, BatchNorm, LayerNorm, Linear
from jbench.models.model import Batch, Model, network, require
from jbench.models.torch_weights import Tensor, batch_norm_tensors, layer_norm_tensors, linear_tensors
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

WINDOW, HOP = 64, 16  # samples of a spectrum, and from one to the next
N_FREQUENCIES = WINDOW // 2 + 1
FLOOR = 1e-6  # added to the power
N_BANDS, ROTATIONS = 2, (-1, 0, 1)
N_FEATURES = 384  # of a band
N_BLOCKS, N_CHANNELS, TAPS = 4, 24, 32
N_ALL = N_BANDS * N_FEATURES
MIN_TIMES = WINDOW + N_BLOCKS * (TAPS - 1) * HOP
TIME_MASKS, TIME_WIDTH = 3, 25  # at most so many, each narrower than so many frames
FREQUENCY_MASKS, FREQUENCY_WIDTH = 2, 4


def waves() -> np.ndarray:
    """[64, 66]: cosines and sines times the periodic Hann window, which has unit norm."""
    n = np.arange(WINDOW)
    hann = np.sin(np.pi * n / WINDOW) ** 2
    angles = 2 * np.pi / WINDOW * np.outer(n, np.arange(N_FREQUENCIES))
    both = np.concatenate([np.cos(angles), -np.sin(angles)], axis=1)
    return np.asarray(both * (hann / np.linalg.norm(hann))[:, None])


def log_spectrogram(x: jax.Array) -> jax.Array:
    """log10 of the power of x [..., t] in each frame: [..., frames, 33]."""
    n, parts = x.shape[-1] // HOP, WINDOW // HOP
    pieces = x[..., : n * HOP].reshape(*x.shape[:-1], n, HOP)
    frames = jnp.concatenate([pieces[..., i : n - parts + 1 + i, :] for i in range(parts)], axis=-1)
    found = jnp.matmul(frames.reshape(-1, WINDOW), jnp.asarray(waves(), x.dtype), precision=PRECISION)
    power = found[:, :N_FREQUENCIES] ** 2 + found[:, N_FREQUENCIES:] ** 2
    return (jnp.log(power + FLOOR) / math.log(10)).reshape(*frames.shape[:-1], N_FREQUENCIES)


def spec_augment(x: jax.Array, mask: jax.Array, key: jax.Array, axis_name: str | None) -> jax.Array:
    """x [c, b, frames, 33] with some frames and some frequencies set to the mean of the batch (Park et al. 2019).

    How many is drawn once a batch, which ones for each channel of each window. Rows where mask [b] is False do not
    count in the mean.
    """
    valid = mask.astype(x.dtype)
    total = blocks.add_devices(jnp.einsum('cb,b->', x.sum((2, 3)), valid, precision=PRECISION), axis_name)
    n = blocks.add_devices(valid.sum(), axis_name) * x[:, 0].size
    in_time, in_frequency = jax.random.split(key)
    hidden = _hidden(in_time, x.shape, x.shape[2], TIME_MASKS, TIME_WIDTH, axis_name)[..., None]
    hidden |= _hidden(in_frequency, x.shape, x.shape[3], FREQUENCY_MASKS, FREQUENCY_WIDTH, axis_name)[:, :, None]
    return jnp.where(hidden, total / jnp.maximum(n, 1), x)


def _hidden(
    key: jax.Array, shape: tuple[int, ...], size: int, most: int, width: int, axis_name: str | None
) -> jax.Array:
    """bool [c, b, size]: up to `most` stretches, each narrower than `width`, drawn for all rows of a batch."""
    (c, b, *_), (n, here) = shape, rows.piece(axis_name)
    of_count, of_place = jax.random.split(key)
    count = jax.random.randint(of_count, (), 0, most + 1)
    u = jax.random.uniform(of_place, (2, most, c, n * b))
    u = lax.dynamic_slice_in_dim(u, here * b, b, axis=3)
    wide = u[0] * width
    first = jnp.floor(u[1] * (size - wide))[..., None]
    at = jnp.arange(size)
    inside = (at >= first) & (at < first + jnp.floor(wide)[..., None])
    return (inside & (jnp.arange(most) < count)[:, None, None, None]).any(0)


class _Wrists(nn.Module):
    """x [2 e, b, frames, 33] -> [b, frames, 768]: each band by its own perceptron, the mean over rotations."""

    n_electrodes: int  # of a band

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        e, (_, b, t, k) = self.n_electrodes, x.shape
        x = x.reshape(N_BANDS, e, b, t, k).transpose(0, 2, 3, 1, 4).reshape(N_BANDS, b * t, e * k)
        found = []
        for i in range(N_BANDS):
            layer = Linear(e * k, N_FEATURES, name=f'band{i}')
            weight = layer.weight.reshape(N_FEATURES, e, k)
            turned = jnp.concatenate([jnp.roll(weight, r, axis=1) for r in ROTATIONS])
            h = jnp.matmul(x[i], turned.reshape(-1, e * k).T, precision=PRECISION).reshape(
                -1, len(ROTATIONS), N_FEATURES
            )
            found.append(nn.relu(h + layer.bias).mean(1))
        return jnp.concatenate(found, axis=1).reshape(b, t, N_ALL)


class _Convolution(nn.Module):
    """Over time, the same at each of the places: x [b, t, 768] -> [b, t - 31, 768]."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        bound = blocks.uniform(1 / math.sqrt(N_CHANNELS * TAPS))
        taps = self.param('taps', bound, (N_CHANNELS, N_CHANNELS, TAPS))
        bias = self.param('bias', bound, (N_CHANNELS,))
        b, t, _ = x.shape
        places = x.reshape(b, t, N_CHANNELS, -1).transpose(0, 3, 1, 2)  # [b, places, t, channels]
        h = nn.relu(filters.conv(places.reshape(-1, t, N_CHANNELS), taps, last=True) + bias)
        return h.reshape(b, -1, *h.shape[1:]).transpose(0, 2, 3, 1).reshape(b, -1, x.shape[2])


class _Emg2Qwerty(nn.Module):
    n_chans: int
    n_out: int
    axis_name: str | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        x, mask = log_spectrogram(batch['x'].transpose(1, 0, 2)), batch['mask']  # [c, b, frames, 33]
        if key is not None:
            x = spec_augment(x, mask, key, self.axis_name)
        norm = BatchNorm(self.n_chans, axis_name=self.axis_name, name='norm')
        x = norm(x.reshape(*x.shape[:2], -1), mask, train=train).reshape(x.shape)
        x = _Wrists(self.n_chans // N_BANDS, name='wrists')(x)
        self.sow('features', 'bands', x)  # [b, frames, 768]
        for i in range(N_BLOCKS):
            h = _Convolution(name=f'conv{i}')(x)
            x = LayerNorm(N_ALL, name=f'conv{i}_norm')(h + x[:, TAPS - 1 :])
            h = Linear(N_ALL, N_ALL, name=f'second{i}')(nn.relu(Linear(N_ALL, N_ALL, name=f'first{i}')(x)))
            x = LayerNorm(N_ALL, name=f'linear{i}_norm')(h + x)
        self.sow('features', 'penultimate', x)  # [b, frames, 768]
        return nn.log_softmax(Linear(N_ALL, self.n_out, name='head')(x))


def _tensors(signal: Signal, n_out: int) -> list[Tensor]:
    """The reference's state_dict (braindecode 1.8.1), in its order."""
    found = batch_norm_tensors('model.0.batch_norm', ('norm',), signal.n_chans)
    for i in range(N_BANDS):
        n_in = signal.n_chans // N_BANDS * N_FREQUENCIES
        found += linear_tensors(f'model.1.mlps.{i}.mlp.0', ('wrists', f'band{i}'), n_in, N_FEATURES)
    for i in range(N_BLOCKS):
        first, second = (f'model.3.tds_conv_blocks.{2 * i + j}' for j in range(2))
        found += [
            Tensor(f'{first}.conv2d.weight', (N_CHANNELS, N_CHANNELS, 1, TAPS), ('params', f'conv{i}', 'taps')),
            Tensor(f'{first}.conv2d.bias', (N_CHANNELS,), ('params', f'conv{i}', 'bias')),
            *layer_norm_tensors(f'{first}.layer_norm', (f'conv{i}_norm',), N_ALL),
            *linear_tensors(f'{second}.fc_block.0', (f'first{i}',), N_ALL, N_ALL),
            *linear_tensors(f'{second}.fc_block.2', (f'second{i}',), N_ALL, N_ALL),
            *layer_norm_tensors(f'{second}.layer_norm', (f'linear{i}_norm',), N_ALL),
        ]
    return [*found, *linear_tensors('final_layer', ('head',), N_ALL, n_out)]


def emg2qwerty(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """EMG2Qwerty for windows of `signal` (any rate: all lengths are in samples) with `n_out` outputs a frame.

    Args:
        signal: an even number of channels, one band after the other, and n_times >= 2048 are used.
        n_out: number of keys and the blank.
        axis_name: mapped axis over which batch statistics are shared; None on one device.

    Raises: RequestError for shorter windows, or an odd number of channels.
    """
    require('emg2qwerty', signal, n_out, min_chans=N_BANDS, min_times=MIN_TIMES)
    if signal.n_chans % N_BANDS:
        raise RequestError(f'emg2qwerty: needs two bands of as many electrodes, got {signal.n_chans} channels')
    return network(_Emg2Qwerty(signal.n_chans, n_out, axis_name), signal, _tensors(signal, n_out))
