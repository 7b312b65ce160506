"""Core datasets of the brain-computer interface tasks, which MOABB serves: facts; their reader is still to come."""

from __future__ import annotations

from jbench.spec import Dataset

EventId = tuple[tuple[str, int], ...]
_LAYOUT = 'the files as MOABB downloads them'
WANG_ID = tuple((f'{8 + k % 8 + 0.2 * (k // 8):g}', k + 1) for k in range(40))
REACHES = tuple(
    f'{d}_{s}_{r}' for d in ('up', 'down', 'left', 'right') for s in ('slow', 'fast') for r in ('near', 'far')
)


def _core(
    name: str, title: str, shape: tuple[int, int, int, float], event_id: EventId, facts: tuple[str, str, str, str]
) -> Dataset:
    """One dataset: (subjects, recordings, channels, Hz), and (licence, citation, host, alias)."""
    licence, citation, host, alias = facts
    return Dataset(
        name=name,
        title=title,
        source=None,
        n_subjects=shape[0],
        n_recordings=shape[1],
        n_chans=shape[2],
        sfreq=(shape[3],),
        event_id=event_id,
        licence=licence,
        citation=citation,
        host=host,
        layout=_LAYOUT,
        aliases=(alias,),
    )


DATASETS = (
    _core(
        'Thielen2021From',
        'Code-modulated visual speller, 20 symbols',
        (30, 150, 8, 512.0),
        tuple((f'symbol_{k}', k) for k in range(20)),
        (
            'CC0-1.0',
            'Thielen et al. (2021), J. Neural Eng. 18, 056007',
            'public.data.ru.nl/dcc/DSC_2018.00122_448_v3',
            'Thielen2021',
        ),
    ),
    _core(
        'Scherer2015Individually',
        'Five mental tasks of people with spinal cord injury or stroke',
        (9, 18, 30, 256.0),
        (('math', 1), ('letter', 2), ('rotation', 3), ('count', 4), ('baseline', 5)),
        (
            'CC-BY-NC-ND-4.0',
            'Scherer et al. (2015), PLoS ONE 10, e0123727',
            'doc.ml.tu-berlin.de/bbci/',
            'BNCI2015_004',
        ),
    ),
    _core(
        'Srisrisawang2024Simultaneous',
        'Reaches in four directions, at two speeds and distances',
        (20, 20, 60, 500.0),
        tuple((r, k + 1) for k, r in enumerate(REACHES)),
        (
            'CC-BY-4.0',
            'Srisrisawang and Mueller-Putz (2024), J. Neural Eng.',
            'lampx.tugraz.at/~bci/database/001-2025/',
            'BNCI2025_001',
        ),
    ),
    _core(
        'Stieger2021Continuous',
        'Continuous control by imagery of hands',
        (62, 598, 60, 1000.0),
        (('right_hand', 1), ('left_hand', 2), ('both_hand', 3), ('rest', 4)),
        (
            'CC-BY-NC-4.0',
            'Stieger et al. (2021), Scientific Data 8, 98',
            'figshare.com/articles/dataset/13123148',
            'Stieger2021',
        ),
    ),
    _core(
        'Schreuder2010New',
        'Auditory oddball from six directions',
        (21, 42, 60, 250.0),
        (('Target', 1), ('NonTarget', 2)),
        ('CC-BY-NC-ND-4.0', 'Schreuder et al. (2010), PLoS ONE 5, e9813', 'doc.ml.tu-berlin.de/bbci/', 'BNCI2015_009'),
    ),
    _core(
        'Wang2017Benchmark',
        'SSVEP speller, 40 frequencies',
        (34, 34, 64, 250.0),
        WANG_ID,
        (
            'CC-BY-4.0',
            'Wang et al. (2017), IEEE Trans. Neural Syst. Rehabil. Eng. 25, 1746-1752',
            'zenodo.org/records/14865172/',
            'Wang2016',
        ),
    ),
)
