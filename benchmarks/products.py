"""How many operations the matrix products and convolutions of a step are, ours or torch's, and how many a device or
these cores do in a second at most; the same program with products of another precision."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

Jaxprs = core.ClosedJaxpr | core.Jaxpr
SIZES, TRIES = (512, 1024, 2048), 12  # of matrices whose product tells what cores can do at most
PAUSE = 0.3  # s in which threads of the other library, which wait awake, go to sleep
PRODUCTS = ('dot_general', 'conv_general_dilated')


class Peak(NamedTuple):
    """What a device does at most, as its maker says it: dense products, 1e12 operations a second; memory, 1e9 bytes."""

    float32: float
    tensorfloat: float  # float32 products as the device shortens them by default
    bfloat16: float
    memory: float

    def of(self, precision: str) -> float:
        """Operations a second (1e12) of a step in this precision."""
        return {'float32': self.float32, 'default': self.tensorfloat, 'bfloat16': self.bfloat16}[precision]


# Data sheets of NVIDIA and the pages of Cloud TPU, without sparsity; the beginning of jax's name of a device, the
# longest that fits. Devices without a shorter float32, or without bfloat16, compute both as float32. A TPU has no
# float32 products: six of bfloat16 make one in full, and by default it takes a single one. Of TPU v2 and v3 a device is
# one of two cores.
PEAKS = {
    'NVIDIA H200': Peak(67, 494.5, 989.4, 4800),
    'NVIDIA H100 NVL': Peak(60, 417.5, 835.5, 3900),
    'NVIDIA H100 PCIe': Peak(51, 378, 756, 2000),
    'NVIDIA H100': Peak(67, 494.5, 989.4, 3350),
    'NVIDIA A100-SXM4-80GB': Peak(19.5, 156, 312, 2039),
    'NVIDIA A100-SXM4-40GB': Peak(19.5, 156, 312, 1555),
    'NVIDIA A100 80GB PCIe': Peak(19.5, 156, 312, 1935),
    'NVIDIA L4': Peak(30.3, 60.5, 121, 300),
    'NVIDIA GeForce RTX 4090': Peak(82.6, 82.6, 165.2, 1008),
    'NVIDIA GeForce RTX 3090': Peak(35.6, 35.6, 71, 936),
    'Tesla V100-SXM2': Peak(15.7, 15.7, 15.7, 900),
    'Tesla T4': Peak(8.1, 8.1, 8.1, 320),
    'TPU v2': Peak(22.5 / 6, 22.5, 22.5, 350),
    'TPU v3': Peak(61.5 / 6, 61.5, 61.5, 450),
    'TPU v4': Peak(275 / 6, 275, 275, 1228),
    'TPU v5 lite': Peak(197 / 6, 197, 197, 819),
    'TPU v5': Peak(459 / 6, 459, 459, 2765),
    'TPU v5p': Peak(459 / 6, 459, 459, 2765),
    'TPU v6 lite': Peak(918 / 6, 918, 918, 1640),
}


def peak(kind: str) -> Peak | None:
    """The row of a device by jax's name of it (`device_kind`); None for one that is not in the table."""
    fitting = [name for name in PEAKS if kind.startswith(name) and not kind[len(name) : len(name) + 1].isalnum()]
    return PEAKS[max(fitting, key=len)] if fitting else None


def operations(jaxpr: Jaxprs) -> float:
    """Multiplications and additions of the matrix products, convolutions and Fourier transforms of a program.

    As written: loops of known length count so often, others once (a step of a run is the body of such a one); of
    branches the dearest. Nothing else counts: activations, norms, the optimiser.
    """
    return sum(_of(eqn) for eqn in _inner(jaxpr).eqns)


