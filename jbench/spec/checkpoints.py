"""Where the pretrained weights of each model come from, and under which terms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

PACKAGED = 'package'  # url of a file that comes with jbench
FOLDER = Path(__file__).parents[1] / 'models' / 'foundation'  # where it lies
PICKLED = (b'PK\x03\x04', b'\x80')  # how files of torch.save begin: zip, or a bare pickle


class Checkpoint(NamedTuple):
    """A file of weights at a hub."""

    url: str  # 'hf:models/OWNER/NAME', or 'hf:models/OWNER/NAME@REVISION'; PACKAGED
    file: str  # its name there
    licence: str  # as the hub says it
    sha256: str = ''  # of the file; '': the hub's own list tells
    access: str = 'open'  # anything else: the hub asks for an agreement first
    shared: bool = True  # False: the licence forbids to pass on what is made of it, as tuned weights are
    folder: str = ''  # under <data_dir>/weights, where models share the file; '': the name of the model

    @property
    def words(self) -> str:
        """Where it comes from and under which terms."""
        if self.url == PACKAGED:
            return f'{self.file} of jbench itself, licence: {self.licence}'
        gate = '' if self.access == 'open' else '; accept its terms there, then set HF_TOKEN to a token of that account'
        return f'{self.file} of huggingface.co/{self.url.removeprefix("hf:models/")}, licence: {self.licence}{gate}'


def _braindecode(name: str, licence: str, file: str = 'model.safetensors', folder: str = '') -> Checkpoint:
    return Checkpoint(f'hf:models/braindecode/{name}', file, licence, folder=folder)


LUNA = 'CC BY-ND 4.0: nothing that is made of it may be shared'
REVE = 'terms of use that the hub shows'
UNREAD = 'stated on its card, which jbench has not read'
TINY = '833e24f189f22ab857b3840407f106bc6b1a5ffa0a77501ea9a7f620f64218dc'
CHECKPOINTS = {
    'bendr': _braindecode('braindecode-bendr', 'Apache-2.0 by its card; the authors state none'),
    'biot': _braindecode('biot-pretrained-six-datasets-18chs', UNREAD),
    'labram': _braindecode('labram-pretrained', UNREAD),
    'cbramod': _braindecode('cbramod-pretrained', UNREAD),
    'luna_base': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_base.safetensors', LUNA, shared=False),
    'luna_large': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_large.safetensors', LUNA, shared=False),
    'luna_huge': Checkpoint('hf:models/PulpBio/LUNA', 'LUNA_huge.safetensors', LUNA, shared=False),
    'reve_small': Checkpoint('hf:models/brain-bzh/reve-small', 'model.safetensors', REVE, access='terms'),
    'reve_base': Checkpoint('hf:models/brain-bzh/reve-base', 'model.safetensors', REVE, access='terms'),
    'reve_large': Checkpoint('hf:models/brain-bzh/reve-large', 'model.safetensors', REVE, access='terms'),
    **{
        name: _braindecode('signal-jepa_without-chans', UNREAD, folder='signal_jepa')
        for name in ('signal_jepa', 'signal_jepa_post_local', 'signal_jepa_pre_local')
    },
    **{f'steegformer_{size}': _braindecode(f'STEEGFormer-{size}', 'MIT') for size in ('small', 'base', 'large')},
    'eegpt': _braindecode('eegpt-pretrained', 'Apache-2.0 of the code; the weights state none'),
    **{
        f'eegdino_{size}': _braindecode(f'eegdino-{size}-pretrained', 'BSD-3 by its card; the authors state none')
        for size in ('small', 'medium')
    },
    'jbench_tiny': Checkpoint(PACKAGED, 'jbench_tiny.safetensors', 'Apache-2.0', sha256=TINY),
    'codebrain': _braindecode('codebrain-pretrained', 'Apache-2.0 of the authors; its card says BSD-3'),
}


def place_of(model: str, data_dir: Path) -> Path:
    """Where the published weights of a model lie, once they are fetched."""
    checkpoint = CHECKPOINTS[model]
    if checkpoint.url == PACKAGED:
        return FOLDER / checkpoint.file
    return data_dir / 'weights' / (checkpoint.folder or model) / checkpoint.file
