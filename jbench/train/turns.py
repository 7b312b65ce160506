"""Which of several tasks learns at which step, and its batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jbench.data.load.loader import Loader, generator, n_batches
from jbench.train.parallel import shard


def shares(n_windows: Sequence[int], n_steps: int, temperature: float) -> list[int]:
    """How many of the steps of an epoch each task has: at least one, in sum `n_steps` where that is enough.

    In proportion to n_windows ** (1 / temperature); what is left over by rounding down goes to the largest remainders.
    """
    logs = np.log(np.maximum(n_windows, 1)) / temperature
    wanted = np.exp(logs - logs.max())
    wanted *= n_steps / wanted.sum()
    out = np.maximum(np.floor(wanted), 1).astype(int)
    for k in np.argsort(np.floor(wanted) - wanted, kind='stable')[: max(n_steps - int(out.sum()), 0)]:
        out[k] += 1
    while out.sum() > max(n_steps, len(out)):
        out[out.argmax()] -= 1
    return [int(n) for n in out]


def turns(counts: Sequence[int], epoch: int) -> np.ndarray:
    """The task of each step of an epoch: a function of the counts and the epoch alone."""
    return generator(epoch).permutation(np.repeat(np.arange(len(counts)), counts))


def batches(train: Loader, done: int) -> Iterator[dict[str, np.ndarray]]:
    """Batches of a task from number `done` on, epoch after epoch of its own, as `shard` splits them.

    Arrays are valid until the next batch is asked for: by then a step on them must be over.
    """
    epoch, k = divmod(done, n_batches(len(train), train.batch_size))
    while True:
        for chunk in train.chunks(epoch, k // train.chunk):
            arrays = shard(chunk)
            for j in range(k % train.chunk, chunk.n):
                yield {name: a[:, j] for name, a in arrays.items()}
            k = 0
        epoch += 1
