"""What each field trusts: the lines of the table of models that are called `baselines`."""

from __future__ import annotations

from jbench.spec.model import CLASSES, ONE_ANSWER, OVER_TIME, ModelSpec


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
        version=2,
        title=title,
        family='baselines',
        kind='estimator',
        target=f'jbench.models.baselines.{module}:{name}',
        targets=targets,
        paradigms=paradigms,
        citation=citation,
    )


MODELS = (
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
        'ssvep',
    ),
    _classical(
        'trca',
        'Ensemble task-related component analysis',
        'Nakanishi et al. (2018), IEEE Trans. Biomed. Eng. 65, 104-112',
        CLASSES,
        ('ssvep', 'cvep'),
        'ssvep',
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
        version=2,
        title='Most frequent class',
        family='baselines',
        kind='estimator',
        target='jbench.models.baselines.estimator:dummy',
        citation='NeuralBench',
    ),
    ModelSpec(
        name='chance',
        title='Untrained EEGNet',
        family='baselines',
        target='jbench.models.classic.eegnet:eegnet',
        least_times=27,
        citation='NeuralBench',
        targets=ONE_ANSWER,
        trained=False,
        published=(('reference_init', True),),
        paradigms=OVER_TIME,
    ),
)
