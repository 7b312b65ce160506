"""Untouched files of published datasets, read by our readers and held against answers that others gave.

Where a signal is too large to be kept, noise stands in for it; tables and annotations are the published ones.
"""

from __future__ import annotations

import csv
import shutil
import wave
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import h5py
import numpy as np
import pytest
from small_files import brainvision, edf, eeglab

from jbench.data.discover import find_recordings
from jbench.data.formats import bids, wfdb
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, RecordingRef, digest, event_table
from jbench.data.source import source_of
from jbench.data.sources import moabb, sleep
from jbench.data.windows import chosen, starts
from jbench.plan import cells, select

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(scope='session')
def originals(data_dir: Path) -> Path:
    path = data_dir / 'originals'
    if not path.is_dir():
        pytest.skip(f'no originals at {path}')
    return path


def read(ref: RecordingRef) -> Recording:
    got = source_of(select.datasets()[ref.dataset]).read(ref)
    assert not isinstance(got, Finding), got
    return got


# ---- nights ----


def test_the_night_of_sleep_edf_has_its_published_epochs(originals: Path, tmp_path: Path) -> None:
    """Windows of sleep_stage, both versions: counts of the file as scorers of Sleep-EDF are known to give them."""
    root = tmp_path / 'Kemp2000Analysis'
    edf(root / 'SC4001E0-PSG.edf', ['EEG Fpz-Cz', 'EEG Pz-Oz'], 1, 79500)
    shutil.copy(originals / root.name / 'SC4001EC-Hypnogram.edf', root)
    dataset = select.datasets()[root.name]
    (ref,) = find_recordings(dataset, tmp_path)
    table = event_table(read(ref), ref, dataset)
    for task in select.tasks()['sleep_stage']:
        window = cells.apply(task, dataset, ()).window
        kept = chosen(table, window)
        counts: Counter[str] = Counter()
        for k in np.flatnonzero(kept['type'] == window.trigger):
            counts[str(kept['stage'][k])] += len(starts(float(kept['onset'][k]), float(kept['duration'][k]), window))
        assert counts == {'W': 188, 'N1': 58, 'N2': 250, 'N3': 220, 'R': 125}, task.version


@pytest.fixture(scope='module')
def night(originals: Path) -> dict[str, np.ndarray]:
    """The events of tr03-0005."""
    path = originals / 'Ghassemi2018You' / 'tr03-0005.arousal'
    events = sleep._scored([(n / 200, text) for n, text in wfdb.marks(path) if text and not text.startswith('##')])
    assert events is not None
    return events


def test_stages_of_the_challenge_are_the_official_ones(originals: Path, night: dict[str, np.ndarray]) -> None:
    """In every second but the last 1,675: the stage that is scored last lasts one epoch here, as published."""
    with h5py.File(originals / 'Ghassemi2018You' / 'tr03-0005-arousal.mat') as file:
        stages = file['data/sleep_stages']
        assert isinstance(stages, h5py.Group)
        names = {'W': 'wake', 'N1': 'nonrem1', 'N2': 'nonrem2', 'N3': 'nonrem3', 'R': 'rem'}
        official = {stage: np.asarray(stages[name]).ravel() for stage, name in names.items()}
    ours = {stage: np.zeros(len(official['W']), np.uint8) for stage in official}
    for k in np.flatnonzero(night['type'] == 'SleepStage'):
        first, n = round(200 * night['onset'][k]), round(200 * night['duration'][k])
        ours[str(night['stage'][k])][first - 1 : first - 1 + n] = 1  # its samples count from 1
    lost = {stage: int(official[stage].sum()) - int(ours[stage].sum()) for stage in official}
    assert lost == {'W': 1675 * 200, 'N1': 0, 'N2': 0, 'N3': 0, 'R': 0}
    end = len(official['W']) - 1675 * 200 - 1  # of the last sample nothing is said
    assert official['W'].sum() == 11035 * 200 and official['W'][end:-1].all()
    for stage in official:
        assert (official[stage][:end] == ours[stage][:end]).all(), stage


def test_arousals_of_the_challenge_are_the_official_ones(originals: Path, night: dict[str, np.ndarray]) -> None:
    """A target region lies about each arousal that comes of effort; what comes of apnea is not scored there."""
    with h5py.File(originals / 'Ghassemi2018You' / 'tr03-0005-arousal.mat') as file:
        official = np.asarray(file['data/arousals']).ravel()
    edges = np.flatnonzero(np.diff(np.concatenate([[0], official == 1, [0]]).astype(int))) / 200
    regions = list(zip(edges[::2], edges[1::2], strict=True))
    rows = np.flatnonzero(night['type'] == 'SleepArousal')
    found = [(night['onset'][k], night['onset'][k] + night['duration'][k], str(night['state'][k])) for k in rows]
    effort = [(begin, end) for begin, end, state in found if state == 'rera']
    assert len(regions) == len(effort) == 27 and len(found) == 70
    for (low, high), (begin, end) in zip(regions, effort, strict=True):
        assert low < end and begin < high
    for begin, end, state in found:
        if state != 'rera':
            assert (official[round(200 * begin) : round(200 * end)] == -1).all(), (begin, state)


