"""What a command sets before jax starts."""

from types import SimpleNamespace

import pytest

from jbench.cli import environment


@pytest.mark.parametrize(
    ('plugins', 'before', 'after'),
    [
        (['xla_cuda13'], None, '--xla_gpu_enable_triton_gemm=false'),
        (['xla_cuda12'], '--xla_dump_to=x', '--xla_dump_to=x --xla_gpu_enable_triton_gemm=false'),
        (['xla_cuda12'], '--xla_gpu_enable_triton_gemm=true', '--xla_gpu_enable_triton_gemm=true'),
        (['tpu'], '--xla_dump_to=x', '--xla_dump_to=x'),
        ([], '', ''),
    ],
)
def test_products_of_a_gpu_are_not_written_in_triton(
    monkeypatch: pytest.MonkeyPatch, plugins: list[str], before: str | None, after: str
) -> None:
    monkeypatch.setattr(environment, 'entry_points', lambda group: [SimpleNamespace(name=name) for name in plugins])
    monkeypatch.delenv('XLA_FLAGS', raising=False)
    if before is not None:
        monkeypatch.setenv('XLA_FLAGS', before)
    environment.without_triton()
    assert environment.os.environ['XLA_FLAGS'] == after
