"""Make the weights that ship as jbench_tiny (docs/jbench_tiny.md).

    python benchmarks/jbench_tiny.py --workdir=work --data_dir=DATA [--out=jbench_tiny.safetensors]

The encoder learns twice: to put back hidden samples of two freely licensed sets and of simulated people who see a film
(pretrain/masked, from random weights), then, from there, which moment of the film it is (pretrain/movies). What is kept
is the encoder without a head, with what it was learnt on in its header. Prints the SHA-256 and the size of the file,
and what both objectives scored on people that were not seen.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save

import jbench
from jbench import files
from jbench.models import seen
from jbench.models.model import LAST
from jbench.spec.errors import RequestError

MIXTURE = 'Schalk2004Bci2000+Zyma2019Electroencephalograms+SimulatedFilm'
SEED = 33


def learnt(task: str, weights: str, args: argparse.Namespace) -> tuple[dict[str, Any], Path]:
    """The result of an objective that begins from weights, and the file of its own."""
    (result,) = jbench.run(
        task, 'jbench_tiny', seeds=[SEED], weights=weights, workdir=args.workdir, data_dir=args.data_dir
    )
    return result, next(args.workdir.glob(f'results/**/{result["key"]}/seed{SEED}.safetensors'))


def main() -> int:
    """Learn twice, strip the head, write; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--workdir', type=Path, required=True)
    parser.add_argument('--data_dir', type=Path, required=True)
    parser.add_argument('--out', type=Path, default=Path('jbench_tiny.safetensors'))
    args = parser.parse_args()
    try:
        masked, path = learnt(f'pretrain/masked/{MIXTURE}', 'none', args)
        movies, path = learnt('pretrain/movies/SimulatedFilm', str(path), args)
    except RequestError as error:
        print(f'jbench_tiny: {error}', file=sys.stderr)
        return 2
    encoder = {name: a for name, a in load_file(path).items() if name.partition('.')[0] not in LAST}
    content = seen.labelled(save(encoder, metadata={'format': 'pt'}), seen.declared(path))
    files.write_atomic(args.out, content)
    print(f'{args.out}: {len(content)} bytes, SHA-256 {hashlib.sha256(content).hexdigest()}')
    print(f'learnt on {", ".join(seen.datasets(args.out))}')
    for result in (masked, movies):
        print(f'{result["task"]} on {result["dataset"]}: {result["metrics"]}, chance {result["chance"]}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
