"""Clinical EEG of the Temple University Hospital: artefacts (TUAR), events (TUEV), normal and abnormal (TUAB)."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from jbench.data.formats.edf import check_edf
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset

WHOLE = True
ACCESS = 'agreement: ask Temple University (NEDC) for access to the TUH corpus, then put the tree there by hand'
RATES = (250.0, 256.0, 400.0, 512.0)  # Hz, those of the corpus (Obeid and Picone 2016, Front. Neurosci. 10, 196)
DATASETS = (
    Dataset(
        name='Hamid2020Tuar',
        title='Artefacts marked in clinical EEG (TUAR)',
        source=__name__,
        n_subjects=213,
        n_recordings=310,
        n_chans=23,
        sfreq=RATES,
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        event_types=('Artifact',),
        licence='Custom',
        citation='Hamid et al. (2020), IEEE SPMB, 1-4',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_artifact/',
        layout='edf/<montage>/<subject>_<session>_<token>.edf with <the same>.csv beside it',
        access=ACCESS,
        aliases=('TUAR',),
    ),
    Dataset(
        name='Harati2015Tuev',
        title='Epileptiform discharges and artefacts marked in clinical EEG (TUEV)',
        source=__name__,
        n_subjects=370,
        n_recordings=518,
        n_chans=23,
        sfreq=(250.0,),
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        event_types=('ClinicalEvent',),
        licence='Custom',
        citation='Harati et al. (2015), IEEE SPMB, 1-4',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_events/',
        layout='edf/train/<subject>/<subject>_<token>.edf and edf/eval/<subject>/<kind>_<subject>_<session>.edf with '
        '<the same>.rec beside each',
        access=ACCESS,
        aliases=('TUEV',),
    ),
    Dataset(
        name='Lopez2017Tuab',
        title='Normal and abnormal clinical EEG (TUAB)',
        source=__name__,
        n_subjects=2329,
        n_recordings=2993,
        n_chans=23,
        sfreq=RATES,
        constant=None,  # of the clinic: the recorder runs on while electrodes are off
        event_types=('Eeg',),
        licence='Custom',
        citation='López et al. (2015), IEEE SPMB, 1-5',
        host='isip.piconepress.com/projects/nedc/data/tuh_eeg/tuh_eeg_abnormal/',
        layout='edf/{train,eval}/{abnormal,normal}/01_tcp_ar/<subject>_<session>_<token>.edf',
        access=ACCESS,
        aliases=('TUAB',),
    ),
)
# names of the 10-20 system of old, and near ones, in the 10-05 system; A1 and A2, at the ears, count as T9 and T10
NAMES = {'T1': 'FT9', 'T2': 'FT10', 'T3': 'T7', 'T4': 'T8', 'T5': 'P7', 'T6': 'P8', 'C3P': 'CP3', 'C4P': 'CP4'}
NAMES |= {'A1': 'T9', 'A2': 'T10'}
KINDS = {1: 'spsw', 2: 'gped', 3: 'pled', 4: 'eyem', 5: 'artf', 6: 'bckg'}  # of an event of TUEV
# where the files of a set lie; the folders of TUAB and TUEV tell the part, those of TUAB the label too
PATTERNS = {
    'Hamid2020Tuar': 'edf/**/*.edf',
    'Harati2015Tuev': 'edf/*/*/*.edf',
    'Lopez2017Tuab': 'edf/*/*normal/**/*.edf',
}
Mark = tuple[float, float, str]  # start and stop (s), kind


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a file, by folder and name. Those of TUAB and TUEV have a `split` (eval, train), and those of TUAB
    a `label` (abnormal, normal)."""
    suffix = {'Hamid2020Tuar': '.csv', 'Harati2015Tuev': '.rec'}.get(dataset.name)
    refs = []
    for path in sorted(root.glob(PATTERNS[dataset.name])):
        folders, fields = path.relative_to(root / 'edf').parts, {}
        subject, session, token = (*path.stem.split('_', 2), '', '')[:3]
        if suffix != '.csv':
            fields['split'] = folders[0]
        if suffix is None:
            fields['label'] = folders[1]
        if suffix == '.rec':  # <subject>_<token>, or <kind>_<subject>_<session>_
            subject, session, token = (subject, '', session) if not token else (session, token.strip('_'), subject)
        files = (str(path),) if suffix is None else (str(path), str(path.with_suffix(suffix)))
        refs.append(RecordingRef(dataset.name, subject, session, token, files, tuple(fields.items())))
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """One file in volts: electrodes that the 10-05 system knows are EEG.

    Events have a `state`, one a kind and time, on however many channels it is: `Artifact` (TUAR) or `ClinicalEvent`
    (TUEV). TUAB has none: its label is of the whole.
    """
    import mne
    import numpy as np

    bad = check_edf(ref.files[0])
    if bad:
        return bad
    raw = mne.io.read_raw_edf(ref.files[0])
    tuev = ref.dataset == 'Harati2015Tuev'
    marks: list[Mark] | Finding = []
    if len(ref.files) > 1:
        seconds = raw.n_times / raw.info['sfreq']
        marks = _seconds(ref.files[1]) if tuev else _artefacts(ref.files[1], seconds)
    if isinstance(marks, Finding):
        return marks
    kinds = {c: _kind(c) for c in raw.ch_names}
    names = {c: _electrode(c) if kinds[c] == 'eeg' else c for c in raw.ch_names}
    known = {*mne.channels.make_standard_montage('standard_1005').ch_names}
    raw.set_channel_types(kinds)
    raw.drop_channels([c for c in raw.ch_names if kinds[c] == 'eeg' and names[c].partition('-')[0] not in known])
    raw.rename_channels({c: names[c] for c in raw.ch_names}).set_montage('standard_1005', on_missing='ignore')
    events = {
        'onset': np.array([start for start, _, _ in marks], float),
        'duration': np.array([stop - start for start, stop, _ in marks], float),
        'type': np.full(len(marks), 'ClinicalEvent' if tuev else 'Artifact'),
        'state': np.array([state for _, _, state in marks], dtype='U8'),
    }
    return Recording(raw.set_annotations(None), events)


