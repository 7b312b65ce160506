"""Several datasets as one: their recordings beside each other, their people apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from jbench.data.discover import find_recordings
from jbench.data.prepare import build_set
from jbench.data.recording import RecordingRef
from jbench.data.source import source_of
from jbench.data.sources import mixture
from jbench.plan import cells, select
from jbench.spec.errors import RequestError
from jbench.spec.overrides import override

BOTH = 'SimulatedP3+SimulatedN170'


def test_a_mixture_has_the_recordings_of_its_members():
    task, dataset = select.select_tasks(f'pretrain/masked/{BOTH}')[0]
    assert task.full_name == 'pretrain/masked' and dataset.name == BOTH and dataset.simulated
    refs, parts = find_recordings(dataset, None), mixture.members(dataset)
    assert len(refs) == sum(d.n_recordings for d in parts) == dataset.n_recordings
    assert len({r.name for r in refs}) == len({r.subject for r in refs}) == dataset.n_subjects
    last = refs[-1]
    assert last.subject.startswith('SimulatedN170.S') and mixture.member(dataset, last) == parts[1]
    own = source_of(parts[1]).read(source_of(parts[1]).recordings(parts[1], Path())[-1])
    read = source_of(dataset).read(last)
    np.testing.assert_array_equal(read.raw.get_data(), own.raw.get_data())


@pytest.mark.parametrize(
    ('asked', 'told'),
    [
        ('pretrain/masked/SimulatedP3+SimulatedP3', 'different datasets of one device'),
        ('pretrain/masked/SimulatedP3+SimulatedMegImage', 'different datasets of one device'),
        ('pretrain/masked/SimulatedP3+Nobody', 'Nobody'),
        (f'p3/{BOTH}', 'does not serve task p3'),
        (f'pretrain/movies/{BOTH}', 'does not serve task'),
        ('pretrain/movies/SimulatedFilm+SimulatedP3', 'does not serve task'),
        ('pretrain/masked/SimulatedMegImage', 'does not serve task'),
    ],
)
def test_what_cannot_be_mixed(asked: str, told: str):
    with pytest.raises(RequestError, match=told):
        select.select_tasks(asked)


def test_a_member_that_is_not_there_is_named(tmp_path):
    ((task, dataset),) = select.select_tasks('pretrain/masked/SimulatedP3+Zyma2019Electroencephalograms')
    task = cells.apply(task, dataset, ())
    with pytest.raises(RequestError, match='Zyma2019Electroencephalograms holds no recording; put there'):
        build_set.locate(task, dataset, tmp_path, tmp_path / 'work')
    assert {dict(r.fields)['dataset'] for r in find_recordings(dataset, tmp_path)} == {'SimulatedP3'}


def test_terms_and_names_of_a_mixture_are_those_of_its_members():
    known = select.datasets()
    gated = next(d for d in known.values() if d.access not in ('open', 'embedded') and d.device == 'eeg')
    mixed = select.find_dataset(f'Schalk2004Bci2000+{gated.name}')
    assert mixed.access == gated.access and 'PhysionetMI' in mixed.aliases and gated.name in mixed.aliases
    assert [d.name for d in mixture.parts(mixed)] == ['Schalk2004Bci2000', gated.name]
    assert mixture.parts(gated) == [gated]


def test_films_of_a_mixture_are_asked_for_as_each_set_calls_them():
    name = 'SimulatedFilm+Chen2023Large+Liu2024Eeg2video+Shirazi2024Hbn'
    ((task, dataset),) = select.select_tasks(f'pretrain/movies/{name}')
    task = cells.apply(task, dataset, ())
    one = RecordingRef(name, 'S01', '0', '0', ())
    found = [mixture.asked(task, dataset, one._replace(fields=(('dataset', n),))) for n in name.split('+')]
    assert [(t.window.trigger, t.target.field) for t in found] == [
        *(('Film', 'filepath'), ('Stimulus', 'code'), ('Video', 'filepath'), ('Film', 'film'))
    ]
    assert found[0] == task == mixture.asked(task, select.datasets()['SimulatedFilm'], one)
    mine = override(task, 'window.trigger', 'Mine')  # what a user says goes before the member's
    liu = one._replace(fields=(('dataset', 'Liu2024Eeg2video'),))
    assert mixture.asked(mine, dataset, liu).window.trigger == 'Mine'
    assert [*build_set.stored_spec(task, dataset)['members']] == name.split('+')[1:], 'they are part of the hash'
    ((masked, both),) = select.select_tasks(f'pretrain/masked/{name}')
    assert 'members' not in build_set.stored_spec(cells.apply(masked, both, ()), both), 'a set of before serves'


def test_datasets_of_ones_own_are_not_mixed():
    own = dataclasses.replace(select.datasets()['SimulatedP3'], name='Mine')
    with pytest.raises(RequestError, match='Mine is your own'):
        select.find_dataset('SimulatedN170+Mine', {**select.datasets(), 'Mine': own})
