"""A score as people read it."""

from __future__ import annotations

from jbench.spec.metrics import METRICS


def format_score(value: float | None, metric: str) -> str:
    """A score as tables show it: accuracies in per cent with one decimal, others as they are, '-' for none."""
    if value is None:
        return '-'
    if METRICS[metric].unit == 'per cent':
        return f'{100 * value:.1f}'
    return f'{value:.3f}' if abs(value) < 10 else f'{value:.1f}'
