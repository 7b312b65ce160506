"""Which places of electrodes a model goes by: the file that belongs to its published weights, or the user's own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from jbench import files
from jbench.spec.checkpoints import BANKS, CHECKPOINTS, place_of
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH, ModelSpec
from jbench.stores import mirror, recordings

OPTION, MNE = 'positions', 'mne'  # of models with a bank; the value that asks for none


def with_places(model: ModelSpec, data_dir: Path | None, learnt_by: str = '', *, needed: bool = True) -> ModelSpec:
    """A model with the file of places that it goes by, named by its digest: that of `positions=PATH`, else, with
    published weights, the one that belongs to them, and with weights of one's own the one that they were learnt with.
    Others are left as they are.

    Args:
        model: with its weights.
        data_dir: where published files are looked for.
        learnt_by: the digest of places that weights of one's own name; '': they name none.
        needed: False: nothing trains, so that a file which is not here is no error.

    Raises: RequestError where the file is not here.
    """
    bank = CHECKPOINTS[model.name].bank if model.name in CHECKPOINTS else ''
    asked = dict(model.options).get(OPTION, '') if bank else ''
    published = model.weights not in ('', SCRATCH) and not model.own_weights
    rest = tuple((name, value) for name, value in model.options if name != OPTION)
    unasked = published or bool(learnt_by)
    if asked == MNE and not unasked:  # as it is without the option
        return dataclasses.replace(model, options=rest)
    if not bank or asked == MNE or not (asked or unasked):
        return model
    path = Path(asked) if asked else data_dir and _brought(bank, data_dir)
    there = path is not None and path.is_file()
    if not there and not needed:
        return model
    if not there and (asked or not learnt_by):
        raise RequestError(f'{model.name}:{OPTION}={asked}: no such file' if asked else lacking(model.name, data_dir))
    named = _named(path) if there and path is not None else ''
    if learnt_by and not asked and named.rpartition('@')[2] != learnt_by and not needed:
        return model
    if learnt_by and not asked and named.rpartition('@')[2] != learnt_by:
        raise RequestError(
            f'{model.name}: its weights were learnt by places of electrodes with SHA-256 {learnt_by}, not here: '
            f'{model.name}:{OPTION}=FILE names them (a run keeps a copy, {kept_at(Path("WORKDIR"), learnt_by)}), '
            f'{model.name}:{OPTION}={MNE} takes those of MNE'
        )
    return dataclasses.replace(model, options=rest, places=named, own_places=bool(asked))


def unread(model: ModelSpec) -> bool:
    """Whether published weights of a model will go by a file of places, which this one, without them, does not yet."""
    bank = CHECKPOINTS[model.name].bank if model.name in CHECKPOINTS else ''
    asked = dict(model.options).get(OPTION, '')
    return bool(bank) and not (model.places or asked or model.own_weights or model.weights == SCRATCH)


def found(model: ModelSpec, data_dir: Path | None, workdir: Path, *, needed: bool = True) -> ModelSpec:
    """A model whose places are named by a digest, from a cell or a result, with the path of that file here.

    Raises: RequestError where no such file is here.
    """
    if not model.places:
        return model
    path, digest = Path(model.places.rpartition('@')[0]), model.places_digest
    bank = CHECKPOINTS[model.name].bank if model.name in CHECKPOINTS else ''
    tries = [path, kept_at(workdir, digest), *([_brought(bank, data_dir)] if bank and data_dir else [])]
    for one in tries:
        if one.is_file() and files.sha256_file(one) == digest:
            return dataclasses.replace(model, places=f'{one}@{digest}')
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
