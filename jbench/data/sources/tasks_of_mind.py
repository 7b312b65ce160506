"""Workload, errors of a robot, pictures and tones."""

from __future__ import annotations

from jbench.spec import Dataset

DATASETS = (
    Dataset(
        name='Hinss2023Open',
        title='Multitasking at three levels of difficulty, and other tasks (COG-BCI)',
        source=None,
        n_subjects=29,
        n_recordings=696,
        n_chans=62,
        sfreq=(500.0,),
        seconds=612.1,
        licence='CC-BY-4.0',
        citation='Hinss et al. (2023), Scientific Data 10, 85',
        host='zenodo.org/records/7413650',
        layout='as its host serves it',
        aliases=('COG-BCI',),
    ),
    Dataset(
        name='Kueper2024Eeg',
        title='Errors of an orthosis that moves the arm (IntEr-HRI)',
        source=None,
        n_subjects=8,
        n_recordings=82,
        n_chans=64,
        sfreq=(500.0,),
        seconds=322.5,
        event_types=('Action', 'Event', 'Stimulus'),
        licence='CC-BY-4.0',
        citation='Kueper et al. (2024), Front. Hum. Neurosci. 18',
        host='zenodo.org/records/8345429',
        layout='as its host serves it',
        aliases=('IntEr-HRI', 'kueper2024'),
    ),
    Dataset(
        name='Mne2013SampleEeg',
        title='Tones and checkerboards, left and right (sample of MNE-Python)',
        source=None,
        n_subjects=1,
        n_recordings=1,
        n_chans=60,
        sfreq=(150.15,),
        seconds=277.7,
        licence='not stated',
        citation='Gramfort et al. (2013), Front. Neurosci. 7, 267',
        host='mne.tools/stable/documentation/datasets.html#sample',
        layout='as its host serves it',
    ),
)
