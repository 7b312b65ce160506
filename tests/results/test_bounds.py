"""Numbers and names that no table can hold make a result damaged, and never end a report."""

from __future__ import annotations

import json

import pytest
from result_files import HISTORIC, make, store

from jbench import run
from jbench.results import checked, index
from jbench.results.schema import as_text

HUGE = 1.7e308
TOO_MUCH = [
    ({'timings': {'fit': HUGE}}, 'damaged: seconds: 1.7e+308 is beyond 1e+15'),
    ({'headline': {'value': HUGE}}, 'damaged: value: 1.7e+308'),
    ({'headline': {'value': -1e300}}, 'damaged: value: -1e+300'),
    ({'headline': {'interval': [0.1, HUGE]}}, 'damaged: interval: '),
    ({'dummy': -HUGE}, 'damaged: dummy: '),
    ({'per_subject': {'S01': HUGE}}, 'damaged: per_subject: '),
    ({'n_parameters': {'total': 10**400}}, 'damaged: n_parameters: 100000'),
    ({'model': 'a\ud800'}, "damaged: model: 'a\\ud800' holds half of a character"),
    ({'metrics': {'\udfff': 0.5}}, 'damaged: metrics: '),
    ({'config': {'task': {'category': '\udfff'}}}, 'damaged: category: '),
    ({'status': '\ud800'}, 'damaged: status: expected one of '),
]


@pytest.mark.parametrize(('changes', 'reason'), TOO_MUCH)
def test_a_report_of_a_result_that_no_table_holds_leaves_it_out(changes, reason, tmp_path, capsys):
    work, out = tmp_path / 'work', tmp_path / 'out'
    named = {'config': {'model': {'name': changes['model']}}} if 'model' in changes else {}
    for seed in (1, 2):  # two of them, which a mean adds
        folder = work / 'odd' / f'{seed}'
        folder.mkdir(parents=True)
        result = {**make(seed=seed, **changes, **named), 'model': changes.get('model', 'eegnet')}
        (folder / f'seed{seed}.json').write_bytes(as_text({**result, 'sha256': checked.digest(result)}))
        store(work, 'dummy', 0.5, seed=seed)
    assert run.main(['report', f'--results={work}', f'--out={out}', '--figures=no', '--site']) == 0
    assert 'damaged: 2' in capsys.readouterr().out
    rows, left_out = index.scan([work])
    assert {r.model for r in rows} == {'dummy'} and {x.reason[: len(reason)] for x in left_out} == {reason}
    assert json.loads((out / 'summary.json').read_text())['n_left_out'] == {'damaged': 2}


def test_a_model_beside_a_brain_is_held_to_the_same(tmp_path):
    store(tmp_path, kind='alignment', seed=1)
    bad = store(tmp_path, kind='alignment', seed=2, metrics={'raw': HUGE})
    told = {x.path: x.reason for x in index.scan([tmp_path]).left_out}
    assert told.pop(str(bad)).startswith('damaged: metrics: 1.7e+308') and [*told.values()] == [index.ALIGNMENT]


def test_results_of_every_age_and_large_ones_are_fine(tmp_path):
    assert not index.scan([HISTORIC], index.MARKS).left_out
    store(tmp_path, 'µ-网-𝔸', 1e15, n_parameters={'total': 10**15}, seed=2**32 - 1)
    assert len(index.scan([tmp_path]).rows) == 1
