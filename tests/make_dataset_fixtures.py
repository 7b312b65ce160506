"""Write the published facts of the datasets, as the tests compare them.

Command: python tests/make_dataset_fixtures.py datasets.yaml > tests/fixtures/datasets.json

`datasets.yaml` is a transcript of what the dataset classes of NeuralBench (commit af8ce00) declare.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

DEVICES = {'Eeg': 'eeg', 'Meg': 'meg', 'Fmri': 'fmri'}  # the event that covers a recording tells its device
KEPT = ('n_subjects', 'licence')


def facts(entry: dict[str, Any]) -> dict[str, Any]:
    """The facts of one dataset, under the names of `jbench.spec.Dataset`; None where none is stated."""
    kinds = entry['event_types']
    device = next((DEVICES[k] for k in kinds or () if k in DEVICES), None)
    uses = [u['cli_name'] for u in entry['used_by'] if 'cli_name' in u]
    return {
        **{k: entry[k] for k in KEPT},
        'n_recordings': entry['n_timelines'],
        'n_chans': entry['n_channels_first_recording'],
        'sfreq': entry['sampling_rate_hz'],
        'seconds': entry['first_recording_seconds'],
        'device': device,
        'event_types': kinds and sorted(set(kinds) - set(DEVICES)),
        'event_id': entry['event_id'],
        'by_hand': bool(entry['access_manual_step']),
        'moabb_class': entry['moabb_class'],
        'aliases': sorted({a for a in entry['aliases'] if ' ' not in a} | set(uses)),
    }


def main(path: str) -> None:
    """Print the fixture as JSON, one line a dataset."""
    import yaml

    entries = yaml.safe_load(Path(path).read_text())['datasets']
    lines = (f'{json.dumps(e["study"])}: {json.dumps(facts(e), sort_keys=True)}' for e in entries)
    print('{', ',\n'.join(lines), '}', sep='\n')


if __name__ == '__main__':
    main(sys.argv[1])
