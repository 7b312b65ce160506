"""Signal-JEPA without its transformer: a bank of spatial filters behind its convolutions (post-local) or before them.

Guetschel, Moreau & Tangermann (2024). S-JEPA: towards seamless cross-dataset transfer through dynamic spatial
attention. 9th Graz Brain-Computer Interface Conference. doi:10.3217/978-3-99161-014-4-003

The functions computed are those of braindecode 1.8.1, for x [B, C, T] at 128 Hz, with the convolutions of
`signal_jepa`, which make t vectors of 64 of a channel:

    SignalJEPA_PostLocal: convolutions of each channel -> 4 filters over the channels -> all of it flat -> linear
    SignalJEPA_PreLocal: 4 filters over the channels -> convolutions of each of the 4 -> all of it flat -> linear

T is at least 152 samples: one vector. Parameters of either: 13840 + 4 C + 4 + (256 t + 1) n. There is no dropout.

All channels are used, whatever they are called: the filters start anew on every dataset, only the convolutions are
pretrained. The headline is the published protocol of the reference: everything is trained.
"""

from __future__ import annotations

from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp

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
from jbench.models.layers.spatial_first import mix
from jbench.models.model import Batch, Model, TokenGrid, network, require
from jbench.models.torch_weights import Exceptions, Tensor
from jbench.spec.model import Signal

# files of braindecode: the convolutions alone are read; with the table of channels or without it
_IGNORED = ('transformer.*', 'pos_encoder.*', 'final_layer.*')
POST_CHECKPOINT = Exceptions(ignored=_IGNORED, head=('head.*', 'final_layer.*'))
PRE_CHECKPOINT = Exceptions(ignored=_IGNORED, head=('head.*', 'spatial_conv.*'))

# in evaluation a processor filters windows in parts of about so many bytes (docs/speed.md), in so many parts at most,
# since each of them makes the program longer
PART, MOST_PARTS = 2_700_000, 64


def channels(ch_names: Sequence[str]) -> dict[str, str]:
    """Which channels are used, and as what: all of them, by their place, {'Fp1': '1', 'Fp2': '2'}."""
    return {name: str(i + 1) for i, name in enumerate(ch_names)}


class _Local(nn.Module):
    before: bool  # whether the filters come before the convolutions
    n_out: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        """Outputs [b, n] of x [b, c, t]."""
        x, convolutions = batch['x'], Convolutions(name='convolutions')
        b = len(x)
        h = convolutions(self._filtered(x, train) if self.before else x)  # [b, 4 or c, n, 64]
        self.sow('features', 'tokens', h.reshape(b, -1, WIDTH))
        flat = (h if self.before else self._filtered(h.reshape(b, h.shape[1], -1), train)).reshape(b, -1)
        self.sow('features', 'penultimate', flat)  # [b, 256 n]
        return blocks.Linear(flat.shape[1], self.n_out, name='linear')(flat)

    def _filtered(self, x: jax.Array, train: bool) -> jax.Array:
        """[b, 4, s] of x [b, c, s]."""
        draw = blocks.uniform(x.shape[1] ** -0.5)
        filters = self.param('filters', draw, (N_FILTERS, x.shape[1]))
        offset = self.param('filters_bias', draw, (N_FILTERS,))
        if train:  # its gradient needs the copy of x that one product for all windows makes
            mixed = jnp.einsum('fc,bcs->bfs', filters, x, precision=blocks.PRECISION)
        else:
            # pre-local's windows are copied out of their chunk of batches first: small copies stay in the caches
            n_parts = min(-(-x.nbytes // PART), len(x), MOST_PARTS) if jax.default_backend() == 'cpu' else 1
            parts = jnp.array_split(x, n_parts)
            mixed = jnp.concatenate([mix(part, filters).swapaxes(0, 1) for part in parts])
        return mixed + offset[:, None]


def _tensors(before: bool, signal: Signal, n_out: int) -> list[Tensor]:
    """braindecode's names, but for its last layer, which is our head."""
    name, height = ('spatial_conv.1', (1,)) if before else ('final_layer.spat_conv', (1, 1))
    filters = [
        Tensor(f'{name}.weight', (N_FILTERS, 1, signal.n_chans, *height), ('params', 'filters')),
        Tensor(f'{name}.bias', (N_FILTERS,), ('params', 'filters_bias')),
    ]
    head = torch_weights.linear_tensors('head', ('linear',), N_FILTERS * WIDTH * n_vectors(signal.n_times), n_out)
    return [*convolution_tensors(), *filters, *head]


def signal_jepa_post_local(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """Signal-JEPA with filters behind the convolutions, for windows of `signal` with `n_out` outputs.

    Args:
        signal: n_times >= 152 is used; the checkpoint is of 128 Hz, taps are in samples.
        n_out: number of outputs.
        axis_name: not used: nothing is drawn, no window depends on the others.

    Raises: RequestError where windows are too short.
    """
    require('signal_jepa_post_local', signal, n_out, min_times=MIN_TIMES)
    return network(
        _Local(False, n_out),
        signal,
        _tensors(False, signal, n_out),
        checkpoints=(POST_CHECKPOINT,),
        head=('head',),
        tokens=TokenGrid((signal.n_chans, n_vectors(signal.n_times)), 1),
    )


def signal_jepa_pre_local(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """Signal-JEPA with filters before the convolutions; arguments and errors as of `signal_jepa_post_local`."""
    require('signal_jepa_pre_local', signal, n_out, min_times=MIN_TIMES)
    return network(
        _Local(True, n_out),
        signal,
        _tensors(True, signal, n_out),
        checkpoints=(PRE_CHECKPOINT,),
        head=('head',),
        tokens=TokenGrid((N_FILTERS, n_vectors(signal.n_times)), 1),
    )
