"""Several datasets as one, for pretraining: `--task=pretrain/masked/Schalk2004Bci2000+Zyma2019Electroencephalograms`.

The recordings of a mixture are those of its members, each read by its own module and held to its own facts. A subject
is called after its dataset (`SimulatedP3.S01`), so that people of different sets are different people; so are films.
A window comes as often as any other: of large sets there are more. Channels are those of all members, and zero where a
member lacks them (`signal.picks` names fewer).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.data.source import catalogue, source_of
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.overrides import Override, override
from jbench.spec.task import Task
from jbench.tasks import registered

JOINED = '+'


def mixed(members: Sequence[Dataset]) -> Dataset:
    """Several datasets as one. Raises: RequestError for one that comes twice, and for different devices."""
    names = [d.name for d in members]
    if len({*names}) < len(names) or len({d.device for d in members}) > 1:
        raise RequestError(f'{JOINED.join(names)}: expected different datasets of one device')
    if own := [name for name in names if name not in catalogue()]:
        raise RequestError(f'{JOINED.join(names)}: {own[0]} is your own; only datasets of jbench are mixed')
    agreed = [d.access for d in members if d.access not in ('open', 'embedded')]
    return Dataset(
        name=JOINED.join(names),
        title=_said(d.title for d in members),
        source=__name__,
        device=members[0].device,
        n_subjects=sum(d.n_subjects for d in members),
        n_recordings=sum(d.n_recordings for d in members),
        n_chans=max(d.n_chans for d in members),
        sfreq=tuple(sorted({rate for d in members for rate in d.sfreq})),
        event_types=(),
        amplitude=(min(d.amplitude[0] for d in members), max(d.amplitude[1] for d in members)),
        licence=_said(d.licence for d in members),
        citation=_said(d.citation for d in members),
        host=_said(d.host for d in members),
        layout='each of its datasets as it says itself',
        access='embedded' if all(d.simulated for d in members) else _said(agreed) or 'open',
        revision=JOINED.join(d.revision for d in members).strip(JOINED),
        aliases=tuple(dict.fromkeys(name for d in members for name in (d.name, *d.aliases))),
        simulated=any(d.simulated for d in members),
    )


def _said(words: Iterable[str]) -> str:
    return '; '.join(dict.fromkeys(words))


def members(dataset: Dataset) -> list[Dataset]:
    """The datasets of a mixture."""
    known = catalogue()
    return [known[name] for name in dataset.name.split(JOINED)]


def parts(dataset: Dataset) -> list[Dataset]:
    """The datasets of a mixture; any other alone."""
    return members(dataset) if dataset.source == __name__ else [dataset]


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """Those of all members that are there, which lie beside each other."""
    found = []
    for one in members(dataset):
        place = root.parent / one.name
        for ref in source_of(one).recordings(one, place) if one.simulated or place.is_dir() else ():
            fields = (('dataset', one.name), ('own_subject', ref.subject), *ref.fields)
            found.append(ref._replace(dataset=dataset.name, subject=f'{one.name}.{ref.subject}', fields=fields))
    return found


def lacking(dataset: Dataset, refs: Sequence[RecordingRef]) -> list[Dataset]:
    """The members of a mixture of which none of its recordings is; [] of any other dataset."""
    there = {member(dataset, ref).name for ref in refs}
    return [one for one in parts(dataset) if one.name not in there and dataset.source == __name__]


def member(dataset: Dataset, ref: RecordingRef) -> Dataset:
    """To whose facts a recording is held: those of the member of a mixture, else those of the dataset itself."""
    return catalogue()[dict(ref.fields)['dataset']] if dataset.source == __name__ else dataset


def asked(task: Task, dataset: Dataset, ref: RecordingRef) -> Task:
    """What a task asks of a recording: of that of a mixture what its overrides say of windows and targets of the
    member, which may call films and their events otherwise than the others do. What a user asks goes before them."""
    return asked_of(task, dataset, member(dataset, ref))


def asked_of(task: Task, dataset: Dataset, one: Dataset) -> Task:
    """What a task asks of the recordings of a member of a mixture, or of the dataset itself."""
    for path, value in _differs(task, one.name) if dataset.source == __name__ else ():
        task = override(task, path, value)
    return task


def differences(task: Task, dataset: Dataset) -> dict[str, dict[str, Any]]:
    """In which fields of windows and targets a task asks otherwise of the members of a mixture, by their names; {} of
    any other dataset."""
    mixed = members(dataset) if dataset.source == __name__ else []
    return {one.name: dict(found) for one in mixed if (found := _differs(task, one.name))}


def _differs(task: Task, name: str) -> list[Override]:
    """What the registered task says of the dataset `name` (one that was applied has no overrides any more), of fields
    that nobody has changed since."""
    known = _known(task.full_name, task.version, name)
    return [(path, value) for path, value, plain in known if attrgetter(path)(task) == plain]


@functools.cache
def _known(task: str, version: int, name: str) -> list[tuple[str, Any, Any]]:
    """Path, value, and the value for other datasets, of the registered overrides of windows and targets."""
    mine = [t for t in registered() if (t.full_name, t.version) == (task, version)]
    found = [(path, value, attrgetter(path)(t)) for t in mine for path, value in dict(t.overrides).get(name, ())]
    return [one for one in found if one[0].startswith(('window.', 'target.'))]


def by_member(dataset: Dataset, refs: Sequence[RecordingRef]) -> Iterator[tuple[Dataset, list[int]]]:
    """Each member with the numbers of its recordings; of no mixture the dataset itself with all."""
    owner = [member(dataset, ref) for ref in refs]
    for one in {d.name: d for d in owner}.values():
        yield one, [i for i, d in enumerate(owner) if d.name == one.name]


def own(ref: RecordingRef) -> RecordingRef:
    """A recording of a mixture as that of its member alone."""
    known, fields = dict(ref.fields), tuple(f for f in ref.fields if f[0] not in ('dataset', 'own_subject'))
    return ref._replace(dataset=known['dataset'], subject=known['own_subject'], fields=fields)


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording of a member, as its own module reads it."""
    mine = own(ref)
    return source_of(catalogue()[mine.dataset]).read(mine)
