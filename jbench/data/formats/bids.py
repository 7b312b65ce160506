"""Recordings in BIDS: found by their names, read by mne-bids, with the tables that lie beside them.

A recording is `sub-<label>[/ses-<label>]/<datatype>/sub-<label>[_<entity>-<label>...]_<datatype>.<extension>`. A table
such as `task-rest_events.tsv` belongs to all recordings at or below its folder whose names hold its entities; the
nearest one counts. Where `channels.tsv` and the signal's own header disagree, the header is followed.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import json
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.formats.brainvision import check_brainvision
from jbench.data.formats.check_file import check_file
from jbench.data.formats.edf import check_edf
from jbench.data.recording import Finding, RecordingRef, is_hidden
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError, RequestError

if TYPE_CHECKING:
    import mne
    import numpy as np

SIGNALS = ('.edf', '.bdf', '.set', '.vhdr', '.fif', '.fif.gz', '.ds', '.con', '.sqd', '.snirf')
DATATYPES = {'fnirs': 'nirs'}  # of a device, where BIDS has another word
TABLES = ('events.tsv', 'channels.tsv', 'electrodes.tsv', 'coordsystem.json')  # sidecars of which the nearest counts
READ = {'channels.tsv': ('name', 'type'), 'electrodes.tsv': ('name', 'x', 'y', 'z')}  # by mne-bids; their columns
OWN = ('onset', 'duration', 'type', 'subject', 'session', 'run')  # columns of the event table with a meaning of ours
AGAIN = 'correct the table, or fetch it again'


def entities(name: str) -> dict[str, str]:
    """`sub-01_task-rest_run-2_eeg.set` as {'sub': '01', 'task': 'rest', 'run': '2'}."""
    pairs = (part.split('-', 1) for part in name.partition('.')[0].split('_'))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def recordings(dataset: Dataset, root: Path, columns: Sequence[str] = ()) -> list[RecordingRef]:
    """One reference a recording below `root`, by subject and session, from names and `participants.tsv` alone.

    `run` holds the labels of all entities but subject and session, as in rest_2. Fields are `task` and the `columns` of
    participants.tsv (none named: all that there are), '' for a person without a row.

    Raises: RequestError where participants.tsv lacks a named column.
    """
    kind = DATATYPES.get(dataset.device, dataset.device)
    names, people = _Names(root), _people(root / 'participants.tsv', columns)
    refs = []
    for folder in sorted([*root.glob(f'sub-*/{kind}'), *root.glob(f'sub-*/ses-*/{kind}')]):
        for name in names.of(folder):
            stem, _, extension = name.partition('.')
            own = entities(name)
            later = own.pop('split', '01').lstrip('0') != '1'  # MNE goes on to the later parts of a long file by itself
            if not stem.endswith(f'_{kind}') or f'.{extension}' not in SIGNALS or later or 'sub' not in own:
                continue
            more = tuple(v for k, v in own.items() if k not in ('sub', 'ses'))
            fields = (('task', own.get('task', '')), *people.get(own['sub'], people.get('', ())))
            files = (str(folder / name), *names.beside(folder / name, kind))
            refs.append(RecordingRef(dataset.name, own['sub'], own.get('ses', '0'), '_'.join(more), files, fields))
    return refs


class _Names:
    """Names below a root, each folder listed once."""

    def __init__(self, root: Path) -> None:
        self.root, self.listed = root, dict[Path, list[str]]()
        self.tables = dict[tuple[Path, str], list[tuple[str, set[tuple[str, str]]]]]()

    def of(self, folder: Path) -> list[str]:
        """Sorted names in a folder."""
        if folder not in self.listed:
            self.listed[folder] = sorted(p.name for p in folder.iterdir() if not is_hidden(p.name))
        return self.listed[folder]

    def ending(self, folder: Path, suffix: str) -> list[tuple[str, set[tuple[str, str]]]]:
        """Names of tables in a folder with their entities (but `space`, which no recording has), most of them first."""
        if (folder, suffix) not in self.tables:
            names = [n for n in self.of(folder) if f'_{n}'.endswith(f'_{suffix}')]
            found = [(n, {(k, v) for k, v in entities(n).items() if k != 'space'}) for n in names]
            self.tables[folder, suffix] = sorted(found, key=lambda pair: -len(pair[1]))
        return self.tables[folder, suffix]

    def beside(self, signal: Path, kind: str) -> list[str]:
        """Paths of all else that is read for a recording: parts of the signal, then its sidecars, the nearest first."""
        stem, own = signal.name.partition('.')[0], set(entities(signal.name).items())
        found = [str(p) for p in sorted(signal.rglob('*'))] if signal.name.endswith('.ds') else []
        mates = (n for n in self.of(signal.parent) if n.startswith(f'{stem}.') and n != signal.name)
        found += [str(signal.with_name(n)) for n in mates]
        for suffix in (*TABLES, f'{kind}.json'):
            for folder in signal.parents[: len(signal.relative_to(self.root).parts)]:
                found += [str(folder / n) for n, theirs in self.ending(folder, suffix) if theirs <= own]
        return list(dict.fromkeys(found))


def table(path: Path) -> dict[str, list[str]]:
    """The columns of a table (.tsv, or .csv) as text; n/a is ''. Names in quotes lose them, and so do values then. What
    stands between values is a tab, or a comma; else the first line tells (some programs write semicolons).

    Raises: ValueError for lines of unequal length, or what is no text of a table."""
    text = _decoded(path.read_bytes())
    marks = (',', ';', '\t') if path.suffix == '.csv' else ('\t', ';', ',')
    quoted = path.suffix == '.csv' or text.lstrip().startswith('"')
    how: Any = {
        'delimiter': next((mark for mark in marks if mark in text.partition('\n')[0]), marks[0]),
        'quoting': csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    }
    try:
        rows = [r for r in csv.reader(io.StringIO(text, newline=''), **how) if any(r)]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    head = [name.strip() for name in rows[0]] if rows else []
    ragged = next((r for r in rows if len(r) != len(head)), None)
    if ragged is not None:
        raise ValueError(f'a line of {len(ragged)} values under {len(head)} columns')
    cells = [[v if (v := cell.strip()) not in ('n/a', 'N/A', 'NaN', 'nan') else '' for cell in r] for r in rows[1:]]
    return {name: [r[k] for r in cells] for k, name in enumerate(head)}


def _decoded(content: bytes) -> str:
    """The text of a table: UTF-8, with the byte order mark of some programs or without; UTF-16, which has one; else
    what Windows writes in western Europe (Latin-1 and a few more), in which any bytes are a text."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode('utf-16')
    for name in ('utf-8-sig', 'cp1252'):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(name)
    return content.decode('latin-1')