def test_the_header_of_the_challenge_is_read(originals: Path) -> None:
    about = wfdb.header(originals / 'Ghassemi2018You' / 'tr03-0005.hea')
    assert (about.sfreq, len(about.names), about.names[0], about.names[-1]) == (200, 13, 'F3-M2', 'ECG')


# ---- words and pictures ----

HEARD = {  # of NEMAR's own conversion of S01 and S37: onset (s) of the first, a middle and the last word, and the mean
    'S01': (3.772, 362.284, 727.204, 363.3419),
    'S37': (0.278, 358.788, 723.762, 359.8587),
}


def test_words_of_alice_are_where_another_conversion_has_them(originals: Path, tmp_path: Path) -> None:
    """Within 2 ms: that one counts samples from 0, the published tables from 1."""
    given, root = originals / 'Brennan2019Hierarchical', tmp_path / 'Brennan2019Hierarchical'
    for folder in ('timelock-preprocessing', 'audio'):
        (root / folder).mkdir(parents=True)
    shutil.copy(given / 'AliceChapterOne-EEG.csv', root)
    for person in HEARD:
        brainvision(root / f'{person}.vhdr', ['1'], 500, 735)
        shutil.copy(given / 'proc' / f'{person}.mat', root / 'timelock-preprocessing')
    for segment in range(1, 13):
        with wave.open(str(root / 'audio' / f'DownTheRabbitHoleFinal_SoundFile{segment}.wav'), 'wb') as sound:
            sound.setparams((1, 2, 8000, 0, 'NONE', ''))
            sound.writeframes(bytes(16000))
    refs = find_recordings(select.datasets()[root.name], tmp_path)
    assert [ref.subject for ref in refs] == list(HEARD)
    for ref in refs:
        events = read(ref).events
        words = events['type'] == 'Word'
        onset, text = events['onset'][words].astype(float), events['text'][words]
        assert len(onset) == 2129 and [text[0], text[1064], text[-1]] == ['Alice', 'but', 'cake']
        near = [onset[0], onset[1064], onset[-1], onset.mean()]
        np.testing.assert_allclose(near, HEARD[ref.subject], rtol=0, atol=2.1e-3)
        assert len(set(events['sequence_id'][words].tolist())) == 84 and (events['type'] == 'Audio').sum() == 12


def test_somebody_who_saw_no_test_picture_of_things(originals: Path, tmp_path: Path) -> None:
    root = tmp_path / 'Grootswagers2022Human'
    stem = root / 'sub-06/eeg/sub-06_task-rsvp_eeg.vhdr'
    brainvision(stem, ['Oz'], 1000, 2900)
    given = originals / root.name / 'sub-06_task-rsvp_events.tsv'
    shutil.copy(given, stem.parent)
    (ref,) = find_recordings(select.datasets()[root.name], tmp_path)
    events = read(ref).events
    with given.open(newline='') as file:
        rows = list(csv.DictReader(file, delimiter='\t'))
    assert len(events['onset']) == len(rows) == 12360 and set(events['split']) == {'train'}
    assert events['filepath'][0] == 'images/tape_recorder/tape_recorder_10s.jpg' and events['onset'][0] == 40.93
    assert events['concept'].tolist() == [row['object'] for row in rows]
    np.testing.assert_allclose(events['onset'], [float(row['onset']) / 1000 for row in rows], atol=1e-9)


# ---- ERP CORE, as MOABB reads it ----

PICTURES = ('N170', 'N2pc', 'N400', 'P3')
TARGETS = {  # paradigm: codes that MOABB calls Target, and those that it calls NonTarget
    'MMN': ({80, 180}, {70}),  # standards are the targets
    'N170': ({*range(1, 41)}, {*range(41, 81), *range(101, 181)}),  # faces
    'N2pc': ({111, 112, 211, 212}, {121, 122, 221, 222}),  # on the left
    'N400': ({211, 212}, {221, 222}),  # related words
    'P3': ({11, 22, 33, 44, 55}, {10 * a + b for a in range(1, 6) for b in range(1, 6) if a != b}),
    'ERN': ({111, 121, 212, 222}, {112, 122, 211, 221}),  # right answers
    'LRP': ({111, 121, 112, 122}, {212, 222, 211, 221}),  # by the left hand
}


