"""jbench_tiny: a small encoder that ships with jbench, and so runs pretrained without a download.

EEGNet (models/classic/eegnet.py) on the 19 sites of the 10-20 system. What a recording has at a site is a mean of its
channels with weights exp(-d^2 / 2 s^2), d the distance of a channel from the site and s = 3 cm, which sum to 1; they
follow from positions alone, so that any montage fits, and nothing of it is learnt. Channels without a position are left
out. Weights were learnt at 100 Hz; docs/jbench_tiny.md is the model card.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jbench.models.classic.eegnet import MIN_TIMES, eegnet
from jbench.models.layers import blocks
from jbench.models.model import Answer, Batch, Model, require
from jbench.models.torch_weights import Variables
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

SITES = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 O2'.split())
REACH = 0.03  # m


@functools.cache
def places() -> np.ndarray:
    """Where the sites lie: f64 [19, 3], m in head coordinates."""
    from jbench.data.electrodes import positions

    return np.array(positions(SITES))


def mixture(positions: tuple[Position, ...]) -> np.ndarray:
    """What each site takes of each channel: f32 [19, C], rows sum to 1. Raises: RequestError for no place."""
    known = np.array([p is not None for p in positions], bool)
    if not known.any():
        raise RequestError('jbench_tiny: no channel has a position')
    at = np.array([p or (0.0, 0.0, 0.0) for p in positions])
    near = -((places()[:, None] - at) ** 2).sum(-1) / (2 * REACH**2)
    near = np.where(known, near, -np.inf)
    share = np.exp(near - near.max(1, keepdims=True))
    return (share / share.sum(1, keepdims=True)).astype(np.float32)


def jbench_tiny(signal: Signal, n_out: int, *, axis_name: str | None = None, dropout: float = 0.25) -> Model:
    """The network for windows of `signal`, of which positions are used, with `n_out` outputs.

    Args:
        signal: n_times >= 27; weights were learnt at 100 Hz.
        n_out: number of outputs.
        axis_name: mapped axis over which batch statistics are shared; None on one device.
        dropout: rate, 0 to below 1.

    Raises: RequestError where positions are missing, none is known, or windows are too short.
    """
    require('jbench_tiny', signal, n_out, min_times=MIN_TIMES, dropout=dropout)
    if len(signal.positions) != signal.n_chans:
        raise RequestError(
            f'jbench_tiny: needs the positions of all {signal.n_chans} channels, got {len(signal.positions)}'
        )
    mixed = jnp.asarray(mixture(signal.positions))
    inner = eegnet(
        Signal(n_chans=len(SITES), n_times=signal.n_times, sfreq=signal.sfreq),
        n_out,
        axis_name=axis_name,
        dropout=dropout,
    )

    def at_sites(x: jax.Array) -> jax.Array:
        return jnp.einsum('kc,bct->bkt', mixed, x, precision=blocks.PRECISION)

    def apply(variables: Variables, batch: Batch, *, train: bool, key: jax.Array | None) -> Answer:
        return inner.apply(variables, {**batch, 'x': at_sites(batch['x'])}, train=train, key=key)

    return inner._replace(apply=apply, precompute=lambda x: inner.precompute(at_sites(x)))
