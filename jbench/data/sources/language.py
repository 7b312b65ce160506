"""Speech that is heard and text that is read."""

from __future__ import annotations

from jbench.spec import Dataset

DATASETS = (
    Dataset(
        name='Brennan2019Hierarchical',
        title='A chapter of an audiobook, 12 minutes',
        source=None,
        n_subjects=33,
        n_recordings=33,
        n_chans=60,
        sfreq=(500.0,),
        seconds=733.0,
        event_types=('Audio', 'Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Brennan and Hale (2019), PLOS ONE 14(1), e0207741',
        host='deepblue.lib.umich.edu/data/concern/data_sets/bn999738r',
        layout='as its host serves it',
        access='agreement: its host blocks scripts: fetch version 1 by Globus',
    ),
    Dataset(
        name='Hollenstein2018Zuco',
        title='Reading of sentences, with eye tracking (ZuCo)',
        source=None,
        n_subjects=12,
        n_recordings=221,
        n_chans=128,
        sfreq=(500.0,),
        seconds=271.7,
        event_types=('Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Hollenstein et al. (2018), Scientific Data 5',
        host='osf.io/q3zws/',
        layout='as its host serves it',
        aliases=('ZuCo',),
    ),
    Dataset(
        name='Nieuwland2018Large',
        title='Reading of sentences word by word, eight sites',
        source=None,
        n_subjects=295,
        n_recordings=335,
        n_chans=63,
        sfreq=(500.0,),
        seconds=2296.9,
        event_types=('Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Nieuwland et al. (2018), eLife 7, e33468',
        host='osf.io/eyzaq/',
        layout='as its host serves it',
    ),
)
