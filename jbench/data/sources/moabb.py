"""Datasets that MOABB serves: their facts are lines of `moabb.csv`, and one reader serves all of them.

MOABB knows how each set lies on disk; it reads the files and makes MNE recordings of them (pip install -e '.[moabb]').
It fetches them too (`--download`); nothing else of it is used. Its pipeline moves every event by the first number of
the dataset's `interval`; here events stay where they happened. Under `<data_dir>/<dataset>/` lie the files as MOABB
stores them, and `recordings.csv`, the list of subjects, sessions and runs, which only reading every file can tell.
`--download` writes it at its end; for files that are there already, this does, and fetches nothing:

    python -m jbench.data.sources.moabb DATASET DATA_DIR
"""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.formats.moabb_events import event_table
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import MissingExtraError, RequestError, unknown

if TYPE_CHECKING:
    import mne

LIST = 'recordings.csv'
LAYOUT = (
    f'what MOABB downloads (its folder of data: MNE-*-data), and {LIST}, which '
    'python -m jbench.data.sources.moabb DATASET DATA_DIR writes'
)


def _dataset(row: dict[str, str]) -> Dataset:
    """A line of the table; the first alias is MOABB's class."""
    pairs = (p.rpartition('=') for p in row['event_id'].split())
    return Dataset(
        name=row['name'],
        title=row['title'],
        source=__name__,
        n_subjects=int(row['n_subjects']),
        n_recordings=int(row['n_recordings']),
        n_chans=int(row['n_chans']),
        sfreq=(float(row['sfreq']),),
        event_id=tuple((label, int(code)) for label, _, code in pairs),
        licence=row['licence'],
        citation=row['citation'],
        host=row['host'],
        layout=LAYOUT,
        access=row['access'],
        doi=row['host'].removeprefix('doi.org/') if row['host'].startswith('doi.org/') else '',
        download=Download(url=f'moabb:{row["moabb_class"]}') if row['access'] == 'open' else None,
        aliases=tuple(dict.fromkeys(filter(None, (row['moabb_class'], row['alias'])))),
    )


with open(Path(__file__).with_name('moabb.csv'), newline='', encoding='utf-8') as table:
    DATASETS = tuple(map(_dataset, csv.DictReader(table)))

OPTIONS: dict[str, dict[str, Any]] = {  # of MOABB's class
    'Ofner2017UpperExecution': {'imagined': False, 'executed': True},
    'Shin2017OpenA': {'accept': True},  # whoever has the files has accepted the licence
    'Shin2017OpenB': {'accept': True},
    'Stieger2021Continuous': {'fix_bads': False},
}
NOT_EEG = {'Srisrisawang2024Simultaneous': ('x', 'y', 'vx', 'vy', 'validity', 'targetPosX', 'targetPoxY')}  # (sic)


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a line of the list, in MOABB's order; [] without the list."""
    path = root / LIST
    if not path.exists():
        return []
    try:
        with open(path, newline='', encoding='utf-8') as f:
            rows = list(csv.DictReader(f))
    except (ValueError, csv.Error) as error:
        raise RequestError(f'{path}: {error}; remove the list, and have it written again') from None
    wanted = ('subject', 'session', 'run')
    if any(row.get(name) is None for row in rows for name in wanted):
        raise RequestError(f'{path}: each line needs {", ".join(wanted)}; remove the list, and have it written again')
    return [RecordingRef(dataset.name, row['subject'], row['session'], row['run'], (str(path),)) for row in rows]


def read(ref: RecordingRef) -> Recording | Finding:
    """One run in volts. Events `Stimulus` at their true onsets, with `code` and `label`; they last as MOABB's
    interval says, those of code-modulated flicker one cycle of the code."""
    dataset, root = _named(ref.dataset), Path(ref.files[0]).parent
    refused: list[str] = []
    with _offline(root, refused):
        try:
            source = _source(dataset)
            runs = _runs(dataset.name, str(root), ref.subject)
            if (ref.session, ref.run) not in runs:
                found = ', '.join('/'.join(key) for key in runs)
                rule, remedy = 'the run must be among those of its subject', f'remove {LIST}, and have it written again'
                return Finding(ref.where, rule, found, f'{ref.session}/{ref.run}', remedy)
            raw = runs[ref.session, ref.run].copy()
            events = event_table(dataset, source, raw, ref)
        except Exception as error:  # MOABB tells in many ways that a file is not there
            if not refused:
                raise
            rule, found = f'the files of subject {ref.subject} must be there', f'that MOABB asks {refused[0]} for one'
            remedy = f'fetch the subject by MOABB into {root} ({type(error).__name__})'
            return Finding(ref.where, rule, found, dataset.layout, remedy)
    raw.set_channel_types({c: 'misc' for c in NOT_EEG.get(dataset.name, ()) if c in raw.ch_names})
    return Recording(raw.set_annotations(None), events)


