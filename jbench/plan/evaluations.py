"""MOABB's words for cross-validation, as splits: `--set split=cross_subject`."""

from __future__ import annotations

from jbench.spec.errors import unknown
from jbench.spec.task import ByGroup, Classes, Task

EVALUATIONS = {
    'within_session': ByGroup(by='_index', within='session', folds='5'),  # a model for each session, on its own trials
    'cross_session': ByGroup(by='session', within='subject', folds='all'),  # a model for each subject
    'cross_subject': ByGroup(by='subject', folds='all'),  # one subject is left out in turn
}


def evaluation(word: str, task: Task) -> ByGroup:
    """The split of a word; trials of a session are dealt class by class, where each has one.

    Raises: RequestError for another word.
    """
    if word not in EVALUATIONS:
        raise unknown('split', word, EVALUATIONS)
    split = EVALUATIONS[word]
    if split.by == '_index' and isinstance(task.target, Classes):
        return ByGroup(by=split.by, within=split.within, folds=split.folds, stratify=task.target.field)
    return split
