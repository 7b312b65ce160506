"""Tables of stimuli as CSV, and back with the same types."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import numpy as np

from jbench.alignment.extra import need
from jbench.spec.errors import RequestError

if TYPE_CHECKING:
    from pandas import DataFrame


def to_csv(table: DataFrame, name: str) -> tuple[bytes, dict[str, str]]:
    """A table as CSV, and the type of each column.

    Args:
      table: columns of numbers, truth values or text.
      name: what it belongs to, for messages.

    Raises: RequestError for a column of anything else, or with missing text.
    """
    dtypes, columns = {}, []
    for column in map(str, table.columns):
        values = table[column].to_numpy()
        texts = values.tolist()
        if values.dtype.kind in 'biuf':
            dtypes[column], shown = values.dtype.str, [repr(v) for v in texts]
        elif all(isinstance(v, str) for v in texts):
            dtypes[column], shown = 'text', texts
        else:
            wrong = next(v for v in texts if not isinstance(v, str))
            remedy = 'make it numbers, or text without gaps'
            raise RequestError(
                f'stimulus set {name}: column {column!r} holds {wrong!r}, which cannot be stored; {remedy}'
            )
        columns.append(shown)
    buffer = io.StringIO(newline='')
    writer = csv.writer(buffer, lineterminator='\n', quoting=csv.QUOTE_ALL)
    writer.writerow(dtypes)
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue().encode(), dtypes


def from_csv(data: bytes, dtypes: dict[str, str]) -> DataFrame:
    """The table of a CSV, with the types as `to_csv` gave them."""
    header, *rows = csv.reader(io.StringIO(data.decode(), newline=''))
    columns: dict[str, Any] = dict(zip(header, (list(c) for c in zip(*rows, strict=True)), strict=True))
    for name, dtype in dtypes.items():
        if dtype == 'text':
            continue
        texts = columns[name]
        numbers = [t == 'True' for t in texts] if dtype[1] == 'b' else [_number(t, dtype) for t in texts]
        columns[name] = np.array(numbers, dtype)
    table: DataFrame = need('pandas', 'a stimulus set').DataFrame(columns)
    return table


def _number(text: str, dtype: str) -> float | int:
    return float(text) if dtype[1] == 'f' else int(text)
