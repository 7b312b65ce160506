"""Every broken recording is named, with what was found, what was expected and what to do."""

from __future__ import annotations

import gzip
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import mne
import numpy as np
import pytest
import tiny
from edfio import Edf, EdfAnnotation, EdfSignal
from preparing import KALUNGA, SCHALK, ZYMA, Said, manifest, pick, prepare

from jbench.data.prepare import check_recording
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.errors import RequestError


def fif(
    path: Path,
    change: Callable[[np.ndarray], np.ndarray] = lambda x: x,
    *,
    prefix: str = '',
    sfreq: float = 256.0,
) -> None:
    """Rewrite a recording with other samples (single precision, so that they may be NaN), names or rate."""
    raw = mne.io.read_raw_fif(path, preload=True, verbose='ERROR')
    info = mne.create_info([prefix + c for c in raw.ch_names], sfreq, 'eeg')
    mne.io.RawArray(change(raw.get_data()), info, raw.first_samp, verbose='ERROR').save(
        path, overwrite=True, fmt='single', verbose='ERROR'
    )


def rewrite_events(path: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    mne.write_events(path, change(mne.read_events(path)), overwrite=True, verbose='ERROR')


def put(row: int, column: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        x[row, column] = value
        return x

    return change


def truncate(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def at_a_buffer(raw: Path) -> None:
    """A plain FIF file that ends after some whole buffer: MNE reads it as a shorter recording, without a word."""
    whole = gzip.decompress(raw.read_bytes())
    raw.unlink()
    raw.with_suffix('').write_bytes(whole[: whole.rindex(bytes.fromhex('0000012c'))])


KALUNGA_FAULTS: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    '02': (lambda raw, eve: truncate(raw, 0.7), r'must be readable: found .*: Compressed file ended'),
    '03': (lambda raw, eve: raw.write_bytes(b''), r'must not be empty: found 0 bytes'),
    '04': (lambda raw, eve: raw.write_text('<!DOCTYPE html><title>404</title>'), r"a web page \('<!DOCTYPE html>"),
    '05': (lambda raw, eve: fif(raw, lambda x: x * 1e3), r'the unit must be volts: found a median .*e-03 V'),
    '06': (lambda raw, eve: fif(raw, lambda x: x * 1e-3), r'the unit must be volts: found .*e-09 V'),
    '07': (lambda raw, eve: fif(raw, put(2, 512, np.nan)), r'1 that are NaN .* channel O2 at 2\.00 s'),
    '08': (lambda raw, eve: fif(raw, put(0, 0, np.inf)), r'1 that are NaN .* channel Oz at 0\.00 s'),
    '09': (lambda raw, eve: eve.unlink(), r'an event file must lie beside .*: found none, expected record'),
    '10': (lambda raw, eve: rewrite_events(eve, put(31, 0, 10**6)), r'events must lie inside .*: found 1 outside'),
    '11': (lambda raw, eve: rewrite_events(eve, put(5, 2, 9)), r'codes must be known: found code 9, expected 1 \(rest'),
    '12': (lambda raw, eve: rewrite_events(eve, lambda e: e[:20]), r'no event may be missing: found 20 events'),
    '13': (lambda raw, eve: truncate(eve, 0.5), r'the file must end as its format does'),
    '14': (
        lambda raw, eve: fif(raw, prefix='X'),
        r'called as in the others: found none of them among XOz, .* one of O1',
    ),
    '15': (lambda raw, eve: fif(raw, sfreq=128.0), r'the sampling rate .*: found 128 Hz, expected 256 Hz as in'),
    '16': (lambda raw, eve: at_a_buffer(raw), r'the file must end as its format does'),
    '18': (lambda raw, eve: rewrite_events(eve, lambda e: np.vstack([e, e[-1] + [0, 0, 1]])), r'two Stimulus events'),
}
GOOD = ('01', '17')


def lines(error: RequestError) -> list[str]:
    return [line.strip() for line in str(error).splitlines()[1:]]


@pytest.mark.slow
def test_every_broken_fif_file_is_named_at_once_and_a_repair_costs_only_itself(data_dir: Path, tmp_path: Path) -> None:
    source = sorted((data_dir / KALUNGA / 'subject01').iterdir())
    for number, subject in enumerate((*GOOD, *KALUNGA_FAULTS)):
        folder = tmp_path / KALUNGA / f'subject{subject}'
        folder.mkdir(parents=True, exist_ok=True)
        eve, raw = (Path(shutil.copyfile(p, folder / p.name)) for p in source)
        if subject in ('01', '02', '05', '17'):  # no two recordings alike
            fif(raw, lambda x, number=number: np.roll(x, number, 1))
        if subject in KALUNGA_FAULTS:
            KALUNGA_FAULTS[subject][0](raw, eve)
    with pytest.raises(RequestError) as caught:
        prepare(KALUNGA, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    text = str(caught.value)
    assert re.match(rf'{KALUNGA}: 16 faults in 18 recordings \(all were checked', text)
    for subject, (_, pattern) in KALUNGA_FAULTS.items():
        here = [line for line in found if f'/subject{subject}/record-' in line]
        assert len(here) == 1 and re.search(pattern, here[0]), (subject, here)
        assert all(re.search(r': found .+, expected .+; \w+', line) for line in here)
    assert not re.search(r'Traceback|Error\b|Exception', text)
    for subject in KALUNGA_FAULTS:
        shutil.rmtree(tmp_path / KALUNGA / f'subject{subject}')
    folder = tmp_path / KALUNGA / 'subject02'
    folder.mkdir()
    eve, raw = (Path(shutil.copyfile(p, folder / p.name)) for p in source)
    fif(raw, lambda x: np.roll(x, 99, 1))
    said: Said = []
    facts = manifest(prepare(KALUNGA, tmp_path, tmp_path / 'work', lambda *f: said.append(f)))
    assert said[0] == (f'prepare {KALUNGA}', 2, 3), 'the good ones were kept'
    assert [r['subject'] for r in facts['recordings']] == ['01', '02', '17']


def edf(path: Path, scale: float = 1.0, sfreq: float = 125.0, note: str = '') -> None:
    """Rewrite an EDF file with other samples, rate or annotations."""
    raw = mne.io.read_raw_edf(path, preload=True, verbose='ERROR')
    x = raw.get_data()[:, : int(raw.n_times / sfreq) * int(sfreq)] * 1e6 * scale
    signals = [
        EdfSignal(row, sfreq, label=name, physical_dimension='uV', physical_range=(row.min(), row.max()))
        for row, name in zip(x, raw.ch_names, strict=True)
    ]
    Edf(signals, annotations=[EdfAnnotation(1.0, None, note)] if note else None).write(path)


EDF_FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    '01': (lambda p: truncate(p, 0.6), r'must hold what its header promises: found \d+ bytes, .* truncated'),
    '02': (lambda p: p.write_bytes(b''), r'must not be empty'),
    '03': (lambda p: p.write_text('\n<html><body>Sign in</body></html>'), r"a web page \('<html><body>Sign in"),
    '04': (lambda p: p.write_bytes(p.read_bytes().replace(b'\n', b'\r\n')), r'expected \d+ bytes; the file is longer'),
    '05': (lambda p: edf(p, 1e3), r'the unit must be volts'),
    '06': (lambda p: edf(p, 1e-3), r'the unit must be volts'),
    '07': (lambda p: edf(p, sfreq=100.0), r'the sampling rate .*: found 100 Hz, expected 125 Hz as in'),
    '09': (lambda p: p.write_bytes(p.read_bytes()[:236] + b'garbage ' + p.read_bytes()[244:]), r'that of an EDF'),
    '10': (lambda p: p.write_bytes(os.urandom(5000)), r'must begin as its format does'),
    '11': (lambda p: truncate(p, 0.001), r'must be that of an EDF|must hold what its header'),
    '12': (lambda p: p.write_bytes(p.read_bytes().replace(b'EEG Fp1', b'Fp1    ')), r'with their type: found Fp1'),
}


@pytest.mark.slow
def test_every_broken_edf_file_is_named_at_once(data_dir: Path, tmp_path: Path) -> None:
    pick(data_dir, tmp_path, ZYMA, 'Subject0?_1.edf', 'Subject1[012]_1.edf', 'Subject0?_2.edf')
    for subject, (change, _) in EDF_FAULTS.items():
        change(tmp_path / ZYMA / f'Subject{subject}_1.edf')
    with pytest.raises(RequestError) as caught:
        prepare(ZYMA, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    assert len(found) == len(EDF_FAULTS) - 1, 'two say the same, in one line'
    for subject, (_, pattern) in EDF_FAULTS.items():
        here = [line for line in found if f'/Subject{subject}_1.edf' in line]
        assert len(here) == 1 and re.search(pattern, here[0]), (subject, here)
    assert not re.search(r'Traceback|Error\b|Exception', str(caught.value))


def test_a_file_that_may_not_be_read_is_not_called_damaged() -> None:
    ref = RecordingRef('Tiny', '01', '0', '0', ('/a/01.edf', '/a/01.tsv'))
    found = check_recording.unreadable(ref, PermissionError(13, 'Permission denied', '/a/01.tsv'))
    assert str(found).startswith('/a/01.tsv: the recording must be readable: found that the reader failed: Permission')
    assert str(found).endswith('; give the user who runs this the right to read it')


@pytest.mark.slow
def test_unknown_and_missing_annotations_are_named(data_dir: Path, tmp_path: Path) -> None:
    folder = pick(data_dir, tmp_path, SCHALK, '*R0[48].edf', '*R12.edf') / SCHALK
    for run, note in (('R04', 'T7'), ('R08', '')):
        raw = mne.io.read_raw_edf(folder / f'S001{run}.edf', preload=True, verbose='ERROR')
        rows = raw.get_data()[:, :1600] * 1e6
        marks = [EdfAnnotation(1.0, None, note)] if note else None
        Edf(
            [
                EdfSignal(r, 160.0, label=c, physical_dimension='uV', physical_range=(-800, 800))
                for r, c in zip(rows, raw.ch_names, strict=True)
            ],
            annotations=marks,
        ).write(folder / f'S001{run}.edf')
    with pytest.raises(RequestError) as caught:
        prepare(SCHALK, tmp_path, tmp_path / 'work')
    found = lines(caught.value)
    assert len(found) == 2 and 'R04.edf: annotations must be there and known: found T7, expected T0, T1' in found[0]
    assert 'R08.edf: annotations must be there and known: found none' in found[1]


def test_one_recording_in_two_files_is_refused(data_dir: Path, tmp_path: Path) -> None:
    folder = pick(data_dir, tmp_path, SCHALK, '*R04.edf') / SCHALK
    (folder / 'S001').mkdir()
    shutil.copy(folder / 'S001R04.edf', folder / 'S001')
    with pytest.raises(RequestError, match=r'one recording in several files: .*S001R04\.edf, .*S001R04\.edf'):
        prepare(SCHALK, tmp_path, tmp_path / 'work')


@pytest.mark.slow
def test_a_changed_file_of_the_same_size_is_prepared_again(data_dir: Path, tmp_path: Path) -> None:
    """Parts of an unfinished preparation count only for the file that they were made of."""
    data = pick(data_dir, tmp_path / 'data', KALUNGA, 'subject0[145]/*')
    (bad,) = (data / KALUNGA / 'subject05').glob('*-eve.fif')
    rewrite_events(bad, put(5, 2, 9))
    with pytest.raises(RequestError, match='code 9'):
        prepare(KALUNGA, data, tmp_path / 'work')
    (other,) = (data / KALUNGA / 'subject04').glob('*-eve.fif')
    rewrite_events(other, put(5, 2, 1))
    rewrite_events(bad, put(5, 2, 1))
    said: Said = []
    prepare(KALUNGA, data, tmp_path / 'work', lambda *f: said.append(f))
    assert said[0][1:] == (1, 3)


# --------------------------------------------------------------------------------------------------- samples and units


def checked(change: Callable[[np.ndarray], np.ndarray]) -> list[Finding]:
    """What is found in a tiny recording with other samples."""
    raw, events = tiny.read(tiny.ref(1))
    return check_recording.check(
        Recording(mne.io.RawArray(change(raw.get_data()), raw.info), events), tiny.DATASET, 'x'
    )


@pytest.mark.parametrize('factor', [1e-6, 1e-3, 1e3, 1e6])
def test_a_wrong_unit_is_told_with_the_amplitude_that_was_measured(factor: float) -> None:
    assert checked(lambda x: x) == []
    x = tiny.read(tiny.ref(1)).raw.get_data()
    sd = np.median((np.percentile(x, 84, axis=1) - np.percentile(x, 16, axis=1)) / 2)
    (finding,) = checked(lambda x: x * factor)
    assert finding.level == 'fatal' and f'a median amplitude of {sd * factor:.2e} V' in finding.found
    assert finding.expected == '5.0e-07 to 5.0e-04 V'


def test_flat_and_saturated_channels_are_kept_and_told() -> None:
    def change(x: np.ndarray) -> np.ndarray:
        limit = np.percentile(np.abs(x[1] - x[1].mean()), 90)
        return np.stack([0 * x[0] + 1e-5, np.clip(x[1] - x[1].mean(), -limit, limit), x[2]])

    flat, saturated = checked(change)
    assert (flat.level, flat.found) == ('note', 'flat: Oz')
    assert (saturated.level, saturated.found) == ('note', 'samples at the limit: O1 (10 %)')
