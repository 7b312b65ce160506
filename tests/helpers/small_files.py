"""Writers of tiny recordings in the formats that hosts serve: noise of 20 microvolts (MEG: 1 picotesla)."""

from __future__ import annotations

from pathlib import Path

import edfio
import numpy as np
from scipy.io import savemat

HEADER = """Brain Vision Data Exchange Header File Version 1.0
[Common Infos]
Codepage=UTF-8
DataFile={stem}.eeg
MarkerFile={stem}.vmrk
DataFormat=BINARY
DataOrientation=MULTIPLEXED
NumberOfChannels={n}
SamplingInterval={interval:g}
[Binary Infos]
BinaryFormat=IEEE_FLOAT_32
[Channel Infos]
"""
MARKERS = """Brain Vision Data Exchange Marker File, Version 1.0
[Common Infos]
Codepage=UTF-8
DataFile={stem}.eeg
[Marker Infos]
Mk1=New Segment,,1,1,0,20200101000000000000
"""


def noise(path: Path, n_chans: int, n_times: int) -> np.ndarray:
    """Microvolts [C, T], other ones for each name; makes the folder of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return np.random.default_rng(list(path.name.encode())).normal(0, 20, (n_chans, n_times))


def edf(path: Path, names: list[str], sfreq: float, seconds: float, marks: tuple = ()) -> None:
    """EDF, or BDF; marks (onset, duration, text) are its annotations."""
    x = noise(path, len(names), int(sfreq * seconds))
    signal, whole = (edfio.BdfSignal, edfio.Bdf) if path.suffix == '.bdf' else (edfio.EdfSignal, edfio.Edf)
    signals = [signal(v, sfreq, label=n, physical_dimension='uV') for n, v in zip(names, x, strict=True)]
    whole(signals, annotations=[edfio.EdfAnnotation(*m) for m in marks] or None).write(path)


def brainvision(path: Path, names: list[str], sfreq: float, seconds: float, marks: tuple = ()) -> None:
    """`path`.vhdr, .eeg and .vmrk; marks are (sample from 1, type, text)."""
    x, stem = noise(path, len(names), int(sfreq * seconds)), path.stem
    head = HEADER.format(stem=stem, n=len(names), interval=1e6 / sfreq)
    path.write_text(head + ''.join(f'Ch{k}={name},,1,µV\n' for k, name in enumerate(names, 1)))
    lines = [f'Mk{k}={kind},{text},{at},1,0\n' for k, (at, kind, text) in enumerate(marks, 2)]
    path.with_suffix('.vmrk').write_text(MARKERS.format(stem=stem) + ''.join(lines))
    path.with_suffix('.eeg').write_bytes(x.T.astype('<f4').tobytes())


def eeglab(path: Path, names: list[str], sfreq: float, seconds: float, **more: object) -> None:
    """EEGLAB's .set with its data inside."""
    x = noise(path, len(names), int(sfreq * seconds))
    places = np.array([(n, 0.1, 0.2, 0.3) for n in names], [('labels', 'O'), ('X', 'O'), ('Y', 'O'), ('Z', 'O')])
    facts = {'nbchan': len(names), 'trials': 1, 'pnts': x.shape[1], 'srate': sfreq, 'xmin': 0.0, 'xmax': seconds}
    savemat(path, {'EEG': {'data': x, 'chanlocs': places, 'event': [], 'epoch': [], 'setname': '', **facts, **more}})


def ctf(path: Path, codes: list[int], sfreq: float, seconds: float) -> None:
    """A CTF folder: two gradiometers and UPPT001, which holds a code of 10 samples each second from the first on.

    Only what MNE reads of it is there.
    """
    path.mkdir(parents=True)
    n = int(sfreq * seconds)
    x = np.vstack([noise(path / 'x', 2, n) * 5e-14 / 1e-15, np.zeros((1, n))]).astype('>i4')  # in steps of 1 fT
    for k, code in enumerate(codes, 1):
        x[2, int(k * sfreq) : int(k * sfreq) + 10] = code
    (path / f'{path.stem}.meg4').write_bytes(b'MEG41CP\0' + x.tobytes())
    head = bytearray(1844)
    head[:8] = b'MEG42RS\0'
    head[778:786], head[1033:1044] = b'12:00:00', b'01-Jan-2020'
    for at, kind, value in (
        (1288, '>i4', n),
        (1292, '>i2', 3),
        (1296, '>f8', sfreq),
        (1304, '>f8', seconds),
        (1312, '>i2', 1),
    ):
        head[at : at + np.dtype(kind).itemsize] = np.array(value, kind).tobytes()
    coil = np.dtype({'names': ['pos', 'norm'], 'formats': [('>f8', 3), ('>f8', 3)], 'offsets': [0, 32], 'itemsize': 80})
    sensor = np.dtype(
        {
            'names': ['type', 'gain', 'qgain', 'iogain', 'coils', 'coil', 'head'],
            'formats': ['>i2', '>f8', '>f8', '>f8', '>i2', (coil, 8), (coil, 8)],
            'offsets': [0, 8, 16, 24, 40, 48, 688],
            'itemsize': 1328,
        }
    )
    sensors = np.zeros(3, sensor)
    sensors['type'], sensors['gain'], sensors['iogain'] = [5, 5, 20], [1e15, 1e15, 1.0], 1.0
    sensors['qgain'], sensors['coils'] = 1.0, [2, 2, 0]
    for part in ('coil', 'head'):
        sensors[part]['pos'][:2, :2] = [[[0, 0, 10], [0, 0, 15]], [[5, 0, 10], [5, 0, 15]]]
        sensors[part]['norm'][:2, :2] = [[[0, 0, 1], [0, 0, -1]]] * 2
    facts = [
        ('sensor', 'S32'),
        ('kind', 'S4'),
        ('', '>i4'),
        ('n', '>i2'),
        ('others', 'S31', 50),
        ('weights', '>f8', 50),
    ]
    balance = np.zeros(1, facts)  # a compensation that adds nothing
    balance['sensor'], balance['kind'], balance['n'], balance['others'][0, 0] = b'MLC11-2908', b'G1BR', 1, b'MLC12-2908'
    names = b''.join(name.ljust(32, b'\0') for name in (b'MLC11-2908', b'MLC12-2908', b'UPPT001'))
    (path / f'{path.stem}.res4').write_bytes(
        bytes(head) + b'\0\0' + names + sensors.tobytes() + b'\0\1' + balance.tobytes()
    )


def tsv(path: Path, text: str, start: bytes = b'') -> None:
    """A table: columns are separated by spaces in `text`, `_` is a space."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (line.split() for line in text.strip().splitlines())
    path.write_bytes(
        start + '\n'.join('\t'.join(c.replace('_ ', ' ') for c in line) for line in lines).encode() + b'\n'
    )
