"""Tasks of the challenges: what their organisers fixed, and one of each run whole on simulations."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from jbench import load_model, run
from jbench.data.load import prepared_set
from jbench.data.windows import starts
from jbench.plan import cells, select
from jbench.results import result_file
from jbench.results.predictions import load_predictions
from jbench.spec.challenges import Jitter, Stream
from jbench.spec.errors import RequestError
from jbench.spec.task import Window
from jbench.spec.validate import check
from jbench.tasks.suites import SUITES

TASKS = {name: v[-1] for name, v in select.tasks().items() if name.startswith('challenge')}


def test_every_track_is_in_its_suite() -> None:
    told = {name for suite in ('challenge2025-1.0', 'challenge2026-1.0') for name, _ in SUITES[suite].tasks}
    assert told == set(TASKS) and len(TASKS) == 6
    assert {t.full_name for t, _ in select.select_tasks('challenge2026')} == {n for n in TASKS if '2026' in n}


@pytest.mark.parametrize(
    ('text', 'name', 'dataset'),
    [
        ('challenge2026/pose', 'challenge2026/pose', None),
        ('challenge2026/bci@1/tangermann2012review', 'challenge2026/bci', 'Tangermann2012Review'),
        ('challenge2026-1.0/challenge2026/sleep', 'challenge2026/sleep', None),
        (
            'challenge2025/externalizing/SimulatedPsychopathology',
            'challenge2025/externalizing',
            'SimulatedPsychopathology',
        ),
    ],
)
def test_a_track_is_called_by_its_challenge(text: str, name: str, dataset: str | None) -> None:
    ((task, found),) = select.select_tasks(text)
    assert task.full_name == name and (found and found.name) == dataset


# window: samples, start; then channels of the recording that is meant, and outputs
CONTRACTS = {
    'challenge2026/image': (120, -0.2, 120.0, 'top5_acc'),
    'challenge2026/bci': (480, 1.0, 120.0, 'bal_acc_cells'),
    'challenge2026/sleep': (640, 0.0, 128.0, 'wbmae'),
    'challenge2026/pose': (10_000, 0.0, 2000.0, 'angular_mae'),
    'challenge2025/response_time': (200, 0.5, 100.0, 'normalized_rmse'),
    'challenge2025/externalizing': (200, 0.0, 100.0, 'normalized_rmse'),
}


@pytest.mark.parametrize('name', CONTRACTS)
def test_windows_have_the_size_of_the_platform(name: str) -> None:
    samples, start, sfreq, metric = CONTRACTS[name]
    task = TASKS[name]
    real = cells.apply(task, select.datasets()[task.datasets[0]], ())
    assert (round(real.window.duration * real.signal.sfreq), real.window.start) == (samples, start)
    assert (real.signal.sfreq, real.metric) == (sfreq, metric)
    streamed = name in ('challenge2026/bci', 'challenge2026/sleep')
    assert (real.stream is not None) == streamed
    if streamed or name.endswith('pose'):
        assert real.signal.scaler == 'micro' and real.signal.clamp is None, 'nothing that looks at a whole recording'


def test_people_who_were_measured_twice_are_split_as_by_the_organisers() -> None:
    task, dataset = TASKS['challenge2026/bci'], select.datasets()['Dreyer2023Large']
    split = cells.apply(task, dataset, ()).split
    assert split == cells.apply(select.tasks()['motor_imagery'][-1], dataset, ()).split
    assert (split.field, split.test, split.valid_by) == ('subject', tuple(map(str, range(61, 82))), 'subject')
    assert (split.valid, split.seed) == (0.2, 33)


@pytest.mark.parametrize('name', ['Dreyer2023Large', 'Tangermann2012Review'])
def test_windows_of_proxies_begin_at_the_cue_or_as_much_later_as_is_asked(name: str) -> None:
    """Their events are where those of motor_imagery are, whose windows begin at the cue as well."""
    task, dataset = TASKS['challenge2026/bci'], select.datasets()[name]
    cue = cells.apply(select.tasks()['motor_imagery'][0], dataset, ()).window.start
    assert cells.apply(task, dataset, ()).window.start == cue
    assert cells.apply(task, dataset, (('window.start', cue + 1),)).window.start == cue + 1


def test_a_jittered_window_is_drawn_once_a_window_and_anew_for_each_event() -> None:
    window = Window(trigger='Eeg', duration=2.0, stride=2.0, jitter=Jitter())
    drawn = random.Random(42)
    expected = [2.0 * k + drawn.randint(0, 200) / 100 for k in range(4)]
    assert starts(0.0, 10.0, window) == pytest.approx(expected) == starts(0.0, 11.9, window)
    assert starts(5.0, 10.0, window) == pytest.approx([t + 5 for t in expected])
    assert len(starts(0.0, 4.0, window)) == 1
    alone = starts(7.0, 2.0, Window(duration=2.0, jitter=Jitter()))
    assert alone == pytest.approx([7.0 + random.Random(42).randint(0, 200) / 100]), 'one window an event'
    with pytest.raises(RequestError, match='shorter than one window of 4 s'):
        starts(0.0, 3.99, window)


@pytest.mark.parametrize(
    ('changes', 'says'),
    [
        ({'stream': None}, 'a mean over the streams of a task, and this one has none'),
        ({'level': 'recording'}, 'answered, and scored, one by one'),
    ],
)
def test_scores_of_streams_need_streams(changes: dict, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        check(dataclasses.replace(TASKS['challenge2026/sleep'], **changes))
    check(dataclasses.replace(TASKS['challenge2026/sleep'], stream=Stream(by=('subject',))))


# ---- whole ----


@pytest.mark.slow
def test_a_night_is_streamed_and_its_constant_stands_in_the_table(tmp_path, capsys) -> None:
    """Windows alone, in order: answers are those of the same network in batches, whatever comes later; scores are means
    over recordings."""
    argv = ['--task=challenge2026/sleep', '--model=eegnet,constant,constant:value=35', '--simulated=yes', '--debug']
    assert run.main([*argv, '--seeds=1', f'--workdir={tmp_path}']) == 0
    assert 'wbmae' in capsys.readouterr().out
    found = {r['model']: r for r in result_file.load_all(tmp_path)}
    assert set(found) == {'eegnet', 'constant', 'constant:value=35.0'}
    for name, result in found.items():
        assert result['headline']['name'] == 'wbmae' and result['headline']['value'] > 0, name
        assert {'wbmae', 'bmae', 'mae'} <= set(result['metrics'])
    values = [np.unique(np.load(p)['outputs']) for p in tmp_path.glob('results/*/*/constant*/*/seed*.npz')]
    assert sorted(len(v) for v in values) == [1, 1] and 35.0 in np.concatenate(values)
    path = next(tmp_path.glob('results/*/*/eegnet/*/seed*.json'))
    assert result_file.rescore(path)['headline'] == found['eegnet']['headline']
    kept, stored = load_model(path), load_predictions(path)['outputs']
    np.testing.assert_array_equal(kept.predict(), stored)
    loader = kept._test_windows()
    x = prepared_set.read(loader.prepared, loader.rows, loader.prepared.clamp)
    batch = {'x': x, 'mask': np.ones(len(x), bool)}
    at_once = np.asarray(kept.model.apply(kept.variables, batch, train=False, key=None).outputs)
    np.testing.assert_allclose(loader.prepared.unscaled(at_once), stored, atol=0.05)  # s
    assert result_file.verify(path) == []
    for k in (1, len(x) // 2, len(x) - 1):  # other windows from some time on: what was said before stays, bit by bit
        said = kept.predict(np.concatenate([x[:k], 3 * x[k:]]))
        np.testing.assert_array_equal(said[:k], stored[:k])
        assert (said[k:] != stored[k:]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    'name',
    [
        pytest.param('challenge2026/image', marks=pytest.mark.long),
        pytest.param('challenge2026/bci', marks=pytest.mark.long),
        'challenge2026/pose',
        'challenge2025/externalizing',
    ],
)
def test_a_track_runs_whole(name: str, tmp_path) -> None:
    few = ['--simulated=yes', '--debug', '--seeds=1', f'--workdir={tmp_path}']
    assert run.main([f'--task={name}', '--model=eegnet,dummy', *few]) == 0
    for result in result_file.load_all(tmp_path):
        assert result['headline']['name'] == TASKS[name].metric
        assert np.isfinite(result['headline']['value'])
        alone = name != 'challenge2025/externalizing'  # of whom each shows one value, without a spread
        assert bool(result['per_subject']) == alone
