"""`--delete_raw_after=prepared`: what it deletes, what it never deletes, and that the sets serve afterwards."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filed
import numpy as np
import pytest
import tiny
from preparing import KALUNGA, content

from jbench import files, run
from jbench.cli import download
from jbench.data.discover import find_recordings
from jbench.data.load import prepared_set
from jbench.data.prepare import build_set, delete_raw, raw_files
from jbench.data.recording import RecordingRef
from jbench.data.sources import mixture
from jbench.plan import select
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.identity import spec_hash
from jbench.spec.objectives import Next
from jbench.spec.task import Exclusion, Task, Where, Window
from jbench.stores import mirror

ALL = filed.task(Window(duration=1.0))
OPEN = filed.task(Window(duration=0.5, where=(Where(field='state', values=('open',)),)))
KEPT = {'Filed/README', 'Filed/images/a.png'}
Told = list[str]


@pytest.fixture(autouse=True)
def in_a_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are threads of this process, which start at once; those of the command are its own."""
    if 'slow' not in request.keywords:
        monkeypatch.setattr(build_set, 'workers', lambda *_: ThreadPoolExecutor(1))


@pytest.fixture
def told() -> Told:
    return []


def ready(task: Task, data_dir: Path | None, work: Path) -> Path:
    return prepared_set.ready(task, filed.DATASET, data_dir, work, lambda *facts: None, print)


def delete(data_dir: Path, work: Path, told: Told, *tasks: Task) -> None:
    delete_raw.after_prepared(filed.DATASET, tasks, data_dir, work, told.append)


def tree(data_dir: Path) -> set[str]:
    """All that lies there, less the note; folders too where they are empty."""
    names = {p.relative_to(data_dir).as_posix() for p in data_dir.rglob('*') if p.is_file() or not any(p.iterdir())}
    return {n for n in names if not n.endswith(raw_files.NOTE)}


