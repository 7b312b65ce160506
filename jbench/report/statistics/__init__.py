"""Comparisons of models, as functions of arrays: no result files in here. docs/statistics.md says what was measured."""
