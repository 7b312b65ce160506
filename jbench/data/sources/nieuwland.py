"""Sentences read word by word at eight universities (Nieuwland et al. 2018).

Which word is shown stands only in triggers: before or within the words of a sentence one says how probable its noun
is (1 to 100; 200 for 0), one the number of its item (101 to 180), and each word has its own (201 to 208 in sentences
whose noun is expected or not, 210 and 211 in right and wrong ones, 255 for any other). The words of the item are in
the sheets of `REPLICATION_ITEMS.xlsx`. As published, a sentence counts only where their number fits, and the last
sequence of a recording, which nothing follows, does not; `sequence_id` is the place of a sequence in its recording,
not a sentence. Words are in lower case, of letters, digits, hyphens and apostrophes.

Traps of the files: formats, rates and names of channels differ from site to site; BioSemi files have bits beside the
triggers; those who answered at random in London say so in the name of the file. The ninth site (STIR) is left out, as
published: its times are wrong. Four people of Birmingham (9, 10, 12, 13), whose triggers are damaged, are left out too:
the published reader mends them by the logs of E-Prime. So the set is partial.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jbench.data.formats import bids
from jbench.data.recording import Finding, Recording, RecordingRef
from jbench.spec.dataset import Dataset, Download

if TYPE_CHECKING:
    import mne

DATASETS = (
    Dataset(
        name='Nieuwland2018Large',
        title='Reading of sentences word by word, eight sites',
        source=__name__,
        n_subjects=295,
        n_recordings=335,
        n_chans=63,
        sfreq=(500.0, 512.0, 1000.0, 2048.0),
        seconds=2296.9,
        event_types=('Sentence', 'Word'),
        licence='CC-BY-4.0',
        citation='Nieuwland et al. (2018), eLife 7, e33468',
        host='osf.io/eyzaq/',
        layout='Raw and Processed data/Raw data/<SITE>/*.{vhdr,bdf} (headers of BIRM and YORK unpacked; those of BIRM '
        'may lie in the folders of their archives), Stimuli/Stimuli.zip',
        download=Download(url='osf:nodes/eyzaq/files/osfstorage', unpack='*.[ve]*'),
    ),
)
RAW = 'Raw and Processed data/Raw data'
LEFT_OUT = {'BIRM': (7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 37, 41, 42, 43), 'BRIS': (32,)}
SITES = {'BIRM': 43, 'BRIS': 39, 'EDIN': 35, 'GLAS': 35, 'KENT': 38, 'LOND': 38, 'OXFO': 37, 'YORK': 41}  # last number
ITEMS = 'Stimuli/Sentence Materials/REPLICATION_ITEMS.xlsx'  # in the archive
EOG, MISC = r'(V|H|)EOG', r'EXG\d|GSR\d|Erg\d|Resp|Plet|Temp|BIP1'
GAP = 1.5  # s: what follows later than this is another sequence
SHOWN = 0.2  # s
QUESTION = (250, 251)
EXPECTED = {201: True, 202: True, 203: False, 204: False, 205: True, 206: False, 207: True, 208: False}
CORRECT = {210: True, 211: False}


def recordings(dataset: Dataset, root: Path) -> list[RecordingRef]:
    """References by site, number of the person, and task where it has a recording of its own."""
    refs = []
    for site, last in SITES.items():
        found: dict[tuple[int, bool], str] = {}
        folder = root / RAW / site
        for path in sorted([*folder.glob('*.*'), *folder.glob('*/*.vhdr')], reverse=True):
            name = re.fullmatch(rf'{site}(\d+)(?:_(main|control))?(?:\(.*\))?\.(?:vhdr|bdf)', path.name, re.IGNORECASE)
            number = int(name[1]) if name else 0
            if name and 1 <= number <= last and number not in LEFT_OUT.get(site, ()):
                found[number, name[2] == 'control'] = str(path)  # of two headers that of the archive with signals
        refs += [
            RecordingRef(
                dataset.name,
                f'{site}_{number}',
                '0',
                'control' if control else 'main',
                (path, str(root / 'Stimuli' / 'Stimuli.zip')),
                (('site', site),),
            )
            for (number, control), path in sorted(found.items())
        ]
    return refs


def read(ref: RecordingRef) -> Recording | Finding:
    """A recording in volts. Events `Word` with `text`, `sentence` and `sequence_id`, and `Sentence` over them."""
    import mne

    from jbench.data.formats.words import columns, with_sentences

    if ref.files[0].endswith('.bdf'):
        bad = bids.check_signal(ref.files[0])
        if bad:
            return bad
        raw = mne.io.read_raw_bdf(ref.files[0])
        found = mne.find_events(raw, stim_channel='Status', shortest_event=1, mask=255, mask_type='and', verbose=False)
        marks = [(sample / raw.info['sfreq'], int(code)) for sample, _, code in found]
    else:
        with _beside(Path(ref.files[0])) as header:
            bad = bids.check_signal(str(header))
            if bad:
                return bad._replace(where=str(Path(bad.where).resolve()))  # the file, not a link to it
            raw = mne.io.read_raw_brainvision(header, preload=header != Path(ref.files[0]))
        marks = [(float(a['onset']), _code(str(a['description']))) for a in raw.annotations]
    _name_channels(raw, dict(ref.fields)['site'])
    words = []
    for number, sequence in enumerate(_sequences(marks)):
        shown = [(onset, code) for onset, code in sequence if _is_word(code)]
        spelled = _sentence([code for _, code in sequence], number, ref.files[1])
        if len(spelled) == len(shown):
            words += [_word(onset, text, number) for (onset, _), text in zip(shown, spelled, strict=True)]
    rows = with_sentences(words)
    for row in rows:
        row['text'] = row['text'] if row['type'] == 'Sentence' else _plain(row['text'])
    return Recording(raw.set_annotations(None), columns([row for row in rows if row['text']]))


@contextlib.contextmanager
def _beside(header: Path) -> Iterator[Path]:
    """A header of BrainVision with its signal beside it; headers that were unpacked from an archive may lie one folder
    deeper than their signals."""
    parts = [p for p in header.parent.parent.glob('*.*') if p.stem.lower() == header.stem.lower()]
    if not parts or any(p.suffix == '.eeg' and p.stem.lower() == header.stem.lower() for p in header.parent.iterdir()):
        yield header
        return
    with tempfile.TemporaryDirectory() as folder:
        for path in (*parts, header, header.with_suffix('.vmrk')):
            (Path(folder) / path.name).unlink(missing_ok=True)
            (Path(folder) / path.name).symlink_to(path.resolve())
        yield Path(folder) / header.name


def _name_channels(raw: mne.io.BaseRaw, site: str) -> None:
    """Types and places of the channels, by their names."""
    raw.rename_channels({c: c.replace('Af', 'AF') for c in raw.ch_names})
    kinds = {c: 'eog' for c in raw.ch_names if re.fullmatch(EOG, c)}
    kinds |= {c: 'misc' for c in raw.ch_names if re.fullmatch(MISC, c)}
    raw.set_channel_types(kinds, on_unit_change='ignore')
    raw.set_montage('biosemi128' if site == 'GLAS' else 'standard_1005', on_missing='ignore')


def _code(description: str) -> int:
    """The trigger of an annotation of BrainVision: `Stimulus/S 255`; 0 for another."""
    found = re.fullmatch(r'.*/[Ss]\s*(\d+)', description)
    return int(found[1]) if found else 0


def _is_word(code: int) -> bool:
    return code in EXPECTED or (code >= 210 and code not in QUESTION)


def _sequences(marks: list[tuple[float, int]]) -> list[list[tuple[float, int]]]:
    """The triggers of each sequence: one ends with the last word or question before a gap."""
    sequences, shown = [], [k for k, (_, code) in enumerate(marks) if _is_word(code) or code in QUESTION]
    start = 0
    for k, following in itertools.pairwise(shown):
        if marks[following][0] - marks[k][0] > GAP:
            sequences.append(marks[start : k + 1])
            start = k + 1
    return sequences


def _sentence(codes: list[int], number: int, archive: str) -> list[str]:
    """The words that the triggers of a sequence stand for; [] where they do not say which."""
    items = [code - 100 for code in codes if 101 <= code <= 180]
    practice = number < 10 and not any(1 <= code <= 100 for code in codes)
    right, expected = ([known[c] for c in codes if c in known] for known in (CORRECT, EXPECTED))
    if len(codes) < 4 or not items or practice or bool(right) == bool(expected):
        return []
    item = _items(archive)['control' if right else 'main'].get(items[0], {})
    if not item:
        return []
    if right:
        return item['correct' if any(right) else 'incorrect'].split()
    kind = 'expected' if any(expected) else 'unexpected'
    return ' '.join([item['sentence_context'], item[kind], item[f'{kind}_1'], item['sentence_ending']]).split()


@lru_cache(maxsize=1)
def _items(archive: str) -> dict[str, dict[int, dict[str, str]]]:
    """The sentences of both tasks by the numbers of their items. Raises: KeyError, BadZipFile."""
    import io
    import zipfile

    from jbench.data.formats import xlsx

    with zipfile.ZipFile(archive) as file:
        book = io.BytesIO(file.read(ITEMS))
    sheets = {'main': 'Delong_Replication', 'control': 'Control_experiment'}
    return {
        task: {int(float(row['item_number'])): row for row in xlsx.sheet(book, name) if row.get('item_number')}
        for task, name in sheets.items()
    }


def _word(onset: float, text: str, sequence: int) -> dict[str, Any]:
    return {'type': 'Word', 'onset': onset, 'duration': SHOWN, 'text': text, 'sequence_id': sequence}


def _plain(text: str) -> str:
    return ''.join(c for c in text if c.isalnum() or c in " -'").lower()
