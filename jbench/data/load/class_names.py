"""What the classes of a prepared set are called."""

from __future__ import annotations

from jbench import targets
from jbench.data.load.prepared_set import PreparedSet
from jbench.spec.dataset import Dataset


def class_names(dataset: Dataset, data: PreparedSet) -> list[str]:
    """What the classes are called: the names that the dataset gives to its event codes, else the values themselves."""
    names = {str(code): name for name, code in dataset.event_id}
    return [names.get(c, c) for c in data.classes]


def listed_classes(dataset: Dataset, data: PreparedSet) -> list[str]:
    """What outputs 0..K-1 stand for, as a result lists it; [] of stimuli, which may be many."""
    return class_names(dataset, data) if targets.of(data.kind).listed else []
