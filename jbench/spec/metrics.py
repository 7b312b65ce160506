"""Every score that a result may hold: one row each, read by validation, scoring and tables."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass

LEVELS = ('window', 'recording', 'subject')


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A row of the table of metrics."""

    name: str
    kinds: tuple[str, ...]  # of target; the first metric of a kind in the table is its published headline
    better: typing.Literal['higher', 'lower'] = 'higher'
    bounds: tuple[float, float] = (0.0, 1.0)
    unit: str = ''  # in tables; 'per cent' of what is a fraction in files (as published)
    levels: tuple[str, ...] = ('window',)  # what a headline may be of: outputs are averaged over it
    chance: float | None = None  # where the dummy, a constant, has no score: what an answer without the signal expects
    balanced: bool = False  # every class counts alike
    shares: bool = False  # a mean of shares of right answers
    cells: bool = False  # a mean over cells of streams (Task.stream)
    monitor: str = ''  # the score that selects the epoch in the published protocol, where it is another one

    @property
    def perfect(self) -> float:
        """The best value."""
        return self.bounds[1] if self.better == 'higher' else self.bounds[0]


CLASSES, ERROR = ('classes', 'state'), (0.0, math.inf)
METRICS = {
    m.name: m
    for m in (
        Metric(name='bal_acc', kinds=CLASSES, levels=LEVELS, unit='per cent', balanced=True, shares=True),
        Metric(name='acc', kinds=CLASSES, levels=LEVELS, unit='per cent', shares=True),
        Metric(name='f1_macro', kinds=CLASSES, levels=LEVELS, balanced=True),
        Metric(name='auroc', kinds=CLASSES, levels=LEVELS),
        Metric(name='auprc', kinds=CLASSES, levels=LEVELS),
        Metric(name='f1_score_macro', kinds=('labels',), balanced=True),
        Metric(name='hamming', kinds=('labels',), better='lower'),
        Metric(name='exact_match', kinds=('labels',)),
        Metric(name='pearsonr', kinds=('value',), levels=LEVELS, bounds=(-1.0, 1.0), chance=0.0),
        Metric(name='rmse', kinds=('value',), levels=LEVELS, better='lower', bounds=ERROR),
        Metric(name='mae', kinds=('value',), levels=LEVELS, better='lower', bounds=ERROR),
        Metric(name='r2', kinds=('value',), levels=LEVELS, bounds=(-math.inf, 1.0)),
        Metric(name='normalized_rmse', kinds=('value',), levels=LEVELS, better='lower', bounds=ERROR),
        Metric(name='bmae', kinds=('value',), levels=LEVELS, better='lower', bounds=ERROR),
        # windows of one subject and group averaged, all groups are candidates
        Metric(name='top5_acc', kinds=('embedding',), unit='per cent', monitor='batch_top5_acc'),
        # the same among the 250 most frequent groups; so are all names in _250
        Metric(name='top5_acc_250', kinds=('embedding',)),
        Metric(name='window_top5_acc', kinds=('embedding',)),  # each window by itself
        Metric(name='window_top5_acc_250', kinds=('embedding',)),
        Metric(name='instance_top5_acc', kinds=('embedding',)),  # windows of a group averaged over all subjects
        Metric(name='instance_top5_acc_250', kinds=('embedding',)),
        Metric(name='subject_top5_acc', kinds=('embedding',)),  # each window by itself, mean over subjects
        Metric(name='subject_top5_acc_250', kinds=('embedding',)),
        Metric(name='batch_top5_acc', kinds=('embedding',)),  # 64 windows in order are each other's candidates
        # of challenges (metrics/challenges.py)
        Metric(name='bal_acc_cells', kinds=CLASSES, unit='per cent', balanced=True, cells=True),
        Metric(name='wbmae', kinds=('value',), better='lower', bounds=ERROR, cells=True),  # mean over recordings
        Metric(name='angular_mae', kinds=('angles',), better='lower', bounds=ERROR),  # degrees
        # of pretraining (metrics/contrast.py): the first, or one of the first five, of all candidates is right
        Metric(name='moment_top1', kinds=('moment',), unit='per cent'),
        Metric(name='moment_top5', kinds=('moment',), unit='per cent'),
        Metric(name='next_top1', kinds=('next',), unit='per cent'),
        Metric(name='next_top5', kinds=('next',), unit='per cent'),
        Metric(name='hidden_r2', kinds=('hidden',), bounds=(-math.inf, 1.0)),
        Metric(name='hidden_pearsonr', kinds=('hidden',), bounds=(-1.0, 1.0), chance=0.0),
        Metric(name='cer', kinds=('keystrokes',), better='lower', bounds=ERROR, unit='per cent'),
    )
}


def of_kind(kind: str) -> tuple[str, ...]:
    """Names of the metrics of a kind of target, its published headline first."""
    return tuple(m.name for m in METRICS.values() if kind in m.kinds)
