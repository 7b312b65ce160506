"""What several sources ask of EDF files."""

from __future__ import annotations

from pathlib import Path

from jbench.data.contract import check_file
from jbench.data.recording import Finding


def check_edf(path: str) -> Finding | None:
    """An EDF file holds as many bytes as its header promises; MNE pads a truncated one without a word."""
    bad = check_file(path, (b'0       ',))
    if bad:
        return bad
    with open(path, 'rb') as f:
        head = f.read(256)
        try:
            n_bytes, n_records, n_signals = int(head[184:192]), int(head[236:244]), int(head[252:256])
            f.seek(256 + n_signals * 216)
            per_record = sum(int(f.read(8)) for _ in range(n_signals))
        except ValueError:
            return Finding(
                path,
                'the header must be that of an EDF file',
                'text where numbers belong',
                'numbers',
                'the file is damaged: fetch it again',
            )
    size, expected = Path(path).stat().st_size, n_bytes + n_records * per_record * 2
    if size == expected:
        return None
    why = 'truncated' if size < expected else 'longer (perhaps sent as text, with line ends changed)'
    return Finding(
        path,
        'the file must hold what its header promises',
        f'{size} bytes',
        f'{expected} bytes',
        f'the file is {why}: fetch it again',
    )
