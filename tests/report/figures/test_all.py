"""Every figure of real result files: what is written, what is left out and why, and the same bytes again."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest
from drawn import score, table
from matplotlib import rcParams
from places import FIXTURES
from result_files import HISTORIC, store

from jbench import run
from jbench.report import order, published, ranks, summary
from jbench.report.figures import all as every
from jbench.report.figures import each_task, over_tasks, style
from jbench.results import checked, load_predictions
from jbench.results.schema import as_text


def read(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope='module')
def work(tmp_path_factory):
    """Two real tries on the simulation, with predictions."""
    home = tmp_path_factory.mktemp('work')
    shutil.copytree(HISTORIC / 'v3' / 'results', home / 'results')
    return home


@pytest.fixture(scope='module')
def scores(work):
    return summary.collect([work], ['simulated', 'debug']).scores


@pytest.fixture(scope='module')
def written(scores, tmp_path_factory):
    home = tmp_path_factory.mktemp('figures')
    return home, every.write(scores, home)


WHERE = 'p3-SimulatedP3'


@pytest.mark.slow
def test_the_figures_of_real_results(written):
    home, made = written
    expected = ['heatmap', 'ranks', f'bars-{WHERE}', f'curves-{WHERE}', f'confusion-{WHERE}', f'reliability-{WHERE}']
    assert made.figures == expected
    files = {f'{stem}.{ending}' for stem in expected for ending in ('png', 'svg', 'csv')}
    assert {p.name for p in home.iterdir()} == files | {'index.csv', 'left_out.csv'}
    index = read(home / 'index.csv')
    assert [row['stem'] for row in index] == expected
    assert all('simulated' in row['title'] and 'debug' in row['title'] for row in index)
    assert index[4] == {
        **{'stem': f'confusion-{WHERE}', 'kind': 'confusion', 'origin': 'own', 'task': 'p3', 'dataset': 'SimulatedP3'},
        'title': 'p3@2, SimulatedP3: eegnet, seed 33 (simulated, debug)',
    }
    for stem in expected:
        assert (home / f'{stem}.png').read_bytes().startswith(b'\x89PNG')
        assert b'simulated' in (home / f'{stem}.svg').read_bytes()


def test_what_is_left_out_has_its_reason(written):
    home, made = written
    told = {row['stem']: row['reason'] for row in read(home / 'left_out.csv')}
    assert list(told.items()) == made.left_out
    assert told['critical_difference'] == 'needs two models and two datasets that all have; there are 2 and 1'
    assert told['core_full'] == 'every dataset is a Core one'
    assert told[f'pair-{WHERE}'] == 'fewer than two models that look at the signal'
    assert told[f'values-{WHERE}'] == 'its targets are not values'
    assert told[f'retrieval-{WHERE}'] == 'its targets are not embeddings'
    assert 'no prepared set of it in' in told[f'dataset-{WHERE}']
    assert 'no two models have' in told['parameters'] and 'no two models have' in told['seconds']


def test_tables_are_those_of_the_results(written, work):
    home, _ = written
    (path,) = (work / 'results').rglob('eegnet/*/seed33.json')
    result, predictions = json.loads(path.read_text()), load_predictions(path)
    curves = read(home / f'curves-{WHERE}.csv')
    assert [float(row['train_loss']) for row in curves] == [e['train_loss'] for e in result['history']]
    counts = {(row['true'], row['answer']): int(row['n']) for row in read(home / f'confusion-{WHERE}.csv')}
    said = predictions['outputs'].argmax(1)
    for t, true in enumerate(result['classes']):
        for a, answer in enumerate(result['classes']):
            assert counts[true, answer] == np.sum((predictions['y'] == t) & (said == a))
    bars = {row['model']: float(row['score']) for row in read(home / f'bars-{WHERE}.csv') if row['of'] == 'mean'}
    assert bars['eegnet'] == 100 * result['headline']['value'] and bars['dummy'] == 50


@pytest.mark.slow
def test_the_same_again_in_an_empty_folder_and_over_old_figures(written, scores, tmp_path):
    home, _ = written
    (tmp_path / 'mine.png').write_bytes(b'mine')
    (tmp_path / 'old.csv').write_bytes(b'')
    (tmp_path / 'index.csv').write_text('stem,kind\nold,bars\n../mine,bars\n')
    (tmp_path.parent / 'mine.csv').write_text('')
    before = rcParams.copy()
    every.write(scores, tmp_path)
    assert not (tmp_path / 'old.csv').exists() and (tmp_path.parent / 'mine.csv').exists()
    assert (tmp_path / 'mine.png').read_bytes() == b'mine' and rcParams == before
    for path in home.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_figures_of_the_datasets_with_the_most_models_alone(monkeypatch):
    monkeypatch.setattr(each_task, 'MOST', 2)
    found = table({'a': 0.8, 'b': 0.7, 'c': 0.6})[1:]  # the first task lacks a model
    found += [s._replace(origin='published') for s in found]
    why = 'drawn of the 2 datasets of tasks with the most models'
    lacking = set()
    for plan in each_task.plans(found, ['a', 'b', 'c']):
        try:
            plan.make()
        except each_task.Absent as reason:
            lacking |= {(plan.kind, plan.origin, plan.task)} if why in str(reason) else set()
    kinds = ('bars', 'pair', 'curves', 'confusion', 'reliability', 'values', 'retrieval', 'dataset')
    assert lacking == {*((kind, 'own', 'p3') for kind in kinds), ('bars', 'published', 'p3')}


def test_no_score_and_one_model_are_words(tmp_path):
    made = every.write([], tmp_path / 'none')
    assert made == ([], []) and read(tmp_path / 'none' / 'index.csv') == []
    alone = every.write([score('eegnet', normalised=None, chance=None, per_subject={})], tmp_path / 'one')
    assert alone.figures == ['bars-p3-Real']
    told = dict(alone.left_out)
    assert told['heatmap'] == 'no normalised score' and told['ranks'] == 'no dataset of a task has several models'
    assert told['curves-p3-Real'] == 'no model learns in epochs'
    assert told['confusion-p3-Real'] == told['dataset-p3-Real'] == 'no result file of it'


def test_seed_33_is_shown_or_the_lowest():
    paths = [f'x/seed{k}.json' for k in (5, 33, 7)]
    assert each_task.path_of(score('a', paths=tuple(paths))) == 'x/seed33.json'
    assert each_task.path_of(score('a', paths=('x/seed7.json', 'x/seed5.json'))) == 'x/seed5.json'


@pytest.mark.parametrize('damage', ['removed', 'no predictions', 'other predictions', 'not npz'])
def test_damage_is_told(damage, work, tmp_path):
    home = tmp_path / 'work'
    shutil.copytree(work, home)
    found = summary.collect([home], ['simulated', 'debug']).scores
    (path,) = home.rglob('eegnet/*/seed33.json')
    if damage == 'removed':
        path.unlink()
    elif damage == 'no predictions':
        path.with_suffix('.npz').unlink()
    else:
        path.with_suffix('.npz').write_bytes(b'nothing')
    why = {'removed': 'removed meanwhile', 'no predictions': 'no predictions beside the result'}
    plans = {plan.kind: plan for plan in each_task.plans(found, order.of_scores(found))}
    with pytest.raises(each_task.Absent, match=why.get(damage, 'predictions_sha256')):
        plans['confusion'].make()
    if damage != 'removed':
        assert plans['curves'].make()


@pytest.mark.slow
def test_a_result_outside_of_a_work_folder_and_one_that_no_run_writes(work, tmp_path):
    (path,) = (work / 'results').rglob('eegnet/*/seed33.json')
    for file in path.parent.glob('seed33.*'):
        shutil.copy(file, tmp_path)
    result = json.loads((tmp_path / path.name).read_text())
    result['classes'] = ['alone']
    (tmp_path / path.name).write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    made = every.write(summary.collect([tmp_path], ['simulated', 'debug']).scores, tmp_path / 'out')
    told = dict(made.left_out)
    assert told[f'dataset-{WHERE}'] == 'the result lies in no work folder'
    assert told[f'confusion-{WHERE}'].startswith('damaged: IndexError') and f'curves-{WHERE}' in made.figures


def test_an_estimator_without_epochs_and_several_protocols(tmp_path):
    path = store(tmp_path, 'a', 0.6, history=[])
    store(tmp_path, 'b', 0.7)
    found = summary.collect([tmp_path]).scores
    plans = {plan.kind: plan for plan in each_task.plans(found, ['b', 'a'])}
    _, rows = plans['curves'].make()
    assert {row['model'] for row in rows} == {'b'} and path.exists()


def test_published_scores_have_their_own_figures():
    cells = published.read(FIXTURES / 'neuralbench_results.csv')
    models = order.of_scores(cells)
    assert models[:2] == ['reve', 'labram'] and models[-2:] == ['dummy', 'chance']
    plans = {plan.stem: plan for plan in over_tasks.plans(cells, models)}
    _, rows = plans['ranks-published'].make()
    assert [row['rank'] for row in rows] == [
        row[m] for m in models for _, row in sorted(ranks.ranks(cells).items()) if m in row
    ]
    assert len(rows) == 607 and len(plans['heatmap-published'].make()[1]) > 570
    _, difference = plans['critical_difference-published'].make()
    assert [row['model'] for row in difference][:2] == ['reve', 'labram'] and len(difference) == 17
    kinds = {plan.kind for plan in each_task.plans(cells, models)}
    assert kinds == {'bars'}


def test_one_order_of_own_and_published():
    own, others = table({'b': 0.8, 'a': 0.7}), [s._replace(origin='published') for s in table({'a': 0.9, 'c': 0.5})]
    models = order.of_scores([*own, *others])
    assert models == ['b', 'a', 'c']
    for plan in [*over_tasks.plans([*own, *others], models), *each_task.plans([*own, *others], models)]:
        if plan.kind in ('heatmap', 'ranks', 'bars'):
            shown = list(dict.fromkeys(row['model'] for row in plan.make()[1] if row['model']))
            assert shown == [m for m in models if m in shown] and len(shown) == 2


def test_the_command(tmp_path, capsys, monkeypatch):
    store(tmp_path, 'a', history=[])
    ask = ['report', f'--results={tmp_path}']
    assert run.main([*ask, f'--out={tmp_path / "a"}']) == 0
    assert f'2 figures in {tmp_path / "a" / "figures"}' in capsys.readouterr().out
    assert (tmp_path / 'a' / 'figures' / 'heatmap.svg').is_file()
    assert run.main([*ask, f'--out={tmp_path / "b"}', '--figures=no']) == 0
    assert not (tmp_path / 'b' / 'figures').exists() and 'figures' not in capsys.readouterr().out
    assert run.main([*ask, '--figures=yes']) == 2
    assert '--figures=yes needs --out=DIR' in capsys.readouterr().err
    monkeypatch.setattr(style, 'find_spec', lambda name: None)
    assert run.main([*ask, f'--out={tmp_path / "b"}', '--figures=yes']) == 2
    assert "'.[report]'" in capsys.readouterr().err
    assert run.main([*ask, f'--out={tmp_path / "b"}', '--format=json']) == 0
    json.loads(capsys.readouterr().out)
    assert run.main([*ask, f'--out={tmp_path / "b"}']) == 0
    assert 'no figures: ' in capsys.readouterr().out
