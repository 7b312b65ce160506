"""Write the published facts of NeuralBench's tasks, as the tests compare them.

Command: python tests/make_task_fixtures.py tasks.yaml > tests/fixtures/tasks_v1.json

`tasks.yaml` is a transcript of the task files of NeuralBench (commit af8ce00), one entry a task with defaults merged.
Window starts are those from the true onset of an event (`effective_window_from_true_onset_s`) where they are known.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT = ('target', 'class_weights', 'sampler', 'target_scaler', 'patience', 'max_epochs', 'grad_clip_norm', 'batch_size')
KEPT += ('monitor', 'mode', 'headline_metric', 'n_outputs')


def facts(entry: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """What of an entry decides a score; of a dataset's entry (with `base`), what differs from the task's."""
    merged = {**(base or {}), **entry}
    window, span = dict(merged['window']), entry.get('effective_window_from_true_onset_s')
    if span:
        window |= {'start': span[0], 'duration': round(span[1] - span[0], 6)}
    steps = merged['pipeline_steps']
    split = [s['step'] for s in steps].index('split')
    out = {
        'query': merged['source_query'],
        'steps': steps[:split],
        'split': merged['split'],
        'later_steps': steps[split + 1 :],
        'window': window,
        'signal': {k: v for k, v in merged['neuro'].items() if k != 'mne_cpus'},
        'loss': {k: v for k, v in merged['loss'].items() if k != 'kwargs'} | merged['loss'].get('kwargs', {}),
        'optimizer': {k: merged['optimizer'][k] for k in ('name', 'lr')} | merged['optimizer']['kwargs'],
        'scheduler': {'name': merged['scheduler']['name'], **merged['scheduler']['kwargs']},
        **{k: merged[k] for k in KEPT},
    }
    if base is None:
        return out
    whole = facts(base)
    return {k: v for k, v in out.items() if v != whole[k]}


def main(path: str) -> None:
    """Print the fixture as JSON, one fact a line."""
    import yaml

    tasks = []
    for entry in sorted(yaml.safe_load(Path(path).read_text())['tasks'], key=lambda e: e['id']):
        own = {o['study']: facts(o, entry) for o in entry['dataset_overrides']}
        found = {
            'category': entry['category'],
            'core': entry['core_eeg36'],
            'datasets': list(dict.fromkeys([entry['default_dataset'], *entry['other_datasets']])),
            **facts(entry),
            'dataset_overrides': {study: changed for study, changed in own.items() if changed},
        }
        lines = [f'  {json.dumps(k)}: {json.dumps(v, sort_keys=True)}' for k, v in sorted(found.items())]
        tasks.append(f' {json.dumps(entry["id"].removeprefix("eeg/"))}: {{\n' + ',\n'.join(lines) + '\n }')
    print('{\n' + ',\n'.join(tasks) + '\n}')


if __name__ == '__main__':
    main(sys.argv[1])
