"""Calibration of results beside their headline, averaged over seeds: in calibration.csv, scores.csv, summary.json and
on the site; and how many results have none."""

from __future__ import annotations

import csv
import json
import shutil

import pytest
from result_files import HISTORIC, store

from jbench.report import calibrated, calibrations, summary
from jbench.report.site import build
from jbench.results import index


def lines(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def written(folder, out):
    found = summary.collect([folder], ['simulated', 'debug'])
    return found, calibrations.write(found.scores, calibrations.of_rows(found.rows), out)


def test_the_calibration_of_results_stands_beside_their_headline(tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    dummy, eegnet = sorted(tmp_path.rglob('seed33.json'))
    found, told = written(tmp_path, tmp_path / 'new')
    assert told == 'calibration.csv: 2 of 2 results'
    table = lines(tmp_path / 'new' / 'calibration.csv')
    assert [line['model'] for line in table] == ['dummy', 'eegnet']
    for line, path, score in zip(table, (dummy, eegnet), found.scores, strict=True):
        wanted = calibrated.of_result(path)
        assert [float(line[k]) for k in calibrations.VALUES] == pytest.approx(
            [getattr(wanted, k) for k in calibrations.VALUES]
        )
        assert float(line['mean']) == score.mean and line['changes'] == 'simulated; debug'
        assert wanted.auroc == pytest.approx(score.metrics['auroc'])
    dummy.with_suffix('.npz').unlink()
    eegnet.with_suffix('.npz').write_bytes(b'no')
    _, told = written(tmp_path, tmp_path / 'new')
    assert told.startswith('calibration.csv: 0 of 2 results, 1 without predictions') and '1 damaged' in told


def test_processes_that_read_predictions_find_what_one_finds(tmp_path, monkeypatch):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    rows = summary.collect([tmp_path], ['simulated', 'debug']).rows
    alone = calibrations.of_rows(rows)
    asked = []
    whole = index.in_shares
    monkeypatch.setattr(index, 'MANY', 1)
    monkeypatch.setattr(index, 'SHARE', 1)
    monkeypatch.setattr(index, 'in_shares', lambda paths, read: asked.append(paths) or whole(paths, read))
    assert calibrations.of_rows(rows) == alone and len(asked[0]) == 2


def test_tables_of_scores_have_calibration_and_auroc(tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    dummy, eegnet = sorted((tmp_path / 'v3').rglob('seed33.json'))
    wanted = calibrated.of_result(eegnet)
    dummy.with_suffix('.npz').unlink()
    found = summary.collect([tmp_path / 'v3'], ['simulated', 'debug'])
    found = found._replace(beside=calibrations.of_rows(found.rows))
    summary.write(found, tmp_path)
    first, second = lines(tmp_path / 'scores.csv')
    assert (first['model'], first['ece'], first['brier']) == ('dummy', '', '')  # its predictions are gone
    assert float(first['auroc']) == found.scores[0].metrics['auroc']  # which the result itself says
    assert [float(second[k]) for k in calibrations.BESIDE] == [wanted.ece, wanted.brier, wanted.auroc]
    said = json.loads((tmp_path / 'summary.json').read_text())
    assert [(c['model'], c['ece_mass']) for c in said['calibration']] == [('eegnet', wanted.ece_mass)]
    (best,) = said['best']
    beside = found.beside[str(dummy if best['model'] == 'dummy' else eegnet)].values
    assert [best[k] for k in calibrations.BESIDE] == [beside[k] for k in calibrations.BESIDE]
    build.build(found, tmp_path)
    table = {line['model']: line for line in json.loads((tmp_path / 'site' / 'index.scores.json').read_text())}
    assert [table['eegnet'][k] for k in calibrations.BESIDE] == [wanted.ece, wanted.brier, wanted.auroc]
    page = (tmp_path / 'site' / 'index.html').read_text()
    assert f'<td class=number>{wanted.ece:.3f}</td>' in page and '<th scope="col" class="number">ECE</th>' in page
    build.build(found._replace(beside={}), tmp_path)  # no column of nothing
    assert 'ECE' not in (tmp_path / 'site' / 'index.html').read_text()


def test_the_auroc_of_windows_is_none_of_recordings(tmp_path):
    store(tmp_path, 'eegnet', 0.7, metrics={'bal_acc': 0.7, 'auroc': 0.8})
    store(tmp_path, 'dummy', 0.5, headline={'level': 'recording'}, metrics={'bal_acc': 0.5, 'auroc': 0.5})
    found = summary.collect([tmp_path])
    beside = calibrations.of_rows(found.rows)
    values = {row.model: beside[row.path].values['auroc'] for row in found.rows}
    assert values == {'eegnet': 0.8, 'dummy': None}


def test_scores_without_predictions_and_published_ones_leave_a_head(tmp_path):
    store(tmp_path, 'eegnet', 0.7)
    _, told = written(tmp_path, tmp_path)
    assert '0 of 1 results, 1 without' in told
    (head,) = (tmp_path / 'calibration.csv').read_text().splitlines()
    calibrations.write([], {}, tmp_path)
    assert (tmp_path / 'calibration.csv').read_text().splitlines() == [head]
