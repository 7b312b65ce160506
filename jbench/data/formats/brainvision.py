"""What several sources ask of BrainVision files: a header (.vhdr), and the signal and the markers that it names."""

from __future__ import annotations

import re
from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding

BYTES = {'INT_16': 2, 'INT_32': 4, 'IEEE_FLOAT_32': 4}  # of a sample


def check_brainvision(path: str) -> Finding | None:
    """The signal holds whole samples of all channels and reaches to the last marker; MNE takes what is there for the
    whole, and drops later markers without a word. What MNE refuses by itself is left to it."""
    bad = check_file(path)
    head = Path(path)
    facts = dict(re.findall(r'^(\w+) *=[ \t]*(.*?)\s*$', _text(head).partition('[Comment]')[0], re.M))
    width, n_chans, name = (facts.get(k, '') for k in ('BinaryFormat', 'NumberOfChannels', 'DataFile'))
    if bad or width not in BYTES or not n_chans.isdecimal() or int(n_chans) == 0 or not name:
        return bad
    signal, remedy = head.parent / name, 'the file is truncated: fetch it again'
    if not signal.is_file():
        rule, remedy = 'the signal must lie beside its header', 'fetch it, and leave the names of files as they are'
        return Finding(path, rule, f'no {name}', 'the DataFile of the header', remedy)
    size, n_bytes = signal.stat().st_size, BYTES[width] * int(n_chans)
    if size % n_bytes:
        rule, expected = 'the signal must hold whole samples of all channels', f'a multiple of {n_bytes} bytes'
        return Finding(str(signal), rule, f'{size} bytes', expected, remedy)
    named = head.parent / facts.get('MarkerFile', '')
    markers = named if named.is_file() else head.with_suffix('.vmrk')  # as MNE, where files were given other names
    found = re.findall(r'^Mk\d+=[^,]*,[^,]*,\s*(\d+)', _text(markers) if markers.is_file() else '', re.M)
    last = max(map(int, found), default=0)
    if last > size // n_bytes:
        rule, expected = 'the signal must reach to its last marker', f'at least {last}, as {markers.name} says'
        return Finding(str(signal), rule, f'{size // n_bytes} samples', expected, remedy)
    return None


def _text(path: Path) -> str:
    """UTF-8, or what older programs wrote."""
    data = path.read_bytes()
    try:
        return data.decode('utf-8-sig')
    except UnicodeDecodeError:
        return data.decode('latin-1')
