"""Exports hold the scores that they are made of, in the words of the place that reads them."""

from __future__ import annotations

import json

import pytest
import yaml

from jbench.report import exports
from jbench.report.aggregate import Score

NAMES = Score._fields


def score(model='eegnet', mean=0.75, **more):
    """A score of p3 on one dataset, with what a test is about changed."""
    facts = dict.fromkeys(NAMES) | {
        'device': 'eeg',
        'category': 'bci',
        'task': 'p3',
        'version': 2,
        'dataset': 'Schreuder2010New',
        'model': model,
        'metric': 'bal_acc',
        'better': 'higher',
        'mean': mean,
        'sd': 0.0125,
        'n_seeds': 3,
        'interval': (0.7, 0.8),
        'chance': 0.5,
        'protocol': 'p3@2/Schreuder2010New, bal_acc, split abc',
        'metrics': {'bal_acc': mean, 'auroc': 0.8},
        'seconds': {'fit': 10.0, 'test': 1.0},
        'origin': 'own',
        'changes': (),
    }
    return Score(**facts | more)


TWO = [score(), score('a_b|c"', 0.625, sd=None), score(task='age', metric='pearsonr', mean=0.51, protocol='age')]


def test_mteb_gets_a_file_a_score_with_the_headline_as_its_main_score(tmp_path):
    paths = exports.mteb(TWO, tmp_path)
    assert len(set(paths)) == 3 and paths[0].parts[-4:-2] == ('results', 'eegnet')
    content = json.loads(paths[0].read_text())
    (test,) = content['scores']['test']
    assert (test['main_score'], test['auroc'], content['evaluation_time']) == (0.75, 0.8, 11.0)
    assert content['task_name'] == 'p3@2' and content['jbench']['n_seeds'] == 3


def test_what_an_earlier_export_left_goes_and_others_files_stay(tmp_path):
    first = exports.mteb(TWO, tmp_path)
    own = tmp_path / 'results' / 'a' / '1' / 'p3.json'
    files = {
        own: '{"mteb_version": "1"}',
        own.with_name('list.json'): '[1]',
        own.with_name('no.json'): 'no',
        own.with_suffix('.md'): '',
    }
    own.parent.mkdir(parents=True)
    for path, text in files.items():
        path.write_text(text)
    beside = first[0].with_name('mine.txt')
    beside.write_text('')
    (kept,) = exports.mteb(TWO[1:2], tmp_path)
    left = {path for path in (tmp_path / 'results').rglob('*') if path.is_file()}
    assert left == {kept, beside, *files} and kept in first
    beside.unlink()
    exports.mteb(TWO[1:2], tmp_path)
    exports.mteb(TWO[:1], tmp_path)
    assert not kept.parent.parent.exists() and first[0].is_file()


def test_a_model_card_gets_each_model_once_with_all_of_its_datasets():
    found = yaml.safe_load(exports.huggingface(TWO))['model-index']
    assert [m['name'] for m in found] == ['eegnet', 'a_b|c"']
    first, second = found[0]['results']
    assert first['metrics'][0] == {'type': 'balanced_accuracy', 'name': 'bal_acc, 3 seeds, per cent', 'value': 75.0}
    assert second['metrics'][0]['value'] == 0.51 and second['task']['type'] == 'brain-decoding'


def test_tables_have_a_row_a_protocol_and_a_column_a_model():
    lines = exports.markdown(TWO).splitlines()
    assert lines[0] == '| task | metric | eegnet | a\\_b\\|c" |'
    assert lines[2] == '| p3@2/Schreuder2010New | bal\\_acc (%) | **75.0** ± 1.2 | 62.5 |'
    assert lines[3] == '| age@2/Schreuder2010New | pearsonr | 0.510 ± 0.013 |  |'


def test_latex_is_escaped_and_the_best_of_several_is_bold():
    text = exports.latex(TWO)
    assert r'eegnet & a\_b|c"' in text
    assert r'bal\_acc (\%) & \textbf{75.0} $\pm$ 1.2 & 62.5 \\' in text
    assert r'0.510 $\pm$ 0.013 &  \\' in text
    assert text.count('&') == 9 and text.startswith('\\begin{tabular}{llrr}')


@pytest.mark.parametrize(('better', 'best'), [('higher', r'\textbf{0.800}'), ('lower', r'\textbf{0.200}')])
def test_the_best_is_the_lowest_where_lower_is_better(better, best):
    two = [score(m, v, metric='rmse', better=better, sd=None) for m, v in (('a', 0.8), ('b', 0.2))]
    assert best in exports.latex(two) and exports.latex(two).count('textbf') == 1


def test_what_is_no_measurement_says_so_everywhere(tmp_path):
    one = [score(changes=('simulated', 'debug', 'partial: subjects'))]
    words = ' (simulated, debug, partial)'
    (path,) = exports.mteb(one, tmp_path)
    content = json.loads(path.read_text())
    assert content['task_name'] == f'p3@2{words}' and content['jbench']['changes'][0] == 'simulated'
    ((result,),) = (m['results'] for m in yaml.safe_load(exports.huggingface(one))['model-index'])
    assert result['task']['name'] == f'p3@2{words}' and result['dataset']['name'] == f'Schreuder2010New{words}'
    for form in (exports.markdown, exports.latex):
        assert f'p3@2/Schreuder2010New{words}' in form(one)


def test_latex_has_no_command_of_a_name():
    assert r'\textbackslash{}input\{x\} &' in exports.latex([score(dataset=r'A\input{x}')])


def test_names_stay_text_in_one_cell():
    odd = score('<img src=x onerror=y()>\n\n*a*\x1b[1m`&~', dataset='[d](x)\u2028')
    lines = exports.markdown([odd]).split('\n')
    assert len(lines) == 4 and lines[0].endswith(r' &lt;img src=x onerror=y()&gt;??\*a\*?\[1m\`&amp;\~ |')
    assert r'p3@2/\[d\](x)?' in lines[2]
    assert '=y()>??*a*?[1m`' in exports.latex([odd]) and len(exports.latex([odd]).split('\n')) == 8
    ((model,),) = [yaml.safe_load(exports.huggingface([odd]))['model-index']]
    assert model['name'].startswith('<img src=x onerror=y()>??') and model['results'][0]['dataset']['type'] == '[d](x)?'


def test_names_that_differ_in_odd_characters_alone_keep_their_own_files(tmp_path):
    two = [score('a|b', 0.1), score('a b', 0.2), score('../..', 0.3), score('..', 0.4)]
    paths = exports.mteb(two, tmp_path)
    assert [json.loads(p.read_text())['scores']['test'][0]['main_score'] for p in paths] == [0.1, 0.2, 0.3, 0.4]
    assert all(len(p.relative_to(tmp_path).parts) == 4 and '..' not in p.parts for p in paths)