def _of(eqn: Any) -> float:
    name, params = eqn.primitive.name, eqn.params
    if name == 'dot_general':
        (contracted, _), _ = params['dimension_numbers']
        left = eqn.invars[0].aval.shape
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * math.prod(left[i] for i in contracted)
    if name == 'conv_general_dilated':
        taps, spec = eqn.invars[1].aval.shape, params['dimension_numbers'].rhs_spec
        each = math.prod(taps) / taps[spec[0]] / math.prod(params['lhs_dilation'])  # of its zeros none
        return 2.0 * math.prod(eqn.outvars[0].aval.shape) * each
    if name == 'fft':
        n = math.prod(params['fft_lengths'])
        longer = max(math.prod(v.aval.shape) for v in (*eqn.invars, *eqn.outvars))
        real = params['fft_type'] in (jax.lax.FftType.RFFT, jax.lax.FftType.IRFFT)
        return (2.5 if real else 5.0) * longer * math.log2(max(n, 2))
    inner = [operations(j) for j in _jaxprs(params)]
    if name == 'cond':
        return max(inner)
    return sum(inner) * (params['length'] if name == 'scan' else 1)


def torch_operations(net: Any, inputs: Any, labels: Any) -> dict[str, float]:
    """Multiplications and additions of the matrix products and convolutions of a step of a network of torch, as torch
    counts them for two of the windows: {'train': of the loss and its gradient, 'eval': of the logits}. Its running
    statistics move."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    few, counts = 2, {}
    for phase in ('train', 'eval'):
        net.train(phase == 'train')
        # attention in one piece, and layers of torch without a gradient, would not be counted
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            loss = torch.nn.functional.cross_entropy(net(inputs[:few]), labels[:few])
            if phase == 'train':
                loss.backward()
        counts[phase] = counter.get_total_flops() * len(inputs) / few
    net.zero_grad(set_to_none=True)
    return counts


def rates_of_cores() -> dict[str, float]:
    """Operations a ms of the fastest product of large square matrices in float32 here, by torch and by XLA."""
    import torch

    product, least = jax.jit(jnp.matmul), {'torch': math.inf, 'XLA': math.inf}
    for n in SIZES:
        a = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
        ours, theirs = jnp.asarray(a), torch.tensor(a)
        calls = {'XLA': lambda x=ours: jax.block_until_ready(product(x, x)), 'torch': lambda x=theirs: x @ x}
        for name, call in calls.items():
            time.sleep(PAUSE)
            for _ in range(TRIES):
                began = time.perf_counter()
                call()
                least[name] = min(least[name], 1e3 * (time.perf_counter() - began) / (2.0 * n**3))
    return {name: 1 / each for name, each in least.items()}


def by_default(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with every product and convolution at the precision that jax takes by default.

    Networks ask for the highest (`jbench.models.layers.blocks.PRECISION`): this says what it costs, and brings.
    """

    def changed(*args: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        found = core.jaxpr_as_fun(_plain(closed))(*jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shape), found)

    return changed


def _plain(jaxpr: Any) -> Any:
    """A program whose products name no precision."""
    inner = _inner(jaxpr)
    plain = inner.replace(eqns=[_without_precision(eqn) for eqn in inner.eqns])
    return plain if inner is jaxpr else jaxpr.replace(jaxpr=plain)


def _without_precision(eqn: Any) -> Any:
    params = {name: _changed(value) for name, value in eqn.params.items()}
    return eqn.replace(params=params | ({'precision': None} if eqn.primitive.name in PRODUCTS else {}))


def _changed(value: Any) -> Any:
    if isinstance(value, Jaxprs):
        return _plain(value)
    if isinstance(value, tuple) and any(isinstance(v, Jaxprs) for v in value):  # of branches
        return tuple(_changed(v) for v in value)
    return value


def _jaxprs(params: dict[str, Any]) -> Iterator[Jaxprs]:
    """Programs within an operation."""
    for value in params.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            if isinstance(each, Jaxprs):
                yield each


def _inner(jaxpr: Jaxprs) -> Any:
    """The program itself, without its constants (from jax 0.11 on both are one)."""
    return jaxpr.jaxpr if isinstance(jaxpr, core.ClosedJaxpr) else jaxpr
