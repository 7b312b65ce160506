"""The page: one file, text escaped, every picture drawn and described."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from autopsies import case_of, planted, written

from jbench.report.autopsy.case import Other, head
from jbench.report.autopsy.examine import examine
from jbench.report.autopsy.findings import findings
from jbench.report.autopsy.page import page

BAD = '<script>alert(1)</script>'


@pytest.fixture(scope='module')
def made():
    case = planted()
    weights = np.asarray(case.network.variables['params']['weights'])

    def apply(p, x):
        h = x * p['weights'][..., 1]
        return h.sum((1, 2))[:, None] * np.float32([0, 1]), {f'layer {BAD}': h}

    case = case_of(written(apply, {'weights': weights}), case.network.x, case.answers['y'])
    batch = {'x': case.network.x[:8]}
    loss = lambda p, batch: (apply(p, batch['x'])[0] ** 2).mean()  # noqa: E731
    case = case._replace(
        network=case.network._replace(loss=loss, batches=(batch,)),
        facts={'task': f'task {BAD}', 'model': 'net', 'data': 'measured recordings'},
        classes=(f'left {BAD}', 'right'),
        others=(Other(f'other {BAD}', 0.5, np.zeros_like(case.answers['outputs'])),),
        places=tuple((f'run {BAD}', 1.0 * k) for k in range(len(case.answers['id']))),
        head=head(case.signal.ch_names),
    )
    parts = examine(case)
    return case, parts, page(case, parts)


@pytest.mark.slow
def test_text_is_escaped_and_nothing_is_asked_of_the_network(made):
    case, parts, text = made
    assert '<script' not in text and '&lt;script&gt;' in text
    pictures = re.findall(r'src="([^"]*)"', text)
    assert len(pictures) >= 8 and all(p.startswith('data:image/png;base64,') for p in pictures)
    rest = re.sub(r'src="[^"]*"', '', text)
    assert not re.search(r'https?://|url\(|<link|@import', rest)
    for one in findings(case, parts):
        assert one.text.replace('<', '&lt;').replace('>', '&gt;') in text
    for picture in pictures:
        assert base64.b64decode(picture.partition(',')[2]).startswith(b'\x89PNG')
    assert text.count('alt="') == len(pictures) and 'alt=""' not in text
    assert 'prefers-color-scheme:dark' in text and 'name="viewport"' in text


@pytest.mark.slow
def test_tables_are_closed_and_headed(made):
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open = {'table': 0, 'div': 0, 'figure': 0, 'ul': 0}
            self.heads: list[str] = []

        def handle_starttag(self, tag, attrs):
            self.open[tag] = self.open.get(tag, 0) + 1
            self.heads += [tag] * (tag in ('h1', 'h2'))

        def handle_endtag(self, tag):
            self.open[tag] -= 1

    tags = Tags()
    tags.feed(made[2])
    assert {tag: tags.open[tag] for tag in ('table', 'div', 'figure', 'ul')} == dict.fromkeys(
        ('table', 'div', 'figure', 'ul'), 0
    )
    assert tags.heads[0] == 'h1' and tags.heads.count('h2') >= 5
    assert 'run &lt;script' in made[2], 'the worst answers with their recordings'


@pytest.mark.slow
def test_a_run_without_weights_has_a_page_of_its_answers(made):
    case, *_ = made
    case = case._replace(network=None)
    text = page(case, examine(case))
    assert 'No weights are kept' in text and 'Worst answers' in text and 'Channels' not in text


def test_channels_without_a_place_have_no_head():
    assert head(('a', 'b', 'c', 'd')) is None and head(('C3', 'C4', 'Cz')) is None
    assert head(('C3', 'C4', 'Cz', 'Oz', 'nowhere')).ch_names == ['C3', 'C4', 'Cz', 'Oz']
