"""Arguments that several commands of `jbench report` take."""

from __future__ import annotations

import argparse

from jbench.cli.arguments import Parser


def parser(command: str, words: str) -> Parser:
    """The parser of a command; all of them suggest the flag that was meant."""
    return Parser(prog=f'jbench report {command}'.strip(), description=words, allow_abbrev=False)


def also(p: argparse.ArgumentParser) -> None:
    """`--also=simulated,debug`, as a list of words."""
    said = 'count these too: simulated,partial,debug [none]'
    p.add_argument('--also', default=[], type=lambda text: [w.strip() for w in text.split(',') if w.strip()], help=said)


def flat(given: list[list[str]]) -> list[str]:
    """The folders of an option that takes several and may be repeated."""
    return [folder for some in given for folder in some]


def output_format(p: argparse.ArgumentParser) -> None:
    """`--format`: a table for a person, JSON for a program."""
    p.add_argument('--format', default='table', choices=('table', 'json'), help='on stdout [table]')
