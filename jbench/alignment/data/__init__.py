"""Recorded sets: which there are, and where their files lie."""

from __future__ import annotations
