"""Which windows train, validate and test: blocks in time, what is dropped, scaling by the training part."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import make_prepared_fixture
import numpy as np
import pytest
import tiny
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import RobustScaler

from jbench import files
from jbench.data.load import loader, prepared_set, split_windows
from jbench.data.prepare import build_set
from jbench.data.recording import RecordingRef
from jbench.spec.errors import RequestError
from jbench.spec.task import ByBlock, ByGroup, Classes, Exclusion, Predefined, SplitSpec, Task, Where, Window

PARTS = ('train', 'valid', 'test')


def task(split: SplitSpec, scaler: str = 'none', **fields: object) -> Task:
    """Seconds that follow the events of tiny recordings, as they were recorded."""
    chosen = make_prepared_fixture.task()
    asked = {'band': None, 'notch': (), 'sfreq': tiny.SFREQ, 'baseline': None, 'scaler': scaler}
    signal = dataclasses.replace(chosen.signal, **asked)
    return dataclasses.replace(chosen, window=Window(), signal=signal, split=split, **fields)


def prepare(folder: Path, made: Task, refs: list[RecordingRef]) -> Path:
    dataset = dataclasses.replace(tiny.DATASET, amplitude=(1e-14, 1e-3))
    build_set.prepare(made, dataset, folder / 'set-0', refs, lambda *facts: None)
    return folder / 'set-0'


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six recordings of six subjects, 21 windows each, unscaled."""
    refs = [tiny.ref(k, seconds=60) for k in range(6)]
    return prepare(tmp_path_factory.mktemp('set'), task(ByGroup()), refs)


# ---- blocks ----


def drawn(seed: int, n: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """An event table and windows, several of an event, some of which overlap, in three recordings."""
    rng = np.random.default_rng(seed)
    recording = np.sort(rng.integers(0, 3, n))
    rows = rng.integers(0, n, 2 * n)
    onset = np.sort(rng.uniform(0, 3 * n, n))
    events = {'recording': recording, 'onset': onset, 'subject': recording.astype(str), 'type': np.full(n, 'Word')}
    windows = {
        'event': rows,
        'onset': onset[rows] + rng.choice([0, 0.5], 2 * n),
        'duration': rng.uniform(0.1, 5, 2 * n),
    }
    return events, windows


@pytest.mark.slow
@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 9999), st.integers(2, 120), st.integers(3, 20), st.sampled_from([0.0, 0.5, 3.0]), st.integers(0, 9)
)
def test_windows_of_different_blocks_keep_their_distance(seed: int, n: int, blocks: int, gap: float, own: int) -> None:
    """All pairs compared: what lies in different parts of a recording is two gaps apart, whatever the windows."""
    events, windows = drawn(seed, n)
    split = ByBlock(n=blocks, gap=gap, seed=own)
    part = split_windows.of_windows(events, windows, np.ones(n, bool), split)
    who = events['recording'][windows['event']]
    start, stop = windows['onset'], windows['onset'] + windows['duration']
    pairs = (who[:, None] == who) & (part[:, None] != part) & (part != '') & (part != '')[:, None]
    between = np.maximum(start[:, None] - stop, start - stop[:, None])  # s from one window to the other
    assert (between[pairs] >= 2 * gap - 1e-9).all()
    assert split_windows.check(events, windows, part, split) == []
    np.testing.assert_array_equal(split_windows.of_windows(events, windows, np.ones(n, bool), split), part)
    used = events['recording'] != 1
    alone = split_windows.of_windows(events, windows, used, split)  # other recordings are dealt as before
    np.testing.assert_array_equal(alone, np.where(used[windows['event']], part, ''))


