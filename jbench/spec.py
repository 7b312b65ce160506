"""What jbench runs, as frozen dataclasses of plain values. Imports nothing of ours and nothing heavy.

A *task* (what is asked) on a *dataset* (who was recorded) with a *model* (who answers) under a *recipe* (how it
learns) is a *cell*. Every spec has one canonical JSON form, and the hash of that form is its identity.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

Spec = TypeVar('Spec')
Override = tuple[str, Any]  # ('window.start', 2.0)
Position = tuple[float, float, float]  # of a channel: each axis from 0 to 1 over the channels of a set
NO_POSITION: Position = (-0.1, -0.1, -0.1)  # of a channel whose place is not known


class RequestError(ValueError):
    """The request or its data are wrong: shown to the user as one message, exit status 2."""


class MissingExtraError(RequestError):
    """An optional package is not installed: one line with the pip command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed: pip install -e '.[{extra}]' (in jbench's folder)"
        )


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
    (not `both`), only the one event just before the first is shortened."""

    field: str = 'stage'
    value: str = 'W'
    longest: float = 1800.0
    both: bool = True


@dataclass(frozen=True, kw_only=True)
class SignalSpec:
    """How a continuous recording becomes the signal that windows are cut from (protocol.md section 2)."""

    picks: tuple[str, ...] = ('eeg',)  # MNE channel types, or names
    sfreq: float = 120.0  # Hz, after resampling
    band: tuple[float, float] | None = (0.1, 75.0)  # Hz, zero-phase FIR
    notch: tuple[float, ...] = (50.0, 60.0)  # Hz, with all harmonics
    # by recording and channel: median and IQR | mean and sd; 'micro': times 1e6 alone, which keeps what levels tell
    # 'train': as robust, by the windows of the training part alone (a recording without one: by all of its own)
    scaler: typing.Literal['robust', 'standard', 'micro', 'train', 'none'] = 'robust'
    baseline: tuple[float, float] | None = None  # s from the window's start, mean subtracted
    clamp: float | None = 20.0  # applied when windows are loaded; handcrafted baselines skip it
    crop: Crop | None = None  # None: the whole recording is read


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


@dataclass(frozen=True, kw_only=True)
class Classes:
    """One class a window: sorted unique values of an event field -> 0..K-1, or as `mapping` says."""

    field: str = 'code'
    mapping: tuple[tuple[str, int], ...] = ()
    prefix: str = ''  # use only events whose label starts so (others trigger no window)
    kind: typing.Literal['classes'] = 'classes'


@dataclass(frozen=True, kw_only=True)
class StateClasses:
    """The state that overlaps the window; no such event: the last class (seizure, sleep_arousal)."""

    event: str = 'Seizure'
    field: str = 'state'
    kind: typing.Literal['state'] = 'state'


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Any number of labels a window: those of all events of type `event` that overlap it."""

    event: str = 'Artifact'
    field: str = 'state'
    kind: typing.Literal['labels'] = 'labels'


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """A vector a window, made of its stimulus by an encoder (data/encoders.py); answered by retrieval.

    Windows of one `group` have the same stimulus. An encoder of sound is given the file and when the window begins.
    """

    encoder: str = 'dinov2_giant'
    field: str = 'filepath'  # what the encoder is given: a file, or a text
    event: str = ''  # type of the overlapping event that has the field; '': the trigger
    group: str = 'filepath'
    scaled: bool = False  # each dimension centred and scaled by the training part
    kind: typing.Literal['embedding'] = 'embedding'


@dataclass(frozen=True, kw_only=True)
class Value:
    """A number a window: a field of the trigger, optionally as clip(field - window stop, *clip) (sleep_onset)."""

    field: str = 'age'
    until: bool = False  # the field is a time: predict the seconds left at the window's end
    clip: tuple[float, float] | None = None
    scaled: bool = False  # learnt centred and scaled by the training part; scores are in the field's unit
    kind: typing.Literal['value'] = 'value'


@dataclass(frozen=True, kw_only=True)
class Keystrokes:
    """The keys pressed inside the core of the window, in time order; networks answer blank + 1 outputs a frame."""

    event: str = 'Keystroke'
    field: str = 'key'
    core: tuple[float, float] = (0.9, 4.9)  # s from the window's start
    blank: int = 98
    length: int = 128
    kind: typing.Literal['keystrokes'] = 'keystrokes'


Target = Classes | StateClasses | Labels | Embedding | Value | Keystrokes


