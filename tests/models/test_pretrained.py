"""Files of pretrained weights: read whole or refused with every difference; nothing in them runs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jax
import narrow
import numpy as np
import pytest
from answers import linear
from extras import needs_torch
from safetensors import safe_open
from safetensors.numpy import save_file
from written import one_window

from jbench.models import pretrained
from jbench.models.model import Model
from jbench.models.torch_weights import Exceptions
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.spec.model import Signal


def network() -> Model:
    """Two tensors, of which one is the head."""
    made = linear(Signal(n_chans=2, n_times=8, sfreq=1.0), 2)
    head = (Exceptions(head=('*bias',)),)
    return made._replace(checkpoints=head)


def names() -> dict[str, tuple[int, ...]]:
    drawn = network().init(jax.random.key(0))
    return {name: value.shape for name, value in network().to_torch(drawn).items()}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read(path: Path, kept: Path) -> dict[str, np.ndarray]:
    return pretrained.arrays(path, sha256(path), kept)


def start(found: Any, where: str = 'file') -> dict[str, np.ndarray]:
    model = network()
    drawn = model.init(jax.random.key(0))
    return model.to_torch(pretrained.begin(model, found, drawn, where))


def test_what_both_have_is_read_and_the_head_stays_as_it_was_drawn(tmp_path):
    (weight,) = (name for name in names() if not name.endswith('bias'))
    save_file({weight: np.full(names()[weight], 7, np.float32)}, tmp_path / 'w.safetensors')
    found = start(read(tmp_path / 'w.safetensors', tmp_path))
    assert (found[weight] == 7).all()
    said: list[str] = []
    pretrained.begin(network(), found, network().init(jax.random.key(0)), 'file', say=said.append)
    assert said == ['file: 1 tensors read; new, as drawn: 1 (params.bias); of the file not read: 1 (params.bias)']
    drawn = network().to_torch(network().init(jax.random.key(0)))
    assert all((found[name] == drawn[name]).all() for name in names() if name != weight)


def test_every_difference_is_named():
    (weight,) = (name for name in names() if not name.endswith('bias'))
    with pytest.raises(RequestError) as error:
        start({'other.weight': np.ones(2, np.float32)}, 'mine.safetensors')
    told = str(error.value)
    assert told.startswith('mine.safetensors: ') and f'missing: {weight}' in told and 'other.weight' in told
    with pytest.raises(RequestError, match=weight):
        start({weight: np.ones((9, 9), np.float32)})
    with pytest.raises(RequestError, match='takes no pretrained weights'):
        pretrained.begin(network()._replace(checkpoints=()), {}, {}, 'file')


def test_the_layout_that_fits_best_explains_what_is_wrong():
    (weight,) = (name for name in names() if not name.endswith('bias'))
    layouts = (*network().checkpoints, Exceptions(renamed=(('old.*', '*'),), head=('*bias',)))
    model = network()._replace(checkpoints=layouts)
    drawn = model.init(jax.random.key(0))
    found = pretrained.begin(model, {f'old.{weight}': np.full(names()[weight], 3, np.float32)}, drawn, 'file')
    assert (model.to_torch(found)[weight] == 3).all()


def test_a_damaged_file_and_one_that_changed(tmp_path):
    save_file({'a': np.ones(300, np.float32)}, path := tmp_path / 'w.safetensors')
    digest = sha256(path)
    long = tmp_path / 'long.safetensors'  # whose first byte is that of a pickle
    save_file({'a' * 67: np.ones(3, np.float32)}, long)
    assert long.read_bytes()[0] == 0x80 and [*read(long, tmp_path)] == ['a' * 67]
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(RequestError, match='not a complete safetensors file'):
        read(path, tmp_path)
    with pytest.raises(RequestError, match='changed while the run went on'):
        pretrained.arrays(path, digest, tmp_path)


def test_numbers_of_sixteen_bits_are_read_exactly_and_others_are_refused_by_name(tmp_path):
    values = np.array([[1.5, -3.0, 0.0], [2.0**-130, np.inf, np.nan]], np.float32)
    halves = (values.view(np.uint32) >> 16).astype(np.uint16)
    assert ((halves.astype(np.uint32) << 16) == values.view(np.uint32)).all(), 'bfloat16 holds them'

    def written(**parts: tuple[str, np.ndarray]) -> Path:
        """A file of safetensors, by hand: numpy has no such types."""
        header, data = dict[str, Any](), b''
        for name, (kind, array) in parts.items():
            ends = [len(data), len(data := data + array.tobytes())]
            header[name] = {'dtype': kind, 'shape': array.shape, 'data_offsets': ends}
        words = json.dumps(header).encode()
        (path := tmp_path / 'w.safetensors').write_bytes(len(words).to_bytes(8, 'little') + words + data)
        return path

    found = read(written(a=('BF16', halves), b=('BF16', halves[0, 0]), c=('F16', np.ones(2, np.float16))), tmp_path)
    assert found['a'].dtype == np.float32 and found['b'].shape == () and found['b'] == 1.5
    np.testing.assert_array_equal(found['a'], values)
    assert (found['c'] == 1).all()
    with pytest.raises(
        RequestError, match='tensor a holds numbers of type F8_E4M3, which jbench does not read'
    ) as error:
        read(written(a=('F8_E4M3', np.ones(2, np.uint8))), tmp_path)
    assert 'complete' not in str(error.value)


@pytest.mark.slow
def test_a_file_that_braindecode_wrote(tmp_path, monkeypatch):
    """Every tensor but its head is read, and the encoder answers what braindecode's does."""
    path = Path(__file__).parents[1] / 'fixtures' / 'networks' / 'foundation' / 'steegformer_written.safetensors'
    with safe_open(path, 'numpy') as file:
        written, answer = set(file.keys()), json.loads(file.metadata()['answer'])
    model, _ = narrow.built('steegformer_small', monkeypatch, n_times=128)
    drawn, said = model.init(jax.random.key(0)), []
    begun = pretrained.begin(model, read(path, tmp_path), drawn, 'file', say=said.append)
    after = model.to_torch(begun)
    assert written - after.keys() == {'final_layer.weight', 'final_layer.bias'}
    assert after.keys() - written == {'head.weight', 'head.bias'} and len(written) > 30
    assert said[0].startswith(f'file: {len(written) - 2} tensors read; new, as drawn: 2 (')
    batch = {'x': one_window()[None].astype(np.float32), 'mask': np.ones(1, bool)}
    features = model.apply(begun, batch, train=False, key=None).features['penultimate'][0]
    assert np.ptp(answer) > 0.1
    np.testing.assert_allclose(features, answer, rtol=1e-5, atol=1e-5)


