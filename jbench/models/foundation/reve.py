"""REVE: a transformer over all patches of all channels, each of which says where and when it was.

El Ouahidi, Lys, Thölke, Farrugia, Pasdeloup, Gripon, Jerbi & Lioi (2025). REVE: a foundation model for EEG. Adapting to
any setup with large-scale pretraining on 25,000 subjects. Advances in Neural Information Processing Systems 38.

The function computed is that of braindecode 1.8.1 `REVE`, then the mean over all tokens and a linear layer, as
NeuralBench fine-tunes it, for x [B, C, T] at 200 Hz, z-scored and clipped at 15, P = floor((T - 200) / 180) + 1; sizes
are those of `BASE` (small and large in brackets), d = 512 (512, 1250):

    a patch of 1 s, every 180 samples -> linear 200 -> d
    + LN(code of place and time + LN(GELU(linear 4 -> d, without bias, of (x, y, z, p))))
    -> 22 (4, 22) x [x + W2 attention(W1 RMS(x)), then x + W4 (a GELU(g))], [a, g] = W3 RMS(x) of 1361 (1361, 3325) each
    -> mean over channels and patches -> linear

The code of a token is cos and sin of 2 pi / 1.8 (f, g, h, k) . (x + .4, y + .4, z + .4, p / 10 + .4), for f, g, h, k
from 0 to 3 (3, 4), p the number of its patch. Attention has 8 (8, 19) heads of 64; RMS divides by the root of the mean
square, in float32 at least, eps 1e-6, with a gain. No dropout, and no bias in the layers.

Parameters: 69189120 (12667392, 408388750) + (d + 1) n, for any C and T. braindecode's source gives the base, and d of
the large; the other numbers of the large (22 layers, 19 heads, 5 frequencies) and of the small (4 layers) are those
that fit the counts of the paper, 408 and 12 million. A checkpoint of another size is refused when it is loaded.

Channels (`channels`): those whose place is known, in any number and order; the others are left out, one by one. The
checkpoints were learnt with places of the authors' own, a file `positions.json` {name: [x, y, z]} of the public
repository brain-bzh/reve-positions, which comes with them and is what published weights go by. There a name is looked
up as it is, else by its anode (Fpz of Fpz-Cz) or number (P7 of EEG 036). `positions=PATH` takes another such file.
`positions=mne`, and any other start (but weights that a run of jbench kept: those go by the places that they were
learnt with), goes by the places of MNE's 10-05 montage or net, in metres in the axes of the head, that jbench gives to
every network. How far the two differ has not been compared. Of windows, samples behind the last patch are not read.

How it is computed. What is added to the tokens is one array [C P, d] a part of a batch, without the batch; its fixed
part is made in float64 when the network is built. Tokens are averaged before the last projection of the last layer
(`deep.with_mean`). Attention: `wide_attention.attend_wide`, with its gradient in half the time of
`jax.nn.dot_product_attention` on one core (256 tokens: 33 ms instead of 68). A step of the base for 16 windows of 64
channels and 10 s takes 16.0 GB beside the weights if all is kept, with `remat` 1.9; a processor takes four at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jbench.models import torch_weights
from jbench.models.foundation import adapters
from jbench.models.layers import blocks
from jbench.models.layers.blocks import PRECISION
from jbench.models.layers.deep import in_turn, n_again, with_mean
from jbench.models.layers.wide_attention import attend_wide, n_pieces
from jbench.models.model import Batch, Model, TokenGrid, in_parts, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

PATCH, STEP = 200, 180  # samples
HEAD = 64  # features of a head
MARGIN, PER_PATCH = 0.4, 0.1  # of the code
EPS = 1e-6  # of the norms in the layers
MNE = ('', 'mne')  # no file of places


class Size(NamedTuple):
    """What tells the three networks apart."""

    width: int  # d
    depth: int
    heads: int
    frequencies: int  # of the code: 2 * frequencies ** 4 >= d

    @property
    def hidden(self) -> int:
        """Of each half of what a layer widens to."""
        return int(self.width * 2.66)


SMALL, BASE, LARGE = Size(512, 4, 8, 4), Size(512, 22, 8, 4), Size(1250, 22, 19, 5)
# files of the authors, whose query of their own pooling is not read, and of braindecode with its last layers
CHECKPOINT = Exceptions(ignored=('cls_query_token', 'final_layer.*'), head=('head.*',))


def n_patches(n_times: int) -> int:
    """Patches P of a channel."""
    return (n_times - PATCH) // STEP + 1


def channels(ch_names: Sequence[str], positions: str = '') -> dict[str, str]:
    """Which channels are used, and where they lie in mm: {'Cz': '0 -9 120'}.

    Args:
        ch_names: of the recordings.
        positions: path of the authors' file of places, or PATH@SHA256; '' or 'mne': MNE's.

    Raises: RequestError where no place is known, or the file is not one of places.
    """
    if positions not in MNE:
        places = _in_bank(ch_names, positions)
    else:
        from jbench.data import electrodes  # MNE takes its time

        places = electrodes.positions(ch_names)
    return adapters.placed(ch_names, places)


def _in_bank(ch_names: Sequence[str], path: str) -> tuple[Position, ...]:
    """Places of channels by the authors' file; None of one that it lacks."""
    path, _, digest = path.rpartition('@') if re.fullmatch('.*@[0-9a-f]{64}', path) else (path, '', '')
    try:
        content = Path(path).read_bytes()
        bank: Any = json.loads(content)
    except (OSError, ValueError) as error:
        raise RequestError(f'positions={path}: {error}. Expected the file positions.json of reve-positions') from error
    if digest and hashlib.sha256(content).hexdigest() != digest:
        raise RequestError(f'positions={path}: this file changed while the run went on; run it again')

    from jbench.data.electrodes import NEAREST

    def place(name: str) -> Position:
        x, y, z = bank.get(name, bank.get(NEAREST.get(name, name.split('-')[0]), ('', '', '')))
        return None if x == '' else (float(x), float(y), float(z))

    try:
        return tuple(map(place, ch_names))
    except (AttributeError, TypeError, ValueError) as error:
        raise RequestError(f'positions={path}: expected an object of names, with a list [x, y, z] for each') from error


