"""`python -m jbench.submit`: an archive that a fresh process took, or one line that says why there is none."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
import result_files
import small
from each import each
from families import often

from jbench import run
from jbench.cli import submit as command
from jbench.data.load.streams import ordered
from jbench.metrics.challenges import overall_2025
from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.results import result_file
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.submit import archive, checks, export, make, tracks
from jbench.submit.__main__ import main

Asked = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Asked:
    """The command in this process: exit status, stdout, stderr."""

    def answer(*argv: str) -> tuple[int, str, str]:
        status = main(list(argv))
        return status, *capsys.readouterr()

    return answer


def stored(folder: Path, model: str = 'eegnet', task: str = 'challenge2026/bci', **changes: Any) -> Path:
    """A result file of a track, with weights beside it that nobody reads."""
    (known, _), *_ = select.select_tasks(task)
    parts = json.loads(json.dumps(dataclasses.asdict(known), default=str))
    config = {'task': {**parts, 'overrides': []}, 'model': {'name': model}}
    changed = result_files.merged({'config': config, 'n_out': 3}, changes)
    path = result_files.store(folder, model, task=task, dataset='Dreyer2026Proteus', **changed)
    path.with_suffix('.safetensors').write_bytes(b'')
    return path


WRONG = {  # what is asked -> what the one line says
    'nothing': ((), '--results is missing: python -m jbench.submit --results=FILE'),
    'no track': (('--results=a.json', '--out=a.zip'), '--track is missing'),
    'an unknown track': (('--results=a.json', '--out=a.zip', '--track=2026-5'), "unknown track '2026-5'"),
    'another suffix': (('--results=a.json', '--out=a.tar', '--track=2025'), 'expected a name that ends in .zip'),
    'no folder': (('--results=a.json', '--out=no/a.zip', '--track=2025'), 'no folder no'),
    'no file': (('--results=no.json', '--out=a.zip', '--track=2026-2'), 'no file no.json'),
    'several seeds': (
        ('--results=a.json,b.json', '--out=a.zip', '--track=2026-2'),
        '2 files, and track 2026-2 takes one',
    ),
    'one of two': (
        ('--results=a.json', '--out=a.zip', '--track=2025'),
        '1 files, and track 2025 takes two results, of',
    ),
}


@each('name', WRONG)
def test_a_wrong_request_is_one_line(name: str, ask: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    argv, words = WRONG[name]
    status, out, err = ask(*argv)
    assert status == 2 and words in err and err.count('\n') <= 2 and not out
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_can_be_written_is_said_before_the_trial(ask: Asked, tmp_path: Path) -> None:
    (tmp_path / 'a.zip').mkdir()
    status, out, err = ask('--results=no.json', f'--out={tmp_path}/a.zip', '--track=2026-2')
    assert status == 2 and 'a folder, expected the name of a file' in err and not out
    if os.geteuid() != 0:  # root may write anywhere
        tmp_path.chmod(0o555)
        status, _, err = ask('--results=no.json', f'--out={tmp_path}/b.zip', '--track=2026-2')
        tmp_path.chmod(0o755)
        assert status == 2 and 'no permission to write' in err


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_fault() -> None:
    command_line = f'{sys.executable} -m jbench.submit --list | true; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(['bash', '-c', command_line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, '')


RESULTS: dict[str, tuple[dict[str, Any], str]] = {
    'another task': ({'task': 'challenge2026/sleep'}, 'a result of challenge2026/sleep, and track 2026-2 takes one'),
    'no twin': ({'model': 'atcnet'}, 'atcnet has no twin in torch; those that have: eegnet, '),
    'other outputs': ({'n_out': 2}, 'a network of 2 outputs, and track 2026-2 has 3'),
    'a try': ({'status': 'debug'}, 'its status is debug; train it whole'),
    'another head': ({'config': {'task': {'recipe': {'head': 'mlp'}}}}, 'head=mlp'),
    'LoRA': ({'config': {'task': {'recipe': {'adaptation': 'lora'}}}}, 'recipe.adaptation=lora'),
    'half precision': ({'config': {'task': {'recipe': {'precision': 'bfloat16'}}}}, 'precision=bfloat16'),
    'another rate': ({'config': {'task': {'signal': {'sfreq': 200.0}}}}, 'signal.sfreq is 200.0, there 120.0'),
    'another target': ({'config': {'task': {'target': {'field': 'other'}}}}, 'target.field is other, there '),
    'another reference': (
        {'config': {'task': {'signal': {'reference': 'average'}}}},
        'signal.reference is average, there none',
    ),
    'another scaler': ({'config': {'task': {'signal': {'scaler': 'robust'}}}}, 'signal.scaler is robust, there micro'),
}


@each('name', RESULTS)
def test_a_result_that_no_archive_can_be_made_of_is_named(name: str, ask: Asked, tmp_path: Path) -> None:
    changes, words = RESULTS[name]
    path = stored(tmp_path, **changes)
    status, out, err = ask(f'--results={path}', '--track=2026-2', f'--out={tmp_path}/a.zip')
    assert status == 2 and words in err and str(path) in err and not out
    assert not (tmp_path / 'a.zip').exists()


def test_vectors_that_were_scaled_are_another_target() -> None:
    (known, _), *_ = select.select_tasks('challenge2026/image')
    dataset = select.datasets()[known.datasets[0]]
    task = cells.apply(known, dataset, cells.parse_overrides(['target.scaled=yes']))
    cell = Cell(task=task, dataset=dataset, model=MODELS['eegnet'])
    assert export.departures(cell, tracks.TRACKS['2026-1']) == ['target.scaled is True, there False']


def test_a_result_without_weights_is_named(ask: Asked, tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.with_suffix('.safetensors').unlink()
    status, _, err = ask(f'--results={path}', '--track=2026-2', f'--out={tmp_path}/a.zip')
    assert status == 2 and 'its weights are not here; train it again with --keep_weights=yes' in err


@pytest.mark.parametrize('text', ['{}', '[1]', '{"name": "mine"}'])
def test_a_file_that_is_no_result_is_not_to_be_removed(text: str, ask: Asked, tmp_path: Path) -> None:
    (tmp_path / 'a.json').write_text(text)
    status, _, err = ask(f'--results={tmp_path}/a.json', '--track=2026-2', f'--out={tmp_path}/a.zip')
    assert status == 2 and 'a.json: this is no result file' in err and len(err) < 200 and 'remove' not in err


def test_why_there_is_no_local_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No prepared set, or one whose test part has other windows than the predictions."""
    folder, cell = small.prepared(tmp_path).folder, small.cell()
    model: Any = SimpleNamespace(path=tmp_path / 'seed33.json', result={'prepared_hash': ''}, cell=cell)

    def said() -> Any:
        return checks._local(model, tracks.TRACKS['2026-2'], cast(Any, None), lambda *at: None)

    assert str(said()[0]).startswith('its test windows are not here')
    monkeypatch.setattr(checks, 'prepared_folder', lambda *of: folder)
    monkeypatch.setattr(result_file, 'load_predictions', lambda path: {'id': np.array([-1])})
    assert str(said()[0]).startswith('its prepared set is here, and this jbench makes its test part of other windows')


