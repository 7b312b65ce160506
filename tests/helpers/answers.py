"""A source of tiny recordings whose answers are known: words with an embedding, keys, and a number.

Nine channels at 64 Hz. Each second shows one of 24 words; what six channels do then is a linear image of the word's
first six embedding dimensions. Four times a second a key may be pressed, and lifts one of the other three.
"""

from __future__ import annotations

import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import mne
import numpy as np

from jbench.data.recording import Recording, RecordingRef
from jbench.models.model import Batch, Model, network
from jbench.plan import cells
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.model import ModelSpec, Signal
from jbench.spec.task import Embedding, Keystrokes, Recipe, SignalSpec, Task, Value, Window

SFREQ, SECONDS, N_SUBJECTS, KEYS = 64.0, 60, 6, 'abc'
WORDS = [f'word{k:02d}' for k in range(24)]
FACTS: dict[str, Any] = {'n_subjects': N_SUBJECTS, 'n_recordings': N_SUBJECTS, 'n_chans': 9, 'sfreq': (SFREQ,)}
TEXT = {'licence': 'CC0', 'citation': '-', 'host': 'generated', 'layout': 'nothing'}
DATASET = Dataset(
    name='Answers', title='Answers', source=__name__, simulated=True, event_types=('Word',), **FACTS, **TEXT
)
SIGNAL = SignalSpec(sfreq=SFREQ, band=None, notch=(), scaler='robust')
RECIPE = {'lr': 0.05, 'weight_decay': 0.0, 'batch_size': 32, 'max_epochs': 30, 'patience': 30, 'label_smoothing': 0.0}
TASKS = {
    'words': Task(
        target=Embedding(encoder='spacy_lg', field='text', group='text', scaled=True),
        recipe=Recipe(**{**RECIPE, 'loss': 'clip'}),
        metric='top5_acc',
        **(common := {'name': 'answers', 'category': 'test', 'title': '-', 'datasets': ('Answers',)}),
        window=Window(trigger='Word', duration=1.0),
        signal=SIGNAL,
    ),
    'keys': Task(
        target=Keystrokes(event='Key', core=(0.0, 4.0), blank=5, length=16),
        recipe=Recipe(**{**RECIPE, 'loss': 'ctc', 'batch_size': 16, 'warmup': 0.4, 'start_div': 10.0, 'end_div': 10.0}),
        metric='cer',
        **common,
        window=Window(trigger='Eeg', duration=4.0, stride=1.0),
        signal=SIGNAL,
    ),
    'age': Task(
        target=Value(field='weight', scaled=True),
        recipe=Recipe(**{**RECIPE, 'loss': 'squared_error', 'sampler': 'bins'}),
        metric='mae',
        **common,
        window=Window(trigger='Word', duration=1.0),
        signal=SIGNAL,
    ),
}


def vectors(names: list[str], size: int) -> np.ndarray:
    """What stands in for an encoder: f32 [N, size], far from 0 and of unequal spread."""
    found = np.stack([np.random.default_rng(WORDS.index(n)).normal(size=size) for n in names])
    return (found * np.linspace(1, 3, size) + 20).astype(np.float32)


def recordings(dataset: Dataset, root: object) -> list[RecordingRef]:
    return [RecordingRef('Answers', f'{k:02d}', '0', '', (), ()) for k in range(N_SUBJECTS)]


def read(ref: RecordingRef) -> Recording:
    """The recording of a subject, whose number is the seed."""
    rng, n = np.random.default_rng(100 + int(ref.subject)), int(SECONDS * SFREQ)
    x = 0.2 * rng.normal(size=(9, n))
    words = rng.choice(WORDS, SECONDS)
    latent = (vectors(list(words), 300)[:, :6] - 20) / 2
    step = int(SFREQ)
    for k, z in enumerate(latent):
        x[:6, k * step + 8 : k * step + 56] += z[:, None]
    slots = np.flatnonzero(rng.random(4 * SECONDS) < 0.5)
    keys = rng.integers(0, 3, len(slots))
    for slot, key in zip(slots, keys, strict=True):
        at = slot * step // 4
        x[6 + key, at + 2 : at + 12] += 8
    info = mne.create_info([f'E{k}' for k in range(9)], SFREQ, 'eeg')
    events = {
        'onset': np.r_[np.arange(SECONDS, dtype=float), slots / 4],
        'duration': np.r_[np.ones(SECONDS), np.full(len(slots), 0.1)],
        'type': np.r_[['Word'] * SECONDS, ['Key'] * len(slots)],
        'text': np.r_[words, [''] * len(slots)],
        'key': np.r_[[''] * SECONDS, np.array(list(KEYS))[keys]],
        'weight': np.r_[[f'{300 + 80 * z[0]:.3f}' for z in latent], [''] * len(slots)],
    }
    return Recording(mne.io.RawArray(x * 1e-5, info, verbose='ERROR'), events)


class _Linear(nn.Module):
    """One linear map of the means over quarters of the window, or (frames) of each 1/16 s of it."""

    n_out: int
    frames: int

    @nn.compact
    def __call__(self, batch: Batch, *, train: bool, key: jax.Array | None) -> jax.Array:
        b, c, _ = batch['x'].shape
        x = batch['x'].reshape(b, c, self.frames or 4, -1)
        x = x.transpose(0, 2, 1, 3).reshape(b, self.frames, -1) if self.frames else x.mean(-1).reshape(b, 1, -1)
        weights = self.param('weights', nn.initializers.normal(0.1 / math.sqrt(x.shape[-1])), (x.shape[-1], self.n_out))
        out = jnp.einsum('bfi,ik->bfk', x, weights) + self.param('bias', nn.initializers.zeros, (self.n_out,))
        return out if self.frames else out[:, 0]


def linear(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    return network(_Linear(n_out, 0), signal)


def frames(signal: Signal, n_out: int, *, axis_name: str | None = None) -> Model:
    """An answer each 1/16 s."""
    return network(_Linear(n_out, 16 * signal.n_times // int(SFREQ)), signal)


def cell(name: str, model: str = '', **changes: Any) -> Cell:
    """A task on these recordings, by the linear network or a model of the table; fields of the task may be changed."""
    import dataclasses

    from jbench.models import MODELS
    from jbench.spec.overrides import override

    task = TASKS[name]
    for path, value in changes.items():
        task = override(task, path.replace('__', '.'), value)
    cells.check(task)
    own = ModelSpec(
        name='linear', title='-', family='user', target=f'answers:{"frames" if name == "keys" else "linear"}'
    )
    spec = MODELS[model] if model else dataclasses.replace(own, family='classic')
    return Cell(task=task, dataset=DATASET, model=spec)
