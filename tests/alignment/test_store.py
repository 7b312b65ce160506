"""Packages come back bit for bit, are checked on every read, and are whole or absent."""

from __future__ import annotations

import io
import json
import runpy
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from places import ROOT

from jbench.alignment import assembly, blobs, data, netcdf, rows, stimuli, store
from jbench.spec.errors import RequestError

IDS = ['b', 'a', 'ü']


def pictures(identifier='three', **columns):
    images = list(np.random.default_rng(1).integers(0, 256, (3, 5, 4, 3), dtype=np.uint8))
    table = {'stimulus_id': IDS, 'degrees': [8.0, 4.0, np.nan], 'n': [1, 2, 3], 'seen': [True, False, True]}
    return stimuli.of_arrays(identifier, table | {'label': ['x, "y"', 'two\r\nlines', '']} | columns, images)


def recorded(**attrs):
    values = np.random.default_rng(0).standard_normal((6, 2, 2)).astype(np.float32)
    values[1, 1, 0] = np.nan
    made = assembly.neuroids(
        values,
        presentation={'stimulus_id': IDS * 2, 'repetition': np.repeat([0, 1], 3), 'size': np.arange(6) % 3 / 3},
        neuroid={'neuroid_id': [7, 8], 'region': ['V4', 'IT'], 'good': [True, False]},
        time_bins=[(0, 50), (50, 100.5)],
        stimulus_set='three',
        may_miss=True,
    )
    return made.assign_attrs(identifier='set', **attrs)


@pytest.fixture(params=['folder', 'memory'])
def place(request, tmp_path):
    if request.param == 'folder':
        return tmp_path / 'store'
    return f'memory://{tmp_path.name}/store'


def same(a, b):
    """Every bit: values with the pattern of each NaN, types, coordinates in their order, attributes and their types."""
    assert a.dims == b.dims and a.dtype == b.dtype and a.name == b.name
    assert a.values.tobytes() == b.values.tobytes() and list(a.coords) == list(b.coords)
    for key in a.coords:
        assert a[key].dims == b[key].dims and a[key].dtype == b[key].dtype
        assert a[key].values.tolist() == b[key].values.tolist() or a[key].dtype.kind in 'fmM'
        assert a[key].values.tobytes() == b[key].values.tobytes()
    assert list(a.attrs) == list(b.attrs)
    for key, value in a.attrs.items():
        assert type(value) is type(b.attrs[key])
        np.testing.assert_equal(b.attrs[key], value)
    assert not b.indexes or list(b.indexes) == list(a.indexes)
    return True


def test_an_assembly_comes_back_bit_for_bit(place):
    attrs = {
        'depth_bins': np.array([0.1, 0.25, np.inf], np.float32),
        'n': np.int64(3),
        'plain': {'list': [1, 'two', None], 'pair': (1.5, True)},
        'nothing': float('nan'),
    }
    given_, shown = recorded(**attrs), pictures()
    sha256 = store.package(given_, place, stimuli=shown)
    found = store.load('set', place, sha256=sha256)
    assert same(given_, found.assembly)
    assert found.stimuli.digest == shown.digest and found.stimuli.identifier == 'three'
    pd.testing.assert_frame_equal(found.stimuli.table, shown.table)
    for i in IDS:
        np.testing.assert_array_equal(found.stimuli.image(i), shown.image(i))
    assert store.names(place) == ['set', 'three']
    assert rows.trials(found.assembly).shape == (2, 3, 2, 2)


KINDS = {
    'choices': assembly.behaviour(
        ['cat', 'dög', ''], presentation={'stimulus_id': ['a', 'a', 'b'], 'rt': [0.5, np.nan, 1]}
    ),
    'probabilities': assembly.behaviour(np.eye(3), presentation={'stimulus_id': IDS}, choice=['x', 'y', 'z']),
    'properties': assembly.properties(
        [[1, np.nan]], neuroid={'neuroid_id': ['u']}, bins={'p': [0, 1], 'q': [1, 2, 3]}, number_of_trials=20
    ),
    'rdms': assembly.rdms(np.zeros((2, 3, 3)), presentation={'stimulus_id': IDS}, subject={'subject': ['s', 't']}),
    'big endian': assembly.neuroids(
        np.eye(3, dtype='>f4'), presentation={'stimulus_id': IDS}, neuroid={'neuroid_id': IDS}
    ),
    'one row': assembly.neuroids(np.ones((1, 1)), presentation={'stimulus_id': ['a']}, neuroid={'neuroid_id': [0]}),
}


@each('name', KINDS)
def test_every_kind_comes_back(name):
    data_, layout = netcdf.write(KINDS[name])
    assert same(KINDS[name], netcdf.read(io.BytesIO(data_), json.loads(json.dumps(layout))))


