"""One look everywhere: colours by name alone, safe names, the same bytes."""

from __future__ import annotations

import csv
import io
import re
from itertools import combinations
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from drawn import BASE, colours, lines, score, table
from matplotlib.colors import to_hex

from jbench.models import MODELS
from jbench.report.figures import answers, cost, curves, ranks, style, tasks
from jbench.report.statistics.calibration import Bins
from jbench.spec.errors import MissingExtraError

ODD = [
    '../../etc/passwd',
    'a/b',
    'a b',
    'eegnet:dropout=0.5',
    'µ-net',
    '网',
    '$x_1$',
    '_x',
    '.hidden',
    'x' * 300,
    '',
    '\n',
]


def test_every_model_has_its_own_look():
    assert set(MODELS) - set(style.PLAIN) <= set(style.KNOWN)
    assert len(set(style.KNOWN)) == len(style.KNOWN) <= len(style.COLOURS) * len(style.MARKERS)
    looks = [style.look(m) for m in (*style.KNOWN, *style.PLAIN)]
    assert len(set(looks)) == len(looks)
    shown = [(look.colour, look.line) for look in looks]
    assert max(shown.count(pair) for pair in shown) <= 3 and len(set(shown[:20])) == 20, 'lines without markers'
    assert style.look('dummy').colour == style.look('chance').colour == style.GREY


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def seen(colour: str, matrix: tuple[tuple[float, ...], ...]) -> list[float]:
    """A colour as a dichromat sees it: Machado et al. (2009), severity 1, on linear RGB, in Lab-like steps."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return [max(0.0, sum(m * p for m, p in zip(row, linear, strict=True))) ** (1 / 2.2) for row in matrix]


DEUTAN = ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881))
PROTAN = ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998))


@pytest.mark.parametrize('matrix', [DEUTAN, PROTAN], ids=['deutan', 'protan'])
def test_colours_are_told_apart_by_the_colour_blind(matrix):
    for a, b in combinations((*style.COLOURS, style.GREY), 2):
        far = sum((x - y) ** 2 for x, y in zip(seen(a, matrix), seen(b, matrix), strict=True)) ** 0.5
        assert far > 0.15, (a, b)
    assert all(luminance(c) < 0.5 for c in style.COLOURS)  # on white paper


def test_a_model_has_one_colour_in_all_figures():
    scores = table({'eegnet': 0.8, 'mine:x=1': 0.7, 'dummy': 0.5})
    models = ['eegnet', 'mine:x=1', 'dummy']
    wanted = [style.look(m).colour.lower() for m in models]
    first = [s for s in scores if s.task == 'p3']
    bars = tasks.bars(tasks.bar_rows(first, models), title='t', metric='bal_acc')
    assert [to_hex(patch.get_facecolor()) for patch in bars.axes[0].patches] == wanted
    assert colours(bars, '_subjects') == wanted
    box = ranks.box([{'model': m, 'task': 'p3', 'dataset': 'd', 'rank': k} for k, m in enumerate(models, 1)], title='t')
    assert colours(box, '_ranks') == wanted
    line = ranks.difference(
        ranks.difference_rows(models, [1, 2, 3], [(0, 1)]), test='Friedman', alpha=0.05, n=3, n_models=3, title='t'
    )
    assert colours(line, '_rank') == wanted
    full = ranks.core_full([{'model': m, 'core': k, 'full': k} for k, m in enumerate(models)], agreement='', title='t')
    assert [colours(full, f'_{m}') for m in models] == [[c] for c in wanted]
    paid = cost.cost(cost.rows(scores, models, cost.SECONDS), cost.SECONDS, title='t')
    assert [colours(paid, f'_{m}')[0] for m in models[:2]] == wanted[:2]
    epochs = [{'epoch': 1, 'train_loss': 1.0, 'monitor': 1.0, 'kept': True, 'resumed': 0, 'seed': 33}]
    learnt = curves.curves([{'model': m, **e} for m in models for e in epochs], title='t', metric='bal_acc')
    assert [colours(learnt, f'_{m}')[0] for m in models] == wanted
    pair = tasks.pair(tasks.pair_rows(first[0], first[1]), title='t', metric='bal_acc')
    assert set(colours(pair, '_subject')) == {wanted[0]}
    sure = answers.reliability(
        answers.reliability_rows(Bins((0.5,), (0.5,), (2,))), error=0, look=('eegnet', 'windows'), title='t'
    )
    assert colours(sure, '_model') == wanted[:1]
    value = answers.values([{'true': 0, 'answer': 1}, {'true': 1, 'answer': 1}], model='eegnet', caption='', title='t')
    assert colours(value, '_answers') == wanted[:1]


@pytest.mark.parametrize('odd', ODD)
def test_odd_names_make_safe_files(odd):
    stem = style.stem('bars', odd, 'D')
    assert re.fullmatch(r'[A-Za-z0-9@_-][A-Za-z0-9@._-]*', stem) and len(stem) <= 130 and '..' not in stem.split('-')[0]
    figure = tasks.bars(tasks.bar_rows([score(odd)], [odd]), title=odd, metric='bal_acc')
    shown = style.name(odd)
    assert '\n' not in shown and not shown.startswith('_') and 0 < len(shown) <= style.LONGEST + 1
    assert any(shown == label.get_text() for label in figure.axes[0].get_yticklabels())


def test_odd_names_are_drawn(tmp_path, recwarn):
    scores = [score(odd, dataset='D') for odd in ODD]
    figure = tasks.bars(tasks.bar_rows(scores, ODD), title='$t$', metric='bal_acc')
    paths = style.save(figure, [{'model': odd} for odd in ODD], tmp_path / style.stem('bars', *ODD))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths)
    assert not recwarn.list and b'$x_1$' in paths[1].read_bytes()


def test_texts_stay_texts_in_svg(tmp_path):
    figure = tasks.bars(
        tasks.bar_rows([BASE], ['eegnet']), title='--><script>x()</script>\x00\x1b[0m', metric='bal_acc'
    )
    svg = style.save(figure, [], tmp_path / 'a')[1].read_bytes()
    assert b'<script' not in svg and ElementTree.fromstring(svg).tag.endswith('svg')


def test_other_names_make_other_files():
    assert len({style.stem('bars', odd) for odd in (*ODD, 'a_b', 'a.b')}) >= len(ODD) + 1
    assert style.stem('bars', 'meg/typing', 'Set2') == 'bars-meg.typing-Set2'


def drawn():
    return tasks.bars(tasks.bar_rows([BASE], ['eegnet']), title='t', metric='bal_acc')


def test_the_same_bytes_whatever_the_settings(tmp_path):
    rows = tasks.bar_rows([BASE], ['eegnet'])
    first = [p.read_bytes() for p in style.save(drawn(), rows, tmp_path / 'a')]
    with mpl.rc_context({'font.size': 30, 'axes.facecolor': 'red', 'svg.hashsalt': None, 'savefig.dpi': 20}):
        second = [p.read_bytes() for p in style.save(drawn(), rows, tmp_path / 'b')]
    assert first == second and first[0].startswith(b'\x89PNG')
    assert b'<dc:date>' not in first[1] and b'2026' not in first[1][:2000]
    assert mpl.rcParams['font.size'] == 10  # the user's own stay


def test_csv_has_all_digits(tmp_path):
    rows = [{'model': 'a,"b"', 'score': 1 / 3, 'low': None}]
    text = style.save(drawn(), rows, tmp_path / 'a')[2].read_text()
    (row,) = csv.DictReader(io.StringIO(text))
    assert row['model'] == 'a,"b"' and float(row['score']) == 1 / 3 and row['low'] == ''


def test_without_matplotlib_the_command_is_named(monkeypatch):
    monkeypatch.setattr(style, 'find_spec', lambda name: None)
    with pytest.raises(MissingExtraError, match='report'):
        drawn()


def test_the_line_of_chance():
    assert lines(drawn(), '_chance')[0][0][0] == 50
