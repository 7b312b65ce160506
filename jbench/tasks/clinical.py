"""Clinical questions: seven tasks of NeuralBench. Version 1 is the published protocol with its faults."""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.task import ByGroup, Classes, Crop, Labels, Predefined, Recipe, SignalSpec, StateClasses, Window
from jbench.tasks import corrected, published

TILES = Window(trigger='Eeg', duration=5.0, stride=5.0)  # of a recording
BY_DIAGNOSIS = ByGroup(stratify='diagnosis')
BALANCED = Recipe(class_weights=True)
EVAL = Predefined(field='split', test=('eval',))
PARKINSONS = (
    'Fp1 Fz F3 F7 FC5 FC1 C3 T7 TP9 CP5 CP1 P3 P7 O1 Oz O2 P4 P8 TP10 CP6 CP2 Cz C4 T8 FT10 FC6 FC2 F4 F8 Fp2 AF7 AF3 '
    'AFz F1 F5 FT7 FC3 C1 C5 TP7 CP3 P1 P5 PO7 POz PO8 P6 P2 CPz CP4 TP8 C6 C2 FC4 FT8 F6 AF8 AF4 F2 FCz'
)
TUAB = 'Fp1 Fp2 F7 F8 F3 Fz F4 T9 T7 C3 Cz C4 T8 T10 P7 P3 Pz P4 P8 O1 O2'
TUEV = 'Fp1 Fp2 F3 F4 C3 C4 P3 P4 O1 O2 F7 F8 T7 T8 P7 P8 T9 T10 Fz Cz Pz'

DIAGNOSES = (
    published(
        name='dementia_diagnosis',
        category='clinical',
        paradigm='rstate',
        title="Healthy, Alzheimer's disease or frontotemporal dementia",
        datasets=('Miltiadous2023Dice',),
        simulated='SimulatedDementiaDiagnosis',
        window=TILES,
        target=Classes(field='diagnosis'),
        split=BY_DIAGNOSIS,
        recipe=BALANCED,
    ),
    published(
        name='depression_diagnosis',
        category='clinical',
        paradigm='rstate',
        title='Healthy or with a major depressive disorder',
        datasets=('Mumtaz2018Machine',),
        simulated='SimulatedDepressionDiagnosis',
        window=TILES,
        target=Classes(field='diagnosis'),
        split=BY_DIAGNOSIS,
        recipe=BALANCED,
    ),
    published(
        name='parkinsons_diagnosis',
        category='clinical',
        paradigm='rstate',
        title="Healthy or with Parkinson's disease",
        datasets=('Singh2021Timing',),
        simulated='SimulatedParkinsonsDiagnosis',
        window=TILES,
        target=Classes(field='diagnosis'),
        signal=SignalSpec(picks=tuple(PARKINSONS.split())),
        split=BY_DIAGNOSIS,
        recipe=BALANCED,
    ),
    published(
        name='schizophrenia_diagnosis',
        category='clinical',
        paradigm='rstate',
        title='Healthy or with schizophrenia',
        datasets=('Albrecht2019Increased',),
        simulated='SimulatedSchizophreniaDiagnosis',
        window=TILES,
        target=Classes(field='diagnosis'),
        split=BY_DIAGNOSIS,
        recipe=BALANCED,
    ),
)

PATHOLOGY = published(
    name='pathology',
    category='clinical',
    paradigm='rstate',
    title='Whether a physician called the recording normal or abnormal',
    datasets=('Lopez2017Tuab',),
    simulated='SimulatedPathology',
    window=TILES,
    target=Classes(field='label'),
    signal=SignalSpec(picks=tuple(TUAB.split()), crop=Crop(start=0.0, longest=1200.0)),
    split=EVAL,
    recipe=BALANCED,
)

OTHERS = (
    published(
        name='clinical_event',
        category='clinical',
        paradigm='rstate',
        title='Which epileptiform events and artefacts are in three seconds',
        datasets=('Harati2015Tuev',),
        simulated='SimulatedClinicalEvent',
        window=Window(trigger='ClinicalEvent', start=-1.0, duration=3.0, stride=1.0, keep_incomplete=True),
        target=Labels(event='ClinicalEvent'),
        signal=SignalSpec(picks=tuple(TUEV.split())),
        split=EVAL,
        recipe=Recipe(class_weights=True, loss='binary_cross_entropy', label_smoothing=0.0),
        metric='f1_score_macro',
    ),
    published(
        name='seizure',
        category='clinical',
        paradigm='rstate',
        title='Whether five seconds touch a seizure',
        datasets=('Dan2023Bids',),
        simulated='SimulatedSeizure',
        window=TILES,
        target=StateClasses(),
        split=ByGroup(stratify='state'),
        recipe=Recipe(sampler='balanced'),
    ),
)

TASKS = (
    *DIAGNOSES,
    *(corrected(task, 'one diagnosis a subject: scores are of subjects', level='subject') for task in DIAGNOSES),
    PATHOLOGY,
    corrected(
        PATHOLOGY,
        'the first minute was read, which was to be left out; scores are of recordings',
        signal=replace(PATHOLOGY.signal, crop=Crop(longest=1200.0)),
        level='recording',
    ),
    *OTHERS,
    *map(corrected, OTHERS),
)
