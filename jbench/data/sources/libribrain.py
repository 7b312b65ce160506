"""Sherlock Holmes, heard for some 50 hours by one person in MEG (LibriBrain), as the PNPL competition of 2025 has it.

What is read is the serialised form of the authors: Maxwell-filtered, 250 Hz, `data` [306, T] in an HDF5 file a session.
Sessions, their parts and labels are those of neural-processing-lab/pnpl@1f6b998 (its constants and tasks): session 11
of the first book validates, session 12 tests, all others train. Every 0.8 s there is a moment, which is speech unless
a row `silence` covers it or the table has not begun; phonemes are the 39 of ARPAbet without stress, less their place
in the word (`_B`, `_I`, `_E`, `_S`).

Traps of the files: sessions are counted in each book; onsets in the signal are `timemeg`, not those in the sound; names
and types of sensors stand in attributes, or nowhere (then all count as magnetometers, in the order of the file).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.formats import bids
from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne
    import numpy as np

DATASETS = (
    Dataset(
        name='Ozdogan2025Libribrain',
        title='Sherlock Holmes in MEG, one person, some 50 hours (LibriBrain)',
        source=__name__,
        device='meg',
        n_subjects=1,
        n_recordings=86,
        n_chans=306,
        sfreq=(250.0,),
        event_types=('Moment', 'Phoneme'),
        amplitude=(1e-14, 1e-10),  # T, and T/m
        licence='CC-BY-NC-4.0',
        citation='Özdogan et al. (2025), arXiv:2506.02098; Landau et al. (2025), arXiv:2506.10165',
        host='huggingface.co/datasets/pnpl/LibriBrain',
        layout='Sherlock<N>/derivatives/serialised/sub-0_ses-<N>_task-Sherlock<N>_run-<N>_proc-bads+headpos+sss+notch+bp+'
        'ds_meg.h5, Sherlock<N>/derivatives/events/sub-0_ses-<N>_task-Sherlock<N>_run-<N>_events.tsv',
        download=Download(
            url='hf:datasets/pnpl/LibriBrain', files='Sherlock*/derivatives/serialised/*|Sherlock*/derivatives/events/*'
        ),
        doi='10.48550/arXiv.2506.02098',
        revision='pnpl 1f6b998',
        aliases=('LibriBrain',),
    ),
)
BOOKS = {  # sessions of each, all of run 1 but the last two of the first book
    'Sherlock1': tuple(range(1, 13)),
    'Sherlock2': tuple(range(1, 13)),
    'Sherlock3': tuple(range(1, 13)),
    'Sherlock4': (1, 3, 4, 5, 6, 7, 8, 10, 11, 12),
    'Sherlock5': tuple(range(1, 16)),
    'Sherlock6': (1, 2, 4, 5, 6, 7, 8, 9, 11, 12, 13),
    'Sherlock7': tuple(range(1, 15)),
}
PARTS = {('Sherlock1', 11): 'valid', ('Sherlock1', 12): 'test'}
PHONEMES = (
    'aa ae ah ao aw ay b ch d dh eh er ey f g hh ih iy jh k l m n ng ow oy p r s sh t th uh uw v w y z zh'.split()
)
FORM = 'sub-0_ses-{session}_task-{book}_run-{run}'
STEP = 0.8  # s from moment to moment
COLUMNS = ('kind', 'segment', 'timemeg', 'duration')
SFREQ = 250.0


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a session that is there, books in turn. Fields: `book`, and `split`, its part."""
    refs = []
    for book, sessions in BOOKS.items():
        for session in sessions:
            part = PARTS.get((book, session), 'train')
            run = '1' if part == 'train' else '2'
            name, folder = FORM.format(session=session, book=book, run=run), root / book / 'derivatives'
            signal = folder / 'serialised' / f'{name}_proc-bads+headpos+sss+notch+bp+ds_meg.h5'
            if signal.exists():
                files = (str(signal), str(folder / 'events' / f'{name}_events.tsv'))
                fields = (('book', book), ('split', part))
                refs.append(RecordingRef(dataset.name, '0', f'{book}-{session}', run, files, fields))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """306 sensors in T and T/m. Events: `Moment` with `label` speech or silence, `Phoneme` with its name as `label`,
    `Word` with `text`."""
    from jbench.data.formats import hdf5

    hdf5.require()
    bad = check_file(ref.files[0])
    if bad:
        return bad
    try:
        found = bids.table(Path(ref.files[1]))
        lacking = [name for name in COLUMNS if name not in found]
    except (OSError, ValueError) as error:
        found, lacking = {str(error): []}, list(COLUMNS)
    if lacking:
        rule, remedy = 'a table of events must lie beside the recording', 'fetch it again'
        return Finding(ref.files[1], rule, ', '.join(found) or 'none', ', '.join(COLUMNS), remedy)
    raw = _signal(ref.files[0])
    return raw if isinstance(raw, Finding) else Recording(raw, _events(found, raw.n_times))


