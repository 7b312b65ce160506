"""What stands around a twin in an archive: windows as the platform gives them come in, answers as it wants them go out.

What stands below the line is copied into `submission.py` behind the twins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jbench.submit.twins import NETWORKS

# ---- copied from here on ----

VOLTS = 0.5  # windows that stay below it are in V, others in uV: no electrode gives half a volt, none alive half a uV


def places(own: Sequence[str], given: Sequence[str] | None, n_given: int) -> list[int]:
    """Where the channels of a network lie among those given: by name, of which case does not count; by place where no
    name is known. n_given: there is none, and zeros stand for it."""
    known = {str(name).upper(): i for i, name in reversed(list(enumerate(given or ())))}
    if not any(name.upper() in known for name in own):
        return [min(i, n_given) for i in range(len(own))]
    return [known.get(name.upper(), n_given) for name in own]


class Decoder(nn.Module):
    """A trained network with all that was done to its windows and its outputs. It keeps nothing from one window to the
    next, and reads each window alone."""

    taken: Tensor  # which of the given channels the network reads
    target_mean: Tensor
    target_sd: Tensor

    def __init__(self, weights: Path, meta: Mapping[str, Any]) -> None:
        super().__init__()
        with np.load(weights, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        self.settings = json.loads(str(arrays.pop('settings')[0]))
        self.names = {name.replace('.', '__'): name for name in arrays}
        for buffer, name in self.names.items():
            self.register_buffer(buffer, torch.from_numpy(arrays[name]))
        scaling = self.settings['scaling'] or {'mean': [0.0], 'sd': [1.0]}
        for part in ('mean', 'sd'):
            self.register_buffer(f'target_{part}', torch.tensor(scaling[part], dtype=torch.float64))
        n_given, own = int(meta['n_chans']), self.settings['ch_names']
        taken = places(own, meta.get('ch_names'), n_given)
        self.register_buffer('taken', torch.tensor(taken))
        self.as_given = taken == list(range(n_given))
        self.width = next((int(meta[k]) for k in ('n_outputs', 'n_classes', 'n_joints') if k in meta), 1)

    def windows(self, x: Tensor) -> Tensor:
        """Windows f32 [B, C, T] as the network learnt them."""
        x = torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
        if not self.as_given:
            x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)[:, self.taken]
        if x.shape[-1] != self.settings['n_times']:  # of another track's size: never of the one that it was made for
            x = F.interpolate(x, size=self.settings['n_times'], mode='linear', align_corners=False)
        if self.settings['unit_unsure']:
            in_volts = x.abs().amax((1, 2), keepdim=True) < VOLTS
            x = torch.where(in_volts, x * 1e6, x)
        x = x * self.settings['factor']
        clamp = self.settings['clamp']
        return x if clamp is None else x.clamp(-clamp, clamp)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs f32 [B, n_out] of windows f32 [B, C, T], in the unit of the targets."""
        weights = {name: getattr(self, buffer) for buffer, name in self.names.items()}
        found = NETWORKS[self.settings['twin']](weights, self.settings, self.windows(x))
        return (found.double() * self.target_sd + self.target_mean).float()

    @torch.no_grad()
    def outputs(self, x: Any) -> Tensor:
        """As `forward`, of an array or tensor."""
        return self(torch.as_tensor(x, dtype=torch.float32, device=self.taken.device))

    def predict(self, x: Any) -> Tensor:
        """What the track asks for: embeddings f32 [B, D], classes i64 [B], seconds f32 [B], angles [B, J, steps]."""
        return self.decided(self.outputs(x))

    def decided(self, found: Tensor) -> Tensor:
        """An answer of outputs [B, n_out]."""
        answer, clip = self.settings['answer'], self.settings['clip']
        if answer == 'class':
            return found[:, : self.width].argmax(1)
        if answer == 'number':
            return found[:, 0] if clip is None else found[:, 0].clamp(*clip)
        if answer == 'joints':
            found = found.reshape(found.shape[0], self.settings['n_joints'], -1)
        return found[:, : self.width]
