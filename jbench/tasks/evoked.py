"""Evoked responses: seven tasks of NeuralBench. Version 1 is the published protocol with its faults.

Windows count from the true onset of an event; the published files count from MOABB's shifted onsets.
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import ByBlock, ByGroup, Classes, Predefined, Recipe, SignalSpec, Where, Window
from jbench.tasks import SEEN_LATER, corrected, published

WINDOW = Window(start=-0.2, duration=1.0)
SIGNAL = SignalSpec(baseline=(0.0, 0.2))
SEEN = (('window.start', WINDOW.start + SEEN_LATER),)
WHY_SEEN = 'windows of ERP CORE began 25 ms too early: its screen showed pictures later, and onsets were a sample late'
CHAVARRIAGA = (
    ('window.start', -0.1),
    ('signal.baseline', (0.0, 0.1)),
    ('split', Predefined(field='session', test=('16', '17', '18', '19'), valid_by='session', valid=0.1875)),
)
KUEPER = (
    ('window.start', -0.1),
    ('window.where', (Where(field='code', values=('0', '1')),)),
    ('signal.baseline', (0.0, 0.1)),
    ('split', Predefined(field='run', test=('10', '11', '12'), valid_by='recording', valid=0.15)),
)

AUDIOVISUAL = published(
    name='audiovisual_stimulus',
    category='evoked',
    paradigm='erp',
    title='Whether a tone or a checkerboard came, and from the left or the right',
    datasets=('Mne2013SampleEeg',),
    simulated='SimulatedAudiovisualStimulus',
    window=WINDOW,
    target=Classes(field='label'),
    signal=SIGNAL,
    split=ByGroup(by='_index', stratify='label'),
)
N170 = published(
    name='n170',
    category='evoked',
    paradigm='erp',
    title='Whether a face or a car was shown (N170)',
    datasets=('Kappenman2021ErpN170',),
    simulated='SimulatedN170',
    window=WINDOW,
    target=Classes(field='label'),
    signal=SIGNAL,
    recipe=Recipe(class_weights=True),
)
N2PC = published(
    name='n2pc',
    category='evoked',
    paradigm='erp',
    title='On which side the target was (N2pc)',
    datasets=('Kappenman2021ErpN2pc', 'Reichert2020Impact'),
    simulated='SimulatedN2pc',
    window=WINDOW,
    target=Classes(field='label'),
    signal=SIGNAL,
    recipe=Recipe(class_weights=True),
)
N400 = published(
    name='n400',
    category='evoked',
    paradigm='erp',
    title='Whether a word is unrelated to the one before it (N400)',
    datasets=('Kappenman2021ErpN400',),
    simulated='SimulatedN400',
    window=WINDOW,
    target=Classes(field='label'),
    signal=SIGNAL,
    recipe=Recipe(class_weights=True),
)

OTHERS = (
    published(
        name='ern',
        category='evoked',
        paradigm='erp',
        title='Whether an answer, or what a machine did, was wrong (error-related negativity)',
        datasets=('Kappenman2021ErpErn', 'Chavarriaga2010Learning', 'Kueper2024Eeg'),
        simulated='SimulatedErn',
        window=replace(WINDOW, where=(Where(field='code', values=('1', '2')),)),
        target=Classes(field='label'),
        signal=SIGNAL,
        recipe=Recipe(class_weights=True),
        overrides=(('Chavarriaga2010Learning', CHAVARRIAGA), ('Kueper2024Eeg', KUEPER)),
    ),
    published(
        name='lrp',
        category='evoked',
        paradigm='erp',
        title='Which hand is about to answer (lateralised readiness potential)',
        datasets=('Kappenman2021ErpLrp',),
        simulated='SimulatedLrp',
        window=Window(start=-0.8, duration=1.0),
        target=Classes(field='label'),
        signal=SIGNAL,
        recipe=Recipe(class_weights=True, patience=10),
    ),
    published(
        name='mismatch_negativity',
        category='evoked',
        paradigm='erp',
        title='Whether a tone was the rare one, while nobody listens',
        datasets=('Kappenman2021ErpMmn',),
        simulated='SimulatedMismatchNegativity',
        window=WINDOW,
        target=Classes(field='label'),
        signal=SIGNAL,
        recipe=Recipe(class_weights=True, patience=10, label_smoothing=0.0),
    ),
)

TASKS = (
    AUDIOVISUAL,
    corrected(
        AUDIOVISUAL,
        'windows overlap their neighbours, which were in other parts; channels were scaled by the test part too',
        signal=replace(SIGNAL, scaler='train'),
        split=ByBlock(),
    ),
    N170,
    corrected(N170, WHY_SEEN, overrides=(('Kappenman2021ErpN170', SEEN),)),
    N2PC,
    corrected(N2PC, WHY_SEEN, overrides=(('Kappenman2021ErpN2pc', SEEN),)),
    N400,
    corrected(N400, WHY_SEEN, overrides=(('Kappenman2021ErpN400', SEEN),)),
    *OTHERS,
    *map(corrected, OTHERS),
)
