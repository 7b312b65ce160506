"""Functional MRI on the surface: the layouts of BOLD5000, THINGS-fMRI and NSD, on tiny runs."""

from __future__ import annotations

from pathlib import Path

import nibabel
import numpy as np
import pytest
from scipy.io import savemat

from jbench import targets
from jbench.data import windows
from jbench.data.discover import find_recordings
from jbench.data.formats import fmri_surface
from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, event_table
from jbench.data.sources import fmri_pictures
from jbench.plan import cells, select

BOLD5000, THINGS, NSD = map(select.find_dataset, ('BOLD5000', 'THINGS-fMRI1', 'NSD'))
N, T = fmri_surface.N_VERTICES, 48
RNG = np.random.default_rng(0)
MM = np.diag([40.0, 40.0, 40.0, 1.0])  # voxels of 4 cm, the first one at the left back of the neck
MM[:3, 3] = -100, -140, -100
VOLUMES = RNG.normal(1000, 10, (6, 7, 5, T)).astype(np.float32)
VOLUMES += 5 * np.arange(T, dtype=np.float32)  # drifts
SPACE = 'space-MNI152NLin2009aSym'


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def volumes(folder: Path, run: str, mask: np.ndarray, n: int = T) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, x in (
        (f'{SPACE}_desc-preproc_bold', VOLUMES[..., :n]),
        (f'{SPACE}_desc-brain_mask', mask.astype(np.uint8)),
    ):
        nibabel.Nifti1Image(x, MM).to_filename(folder / f'{run}_{name}.nii.gz')