def fetch(dataset: Dataset, root: Path, report: Callable[[int, int, str], None], say: Callable[[str], None]) -> None:
    """Have MOABB fetch every subject into `root`, and write the list of their recordings. A list that names all that
    the set declares is taken as it is.

    Raises: RequestError for subjects that MOABB cannot fetch, or whose files it cannot read; the others stay.
    """
    from jbench import files

    failed, subjects = [], []
    if len(recordings(dataset, root)) < dataset.n_recordings:
        files.make_dir(root)
        with _below(root):
            source = _source(dataset)
            subjects = source.subject_list
            for k, subject in enumerate(subjects):
                report(k, len(subjects), f'subjects; MOABB fetches {subject}')
                try:
                    source.download([subject])
                except Exception as error:  # of whatever MOABB fetches with
                    failed.append(f'subject {subject}: {type(error).__name__}: {error}')
        missing = write_list(dataset, root) if len(failed) < len(subjects) else []
        failed = failed or missing
    if failed:
        raise RequestError(
            f'{root}: MOABB lacks {len(failed)} of {len(subjects)} subjects of {dataset.name} ({failed[0]}); run the '
            'same command again later: what came stays'
        )
    say(f'{dataset.name}: {len(recordings(dataset, root))} recordings in {root}, fetched by MOABB')


def write_list(dataset: Dataset, root: Path) -> list[str]:
    """Read every subject below `root`, and write the list of their recordings.

    Returns: what kept each other subject from being read. Raises: RequestError where none can be.
    """
    from jbench import files

    text, missing = io.StringIO(), []
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(('subject', 'session', 'run'))
    refused: list[str] = []
    with _offline(root, refused):
        subjects = [str(s) for s in _source(dataset).subject_list]
        for subject in subjects:
            refused.clear()
            try:
                writer.writerows((subject, *key) for key in _runs(dataset.name, str(root), subject))
            except Exception as error:
                why = f'not there (MOABB asks {refused[0]} for it)' if refused else f'{type(error).__name__}: {error}'
                missing.append(f'subject {subject}: {why}')
    if len(missing) == len(subjects):
        raise RequestError(f'{root}: no subject of {dataset.name} could be read; {missing[0] if missing else "none"}')
    files.write_atomic(root / LIST, text.getvalue().encode())
    return missing


def _named(name: str) -> Dataset:
    for dataset in DATASETS:
        if name.lower() in (n.lower() for n in (dataset.name, *dataset.aliases)):
            return dataset
    raise unknown('dataset of MOABB', name, [d.name for d in DATASETS])


@contextlib.contextmanager
def _offline(root: Path, refused: list[str]) -> Iterator[None]:
    """As `_below`; the hosts that MOABB would ask for other files are noted, and not asked."""
    from jbench.data.download.http import offline

    with _below(root), offline(refused):
        yield


@contextlib.contextmanager
def _below(root: Path) -> Iterator[None]:
    """MOABB looks for files, and puts them, under `root` alone."""
    before = dict(os.environ)
    for name in [n for n in os.environ if n.startswith('MNE_DATA')]:
        del os.environ[name]
    os.environ |= {'MNE_DATA': str(root), '_MNE_FAKE_HOME_DIR': str(root)}  # the user's settings lead elsewhere
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _source(dataset: Dataset) -> Any:
    """MOABB's own object for a dataset."""
    if find_spec('moabb') is None:
        raise MissingExtraError('moabb', 'moabb', f'reading {dataset.name}')
    import moabb.datasets

    return getattr(moabb.datasets, dataset.aliases[0])(**OPTIONS.get(dataset.name, {}))


@functools.lru_cache(maxsize=1)  # MOABB reads a subject at once
def _runs(name: str, root: str, subject: str) -> dict[tuple[str, str], mne.io.BaseRaw]:
    """All recordings of a subject by session and run, as MOABB reads them: events are where the files have them."""
    from moabb.datasets.download import active_sourcedata_store

    source = _source(_named(name))
    key = next(s for s in source.subject_list if str(s) == subject)
    with active_sourcedata_store(source._sourcedata_store()):  # what MOABB fetched from its mirror
        sessions = source._get_single_subject_data(key)
    return {(str(session), str(run)): raw for session, runs in sessions.items() for run, raw in runs.items()}


def main(argv: list[str]) -> int:
    """Write the list of the recordings of a dataset. Returns: exit status, 2 where nothing could be read."""
    if len(argv) != 2:
        print('usage: python -m jbench.data.sources.moabb DATASET DATA_DIR', file=sys.stderr)
        return 2
    try:
        dataset = _named(argv[0])
        root = Path(argv[1]) / dataset.name
        if not root.is_dir():
            raise RequestError(f'{root}: no such folder; put there: {dataset.layout}')
        missing = write_list(dataset, root)
    except RequestError as error:
        print(f'jbench: {error}', file=sys.stderr)
        return 2
    print('\n'.join([*missing, f'{root / LIST}: {len(recordings(dataset, root))} recordings']), file=sys.stderr)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
