"""Which pretrained weights models start from: the files, found and named by their digest."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from jbench import files
from jbench.data.download.file_list import KEPT, File
from jbench.models import seen, tensor_file
from jbench.plan import places
from jbench.plan.select import Pick
from jbench.spec.checkpoints import BANKS, CHECKPOINTS, PACKAGED, Checkpoint, checkpoint_of, place_of
from jbench.spec.dataset import Download
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.spec.pretraining import history
from jbench.stores import recordings

COMMIT = re.compile(r'(?<=/resolve/)[0-9a-f]{40}(?=/)')  # in the address of a file at a hub


class Published(NamedTuple):
    """A published file of weights, and the models that start from it."""

    models: tuple[str, ...]
    file: str
    words: str  # where it comes from, and under which terms
    bytes: int | None  # None: nobody asked the hub yet
    here: bool
    what: str = 'weights of'

    @property
    def line(self) -> str:
        """All of it in words."""
        size = 'size unknown until the hub is asked' if self.bytes is None else f'{self.bytes} bytes'
        place = 'here' if self.here else '--download fetches it'
        return f'{self.what} {", ".join(self.models)}: {self.words}; {size}, {place}'


class Weighted(NamedTuple):
    """Models that start from weights."""

    models: list[Pick]
    files: dict[str, Path]  # of these weights, by SHA-256
    absent: list[str]  # which models of a group are left out, and why
    takers: str  # which models --weights is for, where some are left; '': for all


def resolve(
    models: list[Pick], asked: str | None, data_dir: Path | None, workdir: Path, *, needed: bool = True
) -> Weighted:
    """Models with the digests of the weights that they start from.

    Args:
        models: those that were asked for.
        asked: as --weights; what a model says itself ('labram:weights=none') goes before it.
        data_dir: where published weights are looked for.
        workdir: where copies of places of electrodes are.
        needed: False: nothing trains, so that weights which are not here are no error.

    Raises: RequestError where a model that is named has no weights here, or a file cannot be read.
    """
    free = [pick for pick in models if not pick.spec.weights]
    takers = {m.name for m, _ in free if m.name in CHECKPOINTS} or {
        m.name for m, named in free if named and _may_take(m)
    }
    if asked is not None and not takers:
        raise RequestError(f'--weights={asked}: unused, because no model of this request takes weights from it')
    if asked == '':
        raise RequestError(f'--weights=: expected a file, a folder, or {SCRATCH}')
    found, where, absent, absent_places = list[Pick](), dict[str, Path](), list[str](), list[str]()
    for model, named in models:
        wanted = (model.weights or asked) if model.weights or model.name in takers else ''
        if wanted == SCRATCH or not (wanted or model.name in CHECKPOINTS):
            start = with_weights(model, SCRATCH) if wanted == SCRATCH else model
            found.append(Pick(places.with_places(start, data_dir, workdir, needed=needed), named))
            continue
        path = _file(model, wanted, len(takers), data_dir, must=named)
        if path is not None:
            digest = _digest(path)
            start = with_weights(model, digest, data_dir, path)
            try:
                start = places.with_places(start, data_dir, workdir, path, needed=needed)
            except RequestError as error:
                if named:
                    raise
                absent_places.append(str(error))
                continue
            where[digest] = path
            found.append(Pick(start, named))
        elif not needed:
            found.append(Pick(model, named))
        elif named:
            raise RequestError(lacking(model.name, data_dir))
        else:
            absent.append(model.name)
    why = f'{", ".join(absent)}: their pretrained weights are not here; --download fetches them, --weights={SCRATCH} '
    lacking_ones = [f'{why}trains from random ones'] if absent else []
    return Weighted(found, where, [*lacking_ones, *absent_places], _told(free, takers, asked))


def with_weights(model: ModelSpec, digest: str, data_dir: Path | None = None, path: Path | None = None) -> ModelSpec:
    """A model that starts from these weights: what published ones have seen is known, of others their file may say it
    (models/seen.py); without a `path` it is what the model says already."""
    declared = model.pretraining if model.family == 'user' else ()  # by its author, of what `init` gives
    if digest == SCRATCH:
        return dataclasses.replace(model, weights=digest, own_weights=False, pretraining=declared)
    if is_published(model.name, digest, data_dir):
        known = history(model.name)
        return dataclasses.replace(
            model, weights=digest, own_weights=False, pretraining=known.datasets if known is not None else ()
        )
    told = model.pretraining if path is None else (*declared, *seen.datasets(path))
    return dataclasses.replace(model, weights=digest, own_weights=True, pretraining=tuple(dict.fromkeys(told)))


def _may_take(model: ModelSpec) -> bool:
    """Whether a model that no weights were published for may start from a file."""
    return model.kind == 'network' and model.trained and model.head


def _told(free: Sequence[Pick], takers: Collection[str], asked: str | None) -> str:
    """Which networks a file (or folder) is for, and which start from random weights beside them; '' where none does."""
    others = [m.with_options for m, _ in free if m.name not in takers and m.kind == 'network' and m.trained]
    if not others or asked in (None, SCRATCH):
        return ''
    verb, first = ('starts', 'it starts') if len(others) == 1 else ('start', 'one starts')
    meant = next((m.name for m, _ in free if m.with_options in others and m.head), '')
    hint = f' (--model={meant}:weights=FILE: {first} from FILE)' if meant else ''
    return f'--weights={asked}: for {", ".join(sorted(takers))}; {", ".join(others)} {verb} from random weights{hint}'


def find(model: ModelSpec, asked: str | None, data_dir: Path | None, *, needed: bool = True) -> dict[str, Path]:
    """The file of the weights that a cell names by their digest. Raises: RequestError where it is not here."""
    if model.weights in ('', SCRATCH):
        if asked is not None:
            raise RequestError(f'--weights={asked}: unused, because the cell starts from random weights')
        return {}
    sought = asked != SCRATCH and (asked or model.name in CHECKPOINTS)
    path = _file(model, asked, 1, data_dir, must=True) if sought else None
    if path is not None and _digest(path) == model.weights:
        return {model.weights: path}
    if not needed:
        return {}
    other = f'; {path} is another file' if path else ''
    how = '--weights=FILE names them' + (', --download fetches them' if not model.own_weights else '')
    raise RequestError(f'{model.name} starts from weights with SHA-256 {model.weights}, not here{other}; {how}')


def lacking(name: str, data_dir: Path | None) -> str:
    """What to do about weights that are not here, in words."""
    where = '' if data_dir is None else f' into {place_of(name, data_dir).parent}'
    return (
        f'{name} starts from pretrained weights, which are not here: --download fetches them{where} '
        f'({CHECKPOINTS[name].words}); --weights=FILE takes others, --weights={SCRATCH} trains from random ones'
    )


def published(names: Sequence[str], data_dir: Path | None) -> list[Published]:
    """The published weights of models and the banks of places that belong to them (or that are named alone), each file
    once; its size is that of the file here, or what the list of the hub says that --download keeps beside it."""
    sharing: dict[Checkpoint, list[str]] = {}
    of: dict[Checkpoint, str] = {}
    for model in dict.fromkeys(names):
        for name in filter(None, (model, checkpoint_of(model).bank)):
            checkpoint = checkpoint_of(name)
            key = next((c for c in sharing if (c.url, c.file) == (checkpoint.url, checkpoint.file)), checkpoint)
            sharing.setdefault(key, []).append(model)
            of.setdefault(key, name)
    out = []
    for checkpoint, models in sharing.items():
        name = of[checkpoint]
        path = place_of(name, data_dir or Path()) if data_dir or checkpoint.url == PACKAGED else None
        here = path is not None and path.is_file()
        size = path.stat().st_size if path is not None and here else None
        if size is None:
            size = next((file.size for file in _listed(name, data_dir)), None)
        what = 'places of electrodes for' if name in BANKS else 'weights of'
        out.append(Published(tuple(models), checkpoint.file, checkpoint.words, size, here, what))
    return out


def origin(model: ModelSpec, data_dir: Path | None) -> dict[str, str] | None:
    """Which published file a model starts from: its place at the hub, the commit there ('' where nobody asked the hub,
    and the place names a branch alone), its name, digest and licence. None of other weights, and of those of jbench."""
    if not of_cell(model) or not model.weights or CHECKPOINTS[model.name].url == PACKAGED:
        return None
    checkpoint = CHECKPOINTS[model.name]
    place, _, revision = checkpoint.url.partition('@')
    urls = [file.url for file in _listed(model.name, data_dir) if file.digest == model.weights]
    found = [commit for url in urls for commit in COMMIT.findall(url)]
    return {
        'place': place,
        'revision': (found or [revision])[0],
        'file': checkpoint.file,
        'sha256': model.weights,
        'licence': checkpoint.licence,
    }


def of_cell(model: ModelSpec) -> list[str]:
    """The model of a cell, if it starts from published weights."""
    return [model.name] if model.name in CHECKPOINTS and not model.own_weights and model.weights != SCRATCH else []


def _file(model: ModelSpec, wanted: str | None, n_takers: int, data_dir: Path | None, *, must: bool) -> Path | None:
    """The file of a model's weights; None where the published ones are not here, or (unless it `must` be) it is not in
    the folder that was named."""
    if not wanted and CHECKPOINTS[model.name].url == PACKAGED:
        return place_of(model.name, Path())
    if not wanted:
        path = place_of(model.name, data_dir) if data_dir else None
        if path is not None and data_dir is not None:
            recordings.fill(data_dir, path.parent.relative_to(data_dir).as_posix())
        return path if path is not None and path.is_file() else None
    path, checkpoint = Path(wanted), CHECKPOINTS.get(model.name)
    is_folder = os.path.isdir(path)  # where Path.is_dir may raise, of a name that is too long or may not be looked at
    if is_folder and checkpoint is None:
        raise RequestError(f'--weights={wanted}: a folder; expected a file of weights of {model.name}')
    if is_folder and checkpoint is not None:
        tries = [path / (folder or model.name) / checkpoint.file for folder in ('', checkpoint.folder)]
        tries = list(dict.fromkeys([*tries, *([path / checkpoint.file] if n_takers == 1 else [])]))
        there = [p for p in tries if os.path.isfile(p)]
        if not there and must:
            if split := sorted(p for t in tries for p in t.parent.glob(f'*{tensor_file.SPLIT}')):
                raise RequestError(f'--weights={wanted}: holds weights that are split ({split[0]}); {tensor_file.JOIN}')
            raise RequestError(f'--weights={wanted}: holds no {" nor ".join(str(p.relative_to(path)) for p in tries)}')
        return there[0] if there else None
    if not os.path.isfile(path):
        raise RequestError(
            f'--weights={wanted}: no such file; expected weights of {model.name}, a folder, or {SCRATCH}'
        )
    if n_takers > 1 and wanted != model.weights:
        raise RequestError(
            f'--weights={wanted}: one file for {n_takers} models; give it to one: --model={model.name}:weights={wanted}'
            + (f', or name a folder that holds MODEL/{checkpoint.file} for each' if checkpoint else '')
        )
    return path


def _digest(path: Path) -> str:
    """SHA-256 of a file of weights. Raises: RequestError where it cannot be read, or no network can start from it."""
    try:
        tensor_file.require(path)
        return files.sha256_file(path)
    except OSError as error:
        raise RequestError(f'{path}: cannot read these weights: {error.strerror or error}') from error


def is_published(name: str, digest: str, data_dir: Path | None) -> bool:
    """Whether weights are the published ones of a model: by the digest that jbench knows, else by the list of the hub,
    which --download keeps beside them."""
    checkpoint = CHECKPOINTS.get(name)
    if checkpoint is None:
        return False
    if checkpoint.sha256 or data_dir is None:
        return digest == checkpoint.sha256
    return any(file.digest == digest for file in _listed(name, data_dir))


def _listed(name: str, data_dir: Path | None) -> list[File]:
    """What the list of the hub says of the weights of a model, or of a bank, where --download has kept one."""
    if data_dir is None:
        return []
    checkpoint = checkpoint_of(name)
    place, listed = Download(url=checkpoint.url, files=checkpoint.file), place_of(name, data_dir).parent / KEPT
    if not listed.is_file():
        return []
    from jbench.data.download import wanted_files  # which imports what asks hosts

    try:
        return wanted_files.kept(place, listed)
    except RequestError:
        return []
