"""A window that a model of the table is defined for."""

from __future__ import annotations

from jbench.spec.model import ModelSpec, Signal

NAMES = tuple('Fp1 Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 Oz O2'.split())
PLACES = tuple((0.01 * i, 0.02 * (i % 3), 0.1) for i in range(len(NAMES)))


def fitting(model: ModelSpec, n_times: int = 128) -> Signal:
    """Electrodes of the 10-20 system with places, and so many samples, or the first number above that fits."""
    n = max(n_times, model.least_times)
    n += -n % model.times_multiple
    asks = model.asks
    return Signal(
        n_chans=len(NAMES),
        n_times=n,
        sfreq=dict(model.overrides).get('signal.sfreq', 120.0),
        ch_names=NAMES if 'ch_names' in asks else (),
        positions=PLACES if 'positions' in asks else (),
    )
