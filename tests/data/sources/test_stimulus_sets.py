"""Readers of sets with pictures, films, texts and keys, on tiny trees in the layout of their hosts, traps included."""

from __future__ import annotations

import io
import wave
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

import edfio
import h5py
import mne
import numpy as np
import pytest
from scipy.io import savemat
from small_files import brainvision, edf, eeglab, noise

from jbench.data.discover import find_recordings
from jbench.data.formats import xlsx
from jbench.data.formats.words import columns, matched
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, RecordingRef, event_table
from jbench.data.sources import zuco
from jbench.data.windows import chosen, starts, triggers
from jbench.plan import select
from jbench.plan.cells import apply
from jbench.targets import collect, encode

Table = dict[str, list[Any]]
HEAD = ('onset', 'duration', 'type')


def refs_of(root: Path, name: str) -> list[RecordingRef]:
    return find_recordings(select.find_dataset(name), root)


def seen(ref: RecordingRef) -> tuple[mne.io.BaseRaw, Table]:
    """The recording of a reference, which meets the contract and gives windows and targets to the tasks that it
    serves, and its events."""
    dataset = select.datasets()[ref.dataset]
    got = import_module(dataset.source).read(ref)
    assert not isinstance(got, Finding), got
    assert check_recording.check(got, dataset, ref.where) == []
    table = event_table(got, ref, dataset)
    for task in (t for versions in select.tasks().values() for t in versions if dataset.name in t.datasets):
        asked = apply(task, dataset, ())
        window, kept = asked.window, chosen(table, asked.window)
        found = [
            collect(asked.target, kept, i, start, window.duration)
            for i in triggers(kept, window, asked.target)
            for start in starts(float(kept['onset'][i]), float(kept['duration'][i]), window)
        ]
        assert encode(asked.target, found).y.shape[0] == len(found)
        fields = {getattr(asked.split, name, '') for name in ('by', 'field', 'valid_by', 'stratify')}
        assert {f for f in fields if f} <= {*kept, 'recording', '_index'}
    return got.raw, {k: v[1:].tolist() for k, v in table.items()}  # the first is the whole recording


def refused(ref: RecordingRef) -> str:
    got = import_module(select.datasets()[ref.dataset].source).read(ref)
    assert isinstance(got, Finding), got
    return str(got)


def cut_short(ref: RecordingRef) -> str:
    """What is said of a BrainVision recording whose signal is truncated."""
    path = next(p for p in Path(ref.files[0]).parents[1].rglob(f'{Path(ref.files[0]).stem}.eeg'))
    whole = path.read_bytes()
    path.write_bytes(whole[:-2])
    said = refused(ref)
    path.write_bytes(whole)
    return said


def rows(table: Table, kind: str, *names: str) -> list[tuple[Any, ...]]:
    """Columns of the events of a type; times in ms."""
    values = [[round(1000 * v) for v in table[n]] if n in HEAD[:2] else table[n] for n in names]
    return [row for row, t in zip(zip(*values, strict=True), table['type'], strict=True) if t == kind]


def volts(path: Path, n: int, seconds: float, sfreq: float) -> np.ndarray:
    return noise(path, n, int(seconds * sfreq)) * 1e-6


def bdf(path: Path, signals: dict[str, np.ndarray], sfreq: float, marks: tuple = (), unit: str = 'uV') -> None:
    """BDF with whole numbers of microvolts as they are; a `Status` too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    edge = (-(2**23), 2**23 - 1)
    made = [
        edfio.BdfSignal(x, sfreq, label=n, physical_dimension=unit, physical_range=edge) for n, x in signals.items()
    ]
    edfio.Bdf(made, annotations=[edfio.EdfAnnotation(*m) for m in marks] or None).write(path)


# ---- pictures ----


@pytest.fixture
def things(tmp_path: Path) -> Path:
    root = tmp_path / 'Gifford2022Large'
    for folder, part in (('sub-02/ses-01', 'test'), ('sub-01/ses-02', 'test'), ('sub-01/ses-02', 'training')):
        path = root / folder / f'raw_eeg_{part}.npy'
        x = np.vstack([volts(path, 2, 3, 1000), np.zeros((1, 3000))])
        for sample, code in ((500, 2), (900, 99999), (1300, 1)):
            x[2, sample : sample + 5] = code
        file = {'raw_eeg_data': x, 'ch_names': ['Pz', 'Oz', 'stim'], 'ch_types': ['eeg', 'eeg', 'stim'], 'sfreq': 1000}
        np.save(path, {**file, 'highpass': 0.01, 'lowpass': 100}, allow_pickle=True)
    pictures = {f'{p}_img_concepts': ['00001_aardvark', '00002_abacus'] for p in ('train', 'test')}
    pictures |= {f'{p}_img_files': np.array(['aardvark_01b.jpg', 'abacus_02s.jpg']) for p in ('train', 'test')}
    np.save(root / 'image_metadata.npy', pictures, allow_pickle=True)
    return tmp_path


def test_pictures_of_things_are_named_by_their_triggers(things: Path) -> None:
    refs = refs_of(things, 'THINGS-EEG2')
    assert [(r.subject, r.session, r.run) for r in refs] == [
        ('1', '2', 'training'),
        ('1', '2', 'test'),
        ('2', '1', 'test'),
    ]
    raw, table = seen(refs[0])
    assert raw.get_channel_types() == ['eeg', 'eeg', 'stim']
    assert rows(table, 'Image', 'onset', 'duration', 'filepath', 'split') == [
        (500, 100, 'training_images/00002_abacus/abacus_02s.jpg', 'train'),
        (1300, 100, 'training_images/00001_aardvark/aardvark_01b.jpg', 'train'),
    ]
    assert set(seen(refs[1])[1]['split']) == {'test'}


def test_a_pickle_that_calls_something_is_not_read(things: Path) -> None:
    ref = refs_of(things, 'THINGS-EEG2')[0]
    np.save(ref.files[1], {'train_img_files': Path('x')}, allow_pickle=True)
    with pytest.raises(Exception, match=r'names pathlib.*, which is no array'):
        import_module('jbench.data.sources.things_eeg2').read(ref)


def frame(path: Path, ids: list[int], times: list[float]) -> None:
    """A table as pandas stores it (fixed format): a block for each type, rows by columns; the epochs are pickled."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, 'w') as file:
        group = file.create_group('dataset')
        blocks = (
            (['subject_id', '73k_id'], np.stack([np.ones(len(ids), int), ids], 1)),
            (['curr_time'], [*zip(times)]),
        )
        for k, (names, values) in enumerate(blocks):
            group[f'block{k}_items'], group[f'block{k}_values'] = np.array(names, 'S'), np.array(values)
        group['block2_items'] = np.array(['eeg'], 'S')
        group.create_dataset('block2_values', (1,), h5py.vlen_dtype(np.uint8))[0] = np.frombuffer(b'cos\n', np.uint8)


