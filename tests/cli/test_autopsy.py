"""`jbench report autopsy`: from a result file to a page; and what it points at where that is known."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import result_files
from autopsies import of_table
from families import often
from once import once
from test_learning import shuffled

from jbench import run, stages
from jbench.cli import autopsy
from jbench.models import MODELS, factory
from jbench.models.foundation import labram
from jbench.plan import cells, select
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.spec.identity import to_json
from jbench.train.losses import AXIS

FLAGS = ['--task=p3', '--seeds=33', '--simulated=yes', '--debug', '--model=eegnet,dummy', '--format=json']
KALUNGA = ['--task=kalunga_ssvep', '--model=eegnet', '--seeds=33']
LEARNING = [f'--set=recipe.{change}' for change in ('lr=2e-3', 'max_epochs=80', 'patience=80', 'batch_size=16')]
IMAGERY = ['--task=motor_imagery', '--model=eegnet', '--seeds=33', '--simulated=yes']
FASTER = [f'--set=recipe.{change}' for change in ('lr=3e-3', 'max_epochs=40', 'patience=40')]


def result_of(workdir: Path, model: str) -> Path:
    (path,) = workdir.glob(f'results/*/*/{model}/*/seed33.json')
    return path


@pytest.fixture(scope='module')
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(at: Path) -> None:
        assert run.main([*FLAGS, f'--workdir={at}']) == 0

    return once('autopsy', tmp_path_factory.mktemp('autopsy') / 'work', make)


def told(workdir: Path, *argv: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run.main(['report', 'autopsy', *argv, '--format=json']) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_a_page_and_its_findings(workdir, tmp_path, capsys):
    path = result_of(workdir, 'eegnet')
    before = {p: p.stat().st_mtime_ns for p in workdir.rglob('*') if p.is_file()}
    found = told(workdir, str(path), f'--out={tmp_path}', capsys=capsys)
    assert {p: p.stat().st_mtime_ns for p in workdir.rglob('*') if p.is_file()} == before, 'nothing else is written'
    page = Path(found['page'])
    assert page.parent == tmp_path and 'SIMULATED' in page.read_text()
    assert json.loads(page.with_suffix('.json').read_text())['findings'] == found['findings']
    by_text = {f['text']: f for f in found['findings']}
    result = result_file.read(path)
    (first, *_) = by_text.values()
    assert first['number'] == pytest.approx(result['headline']['value'])
    assert any('than dummy' in text for text in by_text)
    assert any(text.startswith('Beside its weights, the gradient') for text in by_text)
    (complete,) = (f for f in by_text.values() if f['text'].startswith('Attributions add up'))
    assert complete['number'] < 0.01
    assert all(f['number'] is None or np.isfinite(f['number']) for f in by_text.values())


@pytest.mark.long  # minutes; features without the page: tests/report/autopsy/test_layers_of_encoders.py
def test_layers_of_an_encoder_have_their_time(tmp_path, capsys, monkeypatch):
    """LaBraM with one layer: its tokens lie over channels and seconds, and GradCAM over the latter is drawn."""
    monkeypatch.setattr(labram, 'LAYERS', 1)
    monkeypatch.setattr(autopsy, 'WINDOWS', 8)
    task = ['--task=motor_imagery', '--seeds=33', '--simulated=yes', '--debug']
    assert run.main([*task, '--model=labram', '--weights=none', f'--workdir={tmp_path}']) == 0
    found = told(tmp_path, str(result_of(tmp_path, 'labram*')), capsys=capsys)
    page = Path(found['page']).read_text()
    assert 'GradCAM of each layer over time' in page
    rows = dict(re.findall(r'<td>(layer_0|tokens|penultimate)<td>([^<]*)<td>', page))
    assert rows.keys() == {'layer_0', 'tokens', 'penultimate'} and rows['penultimate'] == '200'
    assert rows['layer_0'] == rows['tokens'] and re.fullmatch(r'\d+ x \d+ x 200', rows['tokens'])
    assert page.count('<td>axis 2<td>') == 2 and page.count('<td>none found<td>') == 1


@pytest.mark.slow
def test_windows_are_those_that_were_answered(workdir):
    """The network gives the stored answers to the windows that it is looked at with, whose places are known."""
    from jbench.report.autopsy.case import predictor

    case = autopsy.load(result_of(workdir, 'eegnet'))
    stored = case.answers['outputs'][case.network.rows]
    np.testing.assert_allclose(predictor(case, case.network)(case.network.x), stored, rtol=1e-3, atol=1e-4)
    assert len(case.places) == len(case.answers['id']) and len(set(case.places)) == len(case.places)
    assert all(f'subject {s}' in place for s, (place, _) in zip(case.answers['subject'], case.places, strict=True))
    assert [o.name for o in case.others] == ['dummy'] and case.head.ch_names == list(case.signal.ch_names)


@pytest.mark.slow
def test_an_estimator_has_a_page_of_its_answers(workdir, capsys):
    found = told(workdir, str(result_of(workdir, 'dummy')), capsys=capsys)
    page = Path(found['page'])
    assert page.is_relative_to(workdir / 'autopsy') and 'No weights are kept' in page.read_text()
    assert 'not better than with shuffled targets' in found['findings'][0]['text']
    assert any('than eegnet' in f['text'] for f in found['findings'])


@pytest.mark.slow
def test_what_cannot_be_looked_at_says_why(workdir, tmp_path, capsys):
    with pytest.raises(FileNotFoundError):
        autopsy.load(tmp_path / 'seed33.json')
    assert run.main(['report', 'autopsy', str(tmp_path / 'seed33.json')]) == 2
    assert 'no such result' in capsys.readouterr().err
    copy = shutil.copytree(workdir, tmp_path / 'work')
    path = result_of(copy, 'eegnet')
    shutil.rmtree(copy / 'prepared')
    with pytest.raises(RequestError, match=r'no prepared set .* --workdir=\S+$'):  # nothing that no command can do
        autopsy.load(path)
    assert autopsy.load(result_of(copy, 'dummy')).places == ()
    path.with_suffix('.safetensors').unlink()
    assert run.main(['report', 'autopsy', str(path)]) == 2
    assert 'cannot read the weights' in capsys.readouterr().err


@pytest.mark.parametrize('out', ['/proc', '/proc/x', '{tmp}/file'])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(
    out, workdir, tmp_path, capsys, monkeypatch
):
    (tmp_path / 'file').write_text('')
    monkeypatch.setattr(autopsy, 'examine', lambda *a: pytest.fail('computed'))
    assert run.main(['report', 'autopsy', str(result_of(workdir, 'dummy')), f'--out={out.format(tmp=tmp_path)}']) == 2
    assert 'cannot write' in capsys.readouterr().err


@pytest.mark.slow
def test_angles_that_are_answered_at_fewer_steps_than_they_have(tmp_path):
    """The dummy of `challenge2026/pose`, beside a network of another width."""
    rng = np.random.default_rng(0)
    y = rng.normal(0, 0.2, (12, 200)).astype(np.float32)
    shared = {'id': np.arange(12), 'y': y, 'subject': np.repeat(['S01', 'S02'], 6)}
    (choice,) = (cells.Choice(t, select.find_dataset(t.simulated), True) for t in select.tasks()['challenge2026/pose'])
    paths = []
    for name, width in (('dummy', 20), ('neuropose', 200)):
        (cell,) = cells.make_cells([choice], select.select_models(name), ())
        facts = result_files.make(name, task='challenge2026/pose', dataset=cell.dataset.name, simulated=True)
        facts |= {'config': to_json(cell), 'classes': [], 'n_out': width, 'key': cell.key, 'dummy': 9.0}
        outputs = np.zeros((12, width), np.float32)
        result_file.write(result_file.result_dir(tmp_path, cell), facts, shared | {'outputs': outputs})
        paths.append(result_file.result_dir(tmp_path, cell) / 'seed33.json')
    page, found = autopsy.write(paths[0], None)
    expected = np.degrees(np.abs(y).mean())
    assert found[0].text.startswith(f'angular_mae is {expected:.3f}') and found[0].number == pytest.approx(expected)
    assert any('as good as neuropose' in one.text for one in found) and 'Answer against target' in page.read_text()


@pytest.mark.slow
def test_others_have_the_headline_of_this_run(tmp_path):
    """One result has another metric, one another level: what stands beside is the score that this run has."""
    y = np.array([0, 0, 1] * 4)
    answers = {'id': np.arange(12), 'y': y, 'subject': np.repeat(['S01', 'S02'], 6)}
    (choice,) = (cells.Choice(t, select.find_dataset(t.simulated), True) for t in select.tasks()['p3'][-1:])
    paths = {}
    others = ('cov_ts_lr', {'metric': 'acc'}, 2), ('chance', {'level': 'subject'}, 1)
    for name, changes, wrong in (('dummy', {}, 6), *others):
        (cell,) = cells.make_cells([choice], select.select_models(name), ())
        cell = dataclasses.replace(cell, task=dataclasses.replace(cell.task, **changes))
        facts = result_files.make(name, dataset=cell.dataset.name, simulated=True)
        facts |= {'config': to_json(cell), 'classes': ['no', 'yes'], 'n_out': 2, 'key': cell.key}
        outputs = np.eye(2, dtype=np.float32)[np.where(np.arange(12) < wrong, 1 - y, y)]
        result_file.write(result_file.result_dir(tmp_path, cell), facts, answers | {'outputs': outputs})
        paths[name] = result_file.result_dir(tmp_path, cell) / 'seed33.json'
    found = {one.name.partition(' ')[0]: one.value for one in autopsy.load(paths['dummy']).others}
    assert found == {'cov_ts_lr': pytest.approx((6 / 8 + 1) / 2), 'chance': pytest.approx((7 / 8 + 1) / 2)}


def test_what_does_not_count_is_told():
    """Of tries and of sets with recordings missing, and nothing of others."""

    def marks(debug: bool, partial: list[str]) -> dict[str, str]:
        return autopsy.marks({'status': 'done', 'protocol': {'debug': debug, 'partial': partial}})

    assert marks(False, []) == {} and marks(True, []) == {'not counted': 'DEBUG: a try on few windows'}
    both = 'DEBUG: a try on few windows; PARTIAL: 28 of 30 recordings'
    assert marks(True, ['28 of 30 recordings']) == {'not counted': both}


CLASSIC = [m.name for m in MODELS.values() if m.kind == 'network' and m.family == 'classic']


@pytest.mark.parametrize('name', often(CLASSIC, ('eegnet', 'fmri_mlp')))
def test_the_loss_that_was_trained_has_a_gradient_for_every_network(name):
    """As in training: batch statistics of the batch, dropout, losses that compare the rows of a batch."""
    _, variables, x, signal = of_table(name)
    spec = MODELS[name]
    keys, moves = 'keystrokes' in spec.targets, spec.targets == ('angles',)
    kind, n = 'ctc' if keys else 'clip' if 'embedding' in spec.targets else 'cross_entropy', 3
    y = {'ctc': np.array([[0, 1], [1, -1], [0, 0]], np.int32), 'clip': np.eye(3, dtype=np.float32)}
    if moves:
        kind, n = 'absolute_error', 20
        y[kind] = np.ones((3, n * signal.n_times), np.float32)
    recipe = SimpleNamespace(loss=kind, class_weights=False, label_smoothing=0.1, loss_scale=1.0)
    trained = SimpleNamespace(model=factory(spec)(signal, n, axis_name=AXIS), variables=variables)
    trained.cell = SimpleNamespace(task=SimpleNamespace(recipe=recipe))
    data = SimpleNamespace(y=np.arange(3), rows=lambda part: np.arange(3), kind='classes', n_out=n)
    batch = {'x': jnp.asarray(x), 'mask': jnp.ones(3, bool), 'y': jnp.asarray(y.get(kind, np.arange(3)))}
    grads = jax.jit(jax.grad(autopsy.loss(trained, data)))(variables['params'], batch)
    norms = [float(jnp.linalg.norm(g)) for g in jax.tree.leaves(grads)]
    assert np.isfinite(norms).all() and max(norms) > 0


# ---- what is known of the recordings ----


def named(path: Path, tmp_path: Path) -> dict[str, list[str]]:
    """What findings point at, by what they are about."""
    _, found = autopsy.write(path, tmp_path)
    return {
        about: [name for f in found if f.about == about for name in f.names]
        for about in ('channel', 'time', 'frequency', 'attribution')
    } | {'texts': [f.text for f in found]}


@pytest.mark.long
def test_imagined_movement_is_read_over_the_motor_cortex(tmp_path):
    assert run.main([*IMAGERY, *FASTER, f'--workdir={tmp_path}']) == 0
    found = named(result_of(tmp_path, 'eegnet'), tmp_path)
    assert set(found['channel'][:2]) == {'C3', 'C4'}
    assert set(found['attribution'][:2]) == {'C3', 'C4'}
    assert found['frequency'][0] in ('8 to 10 Hz', '10 to 12 Hz', '12 to 14 Hz'), 'mu'


@pytest.mark.long
def test_flicker_is_read_at_its_frequencies(data_dir, tmp_path):
    """All electrodes of this set are occipital; the frequencies are those of the lamps."""
    assert run.main([*KALUNGA, *LEARNING, f'--data_dir={data_dir}', f'--workdir={tmp_path}']) == 0
    found = named(result_of(tmp_path, 'eegnet'), tmp_path)
    assert {*found['channel'], *found['attribution'][:3]} & {'Oz', 'O1', 'O2', 'POz'}
    for hz in ('13', '17', '21'):
        (text,) = (t for t in found['texts'] if t.startswith(f'What speaks for {hz} '))
        assert f'most at {hz} Hz' in text
    bands = {'12 to 14 Hz', '16 to 18 Hz', '20 to 22 Hz'}
    assert set(found['frequency']) <= bands


FLICKER = """
from dataclasses import replace
from jbench.spec.task import Where
from jbench.tasks.bci import TASKS as KNOWN

