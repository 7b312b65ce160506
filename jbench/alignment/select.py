"""The grammar of --task=alignment/... and of --model where it names candidates."""

from __future__ import annotations

import functools

from jbench.alignment.benchmarks import elsewhere, here
from jbench.alignment.candidates import CANDIDATES
from jbench.alignment.tree import PARENTS, path
from jbench.spec.benchmark import PREFIX, Benchmark, Candidate
from jbench.spec.errors import RequestError, unknown

ALL = PREFIX.rstrip('/')  # --task=alignment: every benchmark


@functools.cache
def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by identifier."""
    return {b.identifier: b for b in (*here.BENCHMARKS, *elsewhere.BENCHMARKS)}


def candidates() -> dict[str, Candidate]:
    """All candidates by name."""
    return {c.name: c for c in CANDIDATES}


def asked(text: str | None) -> bool:
    """Whether --task asks for alignment. Raises: RequestError for alignment and decoding in one request."""
    items = [item.strip() for item in (text or '').split(',') if item.strip()]
    ours = [item for item in items if item == ALL or item.startswith(PREFIX)]
    if ours and len(ours) < len(items):
        others = ', '.join(item for item in items if item not in ours)
        raise RequestError(
            f'--task={text}: {ours[0]} compares a model with a brain, {others} decodes: ask for one kind'
        )
    return bool(ours)


def select_benchmarks(text: str) -> list[tuple[Benchmark, bool]]:
    """alignment (all of them), alignment/IDENTIFIER[@version], alignment/NODE (all below a node of the tree), comma
    lists; with each, whether it was named itself.

    Raises: RequestError with suggestions.
    """
    known, nodes = benchmarks(), {name.lower(): name for name in PARENTS}
    chosen: dict[str, tuple[Benchmark, bool]] = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        name, _, version = item.removeprefix(ALL).removeprefix('/').partition('@')
        by_case = {identifier.lower(): b for identifier, b in known.items()}
        if not name:
            group = list(known.values())
        elif name.lower() in nodes:
            group = [b for b in known.values() if nodes[name.lower()] in path(b.parent)]
        elif name.lower() in by_case:
            b = by_case[name.lower()]
            if version and version != str(b.version):
                raise RequestError(f'--task={item}: {b.identifier} has version {b.version} alone')
            chosen[b.identifier] = (b, True)
            continue
        else:
            raise unknown('benchmark', name, [*known, *PARENTS])
        for b in group:
            chosen.setdefault(b.identifier, (b, False))
    return list(chosen.values())


def select_candidates(text: str) -> list[Candidate]:
    """Names, `all`, comma lists. Raises: RequestError with suggestions."""
    known = candidates()
    chosen: dict[str, Candidate] = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        if item.lower() not in (*known, 'all'):
            raise unknown('candidate', item, [*known, 'all'])
        chosen |= known if item.lower() == 'all' else {item.lower(): known[item.lower()]}
    return list(chosen.values())
