"""How long 4,947 experiments of 1,751 GPU-hours take on some numbers of GPUs, by the order in which they begin.

Nothing runs: times are scaled ones of other machines, see `shapes`.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import marks

from jbench.grid import estimates
from jbench.grid.simulate import finish
from jbench.models import MODELS
from jbench.plan import cells, select
from jbench.spec.errors import RequestError
from jbench.tasks.suites import SUITES

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENTS, GPU_HOURS, LIMIT = 4947, 1751.0, 24.0  # NeuralBench's: published, and hours that it gives a job
PAIRS, SEEDS = 97, 3  # 4,947 = 97 x 17 x 3: tasks on datasets, models, seeds
PEERS = (
    *('eegnet', 'shallow_fbcsp_net', 'deep4net', 'bdtcn', 'atcnet', 'eegconformer', 'ctnet', 'simpleconv_time_agg'),
    *('bendr', 'biot', 'cbramod', 'labram', 'luna_base', 'reve_base', 'chance', 'dummy', 'cov_ts_lr'),
)
GPUS = (8, 64, 256)
DRAWS = 20


def measured() -> list[float]:
    """Seconds of networks in leaderboard/results: a seed of a model on a small open set, on two cores."""
    networks, found = {m.name for m in MODELS.values() if m.kind == 'network'} - {'chance'}, []
    for path in sorted((ROOT / 'leaderboard' / 'results').rglob('seed*.json')):
        result = json.loads(path.read_text(encoding='utf-8'))
        if result['model'] in networks and result['status'] == 'done':
            found.append(result['timings']['total'])
    if not found:
        raise RequestError('leaderboard/results: no results of networks there; expected those of the repository')
    return found


def estimated() -> list[list[float]]:
    """Seconds of PEERS on each dataset of the EEG tasks, as `--plan` expects them: from parameters and steps."""
    models = [select.Pick(MODELS[name], False) for name in PEERS]  # those that fit
    datasets, found = select.datasets(), []
    for task, version in SUITES['eeg-core-1.0'].tasks:
        spec = next(t for t in select.tasks()[task] if t.version == version)
        for name in spec.datasets:
            made = cells.make_cells([cells.Choice(spec, datasets[name], True)], models, (), False)
            sizes = [estimates.windows(cell, None, 0) for cell in made]
            seconds = [estimates.of_cell(c, 1, s, Path('none')).seconds for c, s in zip(made, sizes, strict=True)]
            found.append(seconds + [min(seconds)] * (len(PEERS) - len(seconds)))
    return found


def scaled(seconds: Sequence[float], limit: float = math.inf) -> list[float]:
    """The same in hours, so that together they are GPU_HOURS, none longer than `limit`."""
    low, high = 0.0, 1e9
    for _ in range(200):
        factor = (low + high) / 2
        if sum(min(limit, factor * s) for s in seconds) < GPU_HOURS:
            low = factor
        else:
            high = factor
    return [min(limit, low * s) for s in seconds]


def shapes(draw: random.Random) -> dict[str, list[float]]:
    """Hours of EXPERIMENTS by what is supposed of how unequal they are; each has GPU_HOURS together."""
    pairs = estimated()
    chosen = draw.sample(pairs, PAIRS) if len(pairs) >= PAIRS else draw.choices(pairs, k=PAIRS)
    return {
        'alike': scaled([1.0] * EXPERIMENTS),
        'measured': scaled(draw.choices(measured(), k=EXPERIMENTS)),
        'expected': scaled([s for pair in chosen for s in pair for _ in range(SEEDS)], LIMIT),
    }


def orders(hours: Sequence[float], draw: random.Random) -> Iterator[tuple[str, list[list[float]]]]:
    """Orders in which experiments may begin, each with one list or several; one order, if all take the same time."""
    if min(hours) == max(hours):
        yield 'in any order', [[*hours]]
        return
    yield 'longest first', [sorted(hours, reverse=True)]
    guessed = [sorted(hours, key=lambda h: -h * math.exp(draw.gauss(0, math.log(3)))) for _ in range(DRAWS)]
    yield 'longest first, times known to a factor of 3', guessed
    yield 'in random order', [draw.sample(hours, len(hours)) for _ in range(DRAWS)]


def tables() -> dict[str, str]:
    """The tables of docs/scale.md, of experiments and of cells, as Markdown by the names of their marks."""
    draw = random.Random(33)
    found = shapes(draw)
    units = {'experiments': found, f'cells of {SEEDS} seeds': {name: together(hours) for name, hours in found.items()}}
    return {unit.partition(' ')[0]: table(unit, hours, draw) for unit, hours in units.items()}


def table(unit: str, found: Mapping[str, Sequence[float]], draw: random.Random) -> str:
    """Hours until the last has ended, share idle and hours of the tail, by shape and order, on each of GPUS."""
    (n_units,) = {len(hours) for hours in found.values()}
    lines = [('evenly divided', '', *(text for n in GPUS for text in (rounded(GPU_HOURS / n), '')))]
    for shape, hours in found.items():
        minutes = 60 * statistics.median(hours)
        median = f'{minutes:.0f} min' if minutes >= 1 else 'below 1 min'
        label = f'{shape}: median {median}, longest {max(hours):.1f} h'
        for order, lists in orders(hours, draw):
            cells = []
            for n in GPUS:
                ends = [finish(hours_, n) for hours_ in lists]
                wall, tail, idle = (statistics.mean(end[k] for end in ends) for k in range(3))
                cells += [f'{rounded(wall)}, {100 * idle:.0f} %', f'{tail:.1f}']
            lines.append((label, order, *cells))
            label = ''
    return marks.table((f'{n_units:,} {unit}', 'begun', *(h for n in GPUS for h in (f'{n} GPUs', 'tail'))), lines)


def rounded(hours: float) -> str:
    """Hours as a table has them."""
    return f'{hours:.1f}' if hours < 100 else f'{hours:.0f}'


def together(hours: Sequence[float]) -> list[float]:
    """Experiments as cells: seeds of one model on one dataset, which lie beside each other, one after the other."""
    ranked = sorted(hours)
    return [sum(ranked[k : k + SEEDS]) for k in range(0, len(ranked), SEEDS)]
