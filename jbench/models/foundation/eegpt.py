"""EEGPT: a transformer over the channels of a quarter of a second at a time, each summed up in four tokens.

Wang, Liu, He, Xu, Ma & Li (2024). EEGPT: Pretrained transformer for universal and reliable representation of EEG
signals. NeurIPS 37, 39249-39280

The function computed is that of braindecode 1.8.1 `EEGPT(return_encoder_output=True)`, on windows minus the mean of
their channels, then the mean over all tokens and a linear layer, for x [B, C, T] at 256 Hz in mV:

    C channels, minus their mean at each moment -> 19 mixtures of them (adapters.py)
    -> patches of 64 samples every stride, P = ceil((T - 64) / stride) + 1, the last filled up with zeros
    -> linear 64 -> 512 + the row of its electrode in a table of 62; behind the channels of a patch 4 summary tokens
    -> for each patch alone: 8 x [x + attention(LN x), then x + W2 GELU(W1 LN x)], W1 512 -> 2048; 8 heads of 64
    -> LN of the 4 summary tokens -> mean over tokens and patches -> linear

All layer norms have eps 1e-6. Parameters: 25287168 + 19 (C + 1) + 513 n.

Patches do not see each other, and none knows its time: with the mean, in which the order of patches is lost, the
network cannot tell when something happened. That mean is NeuralBench's form for encoders, the default here as in all of
this folder. `head='probe'` is the authors' and braindecode's: of each patch (dropout .5) 16 values (norms of rows up to
1), those of all patches side by side to the outputs (up to .25): 32784 + n (16 P + 1) parameters in place of 513 n.

Stride. The default of 32 samples is braindecode's, so that numbers can be compared with those of its class; the authors
pretrained with 64 (patches side by side) and probed with 64, on evoked responses with 32.

Channels. By default 19 learned mixtures of all channels, which start at random, as braindecode's and the authors' do;
`adapter='names'` starts each from the channel of its name instead (its 19 electrodes: `TARGETS`), as NeuralBench does
for other encoders. `adapter='none'` has no mixture: each channel takes the row of its name in the table (`NAMES`), one
without a row is left out. Braindecode gives an unknown channel at place i row i, which is another electrode's. Rows of
AF7, AF8, PO5 and PO6 were never trained.

Millivolts and the average reference are the authors', braindecode scales nothing. The average is that of the channels
that are used, so that what is left out changes nothing.

How it is computed. Overlapping patches are cut from blocks of `stride` samples. In the last layer nothing but keys and
values is computed for the channels. Where the layers of a batch would fill more than 5 GB, some are computed again
for the gradient (`remat`). Attention: `wide_attention.attend_wide`, with its gradient on one core 4 ms instead of 7
of `jax.nn.dot_product_attention` (62 patches, 23 tokens).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation import adapters
from jbench.models.layers import blocks
from jbench.models.layers.deep import in_turn, n_again
from jbench.models.layers.prenorm import EPS, Draws, Names, PreNorm, prenorm_tensors
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal

NAMES = tuple(
    """
    FP1 FPZ FP2 AF7 AF3 AF4 AF8 F7 F5 F3 F1 FZ F2 F4 F6 F8 FT7 FC5 FC3 FC1 FCZ FC2 FC4 FC6 FT8
    T7 C5 C3 C1 CZ C2 C4 C6 T8 TP7 CP5 CP3 CP1 CPZ CP2 CP4 CP6 TP8
    P7 P5 P3 P1 PZ P2 P4 P6 P8 PO7 PO5 PO3 POZ PO4 PO6 PO8 O1 OZ O2
    """.split()
)  # of the rows of the table
INDEX = {name: i for i, name in enumerate(NAMES)}
TARGETS = tuple('FP1 FP2 F7 F3 FZ F4 F8 T7 C3 CZ C4 T8 P7 P3 PZ P4 P8 O1 O2'.split())  # of the mixtures
PATCH = 64  # samples
WIDTH, LAYERS, HEADS, SUMMARY = 512, 8, 8, 4
DRAW = nn.initializers.normal(0.02)
ADAPTERS, PROBES = (*adapters.STARTS, 'none'), ('mean', 'probe')
PROBE, NORMS = 16, (1.0, 0.25)  # values of a patch; largest norms of rows
_THEIRS = ('chans_id', 'chan_proj.*', 'final_layer.*')  # of one montage, of one task
# files of braindecode with its mixture and head, which are not read, by `adapter`
CHECKPOINT = {name: Exceptions(ignored=_THEIRS, head=('head.*', 'adapter.*')) for name in adapters.STARTS}
CHECKPOINT['none'] = Exceptions(ignored=_THEIRS, head=('head.*',))


def channels(ch_names: Sequence[str], adapter: str = 'random') -> dict[str, str]:
    """Which channels are used, and as what: {'Fp1': 'mixture'}, {'T3': 'T7'} (the start of a mixture), {'Fpz': 'FPZ'}.

    Args:
        ch_names: of the recording.
        adapter: see `eegpt`.
    """
    if adapter == 'random':
        return dict.fromkeys(ch_names, 'mixture')
    if adapter == 'names':
        return adapters.used(ch_names, TARGETS, adapters.same(ch_names, TARGETS))
    known = {name: name.upper().replace('.', '') for name in ch_names}
    return {name: known for name, known in known.items() if known in INDEX}


def n_patches(n_times: int, stride: int) -> int:
    """Patches P of a channel."""
    return math.ceil((n_times - PATCH) / stride) + 1


def patches(x: jax.Array, stride: int) -> jax.Array:
    """Patches of 64 samples every `stride` (a divisor of 64) of x [b, c, t]: [b, p, c, 64]."""
    b, c, t = x.shape
    p, each = n_patches(t, stride), PATCH // stride
    padded = jnp.pad(x, ((0, 0), (0, 0), (0, (p - 1) * stride + PATCH - t)))
    parts = padded.reshape(b, c, -1, stride)
    return jnp.concatenate([parts[:, :, i : i + p] for i in range(each)], -1).transpose(0, 2, 1, 3)


def layer_bytes(n_tokens: int) -> float:
    """What the gradient keeps of a layer, about (24 values of each width), for so many tokens in float32."""
    return 4.0 * n_tokens * 24 * WIDTH


class _EEGPT(nn.Module):
    begin: adapters.Start | None  # of the mixture
    used: tuple[int, ...]  # channels of the input
    rows: tuple[int, ...]  # of the table: the mixtures' or the channels'
    n_out: int
    stride: int
    head: str
    axis_name: str | None
    remat: bool | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        x = batch['x'] if len(self.used) == batch['x'].shape[1] else batch['x'][:, np.array(self.used)]
        x = x - x.mean(1, keepdims=True)
        if self.begin is not None:
            x = adapters.Mixture(self.begin, name='adapter')(x)
        x = patches(x, self.stride)
        b, p, c, _ = x.shape
        zeros = nn.initializers.zeros
        table = self.param('channels', DRAW, (len(NAMES), WIDTH))
        x = blocks.Linear(PATCH, WIDTH, DRAW, zeros, name='embed')(x) + table[np.array(self.rows)]
        token = self.param('token', DRAW, (SUMMARY, WIDTH))
        x = jnp.concatenate([x.reshape(b * p, c, WIDTH), jnp.broadcast_to(token, (b * p, SUMMARY, WIDTH))], 1)

        def layer(i: int, **place: Any) -> PreNorm:
            small = nn.initializers.normal(0.02 / math.sqrt(2 * (i + 1)))
            return PreNorm(WIDTH, HEADS, Draws(DRAW, small, DRAW, small), **place)

        last, each = LAYERS - 1, layer_bytes(x.shape[0] * x.shape[1])
        again = n_again(each, last, rest=each / 5, train=train, remat=self.remat)  # the last: keys and values
        x = in_turn(self, layer, x, [None] * last, again=again)  # no dropout
        x = layer(last, name=f'layer_{last}')(x, None, SUMMARY)
        x = blocks.LayerNorm(WIDTH, EPS, name='norm')(x).reshape(b, p * SUMMARY, WIDTH)
        self.sow('features', 'tokens', x)  # patch by patch
        if self.head == 'probe':
            return self._probe(x.reshape(b, p, SUMMARY * WIDTH), key)
        pooled = x.mean(1)
        self.sow('features', 'penultimate', pooled)  # [b, 512]
        return blocks.Linear(WIDTH, self.n_out, name='head')(pooled)

    def _probe(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        """The authors' two linear layers, over x [b, p, 2048]."""
        x = blocks.dropout(x, 0.5, key, self.axis_name, batch_axis=0)
        x = self._limited('probe1', NORMS[0], x, PROBE).reshape(len(x), -1)
        self.sow('features', 'penultimate', x)  # [b, 16 p]
        return self._limited('probe2', NORMS[1], x, self.n_out)

    def _limited(self, name: str, limit: float, x: jax.Array, n_out: int) -> jax.Array:
        """A linear layer of x whose rows have norms up to `limit`."""
        bound = blocks.uniform(x.shape[-1] ** -0.5)
        weight = blocks.max_norm(self.param(f'{name}_weight', bound, (n_out, x.shape[-1])), limit)
        flat = jnp.matmul(x.reshape(-1, x.shape[-1]), weight.T, precision=blocks.PRECISION)
        return (flat + self.param(f'{name}_bias', bound, (n_out,))).reshape(*x.shape[:-1], n_out)


