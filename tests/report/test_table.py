"""The table of results: numbers computed by hand, and no digit lost at any width."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from jbench.report import overall, table
from jbench.report.scores import format_score
from jbench.results.learnt import ENDED_EARLY
from jbench.results.schema import SCHEMA


def make(seed: int, value: float | None, **changes: Any) -> dict[str, Any]:
    """The fields of a result that the table reads."""
    result = {
        'task': 'motor_imagery',
        'task_version': 1,
        'dataset': 'Schirrmeister2017Deep',
        'model': 'eegnet',
        'key': 'k' * 16,
        'seed': seed,
        'status': 'failed' if value is None else 'done',
        'simulated': False,
        'protocol': {'suite': None, 'custom': [], 'partial': [], 'debug': False},
        'schema': SCHEMA,
        'headline': {'name': 'bal_acc', 'value': value, 'better': 'higher', 'level': 'window', 'n_subjects': 12},
        'chance': 0.25,
        'normalised': None if value is None else (value - 0.25) / 0.75,
        'per_subject': {'a': 0.5, 'b': 0.6},
        'n_records': {'declared': None, 'prepared': 12345, 'train': 1, 'valid': 1, 'test': 1, 'evaluated': 2469},
        'prepared_hash': 'p' * 16,
        'config': {'task': {'recipe': {'published': False}}},
        'warnings': [],
        'timings': {'prepare': 1.0, 'compile': 2.0, 'fit': 30.25, 'test': 1.5, 'total': 40.0},
    }
    interval = None if value is None else [value - 0.25, value + 0.125]
    result['headline'] |= {'interval': interval, 'differs_from_chance': None if value is None else True}
    result['headline'] |= {k: changes.pop(k) for k in ('n_subjects', 'interval', 'differs_from_chance') if k in changes}
    return {**result, **changes}


def test_numbers_by_hand() -> None:
    (row,) = table.rows([make(35, 0.8), make(33, 0.6), make(34, 0.7)])
    assert row['scores'] == {'33': 0.6, '34': 0.7, '35': 0.8}
    assert row['mean'] == pytest.approx(0.7)
    assert row['sd'] == pytest.approx(0.1)
    assert row['interval'] == pytest.approx([0.45, 0.825])  # the ends of the seeds, averaged
    assert row['normalised'] == pytest.approx(0.6)
    assert row['chance'] == 0.25
    assert row['n_subjects'] == 12
    assert row['windows'] == {'evaluated': 2469, 'prepared': 12345}
    assert row['seconds'] == pytest.approx(3 * 31.75)
    assert row['notes'] == []


def test_the_score_that_ranked_in_2025_stands_below() -> None:
    """Of a model that has both headlines on one dataset: the board's row of 0.94021 and 0.99717."""
    tasks = ('challenge2025/response_time', 'challenge2025/externalizing')

    def both(model: str, *values: float | None, **more: Any) -> list[dict[str, Any]]:
        head = {
            'metric': 'normalized_rmse',
            'model': model,
            'dataset': 'Shirazi2024HbnL100',
            'simulated': False,
            'changes': (),
            **more,
        }
        return [{**head, 'task': task, 'mean': value} for task, value in zip(tasks, values, strict=True)]

    def made(model: str, *values: float) -> list[dict[str, Any]]:
        rows = both(model, *values, simulated=True)
        return [{**row, 'dataset': name} for row, name in zip(rows, ('SimulatedA', 'SimulatedB'), strict=True)]

    rows = [*both('eegnet', 0.94021, 0.99717), *made('eegnet', 1.0, 0.9)]
    said = f'overall score of 2025 (0.3 of {tasks[0]}, 0.7 of {tasks[1]}; lower is better)'
    assert overall.line(rows) == f'{said}: eegnet 0.98008 (Shirazi2024HbnL100), eegnet 0.93 (simulated)'
    partial = both('eegnet', 0.9, 0.9, changes=('partial: 2 of 9 subjects',))
    assert overall.line(partial) == f'{said}: eegnet 0.9 (Shirazi2024HbnL100, partial)'
    apart = [
        both('a', 1.0, 1.0)[0],
        both('e', 1.0, 1.0)[0],
        both('e', 1.0, 1.0, changes=('custom: recipe.lr',))[1],
        *both('b', 1.0, None),
        *both('c', 1.0, 1.0, metric='rmse'),
        *both('d', 1.0, 1.0) * 2,
    ]
    assert overall.line([*apart, both('a', 1.0, 1.0, dataset='Shirazi2024HbnL100Mini')[1]]) == ''
    error = {'name': 'normalized_rmse', 'better': 'lower', 'level': 'window', 'n_subjects': 12}
    results = [make(33, 0.9, task=task) for task in tasks]
    shown = [{**r, 'headline': {**r['headline'], **error}} for r in results]
    console = Console(width=200, file=io.StringIO())
    table.show(table.rows(shown), console)
    assert f'{said}: eegnet 0.9 (Schirrmeister2017Deep)' in console.file.getvalue()  # type: ignore[attr-defined]
    shown[0] = {**shown[0], 'warnings': [f'{ENDED_EARLY}: the tested epoch came after 6 steps']}
    console = Console(width=200, file=io.StringIO())
    table.show(table.rows(shown), console)
    assert f'{said}: eegnet 0.9 (Schirrmeister2017Deep)' in console.file.getvalue()  # type: ignore[attr-defined]


