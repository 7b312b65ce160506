"""Twins in torch against the networks in JAX, at the sizes of windows of the challenges; skipped without torch.

pip install -e '.[checkpoints,test]'
python -m pytest tests/submit -m 'slow or not slow'
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weights
from networks import compiled, layout

from jbench.models import MODELS
from jbench.models.foundation import labram_channels
from jbench.plan import cells, select
from jbench.spec.cell import Cell
from jbench.spec.model import Signal
from jbench.submit import export, tracks
from jbench.train import programs
from jbench.trained import TrainedModel

torch = pytest.importorskip('torch', reason="pip install 'jbench[checkpoints]'")
pytestmark = pytest.mark.slow
NO_NAMES = {'2026-4'}  # channels on an arm: networks of electrodes by name do not take them
DEEP = ('labram', 'steegformer_small', 'eegconformer')
CLOSE = 1e-4  # of outputs near 1


def pairs() -> list[Any]:
    """Every model with a twin on every track: one of each twin; those of many layers for `.ci/run` on one track."""
    known = {twin: model for model, (twin, _) in reversed(export.TWINS.items())}
    found = []
    for model in known.values():
        for track in tracks.TRACKS:
            if not ('ch_names' in MODELS[model].asks and track in NO_NAMES):
                marks = [pytest.mark.long] if model in DEEP and track != '2025' else []
                found.append(pytest.param(model, track, marks=marks, id=f'{model}-{track}'))
    return found


def trained(name: str, track: tracks.Track, **scaling: Any) -> TrainedModel:
    """A network of a track with weights far from where they begin, as if it had been trained."""
    (task, _), *_ = select.select_tasks(track.tasks[0])
    dataset, spec = select.datasets()[task.simulated], MODELS[name]
    n_chans, n_times = track.shape
    n_out = track.n_out * (task.target.answers if track.answer == 'joints' else 1)
    names = track.ch_names or labram_channels.NAMES[:n_chans]
    signal = Signal(n_chans=n_chans, n_times=n_times, sfreq=track.sfreq, ch_names=tuple(names))
    model = programs.build(spec, programs.asked_signal(spec, signal), n_out)
    variables = model.from_torch(weights.lively(name, layout(model)))
    applied = cells.apply(task, dataset, ())
    cell = Cell(task=applied, dataset=dataset, model=spec)
    result = {'scaling': scaling or None, 'seed': 1}
    return TrainedModel(Path('none'), result, cell, spec, signal, (), model, variables)


def in_jax(model: TrainedModel, x: np.ndarray) -> np.ndarray:
    """Outputs of the network, before what is done to them."""

    @compiled
    def outputs(variables: Any, x: Any) -> Any:
        given = {'x': x, 'mask': np.ones(len(x), bool)}
        return model.model.apply(variables, given, train=False, key=None).outputs

    return np.asarray(outputs(model.variables, x))


def decoder(model: TrainedModel, track: tracks.Track, folder: Path) -> Any:
    """What an archive answers with."""
    from jbench.submit.decoder import Decoder

    (folder / 'weights.npz').write_bytes(export.weights(model, track))
    return Decoder(folder / 'weights.npz', track.meta(model.signal.ch_names)).eval()


@pytest.mark.parametrize(('name', 'number'), pairs())
def test_a_twin_equals_its_network_at_the_size_of_the_track(name: str, number: str, tmp_path: Path) -> None:
    track = tracks.TRACKS[number]
    model = trained(name, track)
    x = tracks.noise((2, *track.shape), 'scaled')
    given, clamp = x * np.float32(100 if track.unit == 'unsure' else 1), model.cell.task.signal.clamp
    twin = decoder(model, track, tmp_path)
    found = twin.outputs(given)
    expected = in_jax(model, given if clamp is None else given.clip(-clamp, clamp))
    assert np.abs(expected).max() > 0.01, 'something to compare'
    close = {'rtol': 0, 'atol': CLOSE * max(1.0, float(np.abs(expected).max()))}
    np.testing.assert_allclose(found.numpy(), expected, **close)
    if number == '2025':  # one file of TorchScript, traced with two windows, for any number of them
        traced = torch.jit.trace(twin, torch.zeros(2, *track.shape), check_trace=False)
        traced.save(str(tmp_path / 'weights.pt'))
        loaded = torch.jit.load(str(tmp_path / 'weights.pt'))
        with torch.inference_mode():
            for n in (1, 2):
                np.testing.assert_allclose(loaded(torch.from_numpy(given[:n])).numpy(), expected[:n], **close)


def test_every_twin_has_a_model_and_is_tried() -> None:
    from jbench.submit.twins import NETWORKS

    assert (
        {twin for twin, _ in export.TWINS.values()}
        == set(NETWORKS)
        == {p.values[0].partition('_small')[0] for p in pairs()}
    )
    assert set(export.TWINS) <= set(MODELS)