@pytest.mark.slow
@each(
    'dtype', ['f2', 'f4', 'f8', 'i1', 'i2', 'i4', 'i8', 'u1', 'u2', 'u4', 'u8', 'bool', 'M8[ns]', 'm8[s]', '>i4', 'U3']
)
def test_every_type_of_value_and_coordinate_comes_back(dtype, tmp_path):
    numbers = np.array([[0, 1, 2], [3, 4, 120]]).astype('i8' if dtype[0] in 'Mm' else dtype).astype(dtype)
    made = xr.DataArray(numbers, dims=('presentation', 'neuroid'), coords={'stimulus_id': ('presentation', ['a', 'b'])})
    made = made.assign_coords(neuroid_id=('neuroid', numbers[1]), values=('presentation', numbers[:, 0]), scalar=3)
    data_, layout = netcdf.write(made)
    (tmp_path / 'a.nc').write_bytes(data_)
    with netcdf.read(tmp_path / 'a.nc', layout) as back:
        assert same(made, back)


@pytest.mark.slow
@given(
    st.lists(
        st.text(st.characters(exclude_characters='\0', exclude_categories=['Cs']), min_size=1), min_size=1, unique=True
    ),
    st.lists(st.floats(width=32), min_size=12, max_size=12),
)
@settings(max_examples=15, deadline=None)
def test_any_text_and_any_number_comes_back(ids, numbers):
    made = xr.DataArray(
        np.resize(np.array(numbers, np.float32), (len(ids), 3)),
        dims=('presentation', 'neuroid'),
        coords={'stimulus_id': ('presentation', np.array(ids))},
        attrs={'numbers': numbers, 'ids': tuple(ids)},
    )
    data_, layout = netcdf.write(made)
    assert same(made, netcdf.read(io.BytesIO(data_), layout))


def test_values_are_read_when_they_are_asked_for(tmp_path):
    store.package(recorded(), tmp_path, stimuli=pictures())
    found = store.load('set', tmp_path).assembly
    assert not found.variable._in_memory
    assert found[1:3, 0].values.shape == (2, 2) and not found.variable._in_memory
    found.close()


def test_texts_are_packaged_too(place):
    shown, made, _ = data.load('GeneratedSentences', '')
    store.package(made, place, stimuli=shown)
    found = store.load('GeneratedSentences', place)
    assert found.assembly is not None and [found.stimuli.text(i) for i in shown.ids] == [
        shown.text(i) for i in shown.ids
    ]


@pytest.mark.slow
def test_the_same_again_changes_nothing_and_another_content_needs_another_name(place):
    given_ = recorded()
    first = store.package(given_, place, stimuli=pictures())
    assert store.package(given_, place) == first  # the stimuli are there
    changed = given_.copy(data=given_.values + 1)
    with pytest.raises(RequestError, match=r"stands for 'set' with another content; choose another"):
        store.package(changed, place)
    with pytest.raises(RequestError, match=r"stimuli/three.json stands for 'three'"):
        store.package(pictures(n=[1, 2, 4]), place)
    second = store.package(changed, place, identifier='set 2')
    assert second != first and store.load('set 2', place).assembly.attrs['identifier'] == 'set'
    with pytest.raises(RequestError, match=r'manifest .*, expected .*another version'):
        store.load('set', place, sha256=second)


# ---- what is refused ----


@pytest.mark.parametrize(
    ('make', 'shown', 'said'),
    [
        (lambda: recorded().drop_attrs(), pictures(), 'has no name: give identifier='),
        (
            lambda: recorded().rename(neuroid='unit'),
            pictures(),
            'dimensions presentation, unit, time_bin, expected one',
        ),
        (lambda: recorded().assign_coords(repetition=('presentation', [0] * 6)), pictures(), 'comes several times'),
        (lambda: recorded().assign_coords(neuroid_id=('neuroid', [1, 1])), pictures(), 'neuroid_id 1 comes several'),
        (recorded, None, "'three' is not in store .* give it with stimuli="),
        (lambda: recorded(stimulus_set=''), None, 'names no stimulus set'),
        (recorded, stimuli.choose(pictures(), ['a', 'b'], 'two'), "1 of its stimuli are not in two, 'ü' first"),
        (lambda: recorded(stimulus_set_digest='0' * 64), pictures(), 'has digest .*, expected 000000000000'),
        (recorded, stimuli.absent('three', {'stimulus_id': IDS}, 'no images'), 'cannot be shown: no images'),
        (recorded, pictures(what=[None, 'a', 'b']), "column 'what' holds (None|nan), which cannot be stored"),
        (lambda: recorded(odd=object()), pictures(), 'attribute value .* cannot be stored'),
        (lambda: recorded().astype('c8'), pictures(), 'complex64 cannot be stored'),
        (lambda: recorded().assign_coords(t=('neuroid', ['a\0', 'b\0c'])), pictures(), 'cannot be stored: .*NULL'),
    ],
)
def test_what_cannot_be_kept_is_refused_and_leaves_no_name(make, shown, said, tmp_path):
    with pytest.raises(RequestError, match=said):
        store.package(make(), tmp_path, stimuli=shown)
    assert 'set' not in store.names(tmp_path)


