"""Who answers: a line in the table of models, and the signal that a model is built for."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from jbench.spec.objectives import OBJECTIVES
from jbench.spec.overrides import Override
from jbench.spec.task import PARADIGMS

CLASSES = ('classes', 'state')
# a window; keystrokes ask for one a frame
ONE_ANSWER = (*CLASSES, 'labels', 'value', 'embedding', 'angles', *OBJECTIVES)
SERIES = tuple(p for p in PARADIGMS if p != 'fmri')  # what a network of electrodes fits: all but volumes
OVER_TIME = tuple(p for p in SERIES if p not in ('', 'fnirs'))

SCRATCH = 'none'  # weights of a model that could start from pretrained ones, and starts from random ones

Position = tuple[float, float, float] | None  # of a channel: metres in MNE's head coordinates; None: not known


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What a model is built for: the shape and meaning of one window."""

    n_chans: int
    n_times: int
    sfreq: float  # Hz
    # for networks that ask (ModelSpec.asks):
    ch_names: tuple[str, ...] = ()
    positions: tuple[Position, ...] = ()  # of the channels; one montage for all recordings
    channel_mask: bool = False  # whether each batch says which channels the recordings of its windows have


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A line in the table of models."""

    name: str
    version: int = 1  # raise when a mended network answers otherwise: no older result counts for it
    title: str
    family: str  # 'classic' | 'foundation' | 'baselines' | 'user'
    target: str  # 'module:factory'
    kind: str = 'network'  # 'network': init/apply, trained by fit.py; 'estimator': fitted once
    trained: bool = True  # False: one batch sets its batch statistics, no weight is changed (chance)
    options: tuple[Override, ...] = ()  # of the factory, as asked for: --model=eegnet:dropout=0.5
    published: tuple[Override, ...] = ()  # options of the factory under recipe.published
    targets: tuple[str, ...] = ()  # kinds of target that it fits; (): all
    paradigms: tuple[str, ...] = ()  # paradigms that it fits; (): all
    least_times: int = 1  # samples of a window
    times_multiple: int = 1  # windows must be so many samples long, or a multiple of it
    asks: tuple[typing.Literal['ch_names', 'positions', 'channel_mask'], ...] = ()  # of Signal
    overrides: tuple[Override, ...] = ()  # fields of a task that it wants otherwise: ('signal.sfreq', 200.0)
    on_the_fly: str = ''  # what the network itself does to the windows that it is given, in words
    weights: str = ''  # SHA-256 of the pretrained weights that it starts from; 'none': it could, and does not
    own_weights: bool = False  # these are a file of the user's, not the published one
    head: bool = True  # has a last layer that is told from the rest (Model.head); without: no weights, probe, together
    pretraining: tuple[str, ...] = ()  # names of the datasets that these were learnt on
    places: str = ''  # PATH@SHA256 of the file of places of electrodes that it goes by; '': those of MNE, if any
    own_places: bool = False  # this is a file of the user's, not the one that belongs to the published weights
    accelerator: bool = False  # far too slow on a CPU: a group holds it only with --device=gpu or tpu
    citation: str = ''
    needs: tuple[str, ...] = ()  # packages beyond the core ones, and the extra that brings them
    extra: str = ''
    n_parameters: int | None = None  # without the head, at 22 channels x 256 samples, 4 classes (training.md)

    @property
    def with_options(self) -> str:
        """The name with the options: 'eegnet:dropout=0.5'."""
        return ':'.join((self.name, *(f'{name}={value}' for name, value in self.options)))

    @property
    def full_name(self) -> str:
        """The same with weights that are not the published ones: 'labram:weights=none', 'labram:weights=1a2b3c4d'."""
        other = self.own_weights or self.weights == SCRATCH
        where = f':positions={self.places_digest[:8]}' if self.own_places else ''
        return f'{self.with_options}{where}:weights={self.weights[:8]}' if other else f'{self.with_options}{where}'

    @property
    def places_digest(self) -> str:
        """SHA-256 of the file of places of electrodes; '' without one."""
        return self.places.rpartition('@')[2]
