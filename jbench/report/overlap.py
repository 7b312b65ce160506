"""Whether a model has seen, before it was tested, the data that it is tested on."""

from __future__ import annotations

from jbench.data.sources.mixture import JOINED
from jbench.models import MODELS
from jbench.plan import select
from jbench.report.aggregate import Score
from jbench.spec import pretraining


def overlap(score: Score) -> str:
    """'clean', 'overlap', or 'unknown'."""
    parts = score.dataset.split(JOINED)
    known = [d for d in map(select.datasets().get, parts) if d is not None]
    model = MODELS.get(score.model.partition(':')[0])
    family = 'user' if model is None and score.origin == 'own' else score.family  # a result may say anything
    names = {*parts, *(alias for d in known for alias in d.aliases)}
    return pretraining.verdict(
        score.model, family, names, subjects=score.per_subject, declared=score.pretraining
    ).status
