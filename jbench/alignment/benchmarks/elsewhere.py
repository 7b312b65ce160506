"""Benchmarks whose recordings their owners keep: declared with all that is published of them, refused with what to do.

Values: Brain-Score vision 2.3.22 (its own tests and registrations). Put a packaged recording where
`jbench.alignment.store` finds it, under the name in `data`, and the line runs.
"""

from __future__ import annotations

from typing import Any

from jbench.alignment.benchmarks import citations
from jbench.spec.benchmark import Benchmark

S3 = 'the recording lies in the object store of Brain-Score, not in any public repository: '
S3 += 'package it (docs/alignment.md, "A recording of your own") under this name'
REQUEST = 'ask its authors, then package it (docs/alignment.md, "A recording of your own") under this name'


def _neural(identifier: str, parent: str, title: str, **fields: Any) -> Benchmark:
    """A regression on averages over repetitions."""
    region = identifier.partition('.')[2].partition('-')[0]
    return Benchmark(
        identifier=identifier,
        parent=parent,
        title=title,
        region=region,
        where=(('region', region),),
        **{'procedure': 'neural', 'metric': 'pls', 'ceiling': 'internal_consistency', 'missing': S3, **fields},
    )


MAJAJ: dict[str, Any] = {
    'version': 4,
    'visual_degrees': 8.0,
    'number_of_trials': 50,
    'stratify': 'object_name',
    'citation': citations.MAJAJ,
}
FREEMAN: dict[str, Any] = {
    'visual_degrees': 4.0,
    'number_of_trials': 20,
    'time_bins': ((50.0, 200.0),),
    'stratify': 'texture_type',
    'citation': citations.FREEMAN,
}
PAPALE: dict[str, Any] = {
    'version': 3,
    'procedure': 'train_test',
    'visual_degrees': 18.0,
    'reliability': 0.3,
    'per': 'subject',
    'data': 'Papale2025.test',
    'train_data': 'Papale2025.train',
    'citation': citations.PAPALE,
    'missing': REQUEST,
}
COGGAN: dict[str, Any] = {
    'procedure': 'rsa',
    'visual_degrees': 9.0,
    'time_bins': ((0.0, 250.0),),
    'metric': 'rsm',
    'ceiling': 'leave_one_out_pearson',
    'ceiled': 'ratio_squared',
    'citation': citations.COGGAN,
}
TENS = tuple((float(t), float(t + 10)) for t in range(70, 250, 10))

BENCHMARKS = (
    *(
        _neural(f'MajajHong2015.{r}-pls', r, f'macaque {r}, objects on scenes', data='MajajHong2015.private', **MAJAJ)
        for r in ('V4', 'IT')
    ),
    *(
        _neural(
            f'MajajHong2015public.{r}-pls', '', f'macaque {r}, the public part', data='MajajHong2015.public', **MAJAJ
        )
        for r in ('V4', 'IT')
    ),
    *(
        _neural(
            f'MajajHong2015public.{r}-temporal-pls',
            '',
            f'macaque {r}, the public part, in bins of 10 ms',
            data='MajajHong2015.public_temporal',
            **{
                **MAJAJ,
                'metric': 'spantime_pls',
                'ceiling': 'internal_consistency_temporal',
                'time_bins': tuple((float(t), float(t + 10)) for t in range(0, 250, 10)),
            },
        )
        for r in ('V4', 'IT')
    ),
    *(
        _neural(
            f'FreemanZiemba2013.{r}-pls',
            r,
            f'macaque {r}, textures',
            version=3,
            data='FreemanZiemba2013.private',
            **FREEMAN,
        )
        for r in ('V1', 'V2')
    ),
    *(
        _neural(
            f'FreemanZiemba2013public.{r}-pls',
            '',
            f'macaque {r}, textures, the public part',
            data='FreemanZiemba2013.public',
            **FREEMAN,
        )
        for r in ('V1', 'V2')
    ),
    Benchmark(
        identifier='Kar2019-ost',
        version=2,
        parent='IT',
        title='when macaque IT solves an object: its order over images',
        procedure='neural',
        data='Kar2019',
        region='IT',
        visual_degrees=8.0,
        number_of_trials=44,
        time_bins=TENS,
        metric='ost',
        constant_ceiling=0.79,
        ceiled='ratio',
        citation=citations.KAR,
        missing=S3,
    ),
    *(
        _neural(f'Papale2025.{r}-{m}', r if m == 'ridgecv' else '', f'macaque {r}, THINGS images', metric=m, **PAPALE)
        for r in ('V1', 'V4', 'IT')
        for m in ('ridge', 'ridgecv')
    ),
    *(
        Benchmark(
            identifier=f'tong.Coggan2024_fMRI.{r}-rdm',
            parent=r,
            title=f'human {r}, occluded objects: similarities',
            data='Coggan2024_fMRI',
            region=r,
            where=(('region', r),),
            missing=S3,
            **COGGAN,
        )
        for r in ('V1', 'V2', 'V4', 'IT')
    ),
    Benchmark(
        identifier='Bracci2019.anteriorVTC-rdm',
        parent='IT',
        title='human anterior VTC, animals and things that look like them: dissimilarities',
        procedure='rsa',
        data='Bracci2019',
        region='IT',
        where=(('region', 'anteriorVTC'),),
        visual_degrees=8.0,
        metric='rdm',
        ceiling='leave_one_out',
        ceiled='ratio',
        citation=citations.BRACCI,
        missing=S3,
    ),
    *(
        Benchmark(
            identifier=f'Rajalingham2018{part}-i2n',
            version=2,
            parent='' if part else 'behavior_vision',
            title='which objects people take for which, image by image',
            procedure='choices',
            data=f'Rajalingham2018.{part or "private"}',
            train_data='Rajalingham2018.fitting',
            visual_degrees=8.0,
            number_of_trials=2,
            metric='i2n',
            ceiling='i2n',
            ceiled='ratio_root',
            citation=citations.RAJALINGHAM,
            missing=S3,
        )
        for part in ('', 'public')
    ),
    Benchmark(
        identifier='Hebart2023-match',
        parent='behavior_vision',
        title='the odd one out of three objects',
        procedure='odd_one_out',
        data='Hebart2023.triplets',
        visual_degrees=8.0,
        metric='accuracy',
        constant_ceiling=0.6767,
        chance=1 / 3,
        ceiled='above_chance',
        citation=citations.HEBART,
        missing=S3,
    ),
)
