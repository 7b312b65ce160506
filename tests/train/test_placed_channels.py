"""A dataset whose channels a network cannot place is refused by its first recording, before the others are read."""

from __future__ import annotations

from pathlib import Path

import mne
import pytest

from jbench.data.prepare import signal
from jbench.plan import request
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.train import channels


def cell(model: str) -> Cell:
    (found,) = request.plan(request.Request('p3', f'{model}:weights=none', simulated='yes'), None, Path('absent')).cells
    return found


@pytest.fixture
def looked(monkeypatch) -> list[str]:
    """Of each recording that is looked at a channel; their names are of no montage."""
    seen: list[str] = []

    def rename(raw: mne.io.BaseRaw, spec: object) -> None:
        seen.append(raw.ch_names[0])
        raw.pick('eeg').rename_channels({name: f'X{i}' for i, name in enumerate(raw.ch_names)})

    monkeypatch.setattr(signal, 'pick', rename)
    return seen


@pytest.mark.parametrize('model', ['labram', 'biot'])
def test_it_is_refused_with_the_remedy(model, looked, tmp_path):
    with pytest.raises(RequestError, match=rf'^SimulatedP3: {model}: .*X0.*(Rename|--model)'):
        channels.placed(cell(model), None, tmp_path)
    assert len(looked) == 1 and not list(tmp_path.iterdir())


def test_a_contact_in_the_brain_is_no_electrode_on_the_scalp_that_is_called_so(tmp_path):
    """A1 of a shaft is not the ear: a set calls it by person, and so does the question."""
    asked = request.Request('ieeg/onset', 'labram:weights=none', simulated='yes')
    (found,) = request.plan(asked, None, Path('absent')).cells
    with pytest.raises(RequestError, match=r'knows none of the channels S01/A1, S01/A2'):
        channels.placed(found, None, tmp_path)


def test_a_model_that_asks_for_no_names_is_not_asked(looked, tmp_path):
    channels.placed(cell('cbramod'), None, tmp_path)
    assert not looked


def test_a_recording_that_cannot_be_read_is_left_to_the_preparation(monkeypatch, tmp_path):
    def fail(raw: object, spec: object) -> None:
        raise ValueError('broken')

    monkeypatch.setattr(signal, 'pick', fail)
    channels.placed(cell('labram'), None, tmp_path)
