"""Where the pretrained weights of each model come from, and under which terms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PICKLED = (b'PK\x03\x04', b'\x80')  # how files of torch.save begin: zip, or a bare pickle


class Checkpoint(NamedTuple):
    """A file of weights at a hub."""

    url: str  # 'hf:models/OWNER/NAME', or 'hf:models/OWNER/NAME@REVISION'
    file: str  # its name there
    licence: str  # as the hub says it
    sha256: str = ''  # of the file; '': the hub's own list tells
    access: str = 'open'  # anything else: the hub asks for an agreement first
    shared: bool = True  # False: the licence forbids to pass on what is made of it, as tuned weights are
    folder: str = ''  # under <data_dir>/weights, where models share the file; '': the name of the model

    @property
    def words(self) -> str:
        """Where it comes from and under which terms."""
        gate = '' if self.access == 'open' else '; accept its terms there, then set HF_TOKEN to a token of that account'
        return f'{self.file} of huggingface.co/{self.url.removeprefix("hf:models/")}, licence: {self.licence}{gate}'


def _braindecode(name: str, licence: str, file: str = 'model.safetensors', folder: str = '') -> Checkpoint:
    return Checkpoint(f'hf:models/braindecode/{name}', file, licence, folder=folder)


LUNA = 'CC BY-ND 4.0: nothing that is made of it may be shared'
REVE = 'terms of use that the hub shows'
CHECKPOINTS = {
    'bendr': _braindecode('braindecode-bendr', 'Apache-2.0 by its card; the authors state none'),
    'biot': _braindecode('biot-pretrained-six-datasets-18chs', 'as its card says'),
    'labram': _braindecode('labram-pretrained', 'as its card says'),
    'cbramod': _braindecode('cbramod-pretrained', 'as its card says'),
    'signal_jepa': _braindecode('signal-jepa_without-chans', 'as its card says'),
    'luna_base': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_base.safetensors', LUNA, shared=False),
    'luna': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_large.safetensors', LUNA, shared=False),
    'luna_huge': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_huge.safetensors', LUNA, shared=False),
    'reve': Checkpoint('hf:models/brain-bzh/reve-base', 'model.safetensors', REVE, access='terms'),
    'reve_large': Checkpoint('hf:models/brain-bzh/reve-large', 'model.safetensors', REVE, access='terms'),
    'steegformer_small': _braindecode('STEEGFormer-small', 'MIT'),
    'steegformer': _braindecode('STEEGFormer-base', 'MIT'),
    'steegformer_large': _braindecode('STEEGFormer-large', 'MIT'),
    'eegpt': _braindecode('eegpt-pretrained', 'Apache-2.0 (of the code; the weights state none)'),
    'eegdino_small': _braindecode('eegdino-small-pretrained', 'BSD-3 by its card; the authors state none'),
    'eegdino': _braindecode('eegdino-medium-pretrained', 'BSD-3 by its card; the authors state none'),
    'codebrain': _braindecode('codebrain-pretrained', 'Apache-2.0 of the authors; the card says BSD-3'),
}


def place_of(model: str, data_dir: Path) -> Path:
    """Where the published weights of a model lie, once they are fetched."""
    checkpoint = CHECKPOINTS[model]
    return data_dir / 'weights' / (checkpoint.folder or model) / checkpoint.file
