"""Files that no network can start from are refused before anything is prepared: what is wrong, where, what to do."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import needs_torch
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save

from jbench import run
from jbench.models import tensor_file
from jbench.plan import request
from jbench.spec.errors import RequestError

WHOLE = save({'a': np.ones((30, 10), np.float32), 'b': np.ones(3, np.float32)})
NAMED = '-00001-of-00002.safetensors'


def by_hand(header: Any, data: bytes = b'') -> bytes:
    """Of types that numpy lacks, or with a fault."""
    words = json.dumps(header).encode()
    return len(words).to_bytes(8, 'little') + words + data


def one(kind: str, shape: Any, first: Any = 0, last: Any = 8) -> bytes:
    return by_hand({'net.a': {'dtype': kind, 'shape': shape, 'data_offsets': [first, last]}}, bytes(8))


def zipped(*names: str) -> bytes:
    with zipfile.ZipFile(blob := io.BytesIO(), 'w') as archive:
        for name in names:
            archive.writestr(name, b'x' * 500)
    return blob.getvalue()


def says(size: int, expected: int) -> str:
    return f'not a complete safetensors file: {size} bytes, expected {expected} by its header; fetch it again'


N = len(WHOLE)
WRONG_PLACE = (
    'not a complete safetensors file: its header puts tensor net.a at a wrong place, or is damaged; fetch it again'
)
DAMAGED = 'not a complete safetensors file: its header, which says what it holds, is damaged; fetch it again'
FAULTS = {
    'cut': (WHOLE[:-5], says(N - 5, N)),
    'long': (WHOLE + b'..', says(N + 2, N)),
    'cut in the header': (WHOLE[:40], '40 bytes, of which its header alone would take 128; fetch it again'),
    'JSON': ((5).to_bytes(8, 'little') + b'{"a":', DAMAGED),
    'metadata': (by_hand({'__metadata__': {'a': 1}}), DAMAGED),
    'half a size': (one('F32', [2.0]), DAMAGED),
    'below zero': (one('F32', [-1, -2]), DAMAGED),
    'shape': (one('F32', [3]), WRONG_PLACE),
    'place': (one('U8', [4], 4), WRONG_PLACE),
    'F8_E4M3': (
        one('F8_E4M3', [8]),
        'tensor net.a holds numbers of type F8_E4M3, which jbench does not read; expected F16',
    ),
    'F8_E5M2': (
        one('F8_E5M2', [8]),
        'of type F8_E5M2, which jbench does not read; expected F16, BF16, F32 or F64: store',
    ),
    'empty': (b'', 'no weights: an empty file; expected a safetensors file'),
    'three bytes': (b'abc', 'no weights: 3 bytes of another kind; expected a safetensors file'),
    'text': (b'<!DOCTYPE html>\n<html>', "no weights: text ('<!DOCTYPE html>'); expected a safetensors file"),
    'Git LFS': (
        b'version https://git-lfs.github.com/spec/v1\noid ',
        'no weights: what Git LFS keeps in place of a file',
    ),
    'pickle': (pickle.dumps({'a': [1]}), 'no weights: a pickle that torch.save did not write; expected'),
    'archive': (zipped('a.npy'), 'no weights: an archive that torch.save did not write; expected'),
    'TorchScript': (
        zipped('w/data.pkl', 'w/code/__torch__.py', 'w/constants.pkl'),
        'no weights, but a whole network of TorchScript; expected a safetensors file, or a state_dict that torch.save '
        'wrote: torch.save(torch.jit.load(THIS).state_dict(), OTHER) writes one',
    ),
    'cut archive': (zipped('w/data.pkl')[:-30], 'not a complete file of torch.save: its end is not there'),
}


def refusal(path: Path) -> str:
    with pytest.raises(RequestError) as error:
        request.plan(request.Request('p3', 'biot', weights=str(path), simulated='yes'), None, Path('absent'))
    return str(error.value)


@pytest.mark.parametrize('fault', FAULTS)
def test_a_file_is_refused_in_words_of_ours(fault, tmp_path):
    """Whatever its name says it is."""
    blob, told = FAULTS[fault]
    (path := tmp_path / 'w.safetensors').write_bytes(blob)
    said = refusal(path)
    assert said.startswith(f'{path}: ') and told in said and '\n' not in said
    assert 'Error' not in said and 'deserializ' not in said


def test_the_command_ends_before_data_are_prepared(tmp_path, capsys):
    (path := tmp_path / 'w.safetensors').write_bytes(FAULTS['F8_E4M3'][0])
    work = tmp_path / 'work'
    asked = ['--task=p3', '--simulated=yes', '--debug', '--model=labram', f'--weights={path}', f'--workdir={work}']
    assert run.main(asked) == 2
    said = capsys.readouterr().err
    assert f'{path}: tensor net.a holds' in said and 'prepare' not in said and not (work / 'prepared').exists()


def test_weights_that_are_split_over_files_say_so(tmp_path):
    (tmp_path / 'model.safetensors.index.json').write_text('{"weight_map": {}}')
    (tmp_path / f'model{NAMED}').write_bytes(WHOLE)
    join = 'jbench reads one file: load each, and save all tensors in one with safetensors'
    index = tmp_path / 'model.safetensors.index.json'
    assert refusal(tmp_path) == f'--weights={tmp_path}: holds weights that are split ({index}); {join}'
    assert refusal(index) == f'{index}: no weights, but the list of files that they are split over; {join}'
    part = tmp_path / f'model{NAMED}'
    assert refusal(part) == f'{part}: one of 2 files that weights are split over; {join}'
    part.rename(only := tmp_path / 'model-00001-of-00001.safetensors')
    tensor_file.require(only)
    (part := tmp_path / 'pytorch_model-00002-of-00003.bin').write_bytes(zipped('archive/data.pkl'))
    assert refusal(part) == f'{part}: one of 3 files that weights are split over; {join}'
    part.rename(only := tmp_path / 'pytorch_model.bin')
    tensor_file.require(only)


def test_a_file_is_whole_where_safetensors_has_it_so(tmp_path):
    """Of files with a changed byte in the header, and of whole ones with every type."""
    path, rng, n = tmp_path / 'w.safetensors', np.random.default_rng(0), 8 + int.from_bytes(WHOLE[:8], 'little')
    told = save({'n': np.zeros((), np.int64), 'none': np.ones((0, 3), np.float32)}, metadata={'format': 'pt'})
    blobs = [WHOLE, told, one('BF16', [2, 2]), one('C64', [1]), one('BOOL', [8])]
    for _ in range(300):
        changed = bytearray(WHOLE)
        changed[rng.integers(n)] = rng.choice(list(b'0123456789"[]{},:aFIU \x00\xff'))
        blobs.append(bytes(changed))
    refused = 0
    for blob in blobs:
        path.write_bytes(blob)
        try:
            tensor_file.require(path)
        except RequestError:
            refused += 1
            continue
        try:
            deserialize(blob)
        except SafetensorError as error:
            pytest.fail(f'{blob[:n]!r}: {error}')
    assert 100 < refused < 300
    for blob in blobs[:5]:
        path.write_bytes(blob)
        tensor_file.require(path)
        assert [a.nbytes for a in tensor_file.parsed(blob, path, '').values()]
    assert tensor_file.parsed(blobs[4], path, '')['net.a'].dtype == bool


@needs_torch
def test_files_of_torch_pass_whatever_they_are_called(tmp_path):
    import torch

    path = tmp_path / 'w.safetensors'
    for how in ({}, {'_use_new_zipfile_serialization': False}, {'pickle_protocol': 4}):
        torch.save({'a': torch.ones(300)}, path, **how)
        tensor_file.require(path)
        path.write_bytes(path.read_bytes()[:200] if how else path.read_bytes()[:-30])
        if not how:
            assert 'not a complete file of torch.save' in refusal(path)
    torch.save({'a': torch.ones(3)}, path, _use_new_zipfile_serialization=False, pickle_protocol=4)
    tensor_file.require(path)
