"""Sets of stimuli: unique ids, images and texts, digests of what they hold."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from jbench.alignment import stimuli
from jbench.spec.errors import RequestError

RNG = np.random.default_rng(0)
IMAGES = list(RNG.integers(0, 256, (3, 5, 4, 3), dtype=np.uint8))
TABLE = {'stimulus_id': list('bac'), 'degrees': [8.0, 8.0, 4.0]}


def test_images_come_by_id_and_ids_in_order():
    made = stimuli.of_arrays('three', TABLE, IMAGES)
    assert made.ids == ['b', 'a', 'c'] and len(made) == 3
    np.testing.assert_array_equal(made.image('a'), IMAGES[1])
    with pytest.raises(RequestError, match="has no 'd'; its ids begin"):
        made.image('d')
    with pytest.raises(RequestError, match='is an image'):
        made.text('a')


def test_texts_come_by_id():
    made = stimuli.of_arrays('words', {'stimulus_id': ['x', 'y']}, ['a cat', 'ein Hündchen'])
    assert made.text('y') == 'ein Hündchen'
    with pytest.raises(RequestError, match='is a text'):
        made.image('x')


def test_digests_tell_contents_tables_and_orders_apart():
    made = stimuli.of_arrays('three', TABLE, IMAGES)
    assert made.digest == stimuli.of_arrays('other name', TABLE, [i.copy() for i in IMAGES]).digest
    changed = [i.copy() for i in IMAGES]
    changed[2][0, 0, 0] ^= 1
    others = {
        stimuli.of_arrays('three', TABLE, changed).digest,
        stimuli.of_arrays('three', TABLE | {'degrees': [8.0, 8.0, 8.0]}, IMAGES).digest,
        stimuli.of_arrays('three', TABLE, [i.transpose(1, 0, 2) for i in IMAGES]).digest,
        stimuli.of_arrays('three', TABLE, [i.reshape(4, 5, 3) for i in IMAGES]).digest,
        stimuli.choose(made, ['b', 'a'], 'two').digest,
        stimuli.choose(made, ['a', 'b'], 'two').digest,
    }
    assert len(others | {made.digest}) == 7


def test_files_are_read_when_asked_and_missing_ones_are_named(tmp_path):
    for name, image in zip('bac', IMAGES, strict=True):
        Image.fromarray(image).save(tmp_path / f'{name}.png')
    table = TABLE | {'filename': [f'{n}.png' for n in 'bac']}
    made = stimuli.of_folder('three', table, tmp_path)
    np.testing.assert_array_equal(made.image('c'), IMAGES[2])
    (tmp_path / 'c.png').write_bytes(b'no image')
    with pytest.raises(RequestError, match=r'c.png: not a readable image'):
        made.image('c')
    (tmp_path / 'a.png').unlink()
    with pytest.raises(RequestError, match=r'1 files are missing, .*a.png first'):
        stimuli.of_folder('three', table, tmp_path)


def test_gray_and_transparent_files_become_three_channels(tmp_path):
    Image.fromarray(IMAGES[0][..., 0]).save(tmp_path / 'gray.png')
    made = stimuli.of_folder('one', {'stimulus_id': ['g'], 'filename': ['gray.png']}, tmp_path)
    np.testing.assert_array_equal(made.image('g'), np.repeat(IMAGES[0][..., :1], 3, 2))


def test_stimuli_that_cannot_be_shown_say_why():
    made = stimuli.absent('old', {'stimulus_id': ['a']}, 'the images were never published')
    with pytest.raises(RequestError, match="'a' of old cannot be shown: the images were never published"):
        made.image('a')


@pytest.mark.parametrize(
    ('table', 'n', 'said'),
    [
        ({'name': ['a']}, 1, 'no column stimulus_id'),
        ({'stimulus_id': ['a', 'b', 'a']}, 3, "'a' comes twice"),
        ({'stimulus_id': ['a', 3, 'b']}, 3, '3 is no text'),
        ({'stimulus_id': ['a']}, 3, '3 stimuli for 1 rows'),
    ],
)
def test_wrong_tables_are_refused(table, n, said):
    with pytest.raises(RequestError, match=said):
        stimuli.of_arrays('set', table, IMAGES[:n])


def test_images_of_another_form_are_refused():
    made = stimuli.of_arrays('set', {'stimulus_id': ['a']}, [np.zeros((4, 4, 3))])
    with pytest.raises(RequestError, match=r'float64 \[4, 4, 3\], expected uint8'):
        made.image('a')
