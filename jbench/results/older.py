"""Results of schemas 1 and 2, which stay readable: what later schemas added, and the key as schema 1 made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jbench.spec.identity import spec_hash

WORDS = ('category', 'paradigm', 'title', 'datasets', 'simulated')  # about a task, outside of its key


def raised(result: Mapping[str, Any]) -> dict[str, Any]:
    """A result with the fields of schema 3; `schema` still says what it is of, and `config` of 1 holds task and
    dataset. Intervals were of the mean over subjects, not of the headline: there is none."""
    new = {k: v for k, v in result.items() if k != 'resumes'} | dict.fromkeys(('date', 'commit', 'machine'))
    if result.get('kind', 'decoding') == 'decoding':
        head = {k: v for k, v in result['headline'].items() if k != 'chance_over_subjects'}
        level = head.get('level', 'window')
        new['headline'] = without_interval(head | {'level': level, 'n_subjects': len(result['subjects']['test'])})
    if result['schema'] > 1:
        return new
    return {
        **new,
        'kind': 'decoding',
        'weights': None,
        'pretraining': [],
        'resumed_at': [None] * result['resumes'],  # how often is known, when is not
        'attachments': {},
        **dict.fromkeys(('signal', 'n_out', 'scaling')),  # nobody knows
    }


def without_interval(headline: Mapping[str, Any]) -> dict[str, Any]:
    """A headline as one of schema 1 or 2 is read."""
    return {**headline, 'interval': None, 'differs_from_chance': None}


def key(result: Mapping[str, Any]) -> str:
    """The key of a cell from a result of schema 1: the model is its name alone, the dataset too."""
    task, dataset = result['config']['task'], result['config']['dataset']['name']
    asked = {k: v for k, v in task.items() if k not in WORDS}
    asked['overrides'] = []
    asked['exclude'] = [[e['subject'], e['after_split']] for e in task['exclude'] if e['dataset'] == dataset]
    debug = result['protocol']['debug']
    return spec_hash({'task': asked, 'dataset': dataset, 'model': result['model'], 'debug': debug})
