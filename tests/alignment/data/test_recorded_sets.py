"""Every recorded set: read whole where its files are, one clear message where they are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from each import each

from jbench.alignment import assembly, data, rows
from jbench.alignment.data import cowley, geirhos, sources, zhang
from jbench.spec.errors import RequestError

ABSENT = {'Marques2020.Ringach2002', 'Marques2020.FreemanZiemba2013'}  # files that the collection need not hold
# shape, and the sum of what is not NaN
FOUND = {
    'Cowley2023.190923': ((1200, 33), 111932.9),
    'Cowley2023.201025': ((1200, 89), 372583.4),
    'Cowley2023.210225': ((1200, 55), 150805.1),
    'Cowley2023.210325': ((4840, 50), 573941),
    'Cowley2023.201016': ((3677, 82), 1191165),
    'Kriegeskorte92.human': ((4, 92, 92), 28395.72),
    'Kriegeskorte92.human_sessions': ((8, 92, 92), 56791.43),
    'Kriegeskorte92.monkey': ((1, 92, 92), 8335.584),
    'Kriegeskorte92.behaviour': ((16, 92, 92), 1842.157),
    'Kriegeskorte92.models': ((8, 92, 92), 36995.11),
    'Marques2020.Cavanaugh2002': ((190, 5), 1335.884),
    'Marques2020.DeValois1982a': ((385, 1), 25155),
    'Marques2020.DeValois1982b': ((363, 1), 1313.03),
    'Marques2020.Schiller1976': ((87, 2), 3458),
    'ZhangDesimone7': ((420, 132, 20), 603003),
    'ZhangDesimone7.10ms': ((420, 132, 100), 603003),
    'Haxby2001.volumes': ((1452, 530), 1.118772e09),
    'Haxby2001.blocks': ((96, 530), 14622.56),
    'Bonner81': ((81, 696), 0),
    'THINGS.49': ((1854, 49), 14987.69),
    'THINGS.66': ((1854, 66), 19044.33),
    'KarITneuron': ((40320, 1), 65474.1),
    'BrainScoreTest.alexnet': ((240, 24), 240),
    'BrainScoreTest.resnet18': ((240, 24), 240),
    'BrainScoreTest.resnet34': ((240, 24), 240),
    'BrainScoreTest.alexnet-units': ((1, 13312), 8669.804),
    'BrainScoreTest.alexnet-pca': ((1, 2000), 53.99091),
    'GeneratedSentences': ((180, 24), 43.18963),
}
GEIRHOS = {n for n in data.SETS if n.startswith('Geirhos')}


@pytest.mark.slow
@each('name', sorted(FOUND))
def test_a_set_has_its_shape_and_sum(name, alignment_dir):
    stimuli, found, facts = data.load(name, alignment_dir)
    shape, total = FOUND[name]
    assert found.shape == shape
    assert np.nansum(found.values.astype(float)) == pytest.approx(total, rel=1e-6, abs=1e-3)
    assert found.attrs['identifier'] == name and found.attrs['stimulus_set'] == stimuli.identifier
    assert len(stimuli.digest) == 64 and facts is sources.SOURCES[data.SETS[name].source]
    if 'stimulus_id' in found.coords:
        assert set(found['stimulus_id'].values) == set(stimuli.ids)


def test_every_set_of_the_table_is_tested_and_says_where_it_comes_from():
    assert set(FOUND) | GEIRHOS | ABSENT == set(data.SETS)
    for row in data.SETS.values():
        source = sources.SOURCES[row.source]
        assert row.title and source.licence and source.citation and source.origin
    assert {r.source for r in data.SETS.values()} == set(sources.SOURCES)


@each('name', sorted(set(data.SETS) - {'GeneratedSentences'}))
def test_absent_data_are_one_line_that_says_what_to_do(name, tmp_path):
    folder = sources.SOURCES[data.SETS[name].source].folder
    with pytest.raises(RequestError, match=f'^data missing: .*{folder}.*(put it there|from)') as caught:
        data.load(name, tmp_path)
    assert '\n' not in str(caught.value)


def test_unknown_names_are_answered_with_near_ones(tmp_path):
    with pytest.raises(RequestError, match=r'unknown recorded set.*did you mean Cowley2023.210325|Cowley2023\.'):
        data.load('Cowley2023.210352', tmp_path)


def test_another_file_than_the_known_one_is_refused(alignment_dir, tmp_path):
    (tmp_path / 'KarITneuron').mkdir()
    whole = (alignment_dir / 'KarITneuron' / 'sample_it_neuron.npz').read_bytes()
    (tmp_path / 'KarITneuron' / 'sample_it_neuron.npz').write_bytes(whole[:-100] + bytes(100))
    with pytest.raises(RequestError, match=r'sha256 .*, expected 2c9bf4e985e2.*fetch it again'):
        data.load('KarITneuron', tmp_path)


# ---- what the sets hold ----


def test_averages_of_v4_are_those_of_the_single_presentations(alignment_dir):
    found = rows.average_repetitions(data.load('Cowley2023.210325', alignment_dir).assembly)
    with np.load(alignment_dir / 'CowleyV4' / 'responses_avg_210325.npz') as published:
        np.testing.assert_allclose(found.values.T, published['mean_counts'], atol=2e-6)
    padded = rows.trials(data.load('Cowley2023.210325', alignment_dir).assembly)
    assert padded.shape == (10, 640, 50)
    assert set((~np.isnan(padded[:, :, 0])).sum(0)) == {6, 7, 8, 9, 10}


@each('session', [s for s in cowley.SESSIONS if cowley.SESSIONS[s].images])
def test_images_of_v4_are_read_one_by_one(session, alignment_dir):
    stimuli = data.load(f'Cowley2023.{session}', alignment_dir).stimuli
    first, last = stimuli.image(stimuli.ids[0]), stimuli.image(stimuli.ids[-1])
    assert first.shape == last.shape == (112, 112, 3) and first.dtype == np.uint8 and (first != last).any()
    assert stimuli.ids == sorted(stimuli.ids)


def test_a_session_without_images_says_so(alignment_dir):
    stimuli = data.load('Cowley2023.201016', alignment_dir).stimuli
    with pytest.raises(RequestError, match='no images of this session; use session 210325'):
        stimuli.image(stimuli.ids[0])


def test_published_arrays_are_taken_as_they_are(alignment_dir, tmp_path):
    place = tmp_path / 'CowleyV4' / 'responses_raw'
    place.mkdir(parents=True)
    with np.load(alignment_dir / 'CowleyV4' / 'responses_raw_201016.npz') as collected:
        counts = collected['counts'].astype(float)
    np.save(place / 'responses_201016.npy', np.where(counts < 0, np.nan, counts))
    found = data.load('Cowley2023.201016', tmp_path).assembly
    assert found.identical(data.load('Cowley2023.201016', alignment_dir).assembly)
    np.save(place / 'responses_201016.npy', counts[:, :50])
    with pytest.raises(RequestError, match=r'shape \(82, 50, 10\), expected \(82, 600, 10\)'):
        data.load('Cowley2023.201016', tmp_path)


def test_rdms_are_symmetric_and_images_shown(alignment_dir):
    stimuli, found, _ = data.load('Kriegeskorte92.monkey', alignment_dir)
    square = found.values[0]
    np.testing.assert_array_equal(square, square.T)
    assert (np.diag(square) == 0).all() and stimuli.image('image01').shape == (175, 175, 3)
    assert [stimuli.table[f'is_{k}'].sum() for k in ('natural', 'face', 'animal')] == [71, 24, 48]


def test_histograms_come_out_of_the_values(alignment_dir):
    study = data.load('Marques2020.Cavanaugh2002', alignment_dir).assembly
    assert study.attrs['number_of_trials'] == 20 and set(study['region'].values) == {'V1'}
    expected = {
        'surround_suppression_index': [66, 44, 38, 23, 16, 3, 0, 0, 0, 0],
        'grating_summation_field': [0, 9, 30, 55, 42, 10, 2, 0],
        'surround_diameter': [0, 0, 2, 20, 33, 49, 40, 4],
    }
    for name, counts in expected.items():
        values = study.values[:, study['property'].values.tolist().index(name)]
        assert np.histogram(values, study.attrs[f'{name}_bins'])[0].tolist() == counts
        assert np.isnan(values).sum() == 190 - sum(counts)


def test_assemblies_of_neurons_are_read_where_they_are(alignment_dir, tmp_path):
    files = [alignment_dir / 'Marques2020' / f for f in sources.SOURCES['Marques2020'].sha256 if f.endswith('.nc')]
    if not all(f.is_file() for f in files):
        pytest.skip('the assemblies of Ringach2002 and FreemanZiemba2013 are not in this collection')
    found = data.load('Marques2020.Ringach2002', alignment_dir).assembly
    assert found.shape == (304, 12) and found.attrs['number_of_trials'] == 40
    assert {n for n in found['property'].values if 'bandwith' in n} == set()
    assert data.load('Marques2020.FreemanZiemba2013', alignment_dir).assembly.shape == (102, 9)


def test_trials_of_single_units_keep_their_counts(alignment_dir):
    found = data.load('ZhangDesimone7', alignment_dir).assembly
    there = ~np.isnan(found.values[..., 0])
    assert there.sum() == 55433 and set(there.sum(0)) == {419, 420}
    counts, labels = zhang.counted(alignment_dir, [(0, 100), (-500, 500)])
    np.testing.assert_array_equal(found.values[..., 10:12].sum(-1)[there].sum(), counts[:, 0].sum())
    unit = np.nansum(found.values[:, 7])
    assert unit == counts[labels['site'] == 7, 1].sum()
    with pytest.raises(RequestError, match='within -500 to 500'):
        zhang.counted(alignment_dir, [(400, 501)])


def test_ten_ms_bins_add_up_to_fifty(alignment_dir):
    fine = data.load('ZhangDesimone7.10ms', alignment_dir).assembly
    coarse = data.load('ZhangDesimone7', alignment_dir).assembly
    assert fine.drop_vars(['time_bin_start', 'time_bin_end'])['stimulus_id'].equals(coarse['stimulus_id'])
    np.testing.assert_array_equal(fine.values.reshape(420, 132, 20, 5).sum(-1), coarse.values)


def test_probabilities_and_activations(alignment_dir):
    made = data.load('BrainScoreTest.resnet18', alignment_dir).assembly
    np.testing.assert_allclose(made.sum('choice'), 1, atol=1e-5)
    assert 'calc01' in made['choice'].values
    units = data.load('BrainScoreTest.alexnet-units', alignment_dir).assembly
    assert set(units['layer'].values) == {'features.12', 'classifier.5'}


# ---- choices ----

N_TRIALS = {  # people x images of the catalogue
    'colour': 5120, 'contrast': 5120, 'cue-conflict': 12800, 'edge': 1600, 'eidolonI': 5120, 'eidolonII': 5120,
    'eidolonIII': 5120, 'false-colour': 4480, 'high-pass': 5120, 'low-pass': 5120, 'phase-scrambling': 4480,
    'power-equalisation': 4480, 'rotation': 5120, 'silhouette': 1600, 'sketch': 5600, 'stylized': 4000,
    'uniform-noise': 5120,
}  # fmt: skip


@pytest.mark.slow
@each('experiment', data.EXPERIMENTS)
def test_people_and_networks_saw_the_same_images(experiment, alignment_dir):
    stimuli, people, _ = data.load(f'Geirhos2021.{experiment}', alignment_dir)
    networks = data.load(f'Geirhos2021models.{experiment}', alignment_dir).assembly
    assert people.shape == (N_TRIALS[experiment],)
    assert set(networks['stimulus_id'].values) == set(people['stimulus_id'].values) == set(stimuli.ids)
    assert set(networks['subject'].values) == set(geirhos.MODELS)
    assert set(people['truth'].values) == set(geirhos.CATEGORIES) == set(stimuli.table['image_label'])
    assert set(people.values.tolist()) <= {*geirhos.CATEGORIES, 'na'}
    assert assembly.kind(people) == 'behaviour'


@pytest.mark.slow
@each('experiment, before', [('silhouette', '0001_sil_s01_0_cat_00_'), ('sketch', '0001_ske_s01_')])
def test_published_tables_of_trials_are_taken_as_they_are(experiment, before, alignment_dir, tmp_path):
    place = tmp_path / 'Geirhos2021' / 'raw-data' / experiment
    place.mkdir(parents=True)
    names = {'subj': 'Session', 'model': 'session'}
    for (who, session), file in zip(names.items(), ('human', 'model'), strict=True):
        trials = pd.read_parquet(alignment_dir / 'Geirhos2021' / f'{file}_trials.parquet')
        trials = trials[trials['experiment'] == experiment].astype({'condition': str, who: str})
        first = before if experiment == 'sketch' or who == 'subj' else ''
        trials = trials.assign(imagename=first + trials['image_key'].astype(str), subj=trials[who], **{session: 1})
        if who == 'model':
            trials = trials.assign(rt='NaN', condition='NaN' if experiment == 'silhouette' else trials['condition'])
        for one, rows_ in trials.groupby('subj', observed=True):
            rows_[['subj', session, 'trial', 'rt', 'object_response', 'category', 'condition', 'imagename']].to_csv(
                place / f'{experiment}_{one}_session-1.csv', index=False, na_rep='NaN'
            )
    for name in (f'Geirhos2021.{experiment}', f'Geirhos2021models.{experiment}'):
        found, expected = data.load(name, tmp_path), data.load(name, alignment_dir)
        assert found.assembly.identical(expected.assembly) and found.stimuli.digest == expected.stimuli.digest
    for path in place.glob('*_subject-*'):
        path.unlink()
    with pytest.raises(RequestError, match=rf'^data missing: .*{experiment}_subject-\*.csv under .*put them there'):
        data.load(f'Geirhos2021.{experiment}', tmp_path)


def test_conditions_are_left_out_by_number_and_by_name(alignment_dir):
    noise = geirhos.scored(data.load('Geirhos2021.uniform-noise', alignment_dir).assembly)
    assert set(noise['condition'].values) == {'0.03', '0.05', '0.10', '0.20', '0.35'}
    colour = geirhos.scored(data.load('Geirhos2021.colour', alignment_dir).assembly)
    assert set(colour['condition'].values) == {'bw'}
    edge = data.load('Geirhos2021.edge', alignment_dir).assembly
    assert geirhos.scored(edge).identical(edge)


# ---- generated sentences ----


def test_generated_sentences_are_texts_that_units_tell_apart(tmp_path):
    stimuli, found, _ = data.load('GeneratedSentences', tmp_path)
    again = data.load('GeneratedSentences', tmp_path)
    assert again.stimuli.digest == stimuli.digest and again.assembly.identical(found)
    assert len({stimuli.text(i) for i in stimuli.ids}) == 60 and stimuli.text(stimuli.ids[0]).endswith('.')
    padded = rows.trials(found)
    halves = [np.corrcoef(padded[0, :, u], padded[1, :, u])[0, 1] for u in range(24)]
    assert 0.3 < np.median(halves) < 0.7  # noise as strong as what is evoked: one half