@pytest.mark.skipif(find_spec('moabb') is None, reason="moabb is not installed: pip install 'jbench[moabb]'")
@pytest.mark.parametrize('paradigm', TARGETS)
def test_events_of_erp_core_are_those_of_its_tables(originals: Path, tmp_path: Path, paradigm: str) -> None:
    """But a sample late, and without the delay of the screen: docs/differences.md says so, version 2 allows for it."""
    dataset = select.find_dataset(f'Kappenman2021Erp{paradigm.capitalize() if paradigm != "N2pc" else paradigm}')
    table = 'flankers' if paradigm in ('ERN', 'LRP') else paradigm
    given = bids.table(originals / 'ERPCORE' / f'sub-001_task-{table}_events.tsv')
    folder = tmp_path / dataset.name / f'MNE-erpcore{paradigm.lower()}2021-data' / 'sub-001' / 'eeg'
    eeglab(folder / f'sub-001_task-{paradigm}_eeg.set', ['Fz', 'Cz'], 1024, float(given['onset'][-1]) + 2)
    shutil.copy(
        originals / 'ERPCORE' / f'sub-001_task-{table}_events.tsv', folder / f'sub-001_task-{paradigm}_events.tsv'
    )
    (tmp_path / dataset.name / 'recordings.csv').write_text('subject,session,run\n1,0,0\n')
    (ref,) = find_recordings(dataset, tmp_path)
    got = moabb.read(ref)
    assert isinstance(got, Recording), got
    wanted, others = TARGETS[paradigm]
    kind = 'response' if table == 'flankers' else 'stimulus'
    rows = [
        (float(onset), 'Target' if int(code) in wanted else 'NonTarget')
        for onset, code, k in zip(given['onset'], given['value'], given['trial_type'], strict=True)
        if k == kind and int(code) in wanted | others
    ]
    early = 2 if table == 'flankers' else 0  # two answers before the first picture, which MOABB leaves out
    assert got.events['label'].tolist() == [label for _, label in rows[early:]]
    late = got.events['onset'] - [onset for onset, _ in rows[early:]]
    np.testing.assert_allclose(late, 1 / 1024, atol=6e-5)  # tables have four digits
    if paradigm == 'MMN':
        assert Counter(got.events['label'].tolist()) == {'Target': 800, 'NonTarget': 200}
    if paradigm in PICTURES:
        name = {'P3': 'p3'}.get(paradigm, paradigm.lower())
        start = cells.apply(select.tasks()[name][-1], dataset, ()).window.start
        seen = np.array([onset for onset, _ in rows]) + 0.026
        np.testing.assert_allclose(got.events['onset'] + start, seen - 0.2, atol=6e-5)


def test_channels_of_erp_core_are_as_declared(originals: Path) -> None:
    tables = sorted((originals / 'ERPCORE').glob('*_channels.tsv'))
    assert len(tables) == 6
    for path in tables:
        assert Counter(bids.table(path)['type']) == {'EEG': 30, 'EOG': 3}
    named = bids.table(originals / 'ERPCORE' / 'sub-001_electrodes.tsv')
    assert sum(x != '' for x in named['x']) == 30


# ---- depression ----


def test_recordings_of_mumtaz_are_whole_and_two_lie_there_twice(originals: Path) -> None:
    dataset = select.datasets()['Mumtaz2018Machine']
    refs = find_recordings(dataset, originals)
    assert [(r.subject, r.run, dict(r.fields)['diagnosis']) for r in refs] == [
        *((f'H{k}', 'eyeclosed', 'healthy') for k in (1, 27, 30)),
        *((f'MDD{k}', 'eyeclosed', 'major_depressive_disorder') for k in (1, 33, 34)),
    ]
    digests, parts = {}, []
    for ref in refs:
        got = read(ref)
        assert check_recording.check(got, dataset, ref.where) == []
        assert got.raw.get_channel_types().count('eeg') == 19 and got.raw.info['sfreq'] == 256
        digests[ref.subject] = digest(got)
        native = {'sfreq': 256.0, 'seconds': got.raw.times[-1], 'digest': digests[ref.subject]}
        parts.append({'native': native, 'channels': range(19), 'ch_names': (), 'findings': []})
    assert digests['H27'] == digests['H30'] and digests['MDD33'] == digests['MDD34'] and len(set(digests.values())) == 4
    kept, notes = check_recording.judge(dataset, refs, parts)
    assert kept == [0, 1, 3, 4] and [note for note in notes if 'duplicate' in note] == [
        f'duplicate: recording eyeclosed of subject {second} equals that of subject {first}, sample for sample; '
        'kept once'
        for first, second in (('H27', 'H30'), ('MDD33', 'MDD34'))
    ]
