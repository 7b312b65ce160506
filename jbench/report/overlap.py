"""Whether a model has seen, before it was tested, the data that it is tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jbench.data.sources.mixture import JOINED
from jbench.models import MODELS
from jbench.plan import select
from jbench.report.aggregate import Score
from jbench.report.published import OURS
from jbench.spec import pretraining

STATUSES = ('clean', 'overlap', 'unknown')


def overlap(score: Score) -> str:
    """'clean', 'overlap', or 'unknown', as is known now; people whom a task learnt beside (`recipe.together`) has shown
    are told by the result alone."""
    if score.seen_beside:
        return 'overlap'
    parts = score.dataset.split(JOINED)
    known = [d for d in map(select.datasets().get, parts) if d is not None]
    name = OURS.get(score.model, score.model) if score.origin == 'published' else score.model
    model = MODELS.get(name.partition(':')[0])
    family = 'user' if model is None and score.origin == 'own' else score.family  # a result may say anything
    names = {*parts, *(alias for d in known for alias in d.aliases)}
    return pretraining.verdict(name, family, names, subjects=score.per_subject, declared=score.pretraining).status


def told(models: Sequence[Mapping[str, Any]]) -> str:
    """How many datasets of their standings (`summary.standings`) models have seen, or may have, as a line."""
    marked = [
        f'{m["title"]} {m["n_overlap"]} overlap, {m["n_unknown"]} unknown of {m["n_datasets"]}'
        for m in models
        if m['n_clean'] < m['n_datasets']
    ]
    others = ['all others clean'] if len(marked) < len(models) else []
    return f'datasets seen in pretraining: {"; ".join(marked + others) if marked else "none, all clean"}'
