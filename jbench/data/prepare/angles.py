"""Joint angles of windows: channels of the recording, at every sample or averaged over equal parts (spec.Angles)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jbench.spec.challenges import Angles
from jbench.spec.errors import RequestError
from jbench.targets.packed import packed

if TYPE_CHECKING:
    import mne

Row = tuple[int, float]  # row of the trigger, and onset of a window in s


def known(raw: mne.io.BaseRaw, target: Angles, rows: list[Row], duration: float) -> tuple[list[Row], list[str]]:
    """The windows of a recording whose angles are all known (no sample is nan), and their raw targets.

    Raises: RequestError where no channel begins with the prefix, or a window has fewer samples than steps.
    """
    joints = [name for name in raw.ch_names if name.startswith(target.field)]
    if not joints:
        raise RequestError(f'no channel begins with {target.field!r} (target.field): no angle is known')
    n = round(duration * raw.info['sfreq'])
    steps = target.steps or n
    if n < max(steps, target.answers):
        field, asked = ('steps', steps) if n < steps else ('answers', target.answers)
        raise RequestError(f'target.{field}: {asked} {field} in a window of {n} samples')
    borders = np.arange(steps) * n // steps
    kept, found = [], []
    for row in rows:
        first = round(row[1] * raw.info['sfreq'])
        x = raw.get_data(joints, start=max(first, 0), stop=min(first + n, raw.n_times))
        if x.shape[1] == n and np.isfinite(x).all():
            kept.append(row)
            found.append(packed(x if steps == n else np.add.reduceat(x, borders, axis=1) / np.diff(borders, append=n)))
    return kept, found
