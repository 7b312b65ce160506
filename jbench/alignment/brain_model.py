"""What a benchmark asks of a model: to look at stimuli, while its regions are recorded or while it does a task."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from jbench.alignment import assembly, candidates, readouts, time_bins
from jbench.alignment.activations import LIMITS, Limits
from jbench.alignment.image_model import LOGITS, ImageModel, check_layers
from jbench.alignment.screen import place_on_screen
from jbench.alignment.stimuli import StimulusSet
from jbench.alignment.units import Units, layer_units
from jbench.spec.errors import RequestError, unknown

if TYPE_CHECKING:
    from xarray import DataArray

REGIONS = ('V1', 'V2', 'V4', 'IT')
TASKS = ('passive', 'label', 'probabilities', 'odd_one_out')
READOUT = 'readout'  # asked for in the place of a region: what a classifier reads
IMAGENET = 'imagenet'  # as labels: its 1,000 classes


class BrainModel(Protocol):
    """A model as a benchmark sees it. What was started last decides what `look_at` gives."""

    identifier: str

    def visual_degrees(self) -> float:
        """Width of what it sees, in degrees of visual angle."""

    def start_recording(self, region: str, time_bins: Sequence[tuple[float, float]] = ()) -> None:
        """From now on `look_at` gives responses of a region: V1, V2, V4 or IT, in bins of ms from stimulus onset."""

    def start_task(self, task: str, fitting: Any = None) -> None:
        """From now on `look_at` gives answers in a task of TASKS; `passive`: recordings again."""

    def look_at(self, stimuli: StimulusSet, number_of_trials: int = 1) -> DataArray:
        """Responses or answers to the stimuli; rows in their order, the trials of a stimulus side by side."""


class _Doing(NamedTuple):
    region: str = ''
    bins: tuple[tuple[float, float], ...] = ()
    task: str = ''
    fitting: Any = None


@dataclass
class CommittedModel:
    """A `BrainModel` around a function that gives units: made by `committed`, `candidate` and `recorded_features`."""

    identifier: str
    degrees: float
    digest: str  # sha256 over all that the responses depend on
    layers: Mapping[str, tuple[str, ...]]  # by region; empty where there are none
    respond: Callable[[StimulusSet, str, int], Units]  # stimuli, region or READOUT or LOGITS, trials
    places: bool = True  # images of other sizes on its screen; else what it is asked for is looked up
    similarity: str = 'dot'  # of the odd one of three: `dot` or `cosine`
    _doing: _Doing = field(default=_Doing(), repr=False)

    def visual_degrees(self) -> float:
        """Width of what it sees, in degrees of visual angle."""
        return self.degrees

    def start_recording(self, region: str, time_bins: Sequence[tuple[float, float]] = ()) -> None:
        """Record a region from now on, and do no task. One bin, or none, leaves out the dimension of time.

        Raises: RequestError for a region that the model does not have.
        """
        if self.layers and region not in self.layers:
            raise unknown(f'region of {self.identifier}', region, self.layers)
        self._doing = _Doing(region, tuple((float(a), float(b)) for a, b in time_bins))

    def start_task(self, task: str, fitting: Any = None) -> None:
        """Do a task from now on.

        Args:
          task: one of TASKS.
          fitting: of `label` the labels, or 'imagenet'; of `probabilities` a StimulusSet with `image_label`; of
            `odd_one_out` triplets of stimulus ids, or None: the rows of the stimuli, three by three.

        Raises: RequestError for another task, or a task without what it needs.
        """
        if task not in TASKS:
            raise unknown('task', task, TASKS)
        if task == 'passive':
            self._doing = self._doing._replace(task='', fitting=None)
            return
        if task == 'label' and not (fitting == IMAGENET or (not isinstance(fitting, str) and fitting)):
            raise RequestError(f"task label: got {fitting!r}, expected a list of labels, or 'imagenet'")
        if task == 'probabilities':
            columns = fitting.table.columns if isinstance(fitting, StimulusSet) else ()
            if 'image_label' not in columns:
                raise RequestError('task probabilities: needs a StimulusSet for fitting with a column image_label')
        self._doing = self._doing._replace(task=task, fitting=fitting)

    def look_at(self, stimuli: StimulusSet, number_of_trials: int = 1) -> DataArray:
        """Responses of the region that is recorded, or answers in the task.

        Args:
          stimuli: where they have a column `degrees`, they are placed on the screen of the model.
          number_of_trials: of stochastic models; others answer once.

        Raises: RequestError where nothing was started, and whatever the model cannot do with these stimuli.
        """
        stimuli = self._placed(stimuli)
        doing = self._doing
        if doing.task:
            return self._answered(stimuli, number_of_trials)
        if not doing.region:
            raise RequestError(f'{self.identifier}: nothing was started; call start_recording or start_task first')
        units = self.respond(stimuli, doing.region, number_of_trials)
        n, trials = units.values.shape[:2]
        values = units.values.reshape(n * trials, *units.values.shape[2:])
        values, bins = _in_time(values, units.time_bins, doing.bins)
        columns = {**units.neuroid, 'region': np.full(values.shape[1], doing.region)}
        presentation = {str(c): np.repeat(v.to_numpy(), trials) for c, v in stimuli.table.items()}
        presentation |= units.presentation
        if trials > 1:
            presentation['repetition'] = np.tile(np.arange(trials), n)
        made = assembly.neuroids(
            values, presentation=presentation, neuroid=columns, time_bins=bins, stimulus_set=stimuli.identifier
        )
        return made.assign_attrs(identifier=f'{self.identifier}.{doing.region}', model=self.identifier)

    def _placed(self, stimuli: StimulusSet) -> StimulusSet:
        return place_on_screen(stimuli, self.degrees) if self.places and 'degrees' in stimuli.table else stimuli

    def _answered(self, stimuli: StimulusSet, trials: int) -> DataArray:
        _, _, task, fitting = self._doing
        presentation: dict[str, Any] = {str(c): v.to_numpy() for c, v in stimuli.table.items()}
        choice: list[str] = []
        values: Any
        if task == 'label':
            logits = self._features(stimuli, LOGITS, trials)
            if isinstance(fitting, str):
                values, best = readouts.imagenet_labels(logits)
                presentation |= {'class': best, 'logit': logits.max(1)}
            else:
                values, _ = readouts.own_labels(logits, list(fitting))
        elif task == 'probabilities':
            known = self._features(self._placed(fitting), READOUT, trials)
            labels = fitting.table['image_label'].tolist()
            choice, values = readouts.object_probabilities(known, labels, self._features(stimuli, READOUT, trials))
        else:
            triplets = _triplets(stimuli, fitting)
            features = self._features(stimuli, READOUT, trials)
            odd = readouts.odd_one_out(features, triplets, similarity=self.similarity)
            ids = np.array(stimuli.ids)
            values, presentation = ids[odd], {'stimulus_id': ['|'.join(ids[t]) for t in triplets]}
        made = assembly.behaviour(
            np.asarray(values), presentation=presentation, choice=choice, stimulus_set=stimuli.identifier
        )
        return made.assign_attrs(identifier=f'{self.identifier}.{task}', model=self.identifier)

    def _features(self, stimuli: StimulusSet, what: str, trials: int) -> np.ndarray:
        """[stimulus, unit], the mean over trials; time bins are further units."""
        values = self.respond(stimuli, what, trials).values
        mean = values[:, 0] if values.shape[1] == 1 else values.mean(1)
        return mean.reshape(len(mean), -1)


def _in_time(values: np.ndarray, given: time_bins.Bins, wanted: time_bins.Bins) -> tuple[np.ndarray, time_bins.Bins]:
    """Responses in the bins that are wanted; without a dimension of time for one bin. A static model repeats itself."""
    if given:
        if not wanted:
            raise RequestError(
                f'responses in {len(given)} time bins: say which to record, start_recording(region, bins)'
            )
        values = time_bins.rebin(values, given, wanted)
        return (values[..., 0], ()) if len(wanted) == 1 else (values, wanted)
    return (values, ()) if len(wanted) < 2 else (time_bins.repeated(values, wanted), wanted)


def _triplets(stimuli: StimulusSet, given: Sequence[Sequence[str]] | None) -> np.ndarray:
    """Rows of three stimuli each, [triplet, 3]. Raises: RequestError for ids that are not there, or other numbers."""
    if given is None:
        if len(stimuli) % 3:
            raise RequestError(f'task odd_one_out: {len(stimuli)} stimuli are no triplets; give three by three')
        return np.arange(len(stimuli)).reshape(-1, 3)
    row = {stimulus: k for k, stimulus in enumerate(stimuli.ids)}
    absent = [i for triplet in given for i in triplet if i not in row]
    if absent or any(len(triplet) != 3 for triplet in given):
        raise RequestError(
            f'task odd_one_out: triplets of stimuli of {stimuli.identifier} are needed, got '
            + (f'{absent[0]!r}, which it does not have' if absent else 'another number of ids')
        )
    return np.array([[row[i] for i in triplet] for triplet in given]).reshape(-1, 3)


def committed(
    model: ImageModel,
    regions: Mapping[str, str | Sequence[str]],
    visual_degrees: float = 8,
    *,
    readout: str | Sequence[str] = '',
    limits: Limits = LIMITS,
    microsaccades: bool = False,
) -> CommittedModel:
    """A brain model of an image model whose layers stand for regions.

    Args:
      model: the model.
      regions: region -> layer, or several layers, whose units lie side by side.
      visual_degrees: width of what it sees.
      readout: layers that probabilities and similarities are read from; by default the last one but the logits.
      limits: memory, kept activations, seed.
      microsaccades: trials differ by small shifts of the gaze, of models that are not stochastic too.

    Raises: RequestError for a layer that the model does not have, or a visual angle that is not positive.
    """
    if not visual_degrees > 0:
        raise RequestError(f'{model.identifier}: {visual_degrees} degrees of visual angle; give a positive number')
    chosen = {r: (layers,) if isinstance(layers, str) else tuple(layers) for r, layers in regions.items()}
    last = [layer for layer in model.layers if layer != LOGITS][-1]
    read = (readout or last,) if isinstance(readout, str) else tuple(readout)
    for layers in (*chosen.values(), read):
        check_layers(model, layers)
    eye = visual_degrees if microsaccades else None

    def respond(stimuli: StimulusSet, what: str, trials: int) -> Units:
        if what == LOGITS and LOGITS not in model.layers:
            raise RequestError(f'{model.identifier} has no classifier of ImageNet, so it cannot label; choose another')
        layers = {READOUT: read, LOGITS: (LOGITS,)}.get(what) or chosen[what]
        return layer_units(model, stimuli, layers, n_trials=trials, limits=limits, eye_degrees=eye)

    whole = [model.digest, *model.preprocess, limits.seed if model.stochastic else 0, visual_degrees, microsaccades]
    whole += [sorted(chosen.items()), read]
    digest = hashlib.sha256(repr(whole).encode()).hexdigest()
    return CommittedModel(model.identifier, visual_degrees, digest, chosen, respond)


def candidate(name: str, seed: int = 0, weights: Path | None = None, *, limits: Limits = LIMITS) -> CommittedModel:
    """A candidate of the table, with the layers that the table gives to regions. Raises: RequestError; see
    `candidates.image_model`."""
    model = candidates.image_model(name, seed, weights)
    row = candidates.CANDIDATES[name]
    return committed(model, row.regions, row.visual_degrees, readout=row.readout, limits=limits)
