"""How brain-like a model is: its responses to stimuli beside those of neurons, voxels and people (Brain-Score).

`jbench.alignment.score(model, benchmark)` is `jbench.alignment.benchmark.score`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != 'score':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from jbench.alignment.benchmark import score

    return score
