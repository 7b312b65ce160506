"""Every line of the tables of benchmarks: what it names is there, and what is published of it stands in it."""

from __future__ import annotations

import collections
import dataclasses
import hashlib

import pytest

from jbench.alignment import checks, data, procedures, select
from jbench.alignment.properties import BENCHMARKS as PROPERTIES
from jbench.spec.benchmark import AlignmentCell
from jbench.spec.errors import RequestError
from jbench.spec.identity import from_json, to_json

ALL = select.benchmarks()


@pytest.mark.parametrize('benchmark', ALL.values(), ids=lambda b: b.identifier)
def test_what_a_line_names_is_there(benchmark):
    assert checks.check(benchmark) is benchmark and benchmark.procedure in procedures.PROCEDURES
    assert (benchmark.data in data.SETS) != bool(benchmark.missing)
    assert benchmark.citation.startswith('@') and benchmark.title and benchmark.visual_degrees >= 0
    if benchmark.procedure == 'properties':
        assert benchmark.identifier.partition('_')[2] in PROPERTIES


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'procedure': 'neurl'}, 'procedure'),
        ({'metric': 'spearmann'}, "unknown metric of benchmark .* 'spearmann'"),
        ({'ceiling': 'split_half'}, 'unknown ceiling'),
        ({'ceiled': 'ratoi'}, 'unknown ceiled'),
        ({'parent': 'V44'}, "unknown parent .* did you mean 'V4'"),
        ({'version': '2'}, "found '2', expected int"),
        ({'procedure': 'rsa', 'metric': 'rdm', 'ceiling': ''}, "say 'ratio'"),
        ({'procedure': 'train_test', 'per': 'subject', 'ceiling': 'cross_subject'}, 'not of each subject; leave per'),
        ({'per': 'subject'}, r"per='subject' is of procedure='train_test' .* not of 'neural'; leave per out"),
        ({'ceiled': 'above_chance'}, 'needs chance: say chance='),
        ({'ceiled': 'explained_variance_per_neuroid', 'ceiling': 'cross_subject'}, 'a ceiling of each neuroid'),
        ({'ceiled': 'explained_variance_per_neuroid', 'constant_ceiling': 0.8}, 'no constant_ceiling'),
        ({'ceiled': 'explained_variance_per_neuroid', 'metric': 'cka'}, 'a regression as metric'),
    ],
)
def test_what_means_nothing_is_refused_before_anything_runs(changes, reason):
    with pytest.raises(RequestError, match=reason):
        checks.check(dataclasses.replace(ALL['Cowley2023.V4-pls'], **changes))


def test_neuroids_each_beside_their_own_ceiling_or_without_any_are_allowed():
    line = dataclasses.replace(ALL['Cowley2023.V4-pls'], ceiled='explained_variance_per_neuroid')
    for ceiling in ('internal_consistency', ''):
        checks.check(dataclasses.replace(line, ceiling=ceiling))


def test_the_identifiers_of_the_tutorials_are_declared():
    families = collections.Counter(name.partition('.')[0].partition('-')[0] for name in ALL)
    assert {'MajajHong2015', 'FreemanZiemba2013', 'Kar2019', 'Papale2025', 'tong', 'Bracci2019'} <= {*families}
    assert {'Rajalingham2018', 'Hebart2023', 'Cowley2023'} <= {*families}
    assert sum(name.startswith('Marques2020_') for name in ALL) == 22
    assert sum(name.startswith('Geirhos2021') for name in ALL) == 34


def test_a_comparison_travels_as_json():
    known = select.candidates()['pixels']
    for benchmark in ALL.values():
        one = AlignmentCell(benchmark=benchmark, candidate=known)
        assert from_json(AlignmentCell, to_json(one)) == one and len(one.key) == 16


def test_words_about_a_benchmark_are_no_part_of_its_key():
    one = AlignmentCell(benchmark=ALL['Cowley2023.V4-pls'], candidate=select.candidates()['pixels'])
    told = dataclasses.replace(one, benchmark=dataclasses.replace(one.benchmark, title='other', parent='IT'))
    asked = dataclasses.replace(one, benchmark=dataclasses.replace(one.benchmark, metric='ridge'))
    assert told.key == one.key != asked.key


@pytest.mark.parametrize(
    ('text', 'n'),
    [
        ('alignment', len(ALL)),
        ('alignment/Geirhos2021', 17),
        ('alignment/cowley2023.v4-PLS', 1),
        ('alignment/V1-orientation,alignment/Cowley2023.V4-pls', 8),
        ('alignment/MajajHong2015.V4-pls@4', 1),
    ],
)
def test_names_nodes_and_lists(text, n):
    assert select.asked(text) and len(select.select_benchmarks(text).benchmarks) == n


@pytest.mark.parametrize(
    ('text', 'reason'),
    [
        ('alignment/Cowley2023.V4', 'did you mean'),
        ('alignment/MajajHong2015.V4-pls@3', 'has version 4 alone'),
        ('alignment/nowhere.py', 'no such file'),
    ],
)
def test_a_wrong_name_is_told(text, reason):
    with pytest.raises(RequestError, match=reason):
        select.select_benchmarks(text)


def test_a_layer_stands_for_every_region():
    (one,) = select.select_candidates('resnet18:layer=layer3')
    assert one.layer == 'layer3'
    every = select.select_candidates('hmax:layer=all')
    assert [c.layer for c in every] == ['s1', 'c1', 's2', 'c2']
    keys = {AlignmentCell(benchmark=ALL['Cowley2023.V4-pls'], candidate=c).key for c in every}
    assert len(keys) == 4


def test_one_file_of_weights_is_for_all_layers_of_a_model(tmp_path):
    (path := tmp_path / 'w.safetensors').write_bytes(b'weights')
    layers = select.select_candidates('resnet18:layer=all')
    made, files_of = select.with_weights(layers, str(path))
    assert len(made) > 1 and {c.weights for c in made} == {hashlib.sha256(b'weights').hexdigest()}
    assert files_of == {'resnet18': path}
    with pytest.raises(RequestError, match='one file for 2 models'):
        select.with_weights([*layers, *select.select_candidates('resnet50')], str(path))
    with pytest.raises(RequestError, match='no such file or folder'):
        select.with_weights(layers, 'x' * 300)


def test_decoding_and_alignment_are_asked_apart():
    assert not select.asked('p3,ssvep')
    with pytest.raises(RequestError, match='ask for one kind'):
        select.asked('alignment/V4,p3')
