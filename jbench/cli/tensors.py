"""Functions of torch tensors, and its modules, as functions of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def is_torch(model: Any) -> bool:
    """Whether it is a module of torch; torch is not imported for it."""
    return any(c.__module__.partition('.')[0] == 'torch' and c.__name__ == 'Module' for c in type(model).__mro__)


def of_torch(model: Any) -> Callable[[np.ndarray], Any]:
    """A module or function of torch tensors, without gradients; a module in evaluation mode, which is put back."""
    import torch

    module = model if isinstance(model, torch.nn.Module) else None
    first = next(module.parameters(), None) if module is not None else None

    def ask(x: np.ndarray) -> Any:
        before = module is not None and module.training
        if module is not None:
            module.eval()
        try:
            with torch.no_grad():
                given = torch.from_numpy(x.copy())
                return model(given if first is None else given.to(first.device))
        finally:
            if module is not None:
                module.train(before)

    return ask