@dataclass(frozen=True, kw_only=True)
class ByGroup:
    """Random groups (scikit-learn's train_test_split, twice): all rows of one group share a split."""

    by: str = 'subject'  # a column of the event table, or '_index': every event its own group
    stratify: str | None = None
    valid: float = 0.2
    test: float = 0.2
    seed: int = 33
    fold: str = ''  # 'k/n': groups dealt into n folds, fold k tests, the next validates; replaces shares and seed
    kind: typing.Literal['by_group'] = 'by_group'

    def fold_numbers(self) -> tuple[int, int]:
        """k and n of `fold`. Raises: RequestError unless it is k/n with 1 <= k <= n and n >= 3."""
        k, _, n = self.fold.partition('/')
        if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n) >= 3):
            raise RequestError(
                f'--set split.fold: {self.fold!r} must be k/n, as 1/5: fold k, from 1 to n, of n folds, at least 3 '
                '(one each to train, validate and test)'
            )
        return int(k), int(n)


@dataclass(frozen=True, kw_only=True)
class Predefined:
    """The test part is given: rows whose `field` is one of `test`; valid: a share of the other groups of `valid_by`."""

    field: str = 'session'
    test: tuple[str, ...] = ()
    valid_by: str = 'subject'
    valid: float = 0.2
    seed: int = 33
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


