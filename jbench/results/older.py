"""Results of schema 1, which stay readable: what later schemas added, and the key as it was made then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jbench.spec.identity import spec_hash

WORDS = ('category', 'paradigm', 'title', 'datasets', 'simulated')  # about a task, outside of its key


def raised(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result of schema 1 with the fields of schema 2; `schema` still says 1, and `config` holds task and dataset."""
    new = {k: v for k, v in result.items() if k != 'resumes'}
    return {
        **new,
        'kind': 'decoding',
        'weights': None,
        'pretraining': [],
        'resumed_at': [None] * result['resumes'],  # how often is known, when is not
        'attachments': {},
        **dict.fromkeys(('signal', 'n_out', 'scaling')),  # nobody knows
    }


def key(result: Mapping[str, Any]) -> str:
    """The key of a cell from a result of schema 1: the model is its name alone, the dataset too."""
    task, dataset = result['config']['task'], result['config']['dataset']['name']
    asked = {k: v for k, v in task.items() if k not in WORDS}
    asked['overrides'] = []
    asked['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset]
    debug = result['protocol']['debug']
    return spec_hash({'task': asked, 'dataset': dataset, 'model': result['model'], 'debug': debug})
