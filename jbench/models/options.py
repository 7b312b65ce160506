"""Options of a model: the parameters of its factory that have defaults, `--model=eegnet:dropout=0.5`.

They are read from the syntax tree of its file, which does not run before a model is built.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from jbench.models import user_model
from jbench.spec.errors import RequestError, unknown
from jbench.spec.model import ModelSpec
from jbench.spec.overrides import coerce, described

FILLED = ('signal', 'n_out', 'axis_name', 'data')  # parameters that jbench fills
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, str)}
KINDS |= {f'{name} | None': kind | None for name, kind in KINDS.items()}
OPTION = re.compile(r'[A-Za-z_]\w*=')
NOT_PLAIN = object()


class Option(NamedTuple):
    """A parameter that may be asked for."""

    kind: str  # a name in KINDS
    default: Any  # NOT_PLAIN: an expression


def split(text: str) -> tuple[str, dict[str, str]]:
    """'eegnet:dropout=0.5:width=8' as the model and its options, as texts. Raises: RequestError for one given twice."""
    model, *rest = text.split(':')
    given: list[str] = []
    while rest and OPTION.match(rest[-1]):
        given.insert(0, rest.pop())
    options = dict(item.partition('=')[::2] for item in given)
    if len(options) < len(given):
        raise RequestError(f'--model={text}: an option is given twice; give each once')
    return ':'.join((model, *rest)), options


def defaults(model: ModelSpec) -> dict[str, Any]:
    """Every option of a model with its default. Raises: RequestError for a file that is no Python."""
    return {name: None if o.default is NOT_PLAIN else o.default for name, o in known(model).items()}


def known(model: ModelSpec) -> dict[str, Option]:
    """Every option of a model: of the type that its annotation names, else its default has. Not what version 1 of a
    task sets (`ModelSpec.published`), nor what an untrained model has no use for. Raises: as `defaults`."""
    asked = _function(model).args
    positional = (*asked.posonlyargs, *asked.args)
    pairs = [
        *zip(positional[len(positional) - len(asked.defaults) :], asked.defaults, strict=True),
        *((a, value) for a, value in zip(asked.kwonlyargs, asked.kw_defaults, strict=True) if value is not None),
    ]
    fixed = {*FILLED, *dict(model.published)}
    found = {a.arg: _option(a, value) for a, value in pairs if a.arg not in fixed and model.trained}
    return {name: option for name, option in found.items() if option.kind in KINDS}


def with_options(model: ModelSpec, asked: Mapping[str, Any], where: str = '--model') -> ModelSpec:
    """A model with these options, of their types; those that have their default count as not given.

    Args:
        asked: name and value, which may be a text.
        where: what messages call the place of the request.

    Raises: RequestError for an option that the model does not have, or a value of another type.
    """
    if not asked:
        return model
    there = known(model)
    typed = {}
    for name, value in sorted(asked.items()):
        if name not in there:
            if not there:
                raise RequestError(f'{where}: {model.name}:{name}={value}: {model.name} has no options')
            raise unknown(f'option of {model.name}', name, there)
        option = there[name]
        try:
            typed[name] = coerce(value, KINDS[option.kind], name)
        except RequestError:
            raise RequestError(f'{where}: {model.name}:{name}={value}: expected {_expected(option)}') from None
    return dataclasses.replace(model, options=tuple((n, v) for n, v in typed.items() if v != there[n].default))


def _function(model: ModelSpec) -> ast.FunctionDef:
    """What builds a model, as its file says it."""
    module, _, name = model.target.rpartition(':')
    if model.family == 'user':
        return user_model.function(Path(module), name)
    found = find_spec(module)
    assert found is not None and found.origin is not None
    return user_model.function(Path(found.origin), name)


def _option(parameter: ast.arg, value: ast.expr) -> Option:
    try:
        default = ast.literal_eval(value)
    except ValueError:
        default = NOT_PLAIN
    kind = ast.unparse(parameter.annotation) if parameter.annotation else type(default).__name__
    fits = kind == 'float' and type(default) is int
    return Option(kind, float(default) if fits else default)


def _expected(option: Option) -> str:
    default = {'None': 'none', 'True': 'yes', 'False': 'no'}.get(repr(option.default), repr(option.default))
    kind = described(KINDS[option.kind])
    return kind if option.default is NOT_PLAIN else f'{kind}, as its default, {default}'
