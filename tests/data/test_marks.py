"""What is marked bad, cut, not recorded or written twice in files of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import mne
import numpy as np
import pytest
import small_files as files
from places import ROOT

from jbench.data import marks
from jbench.data.discover import find_recordings
from jbench.data.prepare import check_recording, convert
from jbench.data.prepare.signal import process
from jbench.data.recording import Recording
from jbench.data.sources import folder
from jbench.plan import cells, select
from jbench.spec.dataset import Dataset
from jbench.spec.overrides import override
from jbench.spec.task import SignalSpec, Task

NAMES = ['Fp1', 'Cz', 'O1', 'O2']
EVENTS = [(1.0, 8.0, 'open'), (10.0, 8.0, 'closed')]  # of 4 windows of 2 s each


def example() -> tuple[Task, Dataset]:
    ((task, dataset),) = select.select_tasks(str(ROOT / 'configs' / 'local_folder.py'))
    assert dataset is not None
    return override(cells.apply(task, dataset, ()), 'target.field', 'label'), dataset


def table(root: Path, rows: list[tuple], name: str = 'S01_rest') -> None:
    files.edf(root / f'{name}.edf', NAMES, 100, 20, ((12.0, 0.5, 'BAD_jump'),) if name.startswith('S02') else ())
    lines = ['onset\tduration\ttrial_type', *('\t'.join(map(str, row)) for row in rows)]
    (root / f'{name}_events.tsv').write_text('\n'.join(lines))


def made(home: Path, work: Path, task: Task, dataset: Dataset) -> tuple[list[dict], list[str]]:
    """Parts of all recordings, and what is said of the set."""
    work.mkdir(exist_ok=True)
    refs = find_recordings(dataset, home)
    parts = [convert.make(task, dataset, ref, work) for ref in refs]
    return parts, check_recording.judge(dataset, refs, parts)[1]


@pytest.mark.parametrize(
    ('rows', 'onsets'),
    [
        ([(5.5, 1.0, 'BAD_blink')], [1.0, 3.0, 7.0]),  # [5, 7)
        ([(3.0, 2.0, 'bad segment')], [1.0, 5.0, 7.0]),  # touching is outside
        ([(2.0, 3.5, 'BAD')], [7.0]),
        ([(4.0, 100.0, 'boundary')], [1.0, 5.0, 7.0]),  # a moment: its duration is of what was cut out
        ([(5.0, 0, 'boundary')], [1.0, 3.0, 5.0, 7.0]),  # between two windows
        ([(-1.0, 2.5, 'BAD_start')], [3.0, 5.0, 7.0]),
        ([(5.5, 2.0, 'bad')], [1.0, 3.0, 5.0, 7.0, 5.5]),  # an answer
    ],
)
def test_windows_that_a_mark_overlaps_are_left_out(tmp_path, rows, onsets):
    """As MNE's `reject_by_annotation` has it: the mark begins before the window ends, and ends after it begins."""
    task, dataset = example()
    table(tmp_path / dataset.name, [*EVENTS, *rows])
    (part,), _ = made(tmp_path, tmp_path / 'parts', task, dataset)
    assert [t for t in part['windows']['onset'] if t < 9] == onsets
    assert not any(marks.is_bad(json.loads(t)) for t in part['windows']['target'])


def test_mne_rejects_the_same_epochs(tmp_path):
    task, dataset = example()
    rng = np.random.default_rng(0)
    rows = [
        (round(t, 2), round(d, 2), 'BAD_x') for t, d in zip(rng.uniform(1, 17, 4), rng.uniform(0, 0.6, 4), strict=True)
    ]
    table(tmp_path / dataset.name, [*EVENTS, *rows])
    (part,), _ = made(tmp_path, tmp_path / 'parts', task, dataset)
    raw = mne.io.read_raw_edf(tmp_path / dataset.name / 'S01_rest.edf', verbose='ERROR')
    raw.set_annotations(mne.Annotations(*zip(*rows, strict=True)))
    starts = [1.0, 3.0, 5.0, 7.0, 10.0, 12.0, 14.0, 16.0]
    events = np.array([(round(t * 100), 0, 1) for t in starts])
    epochs = mne.Epochs(raw, events, tmin=0, tmax=1.99, baseline=None, preload=True, verbose='ERROR')
    assert part['windows']['onset'] == [starts[k] for k in epochs.selection] and 0 < len(epochs) < 8