def dense(n: int = 3, seconds: float = 1000.0) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A window of a second each second, of one event a recording."""
    k = int(seconds)
    events = {'recording': np.arange(n), 'onset': np.zeros(n), 'subject': np.arange(n).astype(str)}
    onset = np.tile(np.arange(k, dtype=float), n)
    return events, {'event': np.repeat(np.arange(n), k), 'onset': onset, 'duration': np.ones(n * k)}


def test_blocks_are_equal_runs_of_time_dealt_by_seed_and_recording() -> None:
    events, windows = dense()
    part = split_windows.of_windows(events, windows, np.ones(3, bool), ByBlock(gap=0.0)).reshape(3, 10, 100)
    assert (part == part[:, :, :1]).all()  # nothing is lost: no gap, and borders between the windows
    dealt = part[:, :, 0]
    for row in dealt:
        assert [(row == p).sum() for p in PARTS] == [6, 2, 2]
    assert len({tuple(row) for row in dealt}) == 3
    other = split_windows.of_windows(events, windows, np.ones(3, bool), ByBlock(gap=0.0, seed=34))
    assert (other.reshape(3, 10, 100)[:, :, 0] != dealt).any()


def test_only_windows_near_a_border_of_parts_are_left_out() -> None:
    events, windows = dense()
    plain = split_windows.of_windows(events, windows, np.ones(3, bool), ByBlock(gap=0.0)).reshape(3, 1000)
    part = split_windows.of_windows(events, windows, np.ones(3, bool), ByBlock(gap=2.5)).reshape(3, 1000)
    for whole, kept in zip(plain, part, strict=True):
        borders = np.flatnonzero(whole[1:] != whole[:-1]) + 1
        near = np.abs(np.arange(1000)[:, None] + 0.5 - borders).min(1) < 2.5 + 0.5
        np.testing.assert_array_equal(kept, np.where(near, '', whole))


@pytest.mark.parametrize(
    ('split', 'says'),
    [
        (ByBlock(n=2), r'split\.n=2: 1 blocks to test and 1 to validate leave none to train'),
        (ByBlock(valid=0.6, test=0.4), r'split\.valid=0\.6, split\.test=0\.4'),
    ],
)
def test_blocks_that_leave_a_part_empty_are_refused(split: ByBlock, says: str) -> None:
    with pytest.raises(RequestError, match=says):
        split_windows.of_windows(*dense(), np.ones(3, bool), split)


@pytest.mark.slow
def test_a_set_by_blocks_says_how_many_windows_are_left_out(folder: Path) -> None:
    data = prepared_set.open_set(folder, task(ByBlock(gap=1.0)))
    n = int((data.split == '').sum())
    assert 0 < n < len(data.split) / 2 and set(data.split) == {*PARTS, ''}
    assert [w for w in data.warnings if 'part of the split' in w] == [f'{n} of 126 windows are in no part of the split']
    assert not [w for w in data.warnings if 'overlap' in w]


# ---- splits by recording, and the published column ----


@pytest.mark.parametrize('by', ['recording', 'timeline'])
def test_the_recording_is_a_group(folder: Path, by: str) -> None:
    data = prepared_set.open_set(folder, task(ByGroup(by=by)))
    assert [len(set(data.subjects[data.split == p])) for p in PARTS] == [3, 1, 2]
    same = prepared_set.open_set(folder, task(ByGroup(by='subject')))  # one recording a subject
    np.testing.assert_array_equal(data.split, same.split)
    data = prepared_set.open_set(folder, task(Predefined(field='subject', test=('03',), valid_by=by)))
    assert set(data.subjects[data.split == 'test']) == {'03'}
    assert [len(set(data.subjects[data.split == p])) for p in PARTS] == [4, 1, 1]
    assert len(set(data.subjects)) == 6


@pytest.mark.slow
@pytest.mark.parametrize('test', [(), ('test',)])
def test_the_published_column_decides(test: tuple[str, ...], tmp_path: Path) -> None:
    """As of the image tasks: test stimuli are marked, whole recordings of the others validate."""
    own = ['train', 'train', 'train', 'train', 'train', 'test']
    refs = [tiny.ref(k)._replace(fields=(('seconds', '20'), ('split', own[k]))) for k in range(6)]
    split = Predefined(field='split', test=test, valid_by='recording')
    data = prepared_set.open_set(prepare(tmp_path, task(split), refs), task(split))
    assert [len(set(data.subjects[data.split == p])) for p in PARTS] == [4, 1, 1]
    assert set(data.subjects[data.split == 'test']) == {'05'}


# ---- what is left out ----


def test_dropped_windows_leave_once_the_split_is_drawn(folder: Path) -> None:
    plain = prepared_set.open_set(folder, task(ByGroup(by='_index')))
    where = (Where(field='subject', values=('05',)), Where(field='subject', values=('04',)))
    data = prepared_set.open_set(folder, task(ByGroup(by='_index'), drop=where))
    index = files.read_npz(folder / 'index.npz')
    code = index['event.code'][index['window.event']]
    gone = np.isin(plain.subjects, ('04', '05'))  # any of the conditions
    np.testing.assert_array_equal(data.split, np.where(gone, '', plain.split))  # the others stay where they were
    np.testing.assert_array_equal(data.ids, plain.ids)
    said = [w for w in data.warnings if w.startswith('dropped')]
    assert len(said) == 2 and all('21 of 126 windows' in w for w in said) and gone.sum() == 42
    assert said[0].endswith(', those of subject 05') and said[1].endswith(', those of subject 04')
    assert set(code.tolist()) == {'1', '2'}
    only = task(ByGroup(by='_index'), drop=(Where(field='code', values=('2',)),))
    with pytest.raises(RequestError, match=r"of type Stimulus: found '1', expected at least 2; types .*'Eeg', 'Sti"):
        prepared_set.open_set(folder, only)  # dropped windows bring no class


@pytest.mark.slow
def test_excluded_subjects_bring_no_class(tmp_path: Path) -> None:
    named = task(ByGroup(), target=Classes(field='subject'))
    made = prepare(tmp_path, named, [tiny.ref(k) for k in range(6)])
    for after in (False, True):
        data = prepared_set.open_set(
            made, dataclasses.replace(named, exclude=(Exclusion('Tiny', '01', 'noise', after),))
        )
        assert data.classes == ('00', '02', '03', '04', '05')
        assert set(data.split[data.subjects == '01']) == {''} and 'excluded: subject 01: noise' in data.warnings


@pytest.mark.slow
def test_a_recording_that_its_reference_rules_out_is_not_read(tmp_path: Path) -> None:
    refs = [*(tiny.ref(k) for k in range(3)), tiny.ref(3, seconds='many')]  # which cannot be read
    wanted = task(ByGroup())
    where = (Where(field='seconds', values=('20',)), Where(field='code', least=1.0))
    made = prepare(tmp_path, dataclasses.replace(wanted, window=dataclasses.replace(wanted.window, where=where)), refs)
    manifest = files.read_json(made / 'manifest.json')
    assert len(manifest['recordings']) == 3 and manifest['found'] == ['00', '01', '02', '03']
    with pytest.raises(RequestError, match='many'):
        prepare(tmp_path / 'all', wanted, refs)


def test_a_drop_that_takes_a_whole_part_is_refused(folder: Path) -> None:
    with pytest.raises(RequestError, match='the test part holds no window'):
        prepared_set.open_set(
            folder,
            task(Predefined(field='subject', test=('03',)), drop=(Where(field='subject', values=('03',)),)),
        )


# ---- scaling by the training part ----

BY_CODE = Predefined(field='code', test=('2',), valid_by='_index', valid=0.2)


def test_windows_are_scaled_by_their_recordings_training_part(folder: Path) -> None:
    """As scikit-learn would; a recording that trains nothing by all of its own windows."""
    split = Predefined(field='subject', test=('03',), valid_by='_index', valid=0.3)
    plain, data = (prepared_set.open_set(folder, task(split, s)) for s in ('none', 'train'))
    x, got = (prepared_set.read(d, np.arange(len(d.split)), None) for d in (plain, data))
    for subject in sorted(set(data.subjects)):
        own = data.subjects == subject
        fitted = own if subject == '03' else own & (data.split == 'train')
        rows = x.transpose(0, 2, 1).astype(np.float64)
        scaler = RobustScaler().fit(rows[fitted].reshape(-1, 3))
        want = scaler.transform(rows[own].reshape(-1, 3)).reshape(-1, 256, 3).transpose(0, 2, 1)
        np.testing.assert_allclose(got[own], want, atol=1e-5)
        assert 0 < fitted.sum() < own.sum() or subject == '03'


@pytest.mark.slow
@pytest.mark.parametrize('draw', [1, 3, 5])
def test_a_recording_of_which_no_window_was_drawn_is_scaled_by_those_drawn_of_its_subject(
    tmp_path: Path, draw: int
) -> None:
    """Not by what was left out, nor by what tests; two recordings of one subject, the second seven times as large."""
    asked, few = few_windows(draw)
    refs = [tiny.ref(0, seconds=60), tiny.ref(0, 'times7', seconds=60), tiny.ref(1, seconds=60)]
    made = prepare(tmp_path, asked, refs)
    plain, data = prepared_set.open_set(made, asked), prepared_set.open_set(made, few)
    x, got = (prepared_set.read(d, np.arange(len(d.split)), None).transpose(0, 2, 1) for d in (plain, data))
    recording = np.repeat([0, 1, 2], 21)
    assert len({*recording[data.rows('train')]}) == 2  # one recording of the first subject trains nothing
    for k in range(3):
        (drawn,) = np.nonzero((data.subjects == data.subjects[21 * k]) & (data.split == 'train'))
        scaler = RobustScaler().fit(x[drawn].reshape(-1, 3).astype(np.float64))
        want = scaler.transform(x[recording == k].reshape(-1, 3)).reshape(21, 256, 3)
        np.testing.assert_allclose(got[recording == k], want, atol=1e-5)


def few_windows(draw: int, n: int = 1) -> tuple[Task, Task]:
    """As recorded, and scaled by few drawn windows of each class and subject."""
    asked = task(BY_CODE)
    recipe = dataclasses.replace(asked.recipe, few_shot=n, few_shot_draw=draw)
    return asked, dataclasses.replace(task(BY_CODE, 'train'), recipe=recipe)


@pytest.mark.slow
def test_channels_that_the_drawn_windows_of_a_subject_lack_are_zero(tmp_path: Path) -> None:
    """Unless some of them are of recordings with all of its channels: then those alone scale it."""
    refs = [tiny.ref(0, seconds=60), tiny.ref(0, 'times7', seconds=55), tiny.ref(0, 'twice', seconds=50)]
    made = prepare(tmp_path, few_windows(1)[0], refs)
    drawn = {}
    for draw in range(1, 30):
        data = prepared_set.open_set(made, few_windows(draw, 2)[1])
        ends = np.cumsum([r['n_windows'] for r in data.manifest['recordings']])
        drawn[tuple(sorted({*np.searchsorted(ends, data.rows('train'), 'right').tolist()}))] = data
    assert data.signal.ch_names == ('Oz', 'O1', 'Fz', 'Oz-0', 'Oz-1')
    for trained, other, zero in (((0,), 2, [0, 1, 3, 4]), ((0, 2), 1, [3, 4]), ((0, 1), 2, [0, 1, 3, 4])):
        of_other = np.arange(ends[other - 1], ends[other])
        spread = prepared_set.read(drawn[trained], of_other, None).std((0, 2))
        assert (spread[zero] == 0).all() and (np.delete(spread, zero) > 0.1).all(), (trained, other, spread)


@pytest.mark.slow
def test_no_test_window_is_looked_at(tmp_path: Path) -> None:
    """The events of one code fifty times as large: training windows stay the same bits, unlike by whole recordings."""
    for scaler, same in (('train', True), ('robust', False)):
        asked, sets = task(BY_CODE, scaler), []
        for run in ('', 'loud'):
            refs = [tiny.ref(k, run, seconds=40) for k in range(2)]
            sets.append(prepared_set.open_set(prepare(tmp_path / (scaler + run), asked, refs), asked))
        plain, loud = ([prepared_set.read(d, d.rows(*p), None) for p in (('train', 'valid'), ('test',))] for d in sets)
        assert (plain[0].tobytes() == loud[0].tobytes()) == same, scaler
        assert np.abs(loud[1]).max() > 10 * np.abs(plain[1]).max()


@pytest.mark.slow
def test_weak_signals_are_scaled_too(tmp_path: Path) -> None:
    """In float32 their spread would count as none."""
    asked = task(BY_CODE, 'train')
    data = prepared_set.open_set(prepare(tmp_path, asked, [tiny.ref(0, 'weak'), tiny.ref(1, 'weak')]), asked)
    for subject in ('00', '01'):
        x = prepared_set.read(data, np.flatnonzero((data.subjects == subject) & (data.split == 'train')), None)
        low, middle, high = np.percentile(x, [25, 50, 75], axis=(0, 2))
        np.testing.assert_allclose(middle, 0, atol=1e-5)
        np.testing.assert_allclose(high - low, 1, atol=1e-5)


@pytest.mark.parametrize(('batch_size', 'clamp'), [(7, 0.75), (64, 0.75), (64, 1e-6)])
def test_scaled_windows_are_the_same_from_memory_and_from_disk(folder: Path, batch_size: int, clamp: float) -> None:
    """The clamp acts after the scaling: one that is of the size of the stored values tells."""
    data = dataclasses.replace(prepared_set.open_set(folder, task(BY_CODE, 'train')), clamp=clamp)
    for names in (('train',), ('valid', 'test')):
        want = prepared_set.read(data, data.rows(*names), clamp)
        held, streamed = (loader.Loader(data, names, batch_size, resident_bytes=n) for n in (1 << 40, 0))
        assert held._x is not None and streamed._x is None
        for epoch in (None, 0, 1):
            for a, b in zip(held.chunks(epoch), streamed.chunks(epoch), strict=True):
                np.testing.assert_array_equal(a.x[: a.n][a.mask[: a.n]], b.x[: b.n][b.mask[: b.n]])
        plain = np.concatenate([c.x[: c.n][c.mask[: c.n]] for c in held.chunks(None)])
        np.testing.assert_array_equal(plain, want)
        assert np.abs(want).max() == np.float32(clamp)
        view = prepared_set.View(data, data.rows(*names))[np.arange(3)]
        assert np.abs(view).max() > 0.75
        np.testing.assert_array_equal(np.clip(view, -clamp, clamp), want[:3])


@pytest.mark.slow
def test_channels_that_a_recording_lacks_stay_zero_and_blocks_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = task(BY_CODE, 'train')
    made = prepare(tmp_path, asked, [tiny.ref(0), tiny.ref(1, 'twice'), tiny.ref(2, 'permuted'), tiny.ref(3)])
    data = prepared_set.open_set(made, asked)
    assert data.signal.ch_names == ('Oz', 'O1', 'Fz', 'Oz-0', 'Oz-1')
    assert data.scale is not None and data.scale.centre.shape == (4, 5, 1)
    x = prepared_set.read(data, np.arange(len(data.split)), None)
    twice = data.subjects == '01'
    assert not x[twice][:, [0, 1]].any() and not x[~twice][:, [3, 4]].any()
    assert x[twice][:, [2, 3, 4]].any((0, 2)).all()
    monkeypatch.setattr('jbench.data.load.shards.BLOCK', 1)  # a channel at a time
    again = prepared_set.open_set(made, asked)
    for a, b in zip(data.scale, again.scale or (), strict=True):
        np.testing.assert_array_equal(a, b)