def test_one_row_a_cell() -> None:
    other = [make(33, 0.5, model='dummy'), make(33, 0.5, key='z' * 16), make(33, 0.5, task_version=2)]
    rows = table.rows([make(33, 0.6), *other, make(34, 0.6)])
    assert [(r['model'], r['task_version'], r['key'][0], len(r['scores'])) for r in rows] == [
        ('dummy', 1, 'k', 1),
        ('eegnet', 1, 'k', 2),
        ('eegnet', 1, 'z', 1),
        ('eegnet', 2, 'k', 1),
    ]
    assert rows[0]['sd'] is None


def _protocol(**changes: Any) -> dict[str, Any]:
    return {'suite': None, 'custom': [], 'partial': [], 'debug': False, **changes}


@pytest.mark.parametrize(
    ('results', 'notes'),
    [
        ([make(33, 0.3, differs_from_chance=False), make(34, 0.28)], ['not different from chance']),
        ([make(33, 0.3, differs_from_chance=False), make(34, 0.28), make(35, 0.28)], []),
        ([make(33, 0.1)], ['worse than chance']),
        ([make(33, 0.9, n_subjects=1, interval=None, differs_from_chance=None)], ['no interval: 1 test subject']),
        ([make(33, 0.9, n_subjects=3, interval=None, differs_from_chance=None)], ['no interval: 3 test subjects']),
        ([make(33, 0.9, n_subjects=30, interval=None, differs_from_chance=None)], ['no interval: none of this score']),
        (
            [make(33, 0.5, n_subjects=9, interval=None, differs_from_chance=None, per_subject={'a': 0.5, 'b': 0.5})],
            ['no interval: all subjects are alike'],
        ),
        ([make(33, 0.9, schema=2, interval=None, differs_from_chance=None)], ['no interval: an older result']),
        ([make(33, 0.9, n_subjects=9)], ['rough interval: fewer than ten test subjects']),
        ([make(33, 0.9, differs_from_chance=None)], []),
        ([make(33, 0.9, simulated=True)], ['simulated']),
        ([make(33, 0.9, protocol=_protocol(partial=['13 of 30 recordings']))], ['partial: 13 of 30 recordings']),
        ([make(33, 0.9, protocol=_protocol(custom=['split.by=run', 'x=1']))], ['custom: split.by=run, x=1']),
        (
            [make(33, 0.9, config={'task': {'recipe': {'published': True}}})],
            ['as published (recipe.published)'],
        ),
        ([make(33, 0.9, protocol=_protocol(debug=True))], ['debug: a try, not a score']),
        ([make(33, 0.9), make(34, None)], ['failed: seed 34 of 2']),
        ([make(33, None), make(34, None)], ['failed: seeds 33, 34 of 2']),
        (
            [make(33, 0.9), make(34, 0.9, prepared_hash='q')],
            ['seeds come from different prepared data: run again'],
        ),
    ],
)
def test_notes(results: list[dict[str, Any]], notes: list[str]) -> None:
    (row,) = table.rows(results)
    assert row['notes'] == notes
    assert render([row], 100)


def test_lower_is_better() -> None:
    head = {**make(33, 50.0)['headline'], 'name': 'bmae', 'better': 'lower'}
    (row,) = table.rows([make(33, 0.0, headline=head, chance=120.0)])
    assert row['notes'] == []
    (row,) = table.rows([make(33, 0.0, headline=head, chance=20.0)])
    assert row['notes'] == ['worse than chance']


def test_format_score() -> None:
    assert format_score(0.12345, 'bal_acc') == '12.3'
    assert format_score(0.12345, 'pearsonr') == '0.123'
    assert format_score(-0.5, 'pearsonr') == '-0.500'
    assert format_score(123.456, 'bmae') == '123.5'
    assert format_score(None, 'bal_acc') == '-'


