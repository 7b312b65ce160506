"""What is asked of recordings: a task and its parts, as frozen plain values."""

from __future__ import annotations

import typing
from dataclasses import dataclass

from jbench.spec.challenges import Angles, Jitter, Stream
from jbench.spec.errors import RequestError
from jbench.spec.objectives import Hidden, Moment, Next
from jbench.spec.overrides import Override
from jbench.spec.recipe import DEFAULT, Recipe


@dataclass(frozen=True, kw_only=True)
class Crop:
    """The part of a recording that is read at all (s): from `start` on, the length less `skip`, at most `longest`."""

    start: float = 60.0
    skip: float = 60.0
    longest: float = 120.0


@dataclass(frozen=True, kw_only=True)
class Where:
    """Events whose `field` has one of the `values` (none named: any value), and is at least `least`."""

    field: str
    values: tuple[str, ...] = ()
    least: float | None = None
    keep: bool = True  # False: all others instead


@dataclass(frozen=True, kw_only=True)
class Trim:
    """Long stretches of one value of `field` at the edges of a recording, as wake before and after a night: what is
    more than `longest` s before the first event of another value, or after the last one, is left out. As published
    (not `every`), only the one event just before the first and the one just after the last are shortened."""

    field: str = 'stage'
    value: str = 'W'
    longest: float = 1800.0
    every: bool = True


@dataclass(frozen=True, kw_only=True)
class SignalSpec:
    """How a continuous recording becomes the signal that windows are cut from (protocol.md section 2)."""

    picks: tuple[str, ...] = ('eeg',)  # MNE channel types, or names
    sfreq: float = 120.0  # Hz, after resampling
    band: tuple[float, float] | None = (0.1, 75.0)  # Hz, zero-phase FIR
    notch: tuple[float, ...] = (50.0, 60.0)  # Hz, with all harmonics
    # by recording and channel: median and IQR | mean and sd; 'micro': times 1e6 alone, which keeps what levels tell
    # 'train': as robust, by the windows of the training part alone (a recording without one: by all of its own; one of
    # whose training windows recipe.few_shot draws none: by those drawn of its subject)
    scaler: typing.Literal['robust', 'standard', 'micro', 'train', 'none'] = 'robust'
    baseline: tuple[float, float] | None = None  # s from the window's start, mean subtracted
    clamp: float | None = 20.0  # applied when windows are loaded; handcrafted baselines skip it
    crop: Crop | None = None  # None: the whole recording is read
    bads: typing.Literal['keep', 'drop', 'interpolate'] = 'keep'  # channels that their recording marks bad
    # what each channel loses before any filter: the mean of all good ones | of its good neighbours on a shaft
    reference: typing.Literal['none', 'average', 'laplacian'] = 'none'
    regions: bool = False  # of contacts in the brain: the mean of those in each region, then, as channels
    factor: float = 1.0  # applied when windows are loaded, before the clamp: some models want their own unit


@dataclass(frozen=True, kw_only=True)
class Window:
    """Which events make windows, and where a window lies relative to the TRUE onset of its event (s)."""

    trigger: str = 'Stimulus'  # event type
    start: float = 0.0
    duration: float = 1.0
    stride: float | None = None  # None: one window an event; else windows every `stride` s over the event
    keep_incomplete: bool = False  # with a stride: keep windows that overhang the end of the event
    where: tuple[Where, ...] = ()  # only events that fit all of these make windows
    last: float | None = None  # only the last so many s of an event make windows
    trim: Trim | None = None
    jitter: Jitter | None = None  # windows lie at random in longer ones


@dataclass(frozen=True, kw_only=True)
class Classes:
    """One class a window: sorted unique values of an event field -> 0..K-1, or as `mapping` says."""

    field: str = 'code'
    mapping: tuple[tuple[str, int], ...] = ()
    prefix: str = ''  # use only events whose label starts so (others trigger no window)
    kind: typing.Literal['classes'] = 'classes'
    losses: typing.ClassVar = ('cross_entropy',)  # that teach it
    samplers: typing.ClassVar = ('shuffle', 'balanced')


