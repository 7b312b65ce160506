"""Batches, duplicates, kept activations, budgets, stochastic models."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from each import each

from jbench.alignment import activations, stimuli
from jbench.alignment.activations import BATCH, Limits
from jbench.alignment.image_model import ImageModel, Preprocess
from jbench.spec.errors import RequestError

SIZE = 8
SHOWN: list[tuple[int, ...]] = []  # shapes of the batches that the counting model was run on


def _layers(images):
    return {'first': images[:, :, :2, 0] + 1, 'second': images.mean((1, 2)) * 3}


def _counted(images):
    jax.debug.callback(lambda x: SHOWN.append(x.shape), images)
    return _layers(images)


def _random(images, keys):
    draws = jax.vmap(lambda k: jax.random.normal(k, (2,)))(keys)
    return {'first': images.mean((1, 2))[:, :2] + draws}


def _with_last(images):
    return {'first': images + images[-1]}  # an answer that depends on the last image of its batch


MODEL = ImageModel('small', ('first', 'second'), Preprocess(SIZE), _layers, 'digest')
COUNTED = MODEL._replace(apply=_counted)
RANDOM = MODEL._replace(layers=('first',), apply=_random, stochastic=True)


@pytest.fixture(autouse=True)
def nothing_shown():
    SHOWN.clear()


def images(n, seed=0, *, twice=()):
    """A set of n images; those of `twice` show what the image before them shows."""
    found = list(np.random.default_rng(seed).integers(0, 256, (n, SIZE, SIZE, 3), np.uint8))
    for k in twice:
        found[k] = found[k - 1].copy()
    return stimuli.of_arrays(f'set {seed}', {'stimulus_id': [f'{seed}-{k}' for k in range(n)]}, found)


def plain(shown, layer='second'):
    """Without batches."""
    pixels = np.stack([shown.image(i) for i in shown.ids]) / np.float32(255)
    return np.asarray(_layers(jnp.asarray(pixels, jnp.float32))[layer])[:, None]


def ran():
    jax.effects_barrier()
    return len(SHOWN)


@each('n', [1, BATCH, 2 * BATCH + 3])
def test_batches_give_what_one_call_gives(n):
    SHOWN.clear()
    shown = images(n)
    for layer in MODEL.layers:
        np.testing.assert_allclose(activations.activations(MODEL, shown, layer), plain(shown, layer), atol=1e-6)
    activations.activations(COUNTED, shown, 'first')
    assert ran() == -(-n // BATCH) and {s[0] for s in SHOWN} == {min(n, BATCH)}  # the last one is filled


def test_the_last_batch_is_filled_with_its_last_image():
    shown = images(BATCH + 2)
    model = MODEL._replace(apply=_with_last)
    found = activations.activations(model, shown, 'first')[BATCH:, 0]
    pixels = np.stack([shown.image(i) for i in shown.ids[BATCH:]]) / np.float32(255)
    np.testing.assert_allclose(found, pixels + pixels[-1], rtol=1e-5)


def test_equal_images_are_run_once_whatever_they_are_called():
    shown = images(BATCH + 2, twice=(3, 9))
    np.testing.assert_allclose(activations.activations(COUNTED, shown, 'second'), plain(shown), atol=1e-6)
    assert ran() == 1
    assert activations._work(COUNTED, shown, 1).rows[[2, 3, 8, 9], 0].tolist() == [2, 2, 7, 7]


def test_a_layer_that_is_not_there_is_named():
    with pytest.raises(RequestError, match=r"unknown layer of small 'secnd'; did you mean 'second'"):
        activations.activations(MODEL, images(2), 'secnd')


def test_texts_and_values_that_are_not_finite_are_refused():
    texts = stimuli.of_arrays('texts', {'stimulus_id': ['a']}, ['a text'])
    with pytest.raises(RequestError, match='choose a model that reads texts'):
        activations.activations(MODEL, texts, 'first')
    broken = MODEL._replace(apply=lambda x: {'first': jnp.log(x - 2)})
    with pytest.raises(RequestError, match='layer first gives values that are not finite'):
        activations.activations(broken, images(2), 'first')


# ---- budgets ----


def test_what_is_too_large_is_refused_before_anything_runs():
    shown = images(10)
    with pytest.raises(RequestError, match=r'small: activations for 10 rows take .*allowed are .*or allow more memory'):
        activations.activations(COUNTED, shown, 'first', limits=Limits(memory=4 * 10 * 16 - 1))
    with pytest.raises(RequestError, match='first'):  # the last of several too
        activations.stream(COUNTED, shown, ['second', 'first'], limits=Limits(memory=4 * 10 * 16 - 1))
    assert ran() == 0
    activations.activations(COUNTED, shown, 'first', limits=Limits(memory=4 * 10 * 16))


def test_layers_come_one_by_one_where_they_do_not_fit_together():
    shown, sizes = images(5), {'first': 4 * 5 * 16, 'second': 4 * 5 * 3}
    assert activations.n_bytes(activations.shapes(MODEL, MODEL.layers), 5) == sizes
    together = dict(activations.stream(COUNTED, shown, MODEL.layers))
    assert ran() == 1
    apart = dict(activations.stream(COUNTED, shown, MODEL.layers, limits=Limits(memory=4 * 5 * 16)))
    assert ran() == 3 and list(apart) == list(together) == ['first', 'second']
    for layer in together:
        np.testing.assert_array_equal(apart[layer], together[layer])


def test_groups_fill_the_budget_in_order():
    sizes = {'a': 3, 'b': 3, 'c': 5, 'd': 1}
    assert activations.groups(sizes, 6) == [('a', 'b'), ('c', 'd')]
    assert activations.groups(sizes, 5) == [('a',), ('b',), ('c',), ('d',)]
    assert activations.groups({}, 5) == []


# ---- kept activations ----


def kept(folder):
    return sorted(folder.glob('*.npz'))


def test_kept_activations_are_read_and_not_computed_again(tmp_path):
    limits, shown = Limits(folder=tmp_path), images(BATCH + 3)
    first = activations.activations(COUNTED, shown, 'second', limits=limits)
    assert ran() == 2 and len(kept(tmp_path)) == 2
    again = activations.activations(COUNTED, shown, 'second', limits=limits)
    assert ran() == 2
    np.testing.assert_array_equal(again, first)
    activations.activations(COUNTED, shown, 'first', limits=limits)
    assert ran() == 4 and len(kept(tmp_path)) == 4


def test_other_weights_preprocess_layer_or_pixels_are_never_served_stale(tmp_path):
    limits, shown = Limits(folder=tmp_path), images(3)
    activations.activations(COUNTED, shown, 'first', limits=limits)
    other = images(3, 1)
    renamed = stimuli.of_arrays('other', {'stimulus_id': ['a', 'b', 'c']}, [shown.image(i) for i in shown.ids])
    same_names = stimuli.of_arrays(
        'set 0', {'stimulus_id': shown.ids}, [other.image(i) for i in other.ids]
    )  # changed data under the old name
    for model, what, computed in (
        (COUNTED, renamed, 0),
        (COUNTED, same_names, 1),
        (COUNTED._replace(digest='new'), shown, 1),
        (COUNTED._replace(preprocess=Preprocess(SIZE, (0.5, 0, 0))), shown, 1),
    ):
        before = ran()
        found = activations.activations(model, what, 'first', limits=limits)
        assert ran() - before == computed
        np.testing.assert_allclose(found, activations.activations(model, what, 'first'), atol=1e-6)


def test_a_damaged_file_is_computed_again(tmp_path):
    limits, shown = Limits(folder=tmp_path), images(3)
    first = activations.activations(MODEL, shown, 'second', limits=limits)
    (path,) = kept(tmp_path)
    whole = path.read_bytes()
    for damage in (b'', whole[:-30], whole.replace(whole[90:94], b'\0\1\2\3')):
        path.write_bytes(damage)
        np.testing.assert_array_equal(activations.activations(MODEL, shown, 'second', limits=limits), first)
        assert path.read_bytes() == whole


def test_the_files_that_were_not_used_for_longest_go_first(tmp_path):
    limits = Limits(folder=tmp_path)
    activations.activations(COUNTED, images(3, 1), 'second', limits=limits)
    (oldest,) = kept(tmp_path)
    size = oldest.stat().st_size
    limits = limits._replace(disk=2 * size)
    activations.activations(COUNTED, images(3, 2), 'second', limits=limits)
    (second,) = set(kept(tmp_path)) - {oldest}
    activations.activations(COUNTED, images(3, 1), 'second', limits=limits)  # used again
    assert ran() == 2
    activations.activations(COUNTED, images(3, 3), 'second', limits=limits)
    assert oldest.exists() and not second.exists() and len(kept(tmp_path)) == 2


# ---- stochastic models ----


@pytest.mark.slow
def test_draws_depend_on_image_trial_and_seed_not_on_the_batch():
    shown = images(BATCH)
    found = activations.activations(RANDOM, shown, 'first', n_trials=3)
    assert found.shape == (BATCH, 3, 2)
    few = stimuli.of_arrays('few', {'stimulus_id': ['x', 'y']}, [shown.image(shown.ids[k]) for k in (40, 7)])
    np.testing.assert_allclose(activations.activations(RANDOM, few, 'first', n_trials=2), found[[40, 7], :2], atol=1e-6)
    other = activations.activations(RANDOM, few, 'first', n_trials=2, limits=Limits(seed=1))
    assert (other != found[[40, 7], :2]).all()
    assert len(np.unique(found)) == found.size and abs(found.std(1).mean() - 0.8) < 0.15


@pytest.mark.slow
def test_an_image_that_comes_twice_is_drawn_anew():
    shown = images(4, twice=(1,))
    found = activations.activations(RANDOM, shown, 'first', n_trials=2)
    assert len(np.unique(found[:2])) == 8
    more = activations.activations(RANDOM, images(1), 'first', n_trials=4)
    np.testing.assert_allclose(found[:2].reshape(1, 4, 2), more, atol=1e-6)


@pytest.mark.slow
def test_kept_draws_belong_to_their_seed_and_trials(tmp_path):
    shown = images(2)
    for seed in (0, 1):
        for n in (1, 3):
            limits = Limits(folder=tmp_path, seed=seed)
            found = activations.activations(RANDOM, shown, 'first', n_trials=n, limits=limits)
            plain = activations.activations(RANDOM, shown, 'first', n_trials=n, limits=Limits(seed=seed))
            np.testing.assert_allclose(found, plain, atol=1e-6)


def test_kept_batches_of_one_image_are_not_taken_for_each_other(tmp_path):
    found = activations.activations(RANDOM, images(1), 'first', n_trials=2 * BATCH, limits=Limits(folder=tmp_path))
    assert len(kept(tmp_path)) == 2 and len(np.unique(found)) == found.size


def test_trials_of_a_model_that_is_not_stochastic_are_one():
    assert activations.activations(MODEL, images(3), 'second', n_trials=5).shape == (3, 1, 3)
