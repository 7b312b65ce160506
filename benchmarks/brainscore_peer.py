"""Brain-Score's own metrics as an oracle for those of alignment: run by a Python of their own, on arrays in a file.

brainscore-core 2.5.0 and brainscore-vision 2.4.2 need numpy < 2 and xarray < 2022.6, which jbench does not; for their
metrics alone this is enough, in a virtual environment of Python 3.11:

    pip install 'numpy<2' 'xarray<2022.6' 'pandas<2.1' 'scikit-learn<1.6' scipy netCDF4 PyYAML tqdm boto3 Pillow fire \
        peewee pybtex requests 'importlib-metadata<5' result-caching h5py networkx psutil gitpython psycopg2-binary
    pip install --no-deps brainscore-core==2.5.0 brainscore-vision==2.4.2
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

N, UNITS, NEUROIDS, REPETITIONS, BINS, SUBJECTS = 160, 300, 28, 6, 2, 4
CV = ('pls', 'ridge', 'linear_predictivity', 'neuron_to_neuron')
SPLIT = ('pls', 'ridge', 'neuron_to_neuron', 'ridgecv', 'dual_ridge', 'dual_ridgecv')


def arrays() -> dict[str, np.ndarray]:
    """What both sides score: rows are stimuli, in the order of their ids."""
    draw = np.random.default_rng(7)
    shared = draw.standard_normal((N, 15))
    x = shared @ draw.standard_normal((15, UNITS)) + draw.standard_normal((N, UNITS))
    y = shared @ draw.standard_normal((15, NEUROIDS)) + 2 * draw.standard_normal((N, NEUROIDS))
    later = draw.standard_normal((2, N, 1))
    return {
        'x': x,
        'y': y,
        'x_time': np.stack([x, x + later[0]], axis=2),
        'y_time': np.stack([y, 0.5 * y + later[1]], axis=2),
        'trials': y + 2 * draw.standard_normal((REPETITIONS, N, NEUROIDS)),
        'labels': np.array([f'object{k % 8}' for k in range(N)]),
        'subjects': np.array([f's{k % SUBJECTS}' for k in range(NEUROIDS)]),
    }


# ---- ours ----


def ours(a: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """Value and error (nan where there is none) of each metric."""
    from jbench.alignment import ceilings
    from jbench.alignment.metrics import regression, similarity, spantime

    x, y, labels, half = a['x'], a['y'], a['labels'], N // 2
    exact: dict[str, Any] = {'dtype': 'float64'}
    found = {f'{name}_cv': regression.regress_cv(name, x, y, labels=labels, **exact) for name in CV}
    parts = (x[:half], y[:half], x[half:], y[half:])
    found |= {f'{name}_split': regression.regress_split(name, *parts, **exact) for name in SPLIT}
    found['reverse_pls_cv'] = regression.reverse_cv('pls', x, y, labels=labels, **exact)
    for k, one in enumerate(spantime.spantime_cv('pls', a['x_time'], a['y_time'], labels=labels, **exact)):
        found[f'spantime_pls bin {k}'] = one
    found['cka_cv'] = similarity.cka_cv(x, y, labels=labels, **exact)
    found['rdm_cv'] = similarity.rdm_cv(x, y, labels=labels, **exact)
    found['rdm'] = similarity.rdm_similarity(x, y, **exact)
    found['internal_consistency'] = ceilings.internal_consistency(a['trials'])
    values = {name: (m.value, m.error) for name, m in found.items()}
    nan = float('nan')
    values |= {
        'cka': (similarity.cka(x, y, **exact), nan),
        'cka_biased': (similarity.cka(x, y, biased=True, **exact), nan),
    }
    rdms = [similarity.rdm(y[:, a['subjects'] == s], **exact) for s in np.unique(a['subjects'])]
    bounds = ceilings.rsa_ceiling(np.array(rdms))
    return values | {'rsa_ceiling': (bounds.upper, nan), 'rsa_ceiling lower': (bounds.lower, nan)}


def compare(python: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each metric with both values and how far apart they are.

    Args:
        python: an interpreter with brainscore-vision.
    """
    given = arrays()
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder, 'in.npz'), Path(folder, 'out.npz')
        np.savez(before, **given)
        done = subprocess.run([python, __file__, str(before), str(after)], capture_output=True, text=True)
        if done.returncode:
            yield 'left out', {'why': done.stderr.strip().splitlines()[-1]}
            return
        with np.load(after) as file:
            theirs = {name: tuple(map(float, file[name])) for name in file.files}
    mine = ours(given)
    for name, (value, error) in theirs.items():
        own, own_error = mine[name]
        off = abs(own - value)
        yield (
            name,
            {'ours': own, 'brainscore': value, 'difference': off}
            | ({} if np.isnan(error) or np.isnan(own_error) else {'difference_of_error': abs(own_error - error)}),
        )


