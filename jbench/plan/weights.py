"""Which pretrained weights models start from: the files, found and named by their digest."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

from jbench import files
from jbench.plan.select import Pick
from jbench.spec.checkpoints import CHECKPOINTS, PICKLED, place_of
from jbench.spec.errors import RequestError
from jbench.spec.model import SCRATCH, ModelSpec


class Weighted(NamedTuple):
    """Models that start from weights."""

    models: list[Pick]
    files: dict[str, Path]  # of these weights, by SHA-256
    absent: list[str]  # which models of a group are left out, and why


def resolve(models: list[Pick], asked: str | None, data_dir: Path | None) -> Weighted:
    """Models with the digests of the weights that they start from.

    Args:
        models: those that were asked for.
        asked: as --weights; what a model says itself ('labram:weights=none') goes before it.
        data_dir: where published weights are looked for.

    Raises: RequestError where a model that is named has no weights here, or a file cannot be read.
    """
    takers = [m for m, _ in models if m.name in CHECKPOINTS]
    if asked is not None and not takers:
        raise RequestError(f'--weights={asked}: unused, because no model of this request takes pretrained weights')
    found, where, absent = [], {}, []
    for model, named in models:
        wanted = (model.weights or asked) if model.name in CHECKPOINTS else ''
        if model.name not in CHECKPOINTS or wanted == SCRATCH:
            spec = dataclasses.replace(model, weights=SCRATCH, pretraining=()) if wanted == SCRATCH else model
            found.append(Pick(spec, named))
            continue
        path = _file(model, wanted, len(takers), data_dir)
        if path is None:
            if named:
                raise RequestError(lacking(model.name, data_dir))
            absent.append(model.name)
            continue
        digest = _digest(path)
        where[digest] = path
        found.append(Pick(dataclasses.replace(model, weights=digest, own_weights=_own(model, digest, data_dir)), named))
    why = f'{", ".join(absent)}: their pretrained weights are not here; --download fetches them, --weights={SCRATCH} '
    return Weighted(found, where, [f'{why}trains from random ones'] if absent else [])


def find(model: ModelSpec, digest: str, asked: str | None, data_dir: Path | None) -> dict[str, Path]:
    """The file of the weights that a cell names, by their digest. Raises: RequestError where it is not here."""
    if digest in ('', SCRATCH):
        if asked is not None:
            raise RequestError(f'--weights={asked}: unused, because the cell says which weights it starts from: none')
        return {}
    path = _file(model, asked, 1, data_dir)
    if path is not None and _digest(path) == digest:
        return {digest: path}
    other = f'; {path} is another file' if path else ''
    raise RequestError(f'{model.name} starts from weights with SHA-256 {digest}{other}; name them by --weights=FILE')


def lacking(name: str, data_dir: Path | None) -> str:
    """What to do about weights that are not here, in words."""
    where = '' if data_dir is None else f' into {place_of(name, data_dir).parent}'
    return (
        f'{name} starts from pretrained weights, which are not here: --download fetches them{where} '
        f'({CHECKPOINTS[name].words}); --weights=FILE takes others, --weights={SCRATCH} trains from random ones'
    )


def _file(model: ModelSpec, wanted: str | None, n_takers: int, data_dir: Path | None) -> Path | None:
    """The file of a model's weights; None where the published ones are not here."""
    if not wanted:
        path = place_of(model.name, data_dir) if data_dir else None
        return path if path is not None and path.is_file() else None
    path, file = Path(wanted), CHECKPOINTS[model.name].file
    if path.is_dir():
        tries = [path / model.name / file, *([path / file] if n_takers == 1 else [])]
        there = [p for p in tries if p.is_file()]
        if not there:
            raise RequestError(f'--weights={wanted}: holds no {" nor ".join(str(p.relative_to(path)) for p in tries)}')
        return there[0]
    if not path.is_file():
        raise RequestError(
            f'--weights={wanted}: no such file; expected weights of {model.name}, a folder, or {SCRATCH}'
        )
    if n_takers > 1 and wanted != model.weights:
        raise RequestError(
            f'--weights={wanted}: one file for {n_takers} models; name a folder that holds MODEL/{file} for each, or '
            f'give it to one: --model={model.name}:weights={wanted}'
        )
    return path


def _digest(path: Path) -> str:
    """SHA-256 of a file of weights. Raises: RequestError where it cannot be read, or is no file of weights."""
    try:
        with path.open('rb') as file:
            begin = file.read(9)
        found = files.sha256_file(path)
    except OSError as error:
        raise RequestError(f'{path}: cannot read these weights: {error.strerror or error}') from error
    if not (begin.startswith(PICKLED) or begin[8:] == b'{'):
        raise RequestError(f'{path}: no weights: expected a safetensors file, or one that torch.save wrote')
    return found


def _own(model: ModelSpec, digest: str, data_dir: Path | None) -> bool:
    """Whether weights are not the published ones of a model, as far as can be known here."""
    published = CHECKPOINTS[model.name].sha256
    if published:
        return digest != published
    path = place_of(model.name, data_dir) if data_dir else None
    return path is None or not path.is_file() or _digest(path) != digest


def to_fetch(models: list[Pick], asked: str | None) -> list[str]:
    """Names of the models whose published weights are wanted."""
    return [m.name for m, _ in models if m.name in CHECKPOINTS and not (m.weights or asked)]
