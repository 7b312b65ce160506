"""How long does a processor compile the program that draws first weights, as jbench compiles it and as JAX would?

    python benchmarks/draws.py [--models=eegnet,deep4net] [--n_chans=22] [--n_times=1000]

Each network by `parallel.draw_program`, then as JAX compiles it; the bits of both draws are compared. Last line on
stdout: JSON, a row per network {model, ours_s, default_s, ratio, same_bits}.
"""

from __future__ import annotations

import os

os.environ.setdefault('NPROC', '2')
os.environ['JAX_PLATFORMS'] = 'cpu'  # elsewhere both ways are one
os.environ['JAX_ENABLE_COMPILATION_CACHE'] = 'false'
os.environ.pop('XLA_FLAGS', None)  # a level named there would be that of both

import argparse
import json
import sys
import time
from functools import partial
from typing import Any

import jax
import numpy as np

from jbench.models import factory
from jbench.plan import select
from jbench.spec.errors import RequestError
from jbench.spec.model import ModelSpec, Signal
from jbench.train.parallel import draw_program, init_state

NAMES = 'eegnet,shallow_fbcsp_net,deep4net,eegnex,eegconformer,atcnet,ctnet,bdtcn'


def row(spec: ModelSpec, signal: Signal) -> dict[str, Any]:
    """Seconds of both ways to compile one draw, and whether they give the same bits."""
    model = factory(spec)(signal, 2)
    took, drawn = list[float](), list[Any]()
    for program in (draw_program(model), jax.jit(partial(init_state, model))):
        lowered = program.lower(jax.ShapeDtypeStruct((), np.uint32))
        began = time.perf_counter()
        compiled = lowered.compile()
        took.append(time.perf_counter() - began)
        drawn.append(jax.tree.leaves(jax.device_get(compiled(np.uint32(33)))))
    same = all(a.tobytes() == b.tobytes() for a, b in zip(*drawn, strict=True))
    ours, default = took
    return {'model': spec.name, 'ours_s': ours, 'default_s': default, 'ratio': default / ours, 'same_bits': same}


def main(argv: list[str]) -> int:
    """Compile, compare, print; status 1 where a draw differs."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--models', default=NAMES)
    p.add_argument('--n_chans', type=int, default=22)
    p.add_argument('--n_times', type=int, default=1000)
    args = p.parse_args(argv)
    try:
        specs = [pick.spec for pick in select.select_models(args.models)]
        if estimators := [m.name for m in specs if m.kind != 'network']:
            raise RequestError(f'--models: {estimators[0]} draws no weights: expected networks')
        signal = Signal(n_chans=args.n_chans, n_times=args.n_times, sfreq=250.0)
        jax.jit(lambda x: x + 1)(np.zeros(2))  # what the first compilation starts is in no row
        rows = []
        for spec in specs:
            rows.append(found := row(spec, signal))
            said = '{model}: {ours_s:.1f} s, by default {default_s:.1f} s, same bits: {same_bits}'
            print(said.format(**found), flush=True)
    except RequestError as e:
        p.error(str(e))
    print(json.dumps(rows))
    return 0 if all(r['same_bits'] for r in rows) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
