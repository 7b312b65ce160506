"""Results of alignment in tables, in a report, on the site; what is wrong with one that somebody hands in."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from alignment_results import store

from jbench.report import alignment_table, summary, verify
from jbench.report.figures import all as every
from jbench.report.site import build
from jbench.results import checked
from jbench.results.schema import as_text


@pytest.fixture(scope='module')
def work(tmp_path_factory):
    """Two models on a benchmark with a ceiling, one on another without."""
    home = tmp_path_factory.mktemp('work')
    x = np.random.default_rng(0).normal(size=(8, 8))
    rdms = {'rdm_model': np.abs(x + x.T), 'rdm_recording': np.abs(x + x.T)}
    store(home, model='pixels', r=0.3, arrays=rdms)
    store(home, model='gabor', r=0.5, seed=33)
    store(home, model='gabor', r=0.6, seed=34)
    store(home, 'Other.IT-pls', 'gabor', r=0.2, ceiling=None, parent='IT')
    return home


@pytest.fixture(scope='module')
def found(work):
    return summary.collect([work])


def test_seeds_are_averaged_and_notes_said_once(found):
    rows = {(r['benchmark'], r['model']): r for r in alignment_table.rows(found.alignment)}
    gabor = rows['Made.V4-pls', 'gabor']
    assert gabor['scores'].keys() == {'33', '34'} and gabor['score'] == pytest.approx(
        np.mean([*gabor['scores'].values()])
    )
    assert gabor['raw'] == pytest.approx(0.55, abs=0.02) and gabor['ceiling'] == 0.8
    assert gabor['notes'] == ['neuroid 3 is constant']
    other = rows['Other.IT-pls', 'gabor']
    assert other['ceiling'] is None and other['score'] == other['raw']
    text = alignment_table.text(rows.values())
    assert 'Made.V4-pls@1' in text and '[1] neuroid 3 is constant' in text and text.count('neuroid 3') == 1


def test_what_a_model_lacks_counts_nothing_in_the_tree(found):
    nodes = {(r['model'], r['node']): r for r in alignment_table.tree_rows(found.alignment)}
    v4, it = nodes['gabor', 'V4'], nodes['gabor', 'IT']
    assert nodes['gabor', 'neural_vision']['score'] == pytest.approx((v4['score'] + it['score']) / 2)
    pixels = nodes['pixels', 'neural_vision']
    assert pixels['score'] == pytest.approx(nodes['pixels', 'V4']['score'] / 2)
    assert (pixels['scored'], pixels['children'], nodes['pixels', 'IT']['score']) == (1, 2, None)


@pytest.mark.slow
def test_a_report_has_them_beside_decoding(work, found, tmp_path, capsys):
    assert found.left_out == [] and found.n_files == 4
    summary.write(found, tmp_path)
    with open(tmp_path / 'alignment.csv', newline='') as file:
        assert {row['model'] for row in csv.DictReader(file)} == {'gabor', 'pixels'}
    assert len(json.loads((tmp_path / 'summary.json').read_text())['alignment']) == 3
    made = every.write(found.scores, tmp_path / 'figures', found.alignment)
    assert {'alignment_tree', 'alignment_scores-Made.V4-pls', 'alignment_rdms-Made.V4-pls'} <= {*made.figures}
    assert dict(made.left_out)['alignment_over_time-Made.V4-pls'] == 'its score has no bins of time'
    build.build(found, tmp_path)
    page = (tmp_path / 'site' / 'brains.html').read_text()
    assert '<a href="brains.html">Brains</a>' in (tmp_path / 'site' / 'index.html').read_text()
    assert 'Made.V4-pls@1' in page and 'alignment_tree.svg' in page


def test_a_whole_result_has_no_problem(work):
    for path in work.rglob('seed*.json'):
        assert verify.problems(path) == []


@pytest.mark.parametrize(
    ('changes', 'problem'),
    [
        ({'headline': {'value': 0.99}}, 'headline.value: written 0.99, expected 0.'),
        ({'metrics': {'raw': 0.9}}, 'metrics.raw: written 0.9, expected 0.'),
        ({'task': 'alignment/Other'}, 'task: written alignment/Other, expected alignment/Made.V4-pls'),
        ({'key': '0' * 16}, 'key: written 0000000000000000, expected'),
    ],
)
def test_a_changed_result_is_told(changes, problem, tmp_path):
    path = store(tmp_path)
    result = checked.read(path)
    for name, value in changes.items():
        result[name] = {**result[name], **value} if isinstance(value, dict) else value
    path.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    assert any(problem in text for text in verify.problems(path))


def test_values_that_were_changed_are_told(tmp_path):
    path = store(tmp_path)
    np.savez(path.with_suffix('.npz'), values=np.zeros(3))
    assert 'predictions_sha256' in verify.problems(path)[0]
