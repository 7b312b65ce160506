"""Diagnostics of one run: what its answers rest on, from its result file and its kept weights.

`case.Case` is what is looked at, `examine.examine` computes, `findings.findings` says it in words, `page.page` shows
it.
"""
