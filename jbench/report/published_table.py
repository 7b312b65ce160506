"""Published scores ranked by the code that ranks our own, against the ranks that were published with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jbench.report import published, ranks, summary
from jbench.report.aggregate import Score
from jbench.report.overlap import told
from jbench.report.text import printable

if TYPE_CHECKING:
    from rich.console import Console


def as_dict(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a CSV file of published scores says about models.

    Returns: `models`, by mean rank, each with the fields of `ranks.Standing`; where the file gives ranks also the means
        of those, `published_mean_rank` and `published_mean_normalised_rank`, and `ranks`: how many there are, how many
        are equal, and what differs, each with the reason. `by_category`, `families`, `rules`.

    Raises: RequestError, as `published.read`.
    """
    scores, given = published.read(path), published.given_ranks(path)
    models = summary.standings(scores, full=True)
    if given:
        said = {line.model: line for line in ranks.standings(scores, full=True, given=given)}
        for line in models:
            other = said[line['model']]
            line['published_mean_rank'] = other.mean_rank
            line['published_mean_normalised_rank'] = other.mean_normalised_rank
    return {
        'models': models,
        'n_scores': len(scores),
        'ranks': _compared(scores, given) if given else None,
        'by_category': ranks.by_category(scores, full=True),
        'families': [gap._asdict() for gap in ranks.gaps(scores, full=True)],
        'rules': list(summary.RULES),
    }


def show(found: Mapping[str, Any], console: Console) -> None:
    """Print the models, and where ranks differ."""
    console.print(summary.grid(found['models']))
    lines = [told(found['models']), *summary.RULES]
    if found['ranks']:
        lines.append(f'ranks: {found["ranks"]["n_equal"]} of {found["ranks"]["n"]} as published')
        for x in found['ranks']['different']:
            lines.append(f'  {x["task"]}/{x["model"]}: {x["rank"]}, published {x["published"]}; {x["why"]}')
    console.print('\n'.join(map(printable, lines)), **summary.PLAIN)


def _compared(scores: list[Score], given: Mapping[ranks.Cell, Mapping[str, int]]) -> dict[str, Any]:
    """Ranks of the means against the given ones."""
    ours, means = ranks.ranks(scores), {(s.origin, s.task, s.dataset, s.model): s.mean for s in scores}
    different = []
    for cell, row in given.items():
        for model, rank in row.items():
            mine = ours.get(cell, {}).get(model)
            if mine == rank:
                continue
            tied = [m for m in row if m != model and means[(*cell, m)] == means[(*cell, model)]]
            why = f'the rounded mean ties with {", ".join(tied)}' if tied else 'no tie explains it'
            place = {'task': cell[1], 'dataset': cell[2], 'model': model}
            different.append({**place, 'rank': mine, 'published': rank, 'why': why})
    n = sum(map(len, given.values()))
    return {'n': n, 'n_equal': n - len(different), 'different': different}
