"""Response properties of neurons of V1, as measured in macaques (Marques, Schrimpf & DiCarlo 2021, bioRxiv).

Responses are firing rates (spikes/s). Those to gratings lie on a grid [unit, size, spatial frequency, orientation,
phase]; dc is their mean over phases, ac the amplitude of their first harmonic over phases. The function of a study
gives its properties by name, of the units that respond enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jbench.alignment.metrics.tuning import (
    SMOOTH,
    SUPPRESSED,
    circular_variance,
    frequency_tuning,
    orientation_tuning,
    orthogonal_preferred_ratio,
    size_tuning,
    sparseness,
    texture_modulation,
    variance_ratio,
)

LEAST_RATE = 5.0  # spikes/s, over the baseline, of a unit that counts


class Properties(NamedTuple):
    """Properties of the units that respond enough."""

    values: dict[str, np.ndarray]  # [unit], nan where a unit has none
    units: np.ndarray  # which ones they are, of those that were given


def ringach2002(responses: np.ndarray, baseline: np.ndarray, orientation: np.ndarray) -> Properties:
    """Selectivity for orientation, and response magnitudes (Ringach, Shapley & Hawken 2002, J. Neurosci. 22:5639).

    Args:
        responses: spikes/s, [unit, size, spatial frequency, orientation, phase].
        baseline: response to a blank, [unit].
        orientation: degrees.
    """
    dc, ac = _harmonics(responses)
    curve, at = _curve(dc, axis=3)
    best = at[:, 0], at[:, 1], at[:, 2]
    rows = np.arange(len(dc))
    max_dc, max_ac = dc[rows, *best], ac[rows, *best]
    variance, ratio = circular_variance(curve, orientation), orthogonal_preferred_ratio(curve)
    bandwidth = orientation_tuning(curve, orientation).bandwidth / 2
    with np.errstate(invalid='ignore', divide='ignore'):
        values = {
            'baseline': baseline,
            'max_dc': max_dc,
            'min_dc': curve.min(1),
            'max_ac': max_ac,
            'modulation_ratio': max_ac / max_dc,
            'circular_variance': variance,
            'bandwidth': bandwidth,
            'orthogonal_preferred_ratio': ratio,
            'orientation_selective': np.isfinite(bandwidth).astype(float),
            'circular_variance_bandwidth_ratio': variance / bandwidth,
            'orthogonal_preferred_ratio_circular_variance_difference': ratio - variance,
            'orthogonal_preferred_ratio_bandwidth_ratio': ratio / bandwidth,
        }
    return _responsive(values, max_dc - baseline)


def devalois1982a(responses: np.ndarray, baseline: np.ndarray, orientation: np.ndarray) -> Properties:
    """Preferred orientation, -22.5 to 157.5 degrees (De Valois, Yund & Hepler 1982, Vision Res. 22:531).

    Args:
        responses: spikes/s, [unit, size, spatial frequency, orientation, phase].
        baseline: response to a blank, [unit].
        orientation: degrees.
    """
    dc, _ = _harmonics(responses)
    curve, _ = _curve(dc, axis=3)
    preferred = orientation_tuning(curve, orientation, kernel=SMOOTH, height=0.5).peak
    values = {'preferred_orientation': np.where(preferred >= 157.5, preferred - 180, preferred)}
    return _responsive(values, _most(dc) - baseline)


def devalois1982b(responses: np.ndarray, baseline: np.ndarray, frequency: np.ndarray) -> Properties:
    """Best spatial frequency, cycles per degree (De Valois, Albrecht & Thorell 1982, Vision Res. 22:545).

    Args:
        responses: spikes/s, [unit, size, spatial frequency, orientation, phase].
        baseline: response to a blank, [unit].
        frequency: cycles per degree, ascending.
    """
    either = _both(responses, baseline)
    curve, _ = _curve(either, axis=2)
    return _responsive({'peak_spatial_frequency': frequency_tuning(curve, frequency).peak}, _most(either))


def schiller1976c(responses: np.ndarray, baseline: np.ndarray, frequency: np.ndarray) -> Properties:
    """Selectivity for spatial frequency (Schiller, Finlay & Volman 1976, J. Neurophysiol. 39:1334).

    Args:
        responses: spikes/s, [unit, size, spatial frequency, orientation, phase].
        baseline: response to a blank, [unit].
        frequency: cycles per degree, ascending.
    """
    dc, _ = _harmonics(responses)
    curve, _ = _curve(dc, axis=2)
    bandwidth = frequency_tuning(curve, frequency).bandwidth
    selective = np.isfinite(bandwidth).astype(float)
    values = {'spatial_frequency_selective': selective, 'spatial_frequency_bandwidth': bandwidth}
    return _responsive(values, _most(dc) - baseline)


def cavanaugh2002a(responses: np.ndarray, baseline: np.ndarray, radius: np.ndarray) -> Properties:
    """Tuning for size (Cavanaugh, Bair & Movshon 2002, J. Neurophysiol. 88:2530).

    Args:
        responses: spikes/s, [unit, size, spatial frequency, orientation, phase].
        baseline: response to a blank, [unit].
        radius: degrees, ascending.
    """
    either = _both(responses, baseline)
    curve, _ = _curve(either, axis=1)
    values = size_tuning(curve, radius)
    values['strongly_suppressed'] = (values['surround_suppression_index'] >= SUPPRESSED).astype(float)
    return _responsive(values, _most(either))


def freemanziemba2013(responses: np.ndarray, baseline: np.ndarray) -> Properties:
    """Responses to naturalistic textures and to noise of their spectrum (Freeman, Ziemba et al. 2013, Nat. Neurosci.
    16:974).

    Args:
        responses: spikes/s, [unit, noise or texture, family, sample].
        baseline: response to a blank, [unit].
    """
    counts = responses / 10  # in 100 ms
    ratio, sample, family = variance_ratio((np.sqrt(counts) + np.sqrt(counts + 1))[:, 1])
    above = responses - baseline[:, None, None, None]
    noise, texture = above[:, 0], above[:, 1]
    modulation = texture_modulation(noise.mean(2), texture.mean(2))
    values = {
        'texture_modulation_index': modulation,
        'absolute_texture_modulation_index': np.abs(modulation),
        'texture_selectivity': sparseness(texture.mean(2)),
        'noise_selectivity': sparseness(noise.mean(2)),
        'texture_sparseness': sparseness(texture.reshape(len(texture), -1)),
        'noise_sparseness': sparseness(noise.reshape(len(noise), -1)),
        'variance_ratio': ratio,
        'sample_variance': sample,
        'family_variance': family,
        'max_texture': _most(texture),
        'max_noise': _most(noise),
    }
    return _responsive(values, _most(above))


def _harmonics(responses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over phases and amplitude of the first harmonic."""
    return responses.mean(-1), 2 * np.abs(np.fft.fft(responses)[..., 1]) / responses.shape[-1]


def _both(responses: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """dc over the baseline, and ac: [unit, size, spatial frequency, orientation, 2]."""
    dc, ac = _harmonics(responses)
    return np.stack([dc - baseline[:, None, None, None], ac], -1)


def _curve(grid: np.ndarray, *, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """The curve of each unit along an axis through its greatest response, and where that is, [unit, axis]."""
    at = np.stack(np.unravel_index(grid.reshape(len(grid), -1).argmax(1), grid.shape[1:]), 1)
    moved = np.moveaxis(grid, axis, -1)
    rest = np.delete(at, axis - 1, 1)
    return moved[np.arange(len(grid)), *rest.T], at


def _most(grid: np.ndarray) -> np.ndarray:
    """Greatest response of each unit."""
    return np.asarray(grid.reshape(len(grid), -1).max(1))


def _responsive(values: dict[str, np.ndarray], rate: np.ndarray) -> Properties:
    """Properties of the units with a great enough response."""
    units = np.flatnonzero(rate > LEAST_RATE)
    return Properties({name: value[units] for name, value in values.items()}, units)
