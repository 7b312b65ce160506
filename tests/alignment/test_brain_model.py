"""Models as benchmarks see them: regions, time, trials, screens, tasks; recorded features."""

from __future__ import annotations

import hashlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jbench.alignment import assembly, brain_model, readouts, screen, stimuli
from jbench.alignment.activations import Limits, activations
from jbench.alignment.candidates import features
from jbench.alignment.image_model import ImageModel, Preprocess
from jbench.spec.errors import RequestError

SIZE = 8
REGIONS = {'V1': 'conv', 'V4': ('dense', 'conv'), 'IT': 'tokens'}


def _apply(images):
    dense = images.mean((1, 2))
    return {
        'conv': jnp.moveaxis(images[:, :4, :2], -1, 1),  # [b, 3, 4, 2]
        'tokens': images[:, :, :2].mean(-1),  # [b, 8, 2]
        'dense': dense,
        'logits': jnp.pad(dense, ((0, 0), (0, 997))) * 50,
    }


MODEL = ImageModel('small', ('conv', 'tokens', 'dense', 'logits'), Preprocess(SIZE), _apply, 'digest')
BINS = ((0.0, 10.0), (10.0, 20.0), (20.0, 30.0))


def _temporal(images):
    mean = images.mean((1, 2))
    return {'dense': jnp.stack([mean, 2 * mean, 6 * mean], 1)}  # [b, time, 3]


TEMPORAL = MODEL._replace(layers=('dense',), apply=_temporal, time_bins=BINS)


def _random(images, keys):
    return {'dense': images.mean((1, 2)) + jax.vmap(lambda k: jax.random.normal(k, (3,)))(keys)}


RANDOM = MODEL._replace(layers=('dense',), apply=_random, stochastic=True)


def images(n=6, seed=0, size=SIZE, **columns):
    found = np.random.default_rng(seed).integers(0, 256, (n, size, size, 3), np.uint8)
    return stimuli.of_arrays(f'set {seed}', {'stimulus_id': [f'{seed}-{k}' for k in range(n)], **columns}, list(found))


def recorded(region='V1', bins=(), model=MODEL, regions=REGIONS, shown=None, trials=1, **how):
    brain = brain_model.committed(model, regions, **how)
    brain.start_recording(region, bins)
    return brain.look_at(shown or images(), trials)


def test_a_region_answers_with_the_units_of_its_layer():
    shown = images(4, object_name=['a', 'b', 'a', 'b'], number=[3, 1, 2, 0])
    found = assembly.check(recorded('V1', [(70, 170)], shown=shown))
    assert found.dims == ('presentation', 'neuroid') and found.dtype == np.float32  # one bin: no dimension
    assert found['stimulus_id'].values.tolist() == shown.ids and found['object_name'].values.tolist() == list('abab')
    assert found['number'].values.tolist() == [3, 1, 2, 0] and 'repetition' not in found.coords
    np.testing.assert_array_equal(found.values, activations(MODEL, shown, 'conv').reshape(4, -1))
    unit = found.isel(neuroid=2 * 8 + 3 * 2 + 1)
    place = {k: unit[k].item() for k in ('channel', 'channel_y', 'channel_x', 'layer', 'region', 'neuroid_id')}
    assert place == {
        'channel': 2,
        'channel_y': 3,
        'channel_x': 1,
        'layer': 'conv',
        'region': 'V1',
        'neuroid_id': 'small.conv.23',
    }
    pixel = shown.image('0-1')[3, 1, 2] / 255
    assert abs(unit.values[1] - pixel) < 1e-6
    assert found.attrs['stimulus_set'] == 'set 0' and found.attrs['identifier'] == 'small.V1'


def test_several_layers_of_a_region_lie_side_by_side():
    shown = images()
    found = recorded('V4', shown=shown)
    both = [activations(MODEL, shown, layer).reshape(6, -1) for layer in ('dense', 'conv')]
    np.testing.assert_array_equal(found.values, np.concatenate(both, 1))
    assert found['layer'].values.tolist() == ['dense'] * 3 + ['conv'] * 24
    assert found['channel_y'].values[:4].tolist() == [-1, -1, -1, 0]
    tight = Limits(memory=4 * 6 * 27)
    np.testing.assert_array_equal(recorded('V4', shown=shown, limits=tight).values, found.values)
    with pytest.raises(RequestError, match=r'small: activations for 6 rows take .*dense .*conv'):
        recorded('V4', shown=shown, limits=Limits(memory=4 * 6 * 27 - 1))


