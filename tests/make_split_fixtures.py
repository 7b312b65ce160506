"""Write tests/fixtures/splits.json: subject splits as scikit-learn makes them.

    python tests/make_split_fixtures.py <tasks.yaml> <datasets.yaml>

The two files list NeuralBench's tasks and the facts that its studies declare. Every task that splits by subject is
listed with every data set that it uses; the split itself depends on the number of subjects and, where it is
stratified, on their labels. Labels are made up (subject i has label i mod K, K as the task has classes; seizure is
stratified over the recordings with a seizure, K = 1), for the test compares algorithms, not data. A study that declares
no number of subjects (emg/typing) is left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from sklearn.model_selection import train_test_split

OUT = Path(__file__).parent / 'fixtures' / 'splits.json'
BY_SUBJECT = {'name': 'SklearnSplit', 'split_by': 'subject'}


def cases(tasks: dict[str, Any], datasets: dict[str, Any]) -> list[tuple[str, str, int, int]]:
    """(task, dataset, number of subjects, number of strata or 0) of every subject split, sorted."""
    declared = {d['study']: d['n_subjects'] for d in datasets['datasets']}
    found = set()
    for task in tasks['tasks']:
        variants = [(task['study'], task['split'])]
        variants += [(o['study'], o.get('split', task['split'])) for o in task['dataset_overrides']]
        for study, split in variants:
            if not BY_SUBJECT.items() <= split.items():
                continue
            strata = 0 if 'stratify_by' not in split else 1 if split['stratify_by'] == 'state' else task['n_outputs']
            counts = {declared[study]}
            table = task.get('docs_table') or {}
            if table.get('study') == study:
                counts.add(table.get('n_subjects'))  # the data that is left after the task's filters
            found |= {(task['id'], study, n, strata) for n in counts if n}
    return sorted(found)


def reference(n: int, strata: int) -> dict[str, list[int]]:
    """Sorted positions of the test and validation subjects of 1..n, 20 % each, seed 33."""
    names = list(range(n))
    labels = [i % strata for i in names] if strata else None
    rest, test = train_test_split(names, test_size=0.2, random_state=33, shuffle=True, stratify=labels)
    own = [labels[i] for i in rest] if labels else None
    _, valid = train_test_split(rest, test_size=0.2 / (1.0 - 0.2), random_state=33, shuffle=True, stratify=own)
    return {'test': sorted(test), 'valid': sorted(valid)}


def main(tasks_file: str, datasets_file: str) -> None:
    """Read the two files, write the fixture."""
    found = cases(yaml.safe_load(Path(tasks_file).read_text()), yaml.safe_load(Path(datasets_file).read_text()))
    sizes = sorted({(n, strata) for _, _, n, strata in found})
    lines = [f'  {json.dumps(case)}' for case in found]
    golden = [f'  {json.dumps(f"{n}/{k}")}: {json.dumps(reference(n, k), separators=(",", ":"))}' for n, k in sizes]
    OUT.parent.mkdir(exist_ok=True)
    text = '{"cases": [\n' + ',\n'.join(lines) + '\n],\n"splits": {\n' + ',\n'.join(golden) + '\n}}\n'
    json.loads(text)
    OUT.write_text(text)
    print(f'{OUT}: {len(found)} splits, {len(sizes)} sizes')


if __name__ == '__main__':
    main(*sys.argv[1:])
