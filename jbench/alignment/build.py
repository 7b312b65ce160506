"""The brain model of a candidate: of the tables, of a file of features, or of a file of one's own."""

from __future__ import annotations

import hashlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.alignment import brain_model
from jbench.alignment.candidates import CANDIDATES, image_model
from jbench.alignment.image_model import LOGITS, ImageModel
from jbench.files import sha256_file
from jbench.models import user_model
from jbench.plan import user_files
from jbench.spec.benchmark import AlignmentCell
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from jbench.alignment.activations import Limits


def build(comparison: AlignmentCell, seed: int, data_dir: Path | None, weights: Path | None, limits: Limits) -> Any:
    """A `BrainModel` with a digest.

    A function of one's own gives an `ImageModel`, whose last layer stands for every region, or a model that `committed`
    made.

    Args:
        comparison: whose candidate it is.
        seed: of drawn weights.
        data_dir: of the recordings, where answers of models lie, too.
        weights: a file of them; None: drawn.
        limits: memory, kept activations, whom to tell.

    Raises: RequestError for weights or files that do not fit, and whatever a file of one's own raises, with the line.
    """
    chosen = comparison.candidate
    path, _, name = chosen.target.rpartition(':')
    if chosen.layer:
        model = image_model(chosen.name, seed, weights)
        layers = dict.fromkeys(brain_model.REGIONS, chosen.layer)
        row = CANDIDATES[chosen.name]
        return brain_model.committed(model, layers, row.visual_degrees, readout=chosen.layer, limits=limits)
    if chosen.name in CANDIDATES:
        return brain_model.candidate(chosen.name, seed, weights, limits=limits)
    if chosen.target.endswith('.npz'):
        from jbench.alignment.candidates import features

        return features.from_file(Path(chosen.target))
    if not path.endswith('.py'):
        return getattr(import_module(path), name)(comparison.benchmark, data_dir)
    function = user_files.names_in('--model', path)[name]
    with user_model.explained(f'model {chosen.name}', Path(path)):
        made = function(*([seed] if chosen.drawn else []))
    if isinstance(made, ImageModel):  # the file is part of it: kept activations of another one do not count
        whole = f'{chosen.name} {sha256_file(path)} {seed} {made.digest}'
        made = made._replace(digest=hashlib.sha256(whole.encode()).hexdigest())
        last = [layer for layer in made.layers if layer != LOGITS][-1]
        return brain_model.committed(made, dict.fromkeys(brain_model.REGIONS, last), limits=limits)
    if not isinstance(made, brain_model.CommittedModel):
        found = type(made).__name__
        raise RequestError(f'model {chosen.name}: expected an ImageModel or what committed() gives, got {found}')
    return made