def _artefacts(path: str, seconds: float) -> list[Mark] | Finding:
    """Each artefact in a table of TUAR, by time; none stops after the recording.

    The table has a line a channel; `eyem_musc` is both at once, `elec` is called elpp.
    """
    wanted, file = ('start_time', 'stop_time', 'label'), Path(path)
    expected, remedy = f'lines with {", ".join(wanted)}', 'fetch the table again'
    try:
        lines = enumerate(file.read_text().splitlines(), 1)
        numbers, rows = zip(*[(n, t) for n, t in lines if t.strip() and not t.startswith('#')], strict=True)
        cells = list(csv.DictReader(rows))
    except (OSError, ValueError, csv.Error):
        cells = []
    if not cells or any(name not in cells[0] for name in wanted):
        rule = 'a table of artefacts must lie beside the recording'
        return Finding(path, rule, 'none that can be read', expected, remedy)
    times = []
    for number, row in zip(numbers[1:], cells, strict=True):
        start, stop, label = (row[name] or '' for name in wanted)
        try:
            times.append((float(start), min(float(stop), seconds), label))
        except ValueError:
            label = ''
        if not label:
            found = f'line {number}: {rows[numbers.index(number)]}'
            return Finding(path, 'each line must tell an artefact', found, expected, remedy)
    return sorted({(a, b, {'elec': 'elpp'}.get(s, s)) for a, b, label in times for s in label.split('_')})


def _seconds(path: str) -> list[Mark] | Finding:
    """Each event in a table of TUEV, by time; as published, one may stop after the recording does.

    The table has a line a channel and second: channel, start, stop (s), and the number of the kind. Lines of one kind
    and channel that touch or overlap, to a tenth of a second, are one event; so are events of several channels that
    start and stop together.
    """
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    file = Path(path)
    try:
        for line in file.read_text().split():
            channel, start, stop, kind = line.split(',')
            span = (round(10 * float(start)), round(10 * float(stop)))
            spans.setdefault((KINDS[int(float(kind))], int(float(channel))), []).append(span)
    except (OSError, KeyError, ValueError):
        spans = {}
    if not spans:
        rule, found = 'a table of events must lie beside the recording', 'none that can be read'
        expected = 'lines of channel, start, stop and a kind from 1 to 6'
        return Finding(path, rule, found, expected, 'fetch the table again')
    marks = {(a / 10, b / 10, kind) for (kind, _), rows in spans.items() for a, b in _joined(rows)}
    return sorted(marks)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of which those that touch or overlap became one, in time order."""
    out: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], stop))
        else:
            out.append((start, stop))
    return out


def _kind(name: str) -> str:
    """The type of a channel: `EEG EKG1-REF` is the heart."""
    kinds = {'EKG': 'ecg', 'EMG': 'emg'}
    return next((kind for text, kind in kinds.items() if text in name), 'eeg' if name.startswith('EEG ') else 'misc')


def _electrode(name: str) -> str:
    """`EEG FP1-REF` and `EEG FP1-LE` are Fp1; `EEG FP1-F7` is a pair, Fp1-F7."""
    found = re.fullmatch('EEG (.+)-(.+)', name)
    if found is None:
        return name
    first, second = (NAMES.get(n, n).replace('FP', 'Fp').replace('Z', 'z') for n in found.groups())
    return first if second in ('REF', 'LE') else f'{first}-{second}'
