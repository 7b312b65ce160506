"""Build the documentation site: README, the pages of docs/, the notebooks with their pictures, the docstrings.

Warnings are errors, and every link within the site is followed. Needs `pip install -e '.[docs]'`, and no network.

Command: python docs/make_site.py [FOLDER]        (build/site by default)
"""

from __future__ import annotations

import argparse
import ast
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
ADD = ('add_a_task', 'add_a_dataset', 'add_a_model', 'add_a_benchmark')  # the other pages of docs/ tell how it works
FIRST = ('architecture', 'datasets', 'statistics', 'report')
FACES = {  # modules that a user imports from, and what for
    'jbench.run': 'The command; `jbench.run(task, model, ...)` gives its results',
    'jbench.api': 'Tasks and their data; `jbench.task` and `jbench.load`',
    'jbench.trained': 'Trained networks; `jbench.load_model`',
    'jbench.cli.features': 'Features before training; `jbench.features`',
    'jbench.cli.evaluate': 'A function of yours, scored; `jbench.evaluate`',
    'jbench.report.identity': 'Whose the variance of features is',
    'jbench.results': 'Result files',
    'jbench.report': 'Tables of many results; `jbench.report.frame`',
    'jbench.spec': 'What tasks, datasets and models of your own are made of',
    'jbench.spec.task': 'Tasks, their windows, targets, splits and recipes',
    'jbench.spec.dataset': 'Datasets',
    'jbench.models.model': 'What a network is',
    'jbench.models.layers.blocks': 'Layers that networks share',
    'jbench.models.layers.filters': 'Convolutions in fast forms',
    'jbench.models.layers.attention': 'Attention',
    'jbench.models.layers.wide_attention': 'Attention of wide heads and over long rows',
    'jbench.data.recording': 'What a reader of recordings returns',
    'jbench.metrics.uncertainty': 'Intervals over subjects',
    'jbench.alignment.benchmark': 'Models beside brains; `jbench.alignment.score`',
    'jbench.alignment.brain_model': 'What a benchmark asks of a model',
    'jbench.alignment.image_model': 'A model of images',
    'jbench.alignment.assembly': 'Recordings for alignment',
    'jbench.alignment.stimuli': 'Sets of stimuli',
    'jbench.alignment.over_time': 'Alignment over time',
    'jbench.spec.benchmark': 'Benchmarks',
}


def contents(names: list[str], hidden: bool = True) -> str:
    """A list of pages, for the navigation."""
    return '\n'.join(['', '```{toctree}', *[':hidden:'] * hidden, ':maxdepth: 1', *names, '```', ''])


ARCHIVED = tuple(f'jbench.submit.{name}' for name in ('twins', 'decoder', 'solver', 'submission2025'))


def modules() -> list[str]:
    """All modules of the package, dotted, but those that go into archives of challenges and need torch."""
    paths = (p.relative_to(ROOT).with_suffix('').parts for p in (ROOT / 'jbench').rglob('*.py'))
    names = ('.'.join(p[:-1] if p[-1] == '__init__' else p) for p in paths)
    return sorted(name for name in names if name not in ARCHIVED)


def imports(module: str) -> dict[str, str]:
    """Names that a module imports from others of ours: name -> dotted module."""
    path = ROOT / module.replace('.', '/')
    path = path / '__init__.py' if path.is_dir() else path.with_suffix('.py')
    nodes = [n for n in ast.parse(path.read_text(encoding='utf-8')).body if isinstance(n, ast.ImportFrom)]
    return {a.name: n.module for n in nodes for a in n.names if n.module and n.module.startswith('jbench')}


def offered(package: str) -> list[str]:
    """What a package offers of its modules, under the names that these define it by; nothing of a module."""
    if not (ROOT / package.replace('.', '/')).is_dir():
        return []
    here = {name: module for name, module in imports(package).items() if module.startswith(f'{package}.')}
    return [f'{imports(module).get(name, module)}.{name}' for name, module in here.items()]


def write_api(at: Path) -> None:
    """A page a module; the index begins with those that a user needs."""
    at.mkdir(parents=True)
    for name in modules():
        text = f'{name}\n{"=" * len(name)}\n\n.. automodule:: {name}\n   :members:\n   :ignore-module-all:\n'
        offers = offered(name)
        text += ''.join(['\nImported from here:\n\n', *(f'- :py:obj:`~{o}`\n' for o in offers)] if offers else [])
        (at / f'{name}.rst').write_text(text, encoding='utf-8')
    faces = ['| module | what |', '|---|---|', *(f'| [{n}]({n}.rst) | {words} |' for n, words in FACES.items())]
    others = [n for n in modules() if n not in FACES]
    index = ['# Python', '', *faces, '', '## All modules', '', *(f'- [{n}]({n}.rst)' for n in others)]
    (at / 'index.md').write_text('\n'.join(index) + '\n' + contents([*FACES, *others]), encoding='utf-8')


