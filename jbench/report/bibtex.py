"""What to cite for results, as BibTeX: jbench, their datasets, their models; from what the specs say, nothing more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jbench.models import MODELS
from jbench.plan import select
from jbench.spec.identity import to_json
from jbench.spec.pretraining import UNNAMED

AUTHOR, TITLE = 'The jbench contributors', 'jbench: a benchmark of brain decoding, in JAX'  # as in CITATION.cff
PUBLISHED = re.compile(r'(?P<authors>[^();]+) \((?P<year>\d{4})\)(, (?P<where>.+))?')  # how citations are written
SPECIAL = re.compile(r'[&%#_$]')  # characters that LaTeX reads as commands


class Work(NamedTuple):
    """What a result rests on."""

    name: str
    what: str  # 'data set' | 'model'
    citation: str  # as in the spec; '': none is known
    doi: str = ''


def cite(results: Sequence[Mapping[str, Any]]) -> str:
    """BibTeX of jbench, then of what the results rest on, each once; a line of comment on what has no reference."""
    aligned = [
        r['config']['benchmark']['citation'] for r in results if r.get('kind') == 'alignment'
    ]  # entries as they are
    decoded = [r for r in results if r.get('kind') != 'alignment']
    works = dict.fromkeys(work for result in decoded for work in (*_datasets(result), _model(result)))
    by_reference: dict[tuple[str, str], list[Work]] = {}
    silent = []
    for work in works:
        if not work.citation or work.citation.startswith('jbench'):
            why = 'is part of jbench' if work.citation else 'names no reference'
            name = work.name.partition('@')[0]  # of a model of one's own: an @ would begin an entry
            silent.append(f'% {work.what} {name} {why}')
        else:
            by_reference.setdefault((work.citation, work.doi), []).append(work)
    return '\n\n'.join(
        [
            _jbench(results),
            *map(_entry, by_reference.values()),
            *filter(None, dict.fromkeys(aligned)),
            *(['\n'.join(silent)] if silent else []),
        ]
    )


def _datasets(result: Mapping[str, Any]) -> Iterable[Work]:
    """The dataset of a result, and those that its model was pretrained on."""
    told = result['config'].get('dataset', {})
    yield Work(result['dataset'], 'data set', told.get('citation', ''), told.get('doi', ''))
    for name in (n for n in result['pretraining'] if n != UNNAMED):
        known = select.datasets().get(name)
        yield Work(name, 'data set', known.citation if known else '', known.doi if known else '')


def _model(result: Mapping[str, Any]) -> Work:
    """The model of a result; a result of schema 1 has its name alone."""
    known = MODELS.get(result['model'])
    told = result['config'].get('model', to_json(known) if known else {})
    return Work(result['model'], 'model', told.get('citation', ''))


def _jbench(results: Sequence[Mapping[str, Any]]) -> str:
    """The entry of jbench, with the versions and commits that made the results."""
    made = dict.fromkeys((r['versions']['jbench'], r['commit']) for r in results)
    note = '; '.join(f'version {version}' + (f', commit {commit}' if commit else '') for version, commit in made)
    return _text('jbench', {'author': f'{{{AUTHOR}}}', 'title': f'{{{TITLE}}}', 'note': note})


def _entry(works: Sequence[Work]) -> str:
    """The entry of one reference. A spec has no title of the publication, so there is none."""
    citation, doi = works[0].citation, works[0].doi
    fields = {'howpublished': _escaped(citation)}
    if found := PUBLISHED.fullmatch(citation):
        authors = [f'{{{name}}}' for name in found['authors'].removesuffix(' et al.').split(' and ')]
        authors += ['others'] if found['authors'].endswith(' et al.') else []
        fields = {'author': ' and '.join(authors), 'year': found['year']}
        fields |= {'howpublished': _escaped(found['where'])} if found['where'] else {}
    fields |= {'doi': doi} if doi else {}
    named = [f'{what} {", ".join(names)}' for what, names in _by_kind(works).items()]
    key = re.sub(r'[^\w.-]+', '_', works[0].name.partition(':')[0])  # less the options of a model
    return _text(key, fields | {'note': _escaped('; '.join(named))})


def _by_kind(works: Iterable[Work]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for work in works:
        found.setdefault(work.what, []).append(work.name)
    return found


def _escaped(text: str) -> str:
    return SPECIAL.sub(r'\\\g<0>', text)


def _text(key: str, fields: Mapping[str, str]) -> str:
    return f'@misc{{{key},\n' + ''.join(f'  {name} = {{{value}}},\n' for name, value in fields.items()) + '}'
