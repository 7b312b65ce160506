"""Contacts in the brain: what is told of their places, and of sets whose people have contacts of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jbench.data.prepare.constant import KEPT
from jbench.data.prepare.findings import some
from jbench.data.recording import OF_A_PERSON, Finding
from jbench.spec.dataset import Dataset

if TYPE_CHECKING:
    import mne

FARTHEST = 0.3  # m from the origin of any space in use (MNI, that of a scan): what is farther is in another unit


def told(raw: mne.io.BaseRaw, ch_names: Sequence[str], dataset: Dataset, where: str) -> list[Finding]:
    """Findings about the places of contacts in the brain, m in the space that the dataset names: those that are no
    place in a head stop the preparation, those that are not known are told."""
    import numpy as np

    if dataset.device not in OF_A_PERSON:
        return []
    loc = {c['ch_name']: np.asarray(c['loc'][:3], float) for c in raw.info['chs']}
    known = [name for name in ch_names if np.isfinite(loc[name]).all() and loc[name].any()]
    far = [name for name in known if np.linalg.norm(loc[name]) > FARTHEST]
    found = []
    if far:
        rule, expected = 'contacts must lie in the head', f'places in m, at most {FARTHEST:g} from the origin'
        remedy = 'say the unit of the places: coordsystem.json, or the reader'
        found.append(Finding(where, rule, f'{some(far)} farther than {FARTHEST:g} m', expected, remedy))
    if len(known) < len(ch_names):
        rest = [name for name in ch_names if name not in known]
        rule, expected = 'contacts should have a place', 'a place of each'
        found.append(Finding(where, rule, f'none of {some(rest)}', expected, KEPT, 'note'))
    return found


def united(ch_names: Sequence[Sequence[str]], dataset: Dataset) -> list[str] | None:
    """What is said of a set with these channels in its recordings, where those of each person stand beside the others';
    None where people share channels, as regions of the brain are."""
    sets = {frozenset(names) for names in ch_names if names}
    if dataset.device not in OF_A_PERSON or not all('/' in name for names in sets for name in names):
        return None
    if len(sets) < 2:
        return []
    n, most = len(frozenset.union(*sets)), max(map(len, sets))
    zeros = f'a recording has at most {most}, and zeros for the rest where people are learnt together'
    return [f'channels: {n}, each person beside the others; {zeros}']
