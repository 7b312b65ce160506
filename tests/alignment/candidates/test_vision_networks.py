"""AlexNet, ResNet and ViT against what torchvision and timm computed with the same weights."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import vision
from each import each
from places import FIXTURES
from safetensors.numpy import save_file

from jbench.alignment import activations, candidates, importers
from jbench.alignment.candidates import alexnet, network, resnet, vit
from jbench.spec.errors import RequestError

GOLDEN = np.load(FIXTURES / 'alignment' / 'networks.npz')
TENSORS = {
    'alexnet': alexnet.tensors(),
    'resnet18': resnet.tensors('resnet18'),
    'resnet50': resnet.tensors('resnet50'),
    'vit_s': vit.tensors(),
}
N_PARAMETERS = {'alexnet': 61_100_840, 'resnet18': 11_689_512, 'resnet50': 25_557_032, 'vit_s': 22_050_664}
EACH = [n if n == 'resnet18' else pytest.param(n, marks=pytest.mark.slow) for n in vision.NETWORKS]


def layout(name):
    lines = bytes(GOLDEN[f'{name}/layout']).decode().splitlines()
    return {line.split()[0]: tuple(map(int, line.split()[1:])) for line in lines}


@each('name', vision.NETWORKS)
def test_tensors_have_the_names_and_shapes_of_the_reference(name):
    assert {t.name: t.shape for t in TENSORS[name]} == layout(name)
    counted = [t for t in TENSORS[name] if t.path and t.path[0] == 'params']
    assert sum(np.prod(t.shape) for t in counted) == N_PARAMETERS[name]


@pytest.mark.slow
@pytest.mark.parametrize('name', EACH)
def test_every_layer_equals_the_reference(name, tmp_path):
    save_file(vision.state(name, layout(name)), tmp_path / 'weights.safetensors')
    model = candidates.image_model(name, weights=tmp_path / 'weights.safetensors')
    found = jax.device_get(activations.called(model.apply, model.layers, vision.images()))
    assert tuple(found) and set(found) == set(model.layers)
    for layer in model.layers:
        expected = GOLDEN[f'{name}/{layer}']
        scale = expected[-1]  # root mean square
        np.testing.assert_allclose(
            vision.sample(name, layer, found[layer]) / scale, expected / scale, rtol=1e-5, atol=1e-5, err_msg=layer
        )


@each('name', vision.NETWORKS)
def test_random_weights_depend_on_the_seed_alone(name):
    draws = {'alexnet': alexnet.DRAWS, 'vit_s': vit.DRAWS}.get(name, resnet.DRAWS)
    net = network.Network(name, None, TENSORS[name][:8], draws, (), None)
    first, again, other = (network.drawn(net, seed) for seed in (0, 0, 1))
    assert all((first[k] == again[k]).all() for k in first)
    assert any((first[k] != other[k]).any() for k in first)


def test_random_weights_have_the_spread_of_torch():
    drawn = network.drawn(network.Network('', None, TENSORS['resnet18'], resnet.DRAWS, (), None), 0)
    assert abs(drawn['layer4.1.conv2.weight'].std() / np.sqrt(2 / (512 * 9)) - 1) < 0.01
    assert abs(drawn['fc.weight']).max() <= 1 / np.sqrt(512) < abs(drawn['fc.weight']).max() * 1.01
    assert (drawn['bn1.weight'] == 1).all() and (drawn['layer2.0.downsample.1.weight'] == 1).all()
    assert (drawn['bn1.bias'] == 0).all() and (drawn['bn1.running_var'] == 1).all()
    drawn = network.drawn(network.Network('', None, TENSORS['vit_s'][:8], vit.DRAWS, (), None), 0)
    assert abs(drawn['pos_embed'].std() / 0.02 - 1) < 0.02 and (drawn['blocks.0.norm1.weight'] == 1).all()


@pytest.fixture(scope='module')
def like():
    model = candidates.image_model('resnet18')
    return model.apply.args[0]


def written(folder, **changes):
    found = vision.state('resnet18', layout('resnet18')) | changes
    save_file({k: v for k, v in found.items() if v is not None}, folder / 'weights.safetensors')
    return folder / 'weights.safetensors'


def test_every_tensor_that_does_not_fit_is_named(tmp_path, like):
    path = written(
        tmp_path,
        **{
            'conv1.weight': None,
            'fc.weight': np.zeros((10, 512), np.float32),
            'more': np.zeros(3, np.float32),
            'bn1.bias': np.full(64, np.nan, np.float32),
        },
    )
    with pytest.raises(RequestError) as error:
        importers.read(path, TENSORS['resnet18'], like)
    message = str(error.value)
    assert str(path) in message and 'missing: conv1.weight [64, 3, 7, 7]' in message
    assert 'wrong shape: fc.weight is [10, 512], expected [1000, 512]' in message
    assert 'unexpected: more [3]' in message and 'not finite: bn1.bias' in message


@pytest.mark.slow
def test_counters_of_batches_may_be_missing_all_together(tmp_path, like):
    names = [t.name for t in TENSORS['resnet18'] if not t.path]
    path = written(tmp_path, **dict.fromkeys(names))
    importers.read(path, TENSORS['resnet18'], like)
    with pytest.raises(RequestError, match=r'missing: bn1\.num_batches_tracked'):
        importers.read(written(tmp_path, **dict.fromkeys(names[:1])), TENSORS['resnet18'], like)


def test_a_file_that_is_absent_or_damaged_is_said_so(tmp_path, like):
    with pytest.raises(RequestError, match='no file of weights'):
        importers.read(tmp_path / 'absent.safetensors', TENSORS['resnet18'], like)
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(RequestError, match='not a complete safetensors file'):
        importers.read(path, TENSORS['resnet18'], like)


def test_the_digest_changes_with_any_tensor(like):
    tensors = TENSORS['resnet18']
    before = importers.digest('a', tensors, like)
    assert before == importers.digest('a', tensors, like) != importers.digest('b', tensors, like)
    changed = jax.tree.map(np.array, like)
    changed['params']['fc']['bias'][3] += 1e-6
    assert importers.digest('a', tensors, changed) != before
