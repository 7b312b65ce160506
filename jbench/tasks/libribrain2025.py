"""The PNPL competition of 2025 on LibriBrain: speech detection and phonemes in MEG, one person.

Parts, labels, windows and metric are those of neural-processing-lab/pnpl@1f6b998 and its notebooks (windows of 0.8 s,
one after the other, for speech; of 0.5 s for phonemes; macro F1). The parts are public: the hidden part of the
competition is not here. Of speech, which the competition asks of every sample, the sample in the middle of a window is
asked, as its reference model answers it. Phonemes are single ones; the hidden part averages a hundred.
"""

from __future__ import annotations

from jbench.spec.task import Classes, Predefined, Recipe, SignalSpec, Task, Window

REVISION = 'neural-processing-lab/pnpl@1f6b998'
# z-scored by recording and channel, and clipped at 10, as pnpl does by part; the files are filtered
SIGNAL = SignalSpec(picks=('meg',), sfreq=250.0, band=None, notch=(), scaler='standard', clamp=10.0)
GIVEN = Predefined(field='split', test=('test',), valid_by='')
RECIPE = Recipe(lr=1e-3, max_epochs=15, patience=5, class_weights=True)


def _task(name: str, paradigm: str, title: str, window: Window) -> Task:
    return Task(
        name=name,
        device='meg',
        category='libribrain2025',
        paradigm=paradigm,
        title=title,
        datasets=('Ozdogan2025Libribrain',),
        simulated='SimulatedMegListening',
        window=window,
        target=Classes(field='label'),
        signal=SIGNAL,
        split=GIVEN,
        recipe=RECIPE,
        metric='f1_macro',
        doi='10.48550/arXiv.2506.10165',
        revision=REVISION,
    )


TASKS = (
    _task('speech', 'rstate', 'Whether speech is heard', Window(trigger='Moment', start=-0.4, duration=0.8)),
    _task('phoneme', 'erp', 'Which of 39 phonemes is heard', Window(trigger='Phoneme', duration=0.5)),
)
