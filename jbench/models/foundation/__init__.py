"""Encoders that were pretrained on many recordings: the lines of the table of models that are called `foundation`.

What each wants of the signal (`overrides`) is what its weights were learnt on. Where they come from stands in
spec/checkpoints.py, what they have seen in spec/pretraining.py.
"""

from __future__ import annotations

from typing import Any

from jbench.spec.model import ONE_ANSWER, SERIES, ModelSpec
from jbench.spec.overrides import Override
from jbench.spec.pretraining import history


def _signal(
    sfreq: float,
    band: tuple[float, float] | None,
    notch: tuple[float, ...] = (),
    *,
    scaler: str = 'none',
    factor: float = 1.0,
    clamp: float | None = None,
) -> tuple[Override, ...]:
    """What weights were learnt on; windows are in volts without a scaler or factor."""
    return (
        ('signal.sfreq', sfreq),
        ('signal.band', band),
        ('signal.notch', notch),
        ('signal.scaler', scaler),
        ('signal.factor', factor),
        ('signal.baseline', None),
        ('signal.clamp', clamp),
        ('recipe.lr', 1e-4),  # of NeuralBench for all of them, on simulations too
    )


def _line(name: str, title: str, n_parameters: int, signal: tuple[Override, ...], **more: Any) -> ModelSpec:
    """A line; its module is called as the first words of `name`, if `of` does not say otherwise."""
    module, seen = more.pop('of', name), history(name)
    return ModelSpec(
        name=name,
        title=title,
        family='foundation',
        target=f'jbench.models.foundation.{module}:{name}',
        targets=ONE_ANSWER,
        paradigms=SERIES,
        n_parameters=n_parameters,
        on_the_fly=ON_THE_FLY.get(name.partition('_')[0], ''),
        overrides=(*signal, *more.pop('recipe', ())),
        pretraining=seen.datasets if seen else (),
        **more,
    )


TENTHS_OF_MILLIVOLTS = 1e4
# EEG-DINO and CodeBrain state rate and unit alone: band and notch are those of CBraMod, whose patches they share
CBRAMOD = _signal(200.0, (0.3, 75.0), (60.0,), factor=TENTHS_OF_MILLIVOLTS)
JEPA = _signal(128.0, (0.5, 40.0), scaler='micro')
STEEGFORMER = _signal(128.0, (0.5, 64.0), scaler='micro', clamp=500.0)
LUNA = _signal(256.0, (0.1, 75.0), (50.0, 60.0))
REVE = _signal(200.0, (0.5, 99.5), scaler='standard', clamp=15.0)
NAMES, PLACED = ('ch_names',), ('ch_names', 'positions')
OF_BENDR = (
    ('recipe.lr', 1e-5),
    ('recipe.weight_decay', 0.05),
    ('recipe.warmup', 0.1),
    ('recipe.grad_clip', 0.5),
)
OF_JEPA = 'Guetschel et al. (2024), 9th Graz BCI Conf.'
OF_DINO = 'Wang et al. (2025), MICCAI'
OF_STEEGFORMER = 'Yang et al. (2026), ICLR, openreview.net/forum?id=5Xwm8e6vbh'
OF_LUNA = 'Döner et al. (2025), NeurIPS 38, arXiv:2510.22257'
OF_REVE = 'El Ouahidi et al. (2025), NeurIPS 38'

ON_THE_FLY = {
    'bendr': 'channels once mixed: a window from -1 to 1 by its least and greatest value, and a channel of its range',
    'biot': 'each channel of a window over the 95 % quantile of its magnitudes, before channels are mixed',
    'eegpt': 'at each moment less the mean of the channels (average reference), before channels are mixed',
    'luna': 'each channel of a window less its mean, over its standard deviation (n - 1)',
    'steegformer': 'each channel of a window less its mean, over its standard deviation (n)',
}  # by the first word of a name

MODELS = (
    _line(
        *('bendr', 'BENDR', 157140974, _signal(256.0, None)),
        asks=NAMES,
        recipe=OF_BENDR,
        citation='Kostas et al. (2021), Front. Hum. Neurosci. 15, 653659',
    ),
    _line(
        *('biot', 'BIOT', 3187102, _signal(200.0, None)),
        asks=NAMES,
        least_times=200,
        citation='Yang et al. (2023), NeurIPS 36, 78240-78260',
    ),
    _line(
        *('labram', 'LaBraM', 5819936, _signal(200.0, (0.1, 75.0), (50.0,), factor=TENTHS_OF_MILLIVOLTS)),
        asks=NAMES,
        citation='Jiang et al. (2024), ICLR, arXiv:2405.18765',
    ),
    _line(
        *('cbramod', 'CBraMod', 4924000, CBRAMOD),
        least_times=200,
        times_multiple=200,
        citation='Wang et al. (2025), ICLR, arXiv:2412.07236',
    ),
    *(
        _line(f'luna_{size}', f'LUNA {size}', n, LUNA, of='luna', asks=PLACED, least_times=2, citation=OF_LUNA)
        for size, n in (('base', 6571896), ('large', 40448088), ('huge', 303404216))
    ),
    *(
        _line(f'reve_{size}', f'REVE {size}', n, REVE, of='reve', asks=PLACED, least_times=200, citation=OF_REVE)
        for size, n in (('small', 12667392), ('base', 69189120), ('large', 408388750))
    ),
    _line('signal_jepa', 'Signal-JEPA', 2263936, JEPA, asks=PLACED, least_times=152, citation=OF_JEPA),
    *(
        _line(
            *(f'signal_jepa_{which}_local', f'Signal-JEPA, {which}-local', 13932, JEPA),
            of='signal_jepa_local',
            least_times=152,
            citation=OF_JEPA,
        )
        for which in ('post', 'pre')
    ),
    *(
        _line(
            *(f'steegformer_{size}', f'STEEGFormer {size}', n, STEEGFORMER),
            of='steegformer',
            asks=NAMES,
            least_times=16,
            citation=OF_STEEGFORMER,
        )
        for size, n in (('small', 25303552), ('base', 85181184), ('large', 302478336))
    ),
    _line(
        *('eegpt', 'EEGPT', 25287605, _signal(256.0, None, factor=1e3)),
        asks=NAMES,
        least_times=64,
        citation='Wang et al. (2024), NeurIPS 37, 39249-39280',
    ),
    *(
        _line(f'eegdino_{size}', f'EEG-DINO {size}', n, CBRAMOD, of='eegdino', asks=NAMES, citation=OF_DINO)
        for size, n in (('small', 4433944), ('medium', 33755456))
    ),
    _line(
        *('codebrain', 'CodeBrain', 13529200, CBRAMOD),
        asks=NAMES,
        least_times=200,
        citation='Ma et al. (2026), ICLR, arXiv:2506.09110',
    ),
    _line(
        *('jbench_tiny', 'jbench tiny', 1408, (('signal.sfreq', 100.0), ('signal.band', (0.5, 45.0)))),
        asks=PLACED,
        least_times=27,
        citation='Lawhern et al. (2018), J. Neural Eng. 15, 056013',
    ),
)
