"""Tries an unpacked archive in a process of its own, as the platform would: torch and NumPy alone, no network.

`python -P trial.py FOLDER TRACK` reads commands from stdin and answers on stdout: a line of JSON each, then the bytes
of the arrays that it names. It imports nothing of jbench, and nothing that the image of a platform may lack.
"""

from __future__ import annotations

import copy
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import os
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

OF_TORCH = {  # what torch itself asks for
    *('torch', 'torchgen', 'functorch', 'typing_extensions', 'sympy', 'mpmath', 'networkx', 'jinja2', 'markupsafe'),
    *('fsspec', 'filelock', 'triton', 'nvidia', 'cuda', 'optree', 'setuptools', 'pkg_resources', '_distutils_hack'),
}
ALLOWED = {*sys.stdlib_module_names, *OF_TORCH, 'numpy', 'submission', 'benchmark_utils'}
CLOSE = 1e-5  # of the same window in other company


class Refuse(importlib.abc.MetaPathFinder):
    """Finds no package but those of a platform's image."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Raises: ModuleNotFoundError for others."""
        if fullname.partition('.')[0] not in ALLOWED:
            raise ModuleNotFoundError(f'{fullname} is not in an archive, which has torch and numpy alone')
        return None


def guard(event: str, args: tuple[Any, ...]) -> None:
    """No network."""
    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname', 'socket.sendto'):
        raise PermissionError(f'an archive must not use the network ({event})')


def stub() -> None:
    """The one module of the platform that archives of 2026 import."""
    package, module = types.ModuleType('benchmark_utils'), types.ModuleType('benchmark_utils.base_solver')
    module.CompetSolver = type('CompetSolver', (), {})  # type: ignore[attr-defined]
    sys.modules |= {'benchmark_utils': package, 'benchmark_utils.base_solver': module}


def submission(folder: Path) -> Any:
    """The module of an archive."""
    spec = importlib.util.spec_from_file_location('submission', folder / 'submission.py')
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules['submission'] = module
    spec.loader.exec_module(module)
    return module


class Tried:
    """An archive, and its model as it was loaded."""

    def __init__(self, folder: Path, track: str) -> None:
        self.folder, self.track, self.module = folder, track, submission(folder)
        self.loaded: Any = None
        self.mine: Any = None  # of the stream
        self.stream: str | None = None

    def load(self, meta: dict[str, Any]) -> None:
        """As the platform loads it, once."""
        if self.track == '2025':
            given = self.module.Submission(meta['sfreq'], 'cpu')
            self.loaded = getattr(given, f'get_model_challenge_{meta["challenge"]}')()
        else:
            self.loaded = self.module.Solver().load_model({**meta, 'submission_dir': self.folder, 'device': 'cpu'})
        self.mine, self.stream = self.loaded, None

    def taken(self) -> tuple[Any]:
        """Which of the given channels the network reads, in its order."""
        return (self.loaded.taken.numpy(),)

    def answer(self, x: Any, stream: str | None = None) -> tuple[Any, Any]:
        """Outputs and what is predicted for windows x [B, C, T]; a stream begins with a copy of what was loaded."""
        if stream is not None and stream != self.stream:
            self.mine, self.stream = copy.deepcopy(self.loaded), stream
            if callable(reset := getattr(self.mine, 'reset_state', None)):
                reset()
        return self.asked(self.mine, x)

    def asked(self, model: Any, x: Any) -> tuple[Any, Any]:
        """Of 2025 both are one: what `forward` gives."""
        import torch

        given = torch.from_numpy(x)
        with torch.inference_mode():
            if self.track == '2025':
                found = model.eval()(given).numpy()
                return found, found
            outputs = model.outputs(given)
            return outputs.numpy(), model.predict(given).numpy()

    def contract(self, x: Any, alone: bool) -> dict[str, Any]:
        """Faults of answers to windows x [B, C, T], in words, and seconds a window; `alone`: in batches of one."""
        import numpy as np

        faults = []
        each = [self.asked(self.loaded, x[k : k + 1])[0] for k in range(len(x))]
        copied = self.asked(copy.deepcopy(self.loaded), x[:1])[0]
        whole, predicted = self.asked(self.loaded, x)
        again = self.asked(self.loaded, x[:1])[0]
        scale = max(1.0, float(np.abs(whole).max()))
        if not np.array_equal(copied, each[0]) or not np.array_equal(again, each[0]):
            faults.append('a window gets another answer from a copy of the model, or after other windows')
        if np.abs(np.concatenate(each) - whole).max() > CLOSE * scale:
            faults.append('a window gets another answer in a batch than alone')
        broken = x.copy()
        broken[0, 0, :5], broken[0, -1] = np.nan, np.inf
        for name, given in (('noise', x), ('zeros', x * 0), ('NaN among the samples', broken)):
            if not np.isfinite(self.asked(self.loaded, given)[0]).all():
                faults.append(f'outputs that are not finite for {name}')
        given, began = x[:1] if alone else x, time.perf_counter()
        for _ in range(3):
            self.asked(self.loaded, given)
        seconds = (time.perf_counter() - began) / 3 / len(given)
        return {'faults': faults, 'seconds': seconds, 'shape': list(predicted.shape), 'dtype': str(predicted.dtype)}

    def script(self, weights: str, meta: dict[str, Any], out: str) -> None:
        """A network as one file of TorchScript; `submission.py` is that of 2026 here."""
        import torch

        model = self.module.Decoder(self.folder / weights, meta).eval()
        example = torch.randn(2, meta['n_chans'], meta['n_times'], generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            torch.jit.trace(model, example, check_trace=False).save(str(self.folder / out))


def serve(tried: Tried, commands: BinaryIO, answers: BinaryIO) -> None:
    """Answers commands until there are no more."""
    import numpy as np

    for line in iter(commands.readline, b''):
        command = json.loads(line)
        arrays = []
        for kind, shape in command['arrays']:
            read = bytearray(commands.read(np.dtype(kind).itemsize * math.prod(shape)))
            arrays.append(np.frombuffer(read, kind).reshape(shape))
        try:
            found = getattr(tried, command['do'])(*arrays, **command['given'])
        except Exception as error:  # told to the process that asked
            tell(answers, error=fault(error))
            continue
        said, given = (None, found) if isinstance(found, tuple) else (found, ())
        tell(answers, [[array.dtype.str, array.shape] for array in given], said=said)
        for array in given:
            answers.write(array.tobytes())
        answers.flush()


def tell(answers: BinaryIO, arrays: Sequence[Any] = (), **what: Any) -> None:
    """One line."""
    answers.write(json.dumps({**what, 'arrays': arrays}).encode() + b'\n')
    answers.flush()


def fault(error: Exception) -> str:
    """An error in one line."""
    text = str(error).strip().partition('\n')[0]
    return f'{type(error).__name__}: {text}'


def main() -> None:
    """The process: stdout belongs to answers, what else is printed goes to stderr."""
    sys.dont_write_bytecode = True
    answers = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)
    sys.meta_path.insert(0, Refuse())
    stub()
    try:
        import torch

        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))  # the process that asks has work, too
        sys.addaudithook(guard)
        tried = Tried(Path(sys.argv[1]), sys.argv[2])
    except Exception as error:
        tell(answers, error=fault(error))
        return
    tell(answers, said=torch.__version__)
    serve(tried, sys.stdin.buffer, answers)


if __name__ == '__main__':
    main()
