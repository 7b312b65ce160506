"""Which places of electrodes REVE goes by: a file that is named by its digest, in the key, and never another."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from jbench import run, trained
from jbench.cli import download
from jbench.data.download.file_list import KEPT
from jbench.models import seen
from jbench.plan import cell_file, places, request, weights
from jbench.results import record
from jbench.spec.cell import Cell
from jbench.spec.checkpoints import CHECKPOINTS, place_of
from jbench.spec.errors import RequestError
from jbench.spec.identity import canonical
from jbench.spec.model import Signal
from jbench.train import programs

BANK = {'Cz': [0.0, 0.01, 0.1], 'Pz': [0.0, -0.05, 0.1]}
BLOB = save({'a': np.ones(3, np.float32)})
NAME = 'reve_small'


def written(path: Path, content: bytes = BLOB) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def bank(path: Path, **more: list[float]) -> Path:
    return written(path, json.dumps(BANK | more).encode())


def published(data_dir: Path) -> None:
    """Weights as --download leaves them."""
    path, checkpoint = written(place_of(NAME, data_dir)), CHECKPOINTS[NAME]
    line = [checkpoint.file, 'https://hub/file', len(BLOB), 'sha256', hashlib.sha256(BLOB).hexdigest()]
    written(path.parent / KEPT, json.dumps([checkpoint.url, [line]]).encode())


def cell(model: str = NAME, data_dir: Path | None = None, **more: str) -> Cell:
    asked = request.Request('motor_imagery', model, simulated='yes', **more)  # type: ignore[arg-type]
    return request.plan(asked, data_dir, Path('absent')).cells[0]


def test_published_weights_go_by_the_places_that_belong_to_them(tmp_path):
    published(tmp_path)
    with pytest.raises(RequestError, match=r'places of electrodes .* not here: --download .*positions=mne') as error:
        cell(data_dir=tmp_path)
    assert '\n' not in str(error.value) and str(tmp_path / 'weights' / 'reve_positions') in str(error.value)
    by_mne = cell(f'{NAME}:positions=mne', tmp_path)
    assert by_mne.model.places == '' and by_mne.model.full_name == f'{NAME}:positions=mne'
    group = request.plan(request.Request('motor_imagery', 'foundation', simulated='yes'), tmp_path, Path('absent'))
    assert [c.model.name for c in group.cells] == ['jbench_tiny'] and NAME in group.absent[-1]
    path = bank(place_of('reve_positions', tmp_path))
    found = cell(data_dir=tmp_path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.model.full_name, found.model.places) == (NAME, f'{path}@{digest}')
    bank(path, Oz=[0.0, -0.1, 0.0])
    assert cell(data_dir=tmp_path).key != found.key, 'other places are another cell'
    lines = [f.line for f in weights.published([NAME, 'reve_base'], tmp_path)]
    assert len(lines) == 3 and lines[1].startswith(f'places of electrodes for {NAME}, reve_base: positions.json of ')
    (alone,) = weights.published(['reve_positions'], tmp_path)
    assert alone.line.startswith('places of electrodes for reve_positions: positions.json of ') and alone.here


def test_a_file_of_ones_own_is_named_by_its_digest(tmp_path):
    one, same = bank(tmp_path / 'a.json'), bank(tmp_path / 'b.json')
    other = bank(tmp_path / 'c.json', Oz=[0.0, -0.1, 0.0])
    cells = [cell(f'{NAME}:weights=none:positions={p}') for p in (one, same, other)]
    assert cells[0].key == cells[1].key != cells[2].key
    digest = hashlib.sha256(one.read_bytes()).hexdigest()
    assert cells[0].model.full_name == f'{NAME}:positions={digest[:8]}:weights=none'
    with pytest.raises(RequestError, match=r'reve_small:positions=absent\.json: no such file'):
        cell(f'{NAME}:weights=none:positions=absent.json')
    plain = cell(NAME, weights='none')
    assert plain.model.places == '' and cell(f'{NAME}:positions=mne', weights='none').key == plain.key
    given = tmp_path / 'w.safetensors'
    assert cell(f'{NAME}:weights={written(given)}').model.places == '', 'a file of weights says nothing of places'


def test_weights_that_a_run_kept_go_by_the_places_that_they_were_learnt_with(tmp_path):
    """And never by those of MNE unasked."""
    path = bank(place_of('reve_positions', tmp_path))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    mine = f'{NAME}:weights={written(tmp_path / "w.safetensors", seen.labelled(BLOB, {"places": digest}))}'
    assert cell(mine, tmp_path).model.places == f'{path}@{digest}'
    assert cell(f'{mine}:positions=mne', tmp_path).model.places == ''
    assert cell(f'{mine}:positions=mne', tmp_path).key != cell(mine, tmp_path).key
    own = bank(tmp_path / 'own.json', Oz=[0.0, -0.1, 0.0])
    assert cell(f'{mine}:positions={own}', tmp_path).model.places.startswith(str(own))
    bank(path, Oz=[0.0, -0.1, 0.0])
    for data_dir in (tmp_path, None):  # another file lies there, or none
        with pytest.raises(RequestError, match=rf'learnt by places .* {digest}, not here: .*positions=FILE') as error:
            cell(mine, data_dir)
        assert '\n' not in str(error.value)
    copy = written(places.kept_at(tmp_path / 'work', digest), json.dumps(BANK).encode())
    wanted = request.Request('motor_imagery', mine, simulated='yes')
    for data_dir in (tmp_path, None):
        (again,) = request.plan(wanted, data_dir, tmp_path / 'work').cells
        assert again.model.places == f'{copy}@{digest}', 'the copy in the work folder'
    asked = request.Request('motor_imagery', mine, simulated='yes', trained=False)
    assert request.plan(asked, tmp_path, Path('absent')).cells[0].model.places == '', 'nothing trains'


def test_what_shows_channels_says_that_published_weights_will_go_by_other_places(tmp_path, capsys):
    def shown(model: str) -> str:
        assert run.main([f'--info={model}', '--task=motor_imagery', '--simulated=yes', f'--data_dir={tmp_path}']) == 0
        return capsys.readouterr().out

    assert 'positions=mne' in shown(NAME)
    assert 'positions=mne' not in shown(f'{NAME}:weights=none')
    published(tmp_path)
    assert 'positions=mne' in shown(NAME)
    bank(place_of('reve_positions', tmp_path))
    assert 'positions=mne' not in shown(NAME)


def test_a_dry_run_refuses_places_that_are_not_there(tmp_path, capsys):
    work = ('--task=motor_imagery', '--simulated=yes', f'--workdir={tmp_path / "work"}', '--dry_run')
    assert run.main([*work, f'--model={NAME}:weights=none:positions={tmp_path / "absent.json"}']) == 2
    assert 'no such file' in capsys.readouterr().err


def test_keys_without_places_are_those_of_before():
    """As they were before a file of places had a digest."""
    assert cell(NAME, weights='none').key == 'a14d3d98daea9ff5'


def test_a_cell_of_a_file_finds_its_places_again(tmp_path):
    path, data_dir, workdir = bank(tmp_path / 'mine.json'), tmp_path / 'data', tmp_path / 'work'
    asked = cell(f'{NAME}:weights=none:positions={path}')
    places.keep(asked.model, workdir)
    kept = record.portable(asked)
    assert kept.model.places == f'@{asked.model.places_digest}' and str(tmp_path) not in canonical(kept)
    assert (kept.key, kept.model.full_name) == (asked.key, asked.model.full_name)
    file = str(written(tmp_path / 'cell.json', canonical(kept).encode()))
    (found,) = cell_file.plan([file], data_dir, workdir).cells
    assert found.key == asked.key
    assert found.model.places == f'{places.kept_at(workdir, asked.model.places_digest)}@{asked.model.places_digest}'
    with pytest.raises(RequestError, match=r'SHA-256 [0-9a-f]{64}, not here; ask by .*positions=FILE'):
        cell_file.plan([file], data_dir, tmp_path / 'elsewhere')
    again = trained._known(Path('seed33.json'), kept.model, None)
    assert (again.places, again.own_places) == (kept.model.places, True), 'so that load_model finds them'
    theirs = dataclasses.replace(kept.model, own_places=False)
    bank(place_of('reve_positions', data_dir))
    assert places.found(theirs, data_dir, tmp_path / 'elsewhere').places.startswith(str(data_dir))
    assert download.of_cells([file]) == [], 'of ones own'
    given = dataclasses.replace(theirs, weights='1a' * 32, own_weights=True)
    written(tmp_path / 'cell.json', canonical(dataclasses.replace(kept, model=given)).encode())
    assert download.of_cells([file]) == ['reve_positions']


def test_a_path_that_may_not_be_looked_at_is_no_file_here(tmp_path, monkeypatch):
    """And the copy of the work folder is looked at all the same."""
    with pytest.raises(RequestError, match='x: no such file'):
        cell(f'{NAME}:weights=none:positions={"x" * 300}')
    model = cell(f'{NAME}:weights=none:positions={bank(tmp_path / "mine.json")}').model
    places.keep(model, tmp_path)
    copy = f'{places.kept_at(tmp_path, model.places_digest)}@{model.places_digest}'
    long = dataclasses.replace(model, places=f'{"x" * 300}@{model.places_digest}')
    assert places.found(long, None, tmp_path).places == copy

    def read(path: Path) -> str:
        if path.name == 'mine.json':
            raise PermissionError
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(places.files, 'sha256_file', read)
    assert places.found(model, None, tmp_path).places == copy


def test_a_network_is_built_with_these_places_and_no_others(tmp_path):
    model = cell(f'{NAME}:weights=none:positions={bank(tmp_path / "a.json")}').model
    signal = Signal(n_chans=3, n_times=400, sfreq=200.0, ch_names=('Cz', 'Oz', 'Pz'))

    def used() -> object:
        return programs.build(model, programs.asked_signal(model, signal), 2).channels

    assert used() == {'Cz': '0 10 100', 'Pz': '0 -50 100'}
    bank(tmp_path / 'a.json', Oz=[0.0, -0.1, 0.0])
    with pytest.raises(RequestError, match='this file changed'):
        used()
