"""Stretches in which nothing changes are refused on all channels, and told of some."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import make_prepared_fixture
import mne
import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st

from jbench.data.prepare import build_set, check_recording, constant, findings
from jbench.data.recording import Finding, Recording
from jbench.plan import select
from jbench.spec.errors import RequestError

SFREQ = int(tiny.SFREQ)


def checked(start: float, seconds: float, channels: slice = slice(None), **facts: object) -> list[Finding]:
    """What is found in twenty seconds that stand still for some."""
    raw, events = tiny.read(tiny.ref(1))
    x = raw.get_data()
    first, n = round(start * SFREQ), round(seconds * SFREQ)
    x[channels, first : first + n] = x[channels, first, None]
    dataset = dataclasses.replace(tiny.DATASET, **facts)
    found = check_recording.check(Recording(mne.io.RawArray(x, raw.info, verbose='ERROR'), events), dataset, 'd/x.fif')
    return [f for f in found if f.rule != 'channels should not saturate']


@pytest.mark.slow
def test_a_recording_of_which_half_is_zeros_is_refused_with_where_and_how_long(tmp_path: Path) -> None:
    task, refs = make_prepared_fixture.task(), [tiny.ref(0), tiny.ref(1, 'half'), tiny.ref(2)]
    with pytest.raises(RequestError) as caught:
        build_set.prepare(task, tiny.DATASET, tmp_path / 'set-0', refs, lambda *facts: None)
    (line,) = str(caught.value).splitlines()[1:]
    assert '01_0_half: the signal must not stand still' in line and 'from 10.0 to 20.0 s (10.0 s)' in line


@pytest.mark.parametrize(
    ('start', 'seconds', 'refused'),
    [(5, 1, True), (5, 0.99, False), (0, 1.9, False), (0, 2, True), (18.1, 1.9, False), (18, 2, True), (7.3, 6, True)],
)
def test_a_second_inside_is_refused_and_padding_at_the_ends_is_not(start: float, seconds: float, refused: bool) -> None:
    found = checked(start, seconds)
    assert [f.level for f in found] == ['fatal'] * refused
    assert all(f'from {start:.1f} to {start + seconds:.1f} s' in f.found for f in found)


def test_a_stretch_of_some_channels_is_told(tmp_path: Path) -> None:
    (finding,) = checked(5, 3, slice(0, 2))
    assert (finding.level, finding.rule) == ('note', 'channels should not stand still')
    assert finding.found == '2 of them constant for a while, Oz for 3.0 s'
    assert checked(5, 0.9, slice(0, 2)) == []
    assert [f.rule for f in checked(0, 20, slice(0, 1))] == ['channels should vary']  # a reference: told once


@pytest.mark.parametrize(('allowed', 'level'), [(None, 'note'), (4.0, 'note'), (3.0, 'fatal'), (1.0, 'fatal')])
def test_a_dataset_says_what_its_originals_have(allowed: float | None, level: str, tmp_path: Path) -> None:
    (finding,) = checked(5, 3, constant=allowed)
    assert finding.level == level
    task, other = make_prepared_fixture.task(), dataclasses.replace(tiny.DATASET, constant=allowed)
    assert build_set.stored_spec(task, other) == build_set.stored_spec(task, tiny.DATASET)  # what is stored is the same


def test_notes_of_many_recordings_are_one_line() -> None:
    rule = 'channels should not stand still'
    found = [Finding(f'd/{k}.fif', rule, f'{k} of them', '', '', 'note') for k in range(300)]
    assert findings.grouped(found) == [
        f'{rule}: 0.fif: 0 of them; 1.fif: 1 of them; 2.fif: 2 of them; and 297 more recordings'
    ]


@pytest.mark.parametrize(('sfreq', 'n', 'found'), [(0.5, 9, 0), (0.5, 10, 1), (5, 9, 0), (5, 10, 1), (500, 500, 1)])
def test_where_a_second_has_few_samples_a_stretch_has_ten(sfreq: float, n: int, found: int) -> None:
    still = np.zeros(2999, bool)
    still[1000 : 1000 + n - 1] = True
    assert len(constant.stretches(still, sfreq)) == found


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([8.0, 12.5, 30.0]))
def test_stretches_equal_those_that_a_loop_finds(seed: int, sfreq: float) -> None:
    rng = np.random.default_rng(seed)
    x = np.repeat(np.arange(20), rng.integers(1, 60, 20))
    least, edge, expected = max(int(np.ceil(sfreq)), 10), int(np.ceil(sfreq)), []
    for value in range(20):
        start, stop = int(np.argmax(x == value)), int(np.argmax(x == value) + (x == value).sum())
        if min(stop, len(x) - edge) - max(start, edge) >= least:
            expected.append((start, stop))
    assert constant.stretches(np.diff(x) == 0, sfreq) == expected


def test_recordings_of_clinics_are_told_alone() -> None:
    """In sets whose recorders run on while electrodes are off, and whose originals were not read here."""
    assert {d.name for d in select.datasets().values() if d.constant is None} == {
        *('Kemp2000Analysis', 'Alvarez2022Haaglanden', 'Ghassemi2018You', 'Dan2023Bids'),
        *('Hamid2020Tuar', 'Harati2015Tuev', 'Lopez2017Tuab'),
        'Interaxon2026Muse',
    }