def test_unknown_names_and_protocols(tmp_path):
    store.package(pictures('Cowley2023'), tmp_path)
    with pytest.raises(RequestError, match=r"unknown set in store .*did you mean 'Cowley2023'"):
        store.load('Cowley2032', tmp_path)
    with pytest.raises(RequestError, match=r'store nowhere://x: .*name a folder'):
        store.load('a', 'nowhere://x')


def objects(folder):
    return {p.name: p for p in (folder / 'objects').rglob('*') if p.is_file()}


@pytest.mark.slow
def test_damage_is_seen_where_it_is_and_packaging_again_mends_it(tmp_path):
    given_, shown = recorded(), pictures()
    store.package(given_, tmp_path, stimuli=shown)
    facts = store.verify('set', tmp_path)
    assert facts['counts'] == {'presentation': 6, 'neuroid': 2, 'time_bin': 2} and facts['stimuli'] == 3
    for name, path in objects(tmp_path).items():
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(RequestError, match=rf'sha256 .*, expected {name[:12]}.*(package the set|copy)'):
            store.verify('set', tmp_path)
        store.package(given_, tmp_path, stimuli=shown)
        assert store.verify('set', tmp_path) == facts
        path.unlink()
        with pytest.raises(RequestError, match=f'missing .*{name}.*package it again'):
            store.verify('set', tmp_path)
        store.package(given_, tmp_path, stimuli=shown)
        assert store.verify('set', tmp_path) == facts


def test_a_damaged_name_is_told(tmp_path):
    store.package(pictures(), tmp_path)
    (tmp_path / 'stimuli' / 'three.json').write_text('{"identifier"')
    with pytest.raises(RequestError, match=r'stimuli/three.json is damaged'):
        store.load('three', tmp_path)


def test_a_set_whose_writing_stops_is_absent(tmp_path, monkeypatch):
    write, n_written = blobs.write, []

    def stops(at, name, data_):
        n_written.append(name)
        if len(n_written) > at_most:
            raise KeyboardInterrupt
        write(at, name, data_)

    monkeypatch.setattr(blobs, 'write', stops)
    given_, shown = recorded(), pictures()
    for at_most in range(20):
        n_written.clear()
        try:
            store.package(given_, tmp_path / str(at_most), stimuli=shown)
        except KeyboardInterrupt:
            assert 'set' not in store.names(tmp_path / str(at_most))
        else:
            break
    assert 6 < at_most < 19 and store.verify('set', tmp_path / str(at_most))


def test_a_written_test_passes_and_fails_where_the_set_changed(tmp_path):
    folder = tmp_path / 'store'
    store.package(recorded(), folder, stimuli=pictures())
    path = store.write_test('set', folder, tmp_path / 'test_set.py')

    found = runpy.run_path(str(path))
    assert [name for name in found if name.startswith('test_')] == ['test_the_set_is_there_whole_and_the_same']
    found['test_the_set_is_there_whole_and_the_same']()
    next(p for p in objects(folder).values() if p.read_bytes().startswith(b'\x89PNG')).unlink()
    with pytest.raises(RequestError, match='is missing'):
        found['test_the_set_is_there_whole_and_the_same']()
    found['EXPECTED']['counts']['presentation'] = 7
    store.package(recorded(), folder, stimuli=pictures())
    with pytest.raises(AssertionError):
        found['test_the_set_is_there_whole_and_the_same']()


@pytest.mark.slow
def test_pytest_runs_a_written_test(tmp_path):
    store.package(pictures(), tmp_path / 'store')
    path = store.write_test('three', tmp_path / 'store', tmp_path / 'test_three.py')
    command = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-c', '/dev/null', str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert '1 passed' in done.stdout and done.returncode == 0


@pytest.mark.slow
def test_a_real_set_comes_back(tmp_path, alignment_dir):
    for name in ('Cowley2023.210325', 'Kriegeskorte92.human'):
        shown, made, _ = data.load(name, alignment_dir)
        store.package(made, tmp_path, stimuli=shown)
        found = store.load(name, tmp_path)
        assert same(made, found.assembly)
        last = shown.ids[-1]
        np.testing.assert_array_equal(found.stimuli.image(last), shown.image(last))