ssvep = next(t for t in KNOWN if (t.name, t.version) == ('ssvep', 2))
lamps = Where(field='code', values=('3', '5', '7'))
window = replace(ssvep.window, start=0.0, duration=1.0, stride=0.5, where=(lamps,))
signal = replace(ssvep.signal, sfreq=60.0, band=(6.0, 18.0))
here = {'datasets': ('SimulatedSsvep',), 'simulated': '', 'supersedes': None, 'overrides': (), 'exclude': ()}
TASKS = (replace(ssvep, name='flicker', version=1, window=window, signal=signal, **here),)
"""


@pytest.mark.long
def test_simulated_flicker_is_read_over_the_occipital_cortex(tmp_path, monkeypatch):
    """Of thirteen channels, as far as Fz, the three over the sources; of forty lamps three, in short windows."""
    (tmp_path / 'flicker.py').write_text(FLICKER)
    known = select.datasets()
    few = dataclasses.replace(known['SimulatedSsvep'], n_subjects=14, n_recordings=14)
    monkeypatch.setattr(select, 'datasets', lambda: {**known, 'SimulatedSsvep': few})
    command = [f'--task={tmp_path}/flicker.py', '--model=eegnet', '--seeds=33', '--set=recipe.batch_size=32']
    assert run.main([*command, *FASTER, f'--workdir={tmp_path}']) == 0
    found = named(result_of(tmp_path, 'eegnet'), tmp_path)
    occipital = {'O1', 'Oz', 'O2'}
    assert found['channel'] and {*found['channel'], *found['attribution'][:3]} <= occipital
    for hz in ('10', '12', '14'):
        (text,) = (t for t in found['texts'] if t.startswith(f'What speaks for {hz} '))
        assert f'most at {hz} Hz' in text
    assert found['frequency'] and {*found['frequency']} <= {'10 to 12 Hz', '12 to 14 Hz', '14 to 16 Hz'}


@pytest.mark.long
def test_shuffled_labels_point_at_nothing(data_dir, tmp_path, monkeypatch):
    opened = stages.prepared_set.open_set
    with monkeypatch.context() as patch:
        patch.setattr(stages.prepared_set, 'open_set', lambda folder, task: shuffled(opened(folder, task), 0))
        assert run.main([*KALUNGA, *LEARNING, f'--data_dir={data_dir}', f'--workdir={tmp_path}']) == 0
    found = named(result_of(tmp_path, 'eegnet'), tmp_path)
    assert not any(found[about] for about in ('channel', 'time', 'frequency', 'attribution'))
    assert any(text.startswith('Nothing stands out') for text in found['texts'])
