"""Embeddings of stimuli: one vector for each image, text, sound or film that windows show, made once and kept.

Where the vectors of a data set come from, the first that is there:
1. a source module with `vectors(names, size)`, as simulated sets have;
2. `<data_dir>/<dataset>/embeddings/<encoder>.safetensors` or `.npz`: vectors made elsewhere, keyed by stimulus;
3. `<data_dir>/encoders/<encoder>/`: the encoder itself, as its hub serves it (--download); its vectors are kept in
   `<workdir>/embeddings/`, so that work which is stopped goes on where it was.

What is computed is NeuralBench's (protocol.md section 4). Nothing heavy is imported before it is needed.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench import files
from jbench.data.download.file_list import KEPT
from jbench.data.source import vectors_of
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError
from jbench.spec.task import Embedding, Task
from jbench.stores import mirror, recordings

if TYPE_CHECKING:
    import numpy as np

from jbench.spec.encoders import Encoder, Segment, find, split_name

N_PIECES, PIECE = 64, 2**16  # of a file, by which one encoder is told from another; bytes
Report = Callable[[str, int, int], None]  # (what, done, total); what it raises ends the work


def provide(task: Task, dataset: Dataset, folder: Path, data_dir: Path | None, workdir: Path, report: Report) -> None:
    """Put the embeddings of all stimuli of a prepared set beside it (`stimuli.npz`), if they are not there, or those
    that are were made by something else than what lies in `data_dir` now.

    Raises: RequestError where nothing gives them (it says what would), or where they are of another size than the
    encoder's.
    """
    import json

    import numpy as np

    if not isinstance(task.target, Embedding):
        return
    raw = files.read_npz(folder / 'index.npz')['window.target']
    names = sorted({json.loads(text)[0] for text in raw.tolist()})
    path, encoder = folder / 'stimuli.npz', find(task.target.encoder)
    kept = files.read_npz(path) if path.exists() else {}
    own = vectors_of(dataset)
    if mirror.of(data_dir) is not None and own is None:
        if kept and kept['names'].tolist() == names:
            return
        for part in (f'encoders/{task.target.encoder}', dataset.name):
            recordings.fill(data_dir, part, report)
    places = _places(task.target.encoder, dataset, data_dir)
    source = next((p for p in places if own is None and p.exists()), None)
    identity = '' if source is None else _identity(source)
    if kept and kept['names'].tolist() == names and (source is None or kept.get('source') == identity):
        return
    if own is not None:
        vectors = np.asarray(own(names, encoder.size), np.float32)
    elif source is None:
        raise RequestError(
            f'{dataset.name}: its stimuli need embeddings by {task.target.encoder}. Either put the files of '
            f'{encoder.model} into {places[-1]} (--download does), or vectors made elsewhere, keyed by stimulus, into '
            f'{places[0]} (or .npz)'
        )
    else:
        root = (data_dir or Path()) / dataset.name
        vectors = embed(task.target.encoder, names, workdir / 'embeddings', source, root=root, report=report)
    if vectors.shape != (len(names), encoder.size) or not np.isfinite(vectors).all():
        raise RequestError(
            f'{dataset.name}: the embeddings of its {len(names)} stimuli by {task.target.encoder} must be finite '
            f'numbers {[len(names), encoder.size]}, got {list(vectors.shape)}; {encoder.model} makes the right ones'
        )
    files.write_atomic(
        path, files.npz_bytes({'names': np.array(names), 'vectors': vectors, 'source': np.array(identity)})
    )


def lacking(task: Task, dataset: Dataset, data_dir: Path) -> str:
    """The encoder that a task needs and that is not there, with nothing in its place; '' for none."""
    if not isinstance(task.target, Embedding) or vectors_of(dataset):
        return ''
    *made, folder = _places(task.target.encoder, dataset, data_dir)
    by_hand = folder.is_dir() and any(folder.iterdir()) and not (folder / KEPT).exists()
    return '' if by_hand or any(place.is_file() for place in made) else str(task.target.encoder)


def are_here(task: Task, folder: Path) -> bool:
    """Whether a prepared set has the embeddings that its task needs, if any; `provide` sees whether they are right."""
    return not isinstance(task.target, Embedding) or bool(stored_files(folder))


def stored_files(folder: Path) -> list[str]:
    """Names of the files in the folder of a prepared set that are no part of its manifest."""
    return ['stimuli.npz'] if (folder / 'stimuli.npz').exists() else []


def stored(folder: Path, names: Sequence[str]) -> np.ndarray:
    """The embeddings f32 [N, D] of stimuli of a prepared set. Raises: RequestError where they are not there."""
    import numpy as np

    path = folder / 'stimuli.npz'
    found = files.read_npz(path) if path.exists() else {}
    row = {name: k for k, name in enumerate(found.get('names', ()))}
    if not row.keys() >= set(names):
        raise RequestError(f'{path}: the embeddings of the stimuli are not there; run the same command again')
    return np.asarray(found['vectors'])[[row[name] for name in names]]


def embed(
    name: str,
    stimuli: Sequence[str],
    cache: Path,
    source: str | Path,
    *,
    root: Path | None = None,
    report: Report = lambda what, done, total: None,
) -> np.ndarray:
    """Embeddings of stimuli, each distinct one computed once and kept.

    Args:
        name: of the encoder.
        stimuli: texts, files (below `root`), or parts of files (`part_name`).
        cache: folder of what was computed before, by content: the same file under two names is one stimulus.
        source: the encoder's own folder, or what its hub calls it; or a `.npz` or `.safetensors` with vectors made
            elsewhere, keyed by stimulus.
        report: called about the progress.
    Returns: f32 [len(stimuli), D].
    Raises: RequestError for stimuli that are missing, all of them at once, or an encoder that cannot be loaded;
        MissingExtraError.
    """
    import numpy as np

    if Path(source).suffix in ('.npz', '.safetensors'):
        return _imported(Path(source), stimuli)
    from jbench.data.stimuli import torch_encoders

    encoder = find(name)
    places = {s: _located(s, encoder, root) for s in dict.fromkeys(stimuli)}
    absent = [s for s, (path, _) in places.items() if isinstance(path, Path) and not path.is_file()]
    if absent:
        raise RequestError(f'{len(absent)} stimuli are not below {root}: {_some(absent)}')
    home, hashed = cache / f'{name}-{_identity(source)}', functools.cache(files.sha256_file)  # many parts of one file
    kept = {s: home / f'{_digest(*places[s], hashed)}.npz' for s in places}
    todo = [s for s in places if not kept[s].exists()]
    done, what = len(places) - len(todo), f'embed stimuli by {name}'
    report(what, done, len(places))
    look = torch_encoders.load(name, encoder, source) if todo else None
    for path, names in _by_file(todo, places):
        assert look is not None
        for s, vector in zip(names, look(path, [places[n][1] for n in names]), strict=True):
            files.write_atomic(kept[s], files.npz_bytes({'vector': np.asarray(vector, np.float32)}))
        done += len(names)
        report(what, done, len(places))
    return np.stack([files.read_npz(kept[s])['vector'] for s in stimuli])


def _places(name: str, dataset: Dataset, data_dir: Path | None) -> list[Path]:
    """What may give the vectors of a data set, the first that is there: two files, then the encoder's folder."""
    home = data_dir or Path('<data_dir>')
    made = [home / dataset.name / 'embeddings' / f'{name}{suffix}' for suffix in ('.safetensors', '.npz')]
    return [*made, home / 'encoders' / name]


