"""Channels that their recording marks bad: told, and kept, dropped or interpolated (`signal.bads`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jbench.data.recording import Finding, data_channels
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne

DONE = {'keep': 'kept (signal.bads=drop or interpolate changes that)', 'drop': 'dropped', 'interpolate': 'interpolated'}
PLACED = ('eeg', 'mag', 'grad', 'hbo', 'hbr')  # types that MNE interpolates


def told(raw: mne.io.BaseRaw, dataset: Dataset, how: str, where: str) -> list[Finding]:
    """The note on channels that are marked bad: `status` in channels.tsv, `info['bads']` of a FIF file."""
    bad = [c for c in data_channels(raw, dataset) if c in raw.info['bads']]
    rule = f'channels marked bad are {DONE[how]}'
    return [Finding(where, rule, ', '.join(bad), 'none', '', 'note')] if bad else []


def treat(raw: mne.io.BaseRaw, how: str) -> set[str]:
    """Drop or interpolate the channels that are marked bad, in place. Returns the names of those that are dropped.

    Interpolated is by MNE, from all good channels of the type; electrodes without a position of their own have that of
    their name in the 10-05 system.

    Raises: RequestError where no channel is left, or one has no position.
    """
    bad = [c for c in raw.info['bads'] if c in raw.ch_names]
    if not bad or how == 'keep':
        return set()
    if how == 'drop':
        if len(bad) == len(raw.ch_names):
            raise RequestError('signal.bads=drop: every channel is marked bad, and none is left')
        raw.drop_channels(bad)
        return set(bad)
    types = dict(zip(raw.ch_names, raw.get_channel_types(), strict=True))
    if others := [c for c in bad if types[c] in ('emg', 'seeg', 'ecog', 'dbs', 'misc')]:
        raise RequestError(
            f'signal.bads=interpolate: {", ".join(others)}: no electrodes on a head; use signal.bads=drop'
        )
    from jbench.data.prepare import by_channel

    long = by_channel.is_laid_out(raw)
    if not long:
        raw.load_data()
    if any(types[c] == 'eeg' for c in bad):
        _place(raw, [c for c, kind in types.items() if kind == 'eeg'])
    raw.info['bads'] = [c for c in bad if types[c] in PLACED]
    if long:
        by_channel.interpolate(raw)
    else:
        raw.interpolate_bads(reset_bads=True, verbose='ERROR')
    return set()


def _place(raw: mne.io.BaseRaw, names: list[str]) -> None:
    """Give electrodes their places by name, where the recording has none. Raises: RequestError for what has none."""
    import numpy as np

    from jbench.data.electrodes import montage

    def lacking() -> list[str]:
        places = {c['ch_name']: c['loc'][:3] for c in raw.info['chs']}
        return [c for c in names if not np.isfinite(places[c]).all() or not places[c].any()]

    if lacking():
        raw.set_montage(montage(), match_case=False, on_missing='ignore', verbose='ERROR')
    if left := lacking():
        raise RequestError(
            f'signal.bads=interpolate: no position of {", ".join(left)}: give electrodes.tsv (BIDS) or names of the '
            '10-05 system, or use signal.bads=drop'
        )
