"""Whether a model has seen, before it was tested, the data that it is tested on."""

from __future__ import annotations

from jbench.models import MODELS
from jbench.plan import select
from jbench.report.aggregate import Score
from jbench.spec import pretraining


def overlap(score: Score) -> str:
    """'clean', 'overlap', or 'unknown'."""
    known = select.datasets().get(score.dataset)
    model = MODELS.get(score.model.partition(':')[0])
    family = 'user' if model is None and score.origin == 'own' else score.family  # a result may say anything
    names = {score.dataset, *(known.aliases if known else ())}
    return pretraining.verdict(
        score.model, family, names, subjects=score.per_subject, declared=score.pretraining
    ).status