def _people(path: Path, columns: Sequence[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Fields of each subject; under '' those of somebody without a row. Raises: RequestError for a missing column."""
    try:
        found = table(path) if path.exists() else {}
    except ValueError as error:
        raise RequestError(f'{path}: {error}; {AGAIN}') from None
    if lacking := [c for c in ('participant_id', *columns) if c not in found and (found or columns)]:
        there = ', '.join(found) or 'no such file'
        raise RequestError(f'{path}: expected the columns {", ".join(lacking)}, found {there}; {AGAIN}')
    kept = list(columns) or [c for c in found if c not in ('participant_id', *OWN)]
    rows = {p.removeprefix('sub-'): k for k, p in enumerate(found.get('participant_id', ()))}
    people = {p: tuple((c, found[c][k]) for c in kept) for p, k in rows.items()}
    return {'': tuple((c, '') for c in kept), **people}


def sidecar(ref: RecordingRef, suffix: str) -> Path | None:
    """The nearest file beside a recording whose name ends so."""
    return next((Path(f) for f in ref.files[1:] if f'_{Path(f).name}'.endswith(f'_{suffix}')), None)


def described(ref: RecordingRef) -> dict[str, Any]:
    """What the JSON files say of a recording; the nearer one counts. Raises: ValueError for a damaged one."""
    found: dict[str, Any] = {}
    for path in (f for f in ref.files[1:] if f.endswith(f'{Path(ref.files[0]).parent.name}.json')):
        found = json.loads(Path(path).read_text(encoding='utf-8-sig')) | found
    return found


def read(ref: RecordingRef) -> mne.io.BaseRaw | Finding:
    """The signal with the types, bad channels and positions that its sidecars tell, read block by block."""
    if find_spec('mne_bids') is None:
        raise MissingExtraError('mne-bids', 'bids', 'reading BIDS')
    import mne_bids

    bad = check_signal(ref.files[0])
    for suffix, wanted in READ.items():
        path = sidecar(ref, suffix)
        if bad is None and path is not None and (suffix != 'electrodes.tsv' or sidecar(ref, 'coordsystem.json')):
            found = _checked(path, wanted)
            bad = found if isinstance(found, Finding) else _read_by_others(path)
    if bad:
        return bad
    with _without_locks(), _without_events():
        where = mne_bids.get_bids_path_from_fname(ref.files[0], check=False)
        return mne_bids.read_raw_bids(where, on_ch_mismatch='warn', verbose='ERROR')


def _read_by_others(path: Path) -> Finding | None:
    """Refuse a table that mne-bids cannot read, which takes UTF-8 alone."""
    try:
        path.read_text(encoding='utf-8')
    except UnicodeDecodeError as error:
        found = f'byte {error.object[error.start]:#x} at {error.start}'
        return Finding(str(path), 'the table must be text in UTF-8', found, 'UTF-8', 'save it anew as UTF-8')
    return None


def check_signal(path: str) -> Finding | None:
    """Refuse a file that is absent, empty, a web page, or a truncated EDF, BDF or BrainVision file."""
    if Path(path).is_dir():
        return None
    if not Path(path).exists():
        found, remedy = 'a link to nothing', 'fetch the content of the file (git-annex and DataLad store links first)'
        return Finding(path, 'the file must be there', found, 'a recording', remedy)
    checks = {'.edf': check_edf, '.bdf': check_edf, '.vhdr': check_brainvision}
    return checks.get(Path(path).suffix.lower(), check_file)(path)


@contextlib.contextmanager
def _without_events() -> Iterator[None]:
    """Inside: mne-bids leaves tables of events alone, since it does not name the one that it cannot read; `events`
    reads those that are needed."""
    from unittest import mock

    import mne_bids.read

    with mock.patch.object(mne_bids.read, '_handle_events_reading', lambda _, raw, **__: (raw, {}), create=True):
        yield


@contextlib.contextmanager
def _without_locks() -> Iterator[None]:
    """Inside: mne-bids only reads. Where it finds filelock, it makes lock files beside the files that it reads."""
    before = sys.modules.get('filelock')
    sys.modules['filelock'] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules['filelock']
        if before is not None:
            sys.modules['filelock'] = before


def events(
    path: Path, raw: mne.io.BaseRaw | None, *, unit: float = 1.0, needed: Sequence[str] = ()
) -> dict[str, np.ndarray] | Finding:
    """A table of events in time order: `onset` and `duration` in s from the start of the recording, the rest as text.

    Rows whose onset is n/a have no place in time, and are left out; a duration that is n/a is 0.

    Args:
        path: .tsv, or .csv.
        raw: the recording; its length tells samples from seconds. None: they are seconds.
        unit: of the numbers in the file, s.
        needed: columns that must be there beside the onset.
    """
    import numpy as np

    found = _checked(path, ('onset', *needed))
    if isinstance(found, Finding):
        return found
    found = {'duration': [''] * len(found['onset'])} | found
    placed = [k for k, v in enumerate(found['onset']) if v]
    out: dict[str, np.ndarray] = {name: np.array([v[k] for k in placed], str) for name, v in found.items()}
    for name in ('onset', 'duration'):
        try:
            out[name] = np.array([float(v or 0) * unit for v in out[name].tolist()])
        except ValueError as error:
            return Finding(str(path), f'each {name} must be a number', str(error), 's', AGAIN)
    if raw is not None:
        last, seconds, sfreq = out['onset'].max(initial=0.0), raw.n_times / raw.info['sfreq'], raw.info['sfreq']
        if 2 * seconds < last <= raw.n_times:  # what lies a little after the end is no other unit: the contract says so
            rule, found_ = 'onsets must be in seconds', f'{last:g} in a recording of {seconds:.1f} s'
            remedy = f'divide samples by the rate, {sfreq:g} Hz; if these are seconds, the recording is truncated'
            return Finding(str(path), rule, found_, 's from its start', remedy)
    order = np.argsort(out['onset'], kind='stable')
    return {name: v[order] for name, v in out.items()}


def annotated(raw: mne.io.BaseRaw) -> dict[str, np.ndarray]:
    """The annotations of a file as events of type `Stimulus` with `label`. MNE counts theirs from the start of the
    measurement, which may lie before the file."""
    import numpy as np

    marks = raw.annotations
    return {
        'onset': np.array(marks.onset, float) - raw.first_time,
        'duration': np.array(marks.duration, float),
        'type': np.full(len(marks), 'Stimulus'),
        'label': np.array([str(d) for d in marks.description], str),
    }


def _checked(path: Path, wanted: Sequence[str]) -> dict[str, list[str]] | Finding:
    """A table that has some columns."""
    try:
        found = table(path)
    except ValueError as error:
        return Finding(str(path), 'each line must have all columns', str(error), 'as many as the first line', AGAIN)
    if all(name in found for name in wanted):
        return found
    rule = f'the table must have the column{"s" * (len(wanted) > 1)} {" and ".join(wanted)}'
    return Finding(str(path), rule, ', '.join(found) or 'an empty file', ', '.join(wanted), AGAIN)