def write_gallery(at: Path) -> None:
    """The notebooks, each with its last picture."""
    cards, paths = [], sorted(at.glob('*.ipynb'), key=lambda p: (p.stem != 'quickstart', p.stem))
    for path in paths:
        cells = json.loads(path.read_text(encoding='utf-8'))['cells']
        shown = [
            o['data']['image/png'] for c in cells for o in c.get('outputs', ()) if 'image/png' in o.get('data', {})
        ]
        path.with_suffix('.png').write_bytes(base64.b64decode(shown[-1]))
        title, _, words = ''.join(cells[1]['source']).removeprefix('# ').partition('\n')
        first = words.strip().partition('\n\n')[0]
        cards += [f':::{{grid-item-card}} {title}', f':img-top: {path.stem}.png', f':link: {path.stem}']
        cards += [':link-type: doc', '', first, ':::', '']
    text = ['# Notebooks', '', '::::{grid} 1 2 2 2', ':gutter: 3', '', *cards, '::::', '']
    (at / 'index.md').write_text('\n'.join(text) + contents([p.stem for p in paths]), encoding='utf-8')


def write_section(docs: Path, name: str, title: str, pages: list[str]) -> None:
    """A page that lists others."""
    (docs / f'{name}.md').write_text(f'# {title}\n' + contents(pages, hidden=False), encoding='utf-8')


def lay_out(source: Path) -> None:
    """What is built: copies at the places that they have in the repository, so that links between them hold."""
    leave = shutil.ignore_patterns('__pycache__', '*.py', '.*')
    for folder in ('docs', 'colabs'):
        shutil.copytree(ROOT / folder, source / folder, ignore=leave)
    for path in [*ROOT.glob('*.md'), ROOT / 'LICENSE', ROOT / 'CITATION.cff']:
        shutil.copy(path, source)
    for folder in ('jbench', 'tests', 'configs', 'benchmarks'):
        (source / folder).symlink_to(ROOT / folder)
    docs = source / 'docs'
    pages = sorted(p.stem for p in docs.glob('*.md') if p.stem not in (*ADD, *FIRST))
    write_section(docs, 'add_yours', 'Add yours', list(ADD))
    write_section(docs, 'how_it_works', 'How it works', [*FIRST, *pages])
    write_gallery(source / 'colabs')
    write_api(docs / 'api')
    sections = ['Notebooks <colabs/index>', 'docs/add_yours', 'docs/how_it_works', 'Python <docs/api/index>']
    readme = (source / 'README.md').read_text(encoding='utf-8')
    (source / 'README.md').write_text(
        readme + '\n' + contents([*sections, 'Take part <CONTRIBUTING>', 'Changes <CHANGELOG>']), encoding='utf-8'
    )


class Page(HTMLParser):
    """Where the links of a page lead, and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ('href', 'src') and value and tag != 'base':
                self.links.add(value)
            elif name in ('id', 'name') and value:
                self.places.add(value)


def broken(site: Path) -> list[str]:
    """Links within a site that lead nowhere, as `page: link`; links to other hosts are not followed."""
    pages = {p.resolve(): Page(p.read_text(encoding='utf-8')) for p in site.rglob('*.html') if '_static' not in p.parts}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            missing = target in pages and url.fragment and unquote(url.fragment) not in pages[target].places
            if not target.is_file() or missing:
                found.append(f'{path.relative_to(site.resolve())}: {link}')
    return found


def build(source: Path, site: Path) -> int:
    """Sphinx's pages of what was laid out; returns its exit status, which a warning makes an error."""
    sphinx = [sys.executable, '-m', 'sphinx', '-W', '--keep-going', '-q', '-c', str(ROOT / 'docs')]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])])
    env = os.environ | {'JBENCH_ROOT': str(ROOT), 'PYTHONPATH': path, 'JAX_PLATFORMS': 'cpu'}
    return subprocess.run([*sphinx, str(source), str(site)], env=env).returncode


def main(target: Path) -> int:
    """Build the site at `target`, which is emptied; returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        source, site = Path(folder) / 'source', Path(folder) / 'site'
        lay_out(source)
        if status := build(source, site):
            return status
        shutil.copy(site / 'README.html', site / 'index.html')
        problems = broken(site)
        print(*problems, f'{len(problems)} broken links', sep='\n', file=sys.stderr)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(site, target, ignore=shutil.ignore_patterns('.doctrees'))
    return 1 if problems else 0


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', nargs='?', type=Path, default=ROOT / 'build' / 'site')
    sys.exit(main(parser.parse_args().folder))
