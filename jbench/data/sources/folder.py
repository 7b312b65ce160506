"""A folder of one's own, read without any code: BIDS, or files that MNE knows with their events.

Its facts and the task stand in a Python file: `--task=configs/local_folder.py` is an example. Files that are not BIDS
are called `<subject>[_<anything>].<extension>` and lie anywhere below `<data_dir>/<dataset>/`. Their events are a table
beside `<name>.<extension>`, called `<name>_events.tsv` (or .csv; without a last `_raw`, `_eeg`, `_meg`, `_emg` or
`_nirs` of the name, too), else the annotations in it. A table has `onset` and `duration` (s from the start of the
file), and columns that the task may name. Events are of type `Stimulus`, unless a column `type` says otherwise; `label`
is `trial_type` or `value` where none is called so. Where the class stands in the names of files, `names` of the dataset
says where (configs/resting_folder.py). What is called `boundary` or `BAD_...` marks what is bad, in a table
or in annotations beside it (jbench/data/marks.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data import marks
from jbench.data.formats import bids
from jbench.data.recording import EVENT_TYPE, Finding, Recording, RecordingRef, is_hidden
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne
    import numpy as np

VERSION = 2  # 2: marks and duplicates make no windows
_SUFFIX = re.compile('_(raw|eeg|meg|emg|nirs)$')
LABELS = ('label', 'trial_type', 'value')  # columns that may hold the words of a mark
TIMES = ('onset', 'duration')
# what MNE calls the later parts of a long file, and its first one
_PARTS = ((r'(_(?:raw|eeg|meg|emg|nirs))-\d+(\.fif)', r'\1\2'), (r'_split-\d+(_[^.]*\.fif)', r'_split-01\1'))


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file; `run` is what follows the subject in its name, the field `file` all of its name.

    Where the dataset says how its files are called (`names`), that tells subject, session, run and columns.

    Raises: RequestError for two files of one name, two tables of one file, or a file that is called otherwise.
    """
    if found := bids.recordings(dataset, root):
        needs = set(dataset.event_types) - {EVENT_TYPE[dataset.device]}
        return [_awaiting(r) if needs else r for r in found]
    refs: dict[str, RecordingRef] = {}
    strangers = []
    for path in sorted(root.rglob('*')):
        extension = next((e for e in bids.SIGNALS if path.name.lower().endswith(e)), None)
        hidden = any(map(is_hidden, path.relative_to(root).parts))
        if extension is None or hidden or _follows(path):
            continue
        stem = path.name[: -len(extension)]
        name = _SUFFIX.sub('', stem)
        subject, _, run = name.partition('_')
        known = {'subject': subject.removeprefix('sub-'), 'run': run}
        if dataset.names:
            folder = path.parent.relative_to(root).as_posix()
            name = f'{folder}/{name}' if '/' in dataset.names and folder != '.' else name
            known = named(dataset.names, name)
            if not known:
                strangers.append(str(path))
                continue
        if name in refs:
            where = f'{refs[name].files[0]} and {path}'
            raise RequestError(f'{where}: two files of one name; keep one, or call each <subject>_<anything>')
        refs[name] = _reference(dataset, known, name, path, stem)
    if strangers:
        where = ', '.join(strangers[:3]) + (f' and {len(strangers) - 3} more' if len(strangers) > 3 else '')
        raise RequestError(
            f'{where}: not called {dataset.names!r}, as `names` of the dataset says; rename, or move away'
        )
    return list(refs.values())


def _reference(dataset: Dataset, known: dict[str, str], name: str, path: Path, stem: str) -> RecordingRef:
    """A recording with the table of its events and what else belongs to it. Raises: RequestError for two tables."""
    last = _SUFFIX.sub('', stem)
    called = [f'{n}_events{suffix}' for n in dict.fromkeys((last, stem)) for suffix in ('.tsv', '.csv')]
    tables = [p for p in map(path.with_name, called) if p.exists()]
    if len(tables) > 1:
        raise RequestError(f'{" and ".join(map(str, tables))}: two tables of events of {path.name}; keep one')
    others = [p for p in sorted(path.parent.glob(f'{stem}.*')) if p != path]  # .eeg, .vmrk, .fdt
    files = tuple(map(str, [path, *tables, *others]))
    fields = tuple((k, v) for k, v in known.items() if k not in ('subject', 'session', 'run'))
    run = '_'.join(v for k, v in known.items() if k not in ('subject', 'session'))
    return RecordingRef(
        dataset.name, known['subject'], known.get('session', '0'), run, files, (*fields, ('file', name))
    )