def test_photographs_of_alljoined_are_in_the_table_beside_the_signal(tmp_path: Path) -> None:
    root = tmp_path / 'Xu2024Alljoined'
    for name in ('subj03_session1', 'subj01_session2', 'subj01_session1'):
        path = root / 'raw' / f'{name}_eeg.fif'
        raw = mne.io.RawArray(volts(path, 2, 4, 512), mne.create_info(['Cz', 'Oz'], 512, 'eeg'), first_samp=512)
        raw.save(path, verbose='ERROR')
    for name in ('subj01_session2', 'subj01_session1'):
        frame(root / '05_125' / f'{name}.h5', [73000, 1], [1.5, 2.25])
    refs = refs_of(tmp_path, 'Alljoined1')
    assert [(r.subject, r.session) for r in refs] == [('1', '1'), ('1', '2')]  # of subject 3 there is no table
    assert rows(seen(refs[0])[1], 'Image', 'onset', 'duration', 'filepath') == [
        (500, 300, 'nsd_stimuli/72999.png'),
        (1250, 300, 'nsd_stimuli/0.png'),
    ]
    with h5py.File(refs[0].files[1], 'a') as file:
        file['dataset/block1_items'][0] = b'time'
    assert 'curr_time' in refused(refs[0])


def test_pictures_of_the_consumer_headset_are_annotations(tmp_path: Path) -> None:
    root = tmp_path / 'Xu2025Alljoined' / 'raw_eeg'
    marks = ((0.5, None, 'stim_train,12,0,0'), (0.75, None, 'stim_test,16740,0,1'), (1.5, None, 'behav,7,0,2'))
    for number, folder in ((1, 'sub-01/session_02/block_10'), (19, 'sub-08/session_01/block_02')):
        _, session, block = (int(p[-2:]) for p in folder.split('/'))
        name = f'Subject {number}, Session {session}, Block {block}_EPOCFLEX_1.edf'
        edf(root / folder / name, ['Cz', 'Afz', 'CMS', 'Battery'], 256, 4, marks)
    (root / 'sub-01/session_02/block_10' / 'Subject 1, Session 2, Block 100_x.edf').touch()
    refs = refs_of(tmp_path, 'Alljoined-1.6M')
    assert [(r.subject, r.session, r.run) for r in refs] == [('1', '2', '10'), ('8', '1', '2')]
    raw, table = seen(refs[1])
    assert raw.copy().pick('eeg').ch_names == ['Cz', 'AFz']
    assert rows(table, 'Image', 'onset', 'label', 'filepath') == [
        (500, 'stim_train', 'images/00012.jpg'),
        (750, 'stim_test', 'images/16740.jpg'),
        (1500, 'behav', 'images/00007.jpg'),
    ]


# ---- films ----


@pytest.mark.parametrize('stored', ['<f4', '<f8'])
def test_clips_of_seed_dv_lie_where_the_blocks_say(tmp_path: Path, stored: str) -> None:
    home = tmp_path / 'Liu2024Eeg2video' / 'SEED-DV'
    (home / 'EEG').mkdir(parents=True)
    x = (20 * np.random.default_rng(0).standard_normal((7, 2, 104000), np.float32)).astype(stored)  # microvolts
    for name in ('sub10', 'sub1_session2', 'sub1'):
        np.save(home / 'EEG' / f'{name}.npy', x if name == 'sub1' else x[:, :1, :9])
    (home / 'channel_62_pos.locs').write_text('1\t-18\t0.511\tFP1\n2\t0\t0.506\tFPZ\n')
    labels = np.tile(np.arange(1.0, 41), (7, 1))
    labels[3] = labels[3, ::-1]
    (home / 'Video/meta-info').mkdir(parents=True)
    np.save(home / 'Video/meta-info/All_video_label.npy', labels)
    refs = refs_of(tmp_path, 'SEED-DV')
    assert [(r.subject, r.session) for r in refs[::7]] == [('sub1', '1'), ('sub1', '2'), ('sub10', '1')]
    raw, table = seen(refs[3])
    assert raw.ch_names == ['FP1', 'FPZ'] and 15e-6 < raw.get_data().std() < 25e-6
    shown = rows(table, 'Video', 'onset', 'duration', 'concept', 'filepath')
    clips = 'prepare/video_clips/block-4_subblock-{:02d}_clip-{}.mp4'
    assert len(shown) == 200 and shown[0] == (3000, 2000, 'ship', clips.format(1, 1))
    assert shown[6] == (18000, 2000, 'airplane', clips.format(2, 2)) and shown[-1][:3] == (518000, 2000, 'cat')
    assert 'must fit' in refused(refs[7])
    np.save(home / 'Video/meta-info/All_video_label.npy', labels - 1)
    assert 'All_video_label.npy: each part must show a known concept: found 0, expected 1 to 40' in refused(refs[3])


