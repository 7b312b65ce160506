"""LibriBrain in the serialised form of its authors, on small files: sessions, moments, phonemes."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from jbench.data.discover import find_recordings
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording
from jbench.data.sources import libribrain
from jbench.plan import select

LIBRI = select.find_dataset('LibriBrain')
SECONDS = 12
HEAD = 'idx\tkind\tsegment\ttimemeg\tduration\ttimeaudio'
ROWS = """0\tsilence\tsil\t1.0\t0.5\t0.0
1\tword\tto\t1.5\t0.7\t0.5
2\tphoneme\tt_B\t1.5\t0.1\t0.5
3\tphoneme\tuw_E\t1.6\t0.6\t0.6
4\tsilence\tsil\t2.2\t2.0\t1.2
5\tphoneme\tsil\t2.2\t2.0\t1.2
6\tword\tSherlock\t4.2\t3.0\t3.2
7\tphoneme\toov_S\t4.2\t1.0\t3.2
8\tphoneme\ts_S\t5.5\t0.5\t4.5
9\tsilence\tsil\t7.2\t1.6\t6.2"""


def write(root: Path, book: str, session: int, run: int = 1, *, attributes: bool = True) -> None:
    name, folder = f'sub-0_ses-{session}_task-{book}_run-{run}', root / book / 'derivatives'
    (folder / 'serialised').mkdir(parents=True, exist_ok=True)
    (folder / 'events').mkdir(exist_ok=True)
    x = np.random.default_rng(session).normal(0, 2e-12, (306, 250 * SECONDS)).astype('f4')
    with h5py.File(folder / 'serialised' / f'{name}_proc-bads+headpos+sss+notch+bp+ds_meg.h5', 'w') as file:
        file.create_dataset('data', data=x, chunks=(306, 50))
        file['times'] = np.arange(x.shape[1]) / 250
        if attributes:
            file.attrs['sample_frequency'] = 250.0
            file.attrs['channel_names'] = ', '.join(f'MEG{k:03d}{j}' for k in range(102) for j in (3, 2, 1))
            file.attrs['channel_types'] = ', '.join(['grad', 'grad', 'mag'] * 102)
    (folder / 'events' / f'{name}_events.tsv').write_text(f'{HEAD}\n{ROWS}\n')


@pytest.fixture(scope='module')
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp('data') / LIBRI.name
    for book, session, run in (('Sherlock1', 11, 2), ('Sherlock1', 12, 2), ('Sherlock1', 2, 1), ('Sherlock7', 14, 1)):
        write(root, book, session, run)
    write(root, 'Sherlock4', 2)  # which the authors do not list
    return root.parent


def test_sessions_have_the_parts_of_the_competition(books: Path) -> None:
    refs = find_recordings(LIBRI, books)
    assert [(r.session, r.run, dict(r.fields)['split']) for r in refs] == [
        ('Sherlock1-2', '1', 'train'),
        ('Sherlock1-11', '2', 'valid'),
        ('Sherlock1-12', '2', 'test'),
        ('Sherlock7-14', '1', 'train'),
    ]
    assert sum(map(len, libribrain.BOOKS.values())) == LIBRI.n_recordings and len(libribrain.PHONEMES) == 39


def test_a_session_is_read_from_the_disk_with_its_events(books: Path) -> None:
    ref = find_recordings(LIBRI, books)[0]
    got = libribrain.read(ref)
    assert isinstance(got, Recording) and check_recording.check(got, LIBRI, 'x') == []
    assert not got.raw.preload and got.raw.get_channel_types()[:3] == ['grad', 'grad', 'mag']
    with h5py.File(ref.files[0]) as file:
        stored = file['data'][()]
    np.testing.assert_array_equal(got.raw.get_data(), stored.astype(float))
    np.testing.assert_array_equal(got.raw.get_data([5, 300], 700, 900), stored[[5, 300], 700:900].astype(float))
    of = {k: {n: v[got.events['type'] == k].tolist() for n, v in got.events.items()} for k in set(got.events['type'])}
    assert of['Phoneme']['label'] == ['t', 'uw', 's'] and of['Phoneme']['onset'] == [1.5, 1.6, 5.5]
    assert of['Word']['text'] == ['to', 'Sherlock'] and of['Word']['label'] == ['', '']
    np.testing.assert_allclose(of['Moment']['onset'], 0.4 + 0.8 * np.arange(11))
    # 0.4 before the table, 1.2 silence, 2.0 'to', 2.8 and 3.6 silence, 4.4 to 6.8 'Sherlock', then silence
    assert of['Moment']['label'] == [
        *['silence', 'silence', 'speech', 'silence', 'silence'],
        *['speech'] * 4,
        *['silence', 'silence'],
    ]


def test_speech_is_as_pnpl_has_it() -> None:
    """Between rows too, but not before the first; without silences in words alone."""
    kind = np.array(['silence', 'word', 'word', 'phoneme'])
    onset, lasts = np.array([0.02, 0.04, 0.08, 0.5]), np.array([0.02, 0.02, 0.02, 0.1])
    found = libribrain.speaking(kind, onset, lasts)
    assert found.tolist() == [False] * 10 + [True] * 16
    assert libribrain.speaking(kind[1:], onset[1:], lasts[1:]).tolist() == (
        [False] * 10 + [True] * 5 + [False] * 5 + [True] * 5 + [False]
    )


def test_sensors_without_names_are_counted(tmp_path: Path) -> None:
    write(tmp_path / LIBRI.name, 'Sherlock2', 1, attributes=False)
    raw = libribrain.read(find_recordings(LIBRI, tmp_path)[0]).raw
    assert raw.ch_names[:2] == ['MEG 001', 'MEG 002'] and set(raw.get_channel_types()) == {'mag'}


def test_a_session_without_its_table_is_named(tmp_path: Path) -> None:
    write(tmp_path / LIBRI.name, 'Sherlock2', 1)
    ref = find_recordings(LIBRI, tmp_path)[0]
    Path(ref.files[1]).write_text('onset\tduration\n0\t1\n')
    found = libribrain.read(ref)
    assert isinstance(found, Finding) and found.where == ref.files[1] and found.expected.startswith('kind, segment')
    Path(ref.files[1]).unlink()
    assert isinstance(libribrain.read(ref), Finding)
