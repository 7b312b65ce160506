"""Settings that jax reads when it starts."""

from __future__ import annotations

import os
import re
from importlib.metadata import entry_points
from pathlib import Path

from jbench.spec.errors import RequestError

TRITON = 'xla_gpu_enable_triton_gemm'


def without_triton() -> None:
    """Products on an NVIDIA GPU are cuBLAS's alone, unless XLA_FLAGS says otherwise, or names a file. Where XLA may
    write them in Triton, too, it compiles and tries dozens of each, most of a compilation: docs/accelerator.md.

    Nothing is set where no such GPU can be: what is compiled is kept by these flags.
    """
    flags = os.environ.get('XLA_FLAGS', '').strip()
    if TRITON in flags or (flags and not flags.startswith('--')) or os.environ.get('JAX_PLATFORMS') == 'cpu':
        return
    if any('cuda' in plugin.name for plugin in entry_points(group='jax_plugins')):
        os.environ['XLA_FLAGS'] = f'{flags} --{TRITON}=false'.strip()


def environment(workdir: Path, device: str | None, distributed: bool) -> str:
    """Settings that jax reads when it starts: threads (they change the bits), backend, compilation cache, processes.

    Returns: the name of this process, if it is one of several and not the first; else ''.
    """
    simulated = re.search(r'host_platform_device_count=(\d+)', os.environ.get('XLA_FLAGS', ''))
    threads = max(os.cpu_count() or 1, int(simulated[1]) if simulated else 1)  # fewer than devices wait for ever
    os.environ.setdefault('NPROC', str(threads))
    os.environ.setdefault('PYTHONSAFEPATH', '1')  # workers look for modules in the current folder as little as we do
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    os.environ.setdefault('JAX_COMPILATION_CACHE_DIR', str((workdir / 'xla').absolute()))
    os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.1')
    os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')
    os.environ.setdefault('JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES', 'none')  # else keys hold the path of the workdir
    if device:
        os.environ['JAX_PLATFORMS'] = {'gpu': 'cuda'}.get(device, device)
    without_triton()
    if distributed:
        from jbench import processes

        processes.connect()
    if device:
        import jax

        try:
            jax.devices()
        except Exception as error:  # whatever a backend says that cannot start
            what = f' ({str(error).splitlines()[0]})' if str(error) else ''
            remedy = 'leave --device out, or install the jax of that device (docs.jax.dev/en/latest/installation.html)'
            raise RequestError(
                f'--device={device}: jax finds no such device on this machine{what}; {remedy}'
            ) from error
    return processes.name() if distributed else ''
