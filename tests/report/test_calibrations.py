"""calibration.csv: what the calibration of each result says, averaged over seeds; and how many have none."""

from __future__ import annotations

import csv
import shutil

import pytest
from result_files import HISTORIC, store

from jbench.report import calibrated, calibrations, summary


def test_the_calibration_of_results_stands_beside_their_headline(tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    dummy, eegnet = sorted(tmp_path.rglob('seed33.json'))
    scores = summary.collect([tmp_path], ['simulated', 'debug']).scores
    assert calibrations.write(scores, tmp_path / 'new') == 'calibration.csv: 2 of 2 results'
    lines = list(csv.DictReader((tmp_path / 'new' / 'calibration.csv').read_text().splitlines()))
    assert [line['model'] for line in lines] == ['dummy', 'eegnet']
    for line, path, score in zip(lines, (dummy, eegnet), scores, strict=True):
        wanted = calibrated.of_result(path)
        assert [float(line[k]) for k in calibrations.VALUES] == pytest.approx(
            [getattr(wanted, k) for k in calibrations.VALUES]
        )
        assert float(line['mean']) == score.mean and line['changes'] == 'simulated; debug'
    dummy.with_suffix('.npz').unlink()
    eegnet.with_suffix('.npz').write_bytes(b'no')
    told = calibrations.write(scores, tmp_path / 'new')
    assert told.startswith('calibration.csv: 0 of 2 results, 1 without predictions') and '1 damaged' in told


def test_scores_without_predictions_and_published_ones_leave_a_head(tmp_path):
    store(tmp_path, 'eegnet', 0.7)
    found = summary.collect([tmp_path])
    assert '0 of 1 results, 1 without' in calibrations.write(found.scores, tmp_path)
    (head,) = (tmp_path / 'calibration.csv').read_text().splitlines()
    calibrations.write([], tmp_path)
    assert (tmp_path / 'calibration.csv').read_text().splitlines() == [head]
