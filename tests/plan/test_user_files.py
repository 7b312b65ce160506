"""Tasks of one's own: what becomes of them beyond what their file says."""

from __future__ import annotations

import json
from pathlib import Path

import edfio
import numpy as np
import pytest

from jbench import run
from jbench.plan import cells, select, user_files
from jbench.tasks import REVISION

EXAMPLE = Path(__file__).parents[2] / 'configs' / 'local_folder.py'
EPOCHS = ('max_epochs', 'patience')
STEPS = ('lr', 'least_steps', 'patience_steps')


def task_of(tmp_path: Path, old: str = '', new: str = ''):
    """The task of the example file, with some text replaced."""
    text = EXAMPLE.read_text().replace('Task, Window', 'Task, Value, Window')
    assert old in text
    (tmp_path / 'mine.py').write_text(text.replace(old, new, 1) if old else text)
    (task,), _ = user_files.user_tasks(str(tmp_path / 'mine.py'))
    return task


@pytest.mark.parametrize(
    ('recipe', 'steps'),
    [
        ('Recipe(class_weights=True)', (3e-3, 1000, 300)),
        ('Recipe(batch_size=16)', (3e-3, 1000, 300)),
        ('Recipe(lr=1e-2)', (1e-2, 0, 0)),
        ('Recipe(max_epochs=100)', (1e-4, 0, 0)),
        ('Recipe(patience=30)', (1e-4, 0, 0)),
        ('Recipe(least_steps=50)', (1e-4, 50, 0)),
        ('Recipe(published=True)', (1e-4, 0, 0)),
    ],
)
def test_a_recipe_that_says_nothing_of_length_and_rate_is_in_steps(tmp_path, recipe, steps):
    made = task_of(tmp_path, 'Recipe(class_weights=True)', recipe).recipe
    assert tuple(getattr(made, name) for name in STEPS) == steps


@pytest.mark.parametrize(
    ('target', 'recipe', 'scaled'),
    [
        ("Value(field='age')", "Recipe(loss='squared_error')", True),
        ("Value(field='age')", "Recipe(loss='squared_error', lr=1e-4, max_epochs=9)", True),
        ("Value(field='age')", "Recipe(loss='squared_error', published=True)", False),
    ],
)
def test_values_of_ones_own_are_learnt_scaled(tmp_path, target, recipe, scaled):
    change = f"target={target},\n        metric='mae',\n        recipe={recipe}"
    old = "target=Classes(field='trial_type'),\n        recipe=Recipe(class_weights=True)"
    task = task_of(tmp_path, old, change)
    assert task.target.scaled == scaled
    as_it_is = cells.apply(task, next(iter(select.datasets().values())), (('target.scaled', 'false'),))
    assert not as_it_is.target.scaled, 'who asks for it has it'


def test_tasks_of_jbench_keep_theirs():
    assert not select.tasks()['age'][0].target.scaled
    default = [t for v in select.tasks().values() for t in v if t.revision == REVISION]
    assert {(t.recipe.least_steps, t.recipe.patience_steps) for t in default} == {(0, 0)}


NAMES, SFREQ = ('Fp1', 'Fp2', 'C3', 'C4', 'P3', 'P4', 'O1', 'O2'), 200


def alpha(home: Path) -> Path:
    """Six people whose alpha is strong where the eyes are closed: 40 windows of two seconds each."""
    root, n = home / 'MyRest2026', SFREQ * 84
    root.mkdir(parents=True)
    t, f = np.arange(n) / SFREQ, np.maximum(np.fft.rfftfreq(n, 1 / SFREQ), 1 / 84)
    for k in range(1, 7):
        rng = np.random.default_rng(k)
        x = np.fft.irfft(np.fft.rfft(rng.normal(size=(len(NAMES), n))) / np.sqrt(f), n)
        gain = np.array([0.2, 0.2, 0.4, 0.4, 0.9, 0.9, 1.2, 1.2]) * rng.uniform(0.8, 1.2)
        wave = np.sin(2 * np.pi * rng.uniform(9, 11.5) * t + 0.02 * rng.normal(size=n).cumsum())
        rows = [(2 + 20 * b, 'closed' if b % 2 else 'open') for b in range(4)]
        of = np.zeros(n)
        for onset, state in rows:
            of[onset * SFREQ : (onset + 20) * SFREQ] = 20 if state == 'closed' else 4
        x = 12 * x / x.std() + np.outer(gain, wave * of)
        signals = [
            edfio.EdfSignal(v, SFREQ, label=name, physical_dimension='uV', physical_range=(-500, 500))
            for name, v in zip(NAMES, x.clip(-499, 499), strict=True)
        ]
        edfio.Edf(signals).write(root / f'S{k:02d}_rest.edf')
        lines = [f'{onset}\t20\t{state}' for onset, state in rows]
        (root / f'S{k:02d}_rest_events.tsv').write_text('\n'.join(['onset\tduration\ttrial_type', *lines]))
    return home


@pytest.mark.slow
def test_a_network_learns_a_small_set_of_ones_own(tmp_path, capsys):
    """What a baseline tells apart; in epochs it stopped after a handful of steps, at chance, and that is told."""
    path, home = tmp_path / 'mine.py', alpha(tmp_path / 'data')
    path.write_text(EXAMPLE.read_text().replace('n_chans=4', 'n_chans=8').replace('(100.0,)', '(200.0,)'))
    common = [f'--task={path}', f'--data_dir={home}', f'--workdir={tmp_path}/work', '--format=json', '--seeds=33']
    assert run.main([*common, '--model=cov_ts_lr,eegnet']) == 0
    rows = {r['model']: r for r in json.loads(capsys.readouterr().out)}
    assert rows['cov_ts_lr']['mean'] > 0.95 and rows['eegnet']['mean'] >= 0.9
    assert rows['eegnet']['notes'] == ['no interval: 2 test subjects']
    short = ['--set=recipe.lr=1e-4', '--set=recipe.max_epochs=40', '--set=recipe.patience=5']
    assert run.main([*common, '--model=cov_ts_lr,eegnet', *short]) == 0
    rows = {r['model']: r for r in json.loads(capsys.readouterr().out)}
    assert rows['eegnet']['mean'] < 0.7
    notes = ' '.join(rows['eegnet']['notes'])
    assert 'training ended before it learnt' in notes and 'far behind a fitted baseline, cov_ts_lr' in notes
    assert 'learnt' not in ' '.join(rows['cov_ts_lr']['notes'])


def test_info_shows_a_task_of_ones_own_as_it_runs(capsys):
    for name in (EXAMPLE, f'{EXAMPLE}:my_eyes'):
        assert run.main([f'--info={name}', '--format=json']) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found['is'], found['recipe.lr'], found['recipe.least_steps']) == ('task', 3e-3, 1000)
        assert list(found['datasets']) == ['MyRest2026']
    assert run.main([f'--info={EXAMPLE}:my_eye']) == 2
    assert "did you mean 'my_eyes'" in capsys.readouterr().err
