"""Scores of subjects as a DataFrame: MOABB's columns, and its own code reads it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from places import ROOT
from result_files import store

import jbench.report
from jbench.report import data_frame
from jbench.spec.errors import MissingExtraError, RequestError


@pytest.fixture
def table(tmp_path):
    for model, value in (('eegnet', 0.8), ('dummy', 0.5)):
        for seed in (1, 2):
            store(tmp_path, model, value, seed=seed, per_subject={'S01': value + seed / 100, 'S02': None})
    store(tmp_path, 'ctnet', 0.5, simulated=True)
    return jbench.report.frame(tmp_path)


def test_a_line_a_subject_and_seed(table):
    assert len(table) == 8 and table.attrs['left_out'][0][1].startswith('simulated')
    (line,) = table[(table.pipeline == 'eegnet') & (table.seed == 2) & (table.subject == 'S01')].to_dict('records')
    assert line['score'] == pytest.approx(0.82) and line['headline'] == 0.8 and line['dataset'] == 'Real'
    assert (line['samples'], line['channels'], line['n_classes'], line['session']) == (256, 16, 2, 'all')
    assert line['time'] == pytest.approx(0.1008695) and line['metric'] == 'bal_acc'
    assert table[table.subject == 'S02'].score.isna().all()


def test_what_is_no_measurement_says_so(tmp_path):
    store(
        tmp_path,
        'eegnet',
        0.5,
        simulated=True,
        protocol={'suite': None, 'custom': [], 'partial': ['1 of 2'], 'debug': False},
    )
    store(tmp_path, 'ctnet', 0.5)
    table = jbench.report.frame(tmp_path, also=['simulated', 'partial'])
    assert {*table[table.pipeline == 'eegnet'].changes} == {'simulated; partial: 1 of 2'}
    assert {*table[table.pipeline == 'ctnet'].changes} == {''}


def test_columns_are_those_of_moabb(table, tmp_path):
    results = pytest.importorskip('moabb.analysis.results')
    import h5py
    import numpy as np

    with h5py.File(tmp_path / 'x.hdf5', 'w') as file:  # as Results.add stores a score
        group = file.create_group('digest')
        group.attrs['name'] = 'pipeline'
        data = group.create_group('dataset')
        text = h5py.special_dtype(vlen=str)
        data.create_dataset('id', data=np.array([['1', '0']], dtype='S'))
        data.create_dataset('data', data=[[0.5, 1.0, 10.0, 5.0, 2.0]])
        data.attrs.update({'channels': 3, 'n_sessions': 1})
        data.attrs.create('columns', ['score', 'time', 'samples', 'samples_test', 'n_classes'], dtype=text)
        theirs = results.Results._to_dataframe_from_file(file)
    assert set(theirs.columns) == set(data_frame.MOABB)


def test_moabb_reads_it(table):
    analysis = pytest.importorskip('moabb.analysis.meta_analysis')
    scores = table.dropna(subset='score').groupby(['dataset', 'pipeline', 'subject'], as_index=False).score.mean()
    assert set(scores.pipeline) == {'eegnet', 'dummy'}
    wide = analysis.collapse_session_scores(table.dropna(subset='score'))
    assert set(wide.columns) >= {'pipeline', 'dataset', 'subject', 'score'} and len(wide) == 2


def test_nothing_and_wrong_folders(tmp_path):
    empty = jbench.report.frame([tmp_path])
    assert list(empty.columns) == [*data_frame.MOABB, *data_frame.OURS] and not len(empty)
    with pytest.raises(RequestError, match='no such folder'):
        jbench.report.frame(tmp_path / 'none')


def test_without_pandas_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'pandas', None)
    with pytest.raises(MissingExtraError, match=r'\[report\]'):
        jbench.report.frame(tmp_path)


def test_the_name_stays_the_function_and_nothing_heavy_comes_with_it():
    code = (
        'import sys, jbench.report; assert not {"numpy", "pandas"} & set(sys.modules)\n'
        'import jbench.report.data_frame; assert callable(jbench.report.frame)'
    )
    subprocess.run([sys.executable, '-c', code], check=True, cwd=ROOT)
