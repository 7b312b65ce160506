"""A band above half the rate of a recording: refused where a user or a task names it; a model's loses its upper end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mne
import numpy as np
import pytest
import small_files as files
from places import ROOT

from jbench import run
from jbench.data.prepare import band, signal
from jbench.plan import request
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override
from jbench.spec.task import SignalSpec

RESTING = ROOT / 'configs' / 'resting_folder.py'
CBRAMOD = SignalSpec(sfreq=200.0, band=(0.3, 75.0), notch=(60.0,), scaler='none')


def cell(model: str, **changes: str) -> Cell:
    asked = request.Request('p3', model, tuple(changes.items()), simulated='yes')
    (found,) = request.plan(asked, None, Path('absent')).cells
    return found


@pytest.mark.parametrize('sfreq', [50.0, 100.0, 128.0, 150.0])
def test_a_band_above_what_a_recording_holds_is_a_high_pass(sfreq: float) -> None:
    x = np.random.default_rng(0).normal(0, 1e-5, (2, round(40 * sfreq)))
    raw = mne.io.RawArray(x, mne.create_info(2, sfreq, 'eeg'), verbose='ERROR')
    want = raw.copy().filter(0.3, None, verbose='ERROR').resample(200.0, verbose='ERROR').get_data()
    got, _ = signal.process(raw, replace(CBRAMOD, notch=()))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_only_a_band_that_somebody_names_is_their_own() -> None:
    assert not any(cell(f'{name}:weights=none').own_band for name in ('cbramod', 'reve_base', 'labram', 'bendr'))
    assert not cell('eegnet').own_band
    named = {'signal.band': '1,40'}
    assert cell('eegnet', **named).own_band and cell('cbramod:weights=none', **named).own_band
    own = override(cell('eegnet').task, 'signal.band', (1.0, 40.0))
    assert replace(cell('eegnet'), task=own).own_band, 'a task names it'
    assert cell('eegnet', **{'signal.band': '0.3,75', 'signal.sfreq': '200'}).own_band, (
        'of a model, but not of this one'
    )


def test_what_is_refused_and_what_is_told() -> None:
    task = cell('cbramod:weights=none').task
    with pytest.raises(RequestError, match='75 Hz is above 50 Hz, the highest of a recording at 100 Hz'):
        band.refuse(task, [200.0, 100.0])
    band.refuse(task, [150.0])
    band.refuse(override(task, 'signal.band', SignalSpec.band), [100.0])
    assert band.told(task.signal, [150.0, 250.0]) == band.told(SignalSpec(), [50.0]) == []
    (text,) = band.told(task.signal, [100.0, 50.0, 250.0])
    assert text == (
        'no low-pass: the band 0.3 to 75 Hz ends above half the rate of 2 of 3 recordings (50 and 100 Hz), which keep '
        'all above 0.3 Hz'
    )


@pytest.mark.slow
def test_a_pretrained_model_runs_on_slow_recordings_and_a_band_of_ones_own_does_not(tmp_path, capsys) -> None:
    for k, rate in enumerate((100, 50, 50), 1):
        for eyes in ('open', 'closed'):
            files.edf(tmp_path / 'MyEyes2026' / f'S{k:02d}_{eyes}.edf', ['Fp1', 'Cz', 'O1', 'O2'], rate, 12)
    text = RESTING.read_text().replace('(100.0, 250.0)', '(50.0, 100.0)')
    (tmp_path / 'mine.py').write_text(text)

    def ask(model: str, *flags: str) -> int:
        where = (f'--data_dir={tmp_path}', f'--workdir={tmp_path / "work"}', f'--task={tmp_path / "mine.py"}')
        return run.main([*where, f'--model={model}', '--weights=none', '--stage=prepare', *flags])

    assert ask('cbramod') == 0
    (path,) = (tmp_path / 'work/prepared/MyEyes2026').glob('*/manifest.json')
    (text,) = json.loads(path.read_text())['notes']
    assert text.startswith('no low-pass: the band 0.3 to 75 Hz ends above half the rate of 6 of 6 recordings')
    capsys.readouterr()
    assert ask('cbramod', '--set=signal.band=0.5,60') == 2
    assert 'signal.band: 60 Hz is above 50 Hz, the highest of a recording at 100 Hz' in capsys.readouterr().err
    assert ask('cbramod', '--set=signal.band=0.5,40') == 2  # the first recording holds it, others do not
    assert 'signal.band: 40 Hz is above 25 Hz, the highest of a recording at 50 Hz' in capsys.readouterr().err
