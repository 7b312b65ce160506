"""Who was recorded: a dataset, as frozen plain values."""

from __future__ import annotations

from dataclasses import dataclass

from jbench.spec.overrides import Override


@dataclass(frozen=True, kw_only=True)
class Download:
    """Where the files of a dataset are; the list of its host says which, and their sums.

    Addresses: `https://host/folder/` (a file is at url + name), `s3://bucket/prefix/`, `openneuro:ds000000`,
    `zenodo:RECORD`, `figshare:ARTICLE`, `osf:nodes/ID/files/osfstorage`, `osf:files/ID`, `hf:datasets/OWNER/NAME`,
    `hf:models/OWNER/NAME`, `synapse:synID`, `nemar:ID/latest`; `moabb:CLASS` is fetched by MOABB. A repository of
    GitHub is `https://raw.githubusercontent.com/OWNER/NAME/COMMIT/folder/` with a registered list.
    """

    url: str
    registered: str | None = None  # of https: list beside the source module (sum, bytes, name), else SHA256SUMS.txt
    files: str = '*'  # those of the list that are wanted; `|` stands between several patterns
    without: str = ''  # those of them that are not
    unpack: str = ''  # those of the members of zip and tar files that are unpacked beside them
    also: tuple[Download, ...] = ()  # further places of files of the same folder; each with a registered list


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Who was recorded: facts as its publication declares them, and the module that reads its files."""

    name: str
    title: str
    source: str  # module with recordings(dataset, root) and read(ref)
    device: str = 'eeg'
    n_subjects: int
    n_recordings: int
    n_chans: int
    sfreq: tuple[float, ...]  # Hz, every rate that occurs
    seconds: float | None = None  # of the first recording
    event_id: tuple[tuple[str, int], ...] = ()
    event_types: tuple[str, ...] = ('Stimulus',)  # types of which each recording holds at least one event
    n_events: int | None = None  # least number of events of those types in each recording
    amplitude: tuple[float, float] = (0.5e-6, 500e-6)  # V: allowed median over channels of the robust sd
    constant: float | None = 1.0  # s in which no channel changes: from here on refused; None: told, however long
    licence: str
    citation: str
    host: str
    layout: str  # what lies under <data_dir>/<name>/
    access: str = 'open'  # anything else: its host asks for an agreement, which jbench never gives for the user
    download: Download | None = None  # None: fetched by hand
    doi: str = ''  # of the data; else of their publication
    revision: str = ''  # the release at the host that the facts here are of
    supersedes: tuple[str, str] | None = None  # the revision that this one corrects, and why
    aliases: tuple[str, ...] = ()
    names: str = ''  # of files of one's own: '{subject}_{eyes}' makes `eyes` a column; '*' is anything, '/' a folder
    simulated: bool = False
    recipe: tuple[Override, ...] = ()  # simulated sets carry their own
