"""Sleep spindle excerpts of the DREAMS database: half an hour of one EEG channel of eight patients, 50 Hz.

Read are the matrix of Loza's copy (one channel a patient, C3-A1 or CZ-A1, in microvolts, with the spindles that either
expert marked) and the hypnograms. `excerpt3.edf`, which may lie beside them, is not read: its channel C3-A1 is that of
patient 3, its dimension reads as volts where it is microvolts, and it carries the hypnogram as channels.
"""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

WHOLE = True
DATASETS = (
    Dataset(
        name='DREAMS',
        title='Sleep stages every 5 s and spindles of eight patients, one channel',
        source=__name__,
        n_subjects=8,
        n_recordings=8,
        n_chans=1,
        sfreq=(50.0,),
        seconds=1800.0,
        event_types=('Stage', 'Second'),
        licence='Creative Commons, attribution, non-commercial, no adaptations (text in DREAMS_databases_License.txt)',
        citation='Devuyst et al. (2011), Proc. IEEE EMBC, 1713-1716',
        host='github.com/carlosloza/spindles-HMM and github.com/fronay/eeg_timeseries',
        layout='DREAMS_SleepSpindles.mat, Hypnogram_excerpt<1-8>.txt',
        download=Download(
            url='https://raw.githubusercontent.com/carlosloza/spindles-HMM/'
            '37c0e2c7ad991223556151c586051b283ce5af9b/DatabaseSpindles/',
            registered='dreams_matrix.sha256',
            also=(
                Download(
                    url='https://raw.githubusercontent.com/fronay/eeg_timeseries/'
                    '8ce77126521a85b5b48baccd9ef405321795b76a/data/',
                    registered='dreams_stages.sha256',
                ),
            ),
        ),
        aliases=('dreams',),
    ),
)
SFREQ, EPOCH, STAGES = 50.0, 5.0, 360
LABELS = {5: 'W', 3: 'N1', 2: 'N2', 1: 'N3', 0: 'N3'}  # S3 and S4 are N3
REM = 4


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a patient whose hypnogram is there."""
    matrix = root / 'DREAMS_SleepSpindles.mat'
    hypnograms = {k: root / f'Hypnogram_excerpt{k}.txt' for k in range(1, 9) if matrix.exists()}
    return [
        RecordingRef(dataset.name, str(k), '0', '0', (str(matrix), str(path)))
        for k, path in hypnograms.items()
        if path.exists()
    ]


def read(ref: RecordingRef) -> Recording | Finding:
    """One channel in volts.

    Events: `Stage` each 5 s with `label` W, N1, N2 or N3 (`Rem` where it is REM, which only patient 7 has), and
    `Second` with `label` spindle (half of it or more) or none; seconds with less than half have no event.
    """
    import mne
    import numpy as np
    from scipy.io import loadmat

    bad = check_file(ref.files[0], (b'MATLAB 5.0',))
    if bad:
        return bad
    content = loadmat(ref.files[0], squeeze_me=True)
    row = int(ref.subject) - 1
    x = content['Y'][row] * 1e-6
    marked = content['ExpertLabels'][row]['VisualScoresUnion'] == 2
    head, *lines = Path(ref.files[1]).read_text(encoding='latin-1').split() or ['nothing']
    stages = np.array(lines, int) if all(s.isdecimal() for s in lines) else np.zeros(0, int)
    if head != '[Hypnogram]' or len(stages) != STAGES or set(stages) - {*LABELS, REM}:
        among = f', among them {", ".join(sorted(set(lines))[:8])}' if lines else ''
        found = f'{head} and {len(lines)} values{among}'
        expected = f'[Hypnogram] and {STAGES} values from 0 to 5'
        return Finding(ref.files[1], 'a hypnogram must be whole', found, expected, 'use the original file')
    share = marked[: len(x)].reshape(-1, int(SFREQ)).mean(1)
    seconds = np.flatnonzero((share == 0) | (share >= 0.5))
    return Recording(
        mne.io.RawArray(x[None], mne.create_info(['C-A1'], SFREQ, 'eeg')),
        {
            'onset': np.concatenate([EPOCH * np.arange(STAGES), seconds]),
            'duration': np.repeat([EPOCH, 1.0], [STAGES, len(seconds)]),
            'type': np.concatenate([np.where(stages == REM, 'Rem', 'Stage'), np.full(len(seconds), 'Second')]),
            'label': np.concatenate(
                [[LABELS.get(s, 'R') for s in stages.tolist()], np.where(share[seconds] > 0, 'spindle', 'none')]
            ),
        },
    )
