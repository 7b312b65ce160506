"""The matrix products of metrics in float32 or float64: large ones in JAX, but symmetric ones on a CPU in NumPy."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from jbench.spec.errors import RequestError

DTYPES = ('float32', 'float64')
LARGE = 1e8  # multiplications from which a product is made in JAX: a shape costs a tenth of a second to compile
ALONE = 3000  # rows up to which LAPACK is faster in one thread, several times so where other processes work too


def product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """a @ b, computed in `dtype`; float64 whatever that is.

    Args:
        a: [n, k].
        b: [k, m].
        dtype: 'float32' or 'float64'.
    """
    given = np.asarray(a, dtype), np.asarray(b, dtype)
    if len(a) * a.shape[1] * b.shape[1] < LARGE:
        with threads(0):
            return np.matmul(*given).astype(float)
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(dtype == 'float64'):
        return np.asarray(jnp.matmul(jnp.asarray(given[0]), jnp.asarray(given[1]), precision='highest')).astype(float)


def add_upper(out: np.ndarray, x: np.ndarray, dtype: str) -> None:
    """Add the products of the first rows of x with all of them to `out`: in JAX on an accelerator, on a CPU in NumPy.

    Args:
        out: [rows, n], added to.
        x: [n, k]; the first `rows` of it are the rows of `out`.
        dtype: 'float32' or 'float64'.
    """
    rows, x = len(out), np.asarray(x, dtype)
    if not on_accelerator():
        few = rows * x.size < LARGE
        with threads(0) if few else nullcontext():
            out[:, :rows] += x[:rows] @ x[:rows].T  # NumPy takes the symmetric product: half of the work
            if rows < len(x):
                out[:, rows:] += x[:rows] @ x[rows:].T
        return
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(dtype == 'float64'):
        there = jnp.asarray(x)
        out += np.asarray(jnp.matmul(there[:rows], there.T, precision='highest'))


def on_accelerator() -> bool:
    """Whether JAX has something else than a CPU."""
    import jax

    return jax.default_backend() != 'cpu'


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
