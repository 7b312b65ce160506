"""Two models compared from their results and predictions: headlines, exchanged subjects, sides, the command."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from result_files import make, store
from rich.console import Console

from jbench.metrics.keystrokes import NONE
from jbench.report import compare_headlines, compare_sides, compare_table
from jbench.report.compare import Comparison
from jbench.results import result_file
from jbench.spec.errors import RequestError
from jbench.targets import score

Answers = Mapping[str, tuple[np.ndarray, np.ndarray]]  # subject: targets, answers


def put(work: Path, model: str, answers: Answers, *, seed: int = 33, metric: str = 'bal_acc', **changes: Any) -> Path:
    """A result with its predictions, in its place below a work folder."""
    changes = {'config': {'task': {'metric': metric}}, 'headline': {'name': metric}, **changes}
    result = make(model, seed=seed, dummy=0.5, **changes)
    names = (f'{result["task"]}@{result["task_version"]}', result['dataset'], model, result['key'])
    y = np.concatenate([y for y, _ in answers.values()])
    said = np.concatenate([said for _, said in answers.values()])
    subject = [name for name, (y, _) in answers.items() for _ in y]
    predictions = {'id': np.arange(len(y)), 'outputs': np.eye(2)[said] * 2 - 1, 'y': y, 'subject': subject}
    place = Path(work, 'results', *names)
    result_file.write(place, result, predictions)
    return place / f'seed{seed}.json'


def mixed(random: np.random.Generator, n: int, right: float, windows: int = 20) -> Answers:
    """Subjects who show both classes, and of each the share that is answered right."""
    y = np.arange(windows) % 2
    return {f'S{k:02d}': (y, np.where(random.uniform(size=windows) < right, y, 1 - y)) for k in range(n)}


def one_class(random: np.random.Generator, shares: tuple[float, float], counts: tuple[int, int] = (16, 4)) -> Answers:
    """Subjects of one class each, 50 windows, whose share of right ones varies around that of the class, sd 0.1."""
    found = {}
    for c, (share, n) in enumerate(zip(shares, counts, strict=True)):
        for k in range(n):
            right = random.uniform(size=50) < np.clip(random.normal(share, 0.1 if 0 < share < 1 else 0), 0, 1)
            found[f'{"HI"[c]}{k:02d}'] = (np.full(50, c), np.where(right, c, 1 - c))
    return found


def found_of(work: Path, a: Answers, b: Answers, **changes: Any) -> Comparison:
    for model, answers in (('eegnet', a), ('other', b)):
        put(work, model, answers, **changes)
    return compare_sides.compared('eegnet', 'other', [str(work)])


def shown(found: Comparison) -> str:
    out = io.StringIO()
    compare_table.show(found, Console(file=out, width=120))
    return out.getvalue()


def test_headlines_are_compared_where_subjects_have_one_class(tmp_path: Path) -> None:
    """The dummy says healthy of 16 healthy and 4 ill, a net is right in 72 % of both: subjects' mean is the dummy's."""
    random = np.random.default_rng(0)
    found = found_of(tmp_path, one_class(random, (1, 0)), one_class(random, (0.72, 0.72)))
    (pair,) = found.pairs
    assert pair.a == 0.5 and pair.b == pytest.approx(0.72, abs=0.06) and pair.basis == 'headline'
    assert pair.difference == pytest.approx(pair.a - pair.b) and (pair.each or 0) > 0, 'the means over subjects differ'
    assert 'eegnet is better' not in found.verdict and pair.interval is not None and pair.interval[1] < 0
    assert (pair.wilcoxon, pair.g, pair.rank_biserial) == (None, None, None)
    text = shown(found)
    assert '50.0' in text and f'{100 * pair.b:.1f}' in text and 'no predictions' not in text


def test_two_subjects_of_a_class_are_too_few(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for ill, verdict in (
        (2, 'cannot be told apart: 2 subjects of a class cannot show a difference'),
        (5, 'eegnet is better'),
    ):
        a, b = (one_class(random, shares, (9, ill)) for shares in ((0.95, 0.95), (0.5, 0.5)))
        assert found_of(tmp_path / str(ill), a, b).pairs[0].verdict == verdict


def test_a_subject_with_all_classes_counts_as_before(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    found = found_of(tmp_path, mixed(random, 10, 0.9), mixed(random, 10, 0.6))
    (pair,) = found.pairs
    assert found.verdict == 'eegnet and other: eegnet is better.' and pair.p == 2 / 2**10
    assert pair.each == pytest.approx(pair.difference), 'each has as many windows'
    assert pair.wilcoxon == 2 / 2**10 and pair.rank_biserial == 1.0 and pair.g is not None


@pytest.mark.parametrize('metric', ['auroc', 'f1_macro', 'acc'])
def test_other_scores_too(tmp_path: Path, metric: str) -> None:
    random = np.random.default_rng(1)
    found = found_of(tmp_path, mixed(random, 8, 0.9), mixed(random, 8, 0.6), metric=metric)
    assert found.pairs[0].metric == metric and found.pairs[0].p == 2 / 2**8
    assert found.pairs[0].verdict == 'eegnet is better'


def test_seeds_that_both_have_count(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    values = {}
    for model, seeds in (('eegnet', (33, 34, 35)), ('other', (34, 35))):
        for seed in seeds:
            path = put(tmp_path, model, mixed(random, 7, 0.7), seed=seed)
            values[model, seed] = json.loads(path.read_text())['headline']['value']
    (pair,) = compare_sides.compared('eegnet', 'other', [str(tmp_path)]).pairs
    assert pair.n_seeds == 2 and pair.a == pytest.approx((values['eegnet', 34] + values['eegnet', 35]) / 2)
    assert pair.b == pytest.approx((values['other', 34] + values['other', 35]) / 2)


@pytest.mark.parametrize('other', [(34, 35), (36,)])
def test_predictions_of_seeds_that_are_not_compared_are_not_needed(tmp_path: Path, other: tuple[int, ...]) -> None:
    random = np.random.default_rng(2)
    paths = {
        (model, seed): put(tmp_path, model, mixed(random, 7, right), seed=seed)
        for model, seeds, right in (('eegnet', (33, 34, 35), 0.9), ('other', other, 0.6))
        for seed in seeds
    }
    idle = 33 if len(other) == 2 else 35  # of no seed in common the first is compared with the first
    paths['eegnet', idle].with_suffix('.npz').unlink()
    (pair,) = compared(tmp_path).pairs
    assert (pair.basis, pair.n_seeds, pair.verdict) == ('headline', len(other), 'eegnet is better')
    paths['eegnet', 34 if len(other) == 2 else 33].with_suffix('.npz').unlink()
    assert compared(tmp_path).pairs[0].verdict == 'no verdict: needs the predictions (.npz)'


def test_predictions_of_other_windows_or_none_or_damaged_give_no_verdict(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    good = mixed(random, 7, 0.9)
    for model, answers in (('eegnet', good), ('other', mixed(random, 7, 0.6, windows=22))):
        path = put(tmp_path, model, answers)
    assert 'no verdict: the predictions are not of the same windows' in shown(compared(tmp_path))
    npz = path.with_suffix('.npz')
    npz.write_bytes(npz.read_bytes()[:-1] + b'x')
    assert 'expected predictions_sha256' in compared(tmp_path).pairs[0].verdict
    npz.unlink()
    found = compared(tmp_path)
    assert found.verdict == 'eegnet and other: no verdict: needs the predictions (.npz).' and found.pairs[0].a > 0.8


def compared(work: Path) -> Comparison:
    return compare_sides.compared('eegnet', 'other', [str(work)])


def test_answers_that_no_window_has_are_told(tmp_path: Path) -> None:
    """One class alone is tested: the answers of another count as a class in one headline, not in the other."""
    answers = {f'S{k:02d}': (np.zeros(20, int), np.zeros(20, int)) for k in range(7)}
    wrong = {name: (y, (np.arange(20) < 5).astype(int)) for name, (y, _) in answers.items()}
    assert 'not of the same classes' in found_of(tmp_path, answers, wrong, metric='f1_macro').pairs[0].verdict


# ---- from files ----


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, two seeds, seven subjects; results that are simulated."""
    work = tmp_path_factory.mktemp('work')
    for model, shift in (('eegnet', 0.1), ('other', 0.0)):
        for seed in (33, 34):
            put(work, model, windows(seed, shift), seed=seed)
        store(work / 'simulated', model, 0.7, simulated=True)
    return work