def _tensors(n_chans: int, n_out: int, *, mixed: bool, n_probed: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order but for its montage's ids, which are not
    kept, and our head. `n_probed`: patches that the authors' head reads, 0 for the mean."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    whole = 'target_encoder'
    out = adapters.tensors(len(TARGETS), n_chans) if mixed else []
    out += [
        Tensor(f'{whole}.summary_token', (1, SUMMARY, WIDTH), ('params', 'token')),
        Tensor(f'{whole}.patch_embed.proj.weight', (WIDTH, 1, 1, PATCH), ('params', 'embed', 'weight')),
        Tensor(f'{whole}.patch_embed.proj.bias', (WIDTH,), ('params', 'embed', 'bias')),
        Tensor(f'{whole}.chan_embed.weight', (len(NAMES), WIDTH), ('params', 'channels')),
    ]
    for i in range(LAYERS):
        part = f'{whole}.blocks.{i}'
        mlp, joined = f'{part}.mlp', (f'{part}.attn.qkv',)
        names = Names(f'{part}.norm1', joined, (), f'{part}.attn.proj', f'{part}.norm2', f'{mlp}.fc1', f'{mlp}.fc2')
        out += prenorm_tensors(names, f'layer_{i}', WIDTH)
    out += norm(f'{whole}.norm', ('norm',), WIDTH)
    if not n_probed:
        return out + linear('head', ('head',), WIDTH, n_out)
    for name, n_in, n in (('probe1', SUMMARY * WIDTH, PROBE), ('probe2', PROBE * n_probed, n_out)):
        weight = f'head.{name}.parametrizations.weight.original'
        out += [Tensor(f'head.{name}.bias', (n,), ('params', f'{name}_bias'))]
        out += [Tensor(weight, (n, n_in), ('params', f'{name}_weight'))]
    return out


def eegpt(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    adapter: str = 'random',
    stride: int = 32,
    head: str = 'mean',
    remat: bool | None = None,
) -> Model:
    """EEGPT for windows of `signal` (its weights were learnt at 256 Hz, in mV) with `n_out` outputs.

    Args:
        signal: n_times >= 64 and, unless the adapter is random, ch_names are used.
        n_out: number of outputs.
        axis_name: mapped axis over which rows are shared; None on one device.
        adapter: 'random': 19 mixtures of all channels, drawn as torch draws such a layer; 'names': they start from the
            channels of their names; 'none': each channel by the row of its name.
        stride: samples from patch to patch, a divisor of 64: the authors' 64, braindecode's 32.
        head: 'mean' of the tokens and a linear layer, or the authors' 'probe', which reads patches in their order.
        remat: whether values of layers are computed again for the gradient instead of kept: less memory, more time.
            True: of all layers but the last; None: in training, of as many as it takes to keep no more than 5 GB.

    Raises: RequestError where channels cannot be placed, windows are too short, or an option has another value.
    """
    require('eegpt', signal, n_out, min_chans=2, min_times=PATCH)
    for option, value, known in (('adapter', adapter, ADAPTERS), ('head', head, PROBES)):
        if value not in known:
            raise RequestError(f'eegpt: {option}={value}: expected one of {", ".join(known)}')
    if stride < 1 or PATCH % stride:
        raise RequestError(f'eegpt: stride={stride}: expected a divisor of {PATCH}, as 32 or 64')
    begin, used, ids = None, tuple(range(signal.n_chans)), TARGETS
    if adapter == 'none':
        used, ids = _named(signal)
    else:
        pattern = adapters.same(signal.ch_names, TARGETS) if adapter == 'names' else ()
        begin = adapters.start('eegpt', signal, adapter, targets=TARGETS, pattern=pattern, drawn=False)
    module = _EEGPT(begin, used, tuple(INDEX[name] for name in ids), n_out, stride, head, axis_name, remat)
    n_probed = n_patches(signal.n_times, stride) if head == 'probe' else 0
    tensors = _tensors(signal.n_chans, n_out, mixed=begin is not None, n_probed=n_probed)
    use = channels(signal.ch_names, adapter)
    grid = TokenGrid((n_patches(signal.n_times, stride), SUMMARY), 0)
    last = ('head.probe2' if n_probed else 'head',)
    return network(module, signal, tensors, checkpoints=(CHECKPOINT[adapter],), channels=use, head=last, tokens=grid)


def _named(signal: Signal) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The channels that have a row, and its name. Raises RequestError where there are less than two."""
    if len(signal.ch_names) != signal.n_chans:
        raise RequestError(f'eegpt: needs the names of all {signal.n_chans} channels, got {len(signal.ch_names)}')
    names = channels(signal.ch_names, 'none')
    used = tuple(i for i, name in enumerate(signal.ch_names) if name in names)
    if len(used) < 2:
        raise RequestError(
            f'eegpt: it knows {len(used)} of the channels {", ".join(signal.ch_names)}: expected two or more of '
            f'{", ".join(NAMES)}. Rename the channels, or let it learn mixtures of them: --model=eegpt:adapter=random'
        )
    return used, tuple(names[signal.ch_names[i]] for i in used)
