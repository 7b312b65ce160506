"""Films that ten people with electrodes in the brain watched (Brain Treebank), with the windows of Neuroprobe.

Beside the files of braintreebank.dev lies the package of Neuroprobe at one commit, `neuroprobe/`: its tables say where
each word is in each recording, and which sessions and contacts count; its labels are drawn as it does
(formats/neuroprobe.py).

Traps of the files: a contact is `electrode_<k>` of the HDF5 file by its place in the list of all labels, those that are
left out later included; labels carry * and #; rows of the films' tables go by their first column; pitch is in tables of
Neuroprobe, by the start of a word in five decimals. The unit of the samples stands nowhere: microvolts, as their size
says. Places are projections onto the cortex of a standard brain, mm.
"""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.recording import Finding, Recording, RecordingRef, with_regions
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import numpy as np

DATASETS = (
    Dataset(
        name='Wang2024Brain',
        title='Films, watched with electrodes in the brain (Brain Treebank, the sessions of Neuroprobe)',
        source=__name__,
        device='ieeg',
        n_subjects=6,
        n_recordings=12,
        n_chans=120,
        sfreq=(2048.0,),
        event_types=('Onset', 'Speech', 'WordGap'),
        amplitude=(1e-6, 2e-3),
        licence='not stated',
        access='agreement: its host states no licence and no sums; ask its authors, and fetch the files by hand',
        citation='Wang et al. (2024), NeurIPS 37, arXiv:2411.08343; Zahorodnii et al. (2025), arXiv:2509.21671',
        host='braintreebank.dev; neuroprobe/ from github.com/insight-neuro/neuroprobe, commit '
        '2d25f3d7b9defc247718a4b327267d918d3a8704 (MIT)',
        layout='sub_<N>_trial<NNN>.h5, electrode_labels/sub_<N>/electrode_labels.json, corrupted_elec.json, '
        'localization/{elec_coords_full.csv,sub_<N>/depth-wm.csv}, transcripts/<film>/features.csv, and neuroprobe/ '
        'with config.py, braintreebank_features_time_alignment/ and pitch_volume_features/; some 130 GB as zip files, '
        'all 26 sessions together',
        doi='10.48550/arXiv.2411.08343',
        revision='neuroprobe 2d25f3d',
        aliases=('BrainTreebank', 'Neuroprobe'),
    ),
)
CONFIG = 'neuroprobe/config.py'
NAMES = {  # in it
    'sessions': 'NEUROPROBE_LITE_SUBJECT_TRIALS',
    'contacts': 'NEUROPROBE_LITE_ELECTRODES',
    'films': 'BRAINTREEBANK_SUBJECT_TRIAL_MOVIE_NAME_MAPPING',
}
UNIT = 1e-6  # V; not stated by the host
AGAIN = 'fetch it again'


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a session of Neuroprobe whose signal is there, with all that is read for it; the film is a field.

    Raises: RequestError where the settings of Neuroprobe are not there, or are others.
    """
    if not any(root.glob('sub_*_trial*.h5')):
        return []
    known, refs = settings(root), []
    for subject, trial in known['sessions']:
        path, film = root / f'sub_{subject}_trial{trial:03}.h5', known['films'][f'btbank{subject}_{trial}']
        if path.exists():
            tables = root / 'neuroprobe' / 'braintreebank_features_time_alignment'
            files = (
                path,
                root / CONFIG,
                root / 'electrode_labels' / f'sub_{subject}' / 'electrode_labels.json',
                root / 'corrupted_elec.json',
                root / 'localization' / 'elec_coords_full.csv',
                root / 'localization' / f'sub_{subject}' / 'depth-wm.csv',
                tables / f'subject{subject}_trial{trial}_words_df.csv',
                tables / f'subject{subject}_trial{trial}_nonverbal_df.csv',
                root / 'transcripts' / film / 'features.csv',
                root / 'neuroprobe' / 'pitch_volume_features' / f'{film}_pitch_volume_features.json',
            )
            refs.append(
                RecordingRef(dataset.name, str(subject), str(trial), '0', tuple(map(str, files)), (('film', film),))
            )
    return refs


def settings(root: Path) -> dict[str, Any]:
    """Sessions, contacts and films, as the settings of Neuroprobe have them: values are read, nothing is run."""
    path = root / CONFIG
    try:
        tree = ast.parse(path.read_text(encoding='utf-8'))
        found = {
            node.targets[0].id: ast.literal_eval(node.value)
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id in NAMES.values()
        }
        return {ours: found[theirs] for ours, theirs in NAMES.items()}
    except (OSError, SyntaxError, ValueError, KeyError) as error:
        raise RequestError(
            f'{path}: {type(error).__name__} {error}; expected settings of Neuroprobe, {", ".join(NAMES.values())}: '
            f'put the folder neuroprobe/ of its repository into {root}'
        ) from None


def read(ref: RecordingRef) -> Recording | Finding:
    """The contacts of Neuroprobe in volts, with places (m) and regions. An event a window of each task (ONSET, SPEECH
    ...: formats/neuroprobe.py), with `label`, `half`, `quarter` and `cross_subject`."""
    import numpy as np

    from jbench.data.formats import hdf5, neuroprobe

    hdf5.require()
    if absent := [path for path in ref.files if not Path(path).exists()]:
        return Finding(absent[0], 'all files of a session must be there', 'no such file', 'the file', AGAIN)
    root, subject = Path(ref.files[0]).parent, ref.subject
    known = settings(root)
    labels = [clean(name) for name in json.loads(Path(ref.files[2]).read_text())]
    corrupted = {clean(name) for name in json.loads(Path(ref.files[3]).read_text())[f'sub_{subject}']}
    contacts = [c for c in known['contacts'][f'btbank{subject}'] if c in labels and c not in corrupted]
    raw = _signal(ref.files[0], contacts, [labels.index(c) for c in contacts], _places(ref, contacts))
    if isinstance(raw, Finding):
        return raw
    words = _words(ref)
    if isinstance(words, Finding):
        return words
    start = words['est_idx'].astype(float).astype(int) / neuroprobe.SFREQ
    silent = [int(float(row['est_idx'])) / neuroprobe.SFREQ for row in _rows(ref.files[7], 'est_idx')]
    events = neuroprobe.events(words, start, np.array(silent))
    trained = (subject, ref.session) == ('2', '4')  # the one session that learns for other people
    part = ['train' if trained else 'valid' if half == '1' else 'test' for half in events['half']]
    part = [p if trained or subject != '2' else '' for p in part]
    columns = {k: np.array(v) for k, v in events.items()} | {'cross_subject': np.array(part)}
    return Recording(with_regions(raw, _regions(ref, contacts)), columns)


def clean(label: str) -> str:
    """The name of a contact without its marks."""
    return label.replace('*', '').replace('#', '')


def _signal(path: str, contacts: list[str], numbers: list[int], places: dict[str, np.ndarray]) -> Any:
    import h5py
    import mne
    import numpy as np

    from jbench.data.formats.hdf5 import Hdf5Raw

    with h5py.File(path, 'r') as file:
        lengths = {file['data'][f'electrode_{k}'].shape[0] for k in numbers}
    if len(lengths) != 1:
        return Finding(path, 'all contacts must be equally long', f'{sorted(lengths)} samples', 'one length', AGAIN)
    info = mne.create_info(contacts, 2048.0, 'seeg')
    for channel in info['chs']:
        channel['loc'][:3] = places.get(channel['ch_name'], np.full(3, np.nan))
    return Hdf5Raw(path, info, [(f'data/electrode_{k}', None) for k in numbers], lengths.pop(), UNIT)


def _rows(path: str, *needed: str) -> list[dict[str, str]]:
    """The rows of a table. Raises: ValueError where it lacks a column."""
    with open(path, newline='', encoding='utf-8') as file:
        table = csv.DictReader(file)
        if lacking := [name for name in needed if name not in (table.fieldnames or ())]:
            raise ValueError(f'{Path(path).name} lacks the column {", ".join(lacking)}')
        return list(table)


def _words(ref: RecordingRef) -> dict[str, np.ndarray] | Finding:
    """The words of a session, with what is known of them: a row of the film's table each, and their pitch."""
    import numpy as np

    from jbench.data.formats import neuroprobe

    words, film = _rows(ref.files[6], 'original_index', 'est_idx', 'start', 'end'), _rows(ref.files[8])
    head = list(film[0]) if film else []
    lacking = [name for name in neuroprobe.NEEDED if name not in (*head, 'enhanced_pitch')]
    if lacking:
        return Finding(
            ref.files[8], 'the table of a film must have its columns', ', '.join(head), ', '.join(lacking), AGAIN
        )
    by_index = {int(float(row[head[0]])): row for row in film}
    pitch = {f'{float(k):.5f}': v for k, v in json.loads(Path(ref.files[9]).read_text()).items()}
    try:
        rows = [{**by_index[int(float(word['original_index']))], **word} for word in words]
        for row in rows:
            row['enhanced_pitch'] = pitch[f'{float(row["start"]):.5f}']['enhanced_pitch']
    except KeyError as error:
        rule = 'each word of a session must be in the tables of its film'
        return Finding(ref.files[6], rule, f'{error} that is not', 'all of them', 'use tables of one release')
    columns = ('est_idx', 'start', 'end', *neuroprobe.NEEDED)
    return {name: np.array([row[name] if row[name] != '' else 'nan' for row in rows]) for name in columns}


def _places(ref: RecordingRef, contacts: list[str]) -> dict[str, np.ndarray]:
    """Places on the cortex of a standard brain, m."""
    import numpy as np

    rows = [r for r in _rows(ref.files[4], 'Subject', 'Electrode', *'XYZ') if r['Subject'] == f'sub_{ref.subject}']
    found = {clean(r['Electrode']): np.array([float(r[axis] or 'nan') for axis in 'XYZ']) / 1000 for r in rows}
    return {c: found[c] for c in contacts if c in found}


def _regions(ref: RecordingRef, contacts: list[str]) -> dict[str, str]:
    """The region of each contact, as the localization has it (Desikan-Killiany)."""
    found = {clean(r['Electrode']): r['DesikanKilliany'] for r in _rows(ref.files[5], 'Electrode', 'DesikanKilliany')}
    return {c: found[c] for c in contacts if found.get(c)}
