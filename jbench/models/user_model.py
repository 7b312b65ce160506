"""One's own model: `--model=path/to/file.py:function` runs a file of the user, without a change in the package.

The name of such a model is function@digest, where the digest is of the file's bytes. So results belong to what the file
said, wherever it lay: after a change the model has another name, and no older result counts for it. For the same reason
a model is ONE file: what lies beside it is not importable (the digest would not cover it); installed packages are.

Nothing of the file runs when a request is read: name and kind come from its syntax tree.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import ModelSpec

KINDS = {('signal', 'n_out'): 'network', ('data',): 'estimator'}  # by the parameters that have no default
EXPECTED = 'a network is a function of (signal, n_out), an estimator one of (data); other parameters need defaults'


def named(text: str) -> bool:
    """Whether a text means one's own model, rather than one of the table."""
    return ':' in text or text.endswith('.py')


def find(text: str) -> ModelSpec:
    """The model that 'path/to/file.py:function' names; the file is read, not run.

    Raises: RequestError for text of another form, a file that is absent or no Python, a function that is not there or
    has other parameters.
    """
    place, _, name = text.rpartition(':')
    if not place or not name.isidentifier():
        raise RequestError(f'--model={text}: expected a file and a function in it, as path/to/file.py:function')
    path = Path(place).expanduser().absolute()
    source = _read(path)
    node = function(path, name, source)
    title = (ast.get_docstring(node) or name).splitlines()[0]
    return ModelSpec(
        name=f'{name}@{_digest(source)}', title=title, family='user', target=f'{path}:{name}', kind=_kind(node, path)
    )


def function(path: Path, name: str, source: bytes | None = None) -> ast.FunctionDef:
    """A function of a file, by its syntax tree: the last of that name, as Python has it.

    Args:
        source: the bytes of the file, where they are read already.

    Raises: RequestError for a file that is absent or no Python, and a function that is not there.
    """
    with explained(f'model {path}:{name}', path):
        tree = ast.parse(_read(path) if source is None else source)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if name not in functions:
        raise unknown(f'function of {path}', name, functions)
    return functions[name]


def file_of(model: ModelSpec) -> Path:
    """The file of a model that `find` found."""
    return Path(model.target.rpartition(':')[0])


@functools.cache
def load(model: ModelSpec) -> Callable[..., Any]:
    """The factory of a model that `find` found; its file runs now, once in a process.

    What the factory and its estimator raise becomes a RequestError that says where in the file.

    Raises: RequestError for a file that fails, or that changed since it was found.
    """
    what, path, name = f'model {model.name}', file_of(model), model.name.partition('@')[0]
    source = _read(path)
    if _digest(source) != model.name.rpartition('@')[2]:
        raise RequestError(f'{what}: {path} changed while the command ran; run it again')
    module = ModuleType(f'{path.stem}@{_digest(source)}')
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses, which flax modules are, look themselves up there
    with explained(what, path):
        exec(compile(source, path, 'exec'), module.__dict__)  # the very bytes of the digest, and no cache of bytecode
        function = getattr(module, name)
        known = inspect.signature(function).parameters

    @functools.wraps(function)
    def made(*args: Any, **options: Any) -> Any:
        with explained(what, path):
            built = function(*args, **{k: v for k, v in options.items() if k in known})
        return built if model.kind == 'network' else _predict(built, what, path)

    return made


@contextlib.contextmanager
def explained(what: str, path: Path) -> Iterator[None]:
    """Inside: whatever the user's own code raises becomes a RequestError with the line of the file."""
    try:
        yield
    except (RequestError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        message = (error.msg if isinstance(error, SyntaxError) else str(error)).strip().partition('\n')[0]
        where = str(path) if line is None else f'{path}, line {line}'
        hint = ''
        if isinstance(error, ModuleNotFoundError) and (path.parent / f'{error.name}.py').exists():
            hint = '; a model is one file, those beside it are not imported: put it in, or install it as a package'
        raise RequestError(f'{what}: {type(error).__name__}: {message} ({where}){hint}') from error


def _predict(built: Any, what: str, path: Path) -> Callable[[Any], Any]:
    """What an estimator returned, its own errors explained too."""
    if not callable(built):
        kind = type(built).__name__
        raise RequestError(f'{what}: an estimator returns a function of windows -> outputs [N, n_out], got a {kind}')

    def predict(windows: Any) -> Any:
        with explained(what, path):
            return built(windows)

    return predict


def _kind(node: ast.FunctionDef, path: Path) -> str:
    """'network' or 'estimator', from the names of the parameters that must be given."""
    given = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    needed = given[: len(given) - len(node.args.defaults)]
    needed += [a.arg for a, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value is None]
    kind = KINDS.get(tuple(n for n in needed if n != 'axis_name'))
    if kind is None:
        raise RequestError(f'{path}, line {node.lineno}: {node.name}({ast.unparse(node.args)}) is no model; {EXPECTED}')
    return kind


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RequestError(f'--model: {path}: {(error.strerror or str(error)).lower()}') from error


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:8]
