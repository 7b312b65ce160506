"""A source is imported by one function, which says what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jbench.data.discover import find_recordings
from jbench.data.source import fetch_of, source_of, vectors_of
from jbench.plan import select
from jbench.spec.errors import RequestError

P3 = select.datasets()['SimulatedP3']


def test_a_source_is_its_module() -> None:
    source = source_of(P3)
    refs = source.recordings(P3, Path())
    assert len(refs) == P3.n_recordings and Path(source.__file__).name == 'simulated.py'


def test_some_sources_fetch_or_embed_themselves() -> None:
    moabb = select.find_dataset('Cho2017')
    assert fetch_of(moabb) is not None and vectors_of(moabb) is None
    assert fetch_of(P3) is None and vectors_of(P3)(['a', 'b'], 3).shape == (2, 3)


@pytest.mark.parametrize(
    ('text', 'says'),
    [
        (None, 'is no module'),
        ('DATASETS = ()', 'no function recordings and no read'),
        ('def read(ref): ...', 'no function recordings;'),
        ('read = 3\ndef recordings(dataset, root): ...', 'no function read;'),
    ],
)
def test_a_module_that_is_no_source_is_refused(tmp_path: Path, monkeypatch, text: str | None, says: str) -> None:
    name = f'no_source_{abs(hash(says))}'
    if text is not None:
        (tmp_path / f'{name}.py').write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RequestError, match=f'SimulatedP3.*{name}.*{says}'):
        find_recordings(replace(P3, source=name), None)


def test_a_source_that_lacks_a_package_says_which(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / 'needs_more.py').write_text('import no_such_package')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match='no_such_package'):
        source_of(replace(P3, source='needs_more'))
