"""How often do the intervals of results hold the true score, and how often do guesses "differ from chance"?

    python benchmarks/coverage.py [--trials=1000]

Sets of test subjects are drawn from populations whose true balanced accuracy is known, each is scored as a result is
(`jbench.targets.score.score`), and both are counted:

  normal   the share of right windows of a subject is normal, sd 0.1, around 0.7 (guesses: 0.5)
  skewed   most subjects near the least, few far above: exponential, mean 0.15, from 0.55 (guesses: from 0.35)
  binary   all windows of a subject are right, with a probability of 0.7 (guesses: 0.5), or all are wrong
  unequal  as normal, yet subjects have from 4 to 400 windows, their logarithms uniform

Under `window` a subject has 20 windows of each of two classes. Under `recording` two recordings of one class each, of
10 windows; binary means the recordings. Under `subject` one class each, of 10 windows: every second subject
has the other.

On stdout two tables in Markdown (docs/statistics.md has them), in per cent; the standard error of a trial of 1,000 is
0.7 at 95 and at 5. The last line is a JSON list of rows {level, scores, guesses, n_subjects, per_cent}. Simulated.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
from typing import Any

import numpy as np

from jbench.events import SHIFT
from jbench.metrics import uncertainty
from jbench.targets import score

SUBJECTS = (4, 5, 7, 10, 15, 20, 30, 50)
KINDS = (('window', 'normal'), ('window', 'skewed'), ('window', 'binary'), ('window', 'unequal'))
KINDS += (('recording', 'skewed'), ('recording', 'binary'), ('subject', 'binary'))


def shares(kind: str, n: int, true: float, random: np.random.Generator) -> np.ndarray:
    """The share of right answers of each of n subjects."""
    if kind in ('normal', 'unequal'):
        return random.normal(true, 0.1, n).clip(0, 1)
    if kind == 'skewed':
        return (true + 0.15 * (random.exponential(1, n) - 1)).clip(0, 1)
    return (random.random(n) < true) * 1.0


@functools.cache
def population(kind: str, true: float) -> float:
    """The mean share of right answers, after clipping."""
    if kind == 'binary':
        return true
    return float(shares(kind, 4_000_000, true, np.random.default_rng(1)).mean())


def answers(level: str, kind: str, n: int, true: float, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Predictions of one set of n subjects."""
    n_recordings = 2 if level == 'recording' else 1
    windows = np.full(n * n_recordings, 40 if level == 'window' else 10)
    if kind == 'unequal':
        windows = 2 * np.exp(random.uniform(np.log(2), np.log(200), n)).round().astype(int)
    recording = np.repeat(np.arange(n * n_recordings), windows)
    y = np.concatenate([np.arange(k) for k in windows]) % 2 if level == 'window' else recording % 2
    of = n * n_recordings if level == 'recording' and kind == 'binary' else n
    share = shares(kind, of, true, random)[recording // (n * n_recordings // of)]
    if kind == 'binary':
        right = share > 0.5
    elif level == 'window':
        right = random.random(len(y)) < share
    else:  # whole recordings are right or wrong
        right = np.repeat(random.random(n * n_recordings) < share[:: windows[0]], windows)
    said = np.where(right, y, 1 - y)
    ids = (recording << SHIFT) + np.concatenate([np.arange(k) for k in windows])
    subject = np.array([f's{k:02d}' for k in recording // n_recordings])
    return {'id': ids, 'outputs': np.eye(2)[said] * 4, 'y': y, 'subject': subject}


@functools.cache
def _all_weights(n: int, drawn: Any = uncertainty._weights) -> list[np.ndarray]:
    return list(drawn(n))


def row(asked: tuple[str, str, int, bool, int]) -> dict[str, Any]:
    """One cell of a table."""
    level, kind, n, guesses, trials = asked
    uncertainty._weights = _all_weights  # one set of draws, thousands of scores
    random = np.random.default_rng([n, guesses, KINDS.index((level, kind))])
    true = 0.5 if guesses else 0.7
    truth = population(kind, true)
    found = []
    for _ in range(trials):
        head = score.score('classes', 'bal_acc', answers(level, kind, n, true, random), truth, level)['headline']
        if guesses:
            found.append(bool(head['differs_from_chance']))
        elif head['interval'] is not None:  # subjects that are all alike have none
            found.append(head['interval'][0] <= truth <= head['interval'][1])
    share = round(100 * float(np.mean(found)), 1)
    return {'level': level, 'scores': kind, 'guesses': guesses, 'n_subjects': n, 'per_cent': share}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--trials', type=int, default=1000)
    trials = parser.parse_args().trials
    cells = [(level, kind, n, guesses, trials) for guesses in (False, True) for level, kind in KINDS for n in SUBJECTS]
    with multiprocessing.get_context('spawn').Pool() as pool:
        rows = pool.map(row, cells, chunksize=1)
    for guesses in (False, True):
        print('\nguesses called different from chance, %\n' if guesses else 'intervals that hold the true score, %\n')
        print('| level, scores |', ' | '.join(map(str, SUBJECTS)), '|')
        print('|---' * (len(SUBJECTS) + 1) + '|')
        for level, kind in KINDS:
            mine = [r for r in rows if (r['level'], r['scores'], r['guesses']) == (level, kind, guesses)]
            print(f'| {level}, {kind} |', ' | '.join(f'{r["per_cent"]:.1f}' for r in mine), '|')
    print(json.dumps(rows))


if __name__ == '__main__':
    main()
