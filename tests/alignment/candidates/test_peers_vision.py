"""Networks of images against torchvision and timm themselves, at every layer; skipped where they are not installed.

pip install -e '.[peers,test]'
python -m pytest tests/alignment/candidates/test_peers_vision.py
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import jax
import numpy as np
import pytest
import vision
from safetensors.numpy import save_file

from jbench.alignment import activations, candidates
from jbench.models.torch_weights import export

if find_spec('torchvision') is None or find_spec('timm') is None:
    pytest.skip('torchvision and timm are not installed: the extra peers', allow_module_level=True)


@pytest.mark.parametrize('name', vision.NETWORKS)
def test_equals_the_reference_at_every_layer(name, tmp_path):
    """From a file that torch wrote and from a safetensors file: one digest, the same numbers."""
    import torch

    net = vision.reference(name)
    torch.save(net.state_dict(), tmp_path / 'weights.pth')
    save_file({k: v.numpy() for k, v in net.state_dict().items()}, tmp_path / 'weights.safetensors')
    models = [candidates.image_model(name, weights=tmp_path / f'weights.{kind}') for kind in ('pth', 'safetensors')]
    assert models[0].digest == models[1].digest
    expected = vision.activations(net, vision.images())
    found = jax.device_get(activations.called(models[0].apply, models[0].layers, vision.images()))
    for layer in models[0].layers:
        wanted = expected[layer].reshape(found[layer].shape)
        scale = np.abs(wanted).max()
        np.testing.assert_allclose(found[layer] / scale, wanted / scale, rtol=1e-5, atol=1e-5, err_msg=layer)


@pytest.mark.parametrize('name', vision.NETWORKS)
def test_initial_weights_have_the_spread_of_the_reference(name):
    """Each tensor: its mean and its standard deviation, to what its number of values allows."""
    import torch

    torch.manual_seed(0)
    models = vision.torchvision().models
    if name == 'vit_s':
        import timm

        net = timm.create_model('vit_small_patch16_224', pretrained=False)
    else:
        net = getattr(models, name)()
    ours = candidates.image_model(name)
    module = import_module(candidates.CANDIDATES[name].target.partition(':')[0])
    tensors = module.tensors(name) if name.startswith('resnet') else module.tensors()
    found = export(tensors, ours.apply.args[0])
    for key, value in net.state_dict().items():
        theirs, mine = value.numpy().astype(float), found[key].astype(float)
        slack = 6 * max(theirs.std(), mine.std()) / np.sqrt(theirs.size) + 1e-7
        assert abs(theirs.mean() - mine.mean()) < slack and abs(theirs.std() - mine.std()) < slack, key
