"""The table of models: one line each; the module of a model is imported only when it runs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from jbench.models import own
from jbench.spec import PARADIGMS, ModelSpec


def factory(model: ModelSpec) -> Callable[..., Any]:
    """What builds a model, its module imported now; RequestError where one's own file fails."""
    if model.family == 'own':
        return own.load(model)
    module, _, name = model.target.partition(':')
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


CLASSES = ('classes', 'state')
ONE_ANSWER = (*CLASSES, 'labels', 'value', 'embedding')  # a window; keystrokes ask for one a frame
SERIES = tuple(p for p in PARADIGMS if p != 'fmri')  # what a network of electrodes fits: all but volumes
OVER_TIME = tuple(p for p in SERIES if p not in ('', 'fnirs'))


def _classical(
    name: str,
    title: str,
    citation: str,
    targets: tuple[str, ...],
    paradigms: tuple[str, ...],
    module: str = 'classical',
) -> ModelSpec:
    return ModelSpec(
        name=name,
        title=title,
        family='baselines',
        kind='estimator',
        target=f'jbench.models.{module}:{name}',
        targets=targets,
        paradigms=paradigms,
        citation=citation,
        needs=('sklearn', 'pyriemann'),
        extra='classical',
    )


MODELS = {
    m.name: m
    for m in (
        ModelSpec(
            name='eegnet',
            title='EEGNet',
            family='classic',
            target='jbench.models.eegnet:eegnet',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            published=(('polluted', True),),
            n_parameters=1456,
            least_times=27,
            citation='Lawhern et al. (2018), J. Neural Eng. 15, 056013',
        ),
        ModelSpec(
            name='shallow_fbcsp_net',
            title='ShallowFBCSPNet',
            family='classic',
            target='jbench.models.shallow_fbcsp_net:shallow_fbcsp_net',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            n_parameters=36320,
            least_times=99,
            citation='Schirrmeister et al. (2017), Hum. Brain Mapp. 38, 5391-5420',
        ),
        ModelSpec(
            name='deep4net',
            title='Deep4Net',
            family='classic',
            target='jbench.models.deep4net:deep4net',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            n_parameters=146025,
            least_times=10,
            citation='Schirrmeister et al. (2017), Hum. Brain Mapp. 38, 5391-5420',
        ),
        ModelSpec(
            name='eegconformer',
            title='EEG Conformer',
            family='classic',
            target='jbench.models.eegconformer:eegconformer',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            published=(('polluted', True),),
            n_parameters=277440,
            least_times=99,
            citation='Song et al. (2023), IEEE Trans. Neural Syst. Rehabil. Eng. 31, 710-719',
        ),
        ModelSpec(
            name='bdtcn',
            title='BDTCN',
            family='classic',
            target='jbench.models.bdtcn:bdtcn',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            n_parameters=26974,
            least_times=58,
            citation='Gemein et al. (2020), NeuroImage 220, 117021',
        ),
        ModelSpec(
            name='atcnet',
            title='ATCNet',
            family='classic',
            target='jbench.models.atcnet:atcnet',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            n_parameters=28960,
            citation='Altaheri et al. (2022), IEEE Trans. Ind. Inform. 19, 2249-2258',
        ),
        ModelSpec(
            name='ctnet',
            title='CTNet',
            family='classic',
            target='jbench.models.ctnet:ctnet',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            n_parameters=150280,
            least_times=64,
            citation='Zhao et al. (2024), Sci. Rep. 14, 20237',
        ),
        ModelSpec(
            name='simpleconv_time_agg',
            title='SimpleConvTimeAgg',
            family='classic',
            target='jbench.models.simpleconv_time_agg:simpleconv_time_agg',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            positions=True,
            accelerator=True,
            n_parameters=4170867,
            citation='Defossez et al. (2023), Nat. Mach. Intell. 5, 1097-1107',
        ),
        ModelSpec(
            name='eegnex',
            title='EEGNeX',
            family='classic',
            target='jbench.models.eegnex:eegnex',
            targets=ONE_ANSWER,
            paradigms=SERIES,
            least_times=22,
            citation='Chen et al. (2024), Biomed. Signal Process. Control 87, 105475',
        ),
        ModelSpec(
            name='emg2qwerty',
            title='EMG2Qwerty',
            family='classic',
            target='jbench.models.emg2qwerty:emg2qwerty',
            targets=('keystrokes',),
            paradigms=('emg',),
            least_times=2048,
            citation='Sivakumar et al. (2024), NeurIPS 37, 91373-91389',
        ),
        ModelSpec(
            name='fmri_mlp',
            title='FmriMlp',
            family='classic',
            target='jbench.models.fmri_mlp:fmri_mlp',
            targets=ONE_ANSWER,
            paradigms=('fmri',),
            citation='Scotti et al. (2023), arXiv:2305.18274',
        ),
        ModelSpec(
            name='fmri_linear',
            title='FmriLinear',
            family='classic',
            target='jbench.models.fmri_linear:fmri_linear',
            targets=ONE_ANSWER,
            paradigms=('fmri',),
            citation='NeuralBench',
        ),
        _classical(
            'cov_ts_lr',
            'Covariance, tangent space, logistic regression',
            'Barachant et al. (2013), Neurocomputing 112, 172-178',
            (*CLASSES, 'labels'),
            OVER_TIME,
        ),
        _classical(
            'ts_lr',
            'Tangent space, logistic regression',
            'Barachant et al. (2012), IEEE Trans. Biomed. Eng. 59, 920-928',
            CLASSES,
            OVER_TIME,
        ),
        _classical(
            'cov_ts_ridge',
            'Covariance, tangent space, ridge regression',
            'Sabbagh et al. (2020), NeuroImage 222, 116893',
            ('value', 'embedding'),
            OVER_TIME,
        ),
        _classical(
            'cospectra_log_lr',
            'Co-spectra, logistic regression',
            'NeuralBench; Congedo (2013), Habilitation, Univ. Grenoble',
            CLASSES,
            ('ssvep',),
        ),
        _classical(
            'xdawn_ts_lr',
            'xDAWN covariance, tangent space, logistic regression',
            'Barachant (2014), HAL hal-01103344',
            CLASSES,
            ('p300', 'erp'),
        ),
        _classical(
            'xdawn_cov_lr',
            'xDAWN covariance, tangent space, plain logistic regression',
            'Barachant and Congedo (2014), arXiv:1409.0107',
            CLASSES,
            ('p300', 'erp'),
        ),
        _classical(
            'fbcca',
            'Filter-bank canonical correlation',
            'Chen et al. (2015), J. Neural Eng. 12, 046008',
            CLASSES,
            ('ssvep',),
            'flicker',
        ),
        _classical(
            'trca',
            'Ensemble task-related component analysis',
            'Nakanishi et al. (2018), IEEE Trans. Biomed. Eng. 65, 104-112',
            CLASSES,
            ('ssvep', 'cvep'),
            'flicker',
        ),
        _classical(
            'csp_lda',
            'Common spatial patterns, linear discriminant',
            'Ramoser et al. (2000), IEEE Trans. Rehabil. Eng. 8, 441-446',
            CLASSES,
            ('imagery',),
        ),
        _classical(
            'fgmdm',
            'Filtered covariance, nearest geodesic mean',
            'Barachant et al. (2010), LVA/ICA, LNCS 6365, 629-636',
            CLASSES,
            ('imagery',),
        ),
        _classical(
            'xdawn_lda',
            'xDAWN, shrinkage linear discriminant',
            'Rivet et al. (2009), IEEE Trans. Biomed. Eng. 56, 2035-2043',
            CLASSES,
            ('p300', 'erp'),
        ),
        _classical(
            'erp_lr',
            'Means of 50 ms, logistic regression',
            'Blankertz et al. (2011), NeuroImage 56, 814-825',
            CLASSES,
            ('p300', 'erp'),
        ),
        _classical(
            'mean_lr',
            'Means of channels, logistic regression',
            'Haxby et al. (2001), Science 293, 2425-2430',
            CLASSES,
            ('fmri', 'fnirs'),
        ),
        _classical(
            'band_power_lr',
            'Log band powers, logistic regression',
            'Pfurtscheller and Lopes da Silva (1999), Clin. Neurophysiol. 110, 1842-1857',
            CLASSES,
            ('rstate', 'sleep'),
        ),
        _classical(
            'time_domain_lr',
            'Amplitude, slope and zero crossings, logistic regression',
            'Hudgins et al. (1993), IEEE Trans. Biomed. Eng. 40, 82-94',
            CLASSES,
            ('emg',),
        ),
        _classical(
            'ridge',
            'Log band powers, ridge regression',
            'Hoerl and Kennard (1970), Technometrics 12, 55-67',
            ('value', 'embedding'),
            OVER_TIME,
        ),
        ModelSpec(
            name='dummy',
            title='Most frequent class',
            family='baselines',
            kind='estimator',
            target='jbench.models.baselines:dummy',
            citation='NeuralBench',
        ),
        ModelSpec(
            name='chance',
            title='Untrained EEGNet',
            family='baselines',
            target='jbench.models.eegnet:eegnet',
            least_times=27,
            citation='NeuralBench',
            targets=ONE_ANSWER,
            trained=False,
            published=(('polluted', True),),
            paradigms=OVER_TIME,
        ),
    )
}
