"""Rest without any events: whether the eyes are open, from the names of the files alone.

Command: python -m jbench.run --task=configs/resting_folder.py --model=cov_ts_lr,dummy --data_dir=DIR
Files lie in DIR/MyEyes2026/ as S01_open.edf and S01_closed.edf. `names` says what their names mean: {subject} is who,
and each other {field} a column that the task may name. '{subject}/{eyes}' is for a folder a person, and '*' stands for
anything. The device names the event that covers a whole recording: `Eeg`, which is cut into pieces.
"""

from jbench.spec import Classes, Dataset, Recipe, SignalSpec, Task, Window

DATASETS = (
    Dataset(
        name='MyEyes2026',
        title='Eyes open and closed, a file each',
        source='jbench.data.sources.folder',
        names='{subject}_{eyes}',
        event_types=(),  # none is needed
        n_subjects=6,
        n_recordings=12,
        n_chans=4,
        sfreq=(100.0, 250.0),  # Hz, every rate that occurs: all are resampled to signal.sfreq
        licence='mine',
        citation='me (2026)',
        host='our laboratory',
        layout='S<NN>_{open,closed}.edf',
    ),
)
TASKS = (
    Task(
        name='my_eyes_by_file',
        category='mine',
        paradigm='rstate',
        title='Whether the eyes are open',
        datasets=('MyEyes2026',),
        window=Window(trigger='Eeg', duration=2.0, stride=2.0),
        target=Classes(field='eyes'),
        signal=SignalSpec(sfreq=100.0, band=(1.0, 40.0)),
        recipe=Recipe(class_weights=True),
    ),
)
