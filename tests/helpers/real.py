"""Real recordings through the command line, and the two decoders whose scores on them are known."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from pyriemann.estimation import Covariances
from pyriemann.tangentspace import TangentSpace
from scipy.signal import butter, sosfiltfilt
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score

from jbench import run
from jbench.data.load import prepared_set
from jbench.plan import cells, select
from jbench.results import result_file

KALUNGA, ZYMA, SCHALK = 'Kalunga2016Online', 'Zyma2019Electroencephalograms', 'Schalk2004Bci2000'
FLICKERS = {'2': 13.0, '3': 21.0, '4': 17.0}  # Hz by event code: not in the order of the codes


class Windows(NamedTuple):
    """All windows of a prepared set: x f32 [N, C, T] without clamp, class names [N], subjects [N], Hz."""

    x: np.ndarray
    label: np.ndarray
    subject: np.ndarray
    sfreq: float


def command(*args: object) -> int:
    """The exit status of `jbench` with these arguments, run here; the environment is left as it was."""
    with mock.patch.dict(os.environ):
        return run.main([str(a) for a in args])


def found(workdir: Path, dataset: str) -> list[dict[str, Any]]:
    """All results on a dataset."""
    return [r for r in result_file.load_all(workdir) if r['dataset'] == dataset]


def windows(task: str, dataset: str, data_dir: Path, workdir: Path, *changes: str) -> Windows:
    """The windows of a task, prepared in `workdir` by the command line with `--set` changes, and read by the loader."""
    places = f'--data_dir={data_dir}', f'--workdir={workdir}'
    assert command(f'--task={task}/{dataset}', '--prepare', *places, *(f'--set={c}' for c in changes)) == 0
    (manifest,) = (workdir / 'prepared' / dataset).glob('*/manifest.json')
    chosen = cells.apply(select.tasks()[task][0], select.find_dataset(dataset), cells.parse_overrides(changes))
    data = prepared_set.open_set(manifest.parent, chosen)
    assert json.loads(manifest.read_text())['n_windows'] == len(data.y)
    x = prepared_set.read(data, np.arange(len(data.y)), None)
    return Windows(x, np.array(data.classes)[data.y], data.subjects, data.signal.sfreq)


def flicker_accuracy(w: Windows, flickers: dict[str, float] = FLICKERS, sfreq: float | None = None) -> float:
    """Share of SSVEP windows whose frequency canonical correlation finds, without training; rest is left out.

    Args:
        w: windows of the ssvep task.
        flickers: the frequency (Hz) of each event code.
        sfreq: Hz to believe instead of the true one.
    """
    t = np.arange(w.x.shape[-1]) / (sfreq or w.sfreq)
    waves = {hz: basis(f(2 * np.pi * k * hz * t) for k in (1, 2) for f in (np.sin, np.cos)) for hz in flickers.values()}
    used = np.isin(w.label, list(flickers))
    x = sosfiltfilt(butter(4, (5, 45), 'bandpass', fs=w.sfreq, output='sos'), w.x[used])
    hits = []
    for window, label in zip(x, w.label[used], strict=True):
        mine = basis(window)
        score = {hz: np.linalg.svd(mine.T @ wave, compute_uv=False)[0] for hz, wave in waves.items()}
        hits.append(max(score, key=score.__getitem__) == flickers[label])
    return float(np.mean(hits))


def basis(rows: Iterable[np.ndarray]) -> np.ndarray:
    """An orthonormal basis [T, K] of the centred rows [K, T]."""
    a = np.stack(list(rows), 1)
    return np.linalg.qr(a - a.mean(0))[0]


def covariances(w: Windows) -> np.ndarray:
    """Oracle-approximating covariance of each window [N, C, C], on a scale near 1."""
    x = w.x.astype(np.float64)
    return Covariances('oas').transform(x / x.std())


def tangent_accuracy(c: np.ndarray, label: np.ndarray, folds: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """Balanced accuracy of logistic regression (C 0.1) on tangent vectors, predicted fold by fold."""
    predicted = np.empty_like(label)
    for train, test in folds:
        space = TangentSpace('riemann').fit(c[train])
        model = LogisticRegression(C=0.1, max_iter=1000).fit(space.transform(c[train]), label[train])
        predicted[test] = model.predict(space.transform(c[test]))
    return float(balanced_accuracy_score(label, predicted))
