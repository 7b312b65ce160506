"""The result files that the repository keeps: small, three seeds a cell, and as many as the docs say."""

from __future__ import annotations

import re

from places import ROOT

LEADERBOARD = ROOT / 'leaderboard'
SEEDS = {f'seed{k}.json' for k in (33, 34, 35)}


def test_results_are_kept_lean_with_three_seeds_each() -> None:
    files = [path for path in LEADERBOARD.rglob('*') if path.is_file()]
    assert all(path.stat().st_size < 1e6 for path in files)
    results = [path for path in files if path.suffix == '.json']
    assert {path.name for path in files if path not in results} == {'README.md'}, 'no predictions, no weights'
    cells = {path.parent for path in results}
    assert cells and all({path.name for path in cell.iterdir()} == SEEDS for cell in cells)


def test_the_documentation_counts_them() -> None:
    results = [*LEADERBOARD.rglob('seed*.json')]
    models = {path.parents[1].name for path in results}  # task@version/dataset/model/key/seed33.json
    said = re.search(r'(\d+) files of (\d+) models', (ROOT / 'docs/open_sets.md').read_text())
    assert said and (int(said[1]), int(said[2])) == (len(results), len(models))
    pattern = r'(\d+)\s+models \(\[docs/open_sets|of (\d+) models on the 17 tasks'
    readme = re.findall(pattern, (ROOT / 'README.md').read_text())
    assert [int(a or b) for a, b in readme] == [len(models)] * 2
