"""What a command sets before jax starts."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from jbench.cli import environment


def flags(
    monkeypatch: pytest.MonkeyPatch, workdir: Path, plugins: list[str], before: str | None, device: str | None
) -> str | None:
    """XLA_FLAGS, with these plugins of jax and what was there before."""
    monkeypatch.setattr(environment, 'entry_points', lambda group: [SimpleNamespace(name=name) for name in plugins])
    monkeypatch.setattr(os, 'environ', {k: v for k, v in os.environ.items() if k not in ('XLA_FLAGS', 'JAX_PLATFORMS')})
    if before is not None:
        os.environ['XLA_FLAGS'] = before
    environment.environment(workdir, device, distributed=False)
    return os.environ.get('XLA_FLAGS')


@pytest.mark.parametrize(
    ('plugins', 'before', 'after'),
    [
        (['xla_cuda13'], None, '--xla_gpu_enable_triton_gemm=false'),
        (['xla_cuda12'], '--xla_dump_to=x', '--xla_dump_to=x --xla_gpu_enable_triton_gemm=false'),
        (['xla_cuda12'], '--xla_gpu_enable_triton_gemm=true', '--xla_gpu_enable_triton_gemm=true'),
        (['xla_cuda12'], 'flags.txt', 'flags.txt'),
        (['tpu'], '--xla_dump_to=x', '--xla_dump_to=x'),
        ([], None, None),
    ],
)
def test_products_of_a_gpu_are_not_written_in_triton(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plugins: list[str], before: str | None, after: str | None
) -> None:
    assert flags(monkeypatch, tmp_path, plugins, before, None) == after


def test_the_processor_has_no_flags_of_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert flags(monkeypatch, tmp_path, ['xla_cuda13'], None, 'cpu') is None
