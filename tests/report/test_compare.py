"""Two models compared: by hand, from result files, on the command line, and what cannot be compared."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from jbench.report import compare_table
from jbench.report.aggregate import Score
from jbench.report.compare import Comparison, compare, plain
from jbench.report.statistics import datasets, paired
from jbench.spec.errors import RequestError

pytestmark = pytest.mark.filterwarnings('error')
NAMES = ('eegnet', 'other')


def score(task: str, model: str, values: Any, **changes: Any) -> Score:
    """A score with what a comparison reads; subjects are s00, s01, ... where values are a list."""
    subjects = values if isinstance(values, dict) else {f's{k:02d}': float(v) for k, v in enumerate(values)}
    given = dict.fromkeys(Score._fields) | {'task': task, 'version': 1, 'dataset': f'Of_{task}', 'model': model}
    given |= {'metric': 'acc', 'better': 'higher', 'origin': 'own', 'per_subject': subjects, 'paths': (), 'changes': ()}
    given |= {'mean': float(np.mean([*subjects.values()])) if subjects else 0.5, **changes}
    given['protocol'] = changes.get('protocol', f'{task}@1/{given["dataset"]}, {given["metric"]}')
    return Score(**given)


def sides(n: int = 12, shift: float = 0.1, **changes: Any) -> tuple[list[Score], list[Score]]:
    """One task, on which the first model is better."""
    random = np.random.default_rng(0)
    base = random.uniform(0.5, 0.8, n)
    return [score('p3', 'eegnet', base + shift, **changes)], [
        score('p3', 'other', base + random.normal(0, 0.02, n), **changes)
    ]


def shown(found: Comparison, width: int = 100) -> str:
    out = io.StringIO()
    compare_table.show(found, Console(file=out, width=width))
    return out.getvalue()


def test_a_task_by_the_functions_that_it_rests_on() -> None:
    a, b = sides()
    found = compare(a, b, NAMES)
    (pair,) = found.pairs
    d = np.array(list(a[0].per_subject.values())) - np.array(list(b[0].per_subject.values()))
    assert pair.difference == pytest.approx(d.mean()) == pytest.approx(pair.a - pair.b)
    assert pair.p == paired.permutation(d).p == pair.adjusted and pair.wilcoxon == paired.wilcoxon(d).p
    assert pair.interval == pytest.approx(paired.difference(d).interval, abs=1e-5)
    assert (pair.g, pair.rank_biserial) == pytest.approx(paired.effect(d))
    assert pair.detectable == pytest.approx(paired.detectable(d.std(ddof=1), 12))
    assert (pair.n, pair.only, found.over, found.left_out) == (12, (0, 0), None, ())
    assert found.verdict == 'eegnet and other: eegnet is better.'
    turned = compare(b, a, ('other', 'eegnet'))
    assert turned.pairs[0].p == pair.p and turned.pairs[0].difference == pytest.approx(-pair.difference)
    assert turned.verdict == 'other and eegnet: eegnet is better.'


def test_lower_errors_are_better() -> None:
    a, b = sides(metric='rmse', better='lower')
    found = compare(a, b, NAMES)
    assert found.pairs[0].difference < 0 and found.verdict == 'eegnet and other: other is better.'


def test_equal_models_are_equal() -> None:
    a, _ = sides()
    found = compare(a, a, ('eegnet', 'again'))
    assert found.pairs[0].p == found.pairs[0].wilcoxon == found.pairs[0].adjusted == 1.0
    assert found.pairs[0].g == 0 and found.pairs[0].detectable is None
    assert found.verdict == 'eegnet and again: equal on every subject.'


def test_holm_over_tasks() -> None:
    random = np.random.default_rng(0)
    a, b = [], []
    for k in range(4):
        base = random.uniform(0.5, 0.8, 8)
        a.append(score(f't{k}', 'eegnet', base))
        b.append(score(f't{k}', 'other', base - [0.1, 0.02, 0.03, 0.04, 0.05, 0.06, -0.01, 0.08]))
    found = compare(a, b, NAMES)
    assert {pair.p for pair in found.pairs} == {2 * 2 / 2**8}
    assert [pair.adjusted for pair in found.pairs] == [4 * 2 * 2 / 2**8] * 4, 'four times 0.0156 is above 0.05'
    wilcoxon = {pair.wilcoxon for pair in found.pairs}
    assert {pair.wilcoxon_adjusted for pair in found.pairs} == {4 * p for p in wilcoxon}
    assert {pair.verdict for pair in found.pairs} == {'cannot be told apart'}
    assert found.verdict.startswith('Of 4 tasks: 4 cannot be told apart. Over 4 datasets: eegnet is better')


def test_subjects_are_paired_by_name() -> None:
    a, b = sides()
    names = list(b[0].per_subject)
    turned = {name: b[0].per_subject[name] for name in reversed(names)} | {'alone': 0.9}
    found = compare(a, [b[0]._replace(per_subject=turned)], NAMES)
    assert found.pairs[0]._replace(only=(0, 0)) == compare(a, b, NAMES).pairs[0]
    assert found.pairs[0].only == (0, 1) and 'B 1' in shown(found)


def test_few_subjects_are_said_to_be_few() -> None:
    found = compare(*sides(5), NAMES)
    assert found.pairs[0].p == 0.0625
    assert found.verdict == 'eegnet and other: cannot be told apart: 5 subjects cannot show a difference.'
    one = compare(*sides(1), NAMES)
    assert one.pairs[0].p == 1.0 and one.pairs[0].interval is None and 'nan' not in shown(one).lower()


def test_over_datasets_tasks_of_one_make_one_entry() -> None:
    random = np.random.default_rng(1)
    a, b, differences = [], [], []
    for task, dataset, n in (('t1', 'X', 20), ('t2', 'X', 20), ('t3', 'Y', 9), ('t4', 'Z', 30)):
        d = random.normal(0.05, 0.05, n)
        base = random.uniform(0.5, 0.8, n)
        a.append(score(task, 'eegnet', base + d, dataset=dataset))
        b.append(score(task, 'other', base, dataset=dataset))
        differences.append(d)
    over = compare(a, b, NAMES).over
    assert over is not None and over.n == 3
    tasks = [*map(datasets.task, differences)]
    entries = [datasets.entry(tasks[:2]), datasets.entry(tasks[2:3]), datasets.entry(tasks[3:])]
    assert over.stouffer == pytest.approx(datasets.stouffer([e[0] for e in entries], [e[1] for e in entries]), rel=1e-3)
    expected = datasets.random_effects([e[2] for e in entries], [e[3] for e in entries])
    assert over.effects is not None and expected is not None
    assert over.effects.interval == pytest.approx(expected.interval)
    assert over.effects._replace(interval=None) == pytest.approx(expected._replace(interval=None))


def test_datasets_that_disagree_say_nothing_of_others() -> None:
    random = np.random.default_rng(0)
    a, b = [], []
    for k, shift in enumerate((0.2, 0.2, 0.2, 0.2, -0.12, -0.1)):
        base = random.uniform(0.5, 0.8, 20)
        a.append(score(f't{k}', 'eegnet', base + shift))
        b.append(score(f't{k}', 'other', base + random.normal(0, 0.1, 20)))
    found = compare(a, b, NAMES)
    assert found.over is not None and found.over.stouffer.p < 0.05 < (found.over.effects.p or 0)
    assert found.over.verdict == 'eegnet is better on these; they are too different to say so of others'
    few = compare(a[:2], b[:2], NAMES).over
    assert few is not None and few.verdict.endswith('too few to say so of others')


def test_what_only_one_has_and_other_protocols_are_told() -> None:
    a, b = sides()
    a += [score('sleep', 'eegnet', [0.5] * 6), score('n400', 'eegnet', [0.5] * 6)]
    b += [score('pain', 'other', [0.5] * 6), score('n400', 'other', [0.5] * 6, protocol='n400, custom: x')]
    found = compare(a, b, NAMES)
    assert [pair.task for pair in found.pairs] == ['p3']
    told = dict(found.left_out)
    assert told['sleep@1/Of_sleep'] == 'only eegnet has it' and told['pain@1/Of_pain'] == 'only other has it'
    assert told['n400@1/Of_n400'].startswith('protocols differ: ') and len(found.left_out) == 3
    assert 'left out: sleep@1/Of_sleep: only eegnet has it' in shown(found)


def test_a_task_counts_once_in_its_newest_version() -> None:
    a, b = sides()
    more = {'p3, custom: x': 1, 'p3 v2': 2, 'p3 v2, custom: x': 2}
    for side, model in ((a, 'eegnet'), (b, 'other')):
        side += [score('p3', model, np.linspace(0.4, 0.6, 8), protocol=p, version=v) for p, v in more.items()]
    found = compare(a, b, NAMES)
    assert [pair.protocol for pair in found.pairs] == ['p3 v2'] and found.over is None
    assert len(found.left_out) == 3 and all('another protocol than p3 v2' in why for _, why in found.left_out)
    found = compare([s for s in a if s.version == 1], b, NAMES)
    assert [pair.protocol for pair in found.pairs] == [a[0].protocol]


def test_nothing_in_common_is_an_error_with_what_there_is() -> None:
    a, b = sides()
    with pytest.raises(RequestError, match=r'no task in common\n  eegnet has p3@1/Of_p3\n  other has sleep'):
        compare(a, [score('sleep', 'other', [0.5] * 6)], NAMES)
    with pytest.raises(RequestError, match='protocols differ'):
        compare(a, [b[0]._replace(protocol='p3, custom: y')], NAMES)
    with pytest.raises(RequestError, match=r'no subject in common in any task\n  p3@1/Of_p3: no subject in common'):
        compare(a, [b[0]._replace(per_subject={'x': 0.5})], NAMES)
    with pytest.raises(RequestError, match=r'the scores of other name no subjects \(published\)'):
        compare(a, [b[0]._replace(per_subject={}, origin='published')], NAMES)


@pytest.mark.parametrize('width', [40, 80, 200])
def test_no_number_is_lost_at_any_width(width: int) -> None:
    a, b = sides()
    a.append(score('sleep', 'eegnet', np.linspace(0.5, 0.8, 9)))
    b.append(score('sleep', 'other', np.linspace(0.5, 0.8, 9)[::-1]))
    found = compare(a, b, NAMES)
    text = shown(found, width)
    for pair in found.pairs:
        for value in (
            f'{100 * pair.a:.1f}',
            f'{pair.g:+.2f}',
            f'{pair.rank_biserial:+.2f}',
            f'{100 * pair.sd:.1f}'[:0],
        ):
            assert value in text
    assert 'Stouffer' in text and ' '.join(found.verdict.split()) in ' '.join(text.split())
    assert max(map(len, text.splitlines())) <= width


@pytest.mark.parametrize('width', [60, 200])
def test_what_is_no_measurement_says_so(width: int) -> None:
    found = compare(*sides(changes=('simulated', 'partial: subjects')), NAMES)
    assert plain(found)['pairs'][0]['changes'] == ('simulated', 'partial: subjects')
    text = shown(found, width)
    assert 'p3@1 (simulated, partial)' in text and 'p3@1/Of_p3 (simulated, partial): eegnet is better' in text


def test_json_holds_everything_and_no_nan() -> None:
    a, b = sides()
    a.append(score('sleep', 'eegnet', [0.5] * 6))
    b.append(score('sleep', 'other', [0.6] * 6))
    text = json.dumps(plain(compare(a, b, NAMES)), allow_nan=False)
    found = json.loads(text)
    assert {'a', 'b', 'pairs', 'over', 'left_out', 'verdict', 'alpha'} == set(found)
    assert found['pairs'][1]['g'] is None, 'all differ by the same'
    assert found['over']['stouffer']['n'] == 2 and found['over']['effects']['interval'] is None


def test_scores_of_classes_need_predictions() -> None:
    """Of a subject with one class its own score is of that class alone."""
    for metric in ('bal_acc', 'f1_macro', 'auroc', 'auprc', 'instance_top5_acc', 'pearsonr', 'bmae'):
        found = compare(*sides(metric=metric), NAMES)
        (pair,) = found.pairs
        assert pair.verdict == 'no verdict: needs the predictions (.npz)'
        assert (pair.p, pair.adjusted, pair.interval, pair.wilcoxon, pair.g) == (None,) * 5 and pair.basis == ''
        text = shown(found)
        assert f'{100 * pair.a:.1f}' in text or f'{pair.a:.3f}' in text
        assert 'eegnet is better' not in text


def test_headlines_that_disagree_with_subjects_have_no_verdict() -> None:
    a, b = sides()
    found = compare([a[0]._replace(mean=0.6)], [b[0]._replace(mean=0.7)], NAMES)
    assert found.pairs[0].difference == pytest.approx(-0.1) and (found.pairs[0].each or 0) > 0.05
    assert found.verdict == (
        'eegnet and other: no verdict: needs the predictions (.npz): headlines and subjects do not agree.'
    )
    a.append(score('sleep', 'eegnet', np.linspace(0.5, 0.8, 9)))
    b.append(score('sleep', 'other', np.linspace(0.4, 0.7, 9)))
    a[0], b[0] = a[0]._replace(mean=0.6), b[0]._replace(mean=0.7)
    found = compare(a, b, NAMES)
    assert found.verdict == 'Of 2 tasks: eegnet is better on 1, 1 without a verdict.', 'and it is no test for Holm'
    assert found.pairs[1].adjusted == found.pairs[1].p and found.over is None


def test_wins_of_models_with_options_are_counted() -> None:
    names = ('eegnet:dropout=0.5', 'eegnet')
    pairs = [sides(), sides(), sides(5), sides(metric='bal_acc')]
    a, b = ([pair[k][0]._replace(task=f't{n}', protocol=f't{n}') for n, pair in enumerate(pairs)] for k in (0, 1))
    found = compare(a, b, names)
    assert [pair.verdict.partition(': ')[0] for pair in found.pairs] == [
        'eegnet:dropout=0.5 is better', 'eegnet:dropout=0.5 is better', 'cannot be told apart', 'no verdict'
    ]  # fmt: skip
    told = 'Of 4 tasks: eegnet:dropout=0.5 is better on 2, 1 cannot be told apart, 1 without a verdict.'
    assert found.verdict.startswith(told)
    turned = compare(b, a, (names[1], names[0])).verdict
    assert turned.startswith(told), 'of whichever side'


def test_equal_models_are_equal_in_the_summary() -> None:
    a = [score(f't{k}', 'eegnet', np.linspace(0.5, 0.8, 9)) for k in range(3)]
    found = compare(a, a, ('eegnet', 'again'))
    assert found.verdict == 'Of 3 tasks: 3 are equal on every subject. Over 3 datasets: equal on every subject.'
