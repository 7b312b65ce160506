"""`jbench.evaluate`: a function gets the score that the command gives the same answers, and faults are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from extras import needs_torch
from small import N_SUBJECTS

import jbench
from jbench.plan import select
from jbench.results import result_file
from jbench.results.schema import mismatches, schema
from jbench.spec.errors import RequestError

POWER = '''\
import numpy as np


def power(data):
    """Mean of the first two channels."""
    return lambda test: np.clip(test[:], -data_clamp(data), data_clamp(data))[:, :2, 60:].mean(-1)


def data_clamp(data):
    return CLAMP
'''


@pytest.fixture(scope='module')
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Five simulated subjects of p3."""
    known = select.datasets()
    few = dataclasses.replace(known['SimulatedP3'], n_subjects=N_SUBJECTS, n_recordings=N_SUBJECTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv('JBENCH_DATA', raising=False)
        patch.setattr(select, 'datasets', lambda: {**known, 'SimulatedP3': few})
        yield tmp_path_factory.mktemp('work')


def late(x: np.ndarray) -> np.ndarray:
    """Means of two channels, late in the window."""
    return x[:, :2, 60:].mean(-1)


def ask(work: Path, function: Any = late, **more: Any) -> Any:
    return jbench.evaluate(function, 'p3', **{'workdir': work, 'simulated': True, **more})


@pytest.fixture(scope='module')
def plain(work: Path) -> Any:
    return ask(work)


@pytest.mark.slow
def test_a_result_is_like_one_of_the_command(plain: Any) -> None:
    result = plain.result
    assert list(mismatches(result, schema())) == []
    assert (result['task'], result['dataset'], result['model'], result['status']) == (
        'p3',
        'SimulatedP3',
        'late',
        'done',
    )
    assert result['protocol']['suite'] is None and result['protocol']['custom'] == ['model=a function, late']
    assert result['warnings'][0] == 'custom: model=a function, late' and result['simulated']
    assert result['n_records']['evaluated'] == len(plain.predictions['id'])


def test_its_scores_are_those_of_a_result_file(plain: Any, tmp_path: Path) -> None:
    """Written by the writer of the command, and computed again from the file."""
    written = result_file.write(tmp_path, plain.result, plain.predictions)
    again = result_file.rescore(tmp_path / 'seed0.json')
    for name, value in again.items():
        assert plain.result[name] == written[name] == value


@pytest.mark.slow
def test_the_command_gives_the_same_answers_the_same_score(plain: Any, work: Path, tmp_path: Path) -> None:
    """The same rule as an estimator in a file of one's own."""
    clamp = jbench.load(jbench.task('p3'), workdir=work, simulated=True).data.clamp
    file = tmp_path / 'power.py'
    file.write_text(POWER.replace('CLAMP', repr(clamp or 1e9)))
    (result,) = jbench.run('p3', f'{file}:power', workdir=work, simulated=True, seeds=[33])
    for name in ('headline', 'normalised', 'chance', 'metrics', 'per_subject', 'dummy', 'split_hash', 'prepared_hash'):
        assert result[name] == plain.result[name], name


def test_its_row_is_that_of_the_table(plain: Any) -> None:
    text = str(plain)
    assert 'p3@2' in text and 'SimulatedP3 (simulated)' in text and 'late' in text
    assert 'custom: model=a function, late' in text and repr(plain) == text


def test_windows_are_those_that_networks_get(work: Path) -> None:
    """In order, each once, in batches of the size asked for."""
    seen: list[np.ndarray] = []

    def keep(x: np.ndarray) -> np.ndarray:
        seen.append(x.copy())
        return late(x)

    ask(work, keep, batch_size=50)
    x = jbench.load(jbench.task('p3'), workdir=work, simulated=True).test.arrays().x
    np.testing.assert_array_equal(np.concatenate(seen), x)
    assert {len(part) for part in seen[:-1]} == {50} and seen[0].dtype == np.float32


def test_a_jax_function_gets_the_same_scores(plain: Any, work: Path) -> None:
    @jax.jit
    def function(x: jax.Array) -> jax.Array:
        return jnp.mean(x[:, :2, 60:], -1)

    for takes in (None, 'jax'):
        found = ask(work, function, takes=takes)
        assert found.result['model'] == 'function'
        np.testing.assert_allclose(found.predictions['outputs'], plain.predictions['outputs'], atol=1e-5)


@needs_torch
def test_a_module_of_torch_is_asked_in_evaluation(plain: Any, work: Path) -> None:
    """Without dropout and gradients, and left as it was; a function of tensors where it says so."""
    import torch

    class Late(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop, self.scale = torch.nn.Dropout(0.9), torch.nn.Parameter(torch.ones(()))

        def forward(self, x: Any) -> Any:
            assert isinstance(x, torch.Tensor) and not torch.is_grad_enabled()
            return self.scale * self.drop(x[:, :2, 60:]).mean(-1)

    module = Late().train()
    found = ask(work, module)
    assert module.training and found.result['model'] == 'Late'
    np.testing.assert_allclose(found.predictions['outputs'], plain.predictions['outputs'], atol=1e-5)
    other = ask(work, lambda x: x[:, :2, 60:].mean(dim=-1), takes='torch', name='mine')
    assert other.result['model'] == 'mine' and other.result['headline'] == found.result['headline']


def nan(x: np.ndarray) -> np.ndarray:
    found = late(x)
    found[1, 0] = np.nan
    return found


@pytest.mark.parametrize(
    ('function', 'options', 'words'),
    [
        (
            lambda x: x[:, :3].mean(-1),
            {},
            r'gave float32 \[64, 3\] .*expected finite numbers \[64, 2\] \(Target, NonTarget\)',
        ),
        (lambda x: x[:5, :2].mean(-1), {}, r'gave float32 \[5, 2\] for windows \[64, '),
        (lambda x: late(x).argmax(1), {}, r'int64 \[64\].*: of classes one logit each, not their numbers'),
        (lambda x: late(x)[:, :, None], {}, r'\[64, 2, 1\]'),
        (lambda x: np.full((len(x), 2), 'a'), {}, 'gave <U1'),
        (lambda x: late(x) + 1j, {}, 'gave complex'),
        (nan, {}, 'nan gave outputs that are not finite for 1 of 64 windows'),
        (lambda x: np.array(jax.nn.softmax(late(x))), {}, 'are probabilities'),
        (lambda x: x.nothing, {}, r"failed on windows \[64, .*AttributeError.*takes='jax' or 'torch'"),
        (lambda x, y: x, {}, 'TypeError'),
        (3, {}, 'got a int, expected a function'),
        ('eegnet', {}, r"'eegnet' is a name; jbench.run\(task, model\) trains"),
        (late, {'takes': 'tensorflow'}, 'unknown kind of arrays'),
        (late, {'batch_size': 0}, 'batch_size=0'),
        (late, {'changes': {'split.folds': '5'}}, 'a model of each fold, and a function is one'),
        (late, {'changes': {'recipe.lrr': 1}}, 'recipe.lr'),
    ],
)
def test_a_fault_is_named(function: Any, options: dict[str, Any], words: str, work: Path) -> None:
    with pytest.raises(RequestError, match=words):
        ask(work, function, **options)


def test_a_task_is_one(work: Path) -> None:
    with pytest.raises(RequestError, match='names 6 tasks'):
        jbench.evaluate(late, 'bci', workdir=work)
    with pytest.raises(RequestError, match='expected a name'):
        jbench.evaluate(late, 3, workdir=work)
    asked = jbench.task('p3')
    for task in (asked, asked.spec):
        assert jbench.evaluate(late, task, workdir=work, simulated=True).result['task'] == 'p3'


def test_changes_are_named_and_the_rest_is_scored(work: Path) -> None:
    found = ask(work, changes={'split.valid': 0.25})
    assert found.result['protocol']['custom'] == ['split.valid=0.25', 'model=a function, late']


# ---- streams ----


class Hears:
    """Answers the mean of all that it heard in its stream; the windows that it was given are written down."""

    def __init__(self, given: list[np.ndarray], louder_from: int = 10**9) -> None:
        self.heard: list[float] = []
        self.given, self.louder_from = given, louder_from

    def __deepcopy__(self, memo: dict) -> Hears:
        return Hears(self.given, self.louder_from)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        assert len(x) == 1
        self.given.append(x.copy())
        self.heard.append(float(x.mean()) + 1e3 * (len(self.given) > self.louder_from))
        return np.full((1, 1), np.mean(self.heard))


@pytest.mark.slow
def test_a_streamed_task_is_asked_a_window_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stream meets a new copy, and another future, from some window on, changes no answer before it."""
    known = select.datasets()
    few = dataclasses.replace(known['SimulatedChallengeSleep'], n_subjects=9, n_recordings=18)
    monkeypatch.setattr(select, 'datasets', lambda: {**known, 'SimulatedChallengeSleep': few})

    def answers(louder_from: int = 10**9) -> tuple[np.ndarray, int]:
        given: list[np.ndarray] = []
        model = Hears(given, louder_from)
        found = jbench.evaluate(model, 'challenge2026/sleep', workdir=tmp_path, simulated=True)
        assert model.heard == [] and len(given) == len(found.predictions['id'])
        cells = found.predictions['cell']
        levels = np.array([x.mean() for x in given])
        if louder_from > len(given):
            for cell in np.unique(cells):
                mine = levels[cells == cell]
                running = np.cumsum(mine) / np.arange(1, len(mine) + 1)
                np.testing.assert_allclose(
                    found.predictions['outputs'][cells == cell, 0], running, rtol=1e-3, atol=1e-4
                )
        return found.predictions['outputs'], len(given)

    plain, n = answers()
    louder, _ = answers(n // 2)
    np.testing.assert_array_equal(plain[: n // 2], louder[: n // 2])
    assert plain[n // 2] != louder[n // 2]


@pytest.mark.slow
def test_angles_are_answered_at_any_number_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Track 4, from recordings to the score: one step a window, some, or one a sample are held for their shares."""
    name = 'SimulatedChallengePose'
    six = {name: dataclasses.replace(select.datasets()[name], n_subjects=6, n_recordings=6)}
    known = {**select.datasets(), **six}
    monkeypatch.setattr(select, 'datasets', lambda: known)

    def said(steps: int) -> Any:
        def model(x: np.ndarray) -> np.ndarray:
            return np.repeat(np.linspace(-0.2, 0.9, 20, dtype=np.float32), steps)[None].repeat(len(x), 0)

        return jbench.evaluate(model, 'challenge2026/pose', workdir=tmp_path, simulated=True)

    found = [said(steps).result['headline'] for steps in (1, 7, 10_000)]
    assert found[0]['value'] == pytest.approx(found[1]['value'], rel=1e-6) == pytest.approx(found[2]['value'], rel=1e-6)
    with pytest.raises(RequestError, match=r'gave float32 \[\d+, 200020\]'):
        said(10_001)
