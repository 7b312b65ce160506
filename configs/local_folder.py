"""A task of one's own on a folder of one's own, without any code: closed or open eyes, from files and their events.

Command: python -m jbench.run --task=configs/local_folder.py --model=cov_ts_lr,dummy --data_dir=DIR
Copy this file and say what you have. Files lie in DIR/MyRest2026/, as BIDS, or as `<subject>_<anything>.fif` (.edf,
.bdf, .set, .vhdr) with a table `<name>_events.tsv` (or .csv) beside each, or annotations in it. A table holds `onset`
and `duration` in seconds, and a column that says what happened: here `trial_type`, with `open` or `closed`.
`--task=configs/local_folder.py:my_eyes` is one task of a file that holds several.
"""

from jbench.spec import Classes, Dataset, Recipe, Task, Window

DATASETS = (
    Dataset(
        name='MyRest2026',
        title='Eyes open and closed',
        source='jbench.data.sources.folder',
        n_subjects=6,  # what should be there: less is called partial
        n_recordings=6,
        n_chans=4,
        sfreq=(100.0,),  # Hz
        licence='mine',
        citation='me (2026)',
        host='our laboratory',
        layout='S<NN>_rest.edf with S<NN>_rest_events.tsv beside it',
    ),
)
TASKS = (
    Task(
        name='my_eyes',
        category='mine',
        paradigm='rstate',
        title='Whether the eyes are open',
        datasets=('MyRest2026',),
        window=Window(duration=2.0, stride=2.0),  # events of type Stimulus, in pieces of two seconds
        target=Classes(field='trial_type'),
        recipe=Recipe(class_weights=True),
    ),
)
