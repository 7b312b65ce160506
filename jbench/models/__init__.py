"""The table of models: one line each; the module of a model is imported only when it runs."""

from __future__ import annotations

from jbench.spec import ModelSpec

MODELS = {
    m.name: m
    for m in (
        ModelSpec(
            name='eegnet',
            title='EEGNet',
            family='classic',
            target='jbench.models.eegnet:eegnet',
            n_parameters=1456,
            citation='Lawhern et al. (2018), J. Neural Eng. 15, 056013',
        ),
        ModelSpec(
            name='cov_ts_lr',
            title='Covariance, tangent space, logistic regression',
            family='baselines',
            kind='estimator',
            target='jbench.models.baselines:cov_ts_lr',
            citation='Barachant et al. (2013), Neurocomputing 112, 172-178',
            needs=('sklearn', 'pyriemann'),
            extra='classical',
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
            citation='NeuralBench',
            trained=False,
        ),
    )
}