def test_the_recordings_go_and_all_else_stays(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    shutil.copytree(data / 'Filed', data / 'Another')
    folder = ready(ALL, data, tmp_path / 'work')
    before, n_bytes = content(folder), sum(p.stat().st_size for p in (data / 'Filed').glob('0*/*'))
    delete(data, tmp_path / 'work', told, ALL)
    assert {n for n in tree(data) if n.startswith('Filed')} == KEPT and len(tree(data)) == 2 + 10
    (line,) = told
    assert f'Filed: deleted 8 files ({n_bytes / 1e9:.2f} GB) of 4 recordings; their prepared sets were ver' in line
    assert str(folder) in line
    for data_dir in (data, None):
        assert ready(ALL, data_dir, tmp_path / 'work') == folder and content(folder) == before
    delete(data, tmp_path / 'work', told, ALL)
    assert len(told) == 1, 'there is nothing left to do'


def test_recordings_that_no_task_reads_stay_and_the_set_still_serves(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    folder = ready(OPEN, data, tmp_path / 'work')
    delete(data, tmp_path / 'work', told, OPEN)
    left = {f'Filed/{k}/{k}_closed.{end}' for k in ('00', '01') for end in ('npy', 'tsv')}
    assert tree(data) == KEPT | left and '2 recordings that no task of this run reads are left' in told[0]
    assert ready(OPEN, data, tmp_path / 'work') == folder
    closed = dataclasses.replace(
        OPEN, window=dataclasses.replace(OPEN.window, where=(Where(field='state', values=('closed',)),))
    )
    other = ready(closed, data, tmp_path / 'work')
    delete(data, tmp_path / 'work', told, closed)
    assert tree(data) == KEPT
    assert ready(OPEN, data, tmp_path / 'work') == folder and ready(closed, data, tmp_path / 'work') == other


def test_what_is_new_or_corrected_afterwards_makes_another_set(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    folder = ready(OPEN, data, tmp_path / 'work')
    delete(data, tmp_path / 'work', told, OPEN)
    table = data / 'Filed/00/00_closed.tsv'
    text = table.read_text()
    table.write_text('onset\n3\n9\n')
    assert build_set.locate(OPEN, filed.DATASET, data, tmp_path / 'work')[0] != folder
    table.write_text(text)
    assert build_set.locate(OPEN, filed.DATASET, data, tmp_path / 'work')[0] == folder
    for end in ('npy', 'tsv'):
        shutil.copy(data / f'Filed/00/00_closed.{end}', data / f'Filed/00/00_open2.{end}')
    assert build_set.locate(OPEN, filed.DATASET, data, tmp_path / 'work')[0] != folder
    filed.write(tmp_path / 'again')
    shutil.rmtree(data)
    shutil.copytree(tmp_path / 'again', data)  # fetched again
    assert build_set.locate(OPEN, filed.DATASET, data, tmp_path / 'work')[0] == folder


def test_nothing_goes_while_a_task_needs_it(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    ready(ALL, data, tmp_path / 'work')
    before = tree(data)
    delete(data, tmp_path / 'work', told, ALL, OPEN)
    assert tree(data) == before and 'ssvep still needs them: it has no prepared set' in told[0]


@pytest.mark.parametrize('name', ['*.array_record-00001*', 'index.npz', 'manifest.json'])
def test_nothing_goes_where_a_set_is_damaged(name: str, tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    (path,) = ready(ALL, data, tmp_path / 'work').glob(name)
    blob = bytearray(path.read_bytes())
    blob[len(blob) // 2] ^= 1
    path.write_bytes(blob)
    before = tree(data)
    delete(data, tmp_path / 'work', told, ALL)
    assert tree(data) == before and told[0].startswith('Filed: no recording is deleted: ')


def test_nothing_goes_while_another_process_prepares(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    ready(ALL, data, tmp_path / 'work')
    with files.locked(tmp_path / 'work/prepared/Filed/other.lock'):
        delete(data, tmp_path / 'work', told, ALL)
    assert len(tree(data)) == 10 and told == ['Filed: no recording is deleted: another process prepares some of them']


def test_links_and_what_lies_elsewhere_stay(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'archive')
    (linked := tmp_path / 'data').mkdir()
    (linked / 'Filed').symlink_to(data / 'Filed')
    ready(ALL, linked, tmp_path / 'work')
    delete(linked, tmp_path / 'work', told, ALL)
    other = filed.write(tmp_path / 'other')
    signal = other / 'Filed/00/00_open.npy'
    signal.rename(tmp_path / 'away.npy')
    signal.symlink_to(tmp_path / 'away.npy')
    ready(ALL, other, tmp_path / 'work')
    delete(other, tmp_path / 'work', told, ALL)
    assert len(tree(data)) == len(tree(other)) == 10 and signal.exists()
    assert all('is a link, or lies outside of' in line for line in told) and len(told) == 2


def test_nothing_goes_where_the_rest_would_look_like_recordings(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filed.write(tmp_path / 'data')
    ready(ALL, data, tmp_path / 'work')
    plain = filed.recordings
    for found in (lambda d, root: plain(d, root) or [tiny.ref(0)], lambda d, root: plain(d, root) or {}['x']):
        monkeypatch.setattr(filed, 'recordings', found)
        delete(data, tmp_path / 'work', told, ALL)
    assert len(tree(data)) == 10
    assert 'looks like other recordings' in told[0] and 'could not be listed' in told[1]


def test_ones_own_recordings_are_never_deleted(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match='Tiny is a dataset of your own'):
        delete_raw.check([filed.DATASET, tiny.DATASET])
    with pytest.raises(RequestError, match='Tiny is a dataset of your own'):
        delete_raw.after_prepared(tiny.DATASET, [ALL], tmp_path, tmp_path, print)


def test_recordings_of_a_mixture_go_with_each_of_its_datasets() -> None:
    both = select.find_dataset('Schalk2004Bci2000+Zyma2019Electroencephalograms')
    with pytest.raises(RequestError, match=rf'{re.escape(both.name)} is several datasets.* with a task of each'):
        delete_raw.check([both])


@pytest.mark.parametrize(
    'name', ['Arico2014Influence', 'Singh2021Timing', 'Brennan2019Hierarchical', 'Nieuwland2018Large']
)
def test_what_a_source_does_not_name_whole_is_refused(name: str) -> None:
    """MOABB names a list alone, and two others a header alone; one of BrainVision names all three files."""
    if name == 'Singh2021Timing':
        delete_raw.check([select.datasets()[name]])
        return
    with pytest.raises(RequestError, match=f'{name} is read by .*, which does not name every file of a recording'):
        delete_raw.check([filed.DATASET, select.datasets()[name]])


def test_the_copy_of_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / mirror.MARKER).write_text('{"url": "memory://shelf/data"}')
    with pytest.raises(RequestError, match='--delete_raw_after=prepared works in a folder, not in memory://shelf'):
        delete_raw.check([filed.DATASET], tmp_path)


def test_stimuli_and_tables_of_several_recordings_stay(
    tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, plain = filed.write(tmp_path / 'data'), filed.recordings
    (data / 'Filed/00/people.tsv').write_text('who')

    def found(dataset: Dataset, root: Path) -> list[RecordingRef]:
        image, table = str(root / 'images/a.png'), str(root / '00/people.tsv')
        more = {'00_0_open': (image, table), '00_0_closed': (table,)}  # the image is of one alone, but no part of it
        return [r._replace(files=(*r.files, *more.get(r.name, ()))) for r in plain(dataset, root)]

    monkeypatch.setattr(filed, 'recordings', found)
    folder = ready(ALL, data, tmp_path / 'work')
    delete(data, tmp_path / 'work', told, ALL)
    assert tree(data) == {*KEPT, 'Filed/00/people.tsv'} and 'deleted 8 files' in told[0]
    assert ready(ALL, data, tmp_path / 'work') == folder


def test_another_task_is_not_prepared_of_what_is_left(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    ready(OPEN, data, tmp_path / 'work')
    delete(data, tmp_path / 'work', told, OPEN)
    with pytest.raises(RequestError, match=r'of its recordings 00_0_open and 1 more went by --delete_raw_after: use'):
        ready(ALL, data, tmp_path / 'work')
    (data / 'Filed' / raw_files.NOTE).unlink()
    ready(ALL, data, tmp_path / 'work')  # whoever removes the note wants what is there


def test_a_mixture_is_not_prepared_of_what_is_left(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor do recordings of its members go while it is."""
    known = {**select.datasets(), 'Filed': filed.DATASET}
    monkeypatch.setattr(mixture, 'catalogue', lambda: known)
    both = mixture.mixed([filed.DATASET, known['SimulatedP3']])
    task, data = dataclasses.replace(ALL, target=Next()), filed.write(tmp_path / 'data')
    ready(OPEN, data, tmp_path / 'work')
    held: list[bool] = []

    def stop(*facts: object) -> None:
        delete(data, tmp_path / 'work', told, OPEN)
        held.append(bool(told))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        prepared_set.ready(task, both, data, tmp_path / 'other', stop, print)
    assert held == [True] and told == ['Filed: no recording is deleted: another process prepares some of them']
    delete(data, tmp_path / 'work', told, OPEN)
    said = r'of its recordings Filed\.00_0_open and 1 more went .* remove .*data/Filed/\.jbench_deleted\.json'
    with pytest.raises(RequestError, match=said):
        prepared_set.ready(task, both, data, tmp_path / 'other', lambda *facts: None, print)


@pytest.fixture
def mixed(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> tuple[Task, Dataset, Path]:
    """A task, a mixture of two datasets, and its prepared set; recordings in `data`, sets in `work`."""
    other = dataclasses.replace(filed.DATASET, name='Other')
    known = {**select.datasets(), 'Filed': filed.DATASET, 'Other': other}
    monkeypatch.setattr(mixture, 'catalogue', lambda: known)
    data = filed.write(tmp_path / 'data')
    shutil.copytree(data / 'Filed', data / 'Other')
    for path in (data / 'Other').rglob('*.npy'):
        np.save(path, np.load(path)[:, ::-1])
    task, both = dataclasses.replace(ALL, target=Next()), mixture.mixed([filed.DATASET, other])
    folder = prepared_set.ready(task, both, data, tmp_path / 'work', lambda *facts: None, told.append)
    assert not told
    return task, both, folder


def test_a_prepared_mixture_serves_without_its_files(
    tmp_path: Path, told: Told, mixed: tuple[Task, Dataset, Path]
) -> None:
    """All of them, or those of a member; what is there of the others must be what it was."""
    (task, both, folder), data, work = mixed, tmp_path / 'data', tmp_path / 'work'
    before = content(folder)
    for place in (None, tmp_path / 'nowhere'):
        assert prepared_set.ready(task, both, place, work, lambda *facts: None, told.append) == folder
    assert told == [f'{both.name}: not all recordings here, the set prepared earlier serves: {folder}'] * 2
    shutil.rmtree(data / 'Other')
    assert build_set.locate(task, both, data, work) == (folder, [])
    prepared_set.open_set(folder, task)
    found = find_recordings(both, data)
    excluding = dataclasses.replace(task, exclude=(Exclusion(dataset=both.name, subject='Other.00', reason='a test'),))
    assert build_set.readable(excluding, both, found) == found and len(found) == 4, 'its subject is not there'
    table = data / 'Filed/00/00_open.tsv'
    text = table.read_text()
    table.write_text('onset\n3\n9\n')
    absent = 'Other holds no recording; put there: '
    with pytest.raises(RequestError, match=absent):
        build_set.locate(task, both, data, work)
    table.write_text(text)
    with pytest.raises(RequestError, match=absent):
        build_set.locate(dataclasses.replace(OPEN, target=Next()), both, data, work)
    shutil.rmtree(data / 'Filed')
    assert build_set.locate(task, both, data, work) == (folder, []) and content(folder) == before


def test_a_prepared_mixture_of_before_serves_without_any_file(
    tmp_path: Path, mixed: tuple[Task, Dataset, Path]
) -> None:
    """Its manifest does not say of what it was made, so nothing can be compared with it."""
    (task, both, folder), data, work = mixed, tmp_path / 'data', tmp_path / 'work'
    manifest = files.read_json(folder / 'manifest.json')
    (folder / 'manifest.json').write_text('{')
    assert build_set.locate(task, both, data, work)[0] == folder, 'a damaged one is made anew'
    del manifest['members'], manifest['digest']
    (folder / 'manifest.json').write_text(json.dumps({**manifest, 'digest': spec_hash(manifest)}))
    assert build_set.locate(task, both, data, work)[0] == folder
    shutil.rmtree(data / 'Other')
    with pytest.raises(RequestError, match='Other holds no recording'):
        build_set.locate(task, both, data, work)
    assert build_set.locate(task, both, None, work) == (folder, [])


def test_a_prepared_mixture_serves_after_recordings_of_its_members_were_deleted(
    tmp_path: Path, told: Told, mixed: tuple[Task, Dataset, Path]
) -> None:
    (task, both, folder), data, work = mixed, tmp_path / 'data', tmp_path / 'work'
    before = content(folder)
    for one in (OPEN, ALL):
        ready(one, data, work)

    def found(task: Task = task) -> Path:
        return prepared_set.ready(task, both, data, work, lambda *facts: None, told.append)

    delete(data, work, told, OPEN)
    assert 'deleted 4 files' in told[-1] and found() == folder, 'some of a member'
    table = data / 'Filed/00/00_closed.tsv'
    text = table.read_text()
    table.write_text('onset\n3\n9\n')
    with pytest.raises(RequestError, match=r'of its recordings Filed\.00_0_open and 1 more went by --delete_raw_after'):
        found()
    table.write_text(text)
    delete(data, work, told, ALL)
    assert 'deleted 4 files' in told[-1] and found() == folder and content(folder) == before, 'all of a member'
    with pytest.raises(RequestError, match=r'of its recordings Filed\.00_0_open and 1 more went by --delete_raw_after'):
        found(dataclasses.replace(OPEN, target=Next()))
    shutil.rmtree(data / 'Other')
    assert found() == folder
    last = mixture.mixed(mixture.members(both)[::-1])  # its first member is absent; what went is told all the same
    for mix in (both, last):
        with pytest.raises(RequestError, match=r'of its recordings Filed\.00_0_open and 1 more went by'):
            build_set.locate(dataclasses.replace(OPEN, target=Next()), mix, data, work)


def test_recordings_are_not_deleted_while_any_work_folder_is_prepared(tmp_path: Path, told: Told) -> None:
    data = filed.write(tmp_path / 'data')
    ready(ALL, data, tmp_path / 'work')

    def report(*facts: object) -> None:
        if not told:
            delete(data, tmp_path / 'work', told, ALL)

    prepared_set.ready(OPEN, filed.DATASET, data, tmp_path / 'elsewhere', report, print)
    assert told == ['Filed: no recording is deleted: another process prepares some of them'] and len(tree(data)) == 10


def test_stopped_in_the_middle_it_goes_on(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        """Stands for kill -9 between two files."""

    data, plain = filed.write(tmp_path / 'data'), os.unlink
    folder = ready(ALL, data, tmp_path / 'work')
    for n in range(1, 8):
        left = [n]

        def unlink(path: str, left: list[int] = left, **options: int) -> None:
            left[0] -= not options  # those of a temporary folder are told by a descriptor
            if left[0] == 0:
                raise Killed
            plain(path, **options)

        with monkeypatch.context() as patch:
            patch.setattr(delete_raw.os, 'unlink', unlink)
            with pytest.raises(Killed):
                delete(data, tmp_path / 'work', told, ALL)
        assert ready(ALL, data, tmp_path / 'work') == folder
        if len(tree(data)) <= 2 + 3:
            break
    delete(data, tmp_path / 'work', told, ALL)
    assert tree(data) == KEPT and ready(ALL, data, tmp_path / 'work') == folder


def test_a_file_that_cannot_go_is_named(tmp_path: Path, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    data = filed.write(tmp_path / 'data')
    folder, plain = ready(ALL, data, tmp_path / 'work'), os.unlink

    def unlink(path: str, **options: int) -> None:
        if not options:  # none of a temporary folder
            raise PermissionError(13, 'Permission denied', path)
        plain(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(delete_raw.os, 'unlink', unlink)
        with pytest.raises(
            RequestError, match=r'00_closed\.npy: cannot be deleted: Permission denied; .* run the same'
        ):
            delete(data, tmp_path / 'work', told, ALL)
    assert ready(ALL, data, tmp_path / 'work') == folder


@pytest.mark.slow
def test_the_command(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It deletes real recordings, goes on without them, trains, and fetches nothing again."""
    data = tmp_path / 'data'
    shutil.copytree(small, data)
    (mine := data / KALUNGA / 'notes.txt').write_text('of the user')
    argv = [f'--task=ssvep/{KALUNGA}', '--model=dummy', f'--data_dir={data}', f'--workdir={tmp_path / "work"}']
    assert run.main([*argv, '--prepare']) == 0
    assert len([p for p in data.rglob('*') if p.is_file()]) == 7, 'never by default'
    assert run.main([*argv, '--prepare', '--delete_raw_after=prepared']) == 0
    assert 'deleted 6 files' in capsys.readouterr().err
    assert {p for p in data.rglob('*') if p.is_file()} == {mine, data / KALUNGA / raw_files.NOTE}
    assert run.main([*argv, '--delete_raw_after=prepared', '--seeds=33']) == 0
    assert download.fetch(f'ssvep/{KALUNGA}', [], data, alone=True, dry_run=False) == (0, set())
    assert f'not fetched, since --delete_raw_after removed its recordings; to have them again: rm {data}' in (
        capsys.readouterr().err
    )


def test_the_command_refuses_a_folder_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is prepared."""
    from small_files import edf, tsv

    root = tmp_path / 'data/MyRest2026'
    for k in (1, 2):
        edf(root / f'S{k}.edf', ['Cz', 'C3'], 100, 20)
        tsv(root / f'S{k}_events.tsv', 'onset duration trial_type\n1 8 open\n10 8 closed')
    argv = [f'--data_dir={root.parent}', f'--workdir={tmp_path / "work"}', '--model=dummy', '--prepare']
    config = Path(__file__).parents[3] / 'configs/local_folder.py'
    assert run.main([f'--task={config}', *argv, '--delete_raw_after=prepared']) == 2
    assert 'is a dataset of your own' in capsys.readouterr().err
    assert len(list(root.iterdir())) == 4 and not list((tmp_path / 'work').rglob('manifest.json'))
