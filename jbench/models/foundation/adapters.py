"""From the channels of a dataset to those that an encoder was pretrained on: a learned mixture that starts by names.

It is NeuralBench's `ChannelProjection`: a weight [targets, channels] and an offset, trained with the rest. In every
pass a row of the weight whose norm exceeds 1 is scaled to norm 1 (`blocks.max_norm`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from jbench.models.layers import blocks
from jbench.models.torch_weights import Tensor
from jbench.spec.errors import RequestError
from jbench.spec.model import Position, Signal

LIMIT = 1.0  # of the norm of a row
STARTS = ('names', 'random')
Pattern = tuple[tuple[float, ...], ...]  # [targets, channels]

# What datasets call an electrode of the 10-20 system: one map for all of them, as NeuralBench has it.
RENAMED = {
    **{'T3': 'T7', 'T4': 'T8', 'T5': 'P7', 'T6': 'P8'},  # the names before 1991
    **{'EEG 005': 'F3', 'EEG 007': 'F4', 'EEG 017': 'T7', 'EEG 019': 'C3', 'EEG 021': 'Cz'},  # in a helmet of MEG
    **{'EEG 022': 'C4', 'EEG 036': 'P7', 'EEG 045': 'P3', 'EEG 048': 'Pz', 'EEG 051': 'P4'},
    'EEG Fpz-Cz': 'Fz',
    **{'E9': 'Fp2', 'E11': 'Fz', 'E22': 'Fp1', 'E24': 'F3', 'E33': 'F7', 'E36': 'C3', 'E45': 'T7', 'E52': 'P3'},  # EGI
    **{'E58': 'P7', 'E62': 'Pz', 'E70': 'O1', 'E83': 'O2', 'E92': 'P4', 'E96': 'P8', 'E104': 'C4', 'E108': 'T8'},
    **{'E122': 'F8', 'E124': 'F4'},
    **{'5': 'Pz', '8': 'Fz', '11': 'C4', '12': 'P4', '16': 'P3', '17': 'C3', '21': 'F4', '34': 'F3'},  # numbered caps
    **{'36': 'Fp2', '37': 'F8', '39': 'T8', '42': 'O2', '44': 'O1', '47': 'T7', '49': 'F7', '50': 'Fp1'},
}


class Start(NamedTuple):
    """How the weights of a mixture start."""

    pattern: Pattern
    drawn: bool  # whether random numbers are added to the pattern
    offset: bool = False  # whether the offset is drawn too, instead of zero


def same(ch_names: Sequence[str], targets: Sequence[str]) -> Pattern:
    """1 where a channel has the name of a target (upper or lower case), 0 elsewhere: [targets, channels].

    Several channels may have one name after renaming: their row then starts as their sum over its norm.
    """
    names = _canonical(ch_names)
    return tuple(tuple(float(name == target.upper()) for name in names) for target in targets)


def differences(ch_names: Sequence[str], pairs: Sequence[str]) -> Pattern:
    """1 and -1 at the two channels of each pair 'A-B', the first of each name: [pairs, channels].

    A row is 0 where a channel of the pair is missing: half a pair is another signal.
    """
    names = _canonical(ch_names)

    def row(pair: str) -> tuple[float, ...]:
        places = [names.index(name) if name in names else None for name in pair.upper().split('-')]
        if None in places:
            return (0.0,) * len(names)
        return tuple(float(i == places[0]) - float(i == places[1]) for i in range(len(names)))

    return tuple(map(row, pairs))


def used(ch_names: Sequence[str], targets: Sequence[str], pattern: Pattern) -> dict[str, str]:
    """Which channels the start of a mixture takes by their names, and as what: {'T3': 'F7-T7, T7-P7'}."""
    rows = {name: [t for t, row in zip(targets, pattern, strict=True) if row[i]] for i, name in enumerate(ch_names)}
    return {name: ', '.join(found) for name, found in rows.items() if found}


def placed(ch_names: Sequence[str], places: Sequence[Position]) -> dict[str, str]:
    """Channels whose place is known, and where they lie in mm: {'Cz': '0 -9 120'}."""
    found = zip(ch_names, places, strict=False)
    return {name: ' '.join(f'{1000 * v:.0f}' for v in place) for name, place in found if place is not None}


def start(name: str, signal: Signal, asked: str, *, targets: Sequence[str], pattern: Pattern, drawn: bool) -> Start:
    """How the mixture in front of network `name` starts.

    Args:
        name, signal: of the network.
        asked: 'names': as `pattern` says; 'random': as torch draws such a layer.
        targets: what the rows are called.
        pattern: [targets, channels].
        drawn: whether random numbers are added to the pattern.

    Raises: RequestError for another `asked`, or where the pattern is wanted and names no channel.
    """
    if asked not in STARTS:
        raise RequestError(f'{name}: adapter={asked}: expected one of {", ".join(STARTS)}')
    if asked == 'random':
        return Start(((0.0,) * signal.n_chans,) * len(targets), drawn=True, offset=True)
    if not used(signal.ch_names, targets, pattern):
        given = ', '.join(signal.ch_names) or 'channels without names'
        raise RequestError(
            f'{name}: no channel can be placed: got {given}, expected electrodes for {", ".join(targets)}; '
            f'--model={name}:adapter=random learns the mixture of channels from random weights'
        )
    return Start(pattern, drawn)


class Mixture(nn.Module):
    """x [b, c, t] -> [b, targets, t]."""

    begin: Start

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        pattern = self.begin.pattern
        bound = 1 / math.sqrt(len(pattern[0]))

        def draw(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
            noise = jax.random.uniform(key, shape, jnp.float32, -bound, bound) if self.begin.drawn else 0.0
            return jnp.asarray(pattern, jnp.float32) + noise

        weight = self.param('weight', draw, (len(pattern), len(pattern[0])))
        offset = blocks.uniform(bound) if self.begin.offset else nn.initializers.zeros
        bias = self.param('bias', offset, (len(pattern),))
        weight = blocks.max_norm(weight, LIMIT)
        return jnp.einsum('kc,bct->bkt', weight, x, precision=blocks.PRECISION) + bias[:, None]


def tensors(n_targets: int, n_chans: int) -> list[Tensor]:
    """The entries of a `Mixture` called 'adapter', as torch names those of its `Conv1d` with a limit."""
    return [
        Tensor('adapter.bias', (n_targets,), ('params', 'adapter', 'bias')),
        Tensor('adapter.parametrizations.weight.original', (n_targets, n_chans, 1), ('params', 'adapter', 'weight')),
    ]


def _canonical(ch_names: Sequence[str]) -> list[str]:
    return [RENAMED.get(name, name).upper() for name in ch_names]
