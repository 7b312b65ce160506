"""What counts by --also says so wherever the site and the tables rank it; of dates, paths, figures too."""

from __future__ import annotations

import csv
import json

import pytest
from result_files import store

from jbench.report import summary, text
from jbench.report.site import build
from jbench.results import index
from jbench.results.index import LeftOut
from jbench.stores import address

ALSO = ('simulated', 'debug', 'partial')


@pytest.fixture(scope='module')
def home(tmp_path_factory):
    """A report with its site: two models on a measured task and on a generated one, and one on the measured alone."""
    work, out = tmp_path_factory.mktemp('work'), tmp_path_factory.mktemp('out')
    for model, value in (('eegnet', 0.7), ('dummy', 0.5)):
        store(work, model, value)
        store(work, model, value, task='mine', simulated=True, protocol={'partial': ['3 of 5 recordings']})
    store(work, 'deep4net', 0.6)
    report = summary.collect([work], ALSO)
    summary.write(report, out)
    build.build(report, out)
    return out


def records(path):
    return json.loads(path.read_text())


def test_models_by_rank_are_marked(home):
    lines = records(home / 'site' / 'index.models.json')
    found = {r['model']: r['marks'] for r in lines if r['over'].startswith('all tasks (Core')}
    assert found == {m: ['some partial', 'some simulated'] for m in ('eegnet', 'dummy')} | {'deep4net': []}
    page = (home / 'site' / 'index.html').read_text()
    assert 'scores of 5 result files (some partial, some simulated).' in page
    assert '>Marks</th>' in page and 'some partial, some simulated</td>' in page


def test_results_and_the_best_are_marked(home):
    changes = ['simulated', 'partial: 3 of 5 recordings']
    assert [r['changes'] for r in records(home / 'site' / 'results.results.json') if r['task'] == 'mine'] == [
        changes
    ] * 2
    assert 'partial: 3 of 5 recordings</td>' in (home / 'site' / 'results.html').read_text()
    best = {r['name']: r['best'] for r in records(home / 'site' / 'tasks.tasks.json')}
    assert best == {'mine@2': 'eegnet (simulated, partial)', 'p3@2': 'eegnet'}
    (dataset,) = records(home / 'site' / 'datasets.datasets.json')
    assert dataset['best'] == 'eegnet (simulated, partial), eegnet'


def test_files_of_a_report_are_marked(home):
    best = {b['task']: b['changes'] for b in records(home / 'summary.json')['best']}
    assert best == {'mine': ['simulated', 'partial: 3 of 5 recordings'], 'p3': []}
    with open(home / 'models.csv', newline='') as file:
        marked = {(m['table'], m['model']): m['marks'] for m in csv.DictReader(file)}
    assert marked['core', 'eegnet'] == 'some partial; some simulated' and marked['core', 'deep4net'] == ''


def test_without_anything_marked_there_is_no_column(tmp_path):
    store(tmp_path)
    page = build.build(summary.collect([tmp_path]), tmp_path).read_text()
    assert '>Marks</th>' not in page and 'of 1 result files.' in page


def test_the_newest_is_of_a_date_that_can_be_believed(tmp_path):
    store(tmp_path, seed=1, date='2026-01-31T12:00:00Z')
    for seed, date in ((2, '2999-01-01T00:00:00Z'), (3, 'tomorrow'), (4, None)):
        store(tmp_path, seed=seed, date=date)
    foot = build.build(summary.collect([tmp_path]), tmp_path).read_text().partition('<footer>')[2]
    assert 'the newest is of 2026-01-31T12:00:00Z<' in foot


def test_nothing_tells_where_the_copy_of_a_store_lies(tmp_path, monkeypatch):
    monkeypatch.setenv('JBENCH_CACHE', str(tmp_path / 'cache'))
    monkeypatch.setattr(address, 'find_spec', lambda name: True)
    folder = 's3://bucket/board'
    path = str(address.parse(folder, '--results').copy / 'results' / 'seed1.json')
    report = summary.Report((folder, 'mine'), 1, [], [], [LeftOut(path, f'repeated: a copy of {path}')])
    build.build(report, tmp_path)
    (line,) = records(tmp_path / 'site' / 'left_out.left_out.json')
    assert line == {
        'kind': 'repeated',
        'reason': 'a copy of board/results/seed1.json',
        'path': 'board/results/seed1.json',
    }


def test_no_csv_file_of_a_report_computes_anything(tmp_path):
    written = text.as_csv(
        [{'=a': '=1+1', 'b': -1.5, 'c': None}, {'=a': '@x\ud800', 'b': '-', 'c': "'=1"}], ['=a', 'b', 'c']
    )
    assert [*csv.reader(written.splitlines())] == [["'=a", 'b', 'c'], ["'=1+1", '-1.5', ''], ["'@x?", "'-", "'=1"]]
    assert [text.unharmed(text.harmless(t)) for t in ('=1', '-', "'a", 'a')] == ['=1', '-', "'a", 'a']
    store(tmp_path, '=cmd()', task='-t', dataset='+d')
    summary.write(summary.collect([tmp_path]), tmp_path)
    for name in ('models.csv', 'scores.csv'):
        assert not any(cell.startswith(text.FORMULA) for line in csv.reader((tmp_path / name).open()) for cell in line)


def test_figures_of_a_name_like_a_formula_stand_on_its_page(tmp_path):
    store(tmp_path, dataset='=d')
    (tmp_path / 'figures').mkdir()
    lines = [{'stem': 'dataset-d', 'kind': 'dataset', 'task': 'p3', 'dataset': '=d', 'title': '=d, as it is'}]
    (tmp_path / 'figures' / 'index.csv').write_text(text.as_csv(lines, list(lines[0])))
    for ending in ('svg', 'csv'):
        (tmp_path / 'figures' / f'dataset-d.{ending}').write_text('')
    build.build(summary.collect([tmp_path]), tmp_path)
    (page,) = (tmp_path / 'site' / 'datasets').glob('*.html')
    assert 'alt="=d, as it is"' in page.read_text()
    assert len(index.scan([tmp_path]).rows) == 1
