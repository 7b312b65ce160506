"""Clones without content are told in one line, by every reader, in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jbench import run
from jbench.data import absent_content
from jbench.data.discover import find_recordings
from jbench.plan import select
from jbench.spec.errors import RequestError

DICE = select.datasets()['Miltiadous2023Dice']
KEY = '.git/annex/objects/Xq/8z/MD5E-s9--0c/MD5E-s9--0c.set'
READERS = {d.source: d for d in select.datasets().values() if not d.simulated}


def link(path: Path) -> None:
    path.symlink_to(f'../../{KEY}')


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content)


ANNEX, LFS = 'a DataLad or git-annex clone without content', 'git-LFS pointers without content'
KINDS = {
    'link': (link, ANNEX, 'datalad get .'),
    'a disk without links': (text('/annex/objects/MD5E-s9--0c.set\n'), ANNEX, 'git annex get .'),
    'git without links': (text(f'../../{KEY}'), ANNEX, 'datalad get .'),
    'lfs': (text('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n'), LFS, 'git lfs pull'),
}


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('source', sorted(READERS))
def test_every_reader_tells_it_in_one_line(source: str, kind: str, tmp_path: Path) -> None:
    make, what, way = KINDS[kind]
    root = tmp_path / READERS[source].name / 'sub-1'
    root.mkdir(parents=True)
    make(root / 'a.dat')
    with pytest.raises(RequestError) as caught:
        find_recordings(READERS[source], tmp_path)
    (line,) = str(caught.value).splitlines()
    assert what in line and 'sub-1/a.dat' in line and f'cd {root.parent} && ' in line and way in line


def tree(root: Path, make: Callable[[Path], object], n: int) -> None:
    """A BIDS tree of n people with five files each."""
    (root / 'participants.tsv').parent.mkdir(parents=True)
    rows = [f'sub-{k:04d}\tF\t50\tA\t20' for k in range(n)]
    (root / 'participants.tsv').write_text('\n'.join(['participant_id\tGender\tAge\tGroup\tMMSE', *rows]))
    for k in range(n):
        folder = root / f'sub-{k:04d}' / 'eeg'
        folder.mkdir(parents=True)
        for name in ('eeg.set', 'eeg.json', 'events.tsv', 'channels.tsv', 'electrodes.tsv'):
            make(folder / f'sub-{k:04d}_task-eyesclosed_{name}')


@pytest.mark.slow
def test_ten_thousand_links_to_nothing_take_seconds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree(tmp_path / DICE.name, link, 2000)
    began = time.monotonic()
    ask = f'--task=dementia_diagnosis/{DICE.name}', f'--data_dir={tmp_path}', f'--workdir={tmp_path / "work"}'
    assert run.main([*ask, '--prepare']) == 2
    assert time.monotonic() - began < 5
    said = capsys.readouterr().err.strip()
    assert '\n' not in said and len(said) < 600 and '10000 of 10000 files' in said and 'and 9997 more' in said


@pytest.mark.parametrize('kind', KINDS)
def test_recordings_without_content_leave_the_others_a_partial_set(kind: str, tmp_path: Path) -> None:
    root = tmp_path / DICE.name
    tree(root, text('{}'), 3)
    assert len(find_recordings(DICE, tmp_path)) == 3
    (signal := root / 'sub-0001' / 'eeg' / 'sub-0001_task-eyesclosed_eeg.set').unlink()
    KINDS[kind][0](signal)
    found = find_recordings(DICE, tmp_path)
    assert len(found) == 2 and not any('sub-0001' in path for ref in found for path in ref.files)
    for ref in found:
        (signal := Path(next(path for path in ref.files if path.endswith('.set')))).unlink()
        KINDS[kind][0](signal)
    with pytest.raises(RequestError, match=r'3 of 1\d files .*sub-0001_task-eyesclosed_eeg\.set, '):
        find_recordings(DICE, tmp_path)


def test_a_table_without_content_is_not_called_damaged(tmp_path: Path) -> None:
    root = tmp_path / DICE.name
    tree(root, text('{}'), 3)
    KINDS['lfs'][0](root / 'participants.tsv')
    with pytest.raises(RequestError, match='git-LFS pointers without content'):
        find_recordings(DICE, tmp_path)


def test_what_no_reader_opens_may_lack_its_content(tmp_path: Path) -> None:
    root = tmp_path / DICE.name
    tree(root, text('{}'), 3)
    (root / 'derivatives').mkdir()
    link(root / 'derivatives' / 'a.set')
    assert len(find_recordings(DICE, tmp_path)) == 3


def test_other_links_and_small_files_are_none(tmp_path: Path) -> None:
    (tmp_path / 'lost').symlink_to('elsewhere')
    (tmp_path / 'small').write_text('see .git/annex/objects/ for\nmore\nof it')
    (tmp_path / 'large').write_bytes(b'/annex/objects/' + bytes(2000))
    absent_content.refuse(tmp_path, absent_content.below(tmp_path))
