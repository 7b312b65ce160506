"""People who type: EEG, MEG and surface EMG."""

from __future__ import annotations

from jbench.spec import Dataset

DATASETS = (
    Dataset(
        name='Levy2026NoninvasiveEeg',
        title='Sentences typed from memory, 61 electrodes',
        source=None,
        n_subjects=20,
        n_recordings=62,
        n_chans=61,
        sfreq=(1000.0,),
        seconds=996.0,
        event_types=('Keystroke', 'Sentence', 'Word'),
        licence='CC-BY-NC-4.0',
        citation='Lévy et al. (2026)',
        host='huggingface.co/datasets/bcbl190626/SpanishBCBL',
        layout='as its host serves it',
        aliases=('levy2026eeg',),
    ),
    Dataset(
        name='Levy2026NoninvasiveMeg',
        title='Sentences typed from memory, MEG',
        source=None,
        device='meg',
        n_subjects=24,
        n_recordings=84,
        n_chans=306,
        sfreq=(2048.0,),
        seconds=739.0,
        event_types=('Keystroke', 'Sentence', 'Word'),
        licence='CC-BY-NC-4.0',
        citation='Lévy et al. (2026)',
        host='huggingface.co/datasets/bcbl190626/SpanishBCBL',
        layout='as its host serves it',
        aliases=('levy2026meg',),
    ),
    Dataset(
        name='Sivakumar2024Emg2qwerty',
        title='Typing with a wristband of 16 electrodes on each arm',
        source=None,
        device='emg',
        n_subjects=108,
        n_recordings=1136,
        n_chans=32,
        sfreq=(2000.0,),
        event_types=('Keystroke',),
        licence='not stated',
        citation='Sivakumar et al. (2024), NeurIPS 37, 91373-91389',
        host='nemar.org, nm000104',
        layout='as its host serves it',
        aliases=('emg2qwerty', 'nm000104'),
    ),
)
