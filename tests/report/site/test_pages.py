"""The leaderboard as files: what its pages say, that they are whole, and that no text of a result becomes markup."""

from __future__ import annotations

import csv
import json
import re
import runpy
from html.parser import HTMLParser

import html5lib
import pytest
from places import FIXTURES, ROOT
from result_files import store

from jbench import run
from jbench.report import summary
from jbench.report.overlap import overlap
from jbench.report.site import build, columns, markup, records, tables
from jbench.report.site.markup import Addresses
from jbench.spec.errors import RequestError

PUBLISHED = str(FIXTURES / 'neuralbench_results.csv')
HOSTILE = '<script>alert(1)</script>'
ENDS = '</script><img src=x onerror="alert(2)">'
FORMULA = '=1+1'
BROKEN = runpy.run_path(str(ROOT / 'docs' / 'make_site.py'))['broken']
KNOWN = {'task': 'ssvep', 'dataset': 'Wang2017Benchmark'}


def add(work, model, value, **changes):
    low_high = {'value': value, 'interval': [value - 0.1, value + 0.1], 'n_subjects': 12}
    return store(work, model, value, headline=low_high, chance=0.5, dummy=0.5, **changes)


@pytest.fixture(scope='module')
def report(tmp_path_factory):
    """Two models on a known task in two versions, and on one of the user's; names that are markup; what is left out."""
    work = tmp_path_factory.mktemp('work')
    for seed in (1, 2):
        add(work, 'eegnet', 0.7 + seed / 100, seed=seed, **KNOWN)
        add(work, 'dummy', 0.5, seed=seed, **KNOWN)
    first = {'task_version': 1, 'config': {'task': {'recipe': {'published': True}}}}
    add(work, 'eegnet', 0.1, **KNOWN, **first)
    add(work, 'eegnet', 0.8, protocol={'custom': ['recipe.lr=0.1']}, **KNOWN, key='custom')
    add(work, HOSTILE, 0.6, task=ENDS, dataset=FORMULA)
    add(work, '-dot\x07', 0.55, task=ENDS, dataset=FORMULA)
    add(work, 'eegnet', 0.6, task='age', simulated=True)
    return summary.collect([work], publication=PUBLISHED)


@pytest.fixture(scope='module')
def site(report, tmp_path_factory):
    """The folder of the site of it, with a figure over tasks and one of a task."""
    out = tmp_path_factory.mktemp('out')
    (out / 'figures').mkdir()
    lines = [
        'stem,kind,origin,task,dataset,title',
        'ranks,ranks,own,,,Ranks',
        'bars-ssvep,bars,own,ssvep,Wang2017Benchmark,"ssvep@2, Wang2017Benchmark"',
        'gone,bars,own,ssvep,Wang2017Benchmark,"ssvep@2, Wang2017Benchmark"',
        '../evil,ranks,own,,,Evil',
    ]
    (out / 'figures' / 'index.csv').write_text('\n'.join(lines))
    for stem in ('ranks', 'bars-ssvep'):
        (out / 'figures' / f'{stem}.svg').write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
        (out / 'figures' / f'{stem}.csv').write_text('a\n1\n')
    assert build.build(report, out) == out / 'site' / 'index.html'
    return out / 'site'


