"""How every figure looks: colours, markers, lines of models, sizes, fonts; how it is saved, with its data as CSV."""

from __future__ import annotations

import functools
import io
import warnings
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec

from jbench import files
from jbench.report.text import as_csv
from jbench.spec.errors import MissingExtraError
from jbench.spec.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Table = list[dict[str, Any]]  # plain values, the same columns in each row
Line = str | tuple[int, tuple[float, ...]]  # a line style of matplotlib: offset, lengths of dashes and gaps
Asked = ParamSpec('Asked')

# Okabe & Ito (2008) without yellow and black, which white paper and text take: told apart by the colour-blind
COLOURS = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9')
MARKERS = (
    'o',
    's',
    '^',
    'D',
    'v',
    'P',
    'X',
    '<',
    '>',
    'h',
    'p',
)  # their number has no factor in common with that of the colours
LINES: tuple[Line, ...] = (  # solid, dashed, dotted, two mixed: most models of one colour differ in it
    *('solid', (0, (5, 2)), (0, (1.2, 1.2)), (0, (7, 2, 1.2, 2)), (0, (5, 1.5, 1.2, 1.5, 1.2, 1.5))),
)
GREY = '#555555'  # of models that look at no signal, and of lines that guide the eye; far from every colour
PLAIN = ('dummy', 'chance', 'constant')
KNOWN = (  # a model keeps its place, so that its colour stays: new ones go to the end
    *('eegnet', 'shallow_fbcsp_net', 'deep4net', 'eegconformer', 'bdtcn', 'atcnet', 'ctnet', 'simpleconv_time_agg'),
    *('eegnex', 'emg2qwerty', 'fmri_mlp', 'fmri_linear'),
    *('reve', 'labram', 'luna', 'cbramod', 'bendr', 'biot', 'signal_jepa', 'feature_based'),
    *('cov_ts_lr', 'ts_lr', 'cov_ts_ridge', 'cospectra_log_lr', 'xdawn_ts_lr', 'xdawn_cov_lr', 'fbcca', 'trca'),
    *('csp_lda', 'fgmdm', 'xdawn_lda', 'erp_lr', 'mean_lr', 'band_power_lr', 'time_domain_lr', 'ridge'),
    *('reve_base', 'luna_large', 'reve_small', 'reve_large', 'luna_base', 'luna_huge', 'eegpt', 'codebrain'),
    *('signal_jepa_post_local', 'signal_jepa_pre_local', 'steegformer_small', 'steegformer_base', 'steegformer_large'),
    *('eegdino_small', 'eegdino_medium', 'multiscale_ssm', 'vemg2pose', 'neuropose', 'jbench_tiny'),
)
MAP = 'viridis'  # perceptually uniform
WIDTH, LINE = 6.4, 0.27  # inches: of a figure, of a line of text
RC = {
    'figure.dpi': 100,
    'savefig.dpi': 150,
    'font.size': 9,
    'axes.titlesize': 10,
    'figure.titlesize': 10,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'legend.frameon': False,
    'text.parse_math': False,  # a dollar in the name of a model is a dollar
    'svg.hashsalt': 'jbench',  # the same bytes each time
    'svg.fonttype': 'path',
}
ROWS = 24  # of a legend
LONGEST = 34  # characters of a name that are shown


class Look(NamedTuple):
    """Of a model, in every figure."""

    colour: str
    marker: str
    line: Line


def require() -> None:
    """Raises: RequestError with the pip command where there is nothing to draw with."""
    if find_spec('matplotlib') is None:
        raise MissingExtraError('matplotlib', 'report', 'a figure')


def look(model: str) -> Look:
    """Colour, marker and line style of a model, by its name alone."""
    if model in PLAIN:
        return Look(GREY, MARKERS[PLAIN.index(model)], LINES[PLAIN.index(model)])
    k = KNOWN.index(model) if model in KNOWN else zlib.crc32(model.encode())
    line = LINES[k // len(COLOURS) % len(LINES)]
    return Look(COLOURS[k % len(COLOURS)], MARKERS[k % len(MARKERS)], line)


def name(text: str) -> str:
    """A name as figures show it: of a line, of bounded length; one that begins with _ would be left out of legends."""
    line = _line(text)
    if len(line) > LONGEST:
        line = f'{line[: LONGEST // 2]}…{line[-LONGEST // 2 + 1 :]}'
    return f' {line}' if line.startswith('_') else line or '?'


def _line(text: str) -> str:
    """A text in one line, without control characters, which an SVG file cannot hold."""
    return ' '.join(''.join(c if c.isprintable() else ' ' for c in text).split())


def stem(*parts: str) -> str:
    """A safe name of a file; where characters had to go, a digest keeps names apart."""
    text = '-'.join(parts).replace('/', '.')
    safe = files.slug(text)
    return safe if safe == text else f'{safe[:110]}-{zlib.crc32(text.encode()):08x}'


def factor(metric: str) -> float:
    """By what the fractions of result files are multiplied where a figure shows per cent."""
    return 100.0 if METRICS[metric].unit == 'per cent' else 1.0


def score_axis(metric: str) -> str:
    """The label of an axis of scores: 'bal_acc (%)', 'mae, lower is better'."""
    row = METRICS[metric]
    return metric + ' (%)' * (row.unit == 'per cent') + ', lower is better' * (row.better == 'lower')


def styled(draw: Callable[Asked, Figure]) -> Callable[Asked, Figure]:
    """A figure made under RC, whatever the user's own settings of matplotlib are."""

    @functools.wraps(draw)
    def inside(*given: Asked.args, **named: Asked.kwargs) -> Figure:
        require()
        from matplotlib import style

        with style.context(['default', RC]):
            return draw(*given, **named)

    return inside


def blank(width: float, height: float) -> Figure:
    """An empty figure; inches. Its parts make room for each other."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout='constrained')


def title(figure: Figure, text: str) -> None:
    """Above everything, in lines that fit."""
    import textwrap

    wide = int(figure.get_size_inches()[0] * 13)
    figure.suptitle('\n'.join(textwrap.wrap(_line(text), wide)) or ' ')


def note(figure: Figure, text: str) -> None:
    """Below everything, in lines that fit."""
    import textwrap

    figure.supxlabel('\n'.join(textwrap.wrap(text, int(figure.get_size_inches()[0] * 16))), fontsize=8)


def legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Beside the axes, so that it hides nothing; the figure grows with it."""
    columns = 1 + (len(labels) - 1) // ROWS
    wide, high = figure.get_size_inches()
    figure.set_size_inches(wide + 2.6 * (columns - 1), max(high, 1.4 + 0.19 * min(len(labels), ROWS)))
    figure.legend(handles, labels, loc='outside right center', fontsize=8, ncols=columns, handlelength=3)


def save(figure: Figure, table: Table, at: str | Path) -> list[Path]:
    """<at>.png, <at>.svg and <at>.csv, what is drawn: the same bytes for the same figure.

    Args:
        at: folder and stem.
    Returns: the three paths.
    """
    from matplotlib import style

    written = []
    with style.context(['default', RC]), warnings.catch_warnings():
        warnings.filterwarnings('ignore', 'Glyph .* missing')  # a box stands for a letter that the font lacks
        for form, metadata in (('png', {'Software': None}), ('svg', {'Date': None, 'Creator': None})):
            out = io.BytesIO()
            figure.savefig(out, format=form, metadata=metadata)
            written.append(files.write_atomic(f'{at}.{form}', out.getvalue()))
    columns = list(table[0]) if table else []
    return [*written, files.write_atomic(f'{at}.csv', as_csv(table, columns).encode())]