def surface(path: Path, x: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = [nibabel.gifti.GiftiDataArray(v.astype(np.float32), datatype='NIFTI_TYPE_FLOAT32') for v in x.T]
    nibabel.gifti.GiftiImage(darrays=arrays).to_filename(path)


@pytest.fixture(scope='module')
def things(tmp_path_factory) -> Path:
    """Run 2 of one session is prepared and has no table; run 3 has a table and is not prepared."""
    data = tmp_path_factory.mktemp('things')
    root, mask = data / THINGS.name, np.ones(VOLUMES.shape[:3])
    mask[:3] = 0  # the left half
    head = 'onset\tduration\ttrial_type\tcategory_nr\texemplar_nr\ttest_image_nr\tresponse_time\tfile_path\n'
    rows = (
        '3.0\t0.5\texp\t205\t12\tn/a\tn/a\tdog/dog_12s.jpg\n'
        '4.5\t0.5\tcatch\t721\t8\tn/a\t0.871\tcatch008.jpg\n'
        '6.0\t0.5\ttest\t110\t13\t22.0\tn/a\ttest_images/ice_cream_14s.jpg\n'
    )
    for run, prepared, told in (('01', True, True), ('02', True, False), ('03', False, True)):
        stem = f'sub-01_ses-things02_task-things_run-{run}'
        if told:
            write(root / 'sub-01/ses-things02/func' / f'{stem}_events.tsv', head + rows)
        if prepared:
            volumes(root / 'derivatives/fmriprep/sub-01/ses-things02/func', stem, mask)
    folder = root / 'derivatives/fmriprep/sub-01/ses-things02/func'
    (folder / f'sub-01_ses-things02_task-things_run-01_{SPACE}_boldref.nii.gz').touch()
    (folder / 'sub-01_ses-things02_task-things_run-01_space-T1w_desc-preproc_bold.nii.gz').touch()
    return data


def test_runs_that_are_prepared_and_have_a_table_are_found(things) -> None:
    (ref,) = find_recordings(THINGS, things)
    assert (ref.subject, ref.session, ref.run) == ('01', 'things02', '01')
    assert [Path(f).exists() for f in ref.files] == [True] * 3 and ref.files[1].endswith('desc-brain_mask.nii.gz')


@pytest.fixture(scope='module')
def run(things) -> Recording:
    (ref,) = find_recordings(THINGS, things)
    got = fmri_pictures.read(ref)
    assert isinstance(got, Recording), got
    return got


@pytest.mark.slow
def test_volumes_come_to_the_surface_without_what_is_masked_or_drifts(run) -> None:
    got = run
    x = got.raw.get_data()
    assert x.shape == (2 * N, T) and set(got.raw.get_channel_types()) == {'misc'}
    assert got.raw.info['sfreq'] == 1 / 1.5 == cells.apply(select.tasks()['fmri/image'][-1], THINGS, ()).signal.sfreq
    assert got.raw.ch_names[0] == 'L00000' and got.raw.ch_names[-1] == 'R10241'
    assert (x[:N].std(1) == 0).mean() > 0.5 and (x[N:].std(1) > 0).mean() > 0.99  # the left half is not in the mask
    time = np.arange(T) - (T - 1) / 2
    assert np.abs(x.mean(1)).max() < 1e-3 and np.abs(x @ time).max() < 1e-1  # no level, no drift
    (flat,) = check_recording.check(got, THINGS, 'x')
    assert flat.level == 'note' and flat.found.endswith('more')


def test_a_vertex_has_the_value_of_the_volume_around_it(things) -> None:
    """By the coordinates of the surface itself: a volume that tells how far right a place is."""
    from nilearn.datasets import fetch_surf_fsaverage
    from nilearn.surface import load_surf_mesh

    (ref,) = find_recordings(THINGS, things)
    place = np.broadcast_to((np.arange(6) * 40.0 - 100)[:, None, None, None], (6, 7, 5, 2)).astype(np.float32)
    brain = Path(ref.files[1]).with_name('all.nii.gz')
    nibabel.Nifti1Image(np.ones((6, 7, 5), np.uint8), MM).to_filename(brain)
    nibabel.Nifti1Image(place, MM).to_filename(brain.with_name('place.nii.gz'))
    x = fmri_surface._projected(str(brain.with_name('place.nii.gz')), str(brain))[:, 0]
    mesh = fetch_surf_fsaverage('fsaverage5')
    for side, part in (('left', x[:N]), ('right', x[N:])):
        wall = [load_surf_mesh(mesh[f'{k}_{side}']).coordinates[:, 0] for k in ('white', 'pial')]
        assert np.abs(part - np.mean(wall, axis=0)).max() < 1.0  # mm


def test_pictures_of_things_and_not_what_was_to_be_caught(run) -> None:
    assert {k: v.tolist() for k, v in run.events.items()} == {
        'onset': [3.0, 6.0],
        'duration': [0.5, 0.5],
        'type': ['Image', 'Image'],
        'filepath': ['images/dog/dog_12s.jpg', 'images/ice_cream/ice_cream_14s.jpg'],
        'split': ['train', 'test'],
    }


@pytest.mark.parametrize('dataset', [BOLD5000, THINGS, NSD], ids=lambda d: d.name)
def test_windows_are_four_volumes_from_two_seconds_after_the_picture(run, things, dataset) -> None:
    task = cells.apply(select.tasks()['fmri/image'][0], dataset, ())
    table = event_table(run, find_recordings(THINGS, things)[0], THINGS)
    rows = windows.triggers(table, task.window, task.target)
    assert [windows.starts(table['onset'][k], table['duration'][k], task.window) for k in rows] == [[5.0], [8.0]]
    assert windows.n_samples(task.window.duration, task.signal.sfreq) == 4
    assert task.signal.sfreq == dataset.sfreq[0]  # exactly, so that nothing is resampled
    name = 'images/ice_cream/ice_cream_14s.jpg'
    assert targets.collect(task.target, table, rows[1], 8.0, task.window.duration) == [name, name]


def test_what_cannot_be_a_run_is_named(things, tmp_path) -> None:
    (ref,) = find_recordings(THINGS, things)
    whole, mask, table = ref.files
    nibabel.Nifti1Image(np.ones((6, 7, 4), np.uint8), MM).to_filename(tmp_path / 'small.nii.gz')
    write(tmp_path / 'events.tsv', 'onset\tduration\ttrial_type\n3.0\t0.5\texp\n')
    write(tmp_path / 'page.nii.gz', '<!DOCTYPE html>')
    for files, said in (
        (
            (whole, str(tmp_path / 'small.nii.gz'), table),
            'volumes and mask must fit: found volumes (6, 7, 5, 48), mask',
        ),
        ((whole, mask, str(tmp_path / 'events.tsv')), "must tell what was shown: found a row without 'file_path'"),
        ((str(tmp_path / 'page.nii.gz'), mask, table), 'a web page'),
        ((whole, str(tmp_path / 'none.nii.gz'), table), 'the file must be there'),
    ):
        got = fmri_pictures.read(ref._replace(files=files))
        assert isinstance(got, Finding) and said in str(got), str(got)


def test_pictures_of_bold5000_and_which_of_them_are_the_test_part(tmp_path) -> None:
    root, stem = tmp_path / BOLD5000.name, 'sub-CSI1_ses-01_task-5000scenes_run-01'
    head = 'onset\tduration\tSubj\tSess\tRun\tTrial\tImgName\tImgType\tStimOn(s)\tStimOff(s)\tResponse\tRT'
    rows = [
        '6.0367\t0.9678\t1\t1\t1\t1\tn01930112_19568.JPEG\timagenet\t6.0367\t7.0045\t2\t3.6309',
        '10.0\t1.0\t1\t1\t1\t2\tcoco_7.jpg\trep_coco\t10.0\t11.0\t2\t1.5',
        '14.0\t1.0\t1\t1\t1\t3\tlivingroom4.jpg\tscenes\t14.0\t15.0\t1\t1.5',
    ]
    folder = root / 'sub-CSI1/ses-01/func'
    write(
        folder / f'{stem}_events.tsv', '\n'.join([f'{head}\tstim_file', *(f'{r}\t{r.split(chr(9))[6]}' for r in rows)])
    )
    volumes(root / 'derivatives/sub-CSI1/ses-01/func', stem, np.ones(VOLUMES.shape[:3]), 2)
    (ref,) = find_recordings(BOLD5000, tmp_path)
    assert (ref.subject, ref.session, ref.run) == ('CSI1', '01', '01')
    assert 'which pictures are of the test part must be there' in str(fmri_pictures.read(ref))
    for text, found in (('\n', 'an empty file'), ('<html>\n', '<html>')):
        write(root / fmri_pictures.REPEATED, text)
        said = str(fmri_pictures.read(ref))
        assert f'list.txt: the list must name the test pictures: found {found}, expected a file name a line' in said
    write(root / fmri_pictures.REPEATED, 'coco_7.jpg \nlivingroom4.jpg\n')  # also where its first showing is no rep_
    stimuli = 'BOLD5000_Stimuli/Scene_Stimuli/Presented_Stimuli'
    got = fmri_pictures.read(ref)
    assert isinstance(got, Recording) and got.raw.info['sfreq'] == 0.5
    assert got.events['filepath'].tolist() == [
        f'{stimuli}/ImageNet/n01930112_19568.JPEG',
        f'{stimuli}/COCO/coco_7.jpg',
        f'{stimuli}/Scene/livingroom4.jpg',
    ]
    assert got.events['split'].tolist() == ['train', 'test', 'test']
    early = {'ImgName': 'livingroom4.jpg', 'ImgType': 'rep_scenes'}  # a version of the set without stim_file
    assert fmri_pictures._of_bold5000(early, frozenset()) == (f'{stimuli}/Scene/livingroom4.jpg', 'train')


@pytest.mark.slow
def test_surfaces_of_nsd_keep_the_vertices_of_fsaverage5(tmp_path) -> None:
    root, stem = tmp_path / NSD.name, 'sub-02_ses-nsd01_task-nsdcore_run-01'
    write(
        root / 'nsddata_rawdata/sub-02/ses-nsd01/func' / f'{stem}_events.tsv',
        'onset\tduration\t73k_id\n0\t3\t46003\n4\t3\t9\n',
    )
    fine = RNG.normal(0, 1, (2, N + 5, T))
    fine[0, 3, 4] = np.nan
    folder = root / 'derivatives/deepprep/bids/sub-02/ses-nsd01/func'
    for hemisphere, x in zip('LR', fine, strict=True):
        surface(folder / f'{stem}_hemi-{hemisphere}_space-fsaverage_bold.func.gii', x)
        surface(folder / f'{stem}_hemi-{hemisphere}_space-fsnative_bold.func.gii', x[:9])
    (root / fmri_pictures.DESIGN).parent.mkdir(parents=True)
    savemat(root / fmri_pictures.DESIGN, {'sharedix': np.array([[46003, 4931]]), 'subjectim': np.zeros((8, 2))})
    (ref,) = find_recordings(NSD, tmp_path)
    got = fmri_pictures.read(ref)
    assert isinstance(got, Recording) and got.raw.info['sfreq'] == 0.625
    from scipy.signal import detrend

    want = detrend(np.nan_to_num(np.concatenate(fine[:, :N]).astype(np.float32)).astype(float))
    np.testing.assert_allclose(got.raw.get_data(), want, atol=1e-6)
    assert got.events['filepath'].tolist() == [f'{fmri_pictures.STIMULI}/{k}.png' for k in (46002, 8)]
    assert got.events['split'].tolist() == ['test', 'train'] and check_recording.check(got, NSD, 'x') == []
    surface(folder / f'{stem}_hemi-R_space-fsaverage_bold.func.gii', fine[1, :N])
    assert 'both hemispheres must fit' in str(fmri_pictures.read(ref))
    (folder / f'{stem}_hemi-R_space-fsaverage_bold.func.gii').unlink()
    assert 'the file must be there' in str(fmri_pictures.read(ref))


def test_a_run_on_the_surface_in_nifti_is_the_same(tmp_path) -> None:
    x = RNG.normal(0, 1, (2, N, 3)).astype(np.float32)
    for name, side in zip('ab', x, strict=True):
        nibabel.Nifti1Image(side[:, None, None], np.eye(4)).to_filename(tmp_path / f'{name}.nii.gz')
    np.testing.assert_array_equal(
        fmri_surface._surface(*(str(tmp_path / f'{n}.nii.gz') for n in 'ab')), np.concatenate(x)
    )