def test_tokens_say_which_they_are():
    found = recorded('IT')
    assert found.sizes['neuroid'] == 16
    assert (found['token'].values == np.repeat(range(8), 2)).all() and found['channel'].values[:3].tolist() == [0, 1, 0]


# ---- time and trials ----


def test_a_static_model_is_the_same_in_each_of_several_bins():
    bins = [(70 + 10 * k, 80 + 10 * k) for k in range(18)]
    found = assembly.check(recorded('V1', bins))
    assert found.dims == ('presentation', 'neuroid', 'time_bin') and found.shape[2] == 18
    assert (found.values == recorded('V1').values[..., None]).all()
    assert list(zip(found['time_bin_start'].values, found['time_bin_end'].values, strict=True)) == bins


def test_a_temporal_model_is_averaged_over_its_bins():
    mean = recorded('IT', [(0, 10)], TEMPORAL, {'IT': 'dense'})
    assert mean.dims == ('presentation', 'neuroid')
    found = recorded('IT', [(0, 30), (5, 25), (20, 30)], TEMPORAL, {'IT': 'dense'})
    for k, factor in enumerate((3, (0.5 + 2 + 3) / 2, 6)):
        np.testing.assert_allclose(found.values[..., k], factor * mean.values, rtol=1e-6)
    with pytest.raises(RequestError, match='20 to 35 ms is not within 0 to 30 ms'):
        recorded('IT', [(20, 35)], TEMPORAL, {'IT': 'dense'})
    with pytest.raises(RequestError, match='3 time bins: say which'):
        recorded('IT', (), TEMPORAL, {'IT': 'dense'})
    with pytest.raises(RequestError, match=r'a layer is \[3, 3\], expected 2 times first'):
        recorded('IT', [(0, 10)], TEMPORAL._replace(time_bins=BINS[:2]), {'IT': 'dense'})


@pytest.mark.slow
def test_trials_of_a_stochastic_model_lie_side_by_side():
    shown = images(4)
    found = assembly.check(recorded('IT', [(70, 170)], RANDOM, {'IT': 'dense'}, shown, 5))
    assert found.shape == (20, 3) and found['repetition'].values.tolist() == [0, 1, 2, 3, 4] * 4
    assert found['stimulus_id'].values.tolist() == np.repeat(shown.ids, 5).tolist()
    np.testing.assert_array_equal(found.values, activations(RANDOM, shown, 'dense', n_trials=5).reshape(20, 3))
    again = recorded('IT', [(70, 170)], RANDOM, {'IT': 'dense'}, shown, 5)
    assert found.identical(again)  # and later calls are not changed by earlier ones
    assert recorded('IT', (), RANDOM, {'IT': 'dense'}, shown).shape == (4, 3)
    assert recorded('IT', (), MODEL, {'IT': 'dense'}, shown, 5).shape == (4, 3)  # not stochastic: once


def test_microsaccades_shift_the_gaze_from_trial_to_trial():
    shown = images(3, size=40)
    found = assembly.check(recorded('V1', shown=shown, trials=4, visual_degrees=2, microsaccades=True))
    assert found.shape == (12, 24) and found['repetition'].values.tolist() == [0, 1, 2, 3] * 3
    shifts = screen.microsaccades(4, 40, 2)
    np.testing.assert_allclose(found['microsaccade_shift_x_pixels'].values, np.tile(shifts[:, 0], 3))
    np.testing.assert_allclose(found['microsaccade_shift_y_degrees'].values, np.tile(shifts[:, 1], 3) / 20)
    moved = [screen.shifted(shown.image(i), s) for i in shown.ids for s in shifts]
    by_hand = stimuli.of_arrays('moved', {'stimulus_id': [str(k) for k in range(12)]}, moved)
    np.testing.assert_allclose(found.values, recorded('V1', shown=by_hand).values, atol=1e-6)
    assert recorded('V1', shown=shown, microsaccades=True).shape == (3, 24)


# ---- what was started last, and what cannot be ----


def test_what_was_started_last_decides():
    brain, shown = brain_model.committed(MODEL, REGIONS), images()
    with pytest.raises(RequestError, match='nothing was started'):
        brain.look_at(shown)
    brain.start_recording('V1')
    recording = brain.look_at(shown)
    brain.start_task('label', ['dog', 'cat'])
    assert brain.look_at(shown).dims == ('presentation',)
    brain.start_task('passive')
    assert brain.look_at(shown).identical(recording)
    brain.start_task('label', ['dog', 'cat'])
    brain.start_recording('V1')  # leaves the task
    assert brain.look_at(shown).identical(recording)


