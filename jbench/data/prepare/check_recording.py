"""The contract that recordings must meet before anything is computed from them: all findings at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jbench.data import marks
from jbench.data.prepare import amplitude, constant, contacts
from jbench.data.prepare.constant import KEPT, Stretch
from jbench.data.prepare.findings import faults, grouped, left_out, some
from jbench.data.recording import EVENT_TYPE, PERMIT, Finding, Recording, RecordingRef, blocks, data_channels
from jbench.data.source import is_own
from jbench.data.sources import mixture
from jbench.spec.dataset import Dataset
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    import mne
    import numpy as np

SHORT = 0.8  # of the declared duration: what is shorter is spoken of
SATURATED = 0.05  # of the samples at the channel's least or greatest value: what is more is spoken of
Converted = dict[str, Any]  # a checked recording: 'findings' and, unless one is fatal, 'native', 'channels', 'ch_names'


def unreadable(ref: RecordingRef, error: Exception) -> Finding:
    """What a reader said before it gave up, as a finding that names the files it was given."""
    reason = str(getattr(error, 'strerror', None) or error).strip().partition('\n')[0][:200] or 'no message'
    others = ''.join(f' (with {f.rpartition("/")[2]})' for f in ref.files[1:])
    if isinstance(error, PermissionError):
        where = str(error.filename or ref.where)
        found = f'that the reader failed: {reason}'
        return Finding(where, 'the recording must be readable', found, 'that it may be read', PERMIT)
    return Finding(
        ref.where + others,
        'the recording must be readable',
        f'that the reader failed: {reason}',
        'a whole recording',
        'a file may be damaged: fetch it again',
    )


def unfit(ref: RecordingRef, error: Exception) -> Finding:
    """Why a whole recording does not serve a task: its events, or a filter that its rate does not allow."""
    reason = str(error).strip().partition('\n')[0][:200] or type(error).__name__
    return Finding(
        ref.where,
        'the recording must serve the task',
        reason,
        'events and a rate that allow its windows and filters',
        'change target, window or signal of the task, or use the original files',
    )


def check(recording: Recording, dataset: Dataset, where: str) -> list[Finding]:
    """All findings about one recording alone, at once: samples, unit, channels that are flat, events."""
    findings, loud = examine(recording, dataset, where)
    if loud is not None and not amplitude.within(loud, dataset):
        findings.append(amplitude.wrong(loud, dataset, where))
    return findings


def examine(recording: Recording, dataset: Dataset, where: str) -> tuple[list[Finding], float | None]:
    """All findings about one recording but that of its unit, and its amplitude, by which `judge` sees that beside the
    others; None if it has none."""
    raw, events = recording
    names = data_channels(raw, dataset)
    if not names:
        rule = f'{dataset.device.upper()} channels must be there'
        return [Finding(where, rule, 'none', 'at least one', 'use the original file')], None
    if raw.n_times < raw.info['sfreq']:
        rule, remedy = 'a recording must last a second', 'the file may be truncated: fetch it again'
        return [Finding(where, rule, f'{raw.n_times} samples', 'at least one second', remedy)], None
    seconds = (raw.n_times - 1) / float(raw.info['sfreq'])
    loud, findings = _check_samples(raw, names, dataset, where)
    findings += contacts.told(raw, names, dataset, where)
    return [*findings, *_check_events(events, dataset, seconds, where)], loud


def _check_samples(raw: mne.io.BaseRaw, names: list[str], dataset: Dataset, where: str) -> tuple[float, list[Finding]]:
    """The amplitude (median over channels of the robust sd), and findings about the samples."""
    import numpy as np

    place, sfreq = {name: k for k, name in enumerate(raw.ch_names)}, float(raw.info['sfreq'])
    n_broken, first, spread, limits = 0, '', np.zeros(len(names)), np.zeros(len(names))
    nowhere, alone = np.ones(raw.n_times - 1, bool), dict[str, list[Stretch]]()  # no channel changes; one does not
    skipped = marks.skipped(raw)  # zeros that stand for nothing
    recorded = slice(None) if skipped is None or skipped.all() else ~skipped
    for rows in blocks(raw, range(len(names))):
        x = raw.get_data([place[names[k]] for k in rows])
        for k, row in zip(rows, x, strict=True):
            still = row[1:] == row[:-1]
            if skipped is not None:
                still[skipped[1:] | skipped[:-1]] = False
            nowhere &= still
            if (own := constant.stretches(still, sfreq)) and not still.all():
                alone[names[k]] = own
        broken = ~np.isfinite(x)
        if broken.any() and not n_broken:
            row, column = np.argwhere(broken)[0]
            first = f'channel {names[rows[row]]} at {column / sfreq:.2f} s'
        n_broken += int(broken.sum())
        x, broken = x[:, recorded], broken[:, recorded]
        limits[rows] = np.mean((x == x.min(1, keepdims=True)) | (x == x.max(1, keepdims=True)), axis=1)
        x[broken] = 0.0
        low, high = np.percentile(x, [16, 84], axis=1, overwrite_input=True)
        spread[rows] = (high - low) / 2  # a robust standard deviation
    found: list[Finding] = []
    if n_broken:
        what = f'{n_broken} that are NaN or infinite, the first in {first}'
        found.append(Finding(where, 'samples must be finite', what, 'none', 'repair or remove the file'))
    flat = [name for name, s in zip(names, spread, strict=True) if s == 0]
    if flat:
        found.append(Finding(where, 'channels should vary', f'flat: {some(flat)}', 'none flat', KEPT, 'note'))
    over = np.flatnonzero((spread > 0) & (limits > SATURATED))
    if len(over):
        what = f'samples at the limit: {some([f"{names[k]} ({100 * limits[k]:.0f} %)" for k in over])}'
        expected = f'at most {100 * SATURATED:.0f} %'
        found.append(Finding(where, 'channels should not saturate', what, expected, KEPT, 'note'))
    found += constant.findings(constant.stretches(nowhere, sfreq), alone, sfreq, dataset, where)
    return float(np.median(spread)), found


def _check_events(events: dict[str, np.ndarray], dataset: Dataset, seconds: float, where: str) -> Iterator[Finding]:
    """Findings about the events of one recording, marks left aside."""
    import numpy as np

    events = {k: v[~np.isin(events['type'], marks.KINDS)] for k, v in events.items()}
    kinds = [str(t) for t in events['type']]
    for kind in dataset.event_types:
        if kind not in kinds and kind != EVENT_TYPE[dataset.device]:
            yield Finding(
                where,
                f'events of type {kind} must be there',
                'none',
                'at least one',
                'look for its events: a table beside the recording, or annotations in it',
            )
    n = sum(k in dataset.event_types for k in kinds)
    if dataset.n_events is not None and 0 < n < dataset.n_events:
        yield Finding(
            where,
            'no event may be missing',
            f'{n} events',
            f'at least {dataset.n_events}',
            'a file may be truncated: fetch it again',
        )
    late = [float(t) for t in events['onset'] if not 0 <= t <= seconds]
    if late:
        yield Finding(
            where,
            'events must lie inside the recording',
            f'{len(late)} outside, one at {late[0]:.1f} s',
            f'0 to {seconds:.1f} s',
            'a file may be truncated, or the event file is of another recording',
        )
    if dataset.event_id and 'code' in events:
        unexpected = sorted({int(c) for c in events['code']} - {c for _, c in dataset.event_id})
        if unexpected:
            known = ', '.join(f'{code} ({name})' for name, code in dataset.event_id)
            yield Finding(
                where,
                'event codes must be known',
                f'code {", ".join(map(str, unexpected))}',
                known,
                'correct event_id of the dataset, or the reader',
            )


def judge(
    dataset: Dataset, refs: Sequence[RecordingRef], parts: Sequence[Converted], *, exclude_bad: bool = False
) -> tuple[list[int], list[str]]:
    """Which recordings to keep (their numbers), and what every result of the set must say.

    A rate that differs from the declared one makes a partial dataset if all recordings share it; a recording that
    differs from the others is refused. Channels that some recordings lack are zero there. What stands under two names
    is kept once. With `exclude_bad`, recordings that are refused are left out where others are good.

    Raises: RequestError with every fatal finding of every recording.
    """
    whole = [i for i, p in enumerate(parts) if 'native' in p]
    unexpected, notes = _agree(dataset, [refs[i] for i in whole], [parts[i] for i in whole])
    loud = {refs[i]: parts[i]['amplitude'] for i in whole if parts[i].get('amplitude') is not None}
    wrong, odd = amplitude.compare(dataset, loud)
    findings = list(dict.fromkeys(Finding(*f) for p in parts for f in p['findings']))  # of a file that several share
    if refused := [f for f in findings if f.level == 'fatal'] + wrong + unexpected:
        bad = {i: [Finding(*f) for f in p['findings'] if Finding(*f).level == 'fatal'] for i, p in enumerate(parts)}
        for i, ref in enumerate(refs):
            bad[i] += [f for f in wrong + unexpected if f.where == ref.where]
        good = [i for i in bad if not bad[i]]
        if exclude_bad and good:
            kept, notes = judge(dataset, [refs[i] for i in good], [parts[i] for i in good])
            return [good[k] for k in kept], [left_out([(refs[i].name, bad[i]) for i in bad]), *notes]
        n = f'{len(refused)} fault' + 's' * (len(refused) > 1)
        ask = '; --exclude_bad leaves out what is bad' if good and is_own(dataset) else ''
        shown = ''.join(f'\n  {line}' for line in faults(refused))
        raise RequestError(
            f'{dataset.name}: {n} in {len(refs)} recordings (all were checked; the '
            f'good ones are kept, so after a repair only the others are prepared{ask}):{shown}'
        )
    notes += odd + grouped(findings) + marks.told([(refs[i].name, parts[i]) for i in whole])
    kept = []
    seen: dict[str, RecordingRef] = {}
    for i in whole:
        ref, first = refs[i], seen.setdefault(parts[i]['native']['digest'], refs[i])
        if first is ref:
            kept.append(i)
        else:
            name = dict(ref.fields).get('record', ref.run)
            notes.append(
                f'duplicate: recording {name} of subject {ref.subject} equals that of subject '
                f'{first.subject}, sample for sample; kept once'
            )
    return kept, notes


def _agree(dataset: Dataset, refs: list[RecordingRef], parts: list[Converted]) -> tuple[list[Finding], list[str]]:
    """Recordings that do not go with the others, and how all of them differ from the declared."""
    if not parts:
        return [], []
    rates = [f'{p["native"]["sfreq"]:g} Hz' for p in parts]
    unexpected, notes = list[Finding](), list[str]()
    for one, mine in mixture.by_member(dataset, refs):
        its, declared_rates = [refs[i] for i in mine], {f'{r:g} Hz' for r in one.sfreq}
        strange_rates, told = _alike('sampling rate', [rates[i] for i in mine], declared_rates, its)
        unexpected, notes = unexpected + strange_rates, notes + told
    counts = {len(p['channels']) for p in parts}
    if dataset.n_chans not in counts:
        found = _range(counts)
        notes.append(f'partial: number of channels: found {found}, declared {dataset.n_chans}')
    own = contacts.united([p['ch_names'] for p in parts], dataset)
    strange, lacks = _united(refs, parts) if own is None else ([], own)
    declared = dataset.seconds or 0.0
    short = [p['native']['seconds'] for p in parts if p['native']['seconds'] < SHORT * declared]
    if short:
        which = 'partial' if len(short) == len(parts) else f'{len(short)} of {len(parts)} recordings'
        notes.append(f'{which}: duration: found {_range(round(t) for t in short)} s, declared {declared:.0f} s')
    return unexpected + strange, notes + lacks


def _united(refs: list[RecordingRef], parts: list[Converted]) -> tuple[list[Finding], list[str]]:
    """A set has the channels of all its recordings, and those that a recording lacks are zero there, which is noted.
    What shares no channel with most of the others is refused."""
    sets = Counter(frozenset(p['ch_names']) for p in parts if p['ch_names'])
    if len(sets) < 2:
        return [], []
    usual = max(sets, key=lambda s: sets[s])
    unexpected, absent = [], dict[tuple[str, ...], list[str]]()
    for ref, part in zip(refs, parts, strict=True):
        if part['ch_names'] and not usual.intersection(part['ch_names']):
            found, expected = f'none of them among {some(part["ch_names"])}', f'at least one of {some(sorted(usual))}'
            rule, remedy = 'channels must be called as in the others', 'use the original file'
            unexpected.append(Finding(ref.where, rule, found, expected, remedy))
    cut = [(ref.where.rpartition('/')[2], frozenset(p['ch_names'])) for ref, p in zip(refs, parts, strict=True)]
    for channel in dict.fromkeys(c for p in parts for c in p['ch_names']):
        lacking = tuple(where for where, has in cut if has and channel not in has)
        if lacking:
            absent.setdefault(lacking, []).append(channel)
    n = sum(sets.values())
    return unexpected, [
        f'channels: zeros for {some(channels)} in {len(where)} of {n} recordings, which lack them: {some(where)}'
        for where, channels in absent.items()
    ]


def _range(numbers: Iterable[int]) -> str:
    """The least and the greatest of some numbers."""
    found = sorted(set(numbers))
    return ' to '.join(map(str, dict.fromkeys((found[0], found[-1]))))


def _alike(
    what: str, values: list[str], declared: set[str], refs: list[RecordingRef]
) -> tuple[list[Finding], list[str]]:
    """Findings about recordings that differ from the most frequent value (a declared one on a tie), and a note where
    that is not declared. Where several values are declared, they may stand beside each other."""
    count = Counter(values)
    usual = max(count, key=lambda v: (count[v], v in declared))
    good = declared if usual in declared else {usual}
    most = f'{usual} as in {count[usual]} of {len(values)}'
    remedy = 'use the original file, or name each rate in sfreq of the dataset: all are resampled to signal.sfreq'
    unexpected = [
        Finding(ref.where, f'the {what} must be that of the others', value, most, remedy)
        for ref, value in zip(refs, values, strict=True)
        if value not in good
    ]
    notes = [] if usual in declared else [f'partial: {what}: found {usual}, declared {" or ".join(sorted(declared))}']
    return unexpected, notes
