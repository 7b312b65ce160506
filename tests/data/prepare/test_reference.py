"""Channels against others: what is taken from each, on disk as in memory, and what is refused."""

from __future__ import annotations

from pathlib import Path

import mne
import numpy as np
import pytest

from jbench.data import recording
from jbench.data.prepare import by_channel, reference, rows, signal
from jbench.spec.errors import RequestError
from jbench.spec.task import SignalSpec

NAMES = ['LA1', 'LA2', 'LA3', 'LA05', 'LA06', 'B1', 'G10', 'G11']
PICKS = ('seeg', 'ecog')


def made(names: list[str] = NAMES, kind: str | list[str] = 'seeg') -> mne.io.RawArray:
    x = np.random.default_rng(0).standard_normal((len(names), 3000)) * 1e-5
    return mne.io.RawArray(x, mne.create_info(names, 500.0, kind), verbose='ERROR')


def spec(how: str, regions: bool = False) -> SignalSpec:
    return SignalSpec(picks=PICKS, sfreq=500.0, band=None, notch=(), scaler='none', reference=how, regions=regions)  # type: ignore[arg-type]


def test_neighbours_go_by_number_and_a_lone_contact_is_left_out() -> None:
    """As Neuroprobe names them; a shaft that lacks a contact has an end there."""
    raw = made()
    x, (got, names) = raw.get_data(), signal.process(raw.copy(), spec('laplacian'))
    assert list(names) == ['LA1', 'LA2', 'LA3', 'LA05', 'LA06', 'G10', 'G11']
    wanted = [x[0] - x[1], x[1] - (x[0] + x[2]) / 2, x[2] - x[1], x[3] - x[4], x[4] - x[3], x[6] - x[7], x[7] - x[6]]
    np.testing.assert_allclose(got, np.array(wanted), atol=1e-11)


def test_the_average_is_that_of_good_channels() -> None:
    raw = made()
    raw.info['bads'] = ['B1']
    x, (got, names) = raw.get_data(), signal.process(raw.copy(), spec('average'))
    good = [k for k, name in enumerate(NAMES) if name != 'B1']
    assert list(names) == NAMES
    np.testing.assert_allclose(got, x - x[good].mean(0), atol=1e-11)


def test_bad_contacts_are_taken_from_none_and_count_in_no_region() -> None:
    """As they stay out of the average; they are kept, where they have a good neighbour."""
    raw = recording.with_regions(made(), dict.fromkeys(NAMES[:3], 'temporal') | {'G10': 'insula'})
    raw.info['bads'] = ['LA2', 'G10']
    x, (got, names) = raw.get_data(), signal.process(raw.copy(), spec('laplacian'))
    assert list(names) == ['LA2', 'LA05', 'LA06', 'G10']
    np.testing.assert_allclose(got[0], x[1] - (x[0] + x[2]) / 2, atol=1e-11)
    np.testing.assert_allclose(got[3], x[6] - x[7], atol=1e-11)
    got, names = signal.process(raw.copy(), spec('none', regions=True))
    assert list(names) == ['temporal']
    np.testing.assert_allclose(got[0], (x[0] + x[2]) / 2, atol=1e-11)


def test_regions_are_means_over_contacts_after_their_reference() -> None:
    """A contact of no region counts nowhere."""
    raw = recording.with_regions(made(), {'LA1': 'temporal', 'LA3': 'temporal', 'G11': 'insula', 'B1': 'insula'})
    x, (got, names) = raw.get_data(), signal.process(raw.copy(), spec('laplacian', regions=True))
    assert list(names) == ['insula', 'temporal']
    wanted = [x[7] - x[6], (x[0] - x[1] + x[2] - x[1]) / 2]
    np.testing.assert_allclose(got[[names.index('insula'), names.index('temporal')]], np.array(wanted), atol=1e-11)


@pytest.mark.parametrize(('how', 'regions'), [('laplacian', False), ('average', False), ('average', True)])
def test_a_long_recording_is_mixed_on_disk_as_in_memory(
    how: str, regions: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = dict.fromkeys(NAMES[:5], 'temporal') | {'B1': 'insula'}
    raw = recording.with_regions(made(), places)
    wanted, names = signal.process(raw.copy(), spec(how, regions))
    raw.save(tmp_path / 'x_raw.fif', fmt='double', verbose='ERROR')
    for module, name, value in (
        (by_channel, 'LARGE', 0),
        (by_channel, 'LEAST', 100),
        (by_channel, 'SCRATCH', 3 * 8 * 3000),  # three channels at a time
        (recording, 'BLOCK', 1 << 14),
        (rows, 'STRETCH', 1 << 12),
    ):
        monkeypatch.setattr(module, name, value)
    long = by_channel.laid_out(mne.io.read_raw(tmp_path / 'x_raw.fif', verbose='ERROR'), tmp_path)
    assert by_channel.is_laid_out(long)

    def refused(*_: object) -> None:
        raise AssertionError('pieces of time are read, not channels: each would be laid out for each piece')

    monkeypatch.setattr(by_channel._Channels, '_lay_out', refused)
    got, same = signal.process(recording.with_regions(long, places), spec(how, regions), tmp_path)
    assert sorted(same) == sorted(names)
    np.testing.assert_allclose(got[:, :][[same.index(name) for name in names]], wanted, atol=1e-11)


@pytest.mark.parametrize(
    ('names', 'kind', 'how', 'regions', 'words'),
    [
        (['F3', 'F4'], 'eeg', 'laplacian', False, 'found channels of type eeg, expected contacts in the brain'),
        (['A1', 'B1'], 'seeg', 'laplacian', False, 'found none beside another'),
        (['A1', 'A2'], ['seeg', 'eeg'], 'average', False, 'found channels of types eeg, seeg, whose mean says nothing'),
        (['A1', 'A2'], 'seeg', 'none', True, 'no channel of the recording has a region'),
    ],
)
def test_what_has_no_neighbour_or_region_is_refused(
    names: list[str], kind: str | list[str], how: str, regions: bool, words: str
) -> None:
    with pytest.raises(RequestError, match=words):
        reference.mixed(made(names, kind), spec(how, regions))
