"""Which places of electrodes a model goes by: the file that belongs to its published weights, or the user's own."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from jbench import files
from jbench.models import seen
from jbench.spec.checkpoints import BANKS, CHECKPOINTS, place_of
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.stores import mirror, recordings

OPTION, MNE = 'positions', 'mne'  # of models with a bank; the value that asks for none


def with_places(
    model: ModelSpec, data_dir: Path | None, workdir: Path, weights: Path | None = None, *, needed: bool = True
) -> ModelSpec:
    """A model with the file of places that it goes by, named by its digest: that of `positions=PATH`, else, with
    published weights, the one that belongs to them, and with weights that a run kept the one that they were learnt
    with (the published one, or the copy in the work folder). Others are left as they are.

    Args:
        model: with its weights.
        data_dir, workdir: where published files, and copies of what runs went by, are looked for.
        weights: the file of its weights; None: it starts from random ones.
        needed: False: nothing trains, so that a file which is not here is no error.

    Raises: RequestError where the file is not here.
    """
    bank = bank_of(model)
    asked = dict(model.options).get(OPTION, '') if bank else ''
    published = weights is not None and not model.own_weights
    learnt_by = seen.places(weights) if weights is not None and model.own_weights else ''
    rest = tuple((name, value) for name, value in model.options if name != OPTION)
    if asked == MNE and not (published or learnt_by):  # as it is without the option
        return dataclasses.replace(model, options=rest)
    if not bank or asked == MNE or not (asked or published or learnt_by):
        return model
    tries = [Path(asked)] if asked else [_brought(bank, data_dir)] if data_dir else []
    if learnt_by and not asked:
        tries.append(kept_at(workdir, learnt_by))
    for path in tries:
        named = _named(path) if os.path.isfile(path) else ''
        if named and (asked or published or named.endswith(f'@{learnt_by}')):
            return dataclasses.replace(model, options=rest, places=named, own_places=bool(asked))
    if not needed:
        return model
    if asked:
        raise RequestError(f'{model.name}:{OPTION}={asked}: no such file')
    raise RequestError(lacking(model.name, data_dir) if published else _lacking_own(model.name, learnt_by))


def unread(model: ModelSpec) -> bool:
    """Whether published weights of a model will go by a file of places, which this one, without them, does not yet."""
    asked = dict(model.options).get(OPTION, '')
    return bool(bank_of(model)) and not (model.places or asked or model.own_weights or model.weights == SCRATCH)


def found(model: ModelSpec, data_dir: Path | None, workdir: Path, *, needed: bool = True) -> ModelSpec:
    """A model whose places are named by a digest, from a cell or a result, with the path of that file here.

    Raises: RequestError where no such file is here.
    """
    if not model.places:
        return model
    path, digest = Path(model.places.rpartition('@')[0]), model.places_digest
    bank = bank_of(model)
    tries = [path, kept_at(workdir, digest), *([_brought(bank, data_dir)] if bank and data_dir else [])]
    for one in tries:
        try:
            if os.path.isfile(one) and files.sha256_file(one) == digest:
                return dataclasses.replace(model, places=f'{one}@{digest}')
        except OSError:  # of a file that may not be read
            continue
    if not needed:
        return model
    how = 'ask by --task and --model=NAME:positions=FILE' if model.own_places else '--download fetches them'
    how += '' if data_dir else f', or put the file at {kept_at(workdir, digest)}'
    raise RequestError(f'{model.name} goes by places of electrodes with SHA-256 {digest}, not here; {how}')


def keep(model: ModelSpec, workdir: Path) -> None:
    """Keep a copy of the file in the work folder, from which results answer again."""
    if model.places and not (kept := kept_at(workdir, model.places_digest)).is_file():
        files.write_atomic(kept, Path(model.places.rpartition('@')[0]).read_bytes())
        mirror.take(workdir, [kept])


def kept_at(workdir: Path, digest: str) -> Path:
    """Where `keep` puts it."""
    return workdir / 'weights' / f'{digest}.json'


def lacking(name: str, data_dir: Path | None) -> str:
    """What to do about places of published weights that are not here, in words."""
    bank = CHECKPOINTS[name].bank
    where = '' if data_dir is None else f' into {place_of(bank, data_dir).parent}'
    return (
        f'{name}: the places of electrodes that its weights were learnt with are not here: --download fetches '
        f'them{where} ({BANKS[bank].words}); {name}:{OPTION}=FILE takes others, {name}:{OPTION}={MNE} those of MNE'
    )


def _lacking_own(name: str, digest: str) -> str:
    """What to do about places that weights of one's own were learnt with and that are not here, in words."""
    return (
        f'{name}: its weights were learnt by places of electrodes with SHA-256 {digest}, not here: '
        f'{name}:{OPTION}=FILE names them (weights/{digest}.json of the work folder where it was learnt is a copy), '
        f'{name}:{OPTION}={MNE} takes those of MNE'
    )


def bank_of(model: ModelSpec) -> str:
    """The published file of places that belongs to the weights of a model; '' where none does."""
    return CHECKPOINTS[model.name].bank if model.name in CHECKPOINTS else ''


def _brought(bank: str, data_dir: Path) -> Path:
    """Where a published file of places lies, or would lie, once a store has been asked for it."""
    path = place_of(bank, data_dir)
    if not path.is_file():
        recordings.fill(data_dir, path.parent.relative_to(data_dir).as_posix())
    return path


def _named(path: Path) -> str:
    """PATH@SHA256. Raises: RequestError where it cannot be read."""
    try:
        return f'{path.absolute()}@{files.sha256_file(path)}'
    except OSError as error:
        raise RequestError(f'{path}: cannot read these places of electrodes: {error.strerror or error}') from error
