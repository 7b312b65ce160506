"""What XLA is told in tests, whose programs run once or twice: to compile soon."""

from __future__ import annotations

import jax

QUICK = '--xla_backend_optimization_level=1'  # of LLVM; what 0 saves is lost in training
if jax.__version_info__ < (0, 11):  # XLA ends a process that names a flag it lacks
    QUICK += ' --xla_cpu_use_fusion_emitters=false --xla_llvm_disable_expensive_passes=true'
