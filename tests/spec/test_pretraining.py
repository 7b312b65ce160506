"""What pretrained weights have seen: what is not known is never called clean."""

from __future__ import annotations

import pytest
from each import each

from jbench.models import MODELS
from jbench.models.foundation import MODELS as ENCODERS
from jbench.plan import select
from jbench.spec.checkpoints import CHECKPOINTS
from jbench.spec.pretraining import HISTORIES, SAME, Corpus, History, history, verdict


def status(model: str, *dataset: str, family: str = 'foundation', **more: object) -> str:
    return verdict(model, family, dataset, **more).status  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ('model', 'dataset', 'expected'),
    [
        ('bendr', 'Lopez2017Tuab', 'overlap'),  # a part of TUEG
        ('bendr', 'Kalunga2016Online', 'clean'),
        ('labram', 'Schalk2004Bci2000', 'overlap'),  # the name that NeuralBench's list misses
        ('labram', 'Lopez2017Tuab', 'unknown'),  # left out by its authors, but not the people of TUAR, TUEP, TUSZ, TUSL
        ('biot', 'Hamid2020Tuar', 'unknown'),  # TUAB and TUEV, of the same hospital, were in it
        ('reve_base', 'Shirazi2024HbnL100Mini', 'overlap'),  # a part of what was
        ('jbench_tiny', 'Lopez2017Tuab', 'clean'),
        ('labram', 'Kalunga2016Online', 'clean'),
        ('labram', 'Korczowski2019BrainBi2015A', 'overlap'),
        ('labram', 'Korczowski2019BrainBi2015B', 'clean'),
        ('labram', 'Liu2024Eeg2video', 'unknown'),  # of the same laboratory as recordings that nobody names
        ('luna_base', 'Harati2015Tuev', 'overlap'),
        ('luna_large', 'Hamid2020Tuar', 'unknown'),
        ('luna_base', 'Zyma2019Electroencephalograms', 'clean'),
        ('reve_base', 'Kalunga2016Online', 'overlap'),
        ('reve_large', 'Lopez2017Tuab', 'unknown'),  # in the prose alone
        ('reve_small', 'Zyma2019Electroencephalograms', 'unknown'),  # 92 datasets, of which 36 are named
        ('signal_jepa_pre_local', 'Lee2019EegErp', 'overlap'),
        ('biot:dropout=0.1', 'Dan2023Bids', 'overlap'),
        ('labram:weights=none', 'Schalk2004Bci2000', 'clean'),
        ('labram:weights=1a2b3c4d', 'Kalunga2016Online', 'unknown'),
        ('net', 'Kalunga2016Online', 'unknown'),
        ('net:weights=none', 'Kalunga2016Online', 'unknown'),
        ('labram_mine@1a2b3c4d', 'Kalunga2016Online', 'unknown'),
        ('eegpt', 'Liu2024Eeg2video', 'unknown'),
    ],
)
def test_verdicts(model, dataset, expected):
    assert status(model, dataset) == expected


def test_models_that_learn_from_the_training_part_alone_are_clean():
    assert status('eegnet', 'Lopez2017Tuab', family='classic') == status('dummy', 'x', family='baselines') == 'clean'


def test_a_result_of_an_unknown_model_is_taken_at_its_word():
    assert status('mine', 'P3', family='user', declared=('p3',)) == 'overlap'
    assert status('mine', 'P3', family='user', declared=('other',)) == 'clean'
    assert status('labram_mine', 'P3', family='user', declared=('P3',)) == 'overlap'
    assert status('mine', 'P3', family='classic', declared=('P3',)) == 'overlap'


def test_aliases_and_subjects_count(monkeypatch):
    part = History((Corpus('some', ('A',), 'a test', subjects=('1', '2')),))
    monkeypatch.setitem(HISTORIES, 'labram', part)
    assert status('labram', 'B', 'a') == 'overlap'
    assert status('labram', 'A', subjects=('2', '3')) == 'overlap'
    assert status('labram', 'A', subjects=('3',)) == 'clean'


def test_what_nobody_looked_up_is_said_so():
    found = verdict('reve_small', 'foundation', ('Zyma2019Electroencephalograms',))
    assert found.why == 'not all that its weights have seen is named here'
    assert 'with perhaps people of this dataset, was in its pretraining' in verdict('biot', '', ('Hamid2020Tuar',)).why
    part = History((Corpus('some', ('Lee2019EegMi',), 'a test', subjects=('1',)),), left_out=('Lee2019EegErp',))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HISTORIES, 'labram', part)
        assert status('labram', 'Lee2019EegErp') == 'overlap', 'kept out, and its people were not'
        assert status('labram', 'Lee2019EegMi', subjects=('2',)) == 'clean', 'other people of the same set'


@pytest.mark.parametrize(
    ('learnt', 'tested'),
    [
        ('Kappenman2021ErpP3', 'Kappenman2021ErpN170'),
        ('Shin2017OpenB', 'Shin2017OpenA'),
        ('CabreraCastillos2023BurstVep40', 'CabreraCastillos2023BurstCvep100'),
        ('Oikonomou2016ComparativeA', 'Oikonomou2016ComparativeC'),
    ],
)
def test_sets_of_the_same_people_overlap(learnt, tested):
    assert status('eegnet:weights=1a2b3c4d', tested, declared=(learnt,), family='classic') == 'overlap'
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HISTORIES, 'labram', History((Corpus('some', (learnt,), 'a test'),)))
        assert status('labram', tested) == 'overlap'


def test_names_of_sets_of_the_same_people_are_those_of_the_tables():
    known = select.datasets()
    unknown = {name for group in SAME for name in group} - {*known}
    assert unknown <= {'Schalk2004Bci', 'PhysionetMI'}, 'names of NeuralBench and of MOABB'
    assert {
        n for n in known if n.startswith(('Kappenman2021Erp', 'Shin2017', 'CabreraCastillos2023', 'Oikonomou2016'))
    } <= {name for group in SAME for name in group}


@each('model', ENCODERS, ids=lambda m: m.name)
def test_every_encoder_has_a_checkpoint_and_a_history(model):
    seen = history(model.name)
    assert seen is not None and model.name in CHECKPOINTS and MODELS[model.name].pretraining == seen.datasets


def test_names_that_jbench_has_are_its_names():
    """Those it does not have are NeuralBench's, of datasets that may come."""
    known = {n for d in select.datasets().values() for n in (d.name, *d.aliases)}
    named = {d for h in HISTORIES.values() for d in h.datasets}
    lower = {n.lower() for n in known}
    assert all(n in known for n in named if n.lower() in lower)
    absent = {'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl', 'Schalk2004Bci', 'Detti2020Eeg'}
    absent |= {'Ofner2017Upper', 'Khan2022Nmt', 'VanDijk2022Two', 'Accou2024Sparrkulee'}
    assert named - known == absent, 'a new dataset of one of these names is an overlap by itself'
