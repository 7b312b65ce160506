"""What a task sees of a dataset, to be looked at before anything is learnt: `--stage=check`.

Counts of each class and part, durations, units, amplitudes and the findings of the contract, as text; and a page with
pictures in `<workdir>/check/<task>@<version>/<dataset>/index.html`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from jbench import files, targets
from jbench.data.discover import find_recordings
from jbench.data.load import prepared_set
from jbench.data.load.class_names import class_names
from jbench.data.load.prepared_set import PreparedSet
from jbench.data.recording import UNIT, Finding, RecordingRef, data_channels, samples
from jbench.data.source import source_of
from jbench.report.dataset import figures
from jbench.report.dataset.figures import Look
from jbench.report.text import folded, listed, table
from jbench.results.record import present
from jbench.spec.cell import Cell
from jbench.spec.dataset import Dataset
from jbench.spec.errors import MissingExtraError, RequestError
from jbench.spec.task import Task

RECORDINGS, CHANNELS = 24, 64  # read again, at most
NAMES = 32  # of channels, in the text
SEGMENT = 4.0  # s, of a spectrum: a quarter of a Hz a step
STYLE = 'body{font:15px sans-serif;max-width:65em;margin:2em auto}td,th{text-align:left;padding:0 1em}img{width:100%}'
Facts = dict[str, Any]


def require(what: str = '--stage=check') -> None:
    """Raises: RequestError with the pip command where there is nothing to draw with."""
    if find_spec('matplotlib') is None:
        raise MissingExtraError('matplotlib', 'report', what)


def look(cell: Cell, folder: Path, data_dir: Path | None, workdir: Path) -> Facts:
    """Facts about the prepared set of a cell in `folder`, and its page; where the task cannot be learnt from what is
    there, `refused` says why, and the rest what there is. Raises: RequestError for damaged data."""
    dataset, refused = cell.dataset, ''
    try:
        data = prepared_set.open_set(folder, cell.task, embedded=False)
    except RequestError as error:
        data, refused = prepared_set.open_set(folder, cell.task, divided=False, embedded=False), str(error)
    known = {(r['subject'], r['session'], r['run']) for r in data.manifest['recordings']}
    refs = [r for r in find_recordings(dataset, data_dir) if (r.subject, r.session, r.run) in known]
    looks = [_read(dataset, refs[k]) for k in figures.evenly(len(refs), RECORDINGS)]
    facts = _facts(cell, data, looks, len(refs))
    facts |= {'refused': refused, 'findings': [*facts['findings'], *filter(None, [refused])]}
    home = workdir / 'check' / facts['task'].replace('/', '_') / dataset.name
    shown = {} if refused else figures.of_windows(cell, data)
    if looks:
        shown = figures.of_recordings(cell, looks, len(refs)) | shown
    for old in home.glob('*.png'):  # of a page that had other pictures
        old.unlink()
    for name, (_, draw) in shown.items():
        files.write_atomic(home / f'{name}.png', figures.png(draw, 'simulated' * dataset.simulated))
    page = _page(facts, {name: caption for name, (caption, _) in shown.items()})
    return facts | {'page': str(files.write_atomic(home / 'index.html', page.encode()))}


def text(facts: Facts) -> str:
    """Facts as a person reads them."""
    found = ''.join(f'\n  {f}' for f in facts['findings']) or ' none'
    return f'{folded(_plain(facts))}\n\n{table(*_counted(facts))}\n\nfindings:{found}\n\npage: {facts["page"]}\n'


def _plain(facts: Facts) -> Facts:
    return {k: v for k, v in facts.items() if isinstance(v, str) and k not in ('page', 'refused')}


def _counted(facts: Facts) -> tuple[list[str], list[list[Any]]]:
    """Heads and rows of the table of windows."""
    rows = facts['windows']
    return ['', *rows['windows']], [[name, *row.values()] for name, row in rows.items()]


def _read(dataset: Dataset, ref: RecordingRef) -> Look:
    """Amplitudes and spectra of one recording, by Welch's method."""
    import mne
    from scipy.signal import welch

    with mne.use_log_level('ERROR'), warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            read = source_of(dataset).read(ref)
            if isinstance(read, Finding):
                raise ValueError(f'{read.rule}, found {read.found}')
            raw = read.raw
            channels = data_channels(raw, dataset)
        except Exception as error:  # the contract has passed it, so something changed since
            raise RequestError(f'{ref.where}: could be read when it was prepared, and now can not: {error}') from error
        picks, sfreq = [channels[k] for k in figures.evenly(len(channels), CHANNELS)], float(raw.info['sfreq'])
        n = min(raw.n_times, max(64, round(SEGMENT * sfreq)))
        spread, power = [], []
        for x in samples(raw, [raw.ch_names.index(c) for c in picks]):
            low, high = np.percentile(x, [16, 84])
            hz, density = welch(x, sfreq, nperseg=n)
            spread.append((high - low) / 2)
            power.append(density)
    return Look(ref.name, picks, np.array(spread), hz, np.array(power))


