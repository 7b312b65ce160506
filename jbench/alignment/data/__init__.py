"""Recorded sets: which there are, and where their files lie. A set is read when it is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jbench.alignment.data.sources import SOURCES, Collection
from jbench.spec.errors import unknown

if TYPE_CHECKING:
    from xarray import DataArray

    from jbench.alignment.stimuli import StimulusSet


class Recorded(NamedTuple):
    """One recorded set."""

    stimuli: StimulusSet  # of some the ids alone are known: reading one says why
    assembly: DataArray
    facts: Collection  # where it comes from, licence, citation


class RecordedSet(NamedTuple):
    """A line of the table."""

    source: str  # of SOURCES
    reader: str  # the module here whose `read(data_dir, which)` gives stimuli and assembly
    which: str  # of what it reads
    title: str


EXPERIMENTS = (  # of Geirhos2021
    *('colour', 'contrast', 'cue-conflict', 'edge', 'eidolonI', 'eidolonII', 'eidolonIII', 'false-colour', 'high-pass'),
    *('low-pass', 'phase-scrambling', 'power-equalisation', 'rotation', 'silhouette', 'sketch', 'stylized'),
    'uniform-noise',
)
SETS: dict[str, RecordedSet] = {
    'Cowley2023.190923': RecordedSet('Cowley2023', 'cowley', '190923', 'Macaque V4, 33 units, 1,200 images, averages'),
    'Cowley2023.201025': RecordedSet('Cowley2023', 'cowley', '201025', 'Macaque V4, 89 units, 1,200 images, averages'),
    'Cowley2023.210225': RecordedSet('Cowley2023', 'cowley', '210225', 'Macaque V4, 55 units, 1,200 images, averages'),
    'Cowley2023.210325': RecordedSet(
        'Cowley2023', 'cowley', '210325', 'Macaque V4, 50 units, 640 images, 6 to 10 repetitions'
    ),
    'Cowley2023.201016': RecordedSet(
        'Cowley2023', 'cowley', '201016', 'Macaque V4, 82 units, 5 to 9 repetitions, no images'
    ),
    'Kriegeskorte92.human': RecordedSet(
        'Kriegeskorte92', 'kriegeskorte', 'human', 'Human IT, RDMs of 4 people, 92 images'
    ),
    'Kriegeskorte92.human_sessions': RecordedSet(
        'Kriegeskorte92', 'kriegeskorte', 'human_sessions', 'The same by session'
    ),
    'Kriegeskorte92.monkey': RecordedSet('Kriegeskorte92', 'kriegeskorte', 'monkey', 'Monkey IT, one RDM, 92 images'),
    'Kriegeskorte92.behaviour': RecordedSet(
        'Kriegeskorte92', 'kriegeskorte', 'behaviour', 'Judged similarity, 16 people'
    ),
    'Kriegeskorte92.models': RecordedSet(
        'Kriegeskorte92', 'kriegeskorte', 'models', 'RDMs of 8 models of the 92 images'
    ),
    **{
        f'Geirhos2021.{e}': RecordedSet('Geirhos2021', 'geirhos', e, f'Choices of people among 16 classes, {e}')
        for e in EXPERIMENTS
    },
    **{
        f'Geirhos2021models.{e}': RecordedSet('Geirhos2021', 'geirhos', f'models/{e}', f'Choices of four networks, {e}')
        for e in EXPERIMENTS
    },
    'Marques2020.Cavanaugh2002': RecordedSet(
        'Marques2020', 'marques', 'Cavanaugh2002a', 'V1, sizes of fields, 190 neurons'
    ),
    'Marques2020.DeValois1982a': RecordedSet(
        'Marques2020', 'marques', 'DeValois1982a', 'V1, preferred orientation, 385 neurons'
    ),
    'Marques2020.DeValois1982b': RecordedSet(
        'Marques2020', 'marques', 'DeValois1982b', 'V1, peak frequency, 363 neurons'
    ),
    'Marques2020.Schiller1976': RecordedSet(
        'Marques2020', 'marques', 'Schiller1976c', 'V1, spatial frequency, 87 neurons'
    ),
    'Marques2020.Ringach2002': RecordedSet(
        'Marques2020', 'marques', 'Ringach2002', 'V1, orientation tuning, 304 neurons'
    ),
    'Marques2020.FreemanZiemba2013': RecordedSet(
        'Marques2020', 'marques', 'FreemanZiemba2013_V1_properties', 'V1, texture responses, 102 neurons'
    ),
    'ZhangDesimone7': RecordedSet(
        'ZhangDesimone7', 'zhang', 'counts', 'Macaque IT, 132 units, 7 objects, 50-ms counts'
    ),
    'ZhangDesimone7.10ms': RecordedSet('ZhangDesimone7', 'zhang', 'rasters', 'The same, 10-ms counts from the rasters'),
    'Haxby2001.volumes': RecordedSet('Haxby2001', 'haxby', 'volumes', 'fMRI, one slice, 530 voxels, every volume'),
    'Haxby2001.blocks': RecordedSet(
        'Haxby2001', 'haxby', 'blocks', 'The same, a mean for each category and run, z-scored'
    ),
    'Bonner81': RecordedSet('Bonner81', 'bonner', '', 'fMRI, 7 regions, 696 voxels, 81 categories'),
    'THINGS.49': RecordedSet('THINGS', 'things', '49', 'Odd-one-out embedding of 1,854 objects, 49 dimensions'),
    'THINGS.66': RecordedSet('THINGS', 'things', '66', 'Odd-one-out embedding of 1,854 objects, 66 dimensions'),
    'KarITneuron': RecordedSet('KarITneuron', 'kar', '', 'Macaque IT, one site, 640 images, 63 repetitions'),
    **{
        f'BrainScoreTest.{n}': RecordedSet(
            'BrainScoreTestAssemblies', 'brainscore_test', n, f'Probabilities of {n}, 240 images'
        )
        for n in ('alexnet', 'resnet18', 'resnet34')
    },
    'BrainScoreTest.alexnet-units': RecordedSet(
        'BrainScoreTestAssemblies', 'brainscore_test', 'alexnet-units', 'Activations of alexnet, one image'
    ),
    'BrainScoreTest.alexnet-pca': RecordedSet(
        'BrainScoreTestAssemblies', 'brainscore_test', 'alexnet-pca', 'The same, 1,000 components a layer'
    ),
    'GeneratedSentences': RecordedSet(
        'GeneratedSentences', 'sentences', '', 'Made: 60 sentences, 24 units, 3 repetitions'
    ),
}


def load(name: str, data_dir: str | Path) -> Recorded:
    """Read a recorded set.

    Args:
      name: of SETS.
      data_dir: the folder that holds the collections, each in its own (`CowleyV4`, `Kriegeskorte92`, ...).

    Raises: RequestError for an unknown name, and `data missing: ...` where its files are not there.
    """
    if name not in SETS:
        raise unknown('recorded set', name, SETS)
    row = SETS[name]
    read = import_module(f'jbench.alignment.data.{row.reader}').read
    stimuli, assembly = read(Path(data_dir), row.which)
    named = assembly.assign_attrs(identifier=name, stimulus_set=stimuli.identifier, stimulus_set_digest=stimuli.digest)
    return Recorded(stimuli, named, SOURCES[row.source])


def state(name: str, data_dir: str | Path | None) -> str:
    """Whether a recorded set can be here, in words: by the folder of its collection alone, nothing is read."""
    source = SOURCES[SETS[name].source]
    folder = Path(data_dir or '<data_dir>', source.folder)
    if not source.sha256:
        return 'made here'
    return f'in {folder}' if folder.is_dir() else f'data missing: {folder} from {source.origin}'
