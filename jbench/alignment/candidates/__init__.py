"""Image models that need no download: which there are."""

from __future__ import annotations

from jbench.spec.benchmark import Candidate

CANDIDATES: tuple[Candidate, ...] = ()
