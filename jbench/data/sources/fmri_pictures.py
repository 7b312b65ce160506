"""People who look at pictures in the scanner: BOLD5000, THINGS-fMRI and the Natural Scenes Dataset.

Hosts serve what the scanner gave. What is read is what fMRIPrep or deepprep makes of it, which is left to the user:
volumes in MNI152NLin2009aSym (BOLD5000, THINGS), or surfaces in fsaverage (Natural Scenes).
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from jbench.data.formats import fmri_surface
from jbench.data.formats.fmri_surface import Layout, Row
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

BOLD5000, THINGS, NSD = 'Chang2019Bold5000', 'Hebart2023ThingsBold', 'Allen2022MassiveRaw'
TR = {BOLD5000: 2.0, THINGS: 1.5, NSD: 1.6}  # s between volumes
VOLUMES = 'MNI152NLin2009aSym'
LAYOUTS = {
    BOLD5000: Layout('', 'derivatives', '5000scenes', VOLUMES),
    THINGS: Layout('', 'derivatives', 'things', VOLUMES),
    NSD: Layout('nsddata_rawdata', 'derivatives', 'nsdcore', 'fsaverage'),
}
_PREPARED = (
    f'derivatives/**/<run>_space-{VOLUMES}_desc-{{preproc_bold,brain_mask}}.nii.gz (made by fMRIPrep or deepprep)'
)
REPEATED = Path('BOLD5000_Stimuli/Scene_Stimuli/repeated_stimuli_113_list.txt')  # the pictures of the test part
FOLDERS = {'scenes': 'Scene', 'coco': 'COCO', 'imagenet': 'ImageNet'}  # of BOLD5000's kinds of pictures
DESIGN = Path('nsddata/experiments/nsd/nsd_expdesign.mat')  # of NSD; `sharedix`: pictures that all eight saw, from 1
STIMULI = 'nsddata_stimuli/stimuli/nsd'
DATASETS = (
    Dataset(
        name=BOLD5000,
        title='5000 photographs in fMRI (BOLD5000)',
        source=__name__,
        device='fmri',
        n_subjects=4,
        n_recordings=510,
        n_chans=2 * fmri_surface.N_VERTICES,
        sfreq=(1 / TR[BOLD5000],),
        event_types=('Image',),
        amplitude=fmri_surface.AMPLITUDE,
        licence='CC0-1.0',
        citation='Chang et al. (2019), Scientific Data 6, 49',
        host='openneuro.org/datasets/ds001499',
        layout=f'sub-CSI<N>/ses-<NN>/func/<run>_events.tsv, {_PREPARED}, and BOLD5000_Stimuli/ (of bold5000.org)',
        download=Download(url='openneuro:ds001499', without='derivatives/*'),
        aliases=('BOLD5000',),
    ),
    Dataset(
        name=THINGS,
        title='Pictures of THINGS in fMRI (THINGS-fMRI1)',
        source=__name__,
        device='fmri',
        n_subjects=3,
        n_recordings=359,
        n_chans=2 * fmri_surface.N_VERTICES,
        sfreq=(1 / TR[THINGS],),
        event_types=('Image',),
        amplitude=fmri_surface.AMPLITUDE,
        licence='CC0-1.0',
        citation='Hebart et al. (2023), eLife 12, e82580',
        host='openneuro.org/datasets/ds004192',
        layout=f'sub-<NN>/ses-things<NN>/func/<run>_events.tsv, {_PREPARED}, and images/<concept>/<picture>.jpg '
        '(images_THINGS.zip of osf.io/jum2f; only encoders read them)',
        download=Download(url='openneuro:ds004192', without='derivatives/*'),
        aliases=('THINGS-fMRI1',),
    ),
    Dataset(
        name=NSD,
        title='Photographs in fMRI at 7 T (Natural Scenes Dataset)',
        source=__name__,
        device='fmri',
        n_subjects=8,
        n_recordings=3408,
        n_chans=2 * fmri_surface.N_VERTICES,
        sfreq=(1 / TR[NSD],),
        event_types=('Image',),
        amplitude=fmri_surface.AMPLITUDE,
        licence='custom https://cvnlab.slite.page/p/IB6BSeW_7o/Terms-and-Conditions',
        citation='Allen et al. (2022), Nature Neurosci. 25(1), 116-126',
        host='naturalscenesdataset.org',
        layout=f'nsddata_rawdata/sub-<NN>/ses-nsd<NN>/func/<run>_events.tsv, {DESIGN}, '
        'derivatives/**/<run>_hemi-{L,R}_space-fsaverage_bold.func.gii (made by fMRIPrep or deepprep), and '
        f'{STIMULI}/<k>.png (picture k of nsd_stimuli.hdf5, from 0; only encoders read them)',
        access='agreement: accept the data access agreement of NSD, then fetch by the AWS client',
        aliases=('NSD',),
    ),
)


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """One reference a prepared run, by subject, session and run."""
    more = {BOLD5000: (root / REPEATED,), NSD: (root / DESIGN,)}.get(dataset.name, ())
    return fmri_surface.recordings(dataset.name, root, LAYOUTS[dataset.name], more)


def read(ref: RecordingRef) -> Recording | Finding:
    """The vertices of fsaverage5 in scanner units, without linear trend. Events: `Image` with `filepath` (below the
    folder of the dataset) and `split`: test for the pictures that were shown repeatedly (of NSD, to all)."""
    if ref.dataset == THINGS:
        return fmri_surface.read(ref, TR[THINGS], _of_things)
    extra = ref.files[-1]
    if not Path(extra).exists():
        what = 'which pictures are of the test part must be there'
        return Finding(extra, what, 'no such file', 'the file of the publication', 'fetch it')
    if ref.dataset == BOLD5000:
        repeated = frozenset(filter(None, map(str.strip, Path(extra).read_text().splitlines())))
        if not any(re.fullmatch(r'[^<>]+\.\w+', name) for name in repeated):
            found = next(iter(repeated), 'an empty file')[:60]
            return Finding(extra, 'the list must name the test pictures', found, 'a file name a line', 'fetch it again')
        return fmri_surface.read(ref, TR[BOLD5000], lambda row: _of_bold5000(row, repeated))
    shared = _shared(extra)
    return fmri_surface.read(ref, TR[NSD], lambda row: _of_nsd(row, shared))


def _of_things(row: Row) -> tuple[str, str] | None:
    """`dog/dog_12s.jpg`; catch trials showed no picture of THINGS."""
    if row['trial_type'] == 'catch':
        return None
    name = row['file_path'].rpartition('/')[2]
    return f'images/{name.rpartition("_")[0]}/{name}', 'test' if row['trial_type'] == 'test' else 'train'


def _of_bold5000(row: Row, repeated: frozenset[str]) -> tuple[str, str]:
    """Kinds of repeated pictures are called rep_coco and so on; an early version has no column `stim_file`."""
    name = row.get('stim_file') or row['ImgName']
    folder = f'{REPEATED.parent}/Presented_Stimuli/{FOLDERS[row["ImgType"].removeprefix("rep_")]}'
    return f'{folder}/{name}', 'test' if name in repeated else 'train'


def _of_nsd(row: Row, shared: frozenset[int]) -> tuple[str, str]:
    """`73k_id` counts from 1, the names of the pictures from 0."""
    number = int(row['73k_id'])
    return f'{STIMULI}/{number - 1}.png', 'test' if number in shared else 'train'


@lru_cache(maxsize=1)
def _shared(path: str) -> frozenset[int]:
    """The pictures that all subjects of NSD saw, from 1; kept, since each run asks anew."""
    from scipy.io import loadmat

    return frozenset(int(k) for k in loadmat(path, variable_names=['sharedix'])['sharedix'].ravel())
