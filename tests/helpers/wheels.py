"""The packages of this environment as wheels again: pip fills an empty environment from them, without a network."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import canonicalize_name

LEFT_OUT = ('RECORD', 'INSTALLER', 'REQUESTED', 'direct_url.json')  # what pip wrote itself


def needed(wanted: Iterable[str]) -> list[metadata.Distribution]:
    """The distributions here that some requirements ask for, and those that they ask for in turn."""
    todo, seen, found = [Requirement(r) for r in wanted], set(), {}
    while todo:
        asked = todo.pop()
        name, extras = canonicalize_name(asked.name), frozenset(asked.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = metadata.distribution(name)
        more = [Requirement(r) for r in found[name].requires or ()]
        todo += [r for r in more if not r.marker or any(r.marker.evaluate({'extra': e}) for e in ('', *extras))]
    return list(found.values())


def pack(wanted: Iterable[str], at: Path) -> Path:
    """A folder of wheels, `pip install --no-index --find-links` of which installs what is asked for."""
    at.mkdir(parents=True)
    here = {str(tag) for tag in sys_tags()}
    for distribution in needed(wanted):
        lines = (distribution.read_text('WHEEL') or '').splitlines()
        tag = next(t for line in lines if (t := line.partition(': ')[2]) in here)
        name = distribution.name.replace('-', '_').replace('.', '_')
        paths = [p for p in distribution.files or () if '..' not in p.parts and '__pycache__' not in p.parts]
        info = next(p.parts[0] for p in paths if p.parts[0].endswith('.dist-info'))
        packed = [p for p in paths if not (p.parts[0] == info and p.name in LEFT_OUT)]
        with zipfile.ZipFile(at / f'{name}-{distribution.version}-{tag}.whl', 'w', strict_timestamps=False) as wheel:
            for path in packed:
                wheel.write(path.locate(), str(path))
            wheel.writestr(f'{info}/RECORD', ''.join(f'"{p}",,\n' for p in [*packed, f'{info}/RECORD']))
    return at
