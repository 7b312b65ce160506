"""The page of an autopsy: one HTML file that needs no other."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from jbench.report.autopsy.case import Case
from jbench.report.autopsy.examine import Parts
from jbench.report.autopsy.findings import Statement, findings
from jbench.report.autopsy.pictures import pictures
from jbench.report.dataset.figures import png

SECTIONS = {
    'answers': 'Answers',
    'channel': 'Channels',
    'time': 'Time',
    'frequency': 'Frequencies',
    'attribution': 'Attribution',
    'network': 'Inside of the network',
}
STYLE = """
:root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--line:#d5d5d5;--soft:#555}
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#161616;--line:#444;--soft:#aaa}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;margin:0 auto;
padding:1rem}
h1{font-size:1.5rem}h2{font-size:1.2rem;border-bottom:1px solid var(--line);margin-top:2rem}
table{border-collapse:collapse;font-size:.9rem}.wide{overflow-x:auto}
th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid var(--line);vertical-align:top}
figure{margin:1rem 0}figcaption{color:var(--soft);font-size:.9rem}
img{max-width:100%;background:#fff;border-radius:4px}li{margin:.3rem 0}
"""


def page(case: Case, parts: Parts) -> str:
    """The whole page."""
    said = findings(case, parts)
    title = escape(f'{case.facts.get("model", "")} on {case.facts.get("task", "")}: what its answers rest on')
    simulated = case.facts.get('data', '').startswith('SIMULATED')
    shown = {
        name: (section, caption, png(draw, 'simulated' * simulated))
        for name, (section, caption, draw) in pictures(case, parts).items()
    }
    lines = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>',
        _table([], [[k, v] for k, v in case.facts.items()]),
        '<h2>Findings</h2>',
        _listed(said),
    ]
    if case.network is None:
        lines.append('<p>No weights are kept of this model, so only its answers are looked at.</p>')
    for section, head in SECTIONS.items():
        inside = [_figure(name, *rest[1:]) for name, rest in shown.items() if rest[0] == section]
        inside += _more(section, case, parts)
        if inside:
            lines += [f'<h2>{head}</h2>', *inside]
    return '\n'.join([*lines, '</main></html>']) + '\n'


def _listed(said: Sequence[Statement]) -> str:
    return '<ul>' + ''.join(f'<li>{escape(one.text)}' for one in said) + '</ul>'


def _figure(name: str, caption: str, content: bytes) -> str:
    data, text = base64.b64encode(content).decode(), escape(caption)
    return f'<figure><img alt="{text}" src="data:image/png;base64,{data}"><figcaption>{text}</figcaption></figure>'


def _more(section: str, case: Case, parts: Parts) -> list[str]:
    """Tables of a section."""
    if section == 'answers':
        compared = [
            [one.name, one.value, one.better, one.alike, one.only_mine, one.only_other]
            for one in parts.answers.compared
        ]
        heads = ['result', case.metric, 'this run better by', 'answered alike', 'right here alone', 'right there alone']
        found = ['<h3>Beside other results on the same windows</h3>', _table(heads, compared)] if compared else []
        worst = [
            [one.subject, one.recording, one.onset, one.target, one.answer, one.cost] for one in parts.answers.worst
        ]
        heads = ['subject', 'recording', 'onset (s)', 'target', 'answer', parts.answers.cost_name]
        return [*found, '<h3>Worst answers</h3>', _table(heads, worst)]
    if section == 'network' and parts.layers:
        rows = [
            [
                layer.name,
                ' x '.join(map(str, layer.shape)),
                'none found' if layer.time is None else f'axis {layer.time + 1}',
                layer.mean,
                float(layer.spread.mean()),
                f'{layer.zeros:.1%}',
                f'{len(layer.dead)} of {len(layer.spread)}',
            ]
            for layer in parts.layers
        ]
        heads = ['layer', 'shape', 'time', 'mean', 'mean sd of units', 'zeros', 'dead units']
        return [_table(heads, rows)]
    return []


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = '<tr>' + ''.join(f'<th scope="col">{escape(h)}' for h in heads) if heads else ''
    body = ''.join('<tr>' + ''.join(f'<td>{escape(_text(v))}' for v in row) for row in rows)
    return f'<div class="wide"><table>{head}{body}</table></div>'


def _text(value: Any) -> str:
    if value is None:
        return '-'
    return f'{value:.4g}' if isinstance(value, float | np.floating) else str(value)