@dataclass(frozen=True, kw_only=True)
class StateClasses:
    """The state that overlaps the window; no such event: the last class (seizure, sleep_arousal)."""

    event: str = 'Seizure'
    field: str = 'state'
    kind: typing.Literal['state'] = 'state'
    losses: typing.ClassVar = ('cross_entropy',)
    samplers: typing.ClassVar = ('shuffle', 'balanced')


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Any number of labels a window: those of all events of type `event` that overlap it."""

    event: str = 'Artifact'
    field: str = 'state'
    kind: typing.Literal['labels'] = 'labels'
    losses: typing.ClassVar = ('binary_cross_entropy',)
    samplers: typing.ClassVar = ('shuffle',)


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """A vector a window, made of its stimulus by an encoder (spec/encoders.py); answered by retrieval.

    Windows of one `group` have the same stimulus. An encoder of sound is given the file and when the window begins.
    """

    encoder: str = 'dinov2_giant'
    field: str = 'filepath'  # what the encoder is given: a file, or a text
    event: str = ''  # type of the overlapping event that has the field; '': the trigger
    group: str = 'filepath'
    scaled: bool = False  # each dimension centred and scaled by the training part
    kind: typing.Literal['embedding'] = 'embedding'
    losses: typing.ClassVar = ('clip', 'clip_distinct')
    samplers: typing.ClassVar = ('shuffle',)


@dataclass(frozen=True, kw_only=True)
class Value:
    """A number a window: a field of the trigger, optionally as clip(field - window stop, *clip) (sleep_onset)."""

    field: str = 'age'
    until: bool = False  # the field is a time: predict the seconds left at the window's end
    clip: tuple[float, float] | None = None
    scaled: bool = False  # learnt centred and scaled by the training part; scores are in the field's unit
    kind: typing.Literal['value'] = 'value'
    losses: typing.ClassVar = ('squared_error', 'absolute_error')
    samplers: typing.ClassVar = ('shuffle', 'bins')


@dataclass(frozen=True, kw_only=True)
class Keystrokes:
    """The keys pressed inside the core of the window, in time order; networks answer blank + 1 outputs a frame."""

    event: str = 'Keystroke'
    field: str = 'key'
    core: tuple[float, float] = (0.9, 4.9)  # s from the window's start
    held: bool = False  # keys that were pressed before the core and are held into it count too, where one begins in it
    blank: int = 98
    length: int = 128
    kind: typing.Literal['keystrokes'] = 'keystrokes'
    losses: typing.ClassVar = ('ctc',)
    samplers: typing.ClassVar = ('shuffle',)


Target = Classes | StateClasses | Labels | Embedding | Value | Keystrokes | Angles | Moment | Next | Hidden
TARGETS = {t.kind: t for t in typing.get_args(Target)}  # by kind


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """Random groups (scikit-learn's train_test_split, twice): all rows of one group share a split."""

    by: str = 'subject'  # a column of the event table, or '_index': every event its own group
    stratify: str | None = None
    valid: float = 0.2
    test: float = 0.2
    seed: int = 33
    order: tuple[str, ...] = ()  # columns by whose text groups are ordered before they are dealt; (): as first seen
    # 'k/n': groups dealt into n folds, fold k tests, the next validates; replaces shares and seed. 'u:k/n': of unit u
    fold: str = ''
    folds: str = ''  # 'n': every fold tests once, and the results are one; 'all': as many as groups
    within: typing.Literal['', 'subject', 'session'] = ''  # units that are dealt, and learnt, each by itself
    # a column: of the fold that tests, rows with the first half of its values validate, and no others do
    validate_by: str = ''
    kind: typing.Literal['by_group'] = 'by_group'

    def fold_numbers(self) -> tuple[int, int, int]:
        """u (1 without units), k and n of `fold`. Raises: RequestError unless 1 <= k <= n and n >= 2."""
        unit, colon, fold = self.fold.rpartition(':')
        k, _, n = fold.partition('/')
        numbers = all(t.isdecimal() and t[0] != '0' for t in (unit or '1', k, n)) and int(k) <= int(n) >= 2
        if not numbers or bool(colon) != bool(self.within):
            what = 'u:k/n, as 3:1/5: of unit u' if self.within else 'k/n, as 1/5:'
            raise RequestError(
                f'--set split.fold: {self.fold!r} must be {what} fold k, from 1 to n, of n folds, at least 2'
            )
        return int(unit or '1'), int(k), int(n)


@dataclass(frozen=True, kw_only=True)
class Predefined:
    """The test part is given: rows whose `field` is one of `test`; valid: a share of the other groups of `valid_by`."""

    field: str = 'session'
    test: tuple[str, ...] = ()
    valid_by: str = 'subject'
    valid: float = 0.2
    seed: int = 33
    apart: bool = False  # valid: a share of the groups without a test row alone
    kind: typing.Literal['predefined'] = 'predefined'


@dataclass(frozen=True, kw_only=True)
class BySimilarity:
    """Groups are clusters of similar sentences (TF-IDF, complete linkage), then as ByGroup (typing)."""

    by: str = 'text'
    threshold: float = 0.7  # cosine distance at which the tree is cut
    valid: float = 0.2
    test: float = 0.2
    seed: int = 33
    kind: typing.Literal['by_similarity'] = 'by_similarity'


@dataclass(frozen=True, kw_only=True)
class ByBlock:
    """Contiguous blocks of each recording, so that windows of different parts do not overlap: `n` blocks are dealt
    into the parts at random, and events within `gap` s of a border of parts are left out."""

    n: int = 10
    gap: float = 1.0  # s
    valid: float = 0.2
    test: float = 0.2
    seed: int = 33
    kind: typing.Literal['by_block'] = 'by_block'


SplitSpec = ByGroup | Predefined | BySimilarity | ByBlock


# what a task is called by, so that baselines know whether they fit; '': none of these
PARADIGMS = ('', 'imagery', 'ssvep', 'cvep', 'p300', 'erp', 'rstate', 'sleep', 'emg', 'fnirs', 'fmri')


@dataclass(frozen=True)
class Exclusion:
    """A subject that a task leaves out, and why."""

    dataset: str
    subject: str
    reason: str
    after_split: bool = False  # drawn into a split first (which moves the others), then dropped


def full_name(device: str, name: str) -> str:
    """What `--task` calls a task: a bare name means EEG, as p3; others name their device, as meg/typing, or their
    challenge, as challenge2026/pose."""
    return name if device == 'eeg' or '/' in name else f'{device}/{name}'


@dataclass(frozen=True, kw_only=True)
class Task:
    """What is asked of a recording. A correction is a new version; old versions stay runnable."""

    name: str
    version: int = 1
    device: str = 'eeg'
    category: str
    paradigm: str = ''  # one of PARADIGMS, MOABB's words and ours: which baselines fit
    title: str
    datasets: tuple[str, ...]  # the first is the Core dataset
    simulated: str | None = None  # the embedded stand-in
    window: Window
    target: Target = Classes()
    signal: SignalSpec = SignalSpec()
    split: SplitSpec = ByGroup()
    recipe: Recipe = DEFAULT
    metric: str = 'bal_acc'  # headline on the test part; of windows, the monitor on the validation part
    overrides: tuple[tuple[str, tuple[Override, ...]], ...] = ()  # (dataset, ((path, value), ...))
    exclude: tuple[Exclusion, ...] = ()
    exclude_bad: bool = False  # of a dataset of one's own: recordings that are refused are left out, and told
    drop: tuple[Where, ...] = ()  # windows of these events are left out once the split is drawn
    level: typing.Literal['window', 'recording', 'subject'] = 'window'  # outputs are averaged over it for the headline
    stream: Stream | None = None  # test windows alone and in order; None: in batches
    doi: str = ''  # of the publication of the protocol
    revision: str = ''  # commit of the reference's code that the protocol was read from
    supersedes: tuple[int, str] | None = None  # the version that this one corrects, and why

    @property
    def full_name(self) -> str:
        """What `--task` calls it."""
        return full_name(self.device, self.name)
