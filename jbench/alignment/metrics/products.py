"""The large matrix products of metrics, in JAX: on the accelerator where there is one, in float32 or float64."""

from __future__ import annotations

import functools
import itertools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

DTYPES = ('float32', 'float64')
SLABS = 3  # of a symmetric product: two thirds of the work; more of them are no faster
SMALL = 256  # rows below which one slab does
ALONE = 3000  # rows up to which LAPACK is faster in one thread, several times so where other processes work too


def product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """a @ b, computed in `dtype`; float64 whatever that is.

    Args:
        a: [n, k].
        b: [k, m].
        dtype: 'float32' or 'float64'.
    """
    return _product(a, b, dtype).astype(float)


def _product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(dtype == 'float64'):
        given = (jnp.asarray(np.asarray(m, dtype)) for m in (a, b))
        return np.asarray(jnp.matmul(*given, precision='highest'))


def add_upper(out: np.ndarray, x: np.ndarray, dtype: str) -> None:
    """Add the products of the first rows of x with all of them to `out`, each pair computed once.

    Args:
        out: [rows, n], added to.
        x: [n, k]; the first `rows` of it are the rows of `out`.
        dtype: 'float32' or 'float64'.
    """
    import jax
    import jax.numpy as jnp

    rows = len(out)
    edges = np.linspace(0, rows, (SLABS if rows >= SMALL else 1) + 1).astype(int)
    with jax.enable_x64(dtype == 'float64'):
        on_device = jnp.asarray(np.asarray(x, dtype))
        for lo, hi in itertools.pairwise(edges.tolist()):
            made = np.asarray(jnp.matmul(on_device[lo:hi], on_device[lo:].T, precision='highest'))
            out[lo:hi, lo:] += made
            out[hi:, lo:hi] += made[:, hi - lo : rows - lo].T


def checked(dtype: str) -> str:
    """The name of a dtype that there is.

    Raises:
        RequestError: for another.
    """
    if dtype not in DTYPES:
        raise RequestError(f'dtype: {dtype!r}; one of {", ".join(DTYPES)}')
    return dtype


def threads(n: int) -> AbstractContextManager[Any]:
    """One thread for the BLAS and LAPACK of NumPy and SciPy, where matrices of n rows are too small to share out."""
    return _controller().limit(limits=1, user_api='blas') if n <= ALONE else nullcontext()


@functools.cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  so that its library is there to be found
    import threadpoolctl

    return threadpoolctl.ThreadpoolController()
