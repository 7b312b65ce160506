"""Gradient flow: how large the gradient of each tensor of weights is where training ended."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from flax.traverse_util import flatten_dict

from jbench.report.autopsy.case import Network

VANISHED = 1e-6  # of the largest gradient beside its weights


class Flow(NamedTuple):
    """Of each tensor, in the order of the network."""

    names: tuple[str, ...]
    gradient: np.ndarray  # norm, mean over batches
    weight: np.ndarray  # norm
    n_batches: int

    @property
    def relative(self) -> np.ndarray:
        """Gradients beside their weights; nan where these are 0, as biases are that nothing trained."""
        return np.divide(self.gradient, self.weight, out=np.full(len(self.names), np.nan), where=self.weight > 0)

    @property
    def vanished(self) -> tuple[str, ...]:
        """Tensors whose gradient is 0, or none beside that of the others: nothing reaches them."""
        least = VANISHED * self.relative.max(initial=0, where=self.weight > 0)
        return tuple(n for n, g, r in zip(self.names, self.gradient, self.relative, strict=True) if not g or r <= least)


def flow(network: Network) -> Flow | None:
    """Norms of the gradient of the loss that was trained, at the tested weights, over a few batches of training
    windows; None where no batch is given."""
    if network.loss is None or not network.batches:
        return None
    params = network.variables['params']
    gradient = jax.jit(jax.grad(network.loss))
    norms = [
        {path: float(np.linalg.norm(np.asarray(g))) for path, g in flatten_dict(gradient(params, batch)).items()}
        for batch in network.batches
    ]
    names = _order(network, list(norms[0]))
    return Flow(
        tuple('.'.join(path) for path in names),
        np.array([np.mean([one[path] for one in norms]) for path in names]),
        np.array([float(np.linalg.norm(np.asarray(flatten_dict(params)[path]))) for path in names]),
        len(norms),
    )


def _order(network: Network, paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Tensors as the network lists them, from input to output; what it does not list comes last."""
    listed = {tuple(t.path[1:]): k for k, t in reversed(list(enumerate(network.model.tensors)))}
    return sorted(paths, key=lambda path: listed.get(path, len(listed)))
