"""What an archive does with windows before its network, and with outputs behind it; skipped without torch."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jbench import files
from jbench.submit import tracks

torch = pytest.importorskip('torch', reason="pip install 'jbench[checkpoints]'")
pytestmark = pytest.mark.slow
TRACK = tracks.TRACKS['2026-3']


@pytest.fixture(autouse=True)
def _means(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that gives the mean of each channel over times."""
    from jbench.submit import twins

    monkeypatch.setitem(twins.NETWORKS, 'means', lambda w, s, x: x.mean(-1))


def decoder(folder: Path, *, track: tracks.Track = TRACK, meta: dict[str, Any] | None = None, **changes: Any) -> Any:
    """A decoder whose network gives means."""
    from jbench.submit.decoder import Decoder

    n_chans, n_times = track.shape
    settings = {
        **{'twin': 'means', 'answer': track.answer, 'ch_names': list(track.ch_names) or ['X'] * n_chans},
        **{'n_times': n_times, 'factor': 1.0, 'clamp': None, 'unit_unsure': track.unit == 'unsure'},
        **{'scaling': None, 'clip': track.clip, 'n_joints': 20, **changes},
    }
    (folder / 'w.npz').write_bytes(files.npz_bytes({'settings': np.array([json.dumps(settings)])}))
    return Decoder(folder / 'w.npz', meta or track.meta(())).eval()


def windows(n: int = 3, track: tracks.Track = TRACK) -> np.ndarray:
    """Noise, each channel with a level of its own."""
    x = tracks.noise((n, *track.shape), track.unit)
    return x + 10 * np.arange(1, track.shape[0] + 1, dtype=np.float32)[:, None]


def test_channels_are_matched_by_name_and_missing_ones_are_zero(tmp_path: Path) -> None:
    x = windows()
    given = {**TRACK.meta(()), 'ch_names': ['tp10', 'AF8', 'extra', 'TP9'], 'n_chans': 4}
    plain, found = decoder(tmp_path).outputs(x), decoder(tmp_path, meta=given).outputs(x)
    assert torch.equal(found[:, 0], plain[:, 3]) and torch.equal(found[:, 3], plain[:, 0])
    assert torch.equal(found[:, 2], plain[:, 1]) and not found[:, 1].any()
    unknown = decoder(tmp_path, meta={**given, 'ch_names': None}).outputs(x)
    assert torch.equal(unknown, plain), 'by place'


def test_windows_in_volts_are_known_where_the_unit_is_unsure(tmp_path: Path) -> None:
    track = tracks.TRACKS['2026-4']
    x, model = windows(1, track), decoder(tmp_path, track=track)
    torch.testing.assert_close(model.outputs(x * 1e-6), model.outputs(x))
    sure = decoder(tmp_path)
    torch.testing.assert_close(sure.outputs(windows() * 1e-6), sure.outputs(windows()) * 1e-6)


def test_factor_and_clamp_come_before_the_network_and_the_unit_of_the_target_behind_it(tmp_path: Path) -> None:
    x = windows()
    model = decoder(tmp_path, factor=0.5, clamp=8.0, scaling={'mean': [100.0], 'sd': [10.0]})
    expected = (x * 0.5).clip(-8, 8).mean(-1) * 10 + 100
    np.testing.assert_allclose(model.outputs(x).numpy(), expected, rtol=1e-5)


def test_seconds_are_clipped_and_classes_are_whole_numbers(tmp_path: Path) -> None:
    far = decoder(tmp_path, scaling={'mean': [0.0], 'sd': [1e3]})
    x = windows()
    assert far.predict(x).tolist() == [600.0] * 3 and far.predict(-x).tolist() == [0.0] * 3
    assert (far.outputs(x)[:, 0] > 600).all(), 'unclipped, as the result keeps them'
    classes = decoder(tmp_path, answer='class').predict(x)
    assert classes.dtype == torch.int64 and classes.shape == (3,)


def test_what_is_no_number_becomes_zero_and_a_copy_answers_alike(tmp_path: Path) -> None:
    x = windows()
    broken = x.copy()
    broken[:, 0] = np.nan
    broken[:, 1] = np.inf
    model = decoder(tmp_path)
    found = copy.deepcopy(model).outputs(broken)
    assert not found[:, :2].any() and torch.equal(found[:, 2:], model.outputs(x)[:, 2:])


def test_windows_of_another_length_fit(tmp_path: Path) -> None:
    """Of the organisers' generators; a ramp stays a ramp."""
    x = np.linspace(0, 1, 100, dtype=np.float32) * np.ones((1, 4, 1), np.float32)
    model = decoder(tmp_path)
    found = model.windows(torch.from_numpy(x))
    assert found.shape == (1, 4, 640) and (found.diff() >= 0).all()
