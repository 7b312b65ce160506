"""Scores of single subjects as a pandas DataFrame, with the names of columns that MOABB's results have."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jbench.report import aggregate
from jbench.results import index
from jbench.results.index import Row
from jbench.spec.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas

MOABB = (  # its columns, in its order
    *('score', 'time', 'samples', 'samples_test', 'n_classes', 'subject', 'session', 'channels', 'n_sessions'),
    *('dataset', 'pipeline'),
)
OURS = (
    *('seed', 'task', 'version', 'category', 'device', 'family', 'metric', 'better', 'level', 'chance', 'headline'),
    *('n_parameters', 'simulated', 'suite', 'key', 'protocol', 'changes', 'path'),
)
ALL = 'all'  # session: a score of a subject is over all that was tested of it


def frame(
    folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], also: Collection[str] = ()
) -> pandas.DataFrame:
    """One line a subject and seed, of the results below some folders that count (`aggregate.comparable`).

    Example: jbench.report.frame('jbench-work').groupby(['dataset', 'pipeline']).score.mean()

    Args:
        folders: one or several, as of `index.scan`; so is `also`.

    Returns: columns as MOABB's: `score` (headline metric of the subject), `time` (seconds of the fit, of all subjects
        together), `samples` (training windows, of all subjects), `n_classes` (of classes), `subject`, `session`
        ('all'), `channels`, `dataset`, `pipeline` (the model); `samples_test` and `n_sessions` are not in a result:
        nan. Then ours, `OURS`; `headline` is the score over all subjects, `changes` how the protocol departs from that
        of the task ('simulated; debug', '' where it does not). Compare only lines of equal `protocol`. What
        was left out, (path, reason), is in `attrs['left_out']`.

    Raises: RequestError for a folder that is not there; MissingExtraError without pandas.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingExtraError('pandas', 'report', 'a DataFrame of results') from error
    found = index.scan([folders] if isinstance(folders, str | os.PathLike) else folders, also)
    rows = aggregate.comparable(found.rows)
    lines = (line for row in rows.rows for line in _lines(row))
    table = pandas.DataFrame.from_records(lines, columns=[*MOABB, *OURS])
    table.attrs['left_out'] = [tuple(x) for x in (*found.left_out, *rows.left_out)]
    return table


def _lines(row: Row) -> Iterator[tuple[Any, ...]]:
    """The lines of a result, one a subject."""
    nan = float('nan')
    ours = {**row._asdict(), 'headline': row.value, 'protocol': aggregate.protocol(row)}
    ours['changes'] = '; '.join(aggregate.changes(row))
    rest = tuple(ours[name] for name in OURS)
    what = (row.seconds['fit'], row.n_train, nan, row.n_classes or nan)
    where = (ALL, row.n_chans, nan, row.dataset, row.model)
    for subject, score in row.per_subject.items():
        yield (nan if score is None else score, *what, subject, *where, *rest)