@pytest.mark.parametrize(('sfreq', 'unit'), [(250, 'uV'), (1000, 'V')])
def test_films_of_faced_are_between_their_triggers(tmp_path: Path, sfreq: int, unit: str) -> None:
    """In one file the unit is right; in the other numbers of microvolts are said to be volts."""
    folder = tmp_path / 'Chen2023Large' / 'Data' / 'sub007'
    x = noise(folder / 'data.bdf', 3, 200 * sfreq).round()
    bdf(folder / 'data.bdf', dict(zip(('FP1', 'T3', 'HEOL'), x, strict=True)), sfreq, unit=unit)
    clips = [28, *range(1, 28)]
    marks = [(7.0 * k + dt, None, t) for k, c in enumerate(clips) for dt, t in ((0, str(c)), (1, '101'), (6.5, '102'))]
    bdf(folder / 'evt.bdf', {}, sfreq, tuple(marks))
    (ref,) = refs_of(tmp_path, 'FACED')
    raw, table = seen(ref)
    assert raw.ch_names == ['Fp1', 'T7', 'HEOL'] and raw.get_channel_types() == ['eeg', 'eeg', 'eog']
    assert 5e-6 < raw.get_data('eeg').std() < 25e-6
    films = rows(table, 'Stimulus', 'onset', 'duration', 'label', 'code')
    assert films[:2] == [(1000, 5500, 'tenderness', '28'), (8000, 5500, 'anger', '1')] and len(films) == 28
    assert {label: [f[2] for f in films].count(label) for label in ('neutral', 'joy', 'fear')} == {
        'neutral': 4,
        'joy': 3,
        'fear': 3,
    }
    bdf(folder / 'evt.bdf', {}, sfreq, (*marks[:1], *marks[2:]))
    assert 'clip 28 without them' in refused(ref)


# ---- texts ----


def test_words_of_alice_begin_where_the_epochs_say(tmp_path: Path) -> None:
    root = tmp_path / 'Brennan2019Hierarchical'
    for person in ('S02', 'S03', 'S05'):  # too noisy, good, without a table
        brainvision(root / f'{person}.vhdr', ['1', '2', 'VEOG', 'AUD'], 500, 5)
    lines = ['Word,Segment,onset,offset,Order,LogFreq,Position,Sentence']
    lines += ['Alice,1,0.25,0.5,1,9,1,1', 'was,1,0.5,0.75,2,9,2,1', 'Once,2,0.1,0.35,3,9,1,2']
    (root / 'AliceChapterOne-EEG.csv').write_text('\n'.join(lines))
    trl = np.array([[351, 851, -150, 1, 0.25, 1], [1351, 1851, -150, 2, 0.1, 3]], float)  # the second was rejected
    for person in ('S02', 'S03'):
        path = root / 'timelock-preprocessing' / f'{person}.mat'
        path.parent.mkdir(exist_ok=True)
        savemat(path, {'proc': {'trl': trl, 'varnames': np.array(['segment', 'tmin', 'Order'], object)}})
    (root / 'audio').mkdir()
    for segment in (1, 2):
        with wave.open(str(root / 'audio' / f'DownTheRabbitHoleFinal_SoundFile{segment}.wav'), 'wb') as sound:
            sound.setparams((1, 2, 8000, 0, 'NONE', ''))
            sound.writeframes(bytes(2 * 8000 * segment))
    (ref,) = refs_of(tmp_path, 'Brennan2019Hierarchical')
    assert ref.subject == 'S03'
    raw, table = seen(ref)
    assert raw.get_channel_types() == ['eeg', 'eeg', 'eog', 'misc']
    assert rows(table, 'Word', 'onset', 'duration', 'text', 'sentence', 'sequence_id') == [
        (1000, 250, 'Alice', 'Alice', '1'),
        (3000, 250, 'Once', 'Once', '2'),
    ]
    assert rows(table, 'Sentence', 'onset', 'text') == [(1000, 'Alice'), (3000, 'Once')]
    sounds = 'audio/DownTheRabbitHoleFinal_SoundFile{}.wav'
    assert rows(table, 'Audio', 'onset', 'duration', 'filepath', 'text') == [
        (750, 1000, sounds.format(1), ''),
        (2900, 2000, sounds.format(2), ''),
    ]
    assert 'S03.eeg: the signal must hold whole samples' in cut_short(ref)
    (root / sounds.format(2)).unlink()
    with pytest.raises(FileNotFoundError, match='SoundFile2'):
        seen(refs_of(tmp_path, 'Brennan2019Hierarchical')[0])