class Page(HTMLParser):
    """The elements of a page, its text, and the data of its tables."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.text, self.data, self.inside = [], '', [], None
        self.feed(path.read_text(encoding='utf-8'))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside == 'script':
            self.data.append(json.loads(text))
        else:
            self.text += f'{text} '


def pages(site):
    return sorted(site.rglob('*.html'))


def records_of(path):
    return json.loads(path.read_text())


@pytest.mark.slow
def test_every_page_is_well_formed_and_its_links_lead_somewhere(site):
    assert len(pages(site)) > 90 and BROKEN(site) == []
    for path in [p for p in pages(site) if p.parent == site or 'ssvep' in p.name or 'eegnet' in p.name]:
        html5lib.HTMLParser(strict=True).parse(path.read_text(encoding='utf-8'))
    for path in pages(site):
        page = Page(path)
        for column in (c for data in page.data for c in data['columns']):
            assert all((path.parent / link).is_file() for link in column.get('links', ()) if link)
        ids = [a['id'] for _, a in page.elements if 'id' in a]
        assert len(ids) == len(set(ids))


def test_models_beside_brains_have_a_page_where_there_are_some(site):
    assert not (site / 'brains.html').exists()
    assert not any('Brains' in path.read_text() for path in (site / 'index.html', site / 'tasks.html'))


@pytest.mark.slow
def test_nothing_is_asked_of_a_server(site):
    for path in pages(site):
        for tag, given in Page(path).elements:
            address = given.get('src') or (given.get('href') if tag == 'link' else None)
            assert address is None or not re.match(r'(?!data:,$)[a-z]+:|//', address), (path, tag, given)
    for path in (site / 'assets').iterdir():
        assert not re.search(r'url\(|@import|fetch\(|XMLHttp|https?:|innerHTML|eval\(', path.read_text()), path


@pytest.mark.slow
def test_texts_of_results_stay_texts(site):
    for path in pages(site):
        page = Page(path)
        assert {t for t, _ in page.elements} <= KNOWN_TAGS, path
        scripts = [a for t, a in page.elements if t == 'script']
        assert all(a.get('type') == 'application/json' or a['src'].endswith(('theme.js', 'table.js')) for a in scripts)
        assert not any(name.startswith('on') for _, a in page.elements for name in a)
    index = Page(site / 'index.html')
    assert HOSTILE in index.text and ENDS in index.text and '-dot?' in index.text
    words = [w for data in index.data for c in data['columns'] for w in c['words']]
    assert {HOSTILE, f'{ENDS}@2', FORMULA, '-dot?'} <= set(words)
    assert markup.escape('a\ud800\0"') == 'a??&quot;' and '<' not in markup.script_json(['</script>'])


KNOWN_TAGS = set(
    'html head meta title link script body a header nav ul li button main h1 h2 p span section div table colgroup col '
    'thead tbody tr th td details summary dl dt dd figure img figcaption footer'.split()
)


def test_cells_of_csv_files_are_harmless_in_a_spreadsheet():
    got = tables.as_csv([{'a': '=1+1', 'b': -1.5, 'c': ['@x', 'y'], 'd': None, 'e': '+1', 'f': 'a,"b"\n', 'g': '-2'}])
    assert list(csv.reader(got.splitlines())) == [
        ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
        ["'=1+1", '-1.5', "'@x, y", '', "'+1", 'a,"b"?', "'-2"],
    ]


@pytest.mark.slow
def test_every_table_is_there_as_csv_and_json(site):
    for path in pages(site):
        page = Page(path)
        links = [a['href'] for t, a in page.elements if t == 'a' and 'download' in a]
        assert len([x for x in links if 'figures/' not in x]) == 2 * len(page.data)
        for link, data in zip(sorted(x for x in links if x.endswith('.json')), page.data, strict=len(page.data) == 1):
            if len(page.data) == 1:
                assert len(records_of(path.parent / link)) == data['n']
    scores = records_of(site / 'index.scores.json')
    with open(site / 'index.scores.csv', newline='', encoding='utf-8') as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(scores) and list(lines[0]) == list(scores[0])
    assert [float(x['mean']) for x in lines] == [x['mean'] for x in scores]


def test_scores_are_those_of_the_report_and_rank_in_their_protocol_alone(report, site):
    every = records_of(site / 'index.scores.json')
    found = {(r['origin'], r['task'], r['version'], r['model'], *r['changes']): r for r in every}
    ours = found['own', 'ssvep', 2, 'eegnet']
    assert ours['mean'] == pytest.approx(0.715) and ours['n_seeds'] == 2 and (ours['rank'], ours['of']) == (1, 2)
    assert (ours['normalised'], ours['normalised_low'], ours['normalised_high']) == (
        pytest.approx(0.43), pytest.approx(0.23), pytest.approx(0.63)
    )  # fmt: skip
    assert found['own', 'ssvep', 2, 'dummy']['rank'] == 2 and ours['suites'] == ['jbench-core']
    changed = found['own', 'ssvep', 2, 'eegnet', 'custom: recipe.lr=0.1']
    assert (changed['rank'], changed['of'], changed['suites']) == (None, 1, [])
    assert found['own', 'ssvep', 1, 'eegnet', 'as published']['suites'] == ['eeg-core-1.0', 'eeg-full-1.0']
    assert not any(r['task'] == 'age' for r in found.values() if r['origin'] == 'own')
    assert sum(r['origin'] == 'published' for r in found.values()) == 607
    told = [x['kind'] for x in records_of(site / 'left_out.left_out.json')]
    assert told.count('simulated') == 1 and len(told) == len(report.left_out)


def test_models_are_ranked_over_sets_of_tasks(site):
    found = {(r['over'], r['origin'], r['model']): r for r in records_of(site / 'index.models.json')}
    assert found[records.ALL, 'published', 'reve_base']['mean_normalised_rank'] == pytest.approx(0.2015, abs=2e-4)
    core = {model: r['mean_rank'] for (over, *_, model), r in found.items() if over == 'suite jbench-core'}
    assert core == {'eegnet': 1.0, 'dummy': 2.0}
    assert ('device eeg', 'published', 'reve_base') in found and ('category sleep', 'published', 'labram') in found


def test_a_reproduction_card_has_the_paper_ours_and_what_differs(site):
    card = {(r['task'], r['version'], r['own']): r for r in records_of(site / 'models' / 'eegnet.reproduction.json')}
    first = card['ssvep', 1, 0.1]
    assert first['paper'] == 0.08988 and first['difference'] == pytest.approx(0.1 - 0.08988)
    assert first['verdict'] == 'paper inside interval' and first['differences'] == []
    second = card['ssvep', 2, (0.71 + 0.72) / 2]
    assert second['verdict'] == 'paper outside interval'
    assert second['differences'][0].startswith('version 2: ') and second['differences'][-1].startswith('recipe')
    assert card['ssvep', 2, 0.8]['differences'][-1] == 'custom: recipe.lr=0.1'
    assert card['age', 1, None]['verdict'] == 'not run here'
    text = Page(site / 'models' / 'eegnet.html').text
    assert 'Lawhern et al. (2018)' in text and 'Reproduction card' in text and '9.0 ± 0.9' in text


def test_pages_tell_protocols_and_datasets(site):
    task = Page(site / 'tasks' / 'ssvep@2.html').text
    assert 'after the onset of an event' in task and 'jbench-core' in task and 'version 1:' in task
    dataset = Page(site / 'datasets' / 'Wang2017Benchmark.html').text
    assert 'Licence' in dataset and 'Amplitude allowed' in dataset
    user = next(p for p in (site / 'tasks').glob('script_img*.html'))
    assert 'by = subject' in Page(user).text  # told by the config of its results


@pytest.mark.slow
def test_figures_stand_on_the_pages_of_what_they_show(site):
    shown = {p.name: [a['src'] for t, a in Page(p).elements if t == 'img'] for p in pages(site)}
    assert {name: found for name, found in shown.items() if found} == {
        'figures.html': ['figures/ranks.svg'],
        'ssvep@2.html': ['../figures/bars-ssvep.svg'],
    }
    assert sorted(p.name for p in (site / 'figures').iterdir()) == [
        'bars-ssvep.csv', 'bars-ssvep.svg', 'ranks.csv', 'ranks.svg'
    ]  # fmt: skip


def test_addresses_are_safe_and_differ_in_any_case():
    found = markup.addresses('x', ['meg/typing', 'meg_typing', 'A', 'a', '../..', '', 'ü' * 300, 'ü' * 301])
    files = [a.removeprefix('x/') for a in found.values()]
    assert len({f.lower() for f in files}) == len(found) == 8
    assert all(re.fullmatch(r'[A-Za-z0-9@_-][A-Za-z0-9@._-]{0,110}\.html', f) for f in files)


def test_clean_is_only_what_is_known_to_be(report):
    own = next(s for s in report.scores if s.origin == 'own' and s.dataset == KNOWN['dataset'])
    assert overlap(own) == 'clean'
    assert overlap(own._replace(family='foundation')) == overlap(own._replace(family='user')) == 'unknown'
    assert overlap(own._replace(family='foundation', pretraining=('wang2017benchmark',))) == 'overlap'
    assert overlap(own._replace(family='foundation', pretraining=('Else',))) == 'clean'
    assert overlap(own._replace(seen_beside=True)) == 'overlap'  # through a task that was learnt together with it


def test_texts_of_numbers():
    show = columns.standings(Addresses({}, {}, {}))[1].show
    texts = [show({'mean_normalised_rank': v}) for v in (None, -0.0001, -0.5, 0.25)]
    assert texts == ['–', '0.000', '-0.500', '0.250']


@pytest.mark.slow
def test_a_site_is_replaced_and_nothing_else(report, tmp_path):
    build.build(report, tmp_path)
    stale = tmp_path / 'site' / 'tasks' / 'stale.html'
    stale.write_text('')
    before = (tmp_path / 'site' / 'index.html').read_bytes()
    build.build(report, tmp_path)
    assert not stale.exists() and (tmp_path / 'site' / 'index.html').read_bytes() == before
    other = tmp_path / 'other'
    (other / 'site').mkdir(parents=True)
    (other / 'site' / 'thesis.tex').write_text('x')
    with pytest.raises(RequestError, match='is no site of jbench'):
        build.build(report, other)
    assert (other / 'site' / 'thesis.tex').exists()


@pytest.mark.slow
def test_the_command_writes_it(tmp_path, capsys):
    work = tmp_path / 'work'
    add(work, 'eegnet', 0.7)
    assert run.main(['report', f'--results={work}', f'--out={tmp_path / "out"}', '--site']) == 0
    assert '1 result' in Page(tmp_path / 'out' / 'site' / 'index.html').text
    assert run.main(['report', f'--results={work}', '--site']) == 2
    assert '--out=' in capsys.readouterr().err


def test_results_that_all_do_not_count_give_a_site_that_says_so(tmp_path):
    store(tmp_path, simulated=True)
    build.build(summary.collect([tmp_path]), tmp_path)
    assert 'Nothing here' in Page(tmp_path / 'site' / 'index.html').text
    (line,) = records_of(tmp_path / 'site' / 'left_out.left_out.json')
    assert line['kind'] == 'simulated' and line['path'].startswith(f'{tmp_path.name}/results/')


def test_seeds_that_agree_have_no_spread():
    record = {'mean': 0.5, 'metric': 'acc'}
    assert [columns.score_text({**record, 'sd': sd}) for sd in (None, 0.0, 0.01)] == ['50.0', '50.0', '50.0 ± 1.0']
