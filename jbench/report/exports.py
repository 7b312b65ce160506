"""Scores in the forms that other places read: a tree as MTEB's results repository has it, the `model-index` block of a
model card at Hugging Face, tables in LaTeX and Markdown."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Sequence, Set
from pathlib import Path
from typing import Any

from jbench import files
from jbench.report import marks, order
from jbench.report.aggregate import Score
from jbench.report.figures.style import stem
from jbench.report.scores import format_score
from jbench.report.text import printable
from jbench.spec.metrics import METRICS
from jbench.version import __version__

HUB_METRICS = {'bal_acc': 'balanced_accuracy', 'acc': 'accuracy', 'auroc': 'roc_auc', 'f1_macro': 'f1'}
LATEX = str.maketrans(
    {c: f'\\{c}' for c in '&%$#_{}'}
    | {'\\': r'\textbackslash{}', '~': r'\textasciitilde{}', '^': r'\textasciicircum{}'}
)
MARKDOWN = str.maketrans({c: f'\\{c}' for c in '\\`*_~[]|'} | {'&': '&amp;', '<': '&lt;', '>': '&gt;'})


def _named(s: Score, unit: str) -> str:
    """A score in words: 'bal_acc, 3 seeds, per cent'."""
    return f'{s.metric}, {s.n_seeds} seed{"s" * (s.n_seeds != 1)}' + ', per cent' * (unit == 'per cent')


def mteb(scores: Sequence[Score], out: Path) -> list[Path]:
    """One file a score: <out>/results/<model>/<jbench version>/<task>@<version>.<dataset>.json, in MTEB's fields.

    Values are fractions; `main_score` is the headline. What MTEB has no field for stands under `jbench`; `task_name`
    says what is simulated, debug, partial or custom. Files of an earlier export that are not written now are removed;
    anybody else's stay. Returns: the files.
    """
    written = []
    for s in scores:
        test = {'main_score': s.mean, 'hf_subset': 'default', 'languages': [], **s.metrics}
        content = {
            'task_name': marks.titled(f'{s.task}@{s.version}', s.changes),
            'dataset_revision': s.dataset,
            'mteb_version': '',
            'scores': {'test': [test]},
            'evaluation_time': s.seconds.get('fit', 0.0) + s.seconds.get('test', 0.0),
            'kg_co2_emissions': None,
            'jbench': _more(s),
        }
        path = out / 'results' / stem(s.model) / __version__ / f'{stem(f"{s.task}@{s.version}.{s.dataset}")}.json'
        files.write_atomic(path, (json.dumps(content, indent=2, sort_keys=True) + '\n').encode())
        written.append(path)
    _remove_old(out / 'results', {*written})
    return written


def _remove_old(home: Path, kept: Set[Path]) -> None:
    """Remove what an earlier export wrote, known by its field `jbench`, and the folders that it leaves empty."""
    for path in {*home.glob('*/*/*.json')} - kept:
        try:
            content = json.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(content, dict) and isinstance(content.get('jbench'), dict):
            with contextlib.suppress(OSError):  # the folder holds more
                path.unlink()
                path.parent.rmdir()
                path.parent.parent.rmdir()


def huggingface(scores: Sequence[Score]) -> str:
    """The `model-index` of a model card, YAML: one model a name, its datasets and their headline metrics."""
    lines = ['model-index:']
    for model in order.of_scores(scores):
        lines += [f'- name: {_yaml(model)}', '  results:']
        for s in (s for s in scores if s.model == model):
            metric = METRICS[s.metric]
            value = s.mean * (100 if metric.unit == 'per cent' else 1)
            lines += [
                '  - task:',
                '      type: brain-decoding',
                f'      name: {_yaml(marks.titled(f"{s.task}@{s.version}", s.changes))}',
                '    dataset:',
                f'      type: {_yaml(s.dataset)}',
                f'      name: {_yaml(marks.titled(s.dataset, s.changes))}',
                '    metrics:',
                f'    - type: {_yaml(HUB_METRICS.get(s.metric, s.metric))}',
                f'      name: {_yaml(_named(s, metric.unit))}',
                f'      value: {value:.6g}',
            ]
    return '\n'.join(lines) + '\n'


def markdown(scores: Sequence[Score]) -> str:
    """Tasks by models, mean ± standard deviation over seeds, the best of each row in bold."""
    head, *rows = _table(scores, '±', escape=lambda t: printable(t).translate(MARKDOWN))
    lines = ['| ' + ' | '.join(row) + ' |' for row in (head, *rows)]
    return '\n'.join([lines[0], '|' + '---|' * len(head), *lines[1:]]) + '\n'


def latex(scores: Sequence[Score]) -> str:
    """The same as a tabular, for the package booktabs."""
    head, *rows = _table(scores, r'$\pm$', bold=r'\textbf{%s}', escape=lambda t: printable(t).translate(LATEX))
    body = '\n'.join('  ' + ' & '.join(row) + r' \\' for row in rows)
    columns = 'll' + 'r' * (len(head) - 2)
    return (
        f'\\begin{{tabular}}{{{columns}}}\n  \\toprule\n  {" & ".join(head)} \\\\\n  \\midrule\n{body}\n'
        '  \\bottomrule\n\\end{tabular}\n'
    )


def _table(
    scores: Sequence[Score], sign: str, bold: str = '**%s**', *, escape: Callable[[str], str]
) -> list[list[str]]:
    """Head and rows: protocol and metric, then a column a model; scores of one row have an equal protocol."""
    models = order.of_scores(scores)
    head = ['task', 'metric', *models]
    rows = [[escape(text) for text in head]]
    for name in dict.fromkeys(s.protocol for s in scores):
        here = {s.model: s for s in scores if s.protocol == name}
        first = next(iter(here.values()))
        best = _best(here.values())
        unit = ' (%)' if METRICS[first.metric].unit == 'per cent' else ''
        row = [
            escape(marks.titled(f'{first.task}@{first.version}/{first.dataset}', first.changes)),
            escape(first.metric + unit),
        ]
        for model in models:
            row.append(_cell(here[model], sign, bold if model in best else '%s') if model in here else '')
        rows.append(row)
    return rows


def _best(scores: Iterable[Score]) -> set[str]:
    found = list(scores)
    sign = 1 if found[0].better == 'higher' else -1
    most = max(sign * s.mean for s in found)
    return {s.model for s in found if sign * s.mean == most and len(found) > 1}


def _cell(score: Score, sign: str, form: str) -> str:
    mean = form % format_score(score.mean, score.metric)
    return f'{mean} {sign} {format_score(score.sd, score.metric)}' if score.sd else mean  # a baseline takes no seed


def _more(s: Score) -> dict[str, Any]:
    return {
        'metric': s.metric,
        'better': s.better,
        'sd': s.sd,
        'n_seeds': s.n_seeds,
        'interval': s.interval,
        'n_subjects': s.n_subjects,
        'chance': s.chance,
        'normalised': s.normalised,
        'origin': s.origin,
        'protocol': s.protocol,
        'changes': s.changes,
    }


def _yaml(text: str) -> str:
    """A text as YAML: a JSON string is one, of what can be printed."""
    return json.dumps(printable(text), ensure_ascii=False)
