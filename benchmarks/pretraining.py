"""Does an encoder that was pretrained without labels serve other tasks better than the same encoder untrained?

    python benchmarks/pretraining.py --workdir=work                              # on simulated recordings
    python benchmarks/pretraining.py --workdir=work --data_dir=DATA --real       # on the open sets that lie in DATA

An encoder (--model, default eegnet) is pretrained by --objective (default pretrain/movies) on SimulatedFilm, once for
each seed, on CHANS alone, which all sets here have. Then a linear probe is trained on it for each task and seed, once
from these weights and once from random ones of the same seed: same windows, same head, same schedule.

With --published nothing is pretrained; the model brings its weights (--model=jbench_tiny).

--population=N simulates other people (seed 1 + N of the embedded ones): people by whom no setting of the film was
chosen. The film and its settings stay. Sets and results of theirs lie in a work folder of their own below --workdir;
what a result says of the layout of its set is that of the embedded people.

On stdout, as a table of Markdown: what the pretraining itself scored on people it had not seen; for each task the mean
over seeds from either start, and their difference with a 95 % bootstrap interval over subjects (a subject's scores are
averaged over seeds first). Last line: JSON of the same numbers. Simulated sets are simulated.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import jbench
from jbench.data.sources import simulated
from jbench.spec.errors import RequestError

CHANS = ('F3', 'F4', 'C3', 'Cz', 'C4', 'P3', 'Pz', 'P4')
SIGNAL = {'signal.picks': CHANS, 'signal.sfreq': 100.0, 'signal.band': (0.5, 45.0), 'signal.scaler': 'robust'}
SIMULATED = ('p3', 'motor_imagery')
REAL = ('schalk_fists', 'schalk_eyes', 'zyma_arithmetic', 'smni_alcoholism', 'smni_match')
DRAWS = 10_000


def pretrained(args: argparse.Namespace) -> tuple[list[dict[str, Any]], list[Path]]:
    """Results of pretraining, and the kept weights, one of each a seed."""
    results = jbench.run(
        args.objective,
        args.model,
        seeds=args.seeds,
        workdir=args.workdir,
        simulated=True,
        changes=SIGNAL | {'recipe.max_epochs': args.epochs},
    )
    files = [next(args.workdir.glob(f'results/**/{r["key"]}/seed{r["seed"]}.safetensors')) for r in results]
    return results, files


def compared_at(args: argparse.Namespace) -> dict[str, Any]:
    """What of the tasks is changed: the signal of the pretraining; of published weights the model says it itself."""
    return {} if args.published else SIGNAL


def probe(args: argparse.Namespace, task: str, seed: int, weights: str | None) -> dict[str, Any]:
    """The result of a linear probe on an encoder that starts from a file of weights, `none`, or the published ones."""
    where = {'data_dir': args.data_dir} if args.real else {'simulated': True}
    (result,) = jbench.run(
        task,
        args.model,
        seeds=[seed],
        weights=weights,
        workdir=args.workdir,
        changes=compared_at(args) | {'recipe.adaptation': 'probe'},
        **where,
    )
    return result


def compared(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, Any]:
    """Untrained and pretrained, each a result a seed: means, and the interval of their difference over subjects."""
    subjects = sorted(set.intersection(*({*r['per_subject']} for r in (*before, *after))))
    untrained, trained = (
        np.mean([[r['per_subject'][s] for s in subjects] for r in results], 0) for results in (before, after)
    )
    difference = trained - untrained
    rng = np.random.default_rng(0)
    draws = difference[rng.integers(len(subjects), size=(DRAWS, len(subjects)))].mean(1)
    return {
        'task': before[0]['task'],
        'dataset': before[0]['dataset'],
        'simulated': before[0]['simulated'],
        'metric': before[0]['headline']['name'],
        'n_subjects': len(subjects),
        'untrained': float(np.mean([r['headline']['value'] for r in before])),
        'pretrained': float(np.mean([r['headline']['value'] for r in after])),
        'by_seed': [a['headline']['value'] - b['headline']['value'] for a, b in zip(after, before, strict=True)],
        'difference': float(difference.mean()),
        'interval': [float(q) for q in np.quantile(draws, [0.025, 0.975])],
        'chance': before[0]['chance'],
        'overlap': after[0]['overlap'],
    }


def table(args: argparse.Namespace) -> None:
    """Pretrain, probe, and print the table. Raises: RequestError, as `jbench.run`."""
    tasks = args.tasks or (REAL if args.real else SIMULATED)
    before = [
        [probe(args, task, seed, 'none') for seed in args.seeds] for task in tasks
    ]  # what is not there is told first
    results, files = ([], [None] * len(args.seeds)) if args.published else pretrained(args)
    rows = []
    for task, untrained in zip(tasks, before, strict=True):
        after = [probe(args, task, seed, path and str(path)) for seed, path in zip(args.seeds, files, strict=True)]
        rows.append(compared(untrained, after))
    scores = {name: [r['metrics'][name] for r in results] for name in results[0]['metrics']} if results else {}
    chance = results[0]['chance'] if results else None
    if results:
        print(f'{args.objective} of {args.model} on unseen people, by seed (chance {chance}): {scores}')
    print('| task | dataset | metric | untrained | pretrained | difference (95 % over subjects) | by seed |')
    print('|---|---|---|---|---|---|---|')
    for r in rows:
        low, high = r['interval']
        seeds = ', '.join(f'{d:+.3f}' for d in r['by_seed'])
        print(
            f'| {r["task"]} | {r["dataset"]} | {r["metric"]} | {r["untrained"]:.3f} | {r["pretrained"]:.3f} | '
            f'{r["difference"]:+.3f} ({low:+.3f} to {high:+.3f}, {r["n_subjects"]} subjects) | {seeds} |'
        )
    print(
        json.dumps({'objective': args.objective, 'model': args.model, 'scores': scores, 'chance': chance, 'rows': rows})
    )


def main(argv: list[str]) -> int:
    """Of the people that are asked for; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--workdir', type=Path, required=True)
    parser.add_argument('--data_dir', type=Path)
    parser.add_argument('--real', action='store_true', help='open sets of --data_dir in the place of simulated ones')
    parser.add_argument('--model', default='eegnet')
    parser.add_argument('--published', action='store_true', help='the model brings its weights (jbench_tiny)')
    parser.add_argument('--objective', default='pretrain/movies')
    parser.add_argument('--seeds', type=int, nargs='+', default=[33, 34, 35])
    parser.add_argument('--epochs', type=int, default=30)
    parser.add_argument('--tasks', nargs='+')
    parser.add_argument('--population', type=int, default=0, help='other simulated people; 0: those of jbench')
    args = parser.parse_args(argv)
    if args.population < 0:
        parser.error(f'--population={args.population}: expected 0 or more')
    if args.population:
        simulated.SEED += args.population
        args.workdir /= f'population{args.population}'
    try:
        table(args)
    except RequestError as error:
        print(f'pretraining: {error}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
