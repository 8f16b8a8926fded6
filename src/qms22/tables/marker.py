"""Columns with words about rows: one that marks the known-normal rows, one that names outliers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.formats import open_table
from qms22.tables.sources.table import Table
from qms22.tables.texts.words import (
    NO,
    NORMAL_WORDS,
    OUTLIER_WORDS,
    YES,
    canonical,
    list_quoted,
    list_some,
)

# Values that mean normal in a column that marks the normal rows, and those that mean unknown.
_MARKS = YES | {"x", "t"}
_UNMARKED = NO | {"-1", "f", "unlabeled", "unlabelled", "unknown", "unmarked"}
# Names of columns in which 1 means outlier, or may mean it.
_OTHER_SENSE = re.compile(
    r"outlier|anomal|abnormal|attack|fraud|fault|fail|defect|positive|error|intrusion"
    r"|^(y|label|labels|class|target)$",
    re.IGNORECASE,
)

Value = str | float | bool
# scikit-learn's pair, in which 1 means normal.
_INLIER, _OUTLIER = "1", "-1"


def read_mixed(
    table: str | Path | Table, marker: str, *, normal: Value | Sequence[Value] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a table in which a column marks the known-normal rows.

    Parameters
    ----------
    table : path, data frame or Table
        As in `open_table`.
    marker : str
        Name of that column.
    normal : str, float, bool or sequence of these, optional
        As in `split_marked`.

    Returns
    -------
    normal, unlabeled : pandas.DataFrame
        As in `split_marked`.
    """
    source = open_table(table)
    return split_marked(source.read(), marker, normal=normal, name=source.name)


def split_marked(
    table: pd.DataFrame,
    marker: str,
    *,
    normal: Value | Sequence[Value] | None = None,
    name: str = "table",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split a table by the column that marks the known-normal rows.

    Parameters
    ----------
    table : pandas.DataFrame
    marker : str
        Name of that column. Rows in which it is empty are not known to be normal.
    normal : str, float, bool or sequence of these, optional
        The values that mean normal. By default, a word such as normal, ok, good, benign or negative
        is looked for, then a mark such as 1, true, yes or x, unless the column's name says that
        these may mean the opposite.
    name : str, default="table"
        The name of the table in messages.

    Returns
    -------
    normal, unlabeled : pandas.DataFrame
        The rows of each part without the marker column, with their index in the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from qms22.tables import split_marked
    >>> table = pd.DataFrame({"size": [1, 2, 9], "checked": ["ok", "ok", None]})
    >>> normal, unlabeled = split_marked(table, "checked")
    >>> normal["size"].tolist(), unlabeled["size"].tolist()
    ([1, 2], [9])
    """
    if marker not in table.columns:
        raise ValueError(
            f"{name} has no column {marker!r} to mark the normal rows; its columns are "
            f"{list_quoted([str(column) for column in table.columns])}"
        )
    column = table[marker]
    words = column.map(_word, na_action="ignore").astype(object).where(column.notna(), None)
    present = sorted({word for word in words if word is not None})
    wanted = _guess(present, marker, name) if normal is None else _given(present, normal, marker)
    is_normal = words.isin(wanted).to_numpy()
    if is_normal.all():
        raise ValueError(
            f"column {marker!r} of {name} marks all {len(table)} rows as normal "
            f"({list_quoted(sorted(wanted))}), so no row is left to search; use another value, or "
            "none, in the rows to search"
        )
    rest = table.drop(columns=marker)
    return rest[is_normal], rest[~is_normal]


def _guess(present: list[str], marker: str, name: str) -> set[str]:
    words = [word for word in present if word in NORMAL_WORDS]
    if len(words) == 1:
        return set(words)
    marks = [word for word in present if word in _MARKS]
    is_plain = all(word in _MARKS | _UNMARKED for word in present)
    if not words and len(marks) == 1 and is_plain and not _OTHER_SENSE.search(marker):
        return set(marks)
    raise ValueError(
        f"column {marker!r} of {name} holds {list_quoted(present) or 'no values'}, of which "
        f"{'several may' if len(words) > 1 else 'none surely'} mean normal; name the value that "
        "marks the normal rows"
    )


def _given(present: list[str], normal: Value | Sequence[Value], marker: str) -> set[str]:
    values = [normal] if isinstance(normal, str | float | int) else list(normal)
    for value in values:
        if _word(value) not in present:
            raise ValueError(
                f"column {marker!r} has no value {value!r} to mark the normal rows; it holds "
                f"{list_quoted(present) or 'no values'}"
            )
    return {_word(value) for value in values}


def _word(value: object) -> str:
    return canonical(value).lower()


def outlier_labels(
    labels: NDArray[Any], outlier: str | float | bool | None, where: str, remedy: str
) -> NDArray[np.bool_]:
    """Return which labels mean outlier.

    Parameters
    ----------
    labels : ndarray
        None of them missing.
    outlier : str, float, bool or None
        The label of outliers; None to guess it from words such as "outlier" and "normal".
    where : str
        The name of the labels in messages.
    remedy : str
        What to do if the labels cannot be guessed.
    """
    values, codes = np.unique(labels, return_inverse=True)
    found = [canonical(value) for value in values]
    wanted = _guess_outlier(found) if outlier is None else canonical(outlier)
    if wanted not in found:
        why = "of which none is surely the outlier" if outlier is None else f"not {outlier!r}"
        raise ValueError(f"{where} has the values {list_some(found)}, {why}; {remedy}")
    is_wanted = np.array([label == wanted for label in found])
    return is_wanted[codes]


def _guess_outlier(labels: list[str]) -> str | None:
    """Return the outliers' label of a pair whose words say so; None for other labels."""
    if sorted(labels) == sorted([_INLIER, _OUTLIER]):
        return _OUTLIER
    outliers = [label for label in labels if label.lower() in YES | OUTLIER_WORDS]
    normals = [label for label in labels if label.lower() in NO | NORMAL_WORDS]
    return outliers[0] if len(labels) == 2 and len(outliers) == len(normals) == 1 else None
