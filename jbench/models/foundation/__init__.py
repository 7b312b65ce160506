"""Encoders that were pretrained on many recordings: the lines of the table of models that are called `foundation`."""

from __future__ import annotations

import dataclasses

from jbench.spec.model import ONE_ANSWER, SERIES, ModelSpec
from jbench.spec.pretraining import history

# as their authors filtered nothing and scaled each window in the network
UNTOUCHED = (
    ('signal.band', None),
    ('signal.notch', ()),
    ('signal.scaler', 'none'),
    ('signal.baseline', None),
    ('signal.clamp', None),
)
TUH = ('Lopez2017Tuab', 'Hamid2020Tuar', 'Harati2015Tuev', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl')
OF_SIGNAL_JEPA = (
    ('signal.sfreq', 128.0),
    ('signal.band', (0.5, 40.0)),
    ('signal.notch', ()),
    ('signal.scaler', 'micro'),
    ('signal.clamp', None),
)
LEE = ('Lee2019EegMi', 'Lee2019EegErp', 'Lee2019EegSsvep')
ADAPTED = (
    ModelSpec(
        name='bendr',
        title='BENDR',
        family='foundation',
        target='jbench.models.foundation.bendr:bendr',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names',),
        overrides=(
            ('signal.sfreq', 256.0),
            *UNTOUCHED,
            ('recipe.lr', 1e-5),
            ('recipe.weight_decay', 0.05),
            ('recipe.warmup', 0.1),
            ('recipe.grad_clip', 0.5),
        ),
        n_parameters=157140974,
        pretraining=TUH,
        citation='Kostas et al. (2021), Front. Hum. Neurosci. 15, 653659',
    ),
    ModelSpec(
        name='biot',
        title='BIOT',
        family='foundation',
        target='jbench.models.foundation.biot:biot',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names',),
        overrides=(('signal.sfreq', 200.0), *UNTOUCHED),
        n_parameters=3187102,
        least_times=200,
        pretraining=('Dan2023Bids', 'Lopez2017Tuab', 'Harati2015Tuev'),
        citation='Yang et al. (2023), NeurIPS 36, 78240-78260',
    ),
    ModelSpec(
        name='signal_jepa',
        title='Signal-JEPA',
        family='foundation',
        target='jbench.models.foundation.signal_jepa:signal_jepa',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names', 'positions'),
        overrides=OF_SIGNAL_JEPA,
        n_parameters=2263936,
        least_times=152,
        pretraining=LEE,
        citation='Guetschel et al. (2024), 9th Graz BCI Conf.',
    ),
)

# of single channels, which their networks read as they are
TENTHS_OF_MILLIVOLTS = (
    ('signal.scaler', 'none'),
    ('signal.factor', 1e4),
    ('signal.baseline', None),
    ('signal.clamp', None),
)
PLAIN = (
    ModelSpec(
        name='labram',
        title='LaBraM',
        family='foundation',
        target='jbench.models.foundation.labram:labram',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names',),
        overrides=(
            ('signal.sfreq', 200.0),
            ('signal.band', (0.1, 75.0)),
            ('signal.notch', (50.0,)),
            *TENTHS_OF_MILLIVOLTS,
        ),
        n_parameters=5819936,
        # without TUAB and TUEV, which its authors kept out
        pretraining=(
            *('Schalk2004Bci2000', 'Hamid2020Tuar', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl'),
            'Detti2020Eeg',
        ),
        citation='Jiang et al. (2024), ICLR, arXiv:2405.18765',
    ),
    ModelSpec(
        name='cbramod',
        title='CBraMod',
        family='foundation',
        target='jbench.models.foundation.cbramod:cbramod',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        overrides=(
            ('signal.sfreq', 200.0),
            ('signal.band', (0.3, 75.0)),
            ('signal.notch', (60.0,)),
            *TENTHS_OF_MILLIVOLTS,
        ),
        n_parameters=4924000,
        least_times=200,
        times_multiple=200,
        pretraining=TUH,
        citation='Wang et al. (2025), ICLR, arXiv:2412.07236',
    ),
)

# Their weights are of windows in tenths of millivolts at 200 Hz. The reference says no more: band and notch are
# those of CBraMod, whose patches they share.
OF_CBRAMOD = (
    ('signal.sfreq', 200.0),
    ('signal.band', (0.3, 75.0)),
    ('signal.notch', (60.0,)),
    *TENTHS_OF_MILLIVOLTS,
)
OF_TUEG = (
    ModelSpec(
        name='codebrain',
        title='CodeBrain',
        family='foundation',
        target='jbench.models.foundation.codebrain:codebrain',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names',),
        overrides=OF_CBRAMOD,
        n_parameters=13529200,
        least_times=200,
        pretraining=TUH,
        citation='Ma et al. (2026), ICLR, arXiv:2506.09110',
    ),
    *(
        ModelSpec(
            name=f'eegdino_{size}',
            title=f'EEG-DINO ({size})',
            family='foundation',
            target=f'jbench.models.foundation.eegdino:eegdino_{size}',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            asks=('ch_names',),
            overrides=OF_CBRAMOD,
            n_parameters=n,
            pretraining=TUH,
            citation='Wang et al. (2025), MICCAI',
        )
        for size, n in (('small', 4433944), ('medium', 33755456))
    ),
)
LOCAL = tuple(
    ModelSpec(
        name=f'signal_jepa_{which}_local',
        title=f'Signal-JEPA ({which}-local)',
        family='foundation',
        target=f'jbench.models.foundation.signal_jepa_local:signal_jepa_{which}_local',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        overrides=OF_SIGNAL_JEPA,
        n_parameters=13932,
        least_times=152,
        pretraining=LEE,
        citation='Guetschel et al. (2024), 9th Graz BCI Conf.',
    )
    for which in ('post', 'pre')
)

# plain transformers, whose networks standardise or reference each window; a line a size
STANDARDISED = (
    ('signal.sfreq', 128.0),
    ('signal.band', (0.5, 64.0)),
    ('signal.notch', ()),
    ('signal.scaler', 'micro'),
    ('signal.baseline', None),
    ('signal.clamp', 500.0),
)
TRANSFORMERS = (
    *(
        ModelSpec(
            name=f'steegformer_{size}',
            title=f'STEEGFormer {size}',
            family='foundation',
            target=f'jbench.models.foundation.steegformer:steegformer_{size}',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            asks=('ch_names',),
            overrides=STANDARDISED,
            n_parameters=n_parameters,
            least_times=16,
            # BCI Competition IV 2a and 2b with their test sessions. SEED has no name here; Cho2017Supporting (their
            # `eeg_mi_bci`) and Wang2017Benchmark (their `ssvep`) are likely and not verified
            pretraining=('Tangermann2012Review', 'Leeb2007Brain', 'Schirrmeister2017Deep'),
            citation='Yang et al. (2026), ICLR, openreview.net/forum?id=5Xwm8e6vbh',
        )
        for size, n_parameters in (('small', 25303552), ('base', 85181184), ('large', 302478336))
    ),
    ModelSpec(
        name='eegpt',
        title='EEGPT',
        family='foundation',
        target='jbench.models.foundation.eegpt:eegpt',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names',),
        overrides=(('signal.sfreq', 256.0), *UNTOUCHED, ('signal.factor', 1e3)),
        n_parameters=25287605,
        least_times=64,
        # SEED has no name here; Schirrmeister2017Deep is possible and not verified
        pretraining=('Schalk2004Bci2000', 'Wang2017Benchmark'),
        citation='Wang et al. (2024), NeurIPS 37, 39249-39280',
    ),
)

MODELS = tuple(
    dataclasses.replace(m, pretraining=seen.datasets if (seen := history(m.name)) else ())
    for m in (*ADAPTED, *PLAIN, *OF_TUEG, *LOCAL, *TRANSFORMERS)
)