def test_what_a_model_does_not_have_is_refused():
    with pytest.raises(RequestError, match="unknown layer of small 'cnov'"):
        brain_model.committed(MODEL, {'V1': 'cnov'})
    with pytest.raises(RequestError, match="unknown layer of small 'x'"):
        brain_model.committed(MODEL, REGIONS, readout='x')
    with pytest.raises(RequestError, match='give a positive number'):
        brain_model.committed(MODEL, REGIONS, 0)
    brain = brain_model.committed(MODEL, REGIONS)
    with pytest.raises(RequestError, match="unknown region of small 'V2'"):
        brain.start_recording('V2')
    with pytest.raises(RequestError, match="unknown task 'rsvp'"):
        brain.start_task('rsvp')
    for fitting in (None, [], 'imagnet'):
        with pytest.raises(RequestError, match='expected a list of labels'):
            brain.start_task('label', fitting)
    for fitting in (None, images()):
        with pytest.raises(RequestError, match='a column image_label'):
            brain.start_task('probabilities', fitting)
    brain = brain_model.committed(TEMPORAL, {'IT': 'dense'})
    brain.start_task('label', 'imagenet')
    with pytest.raises(RequestError, match='has no classifier of ImageNet'):
        brain.look_at(images())


def test_images_with_a_size_in_degrees_are_placed_on_the_screen():
    shown = images(3, size=20, degrees=[4.0, 8.0, 10.0])
    placed = screen.place_on_screen(shown, 8)
    found = recorded('V1', shown=shown)
    assert found.attrs['stimulus_set'] == placed.identifier and found['degrees'].values.tolist() == [8, 8, 8]
    np.testing.assert_array_equal(found.values, activations(MODEL, placed, 'conv').reshape(3, -1))
    assert recorded('V1', shown=placed).identical(found)


def test_the_digest_says_what_responses_depend_on():
    def digest(model=MODEL, regions=REGIONS, degrees=8, **how):
        return brain_model.committed(model, regions, degrees, **how).digest

    others = [
        digest(MODEL._replace(digest='other')),
        digest(MODEL._replace(preprocess=Preprocess(SIZE, filter='bicubic'))),
        digest(regions={**REGIONS, 'V1': 'dense'}),
        digest(degrees=4),
        digest(readout='conv'),
        digest(microsaccades=True),
        digest(RANDOM, {'IT': 'dense'}),
        digest(RANDOM, {'IT': 'dense'}, limits=Limits(seed=1)),
    ]
    assert len({digest(), *others}) == 9 and digest() == digest(limits=Limits(memory=2**34, seed=3))


# ---- tasks ----


def test_labels():
    brain, shown = brain_model.committed(MODEL, REGIONS), images(5, truth=list('abcab'))
    logits = activations(MODEL, shown, 'logits')[:, 0]
    brain.start_task('label', 'imagenet')
    found = assembly.check(brain.look_at(shown))
    assert found.values.tolist() == readouts.imagenet_labels(logits)[0] and found['truth'].values.tolist() == list(
        'abcab'
    )
    assert (found['class'].values == logits.argmax(1)).all() and found.values[0].startswith('n')
    brain.start_task('label', ['dog', 'cat'])
    found = brain.look_at(shown)
    assert found.values.tolist() == readouts.own_labels(logits, ['dog', 'cat'])[0]
    assert found['stimulus_id'].values.tolist() == shown.ids and found.attrs['identifier'] == 'small.label'


def test_probabilities():
    brain = brain_model.committed(MODEL, REGIONS, readout=('dense', 'tokens'))
    fitting, shown = images(8, 1, image_label=list('baabbaab'), degrees=[8.0] * 4 + [4.0] * 4), images(3)
    brain.start_task('probabilities', fitting)
    found = assembly.check(brain.look_at(shown))
    assert found.dims == ('presentation', 'choice') and found['choice'].values.tolist() == ['a', 'b']
    np.testing.assert_allclose(found.values.sum(1), 1)

    def read(x):
        return np.concatenate([activations(MODEL, x, layer).reshape(len(x), -1) for layer in ('dense', 'tokens')], 1)

    placed = screen.place_on_screen(fitting, 8)  # the fitting stimuli are put on the screen too
    _, expected = readouts.object_probabilities(read(placed), list('baabbaab'), read(shown))
    np.testing.assert_allclose(found.values, expected, atol=1e-6)