def _imported(path: Path, stimuli: Sequence[str]) -> np.ndarray:
    """Vectors that somebody else made. Raises: RequestError that lists all missing stimuli at once."""
    import numpy as np

    found: Mapping[str, np.ndarray]
    try:
        if path.suffix == '.npz':
            with np.load(path, allow_pickle=False) as archive:
                found = {k: archive[k] for k in set(stimuli) & set(archive.files)}
        else:
            from safetensors.numpy import load_file

            found = load_file(path)
    except Exception as error:  # whatever the readers say of a damaged file
        raise RequestError(f'{path}: cannot be read: {error}') from error
    missing = [s for s in dict.fromkeys(stimuli) if s not in found]
    if missing:
        raise RequestError(f'{path}: no vector of {len(missing)} stimuli: {_some(missing)}')
    sizes = {found[s].shape for s in stimuli}
    if len(sizes) > 1 or len(next(iter(sizes))) != 1:
        raise RequestError(f'{path}: vectors of one length expected, found the shapes {sorted(map(list, sizes))}')
    return np.stack([found[s] for s in stimuli]).astype(np.float32)


def _located(name: str, encoder: Encoder, root: Path | None) -> tuple[Path | str, Segment | None]:
    """The file (or the text) of a stimulus, and which part of it."""
    if encoder.kind in ('text', 'word'):
        return name, None
    file, part = split_name(name) if encoder.timed else (name, None)
    return (root or Path()) / file, part


def _digest(stimulus: Path | str, part: Segment | None, of_file: Callable[[Path], str]) -> str:
    content = of_file(stimulus) if isinstance(stimulus, Path) else stimulus
    return hashlib.sha256(repr((content, part)).encode()).hexdigest()


def _identity(source: str | Path) -> str:
    """What tells one encoder from another: names, sizes and pieces of its files; of vectors in a file, all of it."""
    folder = Path(source)
    facts: list[Any] = [files.sha256_file(folder) if folder.is_file() else str(source)]
    if folder.is_dir():
        named = {p.relative_to(folder): p for p in sorted(folder.rglob('*')) if p.is_file()}
        shown = {n: p for n, p in named.items() if not any(part.startswith('.') for part in n.parts)}  # of no tool
        facts = [(str(n), p.stat().st_size, _pieces(p)) for n, p in shown.items()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _pieces(path: Path) -> str:
    """A digest of N_PIECES pieces of a file, evenly over it: gigabytes of weights in no time."""
    digest, last = hashlib.sha256(), max(0, path.stat().st_size - PIECE)
    with path.open('rb') as file:
        for k in range(N_PIECES):
            file.seek(last * k // (N_PIECES - 1))
            digest.update(file.read(PIECE))
    return digest.hexdigest()


def _by_file(todo: Sequence[str], places: Mapping[str, tuple[Path | str, Any]]) -> Iterator[tuple[Any, list[str]]]:
    """Stimuli that are parts of one file, together."""
    groups: dict[Any, list[str]] = {}
    for name in todo:
        groups.setdefault(places[name][0], []).append(name)
    yield from groups.items()


def _some(names: Sequence[str]) -> str:
    return ', '.join(names[:10]) + (f' and {len(names) - 10} more' if len(names) > 10 else '')
