"""Files of weights say what they were learnt on, and what they say follows them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from safetensors.numpy import load, save

from jbench.models import seen
from jbench.plan import select
from jbench.report import overlap
from jbench.spec.pretraining import ALIKE, UNNAMED, verdict

ARRAYS = {'b': np.arange(3, dtype=np.float32), 'a': np.ones((2, 5), np.float32), 'n': np.zeros((), np.int64)}


def test_a_file_says_what_it_was_learnt_on_and_holds_what_it_held(tmp_path):
    facts = {'task': 'pretrain/movies@1', 'datasets': ['SimulatedFilm', 'Schalk2004Bci2000'], 'subjects': ['S01']}
    content = seen.labelled(save(ARRAYS, metadata={'format': 'pt'}), facts)
    assert content == seen.labelled(save(ARRAYS, metadata={'format': 'pt'}), facts)
    path = tmp_path / 'w.safetensors'
    path.write_bytes(content)
    assert seen.declared(path) == facts and seen.datasets(path) == tuple(facts['datasets'])
    found = load(content)
    assert {k: v.tolist() for k, v in found.items()} == {k: v.tolist() for k, v in ARRAYS.items()}


def test_other_files_say_nothing(tmp_path):
    for k, content in enumerate((b'', b'no weights', save(ARRAYS), save(ARRAYS, metadata={'jbench': '[1]'}))):
        path = tmp_path / f'{k}.safetensors'
        path.write_bytes(content)
        assert seen.declared(path) == {} and seen.datasets(path) == ()
    assert seen.datasets(tmp_path / 'absent') == ()


def test_what_a_file_says_decides_whether_a_score_is_clean():
    def status(model: str, *declared: str) -> str:
        return verdict(model, 'classic', ('SimulatedP3',), declared=declared).status

    assert status('eegnet') == status('eegnet:weights=none') == 'clean'
    assert status('eegnet:weights=1a2b3c4d') == 'unknown', 'a file that says nothing'
    assert status('eegnet:weights=1a2b3c4d', 'SimulatedFilm') == 'clean'
    assert status('eegnet:weights=1a2b3c4d', 'SimulatedFilm', 'SimulatedP3') == 'overlap'
    assert status('eegnet:weights=1a2b3c4d', UNNAMED, 'SimulatedFilm') == 'unknown', 'of its beginning'
    assert status('eegnet:weights=1a2b3c4d', UNNAMED, 'SimulatedP3') == 'overlap'
    assert status('labram:weights=1a2b3c4d', 'SimulatedP3') == 'overlap'
    assert status('labram:weights=1a2b3c4d') == 'unknown'


def test_sets_of_the_same_people_are_no_clean_test():
    found = verdict('eegnet:weights=1a2b3c4d', 'classic', ('Lee2019EegErp',), declared=('Lee2019EegMi',))
    assert found.status == 'overlap'
    assert all(name in select.datasets() for name in ('Lee2019EegMi', *ALIKE[-1])), 'names as the tables have them'


def test_tables_look_at_each_set_of_a_mixture():
    def status(dataset: str) -> str:
        score = SimpleNamespace(
            dataset=dataset,
            model='eegnet:weights=1a2b3c4d',
            origin='own',
            family='classic',
            per_subject=(),
            pretraining=('SimulatedP3',),
            seen_beside=False,
        )
        return overlap.overlap(score)

    assert status('SimulatedN170+SimulatedP3') == 'overlap' and status('SimulatedN170+SimulatedFilm') == 'clean'
