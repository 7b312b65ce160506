"""Signal-JEPA, contextual: each second of each channel a token, a transformer over them, one spatial filter bank.

Guetschel, Moreau & Tangermann (2024). S-JEPA: towards seamless cross-dataset transfer through dynamic spatial
attention. 9th Graz Brain-Computer Interface Conference. doi:10.3217/978-3-99161-014-4-003

The function computed is that of braindecode 1.8.1 `SignalJEPA_Contextual`, for x [B, C, T] at 128 Hz:

    each channel alone: convolution to 8 (32 taps every 8) -> group norm of each feature over time -> GELU
    -> four convolutions (2 taps every 2; to 16, 32, 64, 64), each with GELU: t vectors of 64 a channel, no biases
    -> + position: 30 numbers of the channel, 34 of the second: C t tokens
    -> eight times [LN(x + dropout .1 of attention (8 heads of 8, dropout .1 of the probabilities)), then
                    LN(x + dropout .1 of W2 dropout .1 relu(W1 x))], W1 widens 64 to 2048 -> LN
    -> 4 filters over the channels -> all of it flat -> linear

T is at least 152 samples: one vector. It is 128 samples from one vector to the next.

Parameters: 2263184 + 34 C + 4 + (256 t + 1) n, and 30 (62 - C) more with `table='names'`. braindecode's file also has
four layers of a decoder, which answer nothing downstream: they are not read.

Channels, `table`. 'positions' (braindecode's default, with the file `signal-jepa_without-chans`): the 30 numbers of a
channel start as sines and cosines of its coordinates (zero where it has none), those of any montage. 'names' (with the
file `signal-jepa`): they are rows of the table of the 62 pretrained electrodes; a channel that is none of these is
refused, as in the reference.

The headline is the published protocol of the reference, as NeuralBench has no such encoder: everything is trained.

How it is computed. Convolutions: `signal_jepa_layers`. The position is made once for all windows. Attention:
`wide_attention.attend_wide`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from jbench.models import torch_weights
from jbench.models.foundation.signal_jepa_layers import (
    MIN_TIMES,
    N_FILTERS,
    WIDTH,
    Convolutions,
    convolution_tensors,
    n_vectors,
)
from jbench.models.layers import blocks
from jbench.models.layers.wide_attention import attend_wide
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

ELECTRODES = (
    *'Fp1 Fp2 F7 F3 Fz F4 F8 FC5 FC1 FC2 FC6 T7 C3 Cz C4 T8 TP9 CP5 CP1 CP2 CP6 TP10 P7 P3 Pz P4 P8 PO9'.split(),
    *'O1 Oz O2 PO10 FC3 FC4 C5 C1 C2 C6 CP3 CPz CP4 P1 P2 POz FT9 FTT9h TTP7h TP7 TPP9h FT10 FTT10h TPP8h TP8'.split(),
    *'TPP10h F9 F10 AF7 AF3 AF4 AF8 PO3 PO4'.split(),
)
TABLES = ('positions', 'names')
HEADS, LAYERS, INNER = 8, 8, 2048
OF_CHANNEL, OF_TIME = 30, 34
LONGEST = 600  # seconds: of the slowest wave in the code of time
# files of braindecode: without its decoder; the filters and the head are new
CHECKPOINT = {
    'names': Exceptions(ignored=('transformer.decoder.*',), head=('head.*', 'final_layer.*')),
    'positions': Exceptions(
        ignored=('transformer.decoder.*',), absent=('pos_encoder.*',), head=('head.*', 'final_layer.*')
    ),
}


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are pretrained electrodes, and which (`table='names'`): {'CZ': 'Cz'}."""
    known = {name.upper(): name for name in ELECTRODES}
    return {name: known[name.upper()] for name in ch_names if name.upper() in known}


def codes_of_time(n: int) -> np.ndarray:
    """Sines (even places) and cosines (odd) of seconds 0 to n - 1: [n, 34]."""
    phase = np.arange(n)[:, None] * np.exp(np.arange(0, OF_TIME, 2) * (-math.log(LONGEST) / OF_TIME))
    return np.stack([np.sin(phase), np.cos(phase)], axis=2).reshape(n, OF_TIME)


