"""Options of a model: the parameters of its factory that have defaults, `--model=eegnet:dropout=0.5`.

They are read from the syntax tree: nothing is imported, and no file of the user's runs, before a model is built.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jbench.models import user_model
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import coerce

GIVEN = ('signal', 'n_out', 'axis_name', 'data')  # parameters that jbench fills
TYPES = {kind.__name__: kind for kind in (bool, int, float, str)}
OPTION = re.compile(r'[A-Za-z_]\w*=')


def split(text: str) -> tuple[str, dict[str, str]]:
    """'eegnet:dropout=0.5:width=8' as the model and its options, as texts."""
    model, *rest = text.split(':')
    named: list[str] = []
    while rest and OPTION.match(rest[-1]):
        named.insert(0, rest.pop())
    return ':'.join((model, *rest)), dict(item.partition('=')[::2] for item in named)


def defaults(model: ModelSpec) -> dict[str, Any]:
    """Every option of a model with its default: a bool, int, float or text. Raises: RequestError for Python that is
    none."""
    path, name = _place(model)
    with user_model.explained(f'model {model.name}', path):
        tree = ast.parse(path.read_bytes())
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name)
    asked = function.args
    positional = (*asked.posonlyargs, *asked.args)
    pairs = [
        *zip(positional[len(positional) - len(asked.defaults) :], asked.defaults, strict=True),
        *((a, value) for a, value in zip(asked.kwonlyargs, asked.kw_defaults, strict=True) if value is not None),
    ]
    found = {a.arg: _plain(value) for a, value in pairs if a.arg not in GIVEN}
    return {option: value for option, value in found.items() if type(value).__name__ in TYPES}


def with_options(model: ModelSpec, asked: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> ModelSpec:
    """A model with these options, of the types of their defaults; those that have their default count as not given.

    Raises: RequestError for an option that the model does not have, or a value of another type.
    """
    asked = dict(asked)
    if not asked:
        return model
    known = defaults(model)
    typed = {}
    for name, value in sorted(asked.items()):
        if name not in known:
            if not known:
                raise RequestError(f'--model={model.name}:{name}={value}: {model.name} has no options')
            raise unknown(f'option of {model.name}', name, known)
        kind = type(known[name])
        try:
            typed[name] = coerce(value, kind, name)
        except RequestError:
            raise RequestError(
                f'--model={model.name}:{name}={value}: expected a value like its default, {known[name]!r} '
                f'({kind.__name__})'
            ) from None
    return dataclasses.replace(model, options=tuple((n, v) for n, v in typed.items() if v != known[n]))


def _place(model: ModelSpec) -> tuple[Path, str]:
    """File and name of the function that builds a model."""
    module, _, name = model.target.rpartition(':')
    if model.family == 'user':
        return Path(module), name
    found = find_spec(module)
    assert found is not None and found.origin is not None
    return Path(found.origin), name


def _plain(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:  # an expression: no option
        return None