def cells(values: list[Any]) -> np.ndarray:
    """A cell array of MATLAB."""
    out = np.empty(len(values), object)
    out[:] = values
    return out


def structs(items: list[dict[str, Any]]) -> np.ndarray:
    """A struct array of MATLAB."""
    out = np.empty(len(items), [(name, 'O') for name in items[0]])
    for k, item in enumerate(items):
        out[k] = tuple(item.values())
    return out


EYE = ('latency', 'endtime', 'duration', 'fix_avgpos_x', 'fix_avgpos_y', 'fix_avgpupilsize')  # of a fixation
AT = {  # of the list of sentences: where the eye rested, and the pupil
    'It rains.': {'x': [15.0], 'y': [5.0], 'pupilsize': [100.0]},
    'No eyes here.': {'x': [99.0], 'y': [5.0], 'pupilsize': [100.0]},
    'Of block one.': np.array([]),
}


def test_sentences_of_zuco_are_counted_over_the_blocks(tmp_path: Path) -> None:
    folder = tmp_path / 'Hollenstein2018Zuco' / 'task1- SR'
    for person in ('ZDN', 'ZAB'):
        raw, path = folder / 'Raw data' / person, folder / 'Raw data' / person / f'{person}_SNR2_EEG.mat'
        # the third sentence was not tracked; latencies count from 1
        marks = [(501, '10'), (1501, '11'), (2001, '12'), (2501, '13'), (3001, '10'), (3101, '11')]
        event = structs([{'latency': float(at), 'type': code} for at, code in marks])
        chanlocs = structs([{'labels': 'E1'}, {'labels': 'E2'}])
        signal = noise(path, 2, 4000)
        savemat(path, {'EEG': {'data': signal, 'srate': 500.0, 'chanlocs': chanlocs, 'event': event}})
        for block, times in (
            (1, [[10000, 10], [12000, 11]]),
            (2, [[10000, 10], [12000, 11], [13000, 12], [14000, 13]]),
        ):
            data = np.array([[9000, 9100, 0, 5], [10500, 10700, 0, 15], [13200, 13300, 0, 99]], float)
            data = np.hstack([data, np.full((3, 1), 5.0), np.full((3, 1), 100.0)])
            table = {'data': data, 'colheader': np.array(EYE, object)}
            eyes = {'event': np.array(times, float), 'eyeevent': {'fixations': table}}
            savemat(raw / f'{person}_SR{block}_ET.mat', eyes)
        said = ['Of block one.', 'It rains.', 'No eyes here.']
        box = np.array([[0, 0, 10, 10], [10.5, 0, 20, 10]], float)
        bounds = {'It rains.': box}
        lists = structs([{'content': s, 'wordbounds': bounds.get(s, np.nan), 'allFixations': AT[s]} for s in said])
        (folder / 'Matlab files').mkdir(exist_ok=True)
        savemat(folder / 'Matlab files' / f'results{person}_SR.mat', {'sentenceData': lists})
    (ref,) = refs_of(tmp_path, 'ZuCo')
    assert (ref.subject, ref.run, dict(ref.fields)['task']) == ('ZAB', 'SNR2', 'task1-SR')
    raw, table = seen(ref)
    assert raw.ch_names == ['E1', 'E2'] and 15e-6 < raw.get_data().std() < 25e-6
    assert rows(table, 'Sentence', 'onset', 'duration', 'text') == [
        (1000, 2000, 'It rains.'),
        (4000, 1000, 'No eyes here.'),
    ]
    assert rows(table, 'Word', 'onset', 'duration', 'text', 'sentence') == [(1500, 200, 'rains', 'It rains.')]
    Path(ref.files[2]).unlink()  # eyes in the first block
    assert 'sentences must fit' in refused(refs_of(tmp_path, 'ZuCo')[0])


@pytest.mark.parametrize(
    ('listed', 'want'),  # fixations of the list (x, pupil) -> words at the times of those of the eye tracker
    [
        ([(5, 100), (15, 101), (25, 102)], {10.1: 'it', 10.3: 'rains', 10.5: 'today'}),
        ([(5, 100), (15, 101), (25, 109)], {10.1: 'today', 10.3: 'rains'}),  # unknown: it takes the place of the first
        ([(25, 109), (5, 100)], {10.1: 'it'}),  # and the first takes it back
        ([(5, 100), (99, 109)], {}),  # one beside all words, and unknown: the first is lost
        ([(15, 101)], {10.3: 'rains'}),
        ([], {}),
    ],
)
def test_words_of_zuco_are_those_that_the_published_matching_finds(listed, want) -> None:
    box = np.array([[0, 0, 10, 10], [10.5, 0, 20, 10], [20.5, 0, 30, 10]], float)
    x, pupil = ([float(pair[k]) for pair in listed] for k in (0, 1))
    at = {'x': x, 'y': [5.0] * len(x), 'pupilsize': pupil} if listed else np.array([])
    eye = dict(
        zip(
            EYE,
            np.array(
                [
                    [t, t + 0.1, 0, x, 5, p]
                    for t, x, p in ((9.9, 5, 100), (10.1, 5, 100), (10.3, 15, 101), (10.5, 25, 102), (12.1, 25, 102))
                ]
            ).T,
            strict=True,
        )
    )
    sentence = {'content': 'It rains today.', 'wordbounds': box, 'allFixations': at}
    found = zuco._words(sentence, eye, (10.0, 12.0), (10.0, 12.0))
    assert {round(row['onset'], 3): row['text'] for row in found} == want


