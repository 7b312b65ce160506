"""What jbench runs, as frozen dataclasses of plain values. Imports nothing heavy.

A *task* (what is asked) on a *dataset* (who was recorded) with a *model* (who answers) under a *recipe* (how it
learns) is a *cell*. Every spec has one canonical JSON form, and the hash of that form is its identity.

What tasks, datasets and models of one's own are made of can be imported from here.
"""

from jbench.spec.challenges import Angles, Jitter, Stream
from jbench.spec.dataset import Dataset, Download
from jbench.spec.errors import RequestError
from jbench.spec.model import ModelSpec, Signal
from jbench.spec.task import (
    ByBlock,
    ByGroup,
    BySimilarity,
    Classes,
    Crop,
    Embedding,
    Exclusion,
    Keystrokes,
    Labels,
    Predefined,
    Recipe,
    SignalSpec,
    StateClasses,
    Task,
    Trim,
    Value,
    Where,
    Window,
)

__all__ = [
    'Angles',
    'ByBlock',
    'ByGroup',
    'BySimilarity',
    'Classes',
    'Crop',
    'Dataset',
    'Download',
    'Embedding',
    'Exclusion',
    'Jitter',
    'Keystrokes',
    'Labels',
    'ModelSpec',
    'Predefined',
    'Recipe',
    'RequestError',
    'Signal',
    'SignalSpec',
    'StateClasses',
    'Stream',
    'Task',
    'Trim',
    'Value',
    'Where',
    'Window',
]
