"""Children and young people at rest and at tasks: the Healthy Brain Network."""

from __future__ import annotations

from jbench.spec import Dataset

DATASETS = (
    Dataset(
        name='Shirazi2024Hbn',
        title='Rest, films and tasks of children and young people, 128 electrodes and the reference',
        source=None,
        n_subjects=3146,
        n_recordings=26615,
        n_chans=129,
        sfreq=(500.0,),
        seconds=172.3,
        event_types=('Eeg',),
        licence='CC-BY-SA-4.0',
        citation='Shirazi et al. (2024), bioRxiv',
        host='openneuro.org/datasets/ds005516/versions/1.0.1/download',
        layout='as its host serves it',
        aliases=('HBN-EEG',),
    ),
)
