"""A small prepared set whose recordings have different electrodes, and a network that asks which ones."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from jbench.data.load import prepared_set
from jbench.data.prepare import codec
from jbench.models.model import Model, network
from jbench.spec.model import ModelSpec, Signal

NAMES = ('Cz', 'Pz', 'Oz')
MONTAGES = (NAMES, ('Oz', 'Cz'), NAMES, ('Pz',))  # of each recording
PER_RECORDING, N_TIMES = 12, 32
MODEL = ModelSpec(name='present', title='', family='classic', target='montages:present', asks=('channel_mask',))


def prepared(folder: Path) -> prepared_set.PreparedSet:
    """Windows of random numbers about 1; the first two recordings train, then one each validates and tests."""
    rng = np.random.default_rng(0)
    recordings = []
    for k, names in enumerate(MONTAGES):
        recordings.append({'shard': f's{k}.array_record', 'n_windows': PER_RECORDING, 'ch_names': list(names)})
        x = rng.normal(1, 1, (PER_RECORDING, len(names), N_TIMES)).astype(np.float32)
        about = {'subject': str(k), 'session': '', 'run': '', 'target': '"a"'}
        codec.write_shard(
            folder / f's{k}.array_record', [codec.encode_window(w, i, about) for i, w in enumerate(x)], x.nbytes
        )
    n, manifest = PER_RECORDING * len(MONTAGES), {'recordings': recordings, 'ch_names': list(NAMES)}
    (folder / 'manifest.json').write_text(json.dumps(manifest))
    return prepared_set.PreparedSet(
        folder=folder,
        manifest=manifest,
        signal=Signal(n_chans=len(NAMES), n_times=N_TIMES, sfreq=120.0, ch_names=NAMES),
        clamp=None,
        kind='classes',
        y=np.arange(n) % 2,
        classes=('a', 'b'),
        ids=np.arange(n),
        subjects=np.repeat([str(k) for k in range(len(MONTAGES))], PER_RECORDING),
        split=np.repeat(['train', 'train', 'valid', 'test'], PER_RECORDING),
        warnings=(),
    )


def there(rows: np.ndarray) -> np.ndarray:
    """Which channels windows have, bool [N, C]."""
    return np.array([[name in MONTAGES[row // PER_RECORDING] for name in NAMES] for row in rows])


class Present(nn.Module):
    """The mean over the channels that a window has, times a scale, plus an offset."""

    n_out: int

    @nn.compact
    def __call__(self, batch, *, train, key):
        mask = batch['channel_mask']
        mean = jnp.where(mask, batch['x'].mean(-1), 7).sum(1, where=mask) / mask.sum(1)
        scale = self.param('scale', nn.initializers.ones, (self.n_out,))
        return mean[:, None] * scale + self.param('offset', nn.initializers.zeros, (self.n_out,))


def present(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    assert signal.channel_mask and dataclasses.replace(signal, channel_mask=False).ch_names == ()
    return network(Present(n_out), signal)
