"""Files of weights say what they were learnt on, and what they say follows them."""

from __future__ import annotations

import numpy as np
from safetensors.numpy import load, save

from jbench.models import seen
from jbench.spec.pretraining import verdict

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
    assert status('labram:weights=1a2b3c4d', 'SimulatedP3') == 'overlap'
    assert status('labram:weights=1a2b3c4d') == 'unknown'
