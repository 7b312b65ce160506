"""What a model is compared with, and how: a line in the table of alignment benchmarks, one in that of candidates, and
the two together."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from jbench.spec.identity import spec_hash, without_defaults

PREFIX = 'alignment/'  # of the names of benchmarks where tasks are named
WORDS = ('title', 'parent', 'licence', 'citation', 'missing')  # about a benchmark

Procedure = typing.Literal['neural', 'train_test', 'rsa', 'over_time', 'properties', 'labels', 'choices', 'odd_one_out']
# how a score is set beside its ceiling: `jbench.alignment.ceiled`
Ceiled = typing.Literal[
    'none',
    'explained_variance',
    'explained_variance_unsigned',
    'explained_variance_per_neuroid',
    'ratio',
    'ratio_squared',
    'ratio_root',
    'above_chance',
]


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A line in the table of benchmarks: plain values, as Brain-Score calls them."""

    identifier: str  # 'Cowley2023.V4-pls': data, region, metric
    version: int = 1  # raise when scores change
    parent: str  # where it hangs in the tree: 'V4'
    title: str
    procedure: Procedure
    data: str  # recorded set, by its name in `jbench.alignment.data`
    train_data: str = ''  # of train_test and choices: what is fitted on
    where: tuple[tuple[str, str], ...] = ()  # coordinates of what is kept of it: (('region', 'V4'),)
    region: str = ''  # that the model is asked to record
    time_bins: tuple[tuple[float, float], ...] = ((70.0, 170.0),)  # ms after the stimulus
    visual_degrees: float  # size of the stimuli; 0: they are texts
    number_of_trials: int = 1
    metric: str
    stratify: str = ''  # coordinate of the stimuli whose shares every split keeps
    # coordinate whose values are taken apart: of neuroids ('subject') in train_test, of subjects or repetitions in rsa
    per: str = ''
    reliability: float | None = None  # neuroids above it are kept
    ceiling: str = ''  # function of `jbench.alignment.ceilings`; '': none, or the constant below
    constant_ceiling: float | None = None
    ceiled: Ceiled = 'explained_variance'
    chance: float | None = None  # of choices
    labels: tuple[str, ...] = ()  # that a model may answer
    simulated: bool = False  # its recording was generated
    missing: str = ''  # of data that cannot be had from here: what to do
    licence: str = ''  # of the data
    citation: str  # BibTeX of the data


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A line in the table of candidates: a model that looks at stimuli."""

    name: str
    version: int = 1  # raise when its features change
    title: str
    target: str  # 'module:function', which gives the model of a seed and a file of weights
    drawn: bool = False  # its weights are random, drawn by the seed; False: every seed gives the same model
    weights: str = ''  # SHA-256 of the file of weights that it starts from
    layer: str = ''  # that stands for every region; '': the one of each region in the table


@dataclass(frozen=True, kw_only=True)
class AlignmentCell:
    """A benchmark with a candidate: what a result file of alignment is of."""

    benchmark: Benchmark
    candidate: Candidate

    @property
    def task(self) -> str:
        """Its name where decoding has the name of a task."""
        return PREFIX + self.benchmark.identifier

    @property
    def model(self) -> str:
        """The name of the candidate in tables."""
        weights = f':weights={self.candidate.weights[:8]}' if self.candidate.weights else ''
        layer = f':layer={self.candidate.layer}' if self.candidate.layer else ''
        return self.candidate.name + layer + weights

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'{self.task} {self.model}'

    @property
    def key(self) -> str:
        """Identity: hash of what is asked, never of words about it, of the machine or of paths."""
        asked = {k: v for k, v in without_defaults(self.benchmark).items() if k not in WORDS}
        who = [self.candidate.name, self.candidate.version, self.candidate.weights, self.candidate.layer]
        return spec_hash({'benchmark': asked, 'candidate': who})
