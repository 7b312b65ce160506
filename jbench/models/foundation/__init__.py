"""Pretrained encoders, a file each: the lines of the table of models that are called `foundation`."""

from __future__ import annotations

from jbench.spec.model import ModelSpec

MODELS: tuple[ModelSpec, ...] = ()
