"""`python -m jbench.report`: tables of many results, published ones, and the check of what is handed in."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys

import pytest
from places import FIXTURES, ROOT
from result_files import HISTORIC, store

from jbench import run
from jbench.report import published, summary
from jbench.results import checked
from jbench.results.index import LeftOut
from jbench.results.schema import as_text

PUBLISHED = str(FIXTURES / 'neuralbench_results.csv')


@pytest.fixture(scope='module')
def results(tmp_path_factory):
    """Two models on two datasets of one task and one of another; one result that is simulated, one that was edited."""
    work = tmp_path_factory.mktemp('work')
    for seed in (1, 2):
        for model, value in (('eegnet', 0.8), ('dummy', 0.5)):
            store(work, model, value + seed / 100, seed=seed)
            store(work, model, 1 - value, seed=seed, dataset='Other', config={'task': {'datasets': ['Real', 'Other']}})
    store(work, 'eegnet', 0.6, task='age')
    store(work, 'eegnet', 0.6, task='age', seed=34, simulated=True)
    edited = store(work, 'eegnet', 0.6, task='age', seed=35)
    edited.write_text(edited.read_text().replace('0.6', '0.9'))
    return work


@pytest.fixture
def ask(capsys, monkeypatch):
    """Run `jbench report` here: status, stdout, stderr."""
    monkeypatch.setenv('COLUMNS', '100')

    def run_it(*argv):
        capsys.readouterr()
        try:
            status = run.main(['report', *map(str, argv)])
        except SystemExit as leave:
            status = leave.code
        return status, *capsys.readouterr()

    return run_it


def lines(path):
    with open(path, newline='', encoding='utf-8') as file:
        return list(csv.DictReader(file))


def test_the_files(results, ask, tmp_path):
    status, _, err = ask(f'--results={results}', f'--out={tmp_path / "new" / "out"}', '--figures=no')
    assert (status, err) == (0, '')
    home = tmp_path / 'new' / 'out'
    assert sorted(p.stem for p in home.iterdir()) == ['calibration', 'left_out', 'models', 'scores', 'summary']
    said = json.loads((home / 'summary.json').read_text())
    core, full = said['tables']
    assert (core['table'], core['n_tasks'], core['n_datasets']) == ('core', 2, 2)
    assert (full['table'], full['n_tasks'], full['n_datasets']) == ('full', 2, 3)
    assert [(m['model'], m['mean_rank']) for m in core['models']] == [('eegnet', 1.0), ('dummy', 2.0)]
    assert [(m['model'], m['mean_rank']) for m in full['models']] == [('dummy', 1.5), ('eegnet', 1.5)]
    assert said['n_files'] == 11 and said['n_left_out'] == {'simulated': 1, 'damaged': 1}
    assert said['rules'] == list(summary.RULES) and said['folders'] == [str(results)]
    assert [b['model'] for b in said['best']] == ['eegnet', 'dummy', 'eegnet']
    models = lines(home / 'models.csv')
    assert [(m['table'], m['model'], float(m['mean_rank'])) for m in models] == [
        (t['table'], m['model'], m['mean_rank']) for t in said['tables'] for m in t['models']
    ]
    scores = {(s['task'], s['dataset'], s['model']): s for s in lines(home / 'scores.csv')}
    assert float(scores['p3', 'Real', 'eegnet']['mean']) == pytest.approx(0.815)
    assert scores['p3', 'Real', 'eegnet']['rank'] == '1' and scores['age', 'Real', 'eegnet']['rank'] == ''
    assert {s['overlap'] for s in scores.values()} == {'clean'}
    assert [(m['n_clean'], m['n_overlap'], m['n_unknown']) for m in models] == [
        (m['n_datasets'], '0', '0') for m in models
    ]
    left_out = lines(home / 'left_out.csv')
    assert [x['reason'].partition(':')[0] for x in left_out] == ['simulated', 'damaged']
    assert left_out[1]['path'].endswith('seed35.json') and 'changed since written' in left_out[1]['reason']


def test_what_is_shown(results, ask):
    status, out, _ = ask('--results', results)
    assert status == 0
    for words in (
        'own results, core: 2 tasks, 2 datasets',
        'own results, full: 2 tasks, 3 datasets',
        *summary.RULES,
        '11 result files, 2 left out:',
        'simulated: 1',
        'seed35.json: changed since written',
    ):
        assert words in out, words
    assert 'eegnet classic 1.00 0.000' in ' '.join(out.split())
    assert out.count('datasets seen in pretraining: none, all clean\n') == 2, 'core and full'


def test_the_score_that_ranked_in_2025_is_shown(tmp_path, ask):
    for task, value in (('response_time', 0.94021), ('externalizing', 0.99717)):
        name = f'challenge2025/{task}'
        error = {'name': 'normalized_rmse', 'better': 'lower', 'value': value}
        config = {'task': {'metric': 'normalized_rmse', 'category': 'challenge2025'}}
        store(tmp_path, 'eegnet', value, task=name, headline=error, chance=1.0, config=config)
    assert 'lower is better): eegnet 0.98008 (Real)' in ask(tmp_path)[1]


def test_folders_may_stand_in_several_ways(results, ask):
    age, p3 = results / 'results' / 'age@2', results / 'results' / 'p3@2'
    first = ask(f'--results={age}', f'--results={p3}', '--format=json')
    said = json.loads(first[1])
    assert said['n_files'] == 11
    for argv in ([f'--results={age}', p3], ['--results', age, p3], [age, p3]):
        assert ask(*argv, '--format=json') == first


@pytest.mark.slow
def test_published_and_own_scores_stand_in_one_table(results, ask, tmp_path):
    _, out, _ = ask(f'--results={results}', f'--published={PUBLISHED}', f'--out={tmp_path}', '--figures=no')
    assert 'own results, core: 2 tasks' in out and 'published results, core: 36 tasks' in out
    origins = [m['origin'] for m in lines(tmp_path / 'models.csv') if m['table'] == 'core']
    assert origins == ['own'] * 2 + ['published'] * 17
    scores = lines(tmp_path / 'scores.csv')
    ranks = {(s['origin'], s['task'], s['dataset'], s['model']): s['rank'] for s in scores}
    assert ranks['own', 'p3', 'Real', 'dummy'] == '2'  # among our own
    assert ranks['published', 'p3', 'Schreuder2010New', 'eegnet'] == '6'
    seen = {(s['model'], s['dataset']): s['overlap'] for s in scores if s['origin'] == 'published'}
    assert seen['biot', 'Lopez2017Tuab'] == 'overlap' and seen['eegnet', 'Lopez2017Tuab'] == 'clean'
    assert seen['reve_base', 'Schreuder2010New'] == 'unknown'
    (biot,) = (m for m in lines(tmp_path / 'models.csv') if (m['table'], m['model']) == ('full', 'biot'))
    own = [status for (model, _), status in seen.items() if model == 'biot']
    assert int(biot['n_overlap']) >= own.count('overlap') > 0 and int(biot['n_clean']) < int(biot['n_datasets'])
    (reve,) = (m for m in lines(tmp_path / 'models.csv') if (m['table'], m['model']) == ('core', 'reve_base'))
    counts = [int(reve[f'n_{status}']) for status in ('clean', 'overlap', 'unknown')]
    assert counts[0] == 0 < min(counts[1:]) and sum(counts) == int(reve['n_datasets'])
    shown = f'REVE {counts[1]} overlap, {counts[2]} unknown of {sum(counts)}; '
    for text in (out, ask('published', PUBLISHED)[1]):
        (line,) = (x for x in text.splitlines() if x.startswith('datasets seen in pretraining: REVE'))
        assert shown in line and 'CBraMod 3 overlap, 0 unknown of 36' in line and line.endswith('; all others clean')
        assert 'EEGNet' not in line


def test_published_models_keep_names_that_are_ours_beside_our_names(ask, tmp_path):
    head, line = f'{",".join(published.COLUMNS)}\n', 'eeg,p3,A,{},foundation,test/bal_acc,{},1,3\n'
    file, folder = tmp_path / 'scores.csv', tmp_path / 'work'
    store(folder)
    for models, expected in (
        (('luna', 'luna_large', 'reve'), ['luna', 'luna_large', 'reve_base']),
        (('luna', 'reve_base'), ['luna_large', 'reve_base']),
    ):
        file.write_text(head + ''.join(line.format(model, 60 + k) for k, model in enumerate(models)))
        status, out, err = ask(folder, f'--published={file}', '--format=json')
        assert (status, err) == (0, '')
        (table,) = (t for t in json.loads(out)['tables'] if (t['origin'], t['table']) == ('published', 'full'))
        assert sorted(m['model'] for m in table['models']) == expected


def test_a_subcommand_is_one_where_a_folder_has_its_name(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store(tmp_path / 'verify')
    assert ask('verify', 'verify', '--without_predictions')[1].splitlines()[-1].startswith('1 results, ')
    status, _, said = ask('verify')
    assert status == 2 and 'required: DIR' in said
    for argv in (['./verify'], ['--results=verify']):
        status, out, _ = ask(*argv)
        assert status == 0 and 'own results, core: 1 tasks' in out


def test_simulated_results_count_where_asked(ask):
    status, out, _ = ask(f'--results={HISTORIC}')
    assert status == 0 and 'no result counts' in out and 'simulated: 6' in out
    status, out, _ = ask(f'--results={HISTORIC}', '--also=simulated,debug')
    assert status == 0 and 'own results, core: 1 tasks' in out and 'older version: 2' in out


def test_text_of_results_commands_no_terminal(ask, tmp_path):
    store(tmp_path, '\x1b[31mred', 0.9, family='\x1b]0;x')
    store(tmp_path, '[bold]b', 0.7)
    _, out, _ = ask(f'--results={tmp_path}')
    assert '\x1b' not in out
    # in the tables of models and tasks, as the best, and as one whose pretraining nobody knows
    assert out.count('?[31mred') == 2 and out.count('[bold]b') == 4


def test_published(ask):
    status, out, err = ask('published', PUBLISHED, '--format=json')
    said = json.loads(out)
    assert (status, err) == (0, '')
    assert [(m['model'], round(m['mean_normalised_rank'], 2)) for m in said['models'][:4]] == [
        ('reve', 0.20),
        ('labram', 0.21),
        ('luna', 0.30),
        ('ctnet', 0.32),
    ]
    status, out, _ = ask('published', PUBLISHED)
    assert status == 0 and 'ranks: 603 of 607 as published' in out
    assert 'age/eegconformer: 6, published 7; the rounded mean ties with simpleconv_time_agg' in out


def test_as_a_module_from_any_folder(tmp_path):
    (tmp_path / 'numpy.py').write_text('raise SystemExit(9)')
    command = [sys.executable, '-m', 'jbench.report', 'published', PUBLISHED, '--format=json']
    env = {**os.environ, 'PYTHONPATH': str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0 and len(json.loads(done.stdout)['models']) == 17, done.stderr


@pytest.mark.slow
def test_a_report_needs_no_jax(results):
    code = (
        'import sys; from jbench import run; from jbench.results import index; import jbench.report\n'
        f'index.scan([{str(results)!r}]); assert "jax" not in sys.modules\n'
        f'assert run.main(["report", {str(results)!r}]) == 0; assert "jax" not in sys.modules'
    )
    subprocess.run([sys.executable, '-c', code], check=True, capture_output=True, cwd=ROOT)


def test_verify(ask, tmp_path):
    assert ask('verify', HISTORIC) == (0, '6 results, 0 with problems (0 in all)\n', '')
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    path = next(tmp_path.rglob('eegnet/*/seed33.npz'))
    path.unlink()
    status, out, _ = ask('verify', tmp_path)
    assert status == 1 and f'{path}: no such file: put the predictions there, or take scores as written: --with' in out
    assert out.splitlines()[-1] == '2 results, 1 with problems (1 in all)'
    assert ask('verify', tmp_path, '--without_predictions')[:2] == (0, '2 results, 0 with problems (0 in all)\n')
    edited = path.with_suffix('.json')
    edited.write_text(edited.read_text().replace('"value": 0.', '"value": 0.9', 1))
    status, out, _ = ask('verify', tmp_path, '--without_predictions')
    assert status == 1 and f'{edited}: changed since written' in out
    edited.unlink()
    edited.symlink_to(tmp_path / 'none')
    assert f'{edited}: a link to a file that is not there\n' in ask('verify', tmp_path, '--without_predictions')[1]


def test_a_result_without_predictions_has_no_autopsy_and_no_advice_to_remove_it(ask, tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    path = next(tmp_path.rglob('dummy/*/seed33.json'))
    path.with_suffix('.npz').unlink()
    status, _, said = ask('autopsy', path)
    assert status == 2 and 'put the predictions of seed33.json there' in said and 'remove' not in said


def test_a_third_side_of_a_comparison_is_told(ask, results):
    status, _, said = ask('compare', 'eegnet', 'dummy', 'ctnet', f'--results={results}')
    assert status == 2 and 'compare takes two models, result files or folders, and ctnet is one more' in said
    assert ask('compare', 'eegnet', 'dummy', results)[0] == 0


def test_verify_sees_changes_that_a_result_does_not_tell(ask, tmp_path):
    shutil.copytree(HISTORIC / 'v3', tmp_path / 'v3')
    path = next(tmp_path.rglob('eegnet/*/seed33.json'))
    result = json.loads(path.read_text())
    result['config']['overrides'] = [['recipe.lr', 0.01]]
    path.write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
    status, out, _ = ask('verify', tmp_path)
    assert status == 1 and "'custom': ['recipe.lr=0.01']" in out and out.count('\n') == 2


@pytest.mark.parametrize(
    ('argv', 'words'),
    [
        ([], '--results is missing'),
        (['--results=none'], 'none: no such folder'),
        (['--results={tmp}'], 'no results under'),
        (['verify', '{tmp}'], 'no results under'),
        (['verify'], 'required: DIR'),
        (['verifi', '{tmp}'], "unknown command of jbench report 'verifi'; did you mean 'verify'?"),
        (['{tmp}/nowhere'], '/nowhere: no such folder; expected a folder with results'),
        (['--result={tmp}'], "unknown argument '--result'; did you mean '--results' or"),
        (['{work}', '--also=tiny'], "unknown kind of result 'tiny'"),
        (['{work}', '--published=none.csv'], 'cannot read none.csv'),
        (['published', 'none.csv'], 'cannot read none.csv'),
        (['published', 'none.csv', '--fromat=json'], "unknown argument '--fromat'; did you mean '--format'?"),
        (['{work}', '--out={tmp}/file'], 'cannot write'),
        (['export', '--to=mteb', '--results={work}', '--out=/proc/x'], 'cannot write /proc/x'),
        (['export', '--to=mteb', '--results={work}', '--out={tmp}/file'], 'cannot write'),
        (['{work}', '--format=xml'], "invalid choice: 'xml'"),
    ],
)
def test_wrong_requests_are_one_line_and_status_2(argv, words, results, ask, tmp_path):
    (tmp_path / 'file').write_text('')
    status, out, err = ask(*(a.format(tmp=tmp_path, work=results) for a in argv))
    assert (status, out) == (2, '') and words in err and err.startswith('jbench: ')


@pytest.mark.parametrize('argv', [['--help'], ['published', '--help'], ['verify', '--help']])
def test_help(argv, ask):
    status, out, _ = ask(*argv)
    assert status == 0 and 'usage: jbench report' in out


def test_nothing_is_left_of_a_file_that_cannot_be_written(results, tmp_path, monkeypatch):
    found = summary.collect([results])
    summary.write(found, tmp_path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    monkeypatch.setattr(os, 'replace', lambda *a: (_ for _ in ()).throw(OSError(28, 'No space left on device')))
    with pytest.raises(Exception, match='free space'):
        summary.write(found._replace(left_out=[LeftOut('x', 'y')]), tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_what_is_no_measurement_says_so_on_every_table(ask):
    where = [f'--results={HISTORIC}', '--also=simulated,debug']
    _, out, _ = ask(*where)
    assert 'own results, core: 1 tasks, 1 datasets (debug, simulated)' in out
    assert 'p3@2 (simulated, debug), bal_acc (%)' in out and 'p3 (simulated, debug) eegnet' in out
    for form in ('latex', 'markdown', 'huggingface'):
        assert 'SimulatedP3 (simulated, debug)' in ask('export', f'--to={form}', *where)[1]


def test_what_ranks_come_to_is_shown_and_in_the_summary(results, ask, tmp_path):
    _, out, _ = ask(f'--results={results}', f'--out={tmp_path}', '--figures=no')
    for line in (
        'core: which models differ is not asked: needs two models and two datasets that all have',
        'core against full: all models have the same mean rank',
        'best of each task, core: age eegnet; p3 eegnet',
        'calibration.csv: 0 of 9 results, 9 without predictions beside them',
    ):
        assert line in out, line
    said = json.loads((tmp_path / 'summary.json').read_text())
    assert said['tables'][1]['alike']['n_models'] == 2 and said['tables'][0]['marks'] == []
    assert said['core_against_full'][0]['reason'] == 'all models have the same mean rank'
    _, out, _ = ask(f'--results={results}', f'--published={PUBLISHED}')
    assert 'core: cannot be told apart: REVE, LaBraM, ' in out and '17 of 17 models; Friedman' in out
    assert 'best of baselines against best of classic: better on 4 of 36 datasets, mean difference' in out


def test_models_on_few_datasets_stand_below_a_line(ask, tmp_path):
    for task in ('p3', 'age', 'sex'):
        store(tmp_path, 'eegnet', 0.6, task=task)
        store(tmp_path, 'dummy', 0.5, task=task)
    store(tmp_path, 'deep4net', 0.9)
    _, out, _ = ask(f'--results={tmp_path}')
    words = ' '.join(out.partition('core: ')[2].split())
    first, line, last = words.partition('--- on fewer than half of the datasets:')
    assert line and 'eegnet classic' in first and 'dummy' in first and 'deep4net' not in first
    assert last.lstrip().startswith('deep4net classic 1.00')


def test_scores_have_one_head_with_and_without_scores(results, tmp_path):
    heads = []
    for name, folder in (('some', results), ('none', HISTORIC)):
        summary.write(summary.collect([folder]), tmp_path / name)
        heads.append((tmp_path / name / 'scores.csv').read_text().splitlines())
    assert heads[0][0] == heads[1][0] and len(heads[1]) == 1 and len(heads[0]) > 1
    assert heads[0][0].startswith('device,category,task,') and heads[0][0].endswith('seconds_test,overlap,changes')


def test_old_figures_do_not_stand_beside_new_tables(results, ask, tmp_path):
    home = tmp_path / 'figures'
    home.mkdir()
    (home / 'index.csv').write_text('stem,kind\nranks,ranks\n../mine,bars\n')
    for name in ('ranks.png', 'ranks.svg', 'ranks.csv', 'left_out.csv', 'own.png'):
        (home / name).write_text('')
    (tmp_path / 'mine.png').write_text('')
    _, out, _ = ask(f'--results={results}', f'--out={tmp_path}', '--figures=no')
    assert [p.name for p in home.iterdir()] == ['own.png'] and (tmp_path / 'mine.png').exists()
    assert f'1 figures of an earlier report removed from {home}' in out
    (home / 'index.csv').write_text('of,mine\nranks,x\n')
    ask(f'--results={results}', f'--out={tmp_path}', '--figures=no')
    assert sorted(p.name for p in home.iterdir()) == ['index.csv', 'own.png']
