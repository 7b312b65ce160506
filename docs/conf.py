"""Settings of the documentation site, and how docstrings become pages. make_site.py lays out what is built."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import tomllib
from pathlib import Path
from typing import Any

PROJECT = tomllib.loads((Path(os.environ['JBENCH_ROOT']) / 'pyproject.toml').read_text(encoding='utf-8'))['project']

project, release = PROJECT['name'], PROJECT['version']
copyright = f'the jbench contributors, {PROJECT["license"]}'
extensions = ['myst_nb', 'sphinx_design', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'sphinx.ext.viewcode']
root_doc = 'README'
exclude_patterns = ['jbench', 'tests', 'configs', 'benchmarks']  # there for links to files

nb_execution_mode = 'off'  # what the notebooks showed is stored in them
myst_heading_anchors = 4
myst_enable_extensions = ['colon_fence']

autodoc_typehints_format = 'short'
autodoc_inherit_docstrings = False
autodoc_member_order = 'bysource'
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = 'pydata_sphinx_theme'
html_title = project
html_theme_options = {
    'github_url': PROJECT['urls']['Repository'],
    'navbar_align': 'left',
    'header_links_before_dropdown': 7,
    'footer_start': ['copyright'],
    'footer_end': [],
}
html_sidebars = {'README': [], 'CONTRIBUTING': [], 'CHANGELOG': []}
html_show_sourcelink = False

FIELD = re.compile(r'^    (\w+): [^#\n]+?  # (.+)$', re.M)  # of a dataclass: its comment says units and shape


def plain(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Our docstrings are plain words with `code`; what reStructuredText would read into them is escaped."""
    text = escaped('\n'.join(evened(lines)))
    found = re.sub(r'(?<=\n\n)(?=    )(?:(?:    .*)?\n)+(?:    .*)?', example, text).split('\n')
    if what == 'class' and (dataclasses.is_dataclass(obj) or hasattr(obj, '_fields')):
        fields = FIELD.findall(inspect.getsource(obj))
        found += ['', *(f'* ``{field}``: {escaped(words)}' for field, words in fields)]
    lines[:] = found


def evened(lines: list[str]) -> list[str]:
    """Lines of which a list begins after a blank line, and the second line of a paragraph where the first does."""
    found = ['']
    loose = False  # in a paragraph, not in a list nor under Args
    for line in lines:
        item, last = re.match(r'(\d+\.|-) ', line), found[-1]
        if item and last and not re.match(r'(\d+\.|-| ) ?', last):
            found.append('')
        if not line or not line.startswith(' '):
            loose = bool(line) and not item and not line.endswith(':')
        found.append(line.lstrip() if loose else line)
    return found[1:]


def example(match: re.Match[str]) -> str:
    """A piece that is further in, after a blank line, as code."""
    return '.. code-block:: python\n\n' + match[0].replace('\\', '') + '\n'


def escaped(text: str) -> str:
    """Text whose `code` is code, and whose other marks are letters."""
    pieces = re.split(r'(`(?:[^`\n]|\n(?!\n))+`)', text.replace('``', '`'))
    words = [re.sub(r'([*|\\`]|(?<=\w)_(?!\w))', r'\\\1', piece) for piece in pieces[::2]]
    words = [re.sub(r'(?<=: )(\w)\.', r'\1\\.', piece) for piece in words]  # a letter, no list
    codes = [f'``{" ".join(piece[1:-1].split())}``' for piece in pieces[1::2]]
    return ''.join(a + b for a, b in zip(words, [*codes, ''], strict=True))


def skipped(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Fields of named tuples are told with their class; a value is not told in the words of its type."""
    words = getattr(obj, '__doc__', None) or ''
    return True if words.startswith('Alias for field number') or words == type(obj).__doc__ else None


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect('autodoc-process-docstring', plain, priority=100)  # before napoleon reads Args and Raises
    app.connect('autodoc-skip-member', skipped)