SHEETS = {
    'Delong_Replication': [
        ['Item number', 'Sentence context', 'Expected', 'Unexpected', 'Expected', 'Unexpected', 'Sentence ending'],
        [1, "It's late, so", 'a', 'an', 'Bed', 'oven', 'helps.'],
        [2, 'We saw', 'a', 'an', 'ship', 'owl', 'outside today.'],
    ],
    'Control_experiment': [['Item number', 'Correct', 'Incorrect'], [1, 'He ate it all.', 'He eat it all.']],
}


def workbook(path: Path) -> bytes:
    """What Excel writes: strings are shared, sheets are found by their relations."""
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    strings: list[str] = []
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w') as file:
        names, links = [], []
        for k, (name, lines) in enumerate(SHEETS.items(), 1):
            text = ''
            for at, line in enumerate(lines, 1):
                made = []
                for column, value in zip('ABCDEFG', line, strict=False):
                    if isinstance(value, str):
                        strings.append(
                            f'<si><r><t>{value[:1]}</t></r><r><t xml:space="preserve">{value[1:]}</t></r></si>'
                        )
                    kind, stored = (' t="s"', len(strings) - 1) if isinstance(value, str) else ('', value)
                    made.append(f'<c r="{column}{at}"{kind}><v>{stored}</v></c>')
                text += f'<row r="{at}">{"".join(made)}</row>'
            file.writestr(
                f'xl/worksheets/sheet{k}.xml', f'<worksheet {space}><sheetData>{text}</sheetData></worksheet>'
            )
            names.append(f'<sheet name="{name}" sheetId="{9 - k}" r:id="rId{k + 4}"/>')
            links.append(f'<Relationship Id="rId{k + 4}" Target="worksheets/sheet{k}.xml"/>')
        there = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
        file.writestr('xl/workbook.xml', f'<workbook {space} {there}><sheets>{"".join(names)}</sheets></workbook>')
        file.writestr('xl/_rels/workbook.xml.rels', f'<Relationships>{"".join(links)}</Relationships>')
        file.writestr('xl/sharedStrings.xml', f'<sst {space}>{"".join(strings)}</sst>')
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('Stimuli/Sentence Materials/REPLICATION_ITEMS.xlsx', out.getvalue())
    return out.getvalue()


LATE = (30, 101, 255, 255, 255, 201, 205, 207)  # "It's late, so a Bed helps."
SAW = (102, 255, 255, 204, 206, 255, 208)  # zero cloze and no marker of it: practice in the first ten sequences
ATE = (30, 101, 255, 255, 210, 255)
SHORT = (30, 102, 255, 203)  # words are missing


def stream(*sequences: tuple[int, ...]) -> list[tuple[float, int]]:
    """Onset and trigger: half a second a trigger, two between sequences."""
    marks, at = [], 1.0
    for sequence in sequences:
        for code in sequence:
            marks.append((at, code))
            at += 0.5
        at += 2.0
    return marks


def test_words_of_nieuwland_are_those_that_triggers_and_items_say(tmp_path: Path) -> None:
    root = tmp_path / 'Nieuwland2018Large'
    workbook(root / 'Stimuli' / 'Stimuli.zip')
    raw_data = root / 'Raw and Processed data' / 'Raw data'
    main = stream(LATE, SHORT, SAW, (251,), LATE, LATE)
    for name, marks in (
        ('BRIS/bris02_main', main),
        ('BRIS/bris02_control', stream(ATE, ATE)),
        ('BRIS/bris32_main', []),
    ):
        lines = tuple((round(t * 1000) + 1, 'Stimulus', f'S{code:3d}') for t, code in marks)
        brainvision(raw_data / f'{name}.vhdr', ['Afz', 'Cz', 'VEOG'], 1000, 40, lines)
    birm = raw_data / 'BIRM' / 'birm05.vhdr'
    lines = tuple((round(t * 500) + 1, 'Stimulus', f'S{code:3d}') for t, code in stream(LATE, LATE))
    brainvision(birm, ['Cz', 'EOG', 'BIP1'], 500, 20, lines)
    (birm.parent / 'VHDR+VMRK').mkdir()
    for path in (birm, birm.with_suffix('.vmrk')):
        path.rename(birm.parent / 'VHDR+VMRK' / path.name)
    for path in ('EDIN/edin3.bdf', 'LOND/lond003(answered questions randomly).bdf'):
        status = np.full(512 * 40, 2.0**16)  # a bit that is no trigger
        for t, code in stream(LATE, LATE):
            status[round(512 * t) : round(512 * t) + 20] += code
        eeg = noise(raw_data / path, 2, 512 * 40).round()
        bdf(raw_data / path, {'Fp1': eeg[0], 'Cz': eeg[1], 'EXG1': eeg[0], 'Status': status}, 512)
    refs = refs_of(tmp_path, 'Nieuwland2018Large')
    assert [(r.subject, r.run, dict(r.fields)['site']) for r in refs] == [
        ('BIRM_5', 'main', 'BIRM'),
        ('BRIS_2', 'main', 'BRIS'),
        ('BRIS_2', 'control', 'BRIS'),
        ('EDIN_3', 'main', 'EDIN'),
        ('LOND_3', 'main', 'LOND'),
    ]
    assert rows(seen(refs[0])[1], 'Word', 'onset')[0] == (2000,)
    raw, table = seen(refs[1])
    assert raw.ch_names == ['AFz', 'Cz', 'VEOG'] and raw.get_channel_types() == ['eeg', 'eeg', 'eog']
    whole = "It's late, so a Bed helps."
    words = rows(table, 'Word', 'onset', 'duration', 'text', 'sentence', 'sequence_id', 'site')
    said = [(2000 + 500 * k, 200, w, whole, '0', 'BRIS') for k, w in enumerate("it's late so a bed helps".split())]
    assert words[:6] == said and {w[4] for w in words} == {'0', '4'}  # the last is followed by nothing
    assert rows(table, 'Sentence', 'onset', 'duration', 'text')[0] == (2000, 2700, whole)
    assert [w[0] for w in rows(seen(refs[2])[1], 'Word', 'text')] == ['he', 'ate', 'it', 'all']
    raw, table = seen(refs[3])
    assert raw.get_channel_types() == ['eeg', 'eeg', 'misc', 'stim'] and rows(table, 'Word', 'onset')[0] == (2000,)
    assert 'birm05.eeg: the signal must hold whole samples' in (said := cut_short(refs[0])) and 'BIRM' in said
    assert 'bris02_main.eeg: the signal must hold whole samples' in cut_short(refs[1])
    Path(refs[3].files[0]).write_bytes(Path(refs[3].files[0]).read_bytes()[:-3])
    assert 'the file is truncated' in refused(refs[3])


