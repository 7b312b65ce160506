"""Where the pretrained weights of each model come from, and under which terms."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from jbench.spec.model import SCRATCH, ModelSpec

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
    bank: str = ''  # of BANKS: the places of electrodes that it was learnt with

    @property
    def words(self) -> str:
        """Where it comes from and under which terms."""
        if self.url == PACKAGED:
            return f'{self.file} of jbench itself, licence: {self.licence}'
        gate = '' if self.access == 'open' else '; accept its terms there, then set HF_TOKEN to a token of that account'
        name, _, revision = self.url.removeprefix('hf:models/').partition('@')
        at = f' at revision {revision}' if revision else ''
        return f'{self.file} of https://huggingface.co/{name}{at}, licence: {self.licence}{gate}'


def _braindecode(name: str, licence: str, sha256: str = '', folder: str = '') -> Checkpoint:
    return Checkpoint(f'hf:models/braindecode/{name}', 'model.safetensors', licence, sha256=sha256, folder=folder)


def _reve(name: str, sha256: str = '') -> Checkpoint:
    return Checkpoint(
        f'hf:models/brain-bzh/reve-{name}', 'model.safetensors', REVE, sha256, 'terms', bank='reve_positions'
    )


LUNA = 'CC BY-ND 4.0: nothing that is made of it may be shared'
REVE = 'terms of use that the hub shows'
UNREAD = 'stated on its card, which jbench has not read'
BSD = 'BSD-3 by its card'
TINY = '833e24f189f22ab857b3840407f106bc6b1a5ffa0a77501ea9a7f620f64218dc'
# Revisions and digests are those that public code which reads these files names (docs/foundation.md)
CHECKPOINTS = {
    'bendr': _braindecode(
        'braindecode-bendr@191f221cd56de8203899ea9a8d0f43238724f8b6',
        'Apache-2.0 by its card; the authors state none',
    ),
    'biot': _braindecode('biot-pretrained-six-datasets-18chs', UNREAD),
    'labram': _braindecode(
        'labram-pretrained@0563b6c626e7b40d9a36653b763715db94d945d7',
        BSD,
        '53b752edb366fd6395dd3cb7d63ae3e1e16aabed040aa0901d64ef32e8f444f8',
    ),
    'cbramod': _braindecode(
        'cbramod-pretrained@584cdc415913739a05d84bf0c1cb3db397764507',
        BSD,
    ),
    **{
        f'luna_{size}': Checkpoint(
            'hf:models/PulpBio/LUNA@999c1af0fd6fbfb43ed47169c61fe9faa49cfe9f',
            f'LUNA_{size}.safetensors',
            LUNA,
            shared=False,
        )
        for size in ('base', 'large', 'huge')
    },
    'reve_small': _reve('small'),
    'reve_base': _reve(
        'base@fa9a2163a4b7c0a42c8e28b56077ef9c368944dc',
        '8ecc650619598748286c2457f81f5c6bd12e8bb59db44f7b02af1955c44de8fe',
    ),
    'reve_large': _reve('large@ef50ef670d25e19f41898e462af05a503562eaeb'),
    **{
        name: _braindecode(
            'signal-jepa_without-chans@213876ea30f0764fd25c055efcb55d1d1652a371', UNREAD, folder='signal_jepa'
        )
        for name in ('signal_jepa', 'signal_jepa_post_local', 'signal_jepa_pre_local')
    },
    **{f'steegformer_{size}': _braindecode(f'STEEGFormer-{size}', 'MIT') for size in ('small', 'base', 'large')},
    'eegpt': _braindecode(
        'eegpt-pretrained@e41cb3ae2ce4fd9eb736862292c91f8128d15618',
        f'{BSD}; Apache-2.0 of the code of its authors',
        'fb34c20609983324679b9534f9d17a2289a232d0276dd2b8b7d5b088f876f621',
    ),
    **{
        f'eegdino_{size}': _braindecode(f'eegdino-{size}-pretrained', f'{BSD}; the authors state none')
        for size in ('small', 'medium')
    },
    'jbench_tiny': Checkpoint(PACKAGED, 'jbench_tiny.safetensors', 'Apache-2.0', sha256=TINY),
    'codebrain': _braindecode('codebrain-pretrained', 'Apache-2.0 of the authors; its card says BSD-3'),
}


# files of places of electrodes {name: [x, y, z]}
BANKS = {'reve_positions': Checkpoint('hf:models/brain-bzh/reve-positions', 'positions.json', UNREAD)}


def not_to_share(model: ModelSpec) -> str | None:
    """What the licence of the weights that a model starts from says of those it learns, where they may not be passed
    on."""
    checkpoint = CHECKPOINTS.get(model.name)
    if checkpoint is None or checkpoint.shared or model.weights in ('', SCRATCH):
        return None
    return f'licence of the weights: {checkpoint.licence}; what is learnt from them is for you alone'


def checkpoint_of(name: str) -> Checkpoint:
    """The weights of a model, or a bank of places."""
    return CHECKPOINTS.get(name) or BANKS[name]


def place_of(name: str, data_dir: Path) -> Path:
    """Where the published weights of a model, or a bank, lie once they are fetched."""
    checkpoint = checkpoint_of(name)
    if checkpoint.url == PACKAGED:
        return FOLDER / checkpoint.file
    return data_dir / 'weights' / (checkpoint.folder or name) / checkpoint.file