# ---- theirs ----


def theirs(a: dict[str, np.ndarray]) -> dict[str, tuple[float, float]]:
    """The same by Brain-Score."""
    from brainscore_core.supported_data_standards.brainio.assemblies import NeuroidAssembly
    from brainscore_vision import load_metric

    ids = np.array([f'im{k:04}' for k in range(N)])

    def assembly(values: np.ndarray, rows: np.ndarray | None = None, **more: Any) -> Any:
        rows = np.arange(N) if rows is None else rows
        units = np.arange(values.shape[1])
        coords = {
            'stimulus_id': ('presentation', ids[rows]),
            'object_name': ('presentation', a['labels'][rows]),
            'neuroid_id': ('neuroid', units),
            'neuroid_num': ('neuroid', units),
            **more,
        }
        dims = ['presentation', 'neuroid']
        if values.ndim == 3:
            bins = np.arange(values.shape[2])
            coords |= {'time_bin_start': ('time_bin', bins * 10), 'time_bin_end': ('time_bin', bins * 10 + 10)}
            dims.append('time_bin')
        return NeuroidAssembly(values, coords=coords, dims=dims)

    def pair(score: Any) -> tuple[float, float]:
        return float(score), float(score.attrs.get('error', np.nan))

    source, target = assembly(a['x']), assembly(a['y'])
    found = {f'{name}_cv': pair(load_metric(f'{name}_cv')(source, target)) for name in CV}
    found['reverse_pls_cv'] = pair(load_metric('reverse_pls_cv')(source, target))
    half = np.arange(N // 2), np.arange(N // 2, N)
    parts = [assembly(a[k][rows], rows) for k in 'xy' for rows in half]
    found |= {f'{name}_split': pair(load_metric(f'{name}_split')(*parts)) for name in SPLIT}
    for name in ('cka_cv', 'rdm_cv', 'cka', 'cka_biased', 'rdm'):
        found[name] = pair(load_metric(name)(source, target))
    timed = load_metric('spantime_pls')(assembly(a['x_time']), assembly(a['y_time']))
    for k in range(BINS):
        error = timed.attrs.get('error')
        found[f'spantime_pls bin {k}'] = float(timed.values[k]), float('nan' if error is None else error.values[k])
    rows = np.tile(np.arange(N), REPETITIONS)
    repeated = ('presentation', np.repeat(np.arange(REPETITIONS), N))
    trials = assembly(a['trials'].reshape(-1, NEUROIDS), rows, repetition=repeated)
    found['internal_consistency'] = pair(load_metric('internal_consistency')(trials))
    score = load_metric('rsa_ceiling')(assembly(a['y'], subject=('neuroid', a['subjects'])))
    found['rsa_ceiling'] = float(score), float('nan')
    found['rsa_ceiling lower'] = score.attrs['lower_bound_loo'], float('nan')
    return found


if __name__ == '__main__':
    with np.load(sys.argv[1]) as file:
        np.savez(sys.argv[2], **theirs({name: file[name] for name in file.files}))
