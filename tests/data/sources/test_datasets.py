"""Facts of every dataset against the published ones (`fixtures/datasets.json`, by `make_dataset_fixtures.py`)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from places import ROOT

from jbench.cli import catalogue
from jbench.data.discover import find_recordings
from jbench.data.recording import EVENT_TYPE
from jbench.plan import cells, select
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

FACTS: dict[str, dict[str, Any]] = json.loads((ROOT / 'tests' / 'fixtures' / 'datasets.json').read_text())
COMPARED = ('n_subjects', 'n_recordings', 'n_chans', 'sfreq', 'seconds', 'device', 'event_types', 'event_id', 'licence')


def ours(dataset: Dataset) -> dict[str, Any]:
    """The compared facts of a dataset in the form of the published ones."""
    whole = EVENT_TYPE[dataset.device]
    return {
        **{k: getattr(dataset, k) for k in COMPARED},
        'sfreq': dataset.sfreq[0] if len(dataset.sfreq) == 1 else list(dataset.sfreq),
        'event_types': sorted(set(dataset.event_types) - {whole}),
        'event_id': dict(dataset.event_id) or None,
        'licence': None if dataset.licence == 'not stated' else dataset.licence,
    }


def differences() -> set[tuple[str, str]]:
    """Every fact that differs, as (dataset, fact). Duration is compared where it is declared: sets whose
    recordings differ in it leave it out."""
    found = set()
    for name, published in FACTS.items():
        mine = ours(select.datasets()[name])
        left_out = {'seconds'} if mine['seconds'] is None else set()
        found |= {(name, k) for k in COMPARED if k not in left_out and mine[k] != published[k]}
    return found


def test_every_published_dataset_is_there():
    assert len(FACTS) == 104 and set(FACTS) <= set(select.datasets())


def test_facts_are_the_published_ones_or_a_difference_that_is_explained():
    """A row of the page without a difference fails too: it is out of date."""
    page = (ROOT / 'docs' / 'datasets.md').read_text().partition('## Facts that differ')[2]
    rows = re.findall(r'^\| (\w+) \| `(\w+)` \| (.+?) \| (.+?) \|$', page, re.M)
    assert {(name, fact) for name, fact, _, _ in rows} == differences()
    for name, fact, published, here in rows:
        mine = ours(select.datasets()[name])[fact]
        assert published == ('not stated' if FACTS[name][fact] is None else shown(FACTS[name][fact])), (name, fact)
        assert here.startswith(f'{shown(mine)}: ') and len(here) > len(shown(mine)) + 20, (name, fact)


def shown(value: Any) -> str:
    """A fact as the page writes it."""
    if isinstance(value, dict):
        return ' '.join(f'{k}={v}'.replace(' ', '') for k, v in value.items())
    return ', '.join(map(str, value)) or 'none' if isinstance(value, list) else str(value)


def test_every_dataset_is_found_by_its_published_names():
    """Also by MOABB's class. A name that two datasets share finds neither."""
    names = [a for f in FACTS.values() for a in f['aliases']]
    for name, facts in FACTS.items():
        for alias in (name, facts['moabb_class'], *(a for a in facts['aliases'] if names.count(a) == 1)):
            assert alias is None or select.find_dataset(alias).name == name, alias
        for alias in (a for a in facts['aliases'] if names.count(a) > 1):
            with pytest.raises(RequestError):
                select.find_dataset(alias)


def test_a_host_that_wants_an_agreement_is_said_and_never_asked():
    for name, facts in FACTS.items():
        dataset = select.datasets()[name]
        assert (dataset.access != 'open') == facts['by_hand'], name
        knows = dataset.download and dataset.download.url.startswith('synapse:')  # who asks, by a token
        assert re.fullmatch(r'open|agreement: .{20,}', dataset.access), name
        assert knows or not (facts['by_hand'] and dataset.download), name


def test_info_tells_the_facts_of_a_dataset_and_how_to_come_by_it(tmp_path):
    text = catalogue.info('TUAB', 'text', tmp_path)
    assert re.search(r'^access +agreement: ask Temple University', text, re.M)
    assert f'{tmp_path}/Lopez2017Tuab/: edf/{{train,eval}}' in ' '.join(text.split()) and 'isip.piconepress.com' in text
    facts = json.loads(catalogue.info('kojima2024a', 'json', tmp_path))
    assert facts['name'] == 'Kojima2024ReplicationA' and facts['event_id'] == {'Target': 1, 'NonTarget': 0}


DAMAGED = {  # name: (dataset, file below its folder, content, what is said)
    'latin-1': ('eegmat', 'subject-info.csv', 'Subject,Age\né,9'.encode('latin-1'), "subject-info.csv: 'utf-8' codec"),
    'a list': ('Zhou2016Fully', 'recordings.csv', b'subject,session,run\n\xe9,0,0', "recordings.csv: 'utf-8' codec"),
    'no people': ('Miltiadous2023Dice', 'README', b'', 'participants.tsv: expected the columns participant_id, Age'),
    'a field': ('CHB-MIT', 'BIDS_CHB-MIT/participants.tsv', b'a\n' + b'x' * 200_000, 'participants.tsv: field larger'),
    'no folder': ('CHB-MIT', 'BIDS_CHB-MIT/sub-01/eeg', b'', 'Dan2023Bids cannot be listed (NotADirectoryError: '),
}


@pytest.mark.parametrize('what', DAMAGED)
def test_a_damaged_file_stops_its_own_dataset_alone(tmp_path, what):
    name, file, content, said = DAMAGED[what]
    dataset = select.find_dataset(name)
    path = tmp_path / dataset.name / file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(RequestError) as error:
        find_recordings(dataset, tmp_path)
    assert said in str(error.value) and str(error.value).startswith(str(tmp_path / dataset.name))
    assert ('cannot be listed' in str(error.value)) == ('cannot be listed' in said)
    on_disk = {d['name']: d['on_disk'] for d in json.loads(catalogue.listing('json', tmp_path))['datasets']}
    assert on_disk.pop(dataset.name) is None and not any(on_disk.values())
    assert re.search(f'^{dataset.name} .* damaged ', catalogue.listing('table', tmp_path), re.M)
    assert f'damaged: {error.value}' in json.loads(catalogue.info(dataset.name, 'json', tmp_path))['state']


def test_a_damaged_dataset_that_nobody_asked_for_stops_no_request(tmp_path):
    task = select.tasks()['motor_imagery'][-1]
    other = select.find_dataset('Zhou2016Fully')
    assert other.name in task.datasets[1:]
    (tmp_path / other.name).mkdir()
    (tmp_path / other.name / 'recordings.csv').write_bytes(DAMAGED['a list'][2])
    with pytest.raises(RequestError):
        find_recordings(other, tmp_path)
    assert cells.choose_dataset(task, None, tmp_path, tmp_path / 'work', 'auto').dataset.name == task.simulated


def test_the_list_of_the_whole_catalogue_names_each_dataset_once():
    run = [sys.executable, '-X', 'importtime', '-m', 'jbench.run', '--list', '--format=json']
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True)
    listed = [d['name'] for d in json.loads(done.stdout)['datasets']]
    assert len(listed) == len(set(listed)) and set(FACTS) <= set(listed)
    imported = {line.rpartition('|')[2].strip() for line in done.stderr.splitlines()}
    assert not {'jax', 'mne', 'numpy', 'scipy', 'moabb', 'pandas'} & imported