def render(rows: list[dict[str, Any]], width: int, *, terminal: bool = False, encoding: str = 'utf-8') -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, newline='')
    console = Console(file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    table.show(rows, console)
    file.flush()
    return raw.getvalue().decode(encoding)


def _many() -> list[dict[str, Any]]:
    shorter = make(33, 0.123, task='reaction_time', dataset='Simulated', model='cov_ts_lr', simulated=True)
    shorter['headline'] |= {'name': 'pearsonr'}
    partial = _protocol(partial=['14 of 30 recordings of this dataset are on disk, from 5 of its 12 subjects'])
    return table.rows([make(33, 0.6123), make(34, 0.7234), make(35, 0.8345, protocol=partial), shorter])


@pytest.mark.parametrize('width', [40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize('terminal', [True, False])
def test_no_digit_is_lost(width: int, terminal: bool) -> None:
    text = render(_many(), width, terminal=terminal)
    whole = ['61.2', '72.3', '83.5', '72.3 ± 11.1', '2469', '12345', '25.0', '0.631', '95.2', '31.8', '0.123', '0.250']
    assert [number for number in whole if number not in text] == []
    assert '[47.3, 84.8]' in text
    assert '…' not in text
    flat = ' '.join(text.split())
    assert 'recordings of this dataset are on disk, from 5 of its 12 subjects' in flat
    assert '[1] ' in text
    assert '[2] simulated' in text
    if width >= 80:
        assert max(map(len, text.splitlines())) <= width
        assert all(word in text for word in ('motor_imagery@1', 'cov_ts_lr', 'bal_acc (%)', 'pearsonr'))


def test_plain_log_has_no_escapes_and_ascii_is_enough() -> None:
    text = render(_many(), 100, encoding='ascii')
    assert '\x1b' not in text
    assert '72.3 +- 11.1' in text


def test_text_from_files_cannot_steer_the_terminal() -> None:
    rows = table.rows([make(33, 0.9, model='x\x1b[2J', protocol=_protocol(custom=['[red]a\x07=1']))])
    text = render(rows, 120)
    assert '\x1b' not in text
    assert '\x07' not in text
    assert '[red]a' in text


def test_long_names_stay_whole() -> None:
    name = 'abcdefghijklmnopqrstuvwxyz' * 4
    text = render(table.rows([make(33, 0.6123, dataset=name), make(34, 0.7, dataset=name)]), 80)
    assert [line.strip() for line in text.splitlines() if len(line) > 80] == [name]
    assert '61.2' in text
    assert '2469/12345' in text
    assert '[-' not in text


@pytest.mark.parametrize('width', [40, 60, 72, 80, 100, 160])
def test_nothing_breaks_inside_a_word(width: int) -> None:
    rows = _many()
    lines = render(rows, width).splitlines()
    assert max(map(len, lines)) <= width
    words = {word for line in lines for word in line.replace(',', ' ').split()}
    assert words >= {'motor_imagery@1', 'Schirrmeister2017Deep', 'eegnet', 'cov_ts_lr', 'bal_acc', '2469/12345'}


def test_what_takes_no_seed_has_no_sd() -> None:
    rows = table.rows([make(seed, 0.5, model='cov_ts_lr') for seed in (33, 34)])
    assert rows[0]['sd'] is None and rows[0]['mean'] == 0.5
    for width in (60, 160):
        assert '50.0 ±' not in render(rows, width)


def _grid(n_tasks: int) -> list[dict[str, Any]]:
    models = [f'model_{k:02}' for k in range(5)]
    return [make(33, 0.01 * k, model=m, task=f'task_{t}') for t in range(n_tasks) for k, m in enumerate(models, 10)]


def test_twenty_rows_are_a_matrix_of_tasks_by_models_too() -> None:
    assert 'means' not in render(table.rows(_grid(3)), 100)
    rows = table.rows([*_grid(4), make(33, 0.5, model='model_00', task='task_1', key='z' * 16)])
    lines = [line.split('  ') for line in render(rows, 100).splitlines()]
    start = next(k for k, line in enumerate(lines) if line[0].startswith('means'))
    body = [[w.strip() for w in line if w.strip()] for line in lines[start:]]
    assert body[0] == ['means', *(f'model_{k:02}' for k in reversed(range(5)))], 'the best first'
    assert body[1] == ['task_0@1, bal_acc (%)', '14.0', '13.0', '12.0', '11.0', '10.0']
    assert body[2][-1] == '10.0/50.0', 'two settings side by side'
    narrow = render(rows, 60).splitlines()
    start = next(k for k, line in enumerate(narrow) if line.startswith('means'))
    assert max(map(len, narrow[start:])) <= 60 and sum(line.startswith('task_3@1, ') for line in narrow[start:]) == 2


def test_many_seeds_stand_under_each_other() -> None:
    text = render(table.rows([make(seed, 0.5 + seed / 1000) for seed in range(33, 43)]), 120)
    assert all(f'{seed}: {100 * (0.5 + seed / 1000):.1f}' in text for seed in range(33, 43))


def test_nothing_to_show() -> None:
    assert render([], 80) == 'no results\n'


def test_json_holds_fractions() -> None:
    rows = json.loads(table.as_json(_many()))
    assert rows[0]['mean'] == pytest.approx(0.7234)
    assert rows[0]['scores']['33'] == 0.6123
    assert rows == json.loads(json.dumps(_many()))


def test_a_matrix_of_many_models_on_one_task_has_a_line_a_model() -> None:
    from jbench.report import matrix

    rows = [
        {'task': 'p3', 'task_version': 2, 'dataset': 'A', 'model': f'a_long_name_{k}', 'metric': 'acc', 'mean': k / 20}
        for k in range(20)
    ]
    lines = matrix.text(rows, 60, [row['model'] for row in rows]).split('\n')
    assert lines[0].split() == ['means', 'p3@2,', 'acc', '(%)']
    assert [line.split() for line in lines[1:]] == [[f'a_long_name_{k}', f'{5 * k:.1f}'] for k in range(20)]
