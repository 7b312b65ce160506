"""Benchmarks whose data are small and public: they run where the files lie (docs/alignment.md says which)."""

from __future__ import annotations

import itertools
from typing import Any

from jbench.alignment.benchmarks import citations
from jbench.alignment.data import EXPERIMENTS
from jbench.spec.benchmark import Benchmark

SIXTEEN = tuple(
    'airplane bear bicycle bird boat bottle car cat chair clock dog elephant keyboard knife oven truck'.split()
)
# Marques et al. (2021): study, property, parent; all on V1
MARQUES = (
    ('Cavanaugh2002', 'grating_summation_field', 'V1-receptive_field_size'),
    ('Cavanaugh2002', 'surround_diameter', 'V1-receptive_field_size'),
    ('Cavanaugh2002', 'surround_suppression_index', 'V1-surround_modulation'),
    ('DeValois1982', 'pref_or', 'V1-orientation'),
    ('DeValois1982', 'peak_sf', 'V1-spatial_frequency'),
    ('FreemanZiemba2013', 'texture_modulation_index', 'V1-texture_modulation'),
    ('FreemanZiemba2013', 'abs_texture_modulation_index', 'V1-texture_modulation'),
    ('FreemanZiemba2013', 'texture_selectivity', 'V1-response_selectivity'),
    ('FreemanZiemba2013', 'texture_sparseness', 'V1-response_selectivity'),
    ('FreemanZiemba2013', 'texture_variance_ratio', 'V1-response_selectivity'),
    ('FreemanZiemba2013', 'max_texture', 'V1-response_magnitude'),
    ('FreemanZiemba2013', 'max_noise', 'V1-response_magnitude'),
    ('Ringach2002', 'circular_variance', 'V1-orientation'),
    ('Ringach2002', 'or_bandwidth', 'V1-orientation'),
    ('Ringach2002', 'orth_pref_ratio', 'V1-orientation'),
    ('Ringach2002', 'or_selective', 'V1-orientation'),
    ('Ringach2002', 'cv_bandwidth_ratio', 'V1-orientation'),
    ('Ringach2002', 'opr_cv_diff', 'V1-orientation'),
    ('Ringach2002', 'modulation_ratio', 'V1-response_selectivity'),
    ('Ringach2002', 'max_dc', 'V1-response_magnitude'),
    ('Schiller1976', 'sf_selective', 'V1-spatial_frequency'),
    ('Schiller1976', 'sf_bandwidth', 'V1-spatial_frequency'),
)
DATA = {'pref_or': 'DeValois1982a', 'peak_sf': 'DeValois1982b'}  # where the study has two recordings
_COWLEY: dict[str, Any] = {
    'procedure': 'neural',
    'region': 'V4',
    'visual_degrees': 8.0,  # not published: shown as large as most models see
    'licence': 'GPL-3.0 (of the repository)',
    'citation': citations.COWLEY,
}
_RDM: dict[str, Any] = {
    'procedure': 'rsa',
    'region': 'IT',
    'visual_degrees': 2.9,
    'metric': 'rdm',
    'licence': 'MIT (of the repository)',
}