def test_where_torch_is_missing_one_line_says_so(ask: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, 'find_spec', lambda name: None)
    status, _, err = ask(f'--results={stored(tmp_path)}', '--track=2026-2', f'--out={tmp_path}/a.zip')
    assert status == 2 and "pip install 'jbench[checkpoints]'" in err


def test_streams_of_the_generators_are_those_of_the_organisers() -> None:
    """Record floor(i * runs / n), onset since its first window; two records a session, one an evening."""
    found = {track: [order for _, _, order in tracks.generated(track)] for track in tracks.GENERATORS}
    assert [len(order.record) for order in found['2026-2']] == [60, 10]
    assert [len(order.record) for order in found['2026-3']] == [150, 10]
    assert found['2026-1'] == found['2026-4'] == [None, None]
    few = found['2026-2'][1]
    assert few.record.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5] == found['2026-3'][1].record.tolist()
    assert few.onset.tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]
    assert few.stream.tolist() == [*'0000111222'] and few.cell[2:5].tolist() == ['0/1', '0/1', '1/0']
    assert found['2026-3'][1].stream.tolist() == found['2026-3'][1].cell.tolist() == [*'0011233445']
    for order in (*found['2026-2'], *found['2026-3'], tracks.places(3, 2)):
        ordered(order)


def test_what_has_a_twin_is_listed(ask: Asked) -> None:
    assert ask('--list')[:2] == (0, '\n'.join(export.TWINS) + '\n')
    assert set(command.TRACKS) == set(tracks.TRACKS)