def _signal(path: str) -> mne.io.BaseRaw | Finding:
    import h5py
    import mne

    from jbench.data.formats.hdf5 import Hdf5Raw

    with h5py.File(path, 'r') as file:
        shape, sfreq = file['data'].shape, float(file.attrs.get('sample_frequency', SFREQ))
        said = {name: _listed(file.attrs.get(f'channel_{name}', '')) for name in ('names', 'types')}
    if len(shape) != 2:
        return Finding(
            path, 'data must be a table of sensors and samples', f'shape {shape}', '[306, T]', 'fetch it again'
        )
    names = said['names'] if len(said['names']) == shape[0] else [f'MEG {k:03d}' for k in range(1, shape[0] + 1)]
    kinds = said['types'] if len(said['types']) == shape[0] else ['mag'] * shape[0]
    return Hdf5Raw(path, mne.create_info(names, sfreq, kinds), [('data', k) for k in range(shape[0])], shape[1])


def _listed(value: Any) -> list[str]:
    """Names as an attribute has them: a text with commas, or an array."""
    if isinstance(value, bytes):
        value = value.decode()
    return [v.strip() for v in value.split(',') if v.strip()] if isinstance(value, str) else [str(v) for v in value]


def _events(found: dict[str, list[str]], n_times: int) -> dict[str, np.ndarray]:
    """Moments, phonemes and words."""
    import numpy as np

    kind, segment = np.array(found['kind']), np.array(found['segment'])
    onset, lasts = (np.array([float(v or 'nan') for v in found[c]]) for c in ('timemeg', 'duration'))
    speech = speaking(kind, onset, lasts)
    step, middle = round(STEP * SFREQ), round(STEP * SFREQ / 2)
    at = np.arange(0, min(len(speech), n_times) - step, step) + middle
    phoneme = np.array([name.partition('_')[0] for name in segment.tolist()])
    spoken = (kind == 'phoneme') & np.isin(phoneme, PHONEMES)
    words = kind == 'word'
    n = (len(at), int(spoken.sum()), int(words.sum()))
    return {
        'onset': np.concatenate([at / SFREQ, onset[spoken], onset[words]]),
        'duration': np.concatenate([np.full(n[0], STEP), lasts[spoken], lasts[words]]),
        'type': np.repeat(['Moment', 'Phoneme', 'Word'], n),
        'label': np.concatenate([np.where(speech[at], 'speech', 'silence'), phoneme[spoken], [''] * n[2]]),
        'text': np.concatenate([[''] * (n[0] + n[1]), segment[words]]),
    }


def speaking(kind: np.ndarray, onset: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    """Whether speech is heard at each sample of 250 Hz, bool [T], up to the end of the last word or silence. As pnpl
    has it: yes, but in silences and before the first row; without rows of silence in words alone.

    Args:
        kind: of each row of the table of events, `word` and `silence` among them.
        onset, lasts: s.
    """
    import numpy as np

    first, n = onset * SFREQ, lasts * SFREQ
    rows = {
        k: [(int(a), int(b)) for a, b in zip(first[kind == k], n[kind == k], strict=True)] for k in ('word', 'silence')
    }
    every = rows['word'] + rows['silence']
    out = np.zeros(max((a + b for a, b in every), default=-1) + 1, bool)
    if rows['silence']:
        out[max(min(a for a, _ in every), 0) :] = True
    for name, value in (('silence', False),) if rows['silence'] else (('word', True),):
        for a, b in rows[name]:
            out[a : a + b] = value
    return out
