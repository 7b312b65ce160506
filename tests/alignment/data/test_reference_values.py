"""Numbers that other scripts found on the same files: a reader that mixes rows, units or trials misses them.

Metrics here are written out with numpy, scipy and scikit-learn: what is tested is the data.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from each import each
from PIL import Image
from scipy.signal import detrend
from scipy.stats import spearmanr
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from jbench.alignment import data, rows
from jbench.alignment.data import bonner, geirhos

ABOVE = np.triu_indices(92, 1)


def corrected(first, second):
    """Spearman-Brown of the correlations of two halves [image, unit], and these correlations."""
    z = [(h - h.mean(0)) / h.std(0) for h in (first, second)]
    r = (z[0] * z[1]).mean(0)
    return 2 * r / (1 + r), r


def halves(padded, rng):
    """Means of two equal halves of the repetitions [repetition, image, unit] that are there, drawn for each image."""
    there = ~np.isnan(padded[..., 0])
    order = np.argsort(np.where(there, rng.random(there.shape), 2), 0)  # those that are there first
    sorted_ = np.take_along_axis(padded, order[..., None], 0)
    half = there.sum(0) // 2
    place = np.arange(len(padded))[:, None]
    masks = place < half, (place >= half) & (place < 2 * half)
    return [np.where(m[..., None], sorted_, 0).sum(0) / half[:, None] for m in masks]


# ---- V4, IT ----


@each('session, r_half, ceiling', [('210325', 0.601, 0.751), ('201016', 0.575, 0.730)])
def test_split_halves_of_v4(session, r_half, ceiling, alignment_dir):
    padded = rows.trials(data.load(f'Cowley2023.{session}', alignment_dir).assembly).astype(float)
    rng = np.random.default_rng(0)
    found = [corrected(*halves(padded, rng)) for _ in range(20)]
    assert np.median(np.mean([r for _, r in found], 0)) == pytest.approx(r_half, abs=0.015)
    assert np.median(np.mean([c for c, _ in found], 0)) == pytest.approx(ceiling, abs=0.015)


def test_even_and_odd_repetitions_of_v4(alignment_dir):
    padded = rows.trials(data.load('Cowley2023.210325', alignment_dir).assembly).astype(float)
    even_odd, _ = corrected(np.nanmean(padded[::2], 0), np.nanmean(padded[1::2], 0))
    assert np.median(even_odd) == pytest.approx(0.7731, abs=1e-3)


def test_a_site_of_it_by_the_number_of_repetitions(alignment_dir):
    trials = rows.trials(data.load('KarITneuron', alignment_dir).assembly)[..., 0].astype(float)
    rng = np.random.default_rng(0)
    of_31 = []
    for _ in range(100):
        order = rng.permutation(63)
        of_31.append(corrected(trials[order[:31]].mean(0)[:, None], trials[order[31:62]].mean(0)[:, None]))
    assert np.mean([r for _, r in of_31]) == pytest.approx(0.735, abs=0.01)
    assert np.mean([c for c, _ in of_31]) == pytest.approx(0.847, abs=0.01)
    for n, expected in {1: 0.085, 2: 0.149, 5: 0.316, 10: 0.477}.items():
        drawn = [rng.permutation(63)[: 2 * n] for _ in range(100)]
        r = [corrected(trials[d[:n]].mean(0)[:, None], trials[d[n:]].mean(0)[:, None])[1] for d in drawn]
        assert np.mean(r) == pytest.approx(expected, abs=0.03)


def decoded(padded, label, bins, rng):
    """Share of right answers of the nearest class mean by correlation, 20 trials an object, leave one out."""
    drawn = np.empty((20, 7, padded.shape[1]))
    for obj, unit in itertools.product(range(7), range(padded.shape[1])):
        counts = padded[label == obj, unit][:, bins].sum(1)
        drawn[:, obj, unit] = rng.choice(counts[~np.isnan(counts)], 20, replace=False)
    right = 0
    for out in range(20):
        train = np.delete(drawn, out, 0)
        deviation = train.std((0, 1))
        scale = np.where(deviation > 0, deviation, 1)
        means, test = (train.mean(0) - train.mean((0, 1))) / scale, (drawn[out] - train.mean((0, 1))) / scale
        right += (np.corrcoef(test, means)[:7, 7:].argmax(1) == np.arange(7)).sum()
    return right / 140


@pytest.mark.slow
def test_objects_are_decoded_over_time(alignment_dir):
    found = data.load('ZhangDesimone7', alignment_dir).assembly
    label = np.unique(found['image_label'].values, return_inverse=True)[1]
    starts, rng = found['time_bin_start'].values, np.random.default_rng(0)
    values = found.values.astype(float)

    def accuracy(start, n=3):
        window = (starts >= start) & (starts < start + 150)
        return np.mean([decoded(values, label, window, rng) for _ in range(n)])

    for start, expected in {0: 0.397, 50: 0.724, 100: 0.864, 200: 0.824, 350: 0.644}.items():
        assert accuracy(start) == pytest.approx(expected, abs=0.055)
    assert 0.10 < np.mean([accuracy(start, 1) for start in range(-500, -100, 50)]) < 0.18  # above: labels leak


def from_pixels(x, y, splits):
    """Median correlation over units of what ridge regression predicts from pixels, each image by a model without it."""
    predicted = np.empty(y.shape)
    with threadpool_limits(1):
        for train, test in splits:
            scale = StandardScaler().fit(x[train])
            pca = PCA(min(150, x.shape[1]), svd_solver='randomized', random_state=0).fit(scale.transform(x[train]))
            a, b = (pca.transform(scale.transform(x[k])) for k in (train, test))
            predicted[test] = RidgeCV(np.logspace(0, 6, 13)).fit(a, y[train]).predict(b)
    return np.median(corrected(predicted, y)[1])


def small_images(stimuli, side=28):
    """Images [n, pixels and channels], by bilinear interpolation."""
    images = [Image.fromarray(stimuli.image(i)).resize((side, side), Image.Resampling.BILINEAR) for i in stimuli.ids]
    return np.stack([np.asarray(i) for i in images]).reshape(len(images), -1).astype(float)


def test_responses_of_v4_are_those_to_its_images(alignment_dir):
    stimuli, found, _ = data.load('Cowley2023.210325', alignment_dir)
    x, y = small_images(stimuli, side=7), rows.average_repetitions(found).values.astype(float)
    split = list(KFold(3, shuffle=True, random_state=0).split(x))
    assert from_pixels(x, y, split) > 0.15
    assert abs(from_pixels(x[::-1], y, split)) < 0.06  # images in another order


@pytest.mark.slow
@each('session, expected', [('190923', 0.219), ('201025', 0.230), ('210225', 0.206), ('210325', 0.265)])
def test_v4_from_pixels(session, expected, alignment_dir):
    stimuli, found, _ = data.load(f'Cowley2023.{session}', alignment_dir)
    y = rows.average_repetitions(found).values.astype(float)
    folds = KFold(10, shuffle=True, random_state=0).split(y)
    assert from_pixels(small_images(stimuli), y, folds) == pytest.approx(expected, abs=5e-3)


# ---- RDMs ----


def rdms(name, alignment_dir):
    """Vectors [subject, pair]."""
    return data.load(f'Kriegeskorte92.{name}', alignment_dir).assembly.values[:, *ABOVE].astype(float)


def bounds(vectors):
    """Mean Spearman correlation with the mean of the others, and with the mean of all."""
    n = len(vectors)
    lower = np.mean([spearmanr(v, np.delete(vectors, k, 0).mean(0))[0] for k, v in enumerate(vectors)])
    return lower, np.mean([spearmanr(vectors[k], vectors.mean(0))[0] for k in range(n)])


def test_human_and_monkey_it(alignment_dir):
    people, (monkey,) = rdms('human', alignment_dir), rdms('monkey', alignment_dir)
    assert spearmanr(people.mean(0), monkey)[0] == pytest.approx(0.43892, abs=2e-4)
    assert np.corrcoef(people.mean(0), monkey)[0, 1] == pytest.approx(0.49121, abs=2e-4)
    each_person = [spearmanr(p, monkey)[0] for p in people]
    assert each_person == pytest.approx([0.34451, 0.21981, 0.40901, 0.21197], abs=2e-4)
    assert bounds(people) == pytest.approx((0.37856, 0.66068), abs=2e-4)
    sessions = rdms('human_sessions', alignment_dir).reshape(4, 2, -1)
    again = [spearmanr(a, b)[0] for a, b in sessions]
    assert again == pytest.approx([0.27700, 0.09537, 0.38246, 0.11959], abs=2e-4)


def test_behaviour_and_it(alignment_dir):
    people, judged = rdms('human', alignment_dir).mean(0), rdms('behaviour', alignment_dir)
    assert spearmanr(judged.mean(0), people)[0] == pytest.approx(0.39239, abs=2e-4)
    assert spearmanr(judged.mean(0), rdms('monkey', alignment_dir)[0])[0] == pytest.approx(0.39441, abs=2e-4)
    assert bounds(judged) == pytest.approx((0.47760, 0.57512), abs=2e-4)


@pytest.mark.slow
def test_images_are_in_the_order_of_the_rdms(alignment_dir):
    stimuli = data.load('Kriegeskorte92.human', alignment_dir).stimuli
    x = np.stack([stimuli.image(i)[::5, ::5].ravel() for i in stimuli.ids]).astype(float)
    pixels = np.linalg.norm(x[:, None] - x[None], axis=-1)[ABOVE]
    with np.load(alignment_dir / 'Kriegeskorte92' / 'dnn_modelRDMs_A2020.npz') as networks:
        (first,) = networks['rdm'][(networks['repr_name'] == 'conv1') & (networks['meas_model'] == 'complete')]
    assert spearmanr(first, pixels)[0] == pytest.approx(0.611, abs=2e-3)
    face, people = stimuli.table['is_face'].to_numpy(), rdms('human', alignment_dir).mean(0)
    both, one = face[ABOVE[0]] & face[ABOVE[1]], face[ABOVE[0]] ^ face[ABOVE[1]]
    assert people[both].mean() < people[one].mean() - 0.1


def test_models_and_human_it(alignment_dir):
    found = data.load('Kriegeskorte92.models', alignment_dir).assembly
    people = rdms('human', alignment_dir).mean(0)
    expected = {
        'animacy': 0.58819,
        'FaceBodyManmadeNatobj': 0.40528,
        'EVA': 0.35417,
        'HMAX': 0.22173,
        'V1': 0.03926,
        'Silhouette': 0.12468,
        'RADON': 0.06121,
    }
    for name, value in expected.items():
        assert spearmanr(rows.with_value(found, 'subject', name).values[0][ABOVE], people)[0] == pytest.approx(
            value, abs=2e-4
        )


def test_regions_and_features_of_81_categories(alignment_dir):
    found, features = data.load('Bonner81', alignment_dir).assembly, bonner.features(alignment_dir)
    above = np.triu_indices(81, 1)
    expected = {
        'alexnet': {'EVC': 0.30488, 'OPA': 0.09670, 'PPA': 0.10704, 'LOC': 0.10417, 'FFA': 0.02179},
        'word2vec': {'EVC': 0.08674, 'PFS': 0.17549, 'OFA': 0.11634, 'LOC': 0.10898},
    }
    for name, regions in expected.items():
        x = np.stack([features[name][i] for i in found['stimulus_id'].values])
        for region, value in regions.items():
            y = rows.region(found, region).values
            rho = spearmanr(1 - np.corrcoef(x)[above], 1 - np.corrcoef(y)[above])[0]
            assert rho == pytest.approx(value, abs=2e-3)


def test_encoding_of_81_categories(alignment_dir):
    found, features = data.load('Bonner81', alignment_dir).assembly, bonner.features(alignment_dir)
    x = np.stack([features['alexnet'][i] for i in found['stimulus_id'].values]).astype(float)
    predicted = np.empty(found.shape)
    with threadpool_limits(1):
        for train, test in KFold(9, shuffle=True, random_state=0).split(x):
            model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))  # one alpha for all regions
            predicted[test] = model.fit(x[train], found.values[train]).predict(x[test])
    r = corrected(predicted, found.values)[1]
    expected = {'EVC': 0.5347, 'OPA': 0.4871, 'PPA': 0.6280, 'LOC': 0.6166, 'PFS': 0.1776, 'OFA': 0.5370, 'FFA': 0.2289}
    for region, value in expected.items():
        assert r[found['region'].values == region].mean() == pytest.approx(value, abs=2e-3)


def test_two_embeddings_of_things(alignment_dir):
    similarities = []
    for n in (49, 66):
        x = data.load(f'THINGS.{n}', alignment_dir).assembly.values.astype(float)
        similarities.append((x @ x.T)[np.triu_indices(len(x), 1)])
    assert np.corrcoef(*similarities)[0, 1] == pytest.approx(0.95662, abs=1e-4)


# ---- fMRI ----


def left_out(model, x, y, run):
    """Mean share of right answers, leave one run out."""
    with threadpool_limits(1):  # many threads on small matrices wait for each other
        return np.mean([model.fit(x[run != r], y[run != r]).score(x[run == r], y[run == r]) for r in np.unique(run)])


LDA = LinearDiscriminantAnalysis(solver='lsqr', shrinkage='auto')


def blocks(alignment_dir):
    """Values [category x run, voxel], categories, runs."""
    found = data.load('Haxby2001.blocks', alignment_dir).assembly
    return found.values, found['stimulus_id'].values, found['repetition'].values


@pytest.mark.slow
def test_categories_are_decoded_from_blocks(alignment_dir):
    assert left_out(LDA, *blocks(alignment_dir)) == pytest.approx(0.865, abs=0.03)


@pytest.mark.slow
def test_other_decoders_of_blocks_and_mixed_labels(alignment_dir):
    x, y, run = blocks(alignment_dir)
    assert left_out(LogisticRegression(C=1, max_iter=1000), x, y, run) == pytest.approx(0.781, abs=0.03)
    assert left_out(SVC(kernel='linear', C=1), x, y, run) == pytest.approx(0.729, abs=0.03)
    rng = np.random.default_rng(0)
    mixed = np.concatenate([rng.permutation(y[run == r]) for r in range(12)])
    assert left_out(LDA, x, mixed, run) < 0.28


@pytest.mark.slow
def test_categories_are_decoded_from_volumes(alignment_dir):
    found = data.load('Haxby2001.volumes', alignment_dir).assembly
    x, y, run = found.values.astype(float), found['stimulus_id'].values, found['run'].values
    for r in range(12):
        signal = detrend(x[run == r], axis=0)
        rest = signal[y[run == r] == 'rest']
        x[run == r] = (signal - rest.mean(0)) / rest.std(0)
    task = y != 'rest'
    assert left_out(LDA, x[task], y[task], run[task]) == pytest.approx(0.685, abs=0.03)


# ---- choices ----

# people right, their kappa; without the excluded conditions: ceiling, kappa and share right of ResNet-50
GEIRHOS = {
    'colour': (0.89765625, 0.44847, 0.41543, 0.21135, 0.96875),
    'contrast': (0.5466796875, 0.34887, 0.43703, 0.22546, 0.81625),
    'cue-conflict': (0.775546875, 0.33105, 0.33105, 0.06800, 0.18203),
    'edge': (0.87125, 0.31844, 0.31844, 0.03626, 0.13750),
    'eidolonI': (0.5033203125, 0.34573, 0.38634, 0.21029, 0.53375),
    'eidolonII': (0.4203125, 0.31045, 0.45402, 0.25090, 0.56719),
    'eidolonIII': (0.3900390625, 0.29256, 0.45953, 0.15806, 0.58542),
    'false-colour': (0.8881696, 0.44102, 0.44405, 0.29431, 0.94286),
    'high-pass': (0.4642578125, 0.32612, 0.44014, 0.20300, 0.33437),
    'low-pass': (0.5609375, 0.35774, 0.46888, 0.16741, 0.43875),
    'phase-scrambling': (0.5511161, 0.33570, 0.44667, 0.26879, 0.62031),
    'power-equalisation': (0.8296875, 0.48063, 0.51063, 0.29293, 0.73214),
    'rotation': (0.8451171875, 0.43684, 0.43851, 0.16892, 0.68438),
    'silhouette': (0.753125, 0.47571, 0.47571, 0.42805, 0.54375),
    'sketch': (0.9162500, 0.36962, 0.36962, 0.10537, 0.59625),
    'stylized': (0.47125, 0.50058, 0.50058, 0.25430, 0.37125),
    'uniform-noise': (0.5537109375, 0.36149, 0.43406, 0.19839, 0.44500),
}


def right_by_condition(found):
    """condition -> subject -> right or wrong [image], images in one order."""
    right = found.values == found['truth'].values
    condition, subject, image = (found[c].values for c in ('condition', 'subject', 'stimulus_id'))
    return {
        c: {
            s: right[k][np.argsort(image[k])]
            for s in np.unique(subject)
            if (k := (condition == c) & (subject == s)).any()
        }
        for c in np.unique(condition)
    }


def kappa(a, b):
    """Agreement beyond what their shares of right answers give; NaN where that is 1."""
    chance = a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean())
    return ((a == b).mean() - chance) / (1 - chance) if chance < 1 else np.nan


def pairs_of_people(people):
    """Mean over conditions, then over pairs of people."""
    return np.nanmean([[kappa(a, b) for a, b in itertools.combinations(s.values(), 2)] for s in people.values()])


@pytest.mark.slow
@each('experiment', data.EXPERIMENTS)
def test_choices_of_people_and_of_resnet50(experiment, alignment_dir):
    people = data.load(f'Geirhos2021.{experiment}', alignment_dir).assembly
    accuracy, agreement, ceiling, consistency, top1 = GEIRHOS[experiment]
    assert (people.values == people['truth'].values).mean() == pytest.approx(accuracy, abs=1e-6)
    assert pairs_of_people(right_by_condition(people)) == pytest.approx(agreement, abs=1e-4)
    scored = right_by_condition(geirhos.scored(people))
    assert pairs_of_people(scored) == pytest.approx(ceiling, abs=1e-5)
    networks = geirhos.scored(data.load(f'Geirhos2021models.{experiment}', alignment_dir).assembly)
    network = right_by_condition(rows.with_value(networks, 'subject', 'resnet50'))
    against = [[kappa(network[c]['resnet50'], a) for a in s.values()] for c, s in scored.items()]
    assert np.nanmean(against) == pytest.approx(consistency, abs=1e-5)
    assert np.mean([n['resnet50'].mean() for n in network.values()]) == pytest.approx(top1, abs=1e-5)


def test_shape_bias(alignment_dir):
    def shape_bias(found):
        shape, texture = found['truth'].values, [i.rsplit('-', 1)[1] for i in found['stimulus_id'].values]
        texture = np.array([''.join(c for c in t.removesuffix('.png') if c.isalpha()) for t in texture])
        conflict = shape != texture
        of_shape, of_texture = ((found.values == w)[conflict].sum() for w in (shape, texture))
        return of_shape / (of_shape + of_texture)

    assert shape_bias(data.load('Geirhos2021.cue-conflict', alignment_dir).assembly) == pytest.approx(0.9587, abs=1e-4)
    networks = data.load('Geirhos2021models.cue-conflict', alignment_dir).assembly
    expected = {'resnet50': 0.2142, 'bagnet33': 0.0511, 'simclr-resnet50x1': 0.3879, 'swag-vit-l16-in1k': 0.3928}
    for name, value in expected.items():
        assert shape_bias(rows.with_value(networks, 'subject', name)) == pytest.approx(value, abs=1e-4)


# ---- V1 ----


def ceiling_of(values, edges, n=1000):
    """1 - distance of the histogram of a sample with replacement from that of the data, over the largest distance."""

    def shares(sample):
        counts = np.histogram(np.clip(sample[~np.isnan(sample)], edges[0], edges[-1]), edges)[0]
        return np.cumsum(counts) / counts.sum()

    all_, rng = shares(values), np.random.default_rng(0)
    largest = max(np.abs(all_ - p).max() for p in (np.ones(len(all_)), np.r_[np.zeros(len(all_) - 1), 1]))
    drawn = [np.abs(shares(rng.choice(values, len(values))) - all_).max() for _ in range(n)]
    return 1 - np.mean(drawn) / largest


@each(
    'study, name, expected',
    [
        ('Cavanaugh2002', 'grating_summation_field', 0.956),
        ('Cavanaugh2002', 'surround_diameter', 0.955),
        ('Cavanaugh2002', 'surround_suppression_index', 0.958),
        ('DeValois1982a', 'preferred_orientation', 0.962),
        ('DeValois1982b', 'peak_spatial_frequency', 0.967),
        ('Schiller1976', 'spatial_frequency_selective', 0.963),
        ('Schiller1976', 'spatial_frequency_bandwidth', 0.933),
    ],
)
def test_histograms_of_v1_agree_with_themselves(study, name, expected, alignment_dir):
    found = data.load(f'Marques2020.{study}', alignment_dir).assembly
    values = found.values[:, found['property'].values.tolist().index(name)]
    assert ceiling_of(values, found.attrs[f'{name}_bins'], n=300) == pytest.approx(expected, abs=0.005)
