"""What XLA is told in tests, whose programs run once or twice: to compile soon."""

from __future__ import annotations

import jax

QUICK = '--xla_backend_optimization_level=1'  # of LLVM; at 0 it trains longer than 1 takes to compile
if jax.__version_info__ < (0, 11):  # later ones may not know them, and XLA ends a process that names what it lacks
    QUICK += ' --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true'
