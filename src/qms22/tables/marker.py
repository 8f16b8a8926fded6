"""Columns with words about rows: one that marks the known-normal rows, one that names outliers."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from qms22.tables.formats import open_table
from qms22.tables.sources.table import Table
from qms22.tables.texts.words import canonical, list_quoted, list_some

# Values as `canonical` writes them, in lower case. YES and NO mean outlier and normal as labels,
# normal and unknown as marks.
_YES = frozenset({"1", "yes", "y"})
_NO = frozenset({"0", "no", "n"})
_OUTLIERS = _YES | {"positive", "outlier", "anomaly", "anomalous", "abnormal", "attack"}
_NORMAL_WORDS = frozenset(
    {"normal", "ok", "okay", "good", "pass", "passed", "benign", "negative", "inlier", "nominal"}
    | {"regular", "healthy"}
)
_MARKS = _YES | {"x", "t"}
_UNMARKED = _NO | {"-1", "f", "unlabeled", "unlabelled", "unknown", "unmarked"}
# Names of columns in which 1 means outlier, or may mean it.
_OTHER_SENSE = re.compile(
    r"outlier|anomal|abnormal|attack|fraud|fault|fail|defect|positive|error|intrusion"
    r"|^(y|label|labels|class|target)$",
    re.IGNORECASE,
)
# scikit-learn's pair, in which 1 means normal.
_INLIER, _OUTLIER = "1", "-1"

Value = str | float | bool


def read_mixed(
    table: str | Path | Table, marker: str, *, normal: Value | Sequence[Value] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a table in which a column marks the known-normal rows.

    Parameters
    ----------
    table : path, data frame or Table
        As in `open_table`.
    marker : str
        Name of that column. Rows in which it is empty are not known to be normal.
    normal : str, float, bool or sequence of these, optional
        The values that mean normal. By default, a word such as normal, ok, good, benign or negative
        is looked for, then a mark such as 1, true, yes or x, unless the column's name says that
        these may mean the opposite.

    Returns
    -------
    normal, unlabeled : pandas.DataFrame
        The rows of each part without the marker column, with their index in the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from qms22.tables import read_mixed
    >>> table = pd.DataFrame({"size": [1, 2, 9], "checked": ["ok", "ok", None]})
    >>> normal, unlabeled = read_mixed(table, "checked")
    >>> normal["size"].tolist(), unlabeled["size"].tolist()
    ([1, 2], [9])
    """
    source = open_table(table)
    frame = source.read()
    if marker not in frame.columns:
        raise ValueError(
            f"{source.name} has no column {marker!r} to mark the normal rows; its columns are "
            f"{list_quoted(map(str, frame.columns))}"
        )
    where = f"column {marker!r} of {source.name}"
    codes, values = pd.factorize(frame[marker])
    words = [_word(value) for value in values]
    if normal is None:
        wanted = _guess_normal(set(words), marker, where)
    else:
        given = [normal] if isinstance(normal, str | float | int) else normal
        wanted = {_word(value) for value in given}
        if lacking := wanted.difference(words):
            raise ValueError(
                f"{where} has no value {lacking.pop()!r} to mark the normal rows; it holds "
                f"{list_quoted(sorted(set(words))) or 'no values'}"
            )
    is_normal = np.array([*(word in wanted for word in words), False])[codes]
    if is_normal.all():
        raise ValueError(
            f"{where} marks all {len(frame)} rows as normal ({list_quoted(sorted(wanted))}), so no "
            "row is left to search; use another value, or none, in the rows to search"
        )
    rest = frame.drop(columns=marker)
    return rest[is_normal], rest[~is_normal]


def _guess_normal(words: Collection[str], marker: str, where: str) -> set[str]:
    found = [word for word in words if word in _NORMAL_WORDS]
    if not found and not _OTHER_SENSE.search(marker) and set(words) <= _MARKS | _UNMARKED:
        found = [word for word in words if word in _MARKS]
    if len(found) == 1:
        return set(found)
    raise ValueError(
        f"{where} holds {list_quoted(sorted(words)) or 'no values'}, of which "
        f"{'several may' if len(found) > 1 else 'none surely'} mean normal; name the value that "
        "marks the normal rows"
    )


def _word(value: object) -> str:
    return canonical(value).lower()


def outlier_labels(
    labels: NDArray[Any], outlier: Value | None, where: str, remedy: str
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
    outliers = [label for label in labels if label.lower() in _OUTLIERS]
    normals = [label for label in labels if label.lower() in _NO | _NORMAL_WORDS]
    return outliers[0] if len(labels) == 2 and len(outliers) == len(normals) == 1 else None