def windows(seed: int, shift: float) -> Answers:
    """100 windows a subject: a share of 0.5 to 0.75 is right, of both classes."""
    y = np.arange(100) % 2
    right = {f'S{k:02d}': round(50 * (0.5 + 0.03 * k + shift + 0.02 * (k * seed % 3))) for k in range(1, 8)}
    return {name: (y, np.where(np.arange(100) // 2 < n, y, 1 - y)) for name, n in right.items()}


def test_sides_are_models_files_or_folders(folder: Path) -> None:
    named = compare_sides.compared('eegnet', 'other', [str(folder / 'results')])
    assert (named.a, named.b, named.pairs[0].n) == ('eegnet', 'other', 7) and named.pairs[0].difference > 0.09
    eegnet, other = (str(next(folder.glob(f'results/*/*/{model}'))) for model in ('eegnet', 'other'))
    assert compare_sides.compared(eegnet, other, []) == named
    assert compare_sides.compared(eegnet, 'other', [str(folder / 'results')]) == named
    first, second = sorted(map(str, Path(eegnet).rglob('*.json')))
    one = compare_sides.compared(first, other, [])
    assert one.pairs[0].a == pytest.approx(np.mean([(y == said).mean() for y, said in windows(33, 0.1).values()]))
    again = compare_sides.compared(first, second, [])
    assert (again.a, again.b) == (first, second)
    assert compare_sides.compared('eegnet', 'eegnet', [str(folder / 'results')]).pairs[0].p == 1.0


def test_a_wrong_side_is_told(folder: Path) -> None:
    for a, words in {
        'egnet': "unknown model 'egnet'; did you mean 'eegnet'?",
        f'{folder}/results': r'several models \(eegnet, other\): name one',
        f'{folder}/none': 'no such folder',
        f'{folder}/none.json': 'no such file',
    }.items():
        with pytest.raises(RequestError, match=words):
            compare_sides.compared(a, 'other', [str(folder / 'results')])
    empty = folder / 'empty'
    empty.mkdir(exist_ok=True)
    with pytest.raises(RequestError, match='no results under'):
        compare_sides.compared('eegnet', 'other', [str(empty)])


def test_results_that_do_not_count_are_told(folder: Path) -> None:
    simulated = folder / 'simulated'
    (path,) = simulated.rglob('eegnet/*/seed33.json')
    for a in ('eegnet', str(path.parent), str(path)):
        with pytest.raises(RequestError, match=r'counts: \d left out \(simulated\); --also=simulated'):
            compare_sides.compared(a, 'other', [str(simulated)])
        found = compare_sides.compared(a, 'other', [str(simulated)], ['simulated'])
        assert found.verdict.endswith('needs the predictions (.npz).') and 'simulated' in found.pairs[0].protocol


@pytest.mark.parametrize('command', [['compare'], ['report', 'compare']])
def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    from jbench import run

    assert run.main([*command, 'eegnet', 'other', f'--results={folder}/results', '--format=json']) == 0
    assert json.loads(capsys.readouterr().out)['verdict'] == 'eegnet and other: eegnet is better.'
    assert run.main([*command, 'eegnet', 'other', f'--results={folder}/results']) == 0
    assert 'eegnet is better' in capsys.readouterr().out
    assert run.main([*command, 'egnet', 'other', f'--results={folder}/results']) == 2
    assert 'did you mean' in capsys.readouterr().err


def test_the_command_takes_several_folders_and_blanks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jbench import run

    both = [str(folder / 'results' / 'p3@2'), str(folder / 'simulated')]
    for words in (
        ['eegnet', 'other', '--results', *both],
        ['--results', *both, 'eegnet', 'other'],
        ['eegnet', '--results', *both, 'other'],
        ['eegnet', 'other', f'--results={both[0]}', both[1]],
        ['eegnet', 'other', f'--results={both[0]}', f'--results={both[1]}'],
    ):
        assert run.main(['compare', *words, '--also=partial, simulated', '--format=json']) == 0, words
        assert len(json.loads(capsys.readouterr().out)['left_out']) == 1, 'the simulated ones: both folders are read'
    assert run.main(['compare', 'eegnet', f'--results={both[0]}']) == 2
    assert 'two models' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('kind', 'metric'),
    [
        ('labels', 'f1_score_macro'),
        ('labels', 'hamming'),
        ('value', 'pearsonr'),
        ('value', 'rmse'),
        ('value', 'wbmae'),
        ('embedding', 'top5_acc'),
        ('embedding', 'top5_acc_250'),
        ('keystrokes', 'cer'),
    ],
)
def test_exchanged_answers_are_scored_as_results_are(kind: str, metric: str) -> None:
    random = np.random.default_rng(4)
    same: dict[str, np.ndarray] = {'id': np.arange(60), 'subject': np.repeat([f'S{k}' for k in range(6)], 10)}
    if kind == 'labels':
        same['y'] = random.integers(0, 2, (60, 3))
    elif kind == 'value':
        same['y'] = random.normal(size=(60, 1))
        if metric == 'wbmae':
            same |= {'y': random.uniform(0, 600, (60, 1)), 'cell': np.array([f'{k // 5}' for k in range(60)])}
    elif kind == 'embedding':
        stimulus = random.integers(0, 20, 60)
        same |= {'y': stimulus, 'vectors': random.normal(size=(20, 4)), 'group': stimulus.astype(str)}
    else:
        same['y'] = random.integers(0, 4, (60, 3))
    widths = {'labels': (3, 3), 'value': (1, 1), 'embedding': (4, 4), 'keystrokes': (6, 8)}[kind]
    outputs = [random.integers(0, 4, (60, w)) if kind == 'keystrokes' else random.normal(size=(60, w)) for w in widths]
    sides = [compare_headlines._Seed(kind, 'window', {**same, 'outputs': o}, 0.0) for o in outputs]
    stack = compare_headlines._weighted(sides, metric)
    assert stack is not None
    whole = [np.pad(o, ((0, 0), (0, max(widths) - o.shape[1])), constant_values=NONE) for o in outputs]
    for mask in (np.zeros(6), np.array([0, 1, 1, 0, 1, 0])):
        swapped = mask[np.repeat(np.arange(6), 10)][:, None] > 0
        expected = score.level_score(kind, metric, {**same, 'outputs': np.where(swapped, whole[1], whole[0])})
        assert stack(np.concatenate([1 - mask, mask])[None])[0] == pytest.approx(expected)
