"""Results in a store: the first that is written stays, a later one is compared with it."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from jbench import files
from jbench.progress import say
from jbench.spec.errors import RequestError
from jbench.stores import mirror, replaced
from jbench.stores.remote import Facts, Remote, marked

NAME = re.compile(r'.*/seed[0-9]+\.(json|npz|safetensors)')
BESIDE = ('.npz', '.safetensors')  # of a seed, put there before its JSON
OF_THE_RUN = (  # fields that may differ between equal results
    'date',
    'commit',
    'versions',
    'devices',
    'machine',
    'timings',
    'memory',
    'resumed_at',
    'sha256',
)
PAUSES = (2.0, 1.0, 0.5)  # s, the last one first
SHOWN = 8  # fields that differ, in a message


def bring(
    workdir: Path,
    homes: Sequence[Path] | None = None,
    report: Callable[[int], object] = lambda done: None,
    suffixes: Collection[str] = ('.json', '.npz'),
) -> None:
    """Bring results from the store of a work folder; weights stay there but for those of which older ones are here.

    What the store holds counts: it takes the place of a result of the same name. One of ours that was never there is
    compared with it first, as `take` does, but that one of other prepared data counts, too: ours may be the older one.
    Where they are not equal that is said, with both. Copies of results that the store has no more go; one of ours that
    is older than the moment at which that of the store was set aside is set aside, too.

    Args:
        workdir: where no store belongs to it, nothing is done.
        homes: folders of cells; None: all results.
        report: as of `mirror.bring`.
        suffixes: which of their files.
    Raises: RequestError where one of ours could not be compared; all are brought before.
    """
    store = mirror.of(workdir)
    if store is None:
        return
    folders = [workdir / 'results'] if homes is None else homes
    names, refused, unequal = [_name(workdir, h) for h in folders], [], []
    here = [p for folder in folders for p in folder.rglob('seed*.json') if NAME.fullmatch(_name(workdir, p))]
    copies = [p for p in here if marked(p)]  # seen before the listing: they were in the store then
    there = mirror.listed(store, *names)
    for path in here:
        name = _name(workdir, path)
        begun = there.get(f'{name}{replaced.ASIDE}')
        if name not in there and path in copies:
            _remove(path)
        elif name not in there and begun and replaced.is_older(path, begun.time):
            replaced.put_aside(path)
    ours = {p for p in {*here} - {*copies} if _name(workdir, p) in there and _is_whole(p)}
    for path in sorted(ours):
        try:
            unequal += _settle(store, workdir, path, new=False)
        except RequestError as error:
            refused.append(error)
    others = {n: f for n, f in there.items() if NAME.fullmatch(n) and (workdir / n).with_suffix('.json') not in ours}
    _fetch(store, workdir, others, suffixes, report)
    for folder in folders:
        replaced.forget(folder)  # of what another machine computed
    if unequal:
        say('jbench: ' + '\n  '.join(unequal))
    told(refused)


def take(workdir: Path, home: Path, seeds: Collection[int]) -> None:
    """Put the results of seeds of a cell, and of its folds, into the store of a work folder, those that it lacks.

    A result is written once: predictions and weights, then the JSON if there is none. One that is there and counts
    stays: an equal one (but for `OF_THE_RUN`) takes the place of ours, and so does another one, ours being kept in
    `<workdir>/unequal` then. What was set aside for a new result goes once that one is there.

    Args:
        workdir: where no store belongs to it, nothing is done.
        home: folder of the cell.
        seeds: which.
    Raises: RequestError that shows both results where they are not equal; the other seeds are put there before.
    """
    store = mirror.of(workdir)
    names, refused = [f'seed{seed}.json' for seed in seeds], list[RequestError]()
    mine = sorted(p for p in home.rglob('seed*.json') if p.name in names) if store else []
    copies = [p for p in mine if marked(p)]
    there = store.list(_name(workdir, home)) if store and mine else {}
    for path in mine:
        name = _name(workdir, path)
        removed = name not in there and path in copies  # from the store: `bring` removes it here
        if store and not removed:
            try:
                if not (name in there and there[name].same(path)):
                    refused += map(RequestError, _settle(store, workdir, path, new=True))
                if f'{name}{replaced.ASIDE}' in there:
                    replaced.forget_in(store, name, path)
            except RequestError as error:
                refused.append(error)
    told(refused)


def told(refused: Sequence[RequestError]) -> None:
    """Raises: RequestError that says them all, where there are some."""
    said = dict.fromkeys(map(str, refused))
    if said:
        raise RequestError('\n  '.join(said)) from refused[0]


def _settle(store: Remote, workdir: Path, path: Path, *, new: bool) -> list[str]:
    """Write a result, or find the one that is there; where that is another one, what `_yield` says.

    `new`: ours is of the prepared data that there are now, so that one of others does not count.
    """
    name, mine, pauses = _name(workdir, path), path.read_bytes(), list(PAUSES)
    while (theirs := store.read(name)) != mine:
        if theirs is None:
            before = _write_beside(store, workdir, path)
            if store.write_absent(name, mine):
                if _beside(store, workdir, path) != before or _npz(store, name) != _predictions(mine):
                    _write_beside(store, workdir, path)  # another one wrote there meanwhile, and came too late
                if json.loads(mine)['status'] != 'failed':  # for which what was set aside goes
                    store.remove([n for n in _beside(store, workdir, path) if not (workdir / n).exists()])
                break
        elif not _counts(store, name, theirs, json.loads(mine), new=new):
            named = _predictions(theirs)
            if pauses and named and named != _npz(store, name) == _predictions(mine):
                time.sleep(pauses.pop())  # whose JSON that is may be about to write what belongs to it
            else:
                store.remove([name])
        else:
            return _yield(store, workdir, path, json.loads(theirs))
    for there, facts in {**_beside(store, workdir, path), name: store.facts(name)}.items():
        if facts and (workdir / there).exists():
            facts.mark(workdir / there)
    return []


def _write_beside(store: Remote, workdir: Path, path: Path) -> dict[str, Facts]:
    """Write the files beside a JSON; what the store says of all that lie there then."""
    for suffix in BESIDE:
        if (beside := path.with_suffix(suffix)).exists():
            store.write(_name(workdir, beside), beside)
    return _beside(store, workdir, path)


def _beside(store: Remote, workdir: Path, path: Path) -> dict[str, Facts]:
    names = [_name(workdir, path.with_suffix(suffix)) for suffix in BESIDE]
    return {n: facts for n, facts in store.list(_name(workdir, path.parent)).items() if n in names}


def _counts(store: Remote, name: str, content: bytes, mine: dict[str, Any], *, new: bool) -> bool:
    """Whether a result of the store is whole, finished, and, where ours is `new`, of the same prepared data."""
    try:
        theirs = json.loads(content)
        other = new and theirs.get('prepared_hash') != mine.get('prepared_hash')
        if theirs['status'] == 'failed' or other:
            return mine['status'] == 'failed' != theirs['status']
        return theirs['predictions_sha256'] in (None, _npz(store, name))
    except (KeyError, TypeError, ValueError):
        return False


def _npz(store: Remote, name: str) -> str | None:
    """The digest of the predictions that lie beside a JSON of the store."""
    content = store.read(name.removesuffix('.json') + '.npz')
    return None if content is None else hashlib.sha256(content).hexdigest()


def _predictions(content: bytes) -> str | None:
    """The digest of predictions that a JSON names; '' for what is no result."""
    try:
        found: str | None = json.loads(content)['predictions_sha256']
    except (KeyError, TypeError, ValueError):
        return ''
    return found


def _is_whole(path: Path) -> bool:
    """Whether a result here is one, with its predictions."""
    digest, npz = _predictions(path.read_bytes()), path.with_suffix('.npz')
    return digest is None or (npz.exists() and files.sha256_file(npz) == digest)


def _yield(store: Remote, workdir: Path, path: Path, theirs: dict[str, Any]) -> list[str]:
    """Let the result of the store take the place of ours; where they are not equal, the words that show both."""
    mine = files.read_json(path)
    differ = [k for k in {**theirs, **mine} if k not in OF_THE_RUN and theirs.get(k) != mine.get(k)]
    if mine['status'] == 'failed':
        differ = []
    aside = workdir / 'unequal' / path.relative_to(workdir)
    for old in (path.with_suffix(suffix) for suffix in (*BESIDE, '.json')):
        if differ and old.exists():
            files.link_or_copy(old, aside.with_suffix(old.suffix))
    there = mirror.listed(store, _name(workdir, path.parent))
    _fetch(store, workdir, {n: facts for n, facts in there.items() if (workdir / n).with_suffix('.json') == path})
    if not differ:
        return []
    shown = '; '.join(f'{k}: {_short(theirs.get(k))} there, {_short(mine.get(k))} here' for k in differ[:SHOWN])
    more = f' and {len(differ) - SHOWN} more fields' if len(differ) > SHOWN else ''
    return [
        f'{store.url}/{_name(workdir, path)}: another run wrote it first ({_by(theirs)}), and it is not equal to '
        f'that of this one ({_by(mine)}): {shown}{more}. The first stays and counts; ours is kept as {aside}. '
        '--if_exists=overwrite replaces the first'
    ]


def _by(result: dict[str, Any]) -> str:
    """When and on what a result was made."""
    machine, devices = result.get('machine') or {}, result.get('devices') or {}
    known = (result.get('date'), machine.get('processor'), devices.get('backend'), devices.get('kind'))
    return ', '.join(str(v) for v in known if v)


def _short(value: Any) -> str:
    if isinstance(value, dict) and 'value' in value:
        value = value['value']
    text = json.dumps(value)
    return text if len(text) <= 40 else f'{text[:37]}...'


def _fetch(
    store: Remote,
    workdir: Path,
    there: dict[str, Facts],
    suffixes: Collection[str] = ('.json', '.npz'),
    report: Callable[[int], object] = lambda done: None,
) -> None:
    """Let results of a store take the place of those here; no weights of others stay beside them."""
    wanted = {n: facts for n, facts in there.items() if n.endswith(tuple(suffixes))}
    for name, facts in wanted.items():
        beside = PurePosixPath(name).with_suffix('.safetensors').as_posix()
        if name.endswith('.json') and (workdir / beside).exists() and not facts.same(workdir / name):
            if beside in there:
                wanted = {**wanted, beside: there[beside]}
            else:
                (workdir / beside).unlink(missing_ok=True)
    mirror.fetch(store, workdir, wanted, report)


def _remove(path: Path) -> None:
    """Remove a result here, with what lies beside it."""
    for suffix in ('.json', *BESIDE):
        path.with_suffix(suffix).unlink(missing_ok=True)


def _name(workdir: Path, path: Path) -> str:
    """What a store calls a file of its copy."""
    return path.relative_to(workdir).as_posix()
