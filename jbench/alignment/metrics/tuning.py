"""Measures of tuning curves of neurons: one curve a unit."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

HEIGHT = 0.707  # of the peak, where a bandwidth is measured
HANNING = (0, 0.4, 1, 0.4, 0)
SMOOTH = (0, 0.2, 1, 0.2, 0)
SUPPRESSED = 0.1  # least suppression by the surround of a unit that has one
NORMALISER = 0.02  # of shares of variance (Freeman, Ziemba et al. 2013)


class Tuning(NamedTuple):
    """Fitted curves of units."""

    bandwidth: np.ndarray  # nan where a curve does not fall enough
    peak: np.ndarray
    explained: np.ndarray  # share of variance; nan of a constant curve


def circular_variance(curve: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """1 - |sum R exp(2 i theta)| / sum |R|; nan of a curve of zeros.

    Args:
        curve: responses, [..., orientation].
        orientation: degrees.
    """
    vector = np.abs(curve @ np.exp(2j * np.deg2rad(orientation)))
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.asarray(1 - vector / np.abs(curve).sum(-1))


def orientation_tuning(
    curve: np.ndarray, orientation: np.ndarray, *, kernel: tuple[float, ...] = HANNING, height: float = HEIGHT
) -> Tuning:
    """Full bandwidth and preferred orientation, in whole degrees, of a smoothed interpolated curve.

    Args:
        curve: responses, [unit, orientation].
        orientation: degrees, ascending, evenly over 180.
        kernel: of five taps.
        height: of the peak, where the bandwidth is measured.
    """
    thrice = _smooth(np.tile(curve, 3), kernel)
    x = np.concatenate([orientation - 180, orientation, orientation + 180])
    degrees = np.arange(-180, 360)
    fine = _spline(x, thrice)(degrees)
    peak = fine[:, 180:360].argmax(1)
    rows = np.arange(len(curve))
    low = fine <= fine[rows, peak + 180][:, None] * height
    left, right = _crossings(low, peak + 180)
    width = np.where((left >= 0) & (right < len(degrees)), right - left, np.nan).astype(float)
    width[width > 180] = np.nan
    return Tuning(width, peak.astype(float), np.full(len(curve), np.nan))


def orthogonal_preferred_ratio(curve: np.ndarray) -> np.ndarray:
    """Response to the orientation orthogonal to the best over that to the best; [unit, orientation] -> [unit]."""
    best = curve.argmax(1)
    rows = np.arange(len(curve))
    orthogonal = (best + curve.shape[1] // 2) % curve.shape[1]
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.asarray(curve[rows, orthogonal] / curve[rows, best])


def frequency_tuning(curve: np.ndarray, frequency: np.ndarray) -> Tuning:
    """Bandwidth (100 x lower over upper frequency at 0.707 of the peak) and peak of a smoothed curve, interpolated over
    the logarithm of the frequency.

    Args:
        curve: responses, [unit, frequency].
        frequency: cycles per degree, ascending.
    """
    x = np.log2(frequency)
    smooth = _smooth(np.pad(curve, ((0, 0), (2, 2)), 'edge'), SMOOTH)[:, 2:-2]
    spline = _spline(x, smooth)
    grid = np.linspace(x[0], x[-1], 100)
    fine = spline(grid)
    peak = fine.argmax(1)
    low = fine <= fine.max(1, keepdims=True) * HEIGHT
    left, right = _crossings(low, peak)
    there = (left >= 0) & (right < len(grid))
    width = 100 * 2 ** (grid[np.maximum(left, 0)] - grid[np.minimum(right, len(grid) - 1)])
    residual = ((curve - spline(x)) ** 2).sum(1)
    with np.errstate(invalid='ignore', divide='ignore'):
        explained = 1 - residual / ((curve - curve.mean(1, keepdims=True)) ** 2).sum(1)
    return Tuning(np.where(there, width, np.nan), 2 ** grid[peak], np.where(np.isfinite(explained), explained, np.nan))


def size_tuning(curve: np.ndarray, radius: np.ndarray) -> dict[str, np.ndarray]:
    """Suppression by the surround, and the diameters of the summation field and of the surround.

    Args:
        curve: responses, [unit, radius].
        radius: degrees, ascending.
    Returns:
        grating_summation_field, surround_diameter (degrees), surround_grating_summation_field_ratio (nan of units
        suppressed by 0.1 or less), surround_suppression_index.
    """
    peak, plateau, best = curve.max(1), curve[:, -1], curve.argmax(1)
    with np.errstate(invalid='ignore', divide='ignore'):
        index = (peak - plateau) / peak
    has = (peak > 0) & (index > SUPPRESSED)
    field = 2 * radius[(curve >= 0.95 * peak[:, None]).argmax(1)]
    fallen = curve <= (plateau + 0.05 * np.abs(plateau))[:, None]
    fallen &= radius > radius[best][:, None]
    surround = 2 * radius[fallen.argmax(1)]
    return {
        'grating_summation_field': np.where(has, field, np.nan),
        'surround_diameter': np.where(has, surround, np.nan),
        'surround_grating_summation_field_ratio': np.where(has, surround / field, np.nan),
        'surround_suppression_index': index,
    }


def texture_modulation(noise: np.ndarray, texture: np.ndarray) -> np.ndarray:
    """Mean over families of (texture - noise) / (texture + noise), those without a response left out; [..., family]."""
    with np.errstate(invalid='ignore', divide='ignore'), warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)  # of a mean of nothing
        return np.asarray(np.nanmean((texture - noise) / (texture + noise), axis=-1))


def sparseness(responses: np.ndarray) -> np.ndarray:
    """(1 - mean^2 / mean of squares) / (1 - 1 / n), over the last axis; nan of zeros."""
    n = responses.shape[-1]
    with np.errstate(invalid='ignore', divide='ignore'):
        return np.asarray((1 - responses.mean(-1) ** 2 / (responses**2).mean(-1)) / (1 - 1 / n))


def variance_ratio(responses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variance across families over that across samples, and the share of either in their sum.

    Args:
        responses: [..., family, sample].
    Returns:
        Ratio, share of samples, share of families.
    """
    families, samples = responses.shape[-2:]
    mean = responses.mean(-1)
    across_samples = ((responses - mean[..., None]) ** 2).sum((-1, -2)) / (families * (samples - 1))
    across = samples * ((mean - mean.mean(-1, keepdims=True)) ** 2).sum(-1) / (families - 1)
    across_families = (across - across_samples) / samples
    with np.errstate(invalid='ignore', divide='ignore'):
        sample, family = (v / (across_samples + across_families) for v in (across_samples, across_families))
        return (family + NORMALISER) / (sample + NORMALISER), sample, family


def _smooth(curve: np.ndarray, kernel: tuple[float, ...]) -> np.ndarray:
    """Each row convolved with a normalised kernel, zeros beyond its ends."""
    weights = np.asarray(kernel) / sum(kernel)
    return np.apply_along_axis(np.convolve, 1, curve, weights, mode='same')


def _spline(x: np.ndarray, y: np.ndarray) -> Any:
    """Cubic spline through each row."""
    from scipy.interpolate import make_interp_spline

    spline = make_interp_spline(x, y.T, k=3)
    return lambda at: spline(at).T


def _crossings(low: np.ndarray, peak: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last low place before the peak and the first one after it, [unit]; -1 and the length where there is none."""
    place, n = np.arange(low.shape[1]), low.shape[1]
    left = np.where(low & (place < peak[:, None]), place, -1).max(1)
    return left, np.where(low & (place > peak[:, None]), place, n).min(1)
