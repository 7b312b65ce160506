"""What convolutional networks of images consist of: weights as torch keeps them, images [b, y, x, channel]."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import lax

from jbench.models.layers import blocks
from jbench.models.torch_weights import Tensor


class Conv(nn.Module):
    """Convolution of x [b, y, x, n_in] with weight [n_out, n_in, k, k], zeros around."""

    n_in: int
    n_out: int
    kernel: int
    stride: int = 1
    padding: int = 0
    bias: bool = True

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        shape = (self.n_out, self.n_in, self.kernel, self.kernel)
        x = convolve(x, self.param('weight', nn.initializers.zeros, shape), self.stride, self.padding)
        return x + self.param('bias', nn.initializers.zeros, (self.n_out,)) if self.bias else x


def convolve(x: jax.Array, weight: jax.Array, stride: int, padding: int) -> jax.Array:
    """x [b, y, x, n_in] with weight [n_out, n_in, k, k], `padding` zeros on each side."""
    return lax.conv_general_dilated(
        x,
        weight,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=('NHWC', 'OIHW', 'NHWC'),
        precision=blocks.PRECISION,
    )


def max_pool(x: jax.Array, window: int, stride: int, padding: int = 0) -> jax.Array:
    """Largest of each window of x [b, y, x, c]; what fills no window is dropped."""
    pads = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, window, window, 1), (1, stride, stride, 1), pads)


def as_torch(x: jax.Array) -> jax.Array:
    """x [b, y, x, c] as [b, c, y, x], the order of units in torch."""
    return jnp.moveaxis(x, -1, 1)


def conv_tensors(name: str, path: tuple[str, ...], n_in: int, n_out: int, kernel: int) -> list[Tensor]:
    """The two entries of a `torch.nn.Conv2d` called `name`, for a `Conv` at `path`."""
    return [
        Tensor(f'{name}.weight', (n_out, n_in, kernel, kernel), ('params', *path, 'weight')),
        Tensor(f'{name}.bias', (n_out,), ('params', *path, 'bias')),
    ]
