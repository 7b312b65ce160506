"""Whether a model has seen, before it was tested, the data that it is tested on."""

from __future__ import annotations

from jbench.plan import select
from jbench.report.aggregate import Score

FRESH = ('classic', 'baselines')  # families of models that learn from the training part alone


def overlap(score: Score) -> str:
    """'clean', 'overlap', or 'unknown': the model starts from weights, and does not say of which data."""
    if not score.pretraining:
        return 'clean' if score.family in FRESH else 'unknown'
    known = select.datasets().get(score.dataset)
    names = {score.dataset, *(known.aliases if known else ())}
    return 'overlap' if {n.lower() for n in names} & {n.lower() for n in score.pretraining} else 'clean'