def layer_bytes(size: Size, batch: int, length: int) -> float:
    """What the gradient keeps of a layer, about, for windows of `length` tokens in float32."""
    scores = 2 * size.heads * length if n_pieces(batch * size.heads, 4 * length**2, HEAD) == 1 else 0
    a_token = 4 * size.width + 4 * size.heads * HEAD + 5 * size.hidden + scores
    return 4.0 * batch * length * a_token


def code_of_tokens(places: np.ndarray, n: int, size: Size) -> tuple[np.ndarray, np.ndarray]:
    """Of n patches of each of the channels at places [c, 3]: (x, y, z, p) [c n, 4], and its waves [c n, d]."""
    times = np.broadcast_to(np.arange(n)[:, None], (len(places), n, 1))
    where = np.concatenate([np.broadcast_to(places[:, None], (len(places), n, 3)), times], -1).reshape(-1, 4)
    grid = np.stack(np.meshgrid(*[np.arange(size.frequencies)] * 4, indexing='ij'), -1).reshape(-1, 4)
    phase = 2 * math.pi / (1 + 2 * MARGIN) * (where * [1, 1, 1, PER_PATCH] + MARGIN) @ grid[: size.width // 2].T
    return where, np.concatenate([np.cos(phase), np.sin(phase)], -1)


class _Rms(nn.Module):
    """Each row of x [..., d] divided by the root of its mean square, times a gain; in float32 at least."""

    features: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        scale = self.param('scale', nn.initializers.ones, (self.features,))
        wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        return (wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + EPS)).astype(x.dtype) * scale


class _Map(nn.Module):
    """x [..., n_in] @ weight.T, as `blocks.Linear` without a bias."""

    n_in: int
    n_out: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        weight = self.param('weight', blocks.uniform(1 / math.sqrt(self.n_in)), (self.n_out, self.n_in))
        flat = jnp.matmul(x.reshape(-1, self.n_in), weight.T, precision=PRECISION)
        return flat.reshape(*x.shape[:-1], self.n_out)


class _Layer(nn.Module):
    """One layer over x [b, l, d]; with `mean_from` the mean of tokens [b, d] from this one on comes out behind them."""

    size: Size

    @nn.compact
    def __call__(self, x: jax.Array, key: jax.Array | None, mean_from: int | None = None) -> Any:
        d, inner, hidden = self.size.width, self.size.heads * HEAD, self.size.hidden
        joined = _Map(d, 3 * inner, name='joined')(_Rms(d, name='norm_1')(x))
        q, k, v = joined.reshape(*x.shape[:2], 3, self.size.heads, HEAD).transpose(2, 0, 3, 1, 4)
        mixed = attend_wide(q, k, v).transpose(0, 2, 1, 3).reshape(*x.shape[:2], inner)
        x = x + _Map(inner, d, name='out')(mixed)
        wide = _Map(d, 2 * hidden, name='wide')(_Rms(d, name='norm_2')(x))
        h, narrow = wide[..., :hidden] * blocks.gelu(wide[..., hidden:]), _Map(hidden, d, name='narrow')
        return x + narrow(h) if mean_from is None else with_mean(narrow, x, h, mean_from)


