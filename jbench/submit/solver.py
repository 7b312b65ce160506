"""The class that an archive of 2026 must have. What stands below the line is copied into `submission.py` last."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark_utils.base_solver import CompetSolver

from jbench.submit.decoder import Decoder

# ---- copied from here on ----


class Solver(CompetSolver):
    """Rebuilds the network from the weights beside this file; nothing is fetched, learnt or written."""

    name = 'NAME'

    def load_model(self, meta: Mapping[str, Any]) -> Decoder:
        """The network, on the device that is asked for."""
        model = Decoder(Path(meta['submission_dir']) / 'weights.npz', meta)
        return model.to(meta['device']).eval()