def test_a_sheet_is_read_by_its_name_and_columns_by_theirs(tmp_path: Path) -> None:
    book = io.BytesIO(workbook(tmp_path / 'x.zip'))
    first = xlsx.sheet(book, 'Delong_Replication')[0]
    assert first['expected'] == 'a' and first['expected_1'] == 'Bed' and first['item_number'] == '1'
    assert len(xlsx.sheet(book, 'Control_experiment')) == 1
    with pytest.raises(KeyError):
        xlsx.sheet(book, 'Control')


def test_lists_that_lack_some_are_matched_by_the_fewest_changes() -> None:
    assert [m.tolist() for m in matched([1, 2, 3, 4], [1, 3, 9, 4])] == [[0, 2, 3], [0, 1, 3]]
    assert [m.tolist() for m in matched([5, 1, 1, 2], [1, 2])] == [[2, 3], [0, 1]]
    assert [m.tolist() for m in matched([], [1])] == [[], []]


# ---- keys ----

RELEASE, WORDS = 0.08, ((0.0, 'El'), (0.5, 'gato\ufeff'))
TYPED = ((1.0, 'E'), (1.2, 'L'), (1.4, ' '), (1.6, 'Q'), (1.8, '\b'), (2.0, 'X'), (2.2, 'G'), (2.4, '7'), (2.8, 'O'))
STAYS_DOWN = (3.0, 'T')
TRIALS = (10.0, 20.0, 30.0)  # s of the log; the recording is 5 s earlier


def log_of_keys(path: Path) -> list[tuple[float, int]]:
    """A log of three trials, and the triggers that the recording holds, by its clock."""
    shown, pressed, marks = [], [], []
    for start in TRIALS:
        shown.append(structs([{'t': start + t, 'stim': word} for t, word in WORDS]))
        keys = [(start + t, ord(c), 1) for t, c in (*TYPED, STAYS_DOWN)]
        keys += [(t + RELEASE, code, 0) for t, code, _ in keys[:-1]] + [(start + 4.0, 13, 1), (start + 4.1, 13, 0)]
        names = ('Time', 'Keycode', 'Pressed')
        pressed.append(structs([dict(zip(names, key, strict=True)) for key in sorted(keys)]))
        marks += [(start + t, 10) for t, _ in WORDS] + [(t, code) for t, code, down in keys if down]
    path.parent.mkdir(parents=True, exist_ok=True)
    savemat(path, {'pr_trials': {'key': cells(pressed), 'rsvp': cells(shown)}})
    triggers = [(t - 5.0 + 0.01, code) for t, code in sorted(marks)]
    del triggers[5]  # one is missing: the Q of the first trial
    return sorted([*triggers, (18.0, 77)])  # and one is too many


def typed(start: int) -> list[tuple[int, int, str]]:
    """Keys that count, of a trial that begins at `start` s: not the one after a backspace, nor what stays down."""
    kept = [(1.0, 'e'), (1.2, 'l'), (1.4, '<space>'), (1.6, 'q'), (2.2, 'g'), (2.4, '<number>'), (2.8, 'o')]
    return [(round(1000 * (start - 5 + t)) + 10, 80, button) for t, button in kept]


def check_typing(table: Table) -> None:
    keys = rows(table, 'Keystroke', 'onset', 'duration', 'button')
    assert keys == [k for start in TRIALS for k in typed(int(start)) if k[0] != 6610]
    assert set(rows(table, 'Keystroke', 'text')) == {('el gato',)}
    assert [int(t) for (t,) in rows(table, 'Keystroke', 'trial_id')] == [0] * 6 + [1] * 7 + [2] * 7
    assert rows(table, 'Word', 'onset', 'duration', 'word', 'sentence', 'text')[:2] == [
        (5010, 500, 'el', 'el gato', ''),
        (5510, 500, 'gato', 'el gato', ''),
    ]
    assert rows(table, 'Sentence', 'onset', 'duration', 'sentence', 'text')[0] == (5010, 1000, 'el gato', '')