def _facts(cell: Cell, data: PreparedSet, looks: list[Look], n_refs: int) -> Facts:
    """All that the text says, as plain values."""
    task, dataset, there, cut = cell.task, cell.dataset, data.manifest['recordings'], cell.task.window
    seconds, signal = np.array([r['seconds'] for r in there]), data.signal
    names = listed(signal.ch_names[:NAMES]) + ' ...' * (signal.n_chans > NAMES)
    here, declared = present(task, dataset, data.manifest['found'])
    unit, symbol = UNIT.get(dataset.device, ('volts', 'V'))
    median = [float(np.median(k.spread)) for k in looks]
    loud = 'no recordings here to read'
    if median:
        loud = f'{min(median):.2e} to {max(median):.2e} {symbol} ({len(looks)} of {n_refs} recordings)'
    return {
        'task': f'{task.full_name}@{task.version}',
        'dataset': dataset.name,
        'data': 'SIMULATED: generated recordings, not measured ones' if dataset.simulated else 'measured recordings',
        'subjects': f'{here.subjects} present, {declared.subjects} expected; {len({r["subject"] for r in there})} '
        'have windows',
        'recordings': f'{here.recordings} present, {declared.recordings} expected; {len(there)} hold windows',
        'duration': f'{seconds.min():.4g} to {seconds.max():.4g} s a recording, {seconds.sum() / 3600:.3g} h in all',
        'rate': listed(sorted({f'{r["sfreq"]:g} Hz' for r in there})),
        'channels': f'{signal.n_chans}: {names}',
        'unit': unit,
        'amplitude': f'robust sd, median over channels: {loud}; allowed: '
        f'{dataset.amplitude[0]:g} to {dataset.amplitude[1]:g} {symbol}',
        'window': f'{signal.n_times} samples at {signal.sfreq:g} Hz: {cut.duration:g} s from {cut.start:g} s after the '
        f'onset of an event of type {cut.trigger}{f", every {cut.stride:g} s" if cut.stride else ""}',
        'target': f'{task.target.kind}, from {task.target.field!r}{_awaited(task, data)}',
        'windows': _counts(dataset, data),
        'findings': list(data.warnings),
    }


def _awaited(task: Task, data: PreparedSet) -> str:
    """What training needs, and looking does not: embeddings of the stimuli."""
    encoder = getattr(task.target, 'encoder', '')
    if not encoder or data.vectors is not None:
        return ''
    return f'; its {len(data.classes)} stimuli are not embedded yet, which training does (by {encoder})'


def _counts(dataset: Dataset, data: PreparedSet) -> dict[str, dict[str, Any]]:
    """What each part holds: rows of the table by their names, the number of windows first."""
    rows: dict[str, Callable[[np.ndarray], Any]] = {
        'windows': len,
        'subjects': lambda part: len(set(data.subjects[part].tolist())),
    }
    whole = len(rest := data.rows('')) == len(data.split)  # no split is drawn
    rows |= targets.of(data.kind).counts(data.y, class_names(dataset, data), rest if whole else data.rows('train'))
    if whole:
        return {name: {'in no part': count(rest)} for name, count in rows.items()}
    parts = {p: data.rows(p) for p in figures.PARTS}
    found = {name: {part: count(numbers) for part, numbers in parts.items()} for name, count in rows.items()}
    if len(rest):
        for name, row in found.items():  # of what the task leaves out no target is known
            row['in no part'] = rows[name](rest) if name in ('windows', 'subjects') else '-'
    return found


def _page(facts: Facts, captions: dict[str, str]) -> str:
    """The facts and pictures as one HTML page."""
    name, (heads, rows) = escape(f'{facts["task"]} on {facts["dataset"]}'), _counted(facts)
    lines = [f'<!doctype html><meta charset="utf-8"><title>{name}</title><style>{STYLE}</style><h1>{name}</h1><table>']
    lines += [f'<tr><th>{escape(k)}<td>{escape(v)}' for k, v in _plain(facts).items()]
    lines.append('</table><h2>Windows</h2><table>')
    lines += ['<tr>' + ''.join(f'<td>{escape(str(v))}' for v in row) for row in (heads, *rows)]
    lines.append('</table><h2>Findings</h2><ul>')
    lines += [f'<li>{escape(f)}' for f in facts['findings'] or ['none']]
    lines.append('</ul>')
    lines += [f'<p><img src="{file}.png" alt="{file}"><br>{escape(caption)}' for file, caption in captions.items()]
    return '\n'.join(lines) + '\n'
