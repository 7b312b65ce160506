"""The large matrix products of metrics, in JAX: on the accelerator where there is one, in float32 or float64."""

from __future__ import annotations

import numpy as np

from jbench.spec.errors import RequestError

DTYPES = ('float32', 'float64')


def product(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    """a @ b, computed in `dtype`; float64 whatever that is.

    Args:
        a: [n, k].
        b: [k, m].
        dtype: 'float32' or 'float64'.
    """
    import jax
    import jax.numpy as jnp

    with jax.enable_x64(dtype == 'float64'):
        given = (jnp.asarray(np.asarray(m, dtype)) for m in (a, b))
        made = np.asarray(jnp.matmul(*given, precision='highest'))
    return made.astype(float)


def checked(dtype: str) -> str:
    """The name of a dtype that there is.

    Raises:
        RequestError: for another.
    """
    if dtype not in DTYPES:
        raise RequestError(f'dtype: {dtype!r}; one of {", ".join(DTYPES)}')
    return dtype
