"""The grammar of --task=alignment/... and of --model where it names candidates."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from typing import NamedTuple

from jbench.alignment import own
from jbench.alignment.benchmarks import elsewhere, here
from jbench.alignment.candidates import CANDIDATES
from jbench.alignment.tree import PARENTS, path
from jbench.files import sha256_file
from jbench.spec.benchmark import PREFIX, Benchmark, Candidate
from jbench.spec.errors import RequestError, unknown

ALL = PREFIX.rstrip('/')  # --task=alignment: every benchmark


@functools.cache
def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by identifier."""
    return {b.identifier: b for b in (*here.BENCHMARKS, *elsewhere.BENCHMARKS)}


OTHERS = {  # that see no pixel: function of (benchmark, folder of the data), and what it is
    'category': ('category', 'The category of each stimulus: what a table tells without a look'),
    'word_counts': ('word_counts', 'Words of a text, counted'),
    'resnet50_answers': ('resnet50_answers', 'ResNet-50, its recorded answers to the images of Geirhos et al. (2021)'),
    'bagnet33_answers': ('bagnet33_answers', 'BagNet-33, its recorded answers'),
    'simclr_answers': ('simclr_answers', 'SimCLR with ResNet-50, its recorded answers'),
    'swag_answers': ('swag_answers', 'SWAG ViT-L/16, its recorded answers'),
}


def candidates() -> dict[str, Candidate]:
    """All candidates by name."""
    found = {
        name: Candidate(name=name, version=row.version, title=row.title, target=row.target, drawn=row.drawn)
        for name, row in CANDIDATES.items()
    }
    for name, (function, title) in OTHERS.items():
        found[name] = Candidate(name=name, title=title, target=f'jbench.alignment.candidates.of_stimuli:{function}')
    return found


def asked(text: str | None) -> bool:
    """Whether --task asks for alignment. Raises: RequestError for alignment and decoding in one request."""
    items = [item.strip() for item in (text or '').split(',') if item.strip()]
    ours = [item for item in items if item.lower() == ALL or item.lower().startswith(PREFIX)]
    if ours and len(ours) < len(items):
        others = ', '.join(item for item in items if item not in ours)
        raise RequestError(
            f'--task={text}: {ours[0]} compares a model with a brain, {others} decodes: ask for one kind'
        )
    return bool(ours)


class Chosen(NamedTuple):
    """What --task means."""

    benchmarks: list[Benchmark]
    readers: dict[str, own.Reader]  # of recordings of one's own, by name
    named: bool  # every one of them by itself; False: a group holds some, of which those without data are left out


def select_benchmarks(text: str) -> Chosen:
    """alignment (all of them), alignment/IDENTIFIER[@version], alignment/NODE (all below a node of the tree),
    alignment/path/to/file.py (one's own), comma lists.

    Raises: RequestError with suggestions.
    """
    known, nodes = benchmarks(), {name.lower(): name for name in PARENTS}
    chosen: dict[str, Benchmark] = {}
    readers: dict[str, own.Reader] = {}
    by_name = True
    for item in filter(None, (part.strip() for part in text.split(','))):
        if own.named(item):
            mine = own.benchmarks(item[len(PREFIX) :])
            if taken := [b.identifier for b in mine.benchmarks if b.identifier in known]:
                raise RequestError(
                    f'--task={item}: {taken[0]}: a benchmark that jbench has already; choose another name'
                )
            names = [b.identifier for b in mine.benchmarks]
            if twice := [n for n in names if n in chosen or names.count(n) > 1] + [
                n for n in mine.readers if n in readers
            ]:
                raise RequestError(f'--task={item}: {twice[0]} comes twice; give each benchmark and recording a name')
            chosen |= {b.identifier: b for b in mine.benchmarks}
            readers |= mine.readers
            continue
        name, _, version = item[len(ALL) :].removeprefix('/').partition('@')
        by_case = {identifier.lower(): b for identifier, b in known.items()}
        if not name:
            group = list(known.values())
        elif name.lower() in nodes and version:
            raise RequestError(f'--task={item}: {nodes[name.lower()]} is a node of the tree, which has no version')
        elif name.lower() in nodes:
            group = [b for b in known.values() if nodes[name.lower()] in path(b.parent)]
        elif name.lower() in by_case:
            b = by_case[name.lower()]
            if version and version != str(b.version):
                raise RequestError(f'--task={item}: {b.identifier} has version {b.version} alone')
            chosen[b.identifier] = b
            continue
        else:
            raise unknown('benchmark', name, [*known, *PARENTS])
        by_name = False
        chosen |= {b.identifier: b for b in group}
    return Chosen(list(chosen.values()), readers, by_name)


def select_candidates(text: str) -> list[Candidate]:
    """Names, NAME:layer=LAYER (for every region; `all`: each of its layers by itself), `all` (models of images),
    path/to/file.py:function, path/to/features.npz, comma lists.

    Raises: RequestError with suggestions.
    """
    known = candidates()
    chosen: dict[str, Candidate] = {}
    for item in filter(None, (part.strip() for part in text.split(','))):
        if own.named(item):
            mine = own.candidate(item)
            chosen[mine.name] = mine
            continue
        name, _, layer = item.partition(':layer=')
        if layer and name.lower() in CANDIDATES:
            layers = image_layers(name.lower()) if layer == 'all' else (layer,)
            for one in layers:
                chosen[f'{name.lower()}:{one}'] = dataclasses.replace(known[name.lower()], layer=one)
            continue
        if item.lower() not in (*known, 'all'):
            raise unknown('candidate', item, [*known, 'all'])
        group = {name: known[name] for name in CANDIDATES}
        chosen |= group if item.lower() == 'all' else {item.lower(): known[item.lower()]}
    return list(chosen.values())


def image_layers(name: str) -> tuple[str, ...]:
    """The layers of a model of images, from input to output, without its classifier."""
    from jbench.alignment.candidates import image_model
    from jbench.alignment.image_model import LOGITS

    return tuple(layer for layer in image_model(name).layers if layer != LOGITS)


def with_weights(chosen: list[Candidate], given: str | None) -> tuple[list[Candidate], dict[str, Path]]:
    """Candidates that start from --weights, and the files by their names. None, 'none': random weights.

    Raises: RequestError for a path that is not there, weights for several candidates from one file, and for one that
        takes none.
    """
    if given in (None, 'none'):
        return chosen, {}
    path = Path(str(given)).expanduser()
    if not os.path.exists(path):
        raise RequestError(f'--weights={given}: no such file or folder')
    takers = [c for c in chosen if c.name in CANDIDATES and CANDIDATES[c.name].takes_weights]
    if not takers:
        able = ', '.join(name for name, row in CANDIDATES.items() if row.takes_weights)
        raise RequestError(f'--weights={given}: none of {", ".join(c.name for c in chosen)} takes weights; {able} do')
    names = {c.name for c in takers}  # of several layers of one model, one
    if path.is_file() and len(names) > 1:
        raise RequestError(f'--weights={given}: one file for {len(names)} models; name a folder with MODEL.safetensors')
    made, files_of = [], {}
    for c in chosen:
        file = path if path.is_file() else path / f'{c.name}.safetensors'
        if c not in takers:
            made.append(c)
        elif not os.path.isfile(file):
            raise RequestError(f'--weights={given}: no {file.name} in it')
        else:
            made.append(dataclasses.replace(c, weights=sha256_file(file), drawn=False))
            files_of[c.name] = file
    return made, files_of
