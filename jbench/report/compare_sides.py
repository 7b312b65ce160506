"""Which scores a word of the user means: a model among the results of some folders, a result file, a folder."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from jbench.report.aggregate import Score, scores
from jbench.report.compare import Comparison, compare
from jbench.results.index import Index, scan
from jbench.spec.errors import RequestError, unknown


def compared(a: str, b: str, folders: Sequence[str], also: Collection[str] = ()) -> Comparison:
    """Compare what two words mean.

    Args:
        a, b: a model's name, a result file, or a folder with the results of one model.
        folders: where models that are named are looked for.
        also: results to take that do not count, as `jbench.results.index.scan` has it.
    Raises: RequestError for a name that no result has, a path that is no result, and where nothing is in common.
    """
    named = scan(folders, also) if any(not _is_path(word) for word in (a, b)) else Index([], [])
    known = scores(named.rows)
    first, second = (
        _of_path(word, also) if _is_path(word) else _of_model(word, known, named, folders) for word in (a, b)
    )
    same = first[0].model == second[0].model
    return compare(first, second, (a, b) if same else (first[0].model, second[0].model))


def _is_path(word: str) -> bool:
    """Whether a word is a path: models have neither a slash nor an ending; their own files have a colon."""
    return Path(word).suffix == '.json' or ('/' in word and ':' not in word) or word in ('.', '..')


def _of_model(word: str, known: Sequence[Score], found: Index, folders: Sequence[str]) -> list[Score]:
    """The scores of a model. Raises: RequestError with the models there are."""
    mine = [score for score in known if score.model == word]
    if mine:
        return mine
    if not known:
        raise _no_results(', '.join(folders), found)
    error = unknown('model', word, [score.model for score in known])
    hint = f'\n  {word} is a folder: ./{word} means it' if Path(word).is_dir() else ''
    raise RequestError(f'{error}{hint}\n  in the results under {", ".join(folders)}')


def _of_path(word: str, also: Collection[str]) -> list[Score]:
    """The scores of a result file or of a folder. Raises: RequestError for none, and for several models."""
    path = Path(word)
    if path.suffix == '.json':
        if not path.is_file():
            raise RequestError(f'{word}: no such file; expected a result, as .../seed33.json')
        whole = scan([path.parent], also)
        found = Index(
            [row for row in whole.rows if Path(row.path) == path],
            [left for left in whole.left_out if Path(left.path) == path],
        )
    else:
        found = scan([path], also)
    mine = scores(found.rows)
    models = sorted({score.model for score in mine})
    if not mine:
        raise _no_results(word, found)
    if len(models) > 1:
        raise RequestError(f'{word} has results of several models ({", ".join(models)}): name one, --results={word}')
    return mine


def _no_results(where: str, found: Index) -> RequestError:
    """The error where no result counts, with the reasons of those that do not."""
    if not found.left_out:
        return RequestError(f'no results under {where}; expected .../seed33.json at any depth')
    reasons = list(dict.fromkeys(left.reason.partition(':')[0] for left in found.left_out))
    return RequestError(
        f'no result under {where} counts: {len(found.left_out)} left out ({", ".join(reasons)}); '
        '--also=simulated,partial,debug counts them'
    )
