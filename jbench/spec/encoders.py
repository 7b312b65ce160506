"""The table of encoders of stimuli, and the names of parts of sounds and films."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from jbench.spec.errors import unknown

if TYPE_CHECKING:
    pass


Segment = tuple[float, float]  # (start, duration) in s, of a sound or a film


class Encoder(NamedTuple):
    """A frozen network that turns stimuli into vectors."""

    model: str  # what its hub calls it
    kind: str  # of stimulus: 'image' | 'text' | 'word' | 'sound' | 'video'
    size: int  # of the vectors
    layers: tuple[float, ...] = ()  # averaged: shares of the depth, rounded down to whole layers
    groups: int = 1  # equal parts of a window whose means are joined
    frequency: float = 0.0  # Hz, of the vectors that are averaged over a window
    files: str = '*.json|*.txt|*.safetensors'  # of those that its hub has, the ones that are read

    @property
    def timed(self) -> bool:
        """Whether a vector belongs to a part of the stimulus."""
        return self.kind in ('sound', 'video')


ENCODERS = {
    'dinov2_giant': Encoder('facebook/dinov2-giant', 'image', 1536, (0.6667,)),
    'gpt2': Encoder('openai-community/gpt2', 'text', 768, (0.6667,)),
    'spacy_lg': Encoder('spacy/en_core_web_lg', 'word', 300, files='*'),
    'wav2vec2_xlsr': Encoder(
        'facebook/wav2vec2-large-xlsr-53',
        'sound',
        4096,
        (0.875, 0.917, 0.958, 1.0),
        groups=4,
        frequency=120.0,
        files='*.json|*.safetensors|pytorch_model.bin',  # an older model; its hub has no other form of it
    ),
    'vjepa2_vitg': Encoder('facebook/vjepa2-vitg-fpc64-256', 'video', 1408, (0.6667,), frequency=4.0),
}


def find(name: str) -> Encoder:
    """An encoder of the table. Raises: RequestError with those there are."""
    if name not in ENCODERS:
        raise unknown('encoder', name, ENCODERS)
    return ENCODERS[name]


def part_name(file: str, start: float, duration: float) -> str:
    """What a part of a sound or film is called (s from its beginning; may begin before it)."""
    return f'{file}@{start:.3f}+{duration:.3f}'


def split_name(name: str) -> tuple[str, Segment]:
    """The inverse of `part_name`."""
    file, start, duration = re.fullmatch(r'(.*)@(-?[\d.]+)\+([\d.]+)', name, re.DOTALL).groups()  # type: ignore[union-attr]
    return file, (float(start), float(duration))