def test_the_odd_one_of_three():
    vectors = {'a': [1, 0.1], 'b': [1, 0], 'c': [0, 5], 'd': [0.2, 1]}
    shown = stimuli.absent('objects', {'stimulus_id': list('abcd')}, 'no images')
    brain = features.recorded_features('mine', vectors)
    brain.start_task('odd_one_out', [('a', 'b', 'c'), ('d', 'c', 'b')])
    found = brain.look_at(shown)
    assert found.values.tolist() == ['c', 'b'] and found['stimulus_id'].values.tolist() == ['a|b|c', 'd|c|b']
    brain.start_task('odd_one_out')
    assert brain.look_at(stimuli.absent('three', {'stimulus_id': list('bca')}, 'no images')).values.tolist() == ['c']
    with pytest.raises(RequestError, match='4 stimuli are no triplets'):
        brain.look_at(shown)
    brain.start_task('odd_one_out', [('a', 'b', 'x')])
    with pytest.raises(RequestError, match="got 'x', which it does not have"):
        brain.look_at(shown)
    vectors |= {'c': [2, 2]}
    brain = features.recorded_features('mine', vectors)
    brain.start_task('odd_one_out', [('a', 'b', 'c')])
    assert brain.look_at(shown).values.tolist() == ['b']
    brain.similarity = 'cosine'
    assert brain.look_at(shown).values.tolist() == ['c']


# ---- recorded features ----


def test_recorded_features_come_in_the_order_of_the_stimuli():
    vectors = {f'0-{k}': np.arange(4) + 10 * k for k in range(8)}
    brain = features.recorded_features('mine', vectors)
    shown = images(6, degrees=[4.0] * 6, object_name=list('abcabc'))
    for region in ('V1', 'anything'):
        brain.start_recording(region, [(70, 170)])
        found = assembly.check(brain.look_at(shown))
        assert found.values[:, 0].tolist() == [0, 10, 20, 30, 40, 50] and found['object_name'].values[1] == 'b'
        assert found['region'].values.tolist() == [region] * 4 and found['degrees'].values[0] == 4
    texts = stimuli.of_arrays('texts', {'stimulus_id': ['0-7', '0-2']}, ['one', 'two'])
    assert brain.look_at(texts).values[:, 1].tolist() == [71, 21]  # nothing here knows pixels
    with pytest.raises(RequestError, match=r"no features for stimulus '1-0' and 2 more of set 1"):
        brain.look_at(images(3, 1))


def test_recorded_features_by_stimulus_set():
    brain = features.recorded_features('mine', {'set 0': {'0-0': [1.0]}, 'set 1': {'0-0': [2.0]}})
    brain.start_recording('V1')
    placed = screen.place_on_screen(images(1), 8, 4)
    assert brain.look_at(placed).item() == 1
    with pytest.raises(RequestError, match='no features for stimulus set set 2; there are: set 0, set 1'):
        brain.look_at(images(1, 2))


def test_recorded_features_that_cannot_be():
    for vectors, message in (
        ({}, 'no features'),
        ({'a': [1, 2], 'b': [1]}, r'vectors of \[1, 2\] numbers'),
        ({'a': [1, np.nan]}, "features of 'a' are not all finite"),
    ):
        with pytest.raises(RequestError, match=message):
            features.recorded_features('mine', vectors)


def test_features_from_a_file(tmp_path):
    path, vectors = tmp_path / 'clip large.npz', np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(path, stimulus_id=['b', 'a'], features=vectors)
    brain = features.from_file(path)
    assert brain.identifier == 'clip_large'
    assert brain.digest == features.recorded_features('x', {'a': vectors[1], 'b': vectors[0]}).digest
    assert brain.digest != features.recorded_features('x', {'a': vectors[0], 'b': vectors[1]}).digest
    for content, message in (
        ({'stimulus_id': ['b', 'b'], 'features': vectors}, 'several times'),
        ({'ids': ['b', 'a'], 'features': vectors}, r'holds ids \[2\], features \[2, 3\]; expected an NPZ'),
        ({'stimulus_id': ['b'], 'features': vectors}, 'expected an NPZ'),
        ({'stimulus_id': np.array(['a', {}]), 'features': vectors}, 'not read'),
    ):
        np.savez(path, **content)
        with pytest.raises(RequestError, match=message):
            features.from_file(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(RequestError, match='not read'):
        features.from_file(path)
    with pytest.raises(RequestError, match='no file of features'):
        features.from_file(tmp_path / 'absent.npz')


# ---- candidates ----


def test_a_candidate_of_the_table_is_a_brain_model():
    brain = brain_model.candidate('pixels')
    assert brain.visual_degrees() == 8 and set(brain.layers) == set(brain_model.REGIONS)
    brain.start_recording('IT', [(70, 170)])
    assert brain.look_at(images(2)).shape == (2, 3 * 28 * 28)
    assert (
        len(brain.digest) == len(hashlib.sha256().hexdigest())
        and brain.digest == brain_model.candidate('pixels').digest
    )