def test_a_unit_is_a_factor(tmp_path: Path) -> None:
    """A network that was learnt on volts, times 1e4, gets microvolts, times 1e-2."""
    path = stored(tmp_path, config={'task': {'signal': {'scaler': 'none', 'factor': 1e4}}})
    assert export.fitting([path], '2026-2') == [path]


def test_the_source_of_an_archive_is_one_module_of_torch() -> None:
    text = archive.source(make.PARTS, 'EEGNet')
    assert 'jbench.' not in text.replace('jbench.submit)', '') and 'jax' not in text
    named = re.findall(r'^(?:import|from) ([\w.]+)', text, re.M)
    assert {name.partition('.')[0] for name in named} <= {
        *('__future__', 'json', 'math', 'collections', 'pathlib', 'typing'),
        *('numpy', 'torch', 'benchmark_utils'),
    }
    compile(text, 'submission.py', 'exec')


# ---- the whole way ----


class Made(NamedTuple):
    """A trained result and its archive."""

    result: Path
    archive: Path
    said: str


def trained(name: str, work: Path, *more: str, n: int = 20, model: str = 'eegnet') -> Path:
    """A result of the stand-in of a task, of n people and one epoch."""
    known = select.datasets()
    (task, _), *_ = select.select_tasks(name)
    whole = known[task.simulated]
    few = dataclasses.replace(whole, n_subjects=n, n_recordings=n * whole.n_recordings // whole.n_subjects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, 'datasets', lambda: {**known, few.name: few})
        argv = [f'--task={name}', f'--model={model}', '--seeds=33', '--simulated=yes', f'--workdir={work}']
        assert run.main([*argv, '--set=recipe.max_epochs=1', *more]) == 0
    (path,) = work.glob('results/*/*/*/*/seed33.json')
    return path


@pytest.fixture(scope='module')
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """Track 2, on a few people of its stand-in."""
    pytest.importorskip('torch', reason="pip install 'jbench[checkpoints]'")
    work = tmp_path_factory.mktemp('submit')
    path = trained('challenge2026/bci', work, '--set=split.test=0.5', n=8)
    lines = list(make.make([path], '2026-2', work / 'track2.zip'))
    yield Made(path, work / 'track2.zip', '\n'.join(lines))


@pytest.mark.slow
def test_an_archive_is_flat_and_says_what_it_is(made: Made) -> None:
    with zipfile.ZipFile(made.archive) as found:
        assert sorted(found.namelist()) == ['submission.py', 'weights.npz']
        assert "name = 'jbench-eegnet'" in found.read('submission.py').decode()
        arrays = np.load(io.BytesIO(found.read('weights.npz')), allow_pickle=False)
        assert 'conv_temporal.weight' in arrays.files
    assert made.said.startswith('SIMULATED: ')
    assert 'with torch ' in made.said
    assert "answers the organisers' Simulated windows (2 sizes) and in their streams (6 of them)" in made.said


@pytest.mark.slow
def test_its_local_score_is_that_of_the_result(made: Made) -> None:
    result = result_file.read(made.result)
    value, (low, high) = result['headline']['value'], result['headline']['interval']
    said = re.search(
        r'local score \(SIMULATED\): bal_acc_cells ([\d.]+), 95 % interval ([\d.]+) to ([\d.]+)', made.said
    )
    assert said is not None
    np.testing.assert_allclose([float(v) for v in said.groups()], [value, low, high], rtol=1e-3)


@pytest.mark.slow
def test_without_the_prepared_set_there_is_no_local_score(made: Made, tmp_path: Path) -> None:
    alone = Path(shutil.copytree(made.result.parent, tmp_path / 'alone')) / made.result.name
    said = '\n'.join(make.make([alone], '2026-2', tmp_path / 'a.zip'))
    assert 'no local score: its test windows are not here' in said and 'outputs differ from those in JAX' in said
    assert (tmp_path / 'a.zip').read_bytes() == made.archive.read_bytes(), 'the same bytes'


@pytest.mark.slow
def test_both_networks_of_2025_are_torchscript(tmp_path: Path) -> None:
    """Results come in any order; the archive has nothing else."""
    pytest.importorskip('torch', reason="pip install 'jbench[checkpoints]'")
    first, second = (trained(task, tmp_path / str(k)) for k, task in enumerate(tracks.TRACKS['2025'].tasks))
    said = '\n'.join(make.make([second, first], '2025', tmp_path / 'a.zip'))
    values = [result_file.read(path)['headline']['value'] for path in (first, second)]
    assert f'overall score of 2025 (SIMULATED): {overall_2025(*values):.3f}'[:-1] in said
    with zipfile.ZipFile(tmp_path / 'a.zip') as found:
        assert sorted(found.namelist()) == ['submission.py', 'weights_challenge_1.pt', 'weights_challenge_2.pt']


OTHERS = {  # track -> its task, how many people of its stand-in, and words of its local score
    '2026-1': ('image', 3, 'top5_acc'),
    '2026-3': ('sleep', 5, 'wbmae'),
    '2026-4': ('pose', 5, 'angular_mae'),
}


@pytest.mark.parametrize('track', often(OTHERS, ('2026-1', '2026-3')))
def test_each_track_has_an_archive_whose_score_is_that_of_its_result(track: str, tmp_path: Path) -> None:
    """Of its answers to the test windows: vectors to windows as scaled, seconds that are clipped, joints."""
    pytest.importorskip('torch', reason="pip install 'jbench[checkpoints]'")
    name, n, metric = OTHERS[track]
    path = trained(f'challenge2026/{name}', tmp_path, n=n)
    said = '\n'.join(make.make([path], track, tmp_path / 'a.zip'))
    assert "answers the organisers' Simulated windows" in said and (tmp_path / 'a.zip').is_file()
    score, of_the_file = re.findall(
        rf'local score \(SIMULATED\): {metric} ([\d.]+).* the result file says ([\d.]+)', said
    )[0]
    assert float(of_the_file) == pytest.approx(result_file.read(path)['headline']['value'], rel=1e-4)
    assert float(score) == pytest.approx(float(of_the_file), rel=1e-3), said


INIT, WINDOWS = '        super().__init__()\n', '    def windows(self, x: Tensor) -> Tensor:\n'
BROKEN = {  # what was changed in the source of an archive, and what is said of it
    'another network': ('F.elu(', 'F.relu(', 'answers windows of noise'),
    'logits, not a class': ('return found[:, : self.width].argmax(1)', 'return found', 'answers float32'),
    'no answer to NaN': ('nan=0.0', "nan=float('nan')", 'outputs that are not finite for NaN among the samples'),
    'jax': ('import torch\n', 'import torch\nimport jax\n', 'ModuleNotFoundError: jax is not in an archive'),
    'mne': ('import torch\n', 'import torch\nimport mne\n', 'ModuleNotFoundError: mne is not in an archive'),
    'the network': (
        INIT,
        INIT + '        import socket\n        socket.create_connection(("localhost", 9))\n',
        'must not use the network',
    ),
    'a file': (INIT, INIT + '        (weights.parent / "new").write_text("")\n', 'writes into its own folder'),
    'statistics of the batch': (
        WINDOWS,
        WINDOWS + '        x = x - x.mean(0, keepdim=True) * (len(x) > 1)\n',
        'another answer in a batch than alone',
    ),
    'a state that shows late': (
        WINDOWS,
        WINDOWS + "        self.n = getattr(self, 'n', -1) + 1\n        x = x * (1 + 9 * (self.n > 15))\n",
        'Simulated streams [8, 200]: window 7 of recording 0, stream 0: another answer than to the window by itself; '
        'and 51 more',
    ),
    'a state': (
        WINDOWS,
        WINDOWS + "        self.n = getattr(self, 'n', -1) + 1\n        x = x + self.n\n",
        'a copy of the model, or after other windows',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize('name', BROKEN)
def test_a_broken_archive_is_not_written(
    name: str, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these is a fault that would be found on the platform."""
    (old, new, words), whole = BROKEN[name], archive.source
    monkeypatch.setattr(archive, 'source', lambda parts, title: whole(parts, title).replace(old, new))
    assert archive.source(make.PARTS, '') != whole(make.PARTS, '')
    (tmp_path / 'old.zip').write_bytes(b'of before')
    for name_ in ('a.zip', 'old.zip')[: 1 + (name == 'jax')]:
        with pytest.raises(RequestError, match=re.escape(words)):
            list(make.make([made.result], '2026-2', tmp_path / name_))
    assert [p.name for p in tmp_path.iterdir()] == ['old.zip'] and (tmp_path / 'old.zip').read_bytes() == b'of before'