def test_keys_in_eeg_are_where_their_triggers_are(tmp_path: Path) -> None:
    home = tmp_path / 'Levy2026NoninvasiveEeg' / 'EEG'
    triggers = log_of_keys(home / 'logs' / 'S2' / 'S2_session1_block1_list1.mat')
    tried = [(0.005 + 0.01 * k, code) for k, code in enumerate(range(1, 256))]
    marks = tuple((round(1000 * t) + 1, 'Stimulus', f'S{code:3d}') for t, code in (*tried, *triggers))
    for name in ('002_DECOMEG_S1_77_task', '002_DECOMEG_S1_77_tapping', '002_DECOMEG_S2_77_task1'):
        brainvision(home / 'EEG' / '002' / f'{name}.vhdr', ['Cz', 'Oz', 'VEOG'], 1000, 40, marks)
    for name in ('001_DECOMEG_S1_77_task1', '003_DECOMEG_S1_9337_task1'):
        brainvision(home / 'EEG' / f'{name}.vhdr', ['Cz'], 1000, 1)
    (ref,) = refs_of(tmp_path, 'levy2026eeg')  # the others are of no use, or have no log
    assert (ref.subject, ref.session, ref.run) == ('002', '1', 'task')
    raw, table = seen(ref)
    assert raw.get_channel_types() == ['eeg', 'eeg', 'eog']
    check_typing(table)
    assert '_task.eeg: the signal must hold whole samples' in cut_short(ref)
    (home / 'logs' / 'S2' / 'S2_session1_block1_list1.mat').rename(home / 'logs' / 'S2_session1_block1_x.mat')
    brainvision(home / 'EEG' / '002' / '002_DECOMEG_S1_77_task.vhdr', ['Cz', 'Oz', 'VEOG'], 1000, 40, marks[:40])
    assert 'must have a trigger' in refused(refs_of(tmp_path, 'levy2026eeg')[0])


def test_keys_in_meg_count_from_the_start_of_the_file(tmp_path: Path) -> None:
    home = tmp_path / 'Levy2026NoninvasiveMeg' / 'MEG'
    triggers = log_of_keys(home / 'logs' / 'S1-session2-2_list1.mat')
    x = 1e-5 * volts(home / 'x', 3, 40, 1000)
    x[2] = 0
    for t, code in triggers:
        x[2, round(1000 * t) : round(1000 * t) + 5] = code
    raw = mne.io.RawArray(x, mne.create_info(['MEG 0112', 'MEG 0111', 'STI101'], 1000, ['grad', 'mag', 'stim']), 700)
    for name in ('01_9/230101/block1', '01_9/230203/block1', '01_9/230203/block2', '13_8/230101/block1'):
        (home / 'FIF' / name).parent.mkdir(parents=True, exist_ok=True)
        raw.save(home / 'FIF' / f'{name}.fif', verbose='ERROR')
    (ref,) = refs_of(tmp_path, 'levy2026meg')  # the log of the first two people is swapped in the second session
    assert (ref.subject, ref.session, ref.run) == ('S1', '2', 'block1')
    check_typing(seen(ref)[1])


@pytest.mark.parametrize(
    ('path', 'run', 'log'),
    [
        ('01_9/230101/block3', 'block2', 'S1-session1-2'),
        ('02_9/230101/block1', 'block1', 'S2-session1-1'),
        ('03_9/230102/03_03_9_block1', 'block1', 'S3-session2_block1'),
        ('08_11374/230508/block1', 'block1', 'S8-session1_block1'),
        ('8_11374/231023/block1', 'block1', 'S8-session2_block1'),
        ('14_9875/230101/bolck2', 'block2', 'S14-session1_block2'),
        ('21_9/230101/block2_2', 'block2', 'S21-session1_block2'),
        ('21_9/230101/block2_1', '', 'S21-session1_block2'),
        ('14_9876/230101/block2', '', 'S14-session1_block2'),
        ('05_3660/230419/block1', '', 'S5-session1_block1'),
        ('05_1/230419/block1-1', '', 'S5-session1_block1'),
        ('05_1/230419/typing_s2', '', 'S5-session1_typing'),
        ('empty_room/230101/block1', '', 'S5-session1_block1'),
    ],
)
def test_files_of_meg_go_by_many_names(tmp_path: Path, path: str, run: str, log: str) -> None:
    home = tmp_path / 'Levy2026NoninvasiveMeg' / 'MEG'
    for file in (home / 'FIF' / f'{path}.fif', home / 'logs' / f'{log}_list1.mat', home / 'FIF' / '03_9/230101/x'):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert [r.run for r in refs_of(tmp_path, 'levy2026meg')] == [run] * bool(run)


# ---- tasks of mind ----


