"""A comparison of two models as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jbench.report import marks
from jbench.report.compare import ALPHA, Comparison, Over, Pair
from jbench.report.scores import format_score
from jbench.report.statistics import paired
from jbench.report.text import printable
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from rich.console import Console

HEADS = ('task\ndataset', 'metric\nsubjects', 'A\nB', 'diff.\n95 %', 'p\nHolm', 'each\nWilcoxon', 'g\nranks', 'detect.')
WORDS = 2  # columns that may fold


def show(comparison: Comparison, console: Console) -> None:
    """Print a comparison: a table where it fits the terminal, else a few lines a task; then what follows from it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console.print(Text(printable(f'A: {comparison.a}   B: {comparison.b}')))
    lines = [_cells(pair) for pair in comparison.pairs]
    widths = [max(len(part) for row in (HEADS, *lines) for part in row[k].split('\n')) for k in range(len(HEADS))]
    if sum(widths) + 2 * len(widths) <= console.width:
        view = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), leading=1)
        for k, head in enumerate(HEADS):
            view.add_column(Text(head), justify='left' if k < WORDS else 'right', no_wrap=True, min_width=widths[k])
        for line in lines:
            view.add_row(*map(Text, line))
        console.print(view)
    else:
        for line in lines:
            console.print(Text('\n' + _block(line)))
    for text in _told(comparison):
        console.print(Text(printable(text)))


def _block(line: tuple[str, ...]) -> str:
    """A row as a few lines, for narrow terminals."""
    named = [zip(head.split('\n'), cell.split('\n'), strict=True) for head, cell in zip(HEADS, line, strict=True)]
    return '\n'.join('  '.join(f'{head} {text}' for head, text in pairs) for pairs in named)


def _told(comparison: Comparison) -> list[str]:
    """The lines below the table."""
    said = [f'{_place(pair)}: {pair.verdict}' for pair in comparison.pairs]
    lonely = [
        f'{_place(pair)}: only subjects that both have count; A has {pair.only[0]} more, B {pair.only[1]}'
        for pair in comparison.pairs
        if any(pair.only)
    ]
    others = [f'{_place(pair)}: {text}' for pair in comparison.pairs if (text := _basis(pair))]
    folded = [f'{_place(pair)}: {text}' for pair in comparison.pairs if (text := _folds(pair))]
    left = [f'left out: {place}: {reason}' for place, reason in comparison.left_out]
    over = _over(comparison.over) if comparison.over else []
    legend = (
        'A, B: headlines; diff.: positive where A is better, 95 % over subjects; p: subjects exchanged, Holm: over the '
        f'tasks, a difference where at most {ALPHA:g}; each: mean difference of the own scores of subjects, Wilcoxon: '
        'p of its signed ranks, by Holm too, g: standardised, ranks: rank-biserial correlation (- where a subject '
        f'lacks classes); detect.: least difference that is found with a power of {paired.POWER:g}'
    )
    return [legend, *lonely, *others, *folded, *left, *said, *over, comparison.verdict]


def _basis(pair: Pair) -> str:
    """What is to be said of a test that is not of the headlines."""
    return 'no predictions (.npz): diff. and p are of the mean over subjects' if pair.basis == 'subjects' else ''


def _folds(pair: Pair) -> str:
    """What the folds of a cross-validation say."""
    found = pair.folds
    if found is None:
        return ''
    if found.p is None or found.t is None or found.mean is None:
        return f'{found.n} folds: they differ by the same in each, so that their spread says nothing'
    mean, ends = format_score(found.mean, pair.metric), found.interval
    between = f' [{", ".join(format_score(v, pair.metric) for v in ends)}]' if ends else ''
    return f'{found.n} folds: {mean}{between}, corrected resampled t = {found.t:.2f}, {_equals(found.p)}'


def _over(over: Over) -> list[str]:
    """What all datasets say."""
    lines = [f'over {over.n} datasets: Stouffer {_equals(over.stouffer.p)}, z = {over.stouffer.z:.2f}']
    effects = over.effects
    if effects is not None and effects.interval is not None and effects.p is not None:
        low, high = effects.interval
        lines.append(
            f'random effects of {effects.n} datasets: g = {effects.effect:.2f} [{low:.2f}, {high:.2f}], '
            f'{_equals(effects.p)}; tau2 = {effects.tau2:.3f}, I2 = {100 * effects.i2:.0f} %'
        )
    return lines


def _cells(pair: Pair) -> tuple[str, ...]:
    """The texts of a row."""

    def text(value: float | None) -> str:
        return format_score(value, pair.metric)

    unit = ' (%)' if METRICS[pair.metric].unit == 'per cent' else ''
    interval = '-' if pair.interval is None else f'[{text(pair.interval[0])}, {text(pair.interval[1])}]'
    g = '-' if pair.g is None else f'{pair.g:+.2f}'
    sign = '+' if pair.difference > 0 else ''
    return (
        f'{printable(_task(pair))}\n{printable(pair.dataset)}',
        f'{pair.metric}{unit}\n{pair.n}',
        f'{text(pair.a)}\n{text(pair.b)}',
        f'{sign}{text(pair.difference)}\n{interval}',
        f'{_p(pair.p)}\n{_p(pair.adjusted)}',
        f'{"+" if (pair.each or 0) > 0 else ""}{text(pair.each)}\n{_p(pair.wilcoxon_adjusted)}',
        f'{g}\n{"-" if pair.rank_biserial is None else f"{pair.rank_biserial:+.2f}"}',
        text(pair.detectable),
    )


def _p(p: float | None) -> str:
    """A p value, never 0."""
    if p is None:
        return '-'
    return '<0.001' if p < 0.001 else f'{p:.3f}'


def _equals(p: float) -> str:
    return f'p {_p(p)}' if p < 0.001 else f'p = {_p(p)}'


def _place(pair: Pair) -> str:
    return marks.titled(f'{pair.task}@{pair.version}/{pair.dataset}', pair.changes)


def _task(pair: Pair) -> str:
    return marks.titled(f'{pair.task}@{pair.version}', pair.changes)
