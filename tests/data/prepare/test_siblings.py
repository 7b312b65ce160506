"""Tasks that differ in windows alone: a recording is read and filtered once, and each set holds what it holds alone."""

from __future__ import annotations

import dataclasses
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filed
import pytest
from preparing import ZYMA, content, pick

from jbench import files, run
from jbench.data.load import prepared_set
from jbench.data.prepare import build_set, convert, siblings
from jbench.plan import cells, select
from jbench.spec.errors import RequestError
from jbench.spec.task import Crop, Task, Value, Where, Window

LATE = filed.task(Window(duration=1.0))
EARLY = filed.task(Window(start=-0.5, duration=1.5), dataclasses.replace(filed.SIGNAL, baseline=(0.0, 0.3), clamp=5.0))
NUMBERS = dataclasses.replace(filed.task(Window(duration=2.0, stride=1.0)), target=Value(field='code'))


@pytest.fixture(autouse=True)
def in_a_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are threads of this process, which start at once; those of the command are its own."""
    if 'slow' not in request.keywords:
        monkeypatch.setattr(build_set, 'workers', lambda *_: ThreadPoolExecutor(1))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was read, a line a recording."""
    monkeypatch.setenv('FILED_LOG', str(tmp_path / 'log'))
    return tmp_path / 'log'


def read(log: Path) -> Counter[str]:
    found = Counter(log.read_text().split()) if log.exists() else Counter()
    log.unlink(missing_ok=True)
    return found


def ready(task: Task, data_dir: Path, work: Path, others: tuple[Task, ...] = ()) -> Path:
    return prepared_set.ready(task, filed.DATASET, data_dir, work, lambda *facts: None, print, others)


@pytest.mark.parametrize('crop', [None, Crop(start=2.0, skip=2.0, longest=12.0)])
def test_each_recording_is_read_once_and_the_sets_are_those_of_each_alone(
    crop: Crop | None, tmp_path: Path, log: Path
) -> None:
    data = filed.write(tmp_path / 'data')
    tasks = [dataclasses.replace(t, signal=dataclasses.replace(t.signal, crop=crop)) for t in (LATE, EARLY, NUMBERS)]
    alone = [content(ready(t, data, tmp_path / f'alone{k}')) for k, t in enumerate(tasks)]
    assert set(read(log).values()) == {3}
    together = [ready(t, data, tmp_path / 'work', tuple(tasks[k + 1 :])) for k, t in enumerate(tasks)]
    assert read(log) == Counter(r.name for r in filed.recordings(filed.DATASET, data / 'Filed'))
    assert [content(f) for f in together] == alone and len({f.name for f in together}) == 3
    assert not list((tmp_path / 'work').rglob('*.parts'))


def test_the_signal_is_filtered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, calls = filed.write(tmp_path / 'data'), []
    plain = convert.process
    monkeypatch.setattr(convert, 'process', lambda *args: calls.append(args) or plain(*args))
    ref = filed.recordings(filed.DATASET, data / 'Filed')[0]
    places = [files.make_dir(tmp_path / name) for name in 'abc']
    convert.make(LATE, filed.DATASET, ref, places[0], [(EARLY, places[1]), (NUMBERS, places[2])])
    assert len(calls) == 1 and all(convert.finished(ref, p) for p in places)


def test_another_signal_is_not_shared(tmp_path: Path, log: Path) -> None:
    data = filed.write(tmp_path / 'data', 1, ('open',))
    other = dataclasses.replace(EARLY, signal=dataclasses.replace(filed.SIGNAL, band=(1.0, 20.0)))
    assert not siblings.same_signal(LATE, other) and siblings.same_signal(LATE, EARLY)
    ready(LATE, data, tmp_path / 'work', (other,))
    ready(other, data, tmp_path / 'work')
    assert read(log) == {'00_0_open': 2}


def test_what_one_task_cannot_use_is_its_own_fault(tmp_path: Path, log: Path) -> None:
    data = filed.write(tmp_path / 'data', 1, ('open', 'ragged'))
    ready(LATE, data, tmp_path / 'work', (NUMBERS,))
    assert read(log) == {'00_0_open': 1, '00_0_ragged': 1}
    with pytest.raises(
        RequestError, match=r'00_ragged\.npy: the recording must serve the task: found an event of 0\.50'
    ):
        ready(NUMBERS, data, tmp_path / 'work')
    assert read(log) == {'00_0_ragged': 1}, 'the good one was kept'


def test_a_task_of_fewer_recordings_gets_those_alone(tmp_path: Path, log: Path) -> None:
    data = filed.write(tmp_path / 'data')
    few = filed.task(Window(duration=0.5, where=(Where(field='state', values=('open',)),)))
    ready(LATE, data, tmp_path / 'work', (few,))
    (parts,) = (tmp_path / 'work').rglob('*.parts')
    assert {p.stem for p in parts.iterdir()} == {'00_0_open', '01_0_open'}
    read(log)
    folder = ready(few, data, tmp_path / 'work')
    assert not read(log)
    assert content(folder) == content(ready(few, data, tmp_path / 'alone'))


def test_what_another_process_prepares_is_left_to_it(tmp_path: Path, log: Path) -> None:
    data = filed.write(tmp_path / 'data', 1, ('open',))
    folder, _ = build_set.locate(EARLY, filed.DATASET, data, tmp_path / 'work')
    assert folder is not None
    with files.locked(folder.with_name(f'{folder.name.partition("-")[0]}.lock')):
        ready(LATE, data, tmp_path / 'work', (EARLY,))
        assert not list((tmp_path / 'work').rglob('*.parts'))


@pytest.mark.slow
def test_the_command_shares_what_tasks_of_one_signal_read(data_dir: Path, tmp_path: Path) -> None:
    """Two tasks on real recordings: one command makes the sets of two commands."""
    data, dataset = pick(data_dir, tmp_path / 'data', ZYMA, 'Subject0[01]_?.edf', '*.csv'), select.datasets()[ZYMA]
    names = ('zyma_arithmetic', 'zyma_quality')
    assert siblings.same_signal(*(cells.apply(select.tasks()[n][-1], dataset, ()) for n in names))

    def sets(*tasks: str) -> dict[str, dict[str, bytes]]:
        work = tmp_path / '_'.join(tasks)
        argv = [f'--task={",".join(tasks)}', '--model=dummy', '--stage=prepare', f'--data_dir={data}']
        assert run.main([*argv, f'--workdir={work}']) == 0
        return {p.parent.name: content(p.parent) for p in work.rglob('manifest.json')}

    alone = sets(names[0]) | sets(names[1])
    assert sets(*names) == alone and len(alone) == 2
