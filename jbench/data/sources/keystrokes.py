"""People who type with electrodes on both forearms: emg2qwerty, in the BIDS form that NEMAR serves."""

from __future__ import annotations

import string
from pathlib import Path

from jbench.data.formats import edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

WHOLE = True
DATASETS = (
    Dataset(
        name='Sivakumar2024Emg2qwerty',
        title='Typing with a wristband of 16 electrodes on each arm',
        source=__name__,
        device='emg',
        n_subjects=108,
        n_recordings=1135,
        n_chans=32,
        sfreq=(2000.0,),
        event_types=('Keystroke',),
        licence='CC-BY-NC-SA-4.0',
        citation='Sivakumar et al. (2024), NeurIPS 37, 91373-91389',
        host='nemar.org, nm000104',
        layout='sub-<N>/ses-<N>/emg/sub-<N>_ses-<N>_task-typing_emg.bdf with ..._task-typing_events.tsv beside it',
        download=Download(url='nemar:nm000104/latest'),
        aliases=('emg2qwerty', 'nm000104'),
    ),
)
# the keys that the publication counts; others (arrows, tab, control) are left out
KEYS = {*string.ascii_letters, *string.digits, *string.punctuation}
KEYS |= {'Key.backspace', 'Key.enter', 'Key.space', 'Key.shift'}
MICRO = 1e-6  # V; what the numbers are where the header names no unit (its range, 6.6 mV, is that of the amplifier)


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a recording, by subject and session; its `recording_index` counts them from 0."""
    found = sorted(root.glob('sub-*/ses-*/emg/*_task-typing_emg.bdf'))
    refs = []
    for index, path in enumerate(found):
        subject, session = (folder.partition('-')[2] for folder in path.relative_to(root).parts[:2])
        files = (str(path), str(path.with_name(path.name.removesuffix('emg.bdf') + 'events.tsv')))
        refs.append(RecordingRef(dataset.name, subject, session, '0', files, (('recording_index', str(index)),)))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """32 channels in volts, EMG0 to EMG15 of the left arm. Events: `Keystroke` with the key as its `label`.

    Keys that were pressed after the signal broke off stand on its last sample.
    """
    import mne
    import numpy as np

    path, table = ref.files
    bad = edf.check_edf(path)
    if bad:
        return bad
    keys = _keys(Path(table))
    if isinstance(keys, Finding):
        return keys
    raw = mne.io.read_raw_bdf(path)
    names = [c for c in raw.ch_names if c.startswith('EMG')]
    raw.pick(names).set_channel_types(dict.fromkeys(names, 'emg')).set_annotations(None)
    if not any(unit.endswith('V') for unit in edf.units(path)):
        raw.load_data().apply_function(lambda x: x * MICRO, picks='all')
    onset, duration, label = zip(*keys, strict=True)
    events = {'onset': np.array(onset), 'duration': np.array(duration), 'label': np.array(label)}
    return Recording(raw, events | {'type': np.full(len(keys), 'Keystroke')})


def _keys(path: Path) -> list[tuple[float, float, str]] | Finding:
    """Onset, duration (s) and name of each key that counts. The names of keys may be quotation marks."""
    found, expected, remedy = [], 'onset, duration, value and key of each', 'fetch the table again'
    try:
        lines = enumerate(path.read_text(encoding='utf-8').split('\n'), 1)
        (_, head), *rows = [(number, line.split('\t')) for number, line in lines if line]
        wanted = [head.index(name) for name in ('onset', 'duration', 'value', 'key')]
    except (OSError, ValueError):
        rows = []
    for number, row in rows:
        if len(row) <= max(wanted):
            fault = f'line {number} of {len(row)} values under {len(head)} columns'
            return Finding(str(path), 'each line must have all columns', fault, expected, remedy)
        onset, duration, value, key = (row[k].strip() for k in wanted)
        if value.startswith('keystroke_') and key in KEYS:
            try:
                found.append((float(onset), 0.0 if duration in ('', 'n/a') else float(duration), key))
            except ValueError as error:
                fault = f'line {number}: {error}'
                return Finding(str(path), 'times of keys must be numbers', fault, 's from the start', remedy)
    if found:
        return found
    rule, fault = 'a table of keystrokes must lie beside the recording', 'none that can be read'
    return Finding(str(path), rule, fault, expected, remedy)
