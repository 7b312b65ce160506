"""Which weights a model starts from: found, named by their digest, in the key, and never taken for others."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from jbench import run
from jbench.cli import download
from jbench.data.download.file_list import KEPT
from jbench.plan import cell_file, request, select, weights
from jbench.spec.checkpoints import CHECKPOINTS, place_of
from jbench.spec.errors import RequestError
from jbench.spec.identity import canonical

BLOB = save({'a': np.ones(3, np.float32)})
DIGEST = hashlib.sha256(BLOB).hexdigest()


def planned(models: str, weights: str | None = None, data_dir: Path | None = None) -> request.Plan:
    return request.plan(request.Request('p3', models, weights=weights, simulated='yes'), data_dir, Path('absent'))


def written(path: Path, blob: bytes = BLOB) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(blob)
    return str(path)


def test_without_weights_a_named_model_says_what_to_do_and_a_group_goes_without_it(tmp_path):
    with pytest.raises(RequestError) as error:
        planned('biot', data_dir=tmp_path)
    told = str(error.value)
    assert '\n' not in told and all(w in told for w in ('--download', '--weights=FILE', '--weights=none', 'licence'))
    assert str(tmp_path / 'weights' / 'biot') in told
    plan = planned('eegnet,foundation')
    assert [c.model.name for c in plan.cells] == ['eegnet', 'jbench_tiny']
    (why,) = plan.absent
    assert why.startswith('bendr, ') and '--download' in why


def test_random_weights_are_named_so_and_saw_nothing():
    for plan in (planned('biot', 'none'), planned('biot:weights=none')):
        (cell,) = plan.cells
        assert cell.model.full_name == 'biot:weights=none' and cell.model.pretraining == () and plan.weights == {}
    assert planned('biot,eegnet', 'none').cells[1].model.full_name == 'eegnet'


def published(name: str, data_dir: Path, blob: bytes = BLOB) -> Path:
    """Weights as --download leaves them, with the list of the hub beside them."""
    path, checkpoint = place_of(name, data_dir), CHECKPOINTS[name]
    written(path, blob)
    line = [checkpoint.file, 'https://hub/file', len(blob), 'sha256', hashlib.sha256(blob).hexdigest()]
    (path.parent / KEPT).write_text(json.dumps([checkpoint.url, [line]]))
    return path


def test_weights_are_published_where_the_list_of_the_hub_says_so(tmp_path):
    written(place_of('biot', tmp_path))
    (cell,) = planned('biot', data_dir=tmp_path).cells
    assert cell.model.own_weights and not cell.model.pretraining, 'whoever put them there'
    published('biot', tmp_path)
    plan = planned('biot', data_dir=tmp_path)
    (cell,) = plan.cells
    assert (cell.model.full_name, cell.model.weights) == ('biot', DIGEST) and cell.model.pretraining
    assert plan.weights == {DIGEST: place_of('biot', tmp_path)}
    for again in (planned('biot', written(tmp_path / 'copy.safetensors'), where) for where in (tmp_path, None)):
        assert again.cells[0].key == cell.key, 'the same bytes are the same weights, wherever they lie'


def test_where_a_digest_is_known_it_alone_says_which_weights_are_published(tmp_path):
    """Whatever the list of a hub says."""
    published('labram', tmp_path)
    (cell,) = planned('labram', data_dir=tmp_path).cells
    assert cell.model.own_weights and weights.origin(cell.model, tmp_path) is None
    for name, checkpoint in CHECKPOINTS.items():
        assert re.fullmatch(r'package|hf:models/[\w.-]+/[\w.-]+(@[0-9a-f]{40})?', checkpoint.url), name
        assert re.fullmatch('([0-9a-f]{64})?', checkpoint.sha256), name
        assert '@' in checkpoint.url or not checkpoint.sha256 or checkpoint.url == 'package', name


def test_each_file_of_weights_is_another_cell(tmp_path):
    files = [written(tmp_path / f'{i}.safetensors', save({'a': np.full(3, i, np.float32)})) for i in range(2)]
    cells = [planned('biot', w).cells[0] for w in (*files, 'none')]
    assert len({c.key for c in cells}) == len({c.model.full_name for c in cells}) == 3
    both = planned(f'biot:weights={files[0]},biot:weights={files[1]}')
    assert [c.key for c in both.cells] == [c.key for c in cells[:2]] and len(both.weights) == 2
    assert cells[0].model.full_name == f'biot:weights={cells[0].model.weights[:8]}'


def test_a_folder_holds_weights_of_several_models(tmp_path):
    for name in ('biot', 'bendr'):
        written(tmp_path / name / CHECKPOINTS[name].file, save({name: np.ones(2, np.float32)}))
    assert len(planned('biot,bendr', str(tmp_path)).weights) == 2
    with pytest.raises(RequestError, match=r'holds no labram/model\.safetensors$'):
        planned('biot,bendr,labram', str(tmp_path))
    with pytest.raises(RequestError, match='one file for 2 models'):
        planned('biot,bendr', str(tmp_path / 'biot' / 'model.safetensors'))


def test_one_file_is_for_the_model_that_asks_for_it(tmp_path):
    file = written(tmp_path / 'w.safetensors')
    assert [c.model.weights for c in planned('biot,labram:weights=none', file).cells] == [DIGEST, 'none']
    with pytest.raises(RequestError, match='unused, because no model of this request takes weights from it'):
        planned('biot:weights=none', file)
    with pytest.raises(RequestError, match='expected a file, a folder, or none'):
        planned('biot', '')


def test_a_network_beside_one_with_published_weights_is_told_that_the_file_is_not_for_it(tmp_path):
    """One line, which says how to give it one; none where nobody is passed over, or all start from random weights."""
    file = written(tmp_path / 'w.safetensors')
    plan = planned('eegnet:dropout=0.5,biot,dummy,chance', file)
    assert [c.model.weights for c in plan.cells] == ['', DIGEST, '', ''] and plan.absent == []
    line = f'--weights={file}: for biot; eegnet:dropout=0.5 starts from random weights'
    assert [told for told in plan.told if told.startswith('--weights')] == [
        f'{line} (--model=eegnet:weights=FILE: it starts from FILE)'
    ]
    for models, asked in (
        ('biot', file),
        ('eegnet', file),
        ('eegnet,biot', 'none'),
        ('eegnet,biot:weights=none', file),
    ):
        assert planned(models, asked).takers == '', models
    plan = planned(f'eegnet,bdtcn,biot:weights={file}')
    assert plan.takers == '', 'each says it itself'


def test_of_a_group_what_is_not_in_the_folder_is_left_out(tmp_path):
    published('biot', tmp_path)
    published('signal_jepa', tmp_path)
    asked = request.Request('motor_imagery', 'foundation', weights=str(tmp_path / 'weights'), simulated='yes')
    plan = request.plan(asked, None, tmp_path)
    names = ['biot', 'signal_jepa', 'signal_jepa_post_local', 'signal_jepa_pre_local']
    assert sorted(c.model.name for c in plan.cells) == names and 'labram' in plan.absent[0]


def test_what_does_not_train_needs_no_weights():
    plan = request.plan(request.Request('p3', 'biot', simulated='yes', trained=False), None, Path('absent'))
    assert plan.cells[0].model.weights == ''


@pytest.mark.parametrize(
    ('models', 'wanted', 'told'),
    [
        ('biot', 'absent.safetensors', r'no such file'),
        ('biot', 'x' * 300, r'no such file'),
        ('biot', '{}/text', r"no weights: text \('no weights at all'\); expected a safetensors file"),
        ('classic', 'none', r'unused'),
        ('dummy', 'none', r'unused'),
        ('dummy:weights=none', None, r'dummy takes no pretrained weights'),
        ('eegnet', '{}', r'a folder; expected a file of weights of eegnet'),
        ('foundation:weights=none', None, r'no pretrained weights'),
        ('{}/mine.py:power:weights=none', None, r'mine\.py:power takes no pretrained weights; a network'),
    ],
)
def test_what_cannot_be(models: str, wanted: str | None, told: str, tmp_path):
    written(tmp_path / 'text', b'no weights at all')
    written(tmp_path / 'mine.py', b'def power(data): ...')
    with pytest.raises(RequestError, match=told):
        planned(models.format(tmp_path), wanted and wanted.format(tmp_path))


def test_a_network_of_ones_own_starts_from_each_of_several_files(tmp_path):
    net = f'{written(tmp_path / "mine.py", b"def net(signal, n_out): ...")}:net'
    assert [m.weights for m, _ in select.select_models(f'{net}:weights=a,{net}:weights=b,{net}')] == ['a', 'b', '']


def test_a_cell_in_a_file_asks_for_its_weights(tmp_path):
    file = written(tmp_path / 'own.safetensors')
    (cell,) = planned('biot', file).cells
    path = written(tmp_path / 'cell.json', canonical(cell).encode())

    def run(asked: str | None) -> Any:
        return cell_file.plan([path], None, Path('absent'), asked)

    assert run(file).cells[0].key == cell.key and run(file).weights == {DIGEST: Path(file)}
    with pytest.raises(RequestError, match=f'SHA-256 {DIGEST}, not here; --weights=FILE names them'):
        run(None)
    assert cell_file.plan([path], None, Path('absent'), trained=False).cells[0].key == cell.key
    for digest, told in (('', 'biot has no weights'), ('none', 'unused, because the cell starts from random')):
        other = dataclasses.replace(cell, model=dataclasses.replace(cell.model, weights=digest))
        with pytest.raises(RequestError, match=told):
            cell_file.plan([written(tmp_path / 'o.json', canonical(other).encode())], None, Path('absent'), file)
    scratch = written(tmp_path / 'scratch.json', canonical(planned('biot', 'none').cells[0]).encode())
    beside = cell_file.plan([scratch, path], None, Path('absent'), file)
    assert [c.model.weights for c in beside.cells] == ['none', DIGEST] and beside.weights == {DIGEST: Path(file)}
    forged = dataclasses.replace(cell, model=dataclasses.replace(cell.model, own_weights=False, pretraining=('x',)))
    (found,) = cell_file.plan([written(tmp_path / 'f.json', canonical(forged).encode())], None, Path(''), file).cells
    assert (found.model.own_weights, found.model.pretraining, found.key) == (True, (), cell.key)
    with pytest.raises(RequestError, match='is another file'):
        run(written(tmp_path / 'other.safetensors', save({'b': np.ones(1, np.float32)})))


def test_a_cell_of_a_network_that_none_were_published_for_asks_for_its_weights(tmp_path):
    """And is prepared without them, as the jobs of a grid do."""
    (cell,) = planned('eegnet', written(tmp_path / 'own.safetensors')).cells
    path = written(tmp_path / 'cell.json', canonical(cell).encode())
    with pytest.raises(RequestError, match=f'^eegnet .* SHA-256 {DIGEST}, not here; --weights=FILE names them$'):
        cell_file.plan([path], None, Path('absent'))
    assert cell_file.plan([path], None, Path('absent'), trained=False).cells[0].key == cell.key


def test_what_is_fetched(tmp_path):
    """Places of electrodes, too, where published weights lie elsewhere; not for weights that were learnt without."""

    def wanted(models: str, asked: str | None = None) -> list[str]:
        return download.of_request(select.select_models(models), asked, tmp_path)

    assert wanted('biot,eegnet,labram:weights=none') == ['biot'] and wanted('biot,reve_base', 'none') == []
    assert wanted('jbench_tiny,biot', 'a file') == []
    assert wanted('reve_base,biot', 'a file') == wanted('reve_base:weights=a file') == ['reve_positions']
    assert wanted('reve_base,reve_small:weights=a file') == ['reve_base'], 'with which they come'
    assert wanted('reve_base:positions=mne', 'a file') == []
    assert wanted('reve_small', str(written(tmp_path / 'own.safetensors'))) == []
    published('reve_small', tmp_path)
    assert wanted('reve_small', str(place_of('reve_small', tmp_path))) == ['reve_positions']


def test_nothing_is_fetched_for_a_cell_whose_weights_come_with_jbench(tmp_path, capsys):
    path = written(tmp_path / 'cell.json', canonical(planned('jbench_tiny').cells[0]).encode())
    work = (f'--data_dir={tmp_path}', f'--workdir={tmp_path / "work"}')
    assert run.main([f'--cell={path}', '--stage=download', *work]) == 0
    assert 'weights of' not in capsys.readouterr().err


def test_what_is_fetched_for_a_cell(tmp_path):
    own, scratch = (planned('biot', w).cells[0].model for w in (written(tmp_path / 'w.safetensors'), 'none'))
    published('biot', tmp_path)
    theirs = planned('biot', data_dir=tmp_path).cells[0].model
    eegnet = planned('eegnet').cells[0].model
    assert [weights.of_cell(m) for m in (own, scratch, theirs, eegnet)] == [[], [], ['biot'], []]


def test_published_weights_have_a_size_once_the_hub_or_the_disk_tells_it(tmp_path):
    """A file that several models start from is one file."""
    local = [f'signal_jepa{which}' for which in ('', '_post_local', '_pre_local')]
    unknown, other = weights.published([*local, 'labram', local[0]], tmp_path)
    assert (
        unknown.models == tuple(local)
        and other.models == ('labram',)
        and (unknown.bytes, unknown.here) == (None, False)
    )
    assert re.search(r'/signal-jepa_without-chans at revision [0-9a-f]{40}, licence: ', unknown.line)
    assert unknown.line.endswith('; size unknown until the hub is asked, --download fetches it')
    path = published('labram', tmp_path)
    assert weights.published(['labram'], tmp_path)[0].line.endswith(f'; {len(BLOB)} bytes, here')
    path.unlink()
    (listed,) = weights.published(['labram'], tmp_path)
    assert (listed.bytes, listed.here) == (len(BLOB), False)
    assert weights.published(['labram'], None)[0].bytes is None
    written(place_of('biot', tmp_path), BLOB + b'.')
    assert weights.published(['biot'], tmp_path)[0].bytes == len(BLOB) + 1, 'without a list'


def test_a_dry_run_says_how_large_weights_are(tmp_path, capsys):
    work = ('--task=p3', '--simulated=yes', f'--data_dir={tmp_path}', f'--workdir={tmp_path / "work"}', '--dry_run')
    asked = '--model=signal_jepa_post_local,signal_jepa_pre_local,biot'
    assert run.main([*work, asked, '--download']) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith('weights of')]
    assert len(told) == 2 and told[0].startswith('weights of signal_jepa_post_local, signal_jepa_pre_local: ')
    assert all('licence' in line and 'size unknown' in line for line in told)
    published('biot', tmp_path)
    assert run.main([*work, '--model=biot']) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith('weights of'))
    assert f'{len(BLOB)} bytes, here' in line
    assert run.main([*work, '--model=biot', '--format=json']) == 0
    (found,) = json.loads(capsys.readouterr().out)['checkpoints']
    assert (found['models'], found['bytes'], found['here']) == (['biot'], len(BLOB), True)
