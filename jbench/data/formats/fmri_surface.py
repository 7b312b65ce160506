"""Functional MRI on the surface of the cortex: runs as fMRIPrep or deepprep leave them, and BIDS tables of pictures.

A run has 20 484 channels, the vertices of both hemispheres of fsaverage5 (the left ones first), one sample a volume.
Volumes are masked by the brain, and projected between the white and the pial surface by nilearn. Of a run on a finer
fsaverage the first 10 242 vertices of each hemisphere are kept, which are those of fsaverage5. Linear trends are
removed; what is not finite is 0. The rate is that of the publication, since headers of such files may be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jbench.data.formats.bids import entities, table
from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy as np

N_VERTICES = 10242  # of a hemisphere of fsaverage5
RADIUS = 3.0  # mm around a point of the surface
AMPLITUDE = (1e-6, 1e6)  # scanner units: any, where it is a recording at all
HEMISPHERES = ('L', 'R')
Row = dict[str, str]  # of a table of events
Shown = Callable[[Row], tuple[str, str] | None]  # the picture of a row and its part (train, test); None: no picture


class Layout(NamedTuple):
    """Where the runs of a data set lie."""

    raw: str  # folder of the BIDS tree with the tables of events, below that of the data set
    derived: str  # folder of what the preparation made of it
    task: str
    space: str  # fsaverage (surface), or that of volumes


def recordings(name: str, root: Path, layout: Layout, more: tuple[Path, ...] = ()) -> list[RecordingRef]:
    """One reference a prepared run with a table of events, by subject, session and run; from names alone.

    Its files are the run (of a surface, its left hemisphere), the mask (the right hemisphere), the table, and `more`.
    """
    tables = {p.name: p for p in (root / layout.raw).glob('sub-*/ses-*/func/*_events.tsv')}
    surface = layout.space.startswith('fsaverage')
    refs = []
    for path in sorted((root / layout.derived).rglob(f'*_task-{layout.task}_*_bold*'), key=lambda p: p.name):
        own, (stem, _, suffix) = entities(path.name), path.name.partition('.')
        first = own.get('hemi') == 'L' if surface else own.get('desc') == 'preproc'
        if not first or own.get('space') != layout.space or suffix not in ('func.gii', 'gii', 'nii.gz'):
            continue
        run = '_'.join(f'{k}-{own.get(k, "")}' for k in ('sub', 'ses', 'task', 'run'))
        mask = f'{stem.removesuffix("preproc_bold")}brain_mask.nii.gz'
        beside = path.name.replace('hemi-L', 'hemi-R') if surface else mask
        table = tables.get(f'{run}_events.tsv')
        if table is not None:
            files = (path, path.with_name(beside), table, *more)
            refs.append(RecordingRef(name, own['sub'], own['ses'], own['run'], tuple(map(str, files))))
    return refs


def read(ref: RecordingRef, seconds: float, shown: Shown) -> Recording | Finding:
    """A run in scanner units, and `Image` events with `filepath` and `split`.

    Args:
        ref: from `recordings`.
        seconds: between volumes.
        shown: the picture of each row of the table of events.

    Raises: MissingExtraError.
    """
    import mne
    import numpy as np
    from scipy.signal import detrend

    for path in ref.files[:2]:
        bad = _absent(path) or (check_file(path, (b'\x1f\x8b',)) if path.endswith('.gz') else None)
        if bad:
            return bad
    for package in ('nibabel', 'nilearn'):
        if find_spec(package) is None:
            raise MissingExtraError(package, 'fmri', 'reading functional MRI')
    try:
        columns = table(Path(ref.files[2]))
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
        events = [(float(row['onset']), float(row['duration']), *what) for row in rows if (what := shown(row))]
    except (KeyError, ValueError, OSError) as error:
        rule, found = 'each row of the table must tell what was shown', f'a row without {error}'
        return Finding(ref.files[2], rule, found, 'onset, duration and a picture', 'use the original table')
    x = (_surface if 'hemi-L' in Path(ref.files[0]).name else _projected)(*ref.files[:2])
    if isinstance(x, Finding):
        return x
    x = detrend(np.nan_to_num(x, copy=False, nan=0.0, posinf=0.0, neginf=0.0).astype(float))
    onset, duration, files, parts = zip(*events, strict=True) if events else ((), (), (), ())
    info = mne.create_info([f'{h}{k:05d}' for h in HEMISPHERES for k in range(N_VERTICES)], 1 / seconds, 'misc')
    return Recording(
        mne.io.RawArray(x, info),
        {
            'onset': np.array(onset, float),
            'duration': np.array(duration, float),
            'type': np.full(len(onset), 'Image'),
            'filepath': np.array(files, str),
            'split': np.array(parts, str),
        },
    )


def _absent(path: str) -> Finding | None:
    """Where a file is not there: a link of DataLad whose content was not fetched, or a run whose half is missing."""
    if Path(path).exists():
        return None
    return Finding(path, 'the file must be there', 'nothing', 'a file beside the run', 'fetch it, or prepare it again')


def _projected(bold: str, mask: str) -> np.ndarray | Finding:
    """Volumes [x, y, z, T] of the brain on the surface: [2 * N_VERTICES, T]."""
    import nibabel.nifti1
    import numpy as np
    from nilearn.datasets import fetch_surf_fsaverage
    from nilearn.surface import vol_to_surf

    image, brain = nibabel.nifti1.load(bold), nibabel.nifti1.load(mask)
    if len(image.shape) != 4 or brain.shape != image.shape[:3]:
        found, expected = f'volumes {image.shape}, mask {brain.shape}', 'a mask of the shape of each volume'
        return Finding(bold, 'volumes and mask must fit', found, expected, 'prepare the run again')
    x = np.asarray(image.dataobj, np.float32) * (np.asarray(brain.dataobj) > 0)[..., None]
    masked, mesh = nibabel.nifti1.Nifti1Image(x, image.affine), fetch_surf_fsaverage('fsaverage5')  # comes with nilearn
    sides = (
        vol_to_surf(masked, mesh[f'pial_{side}'], radius=RADIUS, inner_mesh=mesh[f'white_{side}'])
        for side in ('left', 'right')
    )
    return np.concatenate([side.astype(np.float32) for side in sides])


def _surface(left: str, right: str) -> np.ndarray | Finding:
    """The vertices of fsaverage5 of both hemispheres: [2 * N_VERTICES, T]."""
    import nibabel
    import numpy as np

    sides = []
    for path in (left, right):
        image: Any = nibabel.load(path)
        if hasattr(image, 'darrays'):
            x = np.stack([a.data for a in image.darrays], axis=-1)
        else:
            x = np.asarray(image.dataobj, np.float32).squeeze()
        sides.append(x)
    shapes = [s.shape for s in sides]
    if shapes[0] != shapes[1] or len(shapes[0]) != 2 or shapes[0][0] < N_VERTICES:
        expected = f'two of one shape, of at least {N_VERTICES} vertices'
        return Finding(
            left, 'both hemispheres must fit', f'{shapes[0]} and {shapes[1]}', expected, 'prepare the run again'
        )
    return np.concatenate([s[:N_VERTICES] for s in sides]).astype(np.float32)