def test_cog_bci_is_found_under_one_folder_or_two(tmp_path: Path) -> None:
    root = tmp_path / 'Hinss2023Open'
    event = structs(
        [{'type': '241', 'latency': 501.0, 'duration': 0.0}, {'type': 'x', 'latency': 751.0, 'duration': 0.0}]
    )
    for name in (
        'sub-03/sub-03/ses-S1/eeg/MATBeasy',
        'sub-01/ses-S2/eeg/PVT',
        'sub-01/ses-S1/eeg/PVT',
        'sub-01/ses-S1/eeg/RS',
    ):
        eeglab(root / f'{name}.set', ['Fz', 'Cz', 'ECG1'], 500, 6, event=event)
    eeglab(root / 'sub-01/ses-S1/eeg/MATBdiff.set', ['Fz', 'Cz', 'ECG1'], 500, 3, event=event)
    (root / 'triggerlist.txt').write_text('code,content\n241, FLANKER congruent\n')
    places = root / 'sub-03/sub-03/ses-S1/eeg/chanlocs/get_chanlocs.txt'
    places.parent.mkdir()
    places.write_text('nas 0 0.1 0\nlhj -0.08 0 0\nrhj 0.08 0 0\nFz 0 0.05 0.1\nCz 0 0 0.12\nECG1 0 0 0\n')
    refs = refs_of(tmp_path, 'COG-BCI')
    assert [(r.subject, r.session, r.run) for r in refs] == [
        ('sub-01', 'ses-S1', 'PVT'),
        ('sub-01', 'ses-S2', 'PVT'),
        ('sub-01', 'ses-S1', 'MATBdiff'),
        ('sub-03', 'ses-S1', 'MATBeasy'),
    ]
    raw, table = seen(refs[3])
    assert raw.get_channel_types() == ['eeg', 'eeg', 'ecg'] and 15e-6 < raw.get_data('eeg').std() < 25e-6
    assert raw.info['chs'][1]['loc'][2] == pytest.approx(0.12)
    assert rows(table, 'Stimulus', 'onset', 'code', 'label', 'task') == [
        (1000, '241', 'FLANKER congruent', 'MATBeasy'),
        (1500, 'x', 'x', 'MATBeasy'),
    ]


def test_errors_of_the_robot_are_those_that_were_seen(tmp_path: Path) -> None:
    home = tmp_path / 'Kueper2024Eeg' / 'EEG'
    codes = (1, 16, 64, 48, 32, 96, 80, 64, 96, 16, 32, 80)
    marks = tuple((250 * k + 1, 'Stimulus', f'S{code:3d}') for k, code in enumerate(codes))
    name = '2023_{}_orthosisErrorIjcai_multi_{}.vhdr'
    for folder, person, end in (
        ('additional sets/', 'BS34D', 'set9'),
        ('', 'BS34D', 'set10'),
        ('', 'BS34D', 'set2'),
        ('', 'AW59D', 'set1'),
        ('baseline_without_error/', 'BS34D', 'baseline_set1'),
    ):
        brainvision(home / person / 'data' / folder / name.format(person, end), ['Fp1', 'CZ'], 500, 7, marks)
    refs = refs_of(tmp_path, 'IntEr-HRI')
    assert [(r.subject, r.run) for r in refs] == [('BS34D', '2'), ('BS34D', '10'), ('BS34D', '9')]
    _, table = seen(refs[0])
    assert rows(table, 'Stimulus', 'onset', 'label', 'code') == [
        (1500, 'mid_movement', '0'),
        (2500, 'error', '1'),
        (4000, 'error', '2'),
    ]
    assert rows(table, 'Action', 'label', 'code')[-1] == ('button_press', '3')
    brainvision(Path(refs[2].files[0]), ['Fp1', 'CZ'], 500, 7, marks[1:])
    assert 'Event' not in seen(refs[2])[1]['type']  # emg_sync, which no task reads
    assert 'set2.eeg: the signal must hold whole samples' in cut_short(refs[0])
    brainvision(Path(refs[0].files[0]), ['Fp1'], 500, 7, ((500, 'Stimulus', 'S 99'),))
    assert 'triggers must be known' in refused(refs[0])


def test_the_sample_has_its_eeg_alone_and_four_kinds_of_stimuli(tmp_path: Path) -> None:
    path = tmp_path / 'Mne2013SampleEeg' / 'MNE-sample-data/MEG/sample/sample_audvis_filt-0-40_raw.fif'
    x = volts(path, 4, 5, 150.15)
    x[2:] = 0
    x[3, [150, 300, 450, 600]] = (1, 32, 4, 3)
    info = mne.create_info(['EEG 001', 'EEG 002', 'MEG 0111', 'STI 014'], 150.15, ['eeg', 'eeg', 'mag', 'stim'])
    info['bads'] = ['EEG 002']
    mne.io.RawArray(x, info, first_samp=6450).save(path, verbose='ERROR')
    (ref,) = refs_of(tmp_path, 'Mne2013SampleEeg')
    raw, table = seen(ref)
    assert raw.ch_names == ['EEG 001', 'EEG 002', 'STI 014']
    at = [round(1000 * k / 150.15) for k in (150, 450, 600)]
    assert rows(table, 'Stimulus', 'onset', 'label', 'code') == [
        (at[0], 'left_audio', '0'),
        (at[1], 'right_visual', '3'),
        (at[2], 'left_visual', '2'),
    ]


def test_a_recording_without_events_is_a_table_without_rows() -> None:
    """So that the contract says which events are lacking."""
    assert {k: v.tolist() for k, v in columns([]).items()} == {'onset': [], 'duration': [], 'type': []}
