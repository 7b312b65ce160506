"""Encoders that were pretrained on many recordings: the lines of the table of models that are called `foundation`."""

from __future__ import annotations

from jbench.spec.model import ONE_ANSWER, SERIES, ModelSpec

# as their authors filtered nothing and scaled each window in the network
UNTOUCHED = (
    ('signal.band', None),
    ('signal.notch', ()),
    ('signal.scaler', 'none'),
    ('signal.baseline', None),
    ('signal.clamp', None),
)
TUH = ('Lopez2017Tuab', 'Hamid2020Tuar', 'Harati2015Tuev', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl')
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
        overrides=(
            ('signal.sfreq', 128.0),
            ('signal.band', (0.5, 40.0)),
            ('signal.notch', ()),
            ('signal.scaler', 'micro'),
            ('signal.clamp', None),
        ),
        n_parameters=2263936,
        least_times=152,
        pretraining=('Lee2019EegMi', 'Lee2019EegErp', 'Lee2019EegSsvep'),
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
        pretraining=TUH,
        citation='Wang et al. (2025), ICLR, arXiv:2412.07236',
    ),
)

# that take any channels whose place is known
FOR_LUNA = (
    ('signal.sfreq', 256.0),
    ('signal.band', (0.1, 75.0)),
    ('signal.notch', (50.0, 60.0)),
    ('signal.scaler', 'none'),
    ('signal.baseline', None),
    ('signal.clamp', None),
)
FOR_REVE = (
    ('signal.sfreq', 200.0),
    ('signal.band', (0.5, 99.5)),
    ('signal.notch', ()),
    ('signal.scaler', 'standard'),
    ('signal.baseline', None),
    ('signal.clamp', 15.0),
)
SEEN_BY_LUNA = ('Harati2015Tuev', 'Detti2020Eeg')  # its authors kept TUAB, TUAR, TUSL and SEED-V out
SEEN_BY_REVE = (
    *('Hamid2020Tuar', 'Veloso2017Tuep', 'Shah2018Tusz', 'VonWeltin2017Tusl', 'Detti2020Eeg', 'Shirazi2024Hbn'),
    *('Barachant2012Robust', 'Cho2017Supporting', 'Faller2012Autocalibration', 'Kalunga2016Online'),
    *('Korczowski2019BrainBi2014A', 'Korczowski2019BrainBi2014B', 'Korczowski2019BrainBi2015A'),
    *('Korczowski2019BrainBi2015B', 'Lee2019EegErp', 'Lee2019EegMi', 'Lee2019EegSsvep', 'Liu2024Eeg'),
    *('Nakanishi2015Comparison', 'Ofner2017Upper', 'Schirrmeister2017Deep', 'Shin2017OpenA', 'Shin2017OpenB'),
    *('Sosulski2019Electroencephalogram', 'Zhou2016Fully', 'Hoffmann2008Efficient', 'Arico2014Influence'),
    *('Khan2022Nmt', 'VanDijk2022Two', 'Gifford2022Large', 'Accou2024Sparrkulee'),
)
PLACED = (
    ModelSpec(
        name='luna_base',
        title='LUNA base',
        family='foundation',
        target='jbench.models.foundation.luna:luna_base',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('positions',),
        overrides=FOR_LUNA,
        n_parameters=6571896,
        least_times=2,
        pretraining=SEEN_BY_LUNA,
        citation='Döner et al. (2025), NeurIPS 38, arXiv:2510.22257',
    ),
    ModelSpec(
        name='luna_large',
        title='LUNA large',
        family='foundation',
        target='jbench.models.foundation.luna:luna_large',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('positions',),
        overrides=FOR_LUNA,
        n_parameters=40448088,
        least_times=2,
        pretraining=SEEN_BY_LUNA,
        citation='Döner et al. (2025), NeurIPS 38, arXiv:2510.22257',
    ),
    ModelSpec(
        name='luna_huge',
        title='LUNA huge',
        family='foundation',
        target='jbench.models.foundation.luna:luna_huge',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('positions',),
        overrides=FOR_LUNA,
        n_parameters=303404216,
        least_times=2,
        pretraining=SEEN_BY_LUNA,
        citation='Döner et al. (2025), NeurIPS 38, arXiv:2510.22257',
    ),
    ModelSpec(
        name='reve_small',
        title='REVE small',
        family='foundation',
        target='jbench.models.foundation.reve:reve_small',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names', 'positions'),
        overrides=FOR_REVE,
        n_parameters=12667392,
        least_times=200,
        pretraining=SEEN_BY_REVE,
        citation='El Ouahidi et al. (2025), NeurIPS 38',
    ),
    ModelSpec(
        name='reve_base',
        title='REVE base',
        family='foundation',
        target='jbench.models.foundation.reve:reve_base',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names', 'positions'),
        overrides=FOR_REVE,
        n_parameters=69189120,
        least_times=200,
        pretraining=SEEN_BY_REVE,
        citation='El Ouahidi et al. (2025), NeurIPS 38',
    ),
    ModelSpec(
        name='reve_large',
        title='REVE large',
        family='foundation',
        target='jbench.models.foundation.reve:reve_large',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        asks=('ch_names', 'positions'),
        overrides=FOR_REVE,
        n_parameters=408388750,
        least_times=200,
        pretraining=SEEN_BY_REVE,
        citation='El Ouahidi et al. (2025), NeurIPS 38',
    ),
)

MODELS = (*ADAPTED, *PLAIN, *PLACED)