COWLEY = (
    Benchmark(
        identifier='Cowley2023.V4-pls',
        parent='V4',
        title='macaque V4, 640 images, session 210325 (whose repeats are public: it has a ceiling)',
        data='Cowley2023.210325',
        metric='pls',
        ceiling='internal_consistency',
        **_COWLEY,
    ),
    Benchmark(
        identifier='Cowley2023.V4-ridgecv',
        parent='',  # the same data as the one before: the tree counts them once
        title='as Cowley2023.V4-pls, by ridge regression',
        data='Cowley2023.210325',
        metric='ridgecv',
        ceiling='internal_consistency',
        **_COWLEY,
    ),
    *(
        Benchmark(
            identifier=f'Cowley2023_{session}.V4-pls',
            parent='',  # averages without repeats: no ceiling
            title=f'macaque V4, 1,200 images, session {session}, averages alone: no ceiling',
            data=f'Cowley2023.{session}',
            metric='pls',
            **_COWLEY,
        )
        for session in ('190923', '201025', '210225')
    ),
)
KRIEGESKORTE = (
    Benchmark(
        identifier='Kriegeskorte2008.human_IT-rdm',
        parent='IT',
        title='human IT (fMRI, 4 subjects), 92 objects: dissimilarities',
        data='Kriegeskorte92.human',
        ceiling='rsa_ceiling',
        ceiled='ratio',
        citation=citations.KRIEGESKORTE,
        **_RDM,
    ),
    Benchmark(
        identifier='Kriegeskorte2008.monkey_IT-rdm',
        parent='',
        title='monkey IT (cells, one mean of two monkeys), 92 objects: dissimilarities; no ceiling',
        data='Kriegeskorte92.monkey',
        ceiled='none',
        citation=citations.KRIEGESKORTE,
        **_RDM,
    ),
    Benchmark(
        identifier='Mur2013-rdm',
        parent='behavior_vision',
        title='what 16 people call similar, 92 objects: dissimilarities',
        data='Kriegeskorte92.behaviour',
        ceiling='rsa_ceiling',
        ceiled='ratio',
        citation=citations.MUR,
        **_RDM,
    ),
)
ZHANG = (
    Benchmark(
        identifier='ZhangDesimone2011.IT-rdm_over_time',
        parent='',  # its pictures are not public: features of the objects alone can be compared
        title='macaque IT (132 cells), 7 objects at 3 places, dissimilarities every 50 ms',
        procedure='over_time',
        data='ZhangDesimone7',
        region='IT',
        time_bins=(),
        visual_degrees=8.0,
        metric='rdm',
        ceiled='none',
        licence='GPL-3 (of the package)',
        citation=citations.ZHANG,
    ),
)
HAXBY = (
    Benchmark(
        identifier='Haxby2001.VT-rdm',
        parent='',  # one slice of one person, its pictures not public
        title='human ventral temporal cortex (fMRI, one slice), 8 categories, dissimilarities of each run',
        procedure='rsa',
        data='Haxby2001.blocks',
        per='repetition',
        region='IT',
        time_bins=(),
        visual_degrees=8.0,
        metric='rdm',
        ceiling='rsa_ceiling',
        ceiled='ratio',
        licence='CC BY-SA 3.0',
        citation=citations.HAXBY,
    ),
)
SENTENCES = (
    Benchmark(
        identifier='GeneratedSentences.language-ridge',
        parent='neural_language',
        title='made responses to 60 sentences: for tests of models of language, no recording',
        procedure='neural',
        data='GeneratedSentences',
        region='language',
        visual_degrees=0.0,
        time_bins=(),
        metric='ridge',
        ceiling='internal_consistency',
        simulated=True,
        licence='Apache-2.0',
        citation=citations.JBENCH,
    ),
)
GEIRHOS2021 = tuple(
    Benchmark(
        identifier=f'Geirhos2021{name}-{metric}',
        parent='Geirhos2021' if metric == 'error_consistency' else 'engineering_vision',
        title=f'{name}: '
        + ('errors on the images on which people err' if metric == 'error_consistency' else 'share of right answers'),
        procedure='labels',
        data=f'Geirhos2021.{name}',
        visual_degrees=3.0,
        metric=metric,
        ceiling='error_consistency' if metric == 'error_consistency' else '',
        constant_ceiling=1.0 if metric == 'top1' else None,
        ceiled='ratio',
        labels=SIXTEEN,
        licence='of the trials: MIT (code); of the images: CC-BY-4.0 (cue-conflict, edge, silhouette), MIT (sketch), '
        'terms of ImageNet (the others)',
        citation=citations.GEIRHOS,
    )
    for metric, name in itertools.product(('error_consistency', 'top1'), EXPERIMENTS)
)
MARQUES2020 = tuple(
    Benchmark(
        identifier=f'Marques2020_{study}-{name}',
        parent=parent,
        title=f'V1, {name.replace("_", " ")}: its distribution over neurons',
        procedure='properties',
        data=f'Marques2020.{DATA.get(name, study)}',
        region='V1',
        visual_degrees=8.0 if study == 'FreemanZiemba2013' else 12.0,
        metric='ks_similarity',
        ceiling='ks_similarity',
        ceiled='ratio',
        licence='MIT (of the repository)',
        citation=citations.MARQUES,
    )
    for study, name, parent in MARQUES
)

BENCHMARKS = (*COWLEY, *KRIEGESKORTE, *ZHANG, *HAXBY, *GEIRHOS2021, *MARQUES2020, *SENTENCES)
