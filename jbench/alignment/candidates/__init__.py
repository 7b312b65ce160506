"""Image models that need no download: which there are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jbench.spec.errors import RequestError, unknown

if TYPE_CHECKING:
    from jbench.alignment.image_model import ImageModel


class Candidate(NamedTuple):
    """One row of the table. The layers of regions are set by hand, by depth, not chosen on any recording."""

    target: str  # module:function(seed, weights) -> ImageModel
    title: str
    citation: str
    regions: dict[str, str]  # V1, V2, V4, IT -> layer
    readout: str  # layer whose activations a classifier reads
    takes_weights: bool = False  # from files of torchvision or timm
    drawn: bool = False  # something of it is random, drawn by the seed
    version: int = 1  # raise when its features change
    visual_degrees: float = 8


def _everywhere(layer: str) -> dict[str, str]:
    return dict.fromkeys(('V1', 'V2', 'V4', 'IT'), layer)


_RESNET = {'V1': 'layer1', 'V2': 'layer2', 'V4': 'layer3', 'IT': 'layer4'}
CANDIDATES = {
    'pixels': Candidate(
        'jbench.alignment.candidates.pixels:pixels',
        'The image itself, 28 x 28 pixels in colour',
        '',
        _everywhere('pixels'),
        'pixels',
    ),
    'gabor': Candidate(
        'jbench.alignment.candidates.gabor:gabor',
        'Energy of log-Gabor filters, 4 frequencies x 8 orientations, and coarse colour: a model of V1',
        'Field 1987; Adelson & Bergen 1985',
        _everywhere('energy'),
        'energy',
    ),
    'hmax': Candidate(
        'jbench.alignment.candidates.hmax:hmax',
        'Simple and complex cells in two stages, templates drawn from noise',
        'Riesenhuber & Poggio 1999; Serre et al. 2007',
        {'V1': 'c1', 'V2': 'c2', 'V4': 'c2', 'IT': 'c2'},
        'c2',
        drawn=True,
    ),
    'alexnet': Candidate(
        'jbench.alignment.candidates.alexnet:alexnet',
        'AlexNet, random weights',
        'Krizhevsky 2014',
        {'V1': 'features.2', 'V2': 'features.5', 'V4': 'features.9', 'IT': 'features.12'},
        'classifier.5',
        takes_weights=True,
        drawn=True,
    ),
    'resnet18': Candidate(
        'jbench.alignment.candidates.resnet:resnet18',
        'ResNet-18, random weights',
        'He et al. 2016',
        _RESNET,
        'avgpool',
        takes_weights=True,
        drawn=True,
    ),
    'resnet50': Candidate(
        'jbench.alignment.candidates.resnet:resnet50',
        'ResNet-50, random weights',
        'He et al. 2016',
        _RESNET,
        'avgpool',
        takes_weights=True,
        drawn=True,
    ),
    'vit_s': Candidate(
        'jbench.alignment.candidates.vit:vit_s',
        'ViT-S/16, random weights',
        'Dosovitskiy et al. 2021; Touvron et al. 2021',
        {'V1': 'blocks.1', 'V2': 'blocks.3', 'V4': 'blocks.6', 'IT': 'blocks.10'},
        'norm',
        takes_weights=True,
        drawn=True,
    ),
}


def image_model(name: str, seed: int = 0, weights: Path | None = None) -> ImageModel:
    """A candidate of the table.

    Args:
      name: one of CANDIDATES.
      seed: of weights, or of templates; pixels and gabor have none.
      weights: a file of torchvision or timm, instead of the seed.

    Raises: RequestError for an unknown name, and for weights that do not fit or are not taken.
    """
    if name not in CANDIDATES:
        raise unknown('model', name, CANDIDATES)
    row = CANDIDATES[name]
    if weights is not None and not row.takes_weights:
        takers = ', '.join(n for n, c in CANDIDATES.items() if c.takes_weights)
        raise RequestError(f'{name} has no weights, so {weights} is of no use to it; models with weights: {takers}')
    module, _, function = row.target.partition(':')
    made: ImageModel = getattr(import_module(module), function)(*([seed, weights] if row.takes_weights else [seed]))
    return made
