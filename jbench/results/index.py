"""Every result of some folders, lean: what tables and figures are made of. Predictions and weights are not read.

A file that is damaged, was edited, or does not count is left out and told, never fatal.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from jbench.data.prepare.workers import sheltered, workers
from jbench.models import MODELS
from jbench.results import asked, bounds, checked, place
from jbench.spec.errors import RequestError, unknown
from jbench.spec.identity import from_json
from jbench.spec.metrics import METRICS
from jbench.spec.model import ModelSpec
from jbench.spec.pretraining import seen_beside
from jbench.spec.task import full_name
from jbench.stores import address, mirror
from jbench.stores import results as stored

T = TypeVar('T')
MARKS = ('simulated', 'partial', 'debug')  # what does not count unless it is asked for
MANY = 2000  # files: of so many, several processes read
SHARE = 500  # files that a process reads at a time
WORKER = 150 << 20  # bytes that it takes
ALIGNMENT = 'another kind of result: a model beside a brain'


class Row(NamedTuple):
    """One result file; scores are fractions, None where not defined."""

    path: str
    sha256: str
    device: str  # that recorded
    category: str
    task: str  # 'p3', 'meg/typing'
    version: int  # of the task
    dataset: str
    core: bool  # the first dataset of the task, or its simulated stand-in
    model: str
    model_version: int | None  # None: of schema 1, which does not say
    family: str
    key: str
    seed: int
    status: str
    simulated: bool
    partial: tuple[str, ...]
    custom: tuple[str, ...]  # the user's own changes
    debug: bool
    as_published: bool  # recipe.published
    suite: str | None
    split_hash: str
    prepared_hash: str
    asked: str  # digest of the task on this dataset, less what is the model's (`asked.digest`)
    metric: str
    better: str
    value: float | None
    interval: tuple[float, float] | None
    differs_from_chance: bool | None
    level: str
    n_subjects: int | None
    chance: float | None
    dummy: float | None
    normalised: float | None
    metrics: dict[str, float | None]
    per_subject: dict[str, float | None]
    seconds: dict[str, float]  # prepare, compile, fit, test, total
    n_parameters: int | None
    pretraining: tuple[str, ...]
    seen_beside: bool  # people of its test, in a task that its encoder learnt together with it
    date: str | None
    commit: str | None
    machine: str
    hardware: str  # what computed, as jax calls it
    jbench: str  # its version
    n_train: int  # windows
    n_windows: int  # tested
    n_classes: int  # 0: not of classes
    n_chans: int | None


class LeftOut(NamedTuple):
    """A result that does not count."""

    path: str
    reason: str  # 'simulated', 'damaged: ...'


class Index(NamedTuple):
    """The results of some folders, in the order of their paths."""

    rows: list[Row]
    left_out: list[LeftOut]


def scan(folders: Iterable[str | os.PathLike[str]], also: Collection[str] = ()) -> Index:
    """The results below some folders, as `result_paths` finds them.

    Args:
        folders: work folders, folders of results, a results repository.
        also: of MARKS, which results to take that do not count.
    Raises: RequestError for a folder that is not there, and for a word that is none of MARKS.
    """
    for word in also:
        if word not in MARKS:
            raise unknown('kind of result', word, MARKS)
    found = Index([], [])
    for part in in_shares(result_paths(folders), functools.partial(read, also=tuple(sorted(also)))):
        found.rows.extend(part.rows)
        found.left_out.extend(part.left_out)
    return found


def in_shares(paths: Sequence[str], read: Callable[[Sequence[str]], T]) -> Iterator[T]:
    """What `read`, which other processes can be told, finds at some paths, in their order: one answer for all of them,
    or of MANY, which several processes read, one for each share."""
    if len(paths) < MANY:
        yield read(paths)
        return
    shares = [paths[k : k + SHARE] for k in range(0, len(paths), SHARE)]
    with workers(len(shares), WORKER) as pool:
        with sheltered():
            jobs = [pool.submit(read, share) for share in shares]
        for job in jobs:
            yield job.result()


def result_paths(folders: Iterable[str | os.PathLike[str]], *, parts: bool = False) -> list[str]:
    """Every seed<k>.json below some folders, at any depth, once and sorted.

    Folders that begin with a dot, and the folds of a cross-validation (which are parts of another result; `parts`: they
    too), are not entered; links to folders neither.

    Raises: RequestError for a folder that is not there.
    """
    here = [_brought(folder) for folder in folders]
    return sorted({os.path.abspath(path): path for folder in here for path in _results(folder, parts)}.values())


def _brought(folder: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A folder; of a store its copy, with the results that are there, less weights."""
    if not address.is_address(os.fspath(folder)):
        return folder
    copy = mirror.local(folder, '--results')
    stored.bring(copy)
    return copy


def _results(folder: str | os.PathLike[str], parts: bool) -> Iterator[str]:
    """Paths of result files below a folder. Raises: RequestError where it is none."""
    if not os.path.isdir(folder):
        found = 'a file' if os.path.exists(folder) else 'no such folder'
        raise RequestError(f'{folder}: {found}; expected a folder with results, .../seed33.json at any depth')
    todo = [os.fspath(folder)]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError as error:
            raise RequestError(f'cannot read {error.filename}: {error.strerror}') from error
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                todo += [entry.path] * ((parts or entry.name != place.FOLDS) and not entry.name.startswith('.'))
            elif checked.NAME.fullmatch(entry.name):
                yield entry.path


