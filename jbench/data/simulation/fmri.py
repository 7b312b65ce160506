"""Functional magnetic resonance imaging, simulated: parcels of cortex that answer pictures through their blood flow.

Each parcel answers with a linear image of the picture's latent, which rises after 2 s, is largest after 5 and
undershoots after 15 (Glover 1999). The background is slow: 1/f fluctuations of seven networks that spread over the
parcels, drift, and noise of the scanner. All is in scanner units around a mean of 1000, so that 10 are a per cent.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from jbench.data.simulation.paradigm import Paradigm, Source, Tracks, Traits, Trials, noise, stream
from jbench.data.simulation.stimuli import N_LATENT, images, latent, part

N_PARCELS, N_SEEING = 200, 80  # the first ones answer
TR = 2.0  # s
MEAN = 1000.0
ANSWER = 8.0  # rms over pictures of an answer at its height, where it is largest
FLUCTUATION, SCANNER, DRIFT = 8.0, 6.0, 10.0  # rms
LATENTS: dict[str, Source] = {f'z{k:02d}': ('', 0.0) for k in range(N_LATENT)}
TAIL = 16.0  # s after the last picture


def haemodynamic(t: np.ndarray) -> np.ndarray:
    """Blood flow t s after a short event: two gamma densities, 1 at its height."""

    def gamma(shape: float) -> np.ndarray:
        return np.exp(special.xlogy(shape - 1, np.maximum(t, 0)) - np.maximum(t, 0) - special.gammaln(shape))

    return (gamma(6.0) - gamma(16.0) / 6) / 0.1754


def _pictures(p: Paradigm, session: int, rng: np.random.Generator) -> Trials:
    trials = images(p, session, rng)
    return trials._replace(t=np.arange(int((trials.onset[-1] + TAIL) * p.sfreq)) / p.sfreq)


def seen(trials: Trials, who: Traits, rng: np.random.Generator) -> tuple[Tracks, Tracks]:
    """Time courses of the latent's dimensions after the haemodynamic delay, later in slow subjects."""
    z = np.stack([latent(name) for name in trials.events['filepath']])  # [pictures, latent]
    z = z * who.evoked * rng.normal(1, 0.1, (len(z), 1))
    flow = haemodynamic(trials.t - trials.onset[:, None] - 5 * who.slow_delay)  # [pictures, T]
    return {}, dict(zip(LATENTS, (z.T @ flow).astype(np.float32), strict=True))


def parcels(
    trials: Trials, who: Traits, tracks: np.ndarray, anatomy: np.random.Generator, rng: np.random.Generator
) -> np.ndarray:
    """Samples [parcels, T]; a fifth of how a subject's parcels answer is its own."""
    n, shape = len(trials.t), (N_SEEING, N_LATENT)
    weights = 0.8**0.5 * stream('visual cortex').standard_normal(shape) + 0.2**0.5 * anatomy.standard_normal(shape)
    size = ANSWER * stream('parcels').uniform(0.3, 1, (N_SEEING, 1)) / N_LATENT**0.5
    out = np.full((N_PARCELS, n), MEAN, np.float32)
    out[:N_SEEING] += (size * weights) @ tracks
    networks = anatomy.standard_normal((N_PARCELS, 7)) / 7**0.5
    slow = noise(rng, (7, n), 1 / TR, lambda f: np.maximum(f, 0.01) ** -0.5)
    out += FLUCTUATION * networks @ slow
    out += SCANNER * rng.standard_normal(out.shape, dtype=np.float32)
    return out + DRIFT * noise(rng, out.shape, 1 / TR, lambda f: np.exp(-f / 0.005))


PARADIGMS = (
    Paradigm(
        'fmri_image',
        tuple(f'parcel_{k:03d}' for k in range(N_PARCELS)),
        1 / TR,
        ('',),
        ((), ()),
        4.0,
        2.0,
        (2.0, 7.0),
        seen,
        LATENTS,
        trial=_pictures,
        person=part,
        device='fmri',
        body=parcels,
    ),
)