def test_a_pickled_file_asks_for_torch(tmp_path, monkeypatch):
    (path := tmp_path / 'w.pt').write_bytes(b'PK\x03\x04 anything')
    monkeypatch.setattr(pretrained, 'find_spec', lambda name: None)
    with pytest.raises(MissingExtraError, match='checkpoints'):
        read(path, tmp_path)


@needs_torch
def test_pickled_files_are_read_once_flat_wrapped_or_nested(tmp_path):
    import torch

    one = {'a.weight': torch.arange(4.0).reshape(2, 2), 'a.count': torch.tensor(3.0)}
    cases = {
        'flat': (one, ['a.count', 'a.weight']),
        'wrapped': ({'model': one, 'optimizer': {'m': torch.ones(2)}}, ['a.count', 'a.weight']),
        'nested': ({'x': one, 'y': one, 'config': {'n': 1}}, ['x.a.count', 'x.a.weight', 'y.a.count', 'y.a.weight']),
    }
    for name, (content, expected) in cases.items():
        torch.save(content, path := tmp_path / f'{name}.pt')
        found = read(path, tmp_path / 'kept')
        assert sorted(found) == expected and (found[expected[1]] == [[0, 1], [2, 3]]).all()
        assert found[expected[0]].shape == ()
        kept = tmp_path / 'kept' / f'{sha256(path)}.safetensors'
        kept.write_bytes(kept.read_bytes()[:-1] + b'x')  # damaged: read anew
        assert (read(path, tmp_path / 'kept')[expected[1]] == found[expected[1]]).all()
        digest, before = sha256(path), path.read_bytes()
        path.write_bytes(before + b' ')
        with pytest.raises(RequestError, match='changed while the run went on'):
            pretrained.arrays(path, digest, tmp_path / 'kept')


@needs_torch
def test_a_payload_never_runs(tmp_path):
    import os
    import pickle

    import torch

    class Payload:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / 'canary'),)

    torch.save({'a': torch.ones(2), 'b': Payload()}, tmp_path / 'zip.pt')
    (tmp_path / 'bare.pt').write_bytes(pickle.dumps(Payload()))
    for name in ('zip.pt', 'bare.pt'):
        with pytest.raises(RequestError, match='holds more than tensors') as error:
            read(tmp_path / name, tmp_path / 'kept')
        assert ('mkdir)' in str(error.value)) is (name == 'zip.pt')
        assert 'weights_only' not in str(error.value), 'nobody is advised to run it'
    assert not (tmp_path / 'canary').exists() and not (tmp_path / 'kept').exists()
    pickle.loads((tmp_path / 'bare.pt').read_bytes())
    assert (tmp_path / 'canary').exists(), 'it would have run'
