"""Values of channels on a head seen from above: a dot a channel, colours between them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

CENTRE = 0.04  # m above the origin of MNE's head coordinates: the middle of the sphere that the scalp is near
LEAST, SMOOTH = 4, 8  # channels of known place: to draw a head, to draw colours between them
LINE: dict[str, Any] = {'color': '0.3', 'linewidth': 1}


def places(ch_names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Which channels have a place, int [P], and where on the flat head, [P, 2]: right and front are positive, 1 is the
    height of the ears; the angle from the top is kept. Both are empty where no place is known."""
    from jbench.data.electrodes import positions

    try:
        found = positions(ch_names)
    except RequestError:
        found = (None,) * len(ch_names)
    known = np.array([k for k, place in enumerate(found) if place is not None], int)
    xyz = np.array([found[k] for k in known], float).reshape(-1, 3) - (0, 0, CENTRE)
    angle = np.arctan2(np.hypot(xyz[:, 0], xyz[:, 1]), xyz[:, 2]) / (np.pi / 2)
    round_ = np.arctan2(xyz[:, 1], xyz[:, 0])
    return known, np.stack([angle * np.cos(round_), angle * np.sin(round_)], 1)


def draw(ax: Axes, xy: np.ndarray, values: np.ndarray, limits: tuple[float, float], colours: str) -> PathCollection:
    """Draw a head; returns its dots, whose colours are the values.

    Args:
        xy: of the channels [P, 2], from `places`.
        values: [P].
        limits: the values at the ends of the colours.
        colours: a map of matplotlib.
    """
    from matplotlib.patches import Circle
    from matplotlib.tri import Triangulation
    from scipy.spatial import Delaunay, QhullError

    edge = max(1.0, float(np.hypot(*xy.T).max()) + 0.06) if len(xy) else 1.0
    if len(xy) >= SMOOTH:
        with contextlib.suppress(QhullError):  # channels in a line: dots alone
            mesh = Triangulation(xy[:, 0], xy[:, 1], Delaunay(xy).simplices)
            ax.tricontourf(mesh, values, levels=np.linspace(*limits, 21), cmap=colours, extend='both', alpha=0.55)
    ax.add_patch(Circle((0, 0), edge, fill=False, **LINE))
    ax.plot([-0.1, 0, 0.1], [edge * 0.995, edge + 0.12, edge * 0.995], **LINE)
    for side in (-1, 1):
        ax.plot(side * (edge + np.array([0, 0.07, 0.07, 0])), [0.15, 0.1, -0.1, -0.15], **LINE)
    size = 50 if len(xy) < 40 else 16
    dots = ax.scatter(xy[:, 0], xy[:, 1], size, c=values, cmap=colours, edgecolors='k', linewidths=0.5, zorder=3)
    dots.set_clim(*limits)
    ax.set(xlim=(-edge - 0.15, edge + 0.15), ylim=(-edge - 0.1, edge + 0.2), aspect='equal')
    ax.axis('off')
    return dots