def codes_of_places(places: Sequence[Position]) -> np.ndarray:
    """Sines (even places) and cosines (odd) of the coordinates x, then y, then z: [c, 30]; zeros without a place."""
    each = OF_CHANNEL // 3
    known = np.array([place is not None for place in places])
    metres = np.array([place for place in places if place is not None])
    waves = np.exp((1 - np.arange(0, each, 2) / each) * 2 * math.pi)
    phase = (metres / (10 * np.abs(metres).max()))[..., None] * waves
    found = np.zeros((len(places), OF_CHANNEL))
    found[known] = np.stack([np.sin(phase), np.cos(phase)], axis=3).reshape(-1, OF_CHANNEL)
    return found


def _rows(signal: Signal, table: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the table that the channels take, and the start of the table. Raises: RequestError."""
    if table not in TABLES:
        raise RequestError(f'signal_jepa: table={table}: expected one of {", ".join(TABLES)}')
    if table == 'positions':
        if all(place is None for place in signal.positions):
            raise RequestError(
                'signal_jepa: no channel has a position; --model=signal_jepa:table=names goes by names of electrodes'
            )
        return np.arange(signal.n_chans), codes_of_places(signal.positions)
    found = channels(signal.ch_names)
    other = [name for name in signal.ch_names if name not in found]
    if other or not found:
        raise RequestError(
            f'signal_jepa: {", ".join(other) or "channels without names"}: not among the 62 pretrained electrodes; '
            '--model=signal_jepa:table=positions goes by the positions of any electrodes'
        )
    from jbench.data import electrodes  # MNE takes its time

    places = electrodes.montage().get_positions()['ch_pos']  # as the checkpoint's, not turned into the head's axes
    start = codes_of_places([tuple(places[name]) for name in ELECTRODES])
    return np.array([ELECTRODES.index(found[name]) for name in signal.ch_names]), start


class _Linear(nn.Module):
    """x [..., n_in] @ weight.T + bias, its weight drawn by Glorot & Bengio (2010)."""

    n_in: int
    n_out: int
    drawn_bias: bool = True  # as torch draws it, else zero

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        weight = self.param('weight', blocks.xavier(self.n_in, self.n_out), (self.n_out, self.n_in))
        draw = blocks.uniform(self.n_in**-0.5) if self.drawn_bias else nn.initializers.zeros
        bias = self.param('bias', draw, (self.n_out,))
        flat = jnp.matmul(x.reshape(-1, self.n_in), weight.T, precision=blocks.PRECISION) + bias
        return flat.reshape(*x.shape[:-1], self.n_out)


class _Layer(nn.Module):
    """One layer of the transformer, over x [b, l, d]."""

    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None) -> jax.Array:
        b, length, _ = x.shape
        keys = blocks.split(key, 4)

        def drop(h: jax.Array, which: int) -> jax.Array:
            return blocks.dropout(h, self.dropout, keys[which], self.axis_name, batch_axis=0)

        joined = _Linear(WIDTH, 3 * WIDTH, drawn_bias=False, name='projections')(x)
        q, k, v = joined.reshape(b, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)  # each [b, h, l, size]
        first, shape = keys[0], (b, HEADS, length, length)
        kept = None if first is None or not self.dropout else blocks.kept(first, self.dropout, shape, self.axis_name, 0)
        mixed = attend_wide(q, k, v, kept, self.dropout).transpose(0, 2, 1, 3).reshape(x.shape)
        h = _Linear(WIDTH, WIDTH, drawn_bias=False, name='projection')(mixed)
        x = blocks.LayerNorm(WIDTH, name='norm_1')(x + drop(h, 1))
        h = drop(jax.nn.relu(_Linear(WIDTH, INNER, name='wide')(x)), 2)
        h = _Linear(INNER, WIDTH, name='narrow')(h)
        return blocks.LayerNorm(WIDTH, name='norm_2')(x + drop(h, 3))


class _SignalJEPA(nn.Module):
    rows: tuple[int, ...]
    start: tuple[tuple[float, ...], ...]  # of the table
    n_out: int
    axis_name: str | None
    dropout: float

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        h = Convolutions(name='convolutions')(batch['x'])
        b, c, n, _ = h.shape
        table = self.param('table', lambda _: jnp.asarray(self.start, jnp.float32))
        of_channel = jnp.broadcast_to(table[np.array(self.rows)][:, None], (c, n, OF_CHANNEL))
        of_time = jnp.broadcast_to(jnp.asarray(codes_of_time(n), table.dtype), (c, n, OF_TIME))
        x = (h + jnp.concatenate([of_channel, of_time], axis=2)).reshape(b, c * n, WIDTH)
        for i, own in enumerate(blocks.split(key, LAYERS)):
            x = _Layer(self.axis_name, self.dropout, name=f'layer_{i}')(x, own)
        x = blocks.LayerNorm(WIDTH, name='norm')(x)
        self.sow('features', 'tokens', x)  # [b, c n, 64]
        draw = blocks.uniform(c**-0.5)
        filters = self.param('filters', draw, (N_FILTERS, c))
        offset = self.param('filters_bias', draw, (N_FILTERS,))
        mixed = jnp.einsum('fc,bcs->bfs', filters, x.reshape(b, c, -1), precision=blocks.PRECISION) + offset[:, None]
        flat = mixed.reshape(b, -1)
        self.sow('features', 'penultimate', flat)  # [b, 256 n]
        return blocks.Linear(flat.shape[1], self.n_out, name='linear')(flat)


def _tensors(n_chans: int, n_rows: int, n_flat: int, n_out: int) -> list[Tensor]:
    """braindecode's names, but for its decoder and its last layer, which is our head."""
    linear, norm = torch_weights.linear_tensors, torch_weights.layer_norm_tensors
    out = convolution_tensors()
    out.append(Tensor('pos_encoder.pos_encoder_spat.weight', (n_rows, OF_CHANNEL), ('params', 'table')))
    for i in range(LAYERS):
        name, layer = f'transformer.encoder.layers.{i}', f'layer_{i}'
        packed = ('params', layer, 'projections')
        out += [
            Tensor(f'{name}.self_attn.in_proj_weight', (3 * WIDTH, WIDTH), (*packed, 'weight')),
            Tensor(f'{name}.self_attn.in_proj_bias', (3 * WIDTH,), (*packed, 'bias')),
            *linear(f'{name}.self_attn.out_proj', (layer, 'projection'), WIDTH, WIDTH),
            *linear(f'{name}.linear1', (layer, 'wide'), WIDTH, INNER),
            *linear(f'{name}.linear2', (layer, 'narrow'), INNER, WIDTH),
            *norm(f'{name}.norm1', (layer, 'norm_1'), WIDTH),
            *norm(f'{name}.norm2', (layer, 'norm_2'), WIDTH),
        ]
    return [
        *out,
        *norm('transformer.encoder.norm', ('norm',), WIDTH),
        Tensor('final_layer.spat_conv.weight', (N_FILTERS, 1, n_chans, 1, 1), ('params', 'filters')),
        Tensor('final_layer.spat_conv.bias', (N_FILTERS,), ('params', 'filters_bias')),
        *linear('head', ('linear',), n_flat, n_out),
    ]


def signal_jepa(
    signal: Signal,
    n_out: int,
    *,
    axis_name: str | None = None,
    dropout: float = 0.1,
    table: str = 'positions',
) -> Model:
    """Signal-JEPA for windows of `signal` (its checkpoint is of 128 Hz; taps are in samples) with `n_out` outputs.

    Args:
        signal: n_times >= 152, and positions or ch_names are used.
        n_out: number of outputs.
        axis_name: mapped axis over which dropout is drawn; None on one device.
        dropout: rate of the transformer.
        table: 'positions': channels start by where they are; 'names': as the pretrained electrodes of their names.

    Raises: RequestError where windows are too short, or channels cannot be placed.
    """
    require('signal_jepa', signal, n_out, min_times=MIN_TIMES, dropout=dropout)
    rows, start = _rows(signal, table)
    module = _SignalJEPA(tuple(rows.tolist()), tuple(map(tuple, start.tolist())), n_out, axis_name, dropout)
    n_flat = N_FILTERS * WIDTH * n_vectors(signal.n_times)
    tensors = _tensors(signal.n_chans, len(start), n_flat, n_out)
    use = channels(signal.ch_names) if table == 'names' else None
    grid = TokenGrid((signal.n_chans, n_vectors(signal.n_times)), 1)
    return network(module, signal, tensors, checkpoints=(CHECKPOINT[table],), channels=use, head=('head',), tokens=grid)
