"""What to cite for results: one entry a reference, nothing that the specs do not say."""

from __future__ import annotations

import re

import pytest
import yaml
from places import ROOT

from jbench.models import MODELS
from jbench.plan import select
from jbench.report import bibtex
from jbench.results import result_file
from jbench.spec.identity import to_json


def stored(version: int, model: str = 'eegnet') -> dict:
    """A result of a schema."""
    (path,) = (ROOT / f'tests/historic_results/v{version}').glob(f'results/*/*/{model}/*/seed33.json')
    return result_file.read(path)


def made(dataset: str, model: str = 'eegnet', **changes) -> dict:
    """A result of a dataset and a model, as far as it is cited."""
    config = {'dataset': to_json(select.datasets()[dataset]), 'model': to_json(MODELS[model])}
    one = {'dataset': dataset, 'model': model, 'config': config, 'pretraining': [], 'commit': None}
    return {**one, 'versions': {'jbench': '0.1.0'}, **changes}


def entries(text: str) -> dict[str, dict[str, str]]:
    """Entries of a BibTeX file by their keys."""
    found = {}
    for block in text.split('\n\n'):
        if block.startswith('@'):
            head, *lines, end = block.splitlines()
            assert re.fullmatch(r'@misc\{[\w.:-]+,', head) and end == '}'
            assert block.count('{') == block.count('}') and not re.search(r'(?<!\\)[&%#_$]', ''.join(lines))
            found[head[6:-1]] = dict(re.fullmatch(r'  (\w+) = \{(.+)\},', line).groups() for line in lines)
        else:
            assert all(line.startswith('% ') and '@' not in line for line in block.splitlines())
    return found


def test_jbench_is_cited_as_its_own_file_says():
    said = yaml.safe_load((ROOT / 'CITATION.cff').read_text(encoding='utf-8'))
    entry = entries(bibtex.cite([stored(3), stored(3, 'dummy'), stored(1)]))['jbench']
    assert entry['title'] == f'{{{said["title"]}}}'
    assert entry['author'] == f'{{{said["authors"][0]["name"]}}}'
    assert entry['note'] == f'version 0.1.0, commit {stored(3)["commit"]}; version 0.1.0'


@pytest.mark.parametrize('version', [1, 2, 3])
def test_results_of_every_schema_name_their_model(version):
    text = bibtex.cite([stored(version)])
    assert entries(text)['eegnet'] == {
        'author': '{Lawhern} and others',
        'year': '2018',
        'howpublished': 'J. Neural Eng. 15, 056013',
        'note': 'model eegnet',
    }
    assert text.endswith('\n\n% data set SimulatedP3 is part of jbench')


def test_a_doi_is_that_of_the_spec_and_no_other():
    found = entries(bibtex.cite([made('Hubner2016Eeg'), made('Zyma2019Electroencephalograms')]))
    assert found['Hubner2016Eeg']['doi'] == select.datasets()['Hubner2016Eeg'].doi
    assert {k for k, entry in found.items() if 'doi' in entry} == {'Hubner2016Eeg'}


def test_every_dataset_and_model_gives_an_entry_once():
    every = [made(d) for d in select.datasets()] + [made('SimulatedP3', m) for m in MODELS]
    text = bibtex.cite(every + every)
    keys = re.findall(r'^@misc\{(.+),$', text, re.M)
    assert len(set(keys)) == len(keys) == len(entries(text))
    told = ' '.join(entry['note'] for entry in entries(text).values()).replace('\\', '') + ' '
    for name in (d.name for d in select.datasets().values() if not d.simulated):
        assert re.search(rf'\b{name}[,; ]', told)
    assert all(re.search(rf'\b{name}[,; ]', told) for name in MODELS)
    assert entries(text)['Kappenman2021ErpErn']['note'].count('Kappenman2021') == 7  # one reference


def test_data_that_a_model_was_pretrained_on_are_cited():
    text = bibtex.cite([made('SimulatedP3', pretraining=['Zhou2016Fully', 'a set of mine'])])
    assert entries(text)['Zhou2016Fully']['note'] == 'data set Zhou2016Fully'
    assert '% data set a set of mine names no reference' in text


def test_a_model_of_ones_own_has_no_reference():
    mine = made('SimulatedP3', model='eegnet') | {'model': 'net@1a2b3c4d'}
    mine['config'] = {**mine['config'], 'model': {'name': 'net@1a2b3c4d', 'citation': ''}}
    text = bibtex.cite([mine])
    assert '% model net names no reference' in text and set(entries(text)) == {'jbench'}
