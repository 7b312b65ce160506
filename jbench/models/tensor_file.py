"""Whether a file of weights is one, whole, and of numbers that jbench reads: told without reading its tensors.

A safetensors file is a number, a header of JSON of that length, and the tensors one after the other; the header says
type, shape and place of each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from jbench.models.seen import LONGEST, SIZE
from jbench.spec.checkpoints import PICKLED
from jbench.spec.errors import RequestError

if TYPE_CHECKING:  # plans are made without numpy
    import numpy as np

# types of numbers by their names in files of safetensors, as the bytes there; numpy has no bfloat16
BFLOAT = 'BF16'
TYPES = {
    **{f'F{bits}': f'<f{bits // 8}' for bits in (16, 32, 64)},
    **{f'{kind}{bits}': f'<{kind.lower()}{bits // 8}' for kind in 'IU' for bits in (8, 16, 32, 64)},
    **{BFLOAT: '<u2', 'BOOL': '|b1', 'C64': '<c8'},
}
FLOATS = 'F16, BF16, F32 or F64'
TORCH = b'\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19'  # the first number in a bare pickle of torch.save
LFS = b'version https://git-lfs.github.com/'
SHARD = re.compile(r'-\d{5}-of-(?!00001)(\d{5})\.')  # in the name of one of several files, as transformers has it
SPLIT = '.index.json'  # how the list of such files ends
EXPECTED = 'expected a safetensors file, or a state_dict that torch.save wrote'
JOIN = 'jbench reads one file: load each, and save all tensors in one with safetensors'
STATE_DICT = 'torch.save(torch.jit.load(THIS).state_dict(), OTHER) writes one'


def require(path: Path) -> None:
    """Refuse a file that no network can start from, before data are prepared for it.

    Raises: OSError; RequestError that says what it is, or lacks, and what to do.
    """
    with path.open('rb') as file:
        begin = file.read(100)
        file.seek(0)
        if path.name.endswith(SPLIT):
            raise RequestError(f'{path}: no weights, but the list of files that they are split over; {JOIN}')
        if begin[SIZE:].startswith(b'{'):
            require_read(path, whole_header(path, file, '; fetch it again'))
        elif fault := _of_torch(file, begin) if begin.startswith(PICKLED) else _no_weights(begin, path.stat().st_size):
            raise RequestError(f'{path}: {fault}')
        if shard := SHARD.search(path.name):
            raise RequestError(f'{path}: one of {int(shard[1])} files that weights are split over; {JOIN}')


def parsed(blob: bytes, path: str | Path, remedy: str, said: str = '') -> dict[str, np.ndarray]:
    """The content of a safetensors file, bfloat16 as float32, which holds it exactly.

    Args:
        blob: the file.
        path: where it lies.
        remedy: what to do where it is damaged, after what separates it ('; fetch it again').
        said: what is said of such a file first.

    Raises: RequestError where it is damaged; for numbers of a type that is not read.
    """
    from safetensors import deserialize

    require_read(path, whole_header(path, BytesIO(blob), remedy, said))
    return {name: _numbers(part).reshape(part['shape']) for name, part in deserialize(blob)}


def _numbers(part: Mapping[str, Any]) -> np.ndarray:
    """The numbers of a tensor, flat; those of bfloat16 are the upper halves of float32."""
    import numpy as np

    flat = np.frombuffer(part['data'], TYPES[part['dtype']])
    return (flat.astype('<u4') << 16).view('<f4') if part['dtype'] == BFLOAT else flat


def whole_header(path: str | Path, file: BinaryIO, remedy: str, said: str = '') -> dict[str, Any]:
    """The header of a safetensors file, by tensor. Raises: RequestError with a remedy where the file is not whole."""
    size = file.seek(0, 2)
    file.seek(0)
    length = int.from_bytes(file.read(SIZE), 'little')
    fault = f'{path}: {said}not a complete safetensors file: '
    if SIZE + length > size or length > LONGEST:
        raise RequestError(f'{fault}{size} bytes, of which its header alone would take {SIZE + length}{remedy}')
    try:
        header = json.loads(file.read(length))
        wrong, end = _laid_out(header)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise RequestError(f'{fault}its header, which says what it holds, is damaged{remedy}') from error
    if wrong:
        raise RequestError(f'{fault}its header puts tensor {wrong} at a wrong place, or is damaged{remedy}')
    if size != SIZE + length + end:
        raise RequestError(f'{fault}{size} bytes, expected {SIZE + length + end} by its header{remedy}')
    return dict(header)


def _laid_out(header: dict[str, Any]) -> tuple[str, int]:
    """The first tensor that is not where the one before ends, or not as large as its numbers ('': none), and where the
    last ends; what is said beside them is taken away. Raises: any error of a header that is none."""
    if not all(isinstance(said, str) for said in (header.pop('__metadata__', None) or {}).values()):
        raise TypeError
    end = 0
    for first, last, name in sorted((*part['data_offsets'], name) for name, part in header.items()):
        kind, shape = header[name]['dtype'], header[name]['shape']
        if not all(type(n) is int and n >= 0 for n in (first, last, *shape)):
            raise TypeError
        held = math.prod(shape) * int(TYPES[kind][-1]) if kind in TYPES else last - first
        if first != end or last - first != held:
            return name, last
        end = last
    return '', end


def require_read(path: str | Path, header: dict[str, Any]) -> None:
    """Refuse numbers of a type that is not read, as those of eight bits. Raises: RequestError."""
    strange = [name for name, part in header.items() if part['dtype'] not in TYPES]
    if strange:
        more = f' (and {len(strange) - 1} more)' if strange[1:] else ''
        raise RequestError(
            f'{path}: tensor {strange[0]}{more} holds numbers of type {header[strange[0]]["dtype"]}, which jbench does '
            f'not read; expected {FLOATS}: store them as F32'
        )


def _of_torch(file: BinaryIO, begin: bytes) -> str:
    """What is wrong with a pickled file, without opening what is pickled; '' where it may be one of torch.save."""
    if not begin.startswith(PICKLED[0]):
        return '' if TORCH in begin else f'no weights: a pickle that torch.save did not write; {EXPECTED}'
    try:
        with ZipFile(file) as archive:
            names = archive.namelist()
    except (BadZipFile, ValueError, NotImplementedError):
        return 'not a complete file of torch.save: its end is not there, or is damaged; fetch it again'
    if not any(name.endswith('/data.pkl') for name in names):
        return f'no weights: an archive that torch.save did not write; {EXPECTED}'
    if any(name.endswith('/constants.pkl') for name in names):
        return f'no weights, but a whole network of TorchScript; {EXPECTED}: {STATE_DICT}'
    return ''


def _no_weights(begin: bytes, size: int) -> str:
    """What a file is instead."""
    line = begin.partition(b'\n')[0][:40]
    what = f'{size} bytes of another kind' if size else 'an empty file'
    if begin.startswith(LFS):
        what = 'what Git LFS keeps in place of a file (`git lfs pull` fetches it)'
    elif line.isascii() and line.decode().strip().isprintable() and size > SIZE:
        what = f'text ({line.decode().strip()!r})'
    return f'no weights: {what}; {EXPECTED}'