def test_marks_and_duplicates_are_told_with_their_counts_and_are_no_class(tmp_path):
    task, dataset = example()
    table(tmp_path / dataset.name, [*EVENTS, (5.5, 1.0, 'BAD_blink'), (13.0, 0.0, 'boundary'), EVENTS[0]])
    table(tmp_path / dataset.name, EVENTS, 'S02_rest')  # marked in the file beside its table
    (first, second), notes = made(tmp_path, tmp_path / 'parts', task, dataset)
    assert {json.loads(t) for t in first['windows']['target']} == {'open', 'closed'}
    assert (first['n_windows'], second['n_windows']) == (6, 7)
    assert notes[-2:] == [
        'marked bad: 3 of 16 windows are left out (BAD_blink: 1, boundary: 1, BAD_jump: 1), in S01_0_rest, S02_0_rest',
        'duplicate events: 1 that stood there before are left out, in S01_0_rest',
    ]
    assert first['events']['label'][first['events']['type'].index(marks.BAD)] == ''  # no group of a split


def test_the_baseline_of_a_window_counts(tmp_path):
    task, dataset = example()
    table(tmp_path / dataset.name, [*EVENTS, (0.6, 0.2, 'BAD_x')])
    for low, n in ((-0.1, 8), (-0.5, 7)):
        (part,), _ = made(tmp_path, tmp_path / f'{n}', override(task, 'signal.baseline', (low, 0.0)), dataset)
        assert part['n_windows'] == n


def skipping(path: Path, seconds: float = 8.0) -> mne.io.BaseRaw:
    """A FIF file as a Neuromag writes it: zeros from 4 s on, called BAD_ACQ_SKIP."""
    x = files.noise(path, 4, 2000) * 1e-6
    x[:, 400 : 400 + round(100 * seconds)] = 0
    raw = mne.io.RawArray(x, mne.create_info(NAMES, 100, 'eeg', verbose='ERROR'), verbose='ERROR')
    raw.set_annotations(mne.Annotations([0.0, 4.0, 12.0], [4.0, seconds, 8.0], ['open', 'BAD_ACQ_SKIP', 'closed']))
    raw.save(path, verbose='ERROR')
    return raw


def test_what_was_not_recorded_is_no_constant_stretch(tmp_path):
    task, dataset = example()
    skipping(tmp_path / dataset.name / 'S01_raw.fif')
    (part,), notes = made(tmp_path, tmp_path / 'parts', task, dataset)
    assert not part['findings'] and part['windows']['onset'] == [0.0, 2.0, 12.0, 14.0, 16.0, 18.0], notes
    (ref,) = find_recordings(dataset, tmp_path)
    read = folder.read(ref)
    assert isinstance(read, Recording)
    read.raw.set_annotations(None)  # nothing says that the zeros are none of the signal
    assert any('stand still' in f.rule for f in check_recording.check(read, dataset, 'x'))


def test_what_was_not_recorded_changes_no_filter_nor_scale(tmp_path):
    """The parts beside it are filtered by themselves, and zeros do not shrink the spread."""
    whole = skipping(tmp_path / 'a_raw.fif', 12.0)
    alone = whole.copy().crop(0, 3.99).set_annotations(None)
    spec = SignalSpec(sfreq=100.0, band=(1.0, 40.0), notch=(), scaler='none')
    got, expected = process(whole.copy(), spec)[0][:, :400], process(alone, spec)[0]
    np.testing.assert_allclose(got, expected, atol=1e-12)
    scaled, _ = process(whole.copy(), SignalSpec(sfreq=100.0, band=None, notch=()))
    assert np.subtract(*np.percentile(scaled[:, np.r_[:400, 1600:2000]], [75, 25])) == pytest.approx(1, abs=0.05)


def test_files_of_operating_systems_are_passed_over(tmp_path):
    _, dataset = example()
    root = tmp_path / dataset.name
    table(root, EVENTS)
    before = find_recordings(dataset, tmp_path)
    for name in (
        '._S01_rest.edf',
        '._S01_rest_events.tsv',
        '.DS_Store',
        'Thumbs.db',
        '.hidden/S09_rest.edf',
        '._S02.edf',
    ):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b'\0\5\26\7')
    assert find_recordings(dataset, tmp_path) == before and len(before) == 1
    home = tmp_path / 'bids'
    signal = home / dataset.name / 'sub-01/eeg/sub-01_task-rest_eeg.edf'
    files.edf(signal, NAMES, 100, 5)
    before = find_recordings(dataset, home)
    for name in ('._sub-01_task-rest_eeg.edf', '._events.tsv', '.DS_Store', '._sub-01_task-rest_events.tsv'):
        (signal.parent / name).write_bytes(b'\0\5\26\7')
    assert find_recordings(dataset, home) == before
