"""Brain-computer interfaces: six tasks of NeuralBench. Version 1 is the published protocol with its faults.

Window starts count from the true onset of an event; the published files count from MOABB's shifted onsets.
"""

from __future__ import annotations

from dataclasses import replace

from jbench.spec.overrides import Override
from jbench.spec.task import ByBlock, ByGroup, Classes, Exclusion, Predefined, Recipe, SignalSpec, Where, Window
from jbench.tasks import SEEN_LATER, corrected, published

CALIBRATION = (
    Where(field='run', values=tuple(f'{k}train' for k in range(1, 10))),
)  # of the spellers of Martinez-Cagigal
THIRD = (Where(field='code', values=('3',)),)  # feet in Wei2022BeetlA, rest in Wei2022BeetlB
BY_TRIAL: tuple[Override, ...] = (('split', ByGroup(by='_index', stratify='code')),)


def _start(seconds: float) -> tuple[Override, ...]:
    return (('window.start', seconds),)


def _held_out(field: str, *test: str, valid_by: str, valid: float = 0.2) -> tuple[Override, ...]:
    return (('split', Predefined(field=field, test=test, valid_by=valid_by, valid=valid)),)


FINAL_TEST = _held_out('run', '1finaltest', valid_by='_index')

MOTOR_IMAGERY = published(
    name='motor_imagery',
    category='bci',
    paradigm='imagery',
    title='Which movement was imagined',
    datasets=(
        'Stieger2021Continuous',
        'Barachant2012Robust',
        'Cho2017Supporting',
        'Dornhege2004Boosting',
        'Dreyer2023Large',
        'Faller2012Autocalibration',
        'GrosseWentrup2009Beamforming',
        'Lee2019EegMi',
        'Leeb2007Brain',
        'Liu2024Eeg',
        'Schalk2004Bci2000',
        'Scherer2012Brain',
        'Schwarz2020Analyzing',
        'Shin2017OpenA',
        'Tangermann2012Review',
        'Wei2022BeetlA',
        'Wei2022BeetlB',
        'Zhou2016Fully',
    ),
    simulated='SimulatedMotorImagery',
    window=Window(duration=4.0),
    recipe=Recipe(class_weights=True),
    overrides=(
        ('Barachant2012Robust', BY_TRIAL),
        ('Dornhege2004Boosting', BY_TRIAL),
        ('Dreyer2023Large', _held_out('subject', *map(str, range(61, 82)), valid_by='subject')),
        ('Leeb2007Brain', _start(3.0)),
        (
            'Schalk2004Bci2000',
            (('window.trigger', 'Action'), ('target', Classes(field='label', prefix='imagery_'))),
        ),
        ('Scherer2012Brain', _start(3.0)),
        ('Schwarz2020Analyzing', _start(-2.0)),
        ('Tangermann2012Review', _start(2.0)),
        ('Wei2022BeetlA', (*FINAL_TEST, ('drop', THIRD))),
        ('Wei2022BeetlB', (*FINAL_TEST, ('drop', THIRD))),
        ('Zhou2016Fully', _held_out('session', '2', valid_by='session', valid=0.5)),
    ),
    exclude=tuple(
        Exclusion(
            'Schalk2004Bci2000',
            s,
            'damaged or at another rate, dropped by the published protocol',
            after_split=True,
        )
        for s in ('S088', 'S092', 'S100')
    ),
)
MOTOR_IMAGERY_2 = {
    'Barachant2012Robust': (*BY_TRIAL, ('signal.scaler', 'train')),
    'Dornhege2004Boosting': (*BY_TRIAL, ('signal.scaler', 'train')),
    'Wei2022BeetlA': (*FINAL_TEST, ('window.where', (replace(THIRD[0], keep=False),))),
    'Wei2022BeetlB': (*FINAL_TEST, ('window.where', (replace(THIRD[0], keep=False),))),
}
P3 = published(
    name='p3',
    category='bci',
    paradigm='p300',
    title='Whether a stimulus was the attended target (oddball P3)',
    datasets=(
        'Schreuder2010New',
        'Acqualagna2013Gaze',
        'Arico2014Influence',
        'Cattan2019Dataset',
        'Guger2009How',
        'Haufe2011Eeg',
        'Hoffmann2008Efficient',
        'Hubner2016Eeg',
        'Hubner2017Learning',
        'Kappenman2021ErpP3',
        'Kojima2024ReplicationA',
        'Kojima2024ReplicationB',
        'Korczowski2019BrainBi2014A',
        'Korczowski2019BrainBi2014B',
        'Korczowski2019BrainBi2015A',
        'Korczowski2019BrainBi2015B',
        'Lee2019EegErp',
        'Riccio2013Attention',
        'Romani2025Brainform',
        'Schaeff2012Exploring',
        'Sosulski2019Electroencephalogram',
        'Treder2011Gaze',
        'Treder2014Decoding',
        'VanVeen2019Building',
    ),
    simulated='SimulatedP3',
    window=Window(start=-0.2, duration=1.0),
    signal=SignalSpec(baseline=(0.0, 0.2)),
    recipe=Recipe(class_weights=True, patience=10),
    overrides=(
        ('Haufe2011Eeg', _start(0.3)),  # the published windows assume an onset shift that these two sets lack
        ('Hoffmann2008Efficient', _held_out('session', '3', valid_by='session', valid=0.334)),
        ('Riccio2013Attention', BY_TRIAL),
        ('Romani2025Brainform', _start(-0.1)),
    ),
)