Split = ByGroup | Predefined | BySimilarity | ByBlock


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network learns (training.md): AdamW, one-cycle with cycling beta1, clipping, early stopping."""

    lr: float = 1e-4  # highest learning rate of the cycle
    weight_decay: float = 0.05
    batch_size: int = 64
    max_epochs: int = 40
    patience: int = 5  # epochs without a strictly better monitor
    grad_clip: float = 1.0  # global L2 norm
    label_smoothing: float = 0.1
    class_weights: bool = False
    loss: typing.Literal['cross_entropy', 'binary_cross_entropy', 'squared_error', 'clip', 'clip_distinct', 'ctc'] = (
        'cross_entropy'
    )
    loss_scale: float = 1.0
    sampler: typing.Literal['shuffle', 'balanced', 'bins'] = 'shuffle'  # drawn with replacement: classes | bins of y
    warmup: float = 0.1  # share of the cycle in which the rate rises
    start_div: float = 25.0  # lr / start_div at the first step
    end_div: float = 1e4  # lr / start_div / end_div at the last step
    published: bool = False  # the reference's choices where ours differ: first batch statistics, fits on train + valid


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
    """What `--task` calls a task: a bare name means EEG, as p3; others name their device, as meg/typing."""
    return name if device == 'eeg' else f'{device}/{name}'


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
    split: Split = ByGroup()
    recipe: Recipe = Recipe()
    metric: str = 'bal_acc'  # headline on the test part; of windows, the monitor on the validation part
    overrides: tuple[tuple[str, tuple[Override, ...]], ...] = ()  # (dataset, ((path, value), ...))
    exclude: tuple[Exclusion, ...] = ()
    drop: tuple[Where, ...] = ()  # windows of these events are left out once the split is drawn
    level: typing.Literal['window', 'recording', 'subject'] = 'window'  # outputs are averaged over it for the headline

    @property
    def full_name(self) -> str:
        """What `--task` calls it."""
        return full_name(self.device, self.name)


@dataclass(frozen=True, kw_only=True)
class Download:
    """Where the files of a dataset are; the list of its host says which, and their sums.

    Addresses: `https://host/folder/` (a file is at url + name), `s3://bucket/prefix/`, `openneuro:ds000000`,
    `zenodo:RECORD`, `figshare:ARTICLE`, `osf:nodes/ID/files/osfstorage`, `osf:files/ID`, `hf:datasets/OWNER/NAME`,
    `hf:models/OWNER/NAME`, `synapse:synID`, `nemar:ID/latest`; `moabb:CLASS` is fetched by MOABB.
    """

    url: str
    registered: str | None = None  # of https: list beside the source module (sum, bytes, name), else SHA256SUMS.txt
    files: str = '*'  # those of the list that are wanted; `|` stands between several patterns
    without: str = ''  # those of them that are not
    unpack: str = ''  # those of the members of zip and tar files that are unpacked beside them


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Who was recorded: facts as its publication declares them, and the module that reads its files."""

    name: str
    title: str
    source: str  # module with recordings(dataset, root) and read(ref)
    device: str = 'eeg'
    n_subjects: int
    n_recordings: int
    n_chans: int
    sfreq: tuple[float, ...]  # Hz, every rate that occurs
    seconds: float | None = None  # of the first recording
    event_id: tuple[tuple[str, int], ...] = ()
    event_types: tuple[str, ...] = ('Stimulus',)  # types of which each recording holds at least one event
    n_events: int | None = None  # least number of events of those types in each recording
    amplitude: tuple[float, float] = (0.5e-6, 500e-6)  # V: allowed median over channels of the robust sd
    licence: str
    citation: str
    host: str
    layout: str  # what lies under <data_dir>/<name>/
    access: str = 'open'  # anything else: its host asks for an agreement, which jbench never gives for the user
    download: Download | None = None  # None: fetched by hand
    aliases: tuple[str, ...] = ()
    simulated: bool = False
    recipe: tuple[Override, ...] = ()  # simulated sets carry their own


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table: (task@version, dataset, model, recipe); seeds run inside it."""

    task: Task  # with every override applied
    dataset: Dataset
    spec: ModelSpec
    overrides: tuple[Override, ...] = ()  # the user's own, in canonical order
    debug: bool = False

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.spec.name

    @property
    def title(self) -> str:
        """What messages call it."""
        return f'{self.task.full_name}/{self.dataset.name} {self.model}'

    @property
    def source(self) -> str:
        """What decides the prepared set: cells with equal ones share it."""
        task = to_json(self.task)
        return spec_hash([self.dataset.name, [task[k] for k in ('signal', 'window', 'target')]])

    @property
    def key(self) -> str:
        """Identity of the cell: hash of what was asked, never of words about it, machine, paths or device count."""
        return cell_key(to_json(self.task), self.dataset.name, self.model, self.debug)


def cell_key(task: dict[str, Any], dataset: str, model: str, debug: bool) -> str:
    """The key of a cell from the JSON of its task."""
    asked = {k: v for k, v in task.items() if k not in ('category', 'paradigm', 'title', 'datasets', 'simulated')}
    asked['overrides'] = []  # applied already, those of this dataset
    asked['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset]
    return spec_hash({'task': asked, 'dataset': dataset, 'model': model, 'debug': debug})


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What a model is built for: the shape and meaning of one window."""

    n_chans: int
    n_times: int
    sfreq: float  # Hz
    ch_names: tuple[str, ...] = ()
    positions: tuple[Position, ...] = ()  # of the channels, for networks that ask; one montage for all recordings


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A line in the table of models."""

    name: str
    title: str
    family: str  # 'classic' | 'foundation' | 'baselines' | 'own'
    target: str  # 'module:factory'
    kind: str = 'network'  # 'network': init/apply, trained by fit.py; 'estimator': fitted once
    trained: bool = True  # False: one batch sets its batch statistics, no weight is changed (chance)
    published: tuple[Override, ...] = ()  # options of the factory under recipe.published
    targets: tuple[str, ...] = ()  # kinds of target that it fits; (): all
    paradigms: tuple[str, ...] = ()  # paradigms that it fits; (): all
    least_times: int = 1  # samples of a window
    positions: bool = False  # asks for Signal.positions
    accelerator: bool = False  # far too slow on a CPU: a group holds it only with --device=gpu or tpu
    citation: str = ''
    needs: tuple[str, ...] = ()  # packages beyond the core ones, and the extra that brings them
    extra: str = ''
    n_parameters: int | None = None  # without the head, at 22 channels x 256 samples, 4 classes (training.md)


def to_json(value: Any) -> Any:
    """A spec as JSON-able values: dataclasses become dicts, tuples lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(k): to_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(v) for v in value]
    return value


def canonical(value: Any) -> str:
    """The one JSON text of a spec: sorted keys, no spaces, shortest floats."""
    return json.dumps(to_json(value), sort_keys=True, separators=(',', ':'), allow_nan=False)


def spec_hash(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]


def unknown(what: str, name: str, known: Iterable[str]) -> RequestError:
    """The error for a name that does not exist: did-you-mean, then what there is."""
    names = sorted(set(known))
    lower = {n.lower(): n for n in names}
    near = [lower[n] for n in lower if len(name) > 2 and n.startswith(name.lower())][:2]
    near += [lower[n] for n in difflib.get_close_matches(name.lower(), list(lower), n=2, cutoff=0.6)]
    near = list(dict.fromkeys(near)) or [lower[n] for n in lower if len(name) > 2 and name.lower() in n][:2]
    hint = f'; did you mean {" or ".join(map(repr, near))}?' if near else ''
    shown = ', '.join(names[:40]) + (', ...' if len(names) > 40 else '')
    return RequestError(f'unknown {what} {name!r}{hint}\n  available: {shown}')