class _Reve(nn.Module):
    size: Size
    used: tuple[int, ...]  # channels of the input
    places: tuple[tuple[float, float, float], ...]  # theirs
    n_out: int
    remat: bool | None

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Logits [b, n] of x [b, c, t]."""
        x, d = batch['x'], self.size.width
        x = x if len(self.used) == x.shape[1] else x[:, np.array(self.used)]
        b, c, t = x.shape
        p = n_patches(t)
        patches = jnp.stack([x[..., i * STEP : i * STEP + PATCH] for i in range(p)], 2)  # [b, c, p, 200]
        x = blocks.Linear(PATCH, d, name='patches')(patches).reshape(b, c * p, d)
        x = x + self._codes(p, x.dtype)
        last, each = self.size.depth - 1, layer_bytes(self.size, b, c * p)
        again = n_again(each, last, rest=each, train=train, remat=self.remat)
        x = in_turn(self, lambda i, **place: _Layer(self.size, **place), x, [None] * last, again=again)  # no dropout
        x, pooled = _Layer(self.size, name=f'layer_{last}')(x, None, mean_from=0)
        self.sow('features', 'tokens', x)  # [b, c * p, d], channel by channel
        self.sow('features', 'penultimate', pooled)  # [b, d]
        return blocks.Linear(d, self.n_out, name='head')(pooled)

    def _codes(self, n: int, dtype: Any) -> jax.Array:
        """What is added to the tokens [c * n, d]."""
        d = self.size.width
        where, waves = (jnp.asarray(a, dtype) for a in code_of_tokens(np.array(self.places), n, self.size))
        learnt = blocks.LayerNorm(d, name='place_norm')(blocks.gelu(_Map(4, d, name='place')(where)))
        return blocks.LayerNorm(d, name='code_norm')(waves + learnt)


def _tensors(size: Size, n_out: int) -> list[Tensor]:
    """The reference's state_dict (spec of braindecode 1.8.1), in its order, and our head."""
    norm, linear = torch_weights.layer_norm_tensors, torch_weights.linear_tensors
    d, inner, hidden = size.width, size.heads * HEAD, size.hidden
    out = linear('to_patch_embedding.0', ('patches',), PATCH, d)
    out += [Tensor('mlp4d.0.weight', (d, 4), ('params', 'place', 'weight'))]
    out += norm('mlp4d.2', ('place_norm',), d) + norm('ln', ('code_norm',), d)
    for i in range(size.depth):
        name, ours = f'transformer.layers.{i}', ('params', f'layer_{i}')
        out += [
            Tensor(f'{name}.0.norm.weight', (d,), (*ours, 'norm_1', 'scale')),
            Tensor(f'{name}.0.to_qkv.weight', (3 * inner, d), (*ours, 'joined', 'weight')),
            Tensor(f'{name}.0.to_out.weight', (d, inner), (*ours, 'out', 'weight')),
            Tensor(f'{name}.1.net.0.weight', (d,), (*ours, 'norm_2', 'scale')),
            Tensor(f'{name}.1.net.1.weight', (2 * hidden, d), (*ours, 'wide', 'weight')),
            Tensor(f'{name}.1.net.3.weight', (d, hidden), (*ours, 'narrow', 'weight')),
        ]
    return out + linear('head', ('head',), d, n_out)


def build(name: str, size: Size, signal: Signal, n_out: int, *, positions: str, remat: bool | None) -> Model:
    """REVE of any size, for the factories below, which say what is what."""
    require(name, signal, n_out, min_times=PATCH)
    positions = '' if positions in MNE else positions
    given = signal.ch_names if positions else signal.positions
    if len(given) != signal.n_chans:
        what = 'names' if positions else 'places'
        raise RequestError(f'{name}: needs the {what} of all {signal.n_chans} channels, got {len(given)}')
    places = _in_bank(signal.ch_names, positions) if positions else signal.positions
    used = {i: place for i, place in enumerate(places) if place is not None}
    if not used:
        by = f' by {positions}' if positions else ''
        raise RequestError(
            f'{name}: the place of none of the {signal.n_chans} channels is known{by}: '
            'expected electrodes of the 10-05 system, as Cz. Rename the channels, or take a model that goes by their '
            'order alone, as cbramod'
        )
    module, use = _Reve(size, tuple(used), tuple(used.values()), n_out, remat), adapters.placed(signal.ch_names, places)
    grid = TokenGrid((len(used), n_patches(signal.n_times)), 1)
    made = network(module, signal, _tensors(size, n_out), checkpoints=(CHECKPOINT,), channels=use, tokens=grid)
    return in_parts(made)


def reve_small(
    signal: Signal, n_out: int, *, axis_name: str | None = None, positions: str = '', remat: bool | None = None
) -> Model:
    """REVE of 4 layers; as `reve_base`."""
    return build('reve_small', SMALL, signal, n_out, positions=positions, remat=remat)


def reve_base(
    signal: Signal, n_out: int, *, axis_name: str | None = None, positions: str = '', remat: bool | None = None
) -> Model:
    """REVE of 22 layers, which NeuralBench takes, for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times >= 200 and positions, or ch_names with `positions`, are used; the weights were learnt at 200 Hz.
        n_out: number of logits.
        axis_name: mapped axis over which rows are shared; nothing here depends on it.
        positions: path of the authors' file of places, or PATH@SHA256; '' and 'mne': those of the signal.
        remat: whether values of layers are computed again for the gradient instead of kept: less memory, more time.
            True: of all layers but the last; None: in training, of as many as it takes to keep no more than 5 GB.

    Raises: RequestError where a window is shorter than a patch, or the place of no channel is known.
    """
    return build('reve_base', BASE, signal, n_out, positions=positions, remat=remat)


def reve_large(
    signal: Signal, n_out: int, *, axis_name: str | None = None, positions: str = '', remat: bool | None = None
) -> Model:
    """REVE of 22 wider layers; as `reve_base`."""
    return build('reve_large', LARGE, signal, n_out, positions=positions, remat=remat)
