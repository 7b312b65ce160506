"""What several sources ask of EDF and BDF files."""

from __future__ import annotations

from pathlib import Path

from jbench.data.formats.check_file import check_file
from jbench.data.recording import Finding


def check_edf(path: str) -> Finding | None:
    """An EDF (or BDF) file holds as many bytes as its header promises, or whole records where that does not say how
    many; MNE pads a truncated one without a word."""
    wide = path.lower().endswith('.bdf')
    bad = check_file(path, (b'\xffBIOSEMI',) if wide else (b'0       ',))
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
                f'the header must be that of {"a BDF" if wide else "an EDF"} file',
                'text where numbers belong',
                'numbers',
                'the file is damaged: fetch it again',
            )
    size, record = Path(path).stat().st_size, per_record * (3 if wide else 2)
    if n_records == -1 and record:  # the recording was not ended: MNE takes the records that are there
        n_records = max(1, -((n_bytes - size) // record))
    expected = n_bytes + n_records * record
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


def units(path: str) -> list[str]:
    """The physical dimension of each signal, as the header of a checked file has it."""
    with open(path, 'rb') as f:
        f.seek(252)
        n_signals = int(f.read(4))
        f.seek(256 + n_signals * 96)
        return [f.read(8).decode('latin-1').strip() for _ in range(n_signals)]
