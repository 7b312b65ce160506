"""One loud recording does not refuse a set; a unit that is wrong by a thousand does."""

from __future__ import annotations

import json
from pathlib import Path

import make_prepared_fixture
import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st

from jbench.data.prepare import amplitude, build_set, convert
from jbench.data.recording import RecordingRef
from jbench.spec.errors import RequestError

USUAL = 50e-6  # V


def compare(*values: float) -> tuple[list[str], list[str]]:
    """Who is refused, and what is told."""
    refs = {tiny.ref(k): v for k, v in enumerate(values)}
    refused, told = amplitude.compare(tiny.DATASET, refs)
    return [f.where for f in refused], told


@pytest.mark.parametrize('loud', [302e-6, 800e-6, 1.4e-3, 8e-6])  # V; the first is of Schalk2004Bci2000, S059R02
def test_a_recording_far_from_the_others_is_told(loud: float) -> None:
    refused, (told,) = compare(USUAL, USUAL, loud, USUAL)
    assert refused == [] and told.startswith('amplitude: 1 of 4 recordings') and f'02_0_ ({loud:.1e} V)' in told
    assert compare(*[USUAL] * 4, 4 * USUAL) == ([], [])


@pytest.mark.parametrize('usual', [2e-6, 10e-6, 50e-6, 300e-6])
@pytest.mark.parametrize('factor', [1e-6, 1e-3, 1e3, 1e6])
def test_a_unit_that_is_wrong_by_a_thousand_is_refused(usual: float, factor: float) -> None:
    wrong = usual * factor
    assert compare(usual, usual, wrong, usual)[0] == ['Tiny/02_0_']
    assert compare(wrong, wrong, usual, wrong)[0] == ['Tiny/00_0_', 'Tiny/01_0_', 'Tiny/03_0_']
    assert compare(wrong) == (['Tiny/00_0_'], []) and len(compare(wrong, wrong)[0]) == 2


def test_many_odd_recordings_are_one_line() -> None:
    _, (told,) = compare(*[USUAL] * 300, *[302e-6] * 100, 1e-3)
    assert told.count('_0_') == 3 and 'more' in told and '400_0_ (1.0e-03 V)' in told


@given(st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=9), st.data())
def test_the_median_of_the_others_is_numpys(values: list[float], data: st.DataObject) -> None:
    values = sorted(values)
    k = data.draw(st.integers(0, len(values) - 1))
    others = np.delete(values, k)
    assert amplitude._median_without(values, k) == pytest.approx(np.median(others) if len(others) else 0.0)


def prepared(folder: Path, *refs: RecordingRef) -> list[str]:
    """The notes of a set of tiny recordings."""
    build_set.prepare(make_prepared_fixture.task(), tiny.DATASET, folder / 'set-0', [*refs], lambda *facts: None)
    return json.loads((folder / 'set-0' / 'manifest.json').read_text())['notes']


@pytest.mark.slow
def test_a_set_with_a_loud_recording_is_made_and_says_so(tmp_path: Path) -> None:
    (note,) = [n for n in prepared(tmp_path, tiny.ref(0), tiny.ref(1), tiny.ref(2, 'times9')) if 'amplitude' in n]
    assert '1 of 3 recordings' in note and '02_0_times9' in note


@pytest.mark.slow
def test_what_was_refused_beside_the_others_is_read_anew(tmp_path: Path) -> None:
    """Its reader may have been mended since, which no file tells."""
    with pytest.raises(RequestError, match='02_0_times300: the unit must be volts'):
        prepared(tmp_path, tiny.ref(0), tiny.ref(1), tiny.ref(2, 'times300'))
    parts = tmp_path / 'set.parts'
    assert convert.finished(tiny.ref(2, 'times300'), parts) is None
    assert convert.finished(tiny.ref(1), parts) is not None
