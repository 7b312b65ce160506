"""The files that readers require against those that hosts list, and docs/datasets.md, which says for each dataset what
of it was met: recordings, tables, or neither.

Names are those of public trees of OpenNeuro and NEMAR, as far as they are required; their files are empty here.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from places import FIXTURES, ROOT

from jbench.data.discover import find_recordings
from jbench.data.sources import moabb
from jbench.plan import select

TREES = {  # required files, by dataset
    'Grootswagers2022Human': [
        f'sub-{k:02d}/eeg/sub-{k:02d}_task-rsvp_{name}'
        for k in range(1, 51)
        for name in ('eeg.vhdr', 'eeg.eeg', 'eeg.vmrk', 'events.tsv')
    ],
    'Hebart2023ThingsMeg': [
        *(f'sourcedata/sample_attributes_P{p}.csv' for p in range(1, 5)),
        *(
            f'sub-BIGMEG{p}/ses-{s:02d}/meg/{stem}_meg.ds/{stem}_meg.{kind}'
            for p in range(1, 5)
            for s in range(1, 13)
            for r in range(1, 11)
            for stem in [f'sub-BIGMEG{p}_ses-{s:02d}_task-main_run-{r:02d}']
            for kind in ('meg4', 'res4')
        ),
    ],
    'Miltiadous2023Dice': [
        'participants.tsv',
        *(f'sub-{k:03d}/eeg/sub-{k:03d}_task-eyesclosed_eeg.set' for k in range(1, 89)),
    ],
}
HEADERS = {'participants.tsv': 'participant_id\tGender\tAge\tGroup\tMMSE\n'}
AMUSE = 'far fas fat fau fav faw fax faz fca fcb fcc fcd fce fcg fch fci fcj fck fcl fcm kw'
STORES = {  # below sourcedata/ of NEMAR, where it has what MOABB's classes ask for
    'Cattan2019Dataset': [f'subject_{k:02d}_{room}.mat' for k in range(1, 22) for room in ('PC', 'VR')],
    'Lee2019EegErp': [f'session{s}/s{k}/sess{s:02d}_subj{k:02d}_EEG_ERP.mat' for s in (1, 2) for k in range(1, 55)],
    'Leeb2007Brain': [f'B{k:02d}{part}.mat' for k in range(1, 10) for part in 'TE'],
    'MartinezCagigal2024Dataset': [
        f'{name}.zip'
        for name in 'btfc bvgy eimw fjax hgab hmfm iuvo lvpg opqm pcsa pkel pqgs qtce sbbh vfab zdvm'.split()
    ],
    'Riccio2013Attention': [f'A{k:02d}.mat' for k in range(1, 9)],
    'Scherer2012Brain': [f'S{k:02d}{part}.mat' for k in range(1, 15) for part in 'TE'],
    'Scherer2015Individually': [f'{letter}.mat' for letter in 'ACDEFGHJL'],
    'Schirrmeister2017Deep': [f'{part}/{k}.edf' for part in ('train', 'test') for k in range(1, 15)],
    'Schreuder2010New': [f'AMUSE_VP{name}.mat' for name in AMUSE.split()],
    'Treder2014Decoding': [f'musicbci_VP{name}.mat' for name in 'aak aan aap aaq aar aas aat gcc geo jaq jat'.split()],
    'Wang2017Benchmark': [f'S{k}.mat' for k in range(1, 35)],
}
LEVELS = ('met originals', 'met original tables', 'layout only')


def empty(root: Path, names: list[str]) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(HEADERS.get(name, ''))


@pytest.mark.parametrize('name', TREES)
def test_a_reader_requires_what_its_host_lists_and_no_more(name: str, tmp_path: Path) -> None:
    dataset = select.datasets()[name]
    empty(tmp_path / name, TREES[name])
    refs = find_recordings(dataset, tmp_path)
    assert len(refs) == dataset.n_recordings and len({r.subject for r in refs}) == dataset.n_subjects
    assert [path for ref in refs for path in ref.files if not Path(path).exists()] == []


@pytest.mark.skipif(find_spec('moabb') is None, reason="moabb is not installed: pip install 'jbench[moabb]'")
@pytest.mark.parametrize('name', STORES)
def test_moabb_finds_all_files_of_each_subject_where_nemar_keeps_them(name: str, tmp_path: Path) -> None:
    from moabb.datasets.download import active_sourcedata_store, nemar_store

    dataset, refused = select.datasets()[name], list[str]()
    with moabb._offline(tmp_path, refused), contextlib.redirect_stdout(None), contextlib.redirect_stderr(None):
        source = moabb._source(dataset)
        store = nemar_store(source.code, source.nemar_id) / 'sourcedata'
        empty(store, STORES[name])
        with active_sourcedata_store(store):
            found = [source.data_path(subject) for subject in source.subject_list]
    paths = [path for one in found for path in ([one] if isinstance(one, str | Path) else one)]
    assert refused == [] and paths and all(Path(path).exists() for path in paths)


# ---- the page ----


def met() -> dict[str, tuple[str, str]]:
    """By dataset: what the page says was met, and by what."""
    page = (ROOT / 'docs' / 'datasets.md').read_text().partition('## What was met')[2].partition('\n## ')[0]
    rows = re.findall(rf'^\| (\w+) \| ({"|".join(LEVELS)}) \| (.*?) ?\|$', page, re.M)
    assert len({name for name, _, _ in rows}) == len(rows)
    return {name: (level, by) for name, level, by in rows}


def test_the_page_says_of_each_dataset_what_was_met() -> None:
    found = met()
    assert list(found) == sorted(json.loads((FIXTURES / 'datasets.json').read_text()))
    counts = Counter(level for level, _ in found.values())
    said = '{} met originals, {} met tables, {} neither.'.format(*(counts[level] for level in LEVELS))
    assert said in (ROOT / 'docs' / 'datasets.md').read_text()
    for name, (level, by) in found.items():
        assert bool(by) == (level != 'layout only'), name
        for test in re.findall(r'`(\S+)::(\S+)`', by):
            assert f'def {test[1]}(' in (ROOT / 'tests' / test[0]).read_text(), (name, test)
        assert not by or re.search(r'::|\w+/\w+@[0-9a-f]{7}', by), name
    for name in {*TREES, *STORES}:
        assert found[name][0] != 'layout only' and re.search(r'\w+/\w+@[0-9a-f]{7}', found[name][1]), name


def test_what_was_met_lies_among_the_data_of_tests(data_dir: Path) -> None:
    """Who says that a test reads originals of a dataset has them: its recordings, or its tables."""
    if not (data_dir / 'originals').is_dir():
        pytest.skip(f'no originals at {data_dir / "originals"}')
    for name, (level, by) in met().items():
        folder = 'ERPCORE' if name.startswith('Kappenman2021Erp') else name
        there = [path for path in (data_dir / folder, data_dir / 'originals' / folder) if path.is_dir()]
        assert bool(there) == ('::' in by), name
        signals = {'.edf', '.fif', '.gz', '.bdf', '.eeg', '.set'}
        files = [p for path in there for p in path.rglob('*') if p.suffix in signals and 'Hypnogram' not in p.name]
        assert bool(files) == (level == 'met originals'), name