def named(pattern: str, name: str) -> dict[str, str]:
    """What a name says by a pattern: '{subject}_{eyes}' of S01_open is subject S01 and eyes open; {} where it does not
    fit. A field takes as little as it can, and no '/'; `*` stands for anything.

    Raises: RequestError for a pattern without {subject}, or with a field that has a meaning already.
    """
    fields = re.findall(r'\{(.*?)\}', pattern)
    taken = [
        f for f in fields if not f.isidentifier() or fields.count(f) > 1 or f in ('onset', 'duration', 'type', 'file')
    ]
    if taken or 'subject' not in fields:
        found = f'field {taken[0]!r}' if taken else 'no {subject}'
        raise RequestError(f"names={pattern!r}: found {found}, expected fields as in '{{subject}}_{{eyes}}', each once")
    parts = re.split(r'\{.*?\}', pattern)
    literal = [re.escape(part).replace(r'\*', '[^/]*?') for part in parts]
    groups = [f'(?P<{f}>[^/]+?)' for f in fields] + ['']
    fit = re.fullmatch(''.join(map(''.join, zip(literal, groups, strict=True))), name)
    return fit.groupdict() if fit else {}


def _awaiting(ref: RecordingRef) -> RecordingRef:
    """A recording of BIDS with the table of events that it should have, where it has none."""
    if bids.sidecar(ref, 'events.tsv'):
        return ref
    signal = Path(ref.files[0])
    table = signal.with_name(signal.name.partition('.')[0].rpartition('_')[0] + '_events.tsv')
    return ref._replace(files=(*ref.files, str(table)))


def _follows(path: Path) -> bool:
    """Whether a file is a later part of a long FIF file, to which MNE goes on by itself."""
    firsts = (path.with_name(re.sub(later, first, path.name)) for later, first in _PARTS)
    return any(first != path and first.exists() for first in firsts)


def read(ref: RecordingRef) -> Recording | Finding:
    """The signal in the unit of its device, its events from the table beside it, else from its annotations."""
    in_bids = 'file' not in dict(ref.fields)
    if in_bids and any(f.endswith('_events.tsv') and not Path(f).exists() for f in ref.files):
        rule, expected = 'events.tsv missing: events of BIDS stand in a table', 'one beside the recording'
        remedy = 'write it, or say event_types=() of the dataset where no event is needed'
        return Finding(ref.where, rule, 'none', expected, remedy)
    raw = bids.read(ref) if in_bids else _signal(ref.files[0])
    if isinstance(raw, Finding):
        return raw
    table = bids.sidecar(ref, 'events.tsv') or bids.sidecar(ref, 'events.csv')
    found = bids.events(table, raw, needed=('duration',)) if table else bids.annotated(raw)
    if in_bids and not table and isinstance(found, dict):  # markers of a recorder are no events of BIDS
        found = {k: v[:0] for k, v in found.items()}
    if isinstance(found, Finding):
        return found
    if table and (lost := [k + 1 for k, onset in enumerate(bids.table(table)['onset']) if not onset]):
        rule, remedy = 'each event must have an onset', 'correct these rows, or remove them'
        return Finding(str(table), rule, f'none in row {", ".join(map(str, lost))}', 'a number of s', remedy)
    marked = bids.annotated(raw)
    skips = [k for k, text in enumerate(marked['label'].tolist()) if text.upper() == marks.SKIP]
    events = _marked(_named(found), _named(marked) if table or in_bids else None)
    return Recording(raw.set_annotations(raw.annotations[skips] if skips else None), events)


def _marked(events: dict[str, np.ndarray], others: dict[str, np.ndarray] | None) -> dict[str, np.ndarray]:
    """The events of a table or of annotations, those that are marks as such, and the marks among `others`, which are
    the annotations of a file with a table. An event that stands there again is a duplicate."""
    import numpy as np

    texts = [v.tolist() for name, v in events.items() if name in LABELS and v.dtype.kind == 'U']
    why = [next((t for t in row if marks.is_cut(t) or marks.is_bad(t)), '') for row in zip(*texts, strict=True)]
    why = why or [''] * len(events['onset'])
    if others:
        more = [k for k, t in enumerate(others['label'].tolist()) if marks.is_cut(t) or marks.is_bad(t)]
        why += others['label'][more].tolist()
        blank = np.full(len(more), '')
        events = {
            name: np.concatenate([v, others[name][more] if name in TIMES else blank]) for name, v in events.items()
        }
    rows = list(zip(*(v.tolist() for v in events.values()), strict=True))
    again = np.ones(len(rows), bool)
    again[[*{row: k for k, row in reversed([*enumerate(rows)])}.values()]] = False
    marked, cut = np.array([w != '' for w in why], bool), np.array([marks.is_cut(w) for w in why], bool)
    kept = {name: v if name in TIMES else np.where(marked, '', v) for name, v in events.items()}
    return {
        **kept,
        'duration': np.where(cut, 0.0, events['duration']),
        'type': np.select([marked, again], [marks.BAD, marks.TWICE], events['type']),
        **({marks.WHY: np.array(why, str)} if marked.any() else {}),
    }


def _signal(path: str) -> mne.io.BaseRaw | Finding:
    import mne

    return bids.check_signal(path) or mne.io.read_raw(path)


def _named(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A table of events with the columns `type`, and `label` where a column tells it."""
    import numpy as np

    kind = np.full(len(found['onset']), 'Stimulus')
    label = next((found[c] for c in LABELS if c in found), None)
    return {'type': kind, **({} if label is None else {'label': label}), **found}