OTHERS = (
    published(
        name='cvep',
        category='bci',
        paradigm='cvep',
        title='Which code a symbol flickered in (code-modulated visual evoked potential)',
        datasets=(
            'Thielen2021From',
            'CabreraCastillos2023BurstCvep100',
            'CabreraCastillos2023BurstVep100',
            'CabreraCastillos2023BurstVep40',
            'CabreraCastillos2023BurstCvep40',
            'MartinezCagigal2023Dataset',
            'MartinezCagigal2024Dataset',
            'Thielen2015Broad',
        ),
        simulated='SimulatedCvep',
        window=Window(duration=4.0),
        overrides=(
            ('CabreraCastillos2023BurstCvep100', (('window.duration', 2.0),)),
            ('MartinezCagigal2023Dataset', (('window.duration', 1.0), ('drop', CALIBRATION))),
            ('MartinezCagigal2024Dataset', (('window.duration', 1.0), ('drop', CALIBRATION))),
            ('Thielen2015Broad', (('window.duration', 1.0),)),
        ),
    ),
    published(
        name='mental_imagery',
        category='bci',
        paradigm='imagery',
        title='Which mental task was imagined: arithmetic, words, rotation, counting, or rest',
        datasets=('Scherer2015Individually',),
        simulated='SimulatedMentalImagery',
        window=Window(start=3.0, duration=4.0),
        split=Predefined(field='session', test=('1',), valid_by='_index', valid=0.1),
        recipe=Recipe(lr=5e-4, max_epochs=100, patience=15, label_smoothing=0.0),
    ),
    published(
        name='motor_execution',
        category='bci',
        paradigm='imagery',
        title='Which movement was made',
        datasets=('Srisrisawang2024Simultaneous', 'Ofner2017UpperExecution', 'Schirrmeister2017Deep'),
        simulated='SimulatedMotorExecution',
        window=Window(duration=3.0),
        recipe=Recipe(class_weights=True),
    ),
    published(
        name='ssvep',
        category='bci',
        paradigm='ssvep',
        title='Which flicker was looked at (steady-state visual evoked potential)',
        datasets=(
            'Wang2017Benchmark',
            'Kalunga2016Online',
            'Lee2019EegSsvep',
            'Nakanishi2015Comparison',
            'Oikonomou2016ComparativeA',
            'Oikonomou2016ComparativeB',
            'Oikonomou2016ComparativeC',
        ),
        simulated='SimulatedSsvep',
        window=Window(start=0.5, duration=4.0),
        overrides=(
            ('Kalunga2016Online', _start(2.0)),
            ('Lee2019EegSsvep', _start(0.0)),
            ('Nakanishi2015Comparison', _start(0.15)),
            ('Oikonomou2016ComparativeA', _start(1.0)),
            ('Oikonomou2016ComparativeB', _start(1.0)),
            ('Oikonomou2016ComparativeC', _start(1.0)),
        ),
    ),
)

TASKS = (
    MOTOR_IMAGERY,
    corrected(
        MOTOR_IMAGERY,
        'subjects and classes that go are left out before the split; parts that share a recording share no scale',
        overrides=tuple((dict(MOTOR_IMAGERY.overrides) | MOTOR_IMAGERY_2).items()),
        exclude=tuple(replace(e, after_split=False) for e in MOTOR_IMAGERY.exclude),
    ),
    P3,
    corrected(
        P3,
        'windows of three datasets were shifted, parts of a fourth overlap, sessions of a fifth were dealt in reverse',
        overrides=(
            ('Hoffmann2008Efficient', _held_out('session', '3', valid_by='session', valid=0.333)),
            ('Kappenman2021ErpP3', _start(P3.window.start + SEEN_LATER)),
            ('Riccio2013Attention', (('split', ByBlock()), ('signal.scaler', 'train'))),
        ),
    ),
    *OTHERS,
    *map(corrected, OTHERS),
)
