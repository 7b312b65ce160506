"""A folder of one's own, read without any code: BIDS, or files that MNE knows with their events.

Its facts and the task stand in a Python file: `--task=configs/local_folder.py` is an example. Files that are not BIDS
are called `<subject>[_<anything>].<extension>` and lie anywhere below `<data_dir>/<dataset>/`. Their events are a table
beside `<name>.<extension>`, called `<name>_events.tsv` (or .csv; without a last `_raw`, `_eeg`, `_meg`, `_emg` or
`_nirs` of the name, too), else the annotations in it. A table has `onset` and `duration` (s from the start of the
file), and columns that the task may name. Events are of type `Stimulus`, unless a column `type` says otherwise; `label`
is `trial_type` or `value` where none is called so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne
    import numpy as np

_SUFFIX = re.compile('_(raw|eeg|meg|emg|nirs)$')
# what MNE calls the later parts of a long file, and its first one
_PARTS = ((r'(_(?:raw|eeg|meg|emg|nirs))-\d+(\.fif)', r'\1\2'), (r'_split-\d+(_[^.]*\.fif)', r'_split-01\1'))


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file; `run` is what follows the subject in its name, the field `file` all of its name.

    Raises: RequestError for two files of one name, or two tables of one file.
    """
    if found := bids.recordings(dataset, root):
        return found
    refs: dict[str, RecordingRef] = {}
    for path in sorted(root.rglob('*')):
        extension = next((e for e in bids.SIGNALS if path.name.lower().endswith(e)), None)
        if extension is None or _follows(path):
            continue
        stem = path.name[: -len(extension)]
        name = _SUFFIX.sub('', stem)
        if name in refs:
            where = f'{refs[name].files[0]} and {path}'
            raise RequestError(f'{where}: two files of one name; keep one, or call each <subject>_<anything>')
        subject, _, run = name.partition('_')
        called = [f'{n}_events{suffix}' for n in dict.fromkeys((name, stem)) for suffix in ('.tsv', '.csv')]
        tables = [p for p in map(path.with_name, called) if p.exists()]
        if len(tables) > 1:
            raise RequestError(f'{" and ".join(map(str, tables))}: two tables of events of {path.name}; keep one')
        others = [p for p in sorted(path.parent.glob(f'{stem}.*')) if p != path]  # .eeg, .vmrk, .fdt
        files = tuple(map(str, [path, *tables, *others]))
        refs[name] = RecordingRef(dataset.name, subject.removeprefix('sub-'), '0', run, files, (('file', name),))
    return list(refs.values())


def _follows(path: Path) -> bool:
    """Whether a file is a later part of a long FIF file, to which MNE goes on by itself."""
    firsts = (path.with_name(re.sub(later, first, path.name)) for later, first in _PARTS)
    return any(first != path and first.exists() for first in firsts)


def read(ref: RecordingRef) -> Recording | Finding:
    """The signal in the unit of its device, its events from the table beside it, else from its annotations."""
    raw = bids.read(ref) if 'task' in dict(ref.fields) else _signal(ref.files[0])
    if isinstance(raw, Finding):
        return raw
    table = bids.sidecar(ref, 'events.tsv') or bids.sidecar(ref, 'events.csv')
    found = bids.events(table, raw, needed=('duration',)) if table else bids.annotated(raw)
    if isinstance(found, Finding):
        return found
    if table and (lost := [k + 1 for k, onset in enumerate(bids.table(table)['onset']) if not onset]):
        rule, remedy = 'each event must have an onset', 'correct these rows, or remove them'
        return Finding(str(table), rule, f'none in row {", ".join(map(str, lost))}', 'a number of s', remedy)
    return Recording(raw.set_annotations(None), _named(found))


def _signal(path: str) -> mne.io.BaseRaw | Finding:
    import mne

    return bids.check_signal(path) or mne.io.read_raw(path)


def _named(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A table of events with the columns `type`, and `label` where a column tells it."""
    import numpy as np

    kind = np.full(len(found['onset']), 'Stimulus')
    label = next((found[c] for c in ('label', 'trial_type', 'value') if c in found), None)
    return {'type': kind, **({} if label is None else {'label': label}), **found}
