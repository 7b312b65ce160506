"""The documentation site: its settings, its lists of pages, and that a fault in it does not pass."""

from __future__ import annotations

import runpy

import pytest
from places import ROOT

SITE = runpy.run_path(str(ROOT / 'docs' / 'make_site.py'))


@pytest.fixture
def conf(monkeypatch) -> dict:
    """The settings."""
    monkeypatch.setenv('JBENCH_ROOT', str(ROOT))
    return runpy.run_path(str(ROOT / 'docs' / 'conf.py'))


def test_ci_builds_it():
    assert 'python docs/make_site.py "$venv/site"' in (ROOT / '.ci' / 'run').read_text().splitlines()


def test_every_page_notebook_and_module_has_its_place(tmp_path):
    SITE['lay_out'](tmp_path)
    listed = ''.join((tmp_path / 'docs' / f'{name}.md').read_text() for name in ('add_yours', 'how_it_works'))
    assert all(p.stem in listed.split() for p in (ROOT / 'docs').glob('*.md'))
    gallery = (tmp_path / 'colabs' / 'index.md').read_text()
    for notebook in (ROOT / 'colabs').glob('*.ipynb'):
        assert f':img-top: {notebook.stem}.png' in gallery and (tmp_path / 'colabs' / f'{notebook.stem}.png').exists()
    pages = {p.stem for p in (tmp_path / 'docs' / 'api').glob('*.rst')}
    assert set(SITE['FACES']) < pages == set(SITE['modules']()) and 'jbench.data.sources.folder' in pages
    offered = {'jbench.results.result_file.load_all', 'jbench.results.predictions.load_predictions'}
    assert offered < set(SITE['offered']('jbench.results')) and SITE['offered']('jbench.api') == []
    (tmp_path / 'docs').joinpath('api', 'index.md').read_text().index('(jbench.trained.rst)')


def test_a_link_that_leads_nowhere_is_found(tmp_path):
    (tmp_path / 'a').mkdir()
    (tmp_path / 'a' / 'b.html').write_text('<h1 id="top">b</h1><a href="../c.html#here">c</a><img src="no.png">')
    (tmp_path / 'c.html').write_text(
        '<p id="here"><a href="a/b.html#top"></a><a href="a/b.html#none"></a><a href="https://no.example/x"></a>'
    )
    assert sorted(SITE['broken'](tmp_path)) == ['a/b.html: no.png', 'c.html: a/b.html#none']


@pytest.mark.slow
@pytest.mark.parametrize(('text', 'passes'), [('[b](b.md)', True), ('[b](none.md)', False), ('```{none}\n```', False)])
def test_a_warning_is_an_error(text, passes, tmp_path):
    """As main() calls Sphinx, on two pages instead of all."""
    source = tmp_path / 'source'
    source.mkdir()
    (source / 'b.md').write_text('# B\n')
    (source / 'README.md').write_text(f'# A\n\n{text}\n\n```{{toctree}}\nb\n```\n')
    done = SITE['build'](source, tmp_path / 'site')
    assert (done == 0) == passes


def test_docstrings_are_read_as_plain_words(conf):
    escaped, evened = conf['escaped'], conf['evened']
    assert escaped('all *args of `f(*x)`, trailing_ a|b') == r'all \*args of ``f(*x)``, trailing\_ a\|b'
    assert escaped('one `piece\n of code`') == 'one ``piece of code``'
    assert evened(['Of these:', '1. a', '   b', '2. c']) == ['Of these:', '', '1. a', '   b', '2. c']
    assert evened(['Raises: E for x,', '    or y.']) == ['Raises: E for x,', 'or y.']
    assert evened(['Args:', '    x: it', '        goes on']) == ['Args:', '    x: it', '        goes on']
    lines = ['First.', '', '    f(*x)', '', 'Then.']
    conf['plain'](None, 'module', '', None, None, lines)
    assert lines[2:5] == ['.. code-block:: python', '', '    f(*x)']


def test_fields_are_told_with_their_units(conf):
    from jbench.api import Arrays

    lines = ['All windows.']
    conf['plain'](None, 'class', '', Arrays, None, lines)
    assert '* ``x``: f32 [N, C, T]' in lines