def read(paths: Sequence[str], also: Collection[str] = ()) -> Index:
    """The results at some paths; `also` as of `scan`."""
    found = Index([], [])
    for path in paths:
        try:
            row = read_row(path, checked.read(path))
            reason = _reason(row, also)
        except FileNotFoundError:
            reason = f'damaged: {checked.absent(path)}'
        except RequestError as error:
            reason = f'damaged: {str(error).removeprefix(f"{path}: ")}'
        except _NoDecoding:
            reason = ALIGNMENT
        if reason:
            found.left_out.append(LeftOut(path, reason))
        else:
            found.rows.append(row)
    return found


def _reason(row: Row, also: Collection[str]) -> str:
    """Why a result does not count; '' for one that does."""
    if row.status == 'failed':
        return 'failed: it has no score'
    if row.simulated and 'simulated' not in also:
        return 'simulated: the recordings were generated'
    if row.debug and 'debug' not in also:
        return 'debug: a try on few windows'
    if row.partial and 'partial' not in also:
        return f'partial: {"; ".join(row.partial)}'
    return 'no score: it is not defined on these windows' if row.value is None else ''


class _NoDecoding(Exception): ...


def read_row(path: str, result: Mapping[str, Any]) -> Row:
    """The lean form of a result of `checked.read`. Raises: RequestError for what no run writes, or no table holds."""
    if result['kind'] != 'decoding':
        bounds.check({name: value for name, value in result.items() if name != 'config'})
        raise _NoDecoding
    try:
        row = _row(path, result)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RequestError(f'its config cannot be read: {type(error).__name__}: {error}') from error
    bounds.check({name: value for name, value in row._asdict().items() if name != 'path'})
    return row


def _row(path: str, result: Mapping[str, Any]) -> Row:
    """The lean form of a result. Raises: ValueError where its words and its config say different things."""
    head, config, protocol = result['headline'], result['config'], result['protocol']
    task, model = config['task'], config.get('model', {})  # which schema 1 lacks
    said = (result['task'], result['task_version'], result['dataset'], result['model'], head['name'])
    name = full_name(task['device'], task['name'])
    meant = (name, task['version'], config['dataset']['name'], _model(result), task['metric'])
    if said != meant:
        raise ValueError(f'the result says {said}, its config {meant}')
    if METRICS[head['name']].better != head['better']:
        raise ValueError(f'of {head["name"]}, the {METRICS[head["name"]].better} is better, not the {head["better"]}')
    known = MODELS.get(model.get('name', result['model']))
    interval, machine = head['interval'], result['machine'] or {}
    return Row(
        path=path,
        sha256=result['sha256'],
        device=_word(task['device']),
        category=_word(task['category']),
        task=_word(result['task']),
        version=result['task_version'],
        dataset=_word(result['dataset']),
        core=result['dataset'] in (task['datasets'][0], task['simulated']),
        model=_word(result['model']),
        model_version=model.get('version'),
        family=_word(known.family if known else model.get('family', '')),
        key=result['key'],
        seed=result['seed'],
        status=_word(result['status']),
        simulated=result['simulated'],
        partial=tuple(map(_word, protocol['partial'])),
        custom=tuple(map(_word, protocol['custom'])),
        debug=protocol['debug'] or result['status'] == 'debug',
        as_published=task['recipe'].get('published') is True,
        suite=protocol['suite'],
        split_hash=result['split_hash'],
        prepared_hash=result['prepared_hash'],
        asked=asked.digest(config, known),
        metric=_word(head['name']),
        better=_word(head['better']),
        value=head['value'],
        interval=(interval[0], interval[1]) if interval else None,
        differs_from_chance=head['differs_from_chance'],
        level=_word(head['level']),
        n_subjects=head['n_subjects'],
        chance=result['chance'],
        dummy=result['dummy'],
        normalised=result['normalised'],
        metrics=_by_word(result['metrics']),
        per_subject=_by_word(result['per_subject']),
        seconds=_by_word(result['timings']),
        n_parameters=result['n_parameters']['total'],
        pretraining=tuple(map(_word, result['pretraining'])),
        seen_beside=seen_beside(result['warnings'], config.get('companions', ())),
        date=result['date'],
        commit=result['commit'],
        machine=_word(machine.get('processor') or machine.get('architecture') or ''),
        hardware=_word(result['devices']['kind']),
        jbench=_word(result['versions'].get('jbench', '')),
        n_train=result['n_records']['train'],
        n_windows=result['n_records']['evaluated'],
        n_classes=len(result['classes']),
        n_chans=(result.get('signal') or {}).get('n_chans'),
    )


def _model(result: Mapping[str, Any]) -> str:
    """The model that the config of a result names, with its options; schema 1 names none."""
    model = result['config'].get('model', {})
    if model.get('options') or model.get('weights'):
        return from_json(ModelSpec, model, 'config.model').full_name
    return str(model.get('name', result['model']))


def _word(text: str) -> str:
    """A text that many results share, held once. Raises: TypeError for what is none."""
    return sys.intern(text)


def _by_word(values: Mapping[str, Any]) -> dict[str, Any]:
    return {_word(name): value for name, value in values.items()}
