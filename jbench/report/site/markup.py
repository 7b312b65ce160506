"""Pieces of pages. Every text of a result file goes through `escape`, or through `script_json`."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from jbench import files
from jbench.report.text import printable

NAV = (
    ('index.html', 'Leaderboard'),
    ('tasks.html', 'Tasks'),
    ('models.html', 'Models'),
    ('datasets.html', 'Datasets'),
    ('brains.html', 'Brains'),
    ('figures.html', 'Figures'),
    ('results.html', 'Results'),
    ('left_out.html', 'Left out'),
)
DOI = re.compile(r'10\.\d{4,9}/[!-~]+')


def clean(text: str) -> str:
    """A text whose characters that cannot be printed are '?'."""
    return text if text.isprintable() else printable(text)


def escape(text: str) -> str:
    """A text between tags, or in quotes within one; characters that cannot be printed become '?'."""
    return html.escape(clean(text))


def tag(name: str, content: str, **attributes: str) -> str:
    """An element; `content` is markup, attributes are texts, and empty ones are left out."""
    given = ''.join(f' {key}="{escape(value)}"' for key, value in attributes.items() if value)
    return f'<{name}{given}>{content}</{name}>'


def link(text: str, address: str) -> str:
    """A text that leads somewhere; '' nowhere."""
    return f'<a href="{escape(address)}">{escape(text)}</a>' if address else escape(text)


def doi(text: str) -> str:
    """A DOI that leads to its page."""
    address = f'https://doi.org/{quote(text, safe="/")}' if DOI.fullmatch(text) else ''
    return f'<a href="{escape(address)}" rel="noreferrer">{escape(text)}</a>' if address else escape(text)


def script_json(value: Any) -> str:
    """A value as JSON inside a script element: no text in it can end the element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(',', ':'))
    return text.replace('<', '\\u003c').replace('>', '\\u003e').replace('&', '\\u0026')


def facts(pairs: Mapping[str, str]) -> str:
    """Names and what they say (markup); those that say nothing are left out."""
    lines = ''.join(f'<dt>{escape(name)}</dt><dd>{value}</dd>' for name, value in pairs.items() if value)
    return f'<dl class="facts">{lines}</dl>' if lines else ''


def page(
    title: str, body: Iterable[str], *, root: str = '', here: str = '', foot: str = '', without: Collection[str] = ()
) -> str:
    """A whole page.

    Args:
        title: of the window; the body brings its own heading.
        body: pieces of markup.
        root: the folder of the site as seen from the page: '' or '../'.
        here: address of the part of the site that the page belongs to.
        foot: a line at the end, as text.
        without: parts of the site that are not there.
    """
    places = ''.join(
        f'<li><a href="{root}{at}"{" aria-current=page" if at == here else ""}>{name}</a></li>'
        for at, name in NAV
        if at not in without
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)} - jbench</title><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="{root}assets/style.css"><script src="{root}assets/theme.js"></script>'
        f'<script src="{root}assets/table.js" defer></script></head><body>'
        '<a class="skip" href="#main">To the content</a>'
        f'<header><a class="name" href="{root}index.html">jbench</a><nav aria-label="Site"><ul>{places}</ul></nav>'
        '<button type="button" id="theme" hidden></button></header>'
        f'<main id="main">{"".join(body)}</main><footer><p>{escape(foot)}</p></footer></body></html>\n'
    )


class Addresses(NamedTuple):
    """Where the pages of what is named are, from the folder of the site."""

    tasks: dict[str, str]  # 'p3@2': address
    models: dict[str, str]
    datasets: dict[str, str]


def addresses(folder: str, names: Iterable[str]) -> dict[str, str]:
    """An address for each name, safe as a file name on every system and different in any case."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(set(names)):
        slug = files.slug(name).rstrip('._')
        if not slug or slug.lower() in taken:
            slug = f'{slug}-{hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]}'
        taken.add(slug.lower())
        found[name] = f'{folder}/{slug}.html'
    return found
