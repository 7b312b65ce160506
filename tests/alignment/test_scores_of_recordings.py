"""Benchmarks on the real recordings: published scores and ceilings, alignment over time of cells, voxels, EEG."""

from __future__ import annotations

import json

import numpy as np
import pytest
from places import FIXTURES

import jbench
from jbench.alignment import benchmark, build, data, over_time, rows, select
from jbench.alignment.activations import Limits
from jbench.alignment.data import zhang
from jbench.alignment.metrics import similarity
from jbench.spec.benchmark import AlignmentCell

pytestmark = pytest.mark.slow
GEIRHOS = json.loads((FIXTURES / 'alignment' / 'geirhos2021.json').read_text())


def score(identifier, model, alignment_dir):
    """One score, as the command gives it."""
    chosen = select.benchmarks()[identifier]
    comparison = AlignmentCell(benchmark=chosen, candidate=select.candidates()[model])
    made = build.build(comparison, 33, alignment_dir, None, Limits())
    return benchmark.score(made, chosen, data_dir=alignment_dir)


@pytest.mark.parametrize('experiment', GEIRHOS)
def test_resnet50_of_geirhos_as_published(experiment, alignment_dir):
    published = GEIRHOS[experiment]
    found = score(f'Geirhos2021{experiment}-error_consistency', 'resnet50_answers', alignment_dir)
    assert found.raw == pytest.approx(published['kappa'], abs=1e-5)
    assert found.ceiling == pytest.approx(published['ceiling'], abs=1e-5)
    assert found.value == pytest.approx(published['kappa'] / published['ceiling'], abs=5e-5)
    right = score(f'Geirhos2021{experiment}-top1', 'resnet50_answers', alignment_dir)
    assert right.value == pytest.approx(published['top1'], abs=1e-5)


@pytest.mark.parametrize(('model', 'expected'), [('pixels', 0.214), ('gabor', 0.476)])
def test_v4_is_predicted_as_the_catalogue_says(model, expected, alignment_dir):
    """Its folds are others, and it reduces features first; so do not ask for more than 0.02."""
    found = score('Cowley2023.V4-pls', model, alignment_dir)
    assert found.raw == pytest.approx(expected, abs=0.02) and found.values.shape == (10, 50)
    assert found.ceiling == pytest.approx(0.760, abs=0.015)
    assert found.value == pytest.approx(found.raw**2 / found.ceiling)


@pytest.mark.parametrize(
    ('identifier', 'upper', 'lower'),
    [('Kriegeskorte2008.human_IT-rdm', 0.66068, 0.37856), ('Mur2013-rdm', 0.575, 0.478)],
)
def test_dissimilarities_have_their_published_ceilings(identifier, upper, lower, alignment_dir):
    found = score(identifier, 'category', alignment_dir)
    assert found.ceiling == pytest.approx(upper, abs=2e-3)
    (note,) = (n for n in found.notes if 'the lower is' in n)
    assert float(note.rpartition(' ')[2]) == pytest.approx(lower, abs=2e-3)
    assert found.raw > score(identifier, 'pixels', alignment_dir).raw  # categories organise IT, pixels hardly


def test_objects_are_decoded_from_it_over_time(alignment_dir):
    starts = (-400, -250, 0, 50, 100, 200, 350)
    counts, found = zhang.counted(alignment_dir, [(t, t + 150) for t in starts])
    cells = [found['site'] == k for k in range(zhang.N_UNITS)]
    each = []
    for seed in range(5):
        draws = np.random.default_rng(seed)
        labels = [found['object_id'][mine] for mine in cells]
        made, classes, number = over_time.pseudo_trials(
            [counts[mine].astype(float) for mine in cells], labels, 20, draws
        )
        each.append(over_time.decode(made, classes, number).values.mean(1))
    before, *after = np.split(np.mean(each, 0), [2, 3, 4, 5, 6])
    assert before.mean() == pytest.approx(1 / 7, abs=0.04)
    assert np.concatenate(after) == pytest.approx([0.397, 0.724, 0.864, 0.824, 0.644], abs=0.04)


def test_it_tells_objects_apart_after_it_saw_them(alignment_dir):
    chosen = select.benchmarks()['ZhangDesimone2011.IT-rdm_over_time']
    comparison = AlignmentCell(benchmark=chosen, candidate=select.candidates()['category'])
    made = build.build(comparison, 33, alignment_dir, None, Limits())
    found = benchmark.scored(made, chosen, benchmark.recordings(chosen, alignment_dir))
    course = dict(zip(found.arrays['bins'][:, 0].tolist(), found.arrays['over_time'].tolist(), strict=True))
    before = [course[t] for t in range(-500, 0, 50)]
    assert abs(np.mean(before)) < 0.1 and max(before) < 0.25 < 0.35 < course[200]
    assert found.score.raw == max(course.values())


def test_categories_are_decoded_from_voxels(alignment_dir):
    """The block means of one slice: .54 by correlation with the means of classes, which knows no noise; chance .125."""
    blocks = data.load('Haxby2001.blocks', alignment_dir).assembly
    responses, labels = blocks.values[..., None].astype(float), blocks['stimulus_id'].values
    found = over_time.decode(responses, labels, blocks['repetition'].values)
    assert found.value > 0.45
    shuffled = np.random.default_rng(0).permuted(labels.reshape(12, 8), axis=1).ravel()
    assert over_time.decode(responses, shuffled, blocks['repetition'].values).value < 0.3
    means = rows.average_repetitions(blocks)
    faces = means['stimulus_id'].values == 'face'
    rdm = similarity.rdm(means.values)
    assert rdm[faces][:, ~faces].mean() > rdm[~faces][:, ~faces][np.triu_indices(7, 1)].mean()


def test_flicker_is_decoded_and_encoded_from_eeg_over_time(data_dir, tmp_path):
    """Windows that jbench prepared; neuroids are the power of each electrode at each frequency of flicker."""
    asked = jbench.task('ssvep/Kalunga2016Online')
    splits = jbench.load(asked, data_dir=data_dir, workdir=tmp_path)
    parts = (splits.train, splits.valid, splits.test)
    x, y = (np.concatenate([getattr(part.arrays(), name) for part in parts]) for name in ('x', 'y'))
    subjects = np.concatenate([part.subjects for part in parts])
    sfreq = splits.signal.sfreq
    t = np.arange(x.shape[2]) / sfreq
    power = []
    for frequency in (13.0, 17.0, 21.0):
        wave = np.exp(-2j * np.pi * frequency * t)
        pieces = np.stack([(x * wave)[..., (t >= b) & (t < b + 1)].sum(-1) for b in range(int(t[-1]))], -1)
        power.append(np.log(np.abs(pieces) + 1e-12))
    responses = np.concatenate(power, 1)  # [window, electrode x frequency, second]
    responses -= np.stack([responses[subjects == s].mean((0, 2)) for s in subjects])[..., None]
    found = over_time.decode(responses, y, subjects)
    assert found.values.shape == (responses.shape[2], len(set(subjects))) and found.value > 0.4  # chance .25
    means, _ = over_time.condition_means(responses, np.array([f'{s}.{c}' for s, c in zip(subjects, y, strict=True)]))
    classes = np.array([c for s in sorted(set(subjects)) for c in sorted(set(y[subjects == s]))])
    features = (classes[:, None] == np.unique(y)).astype(float)

    def encoded(x):
        return np.nanmedian(over_time.encode('ridge', x, means).values, 2).mean()

    draws = np.random.default_rng(0)
    assert encoded(features) > 0.1 > np.mean([encoded(draws.permutation(features)) for _ in range(5)])
