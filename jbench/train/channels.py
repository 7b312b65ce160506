"""Whether a network can place the channels of a dataset, asked before its recordings are read."""

from __future__ import annotations

from pathlib import Path

from jbench.data.prepare import build_set, header
from jbench.data.windows import n_samples
from jbench.models.model import Model
from jbench.spec.cell import Cell
from jbench.spec.errors import RequestError
from jbench.spec.model import Signal
from jbench.train.programs import asked_signal, build


def placed(cell: Cell, data_dir: Path | None, workdir: Path, look: header.ReadHead = header.head) -> Model | None:
    """A network that asks for channels, built for one output and those of the first recording, of which the head alone
    is read. What is wrong with the recording itself is left to the preparation, which tells it of all.

    Returns: None for a model that asks for none, or where there is no such recording or its set is there.

    Raises: RequestError where the network refuses them.
    """
    if cell.model.kind != 'network' or not {'ch_names', 'positions'} & {*cell.model.asks}:
        return None
    folder, refs = build_set.locate(cell.task, cell.dataset, data_dir, workdir)
    if not refs or folder is None or build_set.is_ready(folder):
        return None
    seen = look(cell.task.signal, cell.dataset, refs[0])
    if seen is None:
        return None
    spec = cell.task.signal
    n_times = n_samples(cell.task.window.duration, spec.sfreq)
    like = Signal(n_chans=len(seen.ch_names), n_times=n_times, sfreq=spec.sfreq, ch_names=seen.ch_names)
    try:
        return build(cell.model, asked_signal(cell.model, like), 1, cell.task.recipe)
    except RequestError as error:
        raise RequestError(f'{cell.dataset.name}: {error}') from error
