"""The command with weights of a file: trained from random ones, kept, and taken as the start of another run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import jbench
from jbench import run
from jbench.data.download.file_list import KEPT
from jbench.spec.checkpoints import CHECKPOINTS, place_of

MODEL = 'signal_jepa_post_local'  # 14 thousand parameters
BASE = ('--task=motor_imagery', '--simulated=yes', '--debug', '--seeds=33', '--format=json')


@pytest.fixture(scope='module')
def work(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp('work')


def ask(work: Path, capsys: Any, *more: str) -> tuple[int, str]:
    status = run.main([*BASE, f'--workdir={work}', *more])
    return status, capsys.readouterr().err


def result(work: Path, name: str) -> tuple[Path, dict[str, Any]]:
    (path,) = (p for p in work.glob('results/*/*/*/*/seed33.json') if json.loads(p.read_text())['model'] == name)
    return path, json.loads(path.read_text())


@pytest.mark.slow
def test_a_file_is_where_a_run_begins(work, capsys, tmp_path):
    assert ask(work, capsys, f'--model={MODEL}', '--weights=none')[0] == 0
    scratch, facts = result(work, f'{MODEL}:weights=none')
    assert facts['overlap'] == 'clean' and facts['pretraining'] == []
    file = tmp_path / 'mine.safetensors'
    file.write_bytes(scratch.with_suffix('.safetensors').read_bytes())

    status, said = ask(work, capsys, f'--model={MODEL}', f'--weights={file}', '--set', 'recipe.lr=1e-30')
    assert status == 0 and said.count(f'{MODEL} from {file}: 7 tensors read; new, as drawn: 4 (') == 1
    digest = jbench.files.sha256_file(file)
    path, facts = result(work, f'{MODEL}:weights={digest[:8]}')
    assert facts['config']['model']['weights'] == digest and facts['overlap'] == 'overlap'
    assert any('overlap' in w for w in facts['warnings'])
    before, after = load_file(file), load_file(path.with_suffix('.safetensors'))
    heads = {name for name in before if name.startswith(('head.', 'final_layer.'))}
    assert heads < {*before} == {*after}
    assert all(np.allclose(before[n], after[n], atol=1e-12) for n in {*before} - heads)
    assert not all(np.allclose(before[n], after[n]) for n in heads), 'a head is drawn anew'
    assert np.isfinite(jbench.load_model(path).predict()).all()

    # as a published file, with the list that --download keeps: the result says which revision it is
    place, url, commit = place_of(MODEL, tmp_path / 'data'), CHECKPOINTS[MODEL].url, 'c' * 40
    place.parent.mkdir(parents=True)
    place.write_bytes(file.read_bytes())
    line = [place.name, f'https://hub/x/resolve/{commit}/{place.name}', place.stat().st_size, 'sha256', digest]
    (place.parent / KEPT).write_text(json.dumps([url, [line]]))
    assert ask(work, capsys, f'--model={MODEL}', f'--data_dir={tmp_path / "data"}')[0] == 0
    published, theirs = result(work, MODEL)
    assert (theirs['checkpoint']['revision'], theirs['checkpoint']['sha256']) == (commit, digest)
    assert 'checkpoint' not in facts and not list(jbench.results.verify(published))

    # the same cell from its result needs the same file
    status, said = ask_cell(work, capsys, path)
    assert status == 2 and f'SHA-256 {digest}' in said and '--weights=FILE' in said
    assert ask_cell(work, capsys, path, f'--weights={file}')[0] == 0

    # a damaged copy, and one that lacks a tensor
    whole = file.read_bytes()
    broken = tmp_path / 'broken.safetensors'
    broken.write_bytes(whole[:-7])
    elsewhere = tmp_path / 'elsewhere'
    status, said = ask(elsewhere, capsys, f'--model={MODEL}', f'--weights={broken}')
    assert status == 2 and f'{broken}: not a complete safetensors file' in said
    assert not elsewhere.exists(), 'it is met before anything is prepared'
    name = next(n for n in sorted({*before} - heads))
    save_file({n: a for n, a in before.items() if n != name}, broken)
    status, said = ask(work, capsys, f'--model={MODEL}', f'--weights={broken}')
    assert status == 2 and f'missing: {name}' in said


def ask_cell(work: Path, capsys: Any, path: Path, *more: str) -> tuple[int, str]:
    status = run.main([f'--cell={path}', '--seeds=33', f'--workdir={work}', *more])
    return status, capsys.readouterr().err
