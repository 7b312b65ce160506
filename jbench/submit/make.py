"""An archive, from results to the file: made, tried in a fresh process, written."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jbench import files
from jbench.metrics.challenges import SHARES_2025, overall_2025
from jbench.progress import Progress
from jbench.spec.checkpoints import not_to_share
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.submit import archive, checks, export
from jbench.submit.process import trying
from jbench.submit.tracks import HOUR, LARGEST, TRACKS, Track
from jbench.trained import TrainedModel, load_model

PARTS = ('twins', 'decoder', 'solver')  # modules that `submission.py` of 2026 is made of


def twins() -> Iterator[str]:
    """The models that archives can be made of."""
    yield from export.TWINS


def make(results: list[Path], name: str, out: Path) -> Iterator[str]:
    """Write the archive of a track; says what was found on the way, line by line.

    Args:
        results: result files of one seed each: one, of 2025 two.
        name: of the track.
        out: the ZIP; one that is there is replaced by an archive that passes.
    Raises: RequestError for a request that is wrong, or an archive that fails when tried: nothing is written then.
    """
    track, paths = TRACKS[name], export.fitting(results, name)
    if find_spec('torch') is None:
        raise MissingExtraError('torch', 'checkpoints', 'jbench.submit')
    models = [load_model(path) for path in paths]
    if any(model.cell.dataset.simulated for model in models):
        yield 'SIMULATED: learnt on generated recordings; this archive shows that the way is whole, and decodes nobody'
    for model in models:
        if terms := not_to_share(model.cell.model):
            yield f'{model.path}: {terms}'
    with tempfile.TemporaryDirectory() as folder, Progress() as progress:
        for model in models:
            yield f'{model.path}: {model.cell.title}, seed {model.result["seed"]}'
            yield from export.otherwise(model.cell)
        contents = _of_2025(models, track, Path(folder)) if name == '2025' else _of_2026(models[0], track)
        whole = archive.zipped(contents)
        if len(whole) > LARGEST:
            raise RequestError(f'{out}: {len(whole) / 1e9:.1f} GB, and an archive may have {LARGEST / 1e9:.0f} GB')
        place = Path(folder, 'archive')
        archive.unzipped(whole, place)
        local = []
        with trying(place, name) as process:
            for k, model in enumerate(models):
                meta = _meta(model, track) | ({'challenge': k + 1} if name == '2025' else {})
                trial = checks.tried(model, track, process, meta, progress.update)
                yield from _told(trial, model, track, process.torch)
                value = None if isinstance(trial.local, str) else trial.local['value']
                local += [] if value is None else [value]
        if len(local) == len(SHARES_2025):
            mark = ' (SIMULATED)' if any(model.cell.dataset.simulated for model in models) else ''
            yield f'overall score of 2025{mark}: {overall_2025(*local)}, 0.3 of challenge 1 and 0.7 of challenge 2'
        if extra := sorted({p.name for p in place.iterdir()} - set(contents)):
            raise RequestError(f'the archive writes into its own folder, which it must not: {", ".join(extra)}')
    files.write_atomic(out, whole)
    yield f'written: {out}, {len(whole) / 1e6:.2f} MB: {", ".join(sorted(contents))}'


def _of_2026(model: TrainedModel, track: Track) -> dict[str, bytes]:
    text = archive.source(PARTS, f'{model.spec.title} for track {track.name}').replace("'NAME'", repr(_called(model)))
    return {'submission.py': text.encode(), 'weights.npz': export.weights(model, track)}


def _of_2025(models: list[TrainedModel], track: Track, folder: Path) -> dict[str, bytes]:
    """Each network is traced in a process of its own, as a platform has none of our source."""
    contents = {'submission.py': archive.source(('submission2025',), 'EEG Challenge 2025').encode()}
    for k, model in enumerate(models, 1):
        place = folder / f'traced{k}'
        place.mkdir()
        (place / 'submission.py').write_text(archive.source(PARTS, model.spec.title))
        (place / 'weights.npz').write_bytes(export.weights(model, track))
        name = f'weights_challenge_{k}.pt'
        with trying(place, 'trace') as process:
            process.ask('script', weights='weights.npz', meta=_meta(model, track), out=name)
        contents[name] = (place / name).read_bytes()
    return contents


def _meta(model: TrainedModel, track: Track) -> dict[str, Any]:
    """What the platform says of its windows; a stand-in of other channels is given the first of 2025, which nobody
    names there."""
    meta = track.meta(model.signal.ch_names)
    return {**meta, 'ch_names': None} if track.name == '2025' and model.signal.n_chans < track.shape[0] else meta


def _called(model: TrainedModel) -> str:
    return f'jbench-{model.spec.name.replace("_", "-")}'


def _told(trial: checks.Trial, model: TrainedModel, track: Track, torch: str) -> Iterator[str]:
    """What trying a network gave, in lines."""
    yield f'{model.cell.title} in a fresh process, with torch {torch} and NumPy alone and no network:'
    yield f'  outputs differ from those in JAX by at most {trial.difference:.1e} (allowed: {checks.CLOSE:g})'
    yield from (f'  {line}' for line in trial.lines)
    n = model.result['n_records']['test']
    whole = trial.seconds * n
    how = 'one at a time' if track.alone else f'{checks.FEW} at a time'
    yield f'  {1000 * trial.seconds:.1f} ms a window here, {how}: {_length(whole)} for {n} test windows'
    if whole > HOUR:
        yield '  WARNING: longer here than the hour that the platform gives on a GPU'
    yield f'  {_score(trial.local, model)}'


def _length(seconds: float) -> str:
    return f'{seconds / 60:.0f} min' if seconds > 120 else f'{seconds:.1f} s'


def _score(local: dict[str, Any] | str, model: TrainedModel) -> str:
    """The local score, with its interval."""
    if isinstance(local, str):
        return f'no local score: {local}'
    if local['value'] is None:
        return f'no local score: {local["name"]} is not defined on its test windows'
    ends = f', 95 % interval {local["interval"][0]:.4g} to {local["interval"][1]:.4g}' if local['interval'] else ''
    mark = ' (SIMULATED)' if model.cell.dataset.simulated else ''
    raw = model.result['headline']['value']
    return (
        f'local score{mark}: {local["name"]} {local["value"]:.5g}{ends}, of {local["n_subjects"]} subjects of '
        f'{model.cell.dataset.name}; the result file says {raw:.5g}'
    )
