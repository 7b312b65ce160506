"""Models that see no pixel: what a table of stimuli, or the words of a text, tell by themselves. They are floors that a
model of images or of language should pass."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment import assembly, data
from jbench.alignment.brain_model import CommittedModel
from jbench.alignment.stimuli import StimulusSet
from jbench.alignment.units import Units
from jbench.spec.benchmark import Benchmark
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from xarray import DataArray

WORD = re.compile(r"[a-z']+")


def category(benchmark: Benchmark, data_dir: Path | None) -> CommittedModel:
    """A unit for each category of the stimuli: their `image_label`, or each stimulus by itself where they have none."""
    return _of_table(
        'category', lambda stimuli: stimuli.table.get('image_label', stimuli.table['stimulus_id']).tolist()
    )


def word_counts(benchmark: Benchmark, data_dir: Path | None) -> CommittedModel:
    """A unit for each word: how often it comes in a text."""
    return _of_table(
        'word_counts', lambda stimuli: [' '.join(WORD.findall(stimuli.text(i).lower())) for i in stimuli.ids]
    )


def _of_table(name: str, texts: Callable[[StimulusSet], list[Any]]) -> CommittedModel:
    """Counts of the words of one text a stimulus."""

    def respond(stimuli: StimulusSet, what: str, n_trials: int) -> Units:
        words = [str(text).split() for text in texts(stimuli)]
        known = {word: k for k, word in enumerate(sorted({w for some in words for w in some}))}
        values = np.zeros((len(words), 1, len(known)), np.float32)
        for row, some in enumerate(words):
            for word in some:
                values[row, 0, known[word]] += 1
        return Units(values, {'neuroid_id': np.array(list(known)), 'neuroid_num': np.arange(len(known))})

    return CommittedModel(name, 8.0, hashlib.sha256(name.encode()).hexdigest(), {}, respond, places=False)


@dataclass
class Answers:
    """A model that is known by its recorded answers alone: it labels the stimuli that it once labelled."""

    identifier: str
    digest: str
    answers: Mapping[str, str]  # by stimulus_id

    def visual_degrees(self) -> float:
        """As Geirhos et al. say of their networks."""
        return 3.0

    def start_recording(self, region: str, time_bins: Any = ()) -> None:
        """Raises: RequestError: nothing of it was recorded but answers."""
        raise RequestError(f'{self.identifier}: its answers are known, no region of it; choose a model that runs')

    def start_task(self, task: str, fitting: Any = None) -> None:
        """Raises: RequestError for any task but `label`."""
        if task != 'label':
            raise RequestError(f'{self.identifier}: its labels are known, nothing for a task {task!r}')

    def look_at(self, stimuli: StimulusSet, number_of_trials: int = 1) -> DataArray:
        """The label of each stimulus. Raises: RequestError for one that it never labelled."""
        if absent := [i for i in stimuli.ids if i not in self.answers]:
            raise RequestError(f'{self.identifier}: no recorded answer to {absent[0]!r} and {len(absent) - 1} more')
        values = np.array([self.answers[i] for i in stimuli.ids])
        return assembly.behaviour(values, presentation={'stimulus_id': stimuli.ids}, stimulus_set=stimuli.identifier)


def _answers(model: str, benchmark: Benchmark, data_dir: Path | None) -> Answers:
    """The answers of one network of Geirhos et al. (2021)."""
    family, _, experiment = benchmark.data.partition('.')
    if family != 'Geirhos2021':
        raise RequestError(f'{model}: its answers were recorded in the experiments of Geirhos2021 alone')
    recorded = data.load(f'Geirhos2021models.{experiment}', data_dir or Path('<data_dir>')).assembly
    mine = recorded.isel(presentation=np.flatnonzero(recorded['subject'].values == model))
    answers = dict(zip(mine['stimulus_id'].values.tolist(), mine.values.astype(str).tolist(), strict=True))
    digest = hashlib.sha256(repr(sorted(answers.items())).encode()).hexdigest()
    return Answers(model, digest, answers)


def resnet50_answers(benchmark: Benchmark, data_dir: Path | None) -> Answers:
    """ResNet-50, as Geirhos et al. recorded it."""
    return _answers('resnet50', benchmark, data_dir)


def bagnet33_answers(benchmark: Benchmark, data_dir: Path | None) -> Answers:
    """BagNet-33, as Geirhos et al. recorded it."""
    return _answers('bagnet33', benchmark, data_dir)


def simclr_answers(benchmark: Benchmark, data_dir: Path | None) -> Answers:
    """SimCLR with ResNet-50, as Geirhos et al. recorded it."""
    return _answers('simclr-resnet50x1', benchmark, data_dir)


def swag_answers(benchmark: Benchmark, data_dir: Path | None) -> Answers:
    """SWAG ViT-L/16, as Geirhos et al. recorded it."""
    return _answers('swag-vit-l16-in1k', benchmark, data_dir)
