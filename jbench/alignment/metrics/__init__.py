"""Formulas of alignment, on plain arrays: rows are stimuli."""

from __future__ import annotations
