"""Figures of results, each with its data as CSV: `all.write` makes those that some results allow."""
