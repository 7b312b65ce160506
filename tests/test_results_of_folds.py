"""The folds of a cross-validation, each a result with a network of its own: loaded, examined, and verified."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from once import once

import jbench
from jbench import files, run
from jbench.cli import autopsy
from jbench.plan import select
from jbench.results import checked, place, predictions
from jbench.results.schema import as_text
from jbench.spec.errors import RequestError

pytestmark = pytest.mark.slow

FLAGS = ['--task=p3', '--simulated=yes', '--debug', '--seeds=33', '--model=eegnet,dummy', '--set=split.folds=2']


@pytest.fixture(scope='module')
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network and the dummy on two folds of four simulated subjects."""

    def make(at: Path) -> None:
        known = select.datasets()
        few = dataclasses.replace(known['SimulatedP3'], n_subjects=4, n_recordings=4)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
            assert run.main([*FLAGS, f'--workdir={at}']) == 0

    return once('folds', tmp_path_factory.mktemp('folds') / 'work', make)


@pytest.fixture
def whole(workdir: Path) -> Path:
    """The result of the network over both folds."""
    (path,) = workdir.glob('results/*/*/eegnet/*/seed33.json')
    return path


@pytest.fixture
def copy(workdir: Path, whole: Path, tmp_path: Path) -> Path:
    """The same among the results elsewhere, for a test to spoil."""
    shutil.copytree(workdir / 'results', tmp_path / 'results')
    return tmp_path / whole.relative_to(workdir)


def test_a_fold_answers_with_the_bits_that_are_stored(whole: Path) -> None:
    for path in place.folds(whole):
        found = jbench.load_model(path).predict()
        np.testing.assert_array_equal(found, predictions.load_predictions(path)['outputs'])


def test_of_a_result_of_folds_those_with_a_network_are_named(whole: Path, copy: Path) -> None:
    with pytest.raises(RequestError, match='made of folds') as error:
        jbench.load_model(whole)
    assert all(str(fold) in str(error.value) for fold in place.folds(whole)) and len(place.folds(whole)) == 2
    assert 'overwrite' not in str(error.value)
    shutil.rmtree(copy.parent / 'folds')
    with pytest.raises(RequestError, match=r'of which none is in .*folds'):
        jbench.load_model(copy)


def test_the_page_of_a_fold_lies_with_the_others_beside_the_same_fold_of_others(workdir: Path, whole: Path) -> None:
    case = autopsy.load(place.folds(whole)[0])
    assert [other.name for other in case.others] == ['dummy'] and case.network is not None
    (fold,) = workdir.glob('results/*/*/dummy/*/folds/1_of_2/seed33.json')
    page, found = autopsy.write(fold, None)
    assert page == workdir / 'autopsy' / f'dummy-{fold.parents[2].name}-1_of_2-seed33.html'
    assert any(one.names == ('eegnet',) and 'eegnet (' in one.text for one in found)
    assert '<td>not counted<td>DEBUG: a try on few windows' in page.read_text()


def verified(folder: Path, capsys: Any) -> tuple[int, str]:
    capsys.readouterr()
    return run.main(['report', 'verify', str(folder)]), capsys.readouterr().out


def test_folds_are_verified(copy: Path, capsys) -> None:
    assert verified(copy.parents[4], capsys) == (0, '6 results (4 of them folds), 0 with problems (0 in all)\n')
    assert verified(copy.parent / 'folds', capsys) == (0, '2 results (2 of them folds), 0 with problems (0 in all)\n')


def test_an_edited_fold_is_told(copy: Path, capsys) -> None:
    fold = place.folds(copy)[1]
    written = fold.read_text()
    fold.write_text(written.replace('"value": 0.', '"value": 0.9', 1))
    status, said = verified(copy.parents[4], capsys)
    assert status == 1 and f'{fold}: changed since written' in said and '1 with problems' in said
    result = json.loads(written)
    result['headline']['value'] = 0.9
    fold.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    assert f'{fold}: headline: written ' in verified(copy.parents[4], capsys)[1]


def test_a_fold_whose_predictions_were_made_anew_is_told(copy: Path, capsys) -> None:
    """With scores and digests that fit: the result of all folds is no longer what they make together."""
    fold = place.folds(copy)[0]
    arrays = predictions.load_predictions(fold)
    arrays['outputs'] = np.eye(2, dtype=np.float32)[arrays['y']]
    fold.with_suffix('.npz').write_bytes(files.npz_bytes(arrays))
    result = json.loads(fold.read_text()) | {'predictions_sha256': files.sha256_file(fold.with_suffix('.npz'))}
    fold.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    result |= jbench.results.rescore(fold)
    fold.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    status, said = verified(copy.parents[4], capsys)
    assert status == 1 and f'{copy}: outputs: its predictions are not those of its 2 folds together' in said


@pytest.mark.parametrize('there', ['folds/1_of_3', 'folds/3_of_2', '../other/folds/1_of_2', '../other'])
def test_a_fold_in_another_place_is_told(there: str, copy: Path, capsys) -> None:
    target = copy.parent.joinpath(there).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(copy.parent / 'folds' / '1_of_2', target)
    status, said = verified(copy.parents[4], capsys)
    assert status == 1 and f'{target}/seed33.json: belongs at .../' in said
    assert f'{copy}: its folds are ' in said and 'expected all of 2' in said
