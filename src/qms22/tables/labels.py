"""Which label of a label column means outlier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qms22.tables.columns import Column, Table, is_missing

# Labels that speak for themselves, in lower case; one of each has to occur.
OUTLIER_WORDS = frozenset(
    {"1", "true", "yes", "y", "positive", "outlier", "anomaly", "anomalous", "abnormal", "attack"}
)
NORMAL_WORDS = frozenset(
    {"0", "false", "no", "n", "negative", "inlier", "normal", "nominal", "regular", "benign"}
)
# scikit-learn's pair, in which 1 means normal.
INLIER, OUTLIER = "1", "-1"


def outlier_rows(table: Table, outlier: str | float | bool | None) -> NDArray[np.bool_]:
    """Tell which rows of a table are outliers, by its label column.

    Parameters
    ----------
    table : Table
    outlier : str, float, bool or None
        The label of outliers; None to guess it.
    """
    missing = np.flatnonzero(is_missing(table.labels))
    if missing.size:
        raise ValueError(
            f"{table.place(missing[0])}: the label column {table.label!r} has no value there, nor "
            f"in {missing.size - 1} other rows; fill them in or remove the rows"
        )
    return outlier_labels(
        table.labels,
        outlier,
        f"the label column {table.label!r} of {table.path}",
        "name the label column by label=... and the outliers' value by outlier=...",
    )


def outlier_labels(
    labels: Column, outlier: str | float | bool | None, where: str, remedy: str
) -> NDArray[np.bool_]:
    """Tell which labels, none of them missing, are those of outliers.

    Parameters
    ----------
    labels : ndarray
    outlier : str, float, bool or None
        The label of outliers; None to guess it.
    where : str
        What to call the labels in messages.
    remedy : str
        What to do about labels that do not speak for themselves.
    """
    values, codes = np.unique(labels, return_inverse=True)
    found = [_canonical(value) for value in values]
    wanted = _guess(found) if outlier is None else _canonical(outlier)
    if wanted not in found:
        shown = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
        why = "of which none is surely the outlier" if outlier is None else f"not {outlier!r}"
        raise ValueError(f"{where} has the values {shown}, {why}; {remedy}")
    is_wanted = np.array([label == wanted for label in found])
    return is_wanted[codes]


def _guess(labels: list[str]) -> str | None:
    """Find the outliers' label among two that speak for themselves; None where they do not."""
    if sorted(labels) == sorted([INLIER, OUTLIER]):
        return OUTLIER
    outliers = [label for label in labels if label.lower() in OUTLIER_WORDS]
    normals = [label for label in labels if label.lower() in NORMAL_WORDS]
    if len(labels) == 2 and len(outliers) == len(normals) == 1:
        return outliers[0]
    return None


def _canonical(label: object) -> str:
    """Write a label in one way: 1, 1.0, True and "1" are all "1"."""
    if not is_number_text(label):
        return str(label).strip()
    number = float(label)  # type: ignore[arg-type]
    return str(int(number)) if number.is_integer() else repr(number)


def is_number_text(value: object) -> bool:
    """Whether a value is a finite number, or the text of one."""
    try:
        return bool(np.isfinite(float(value)))  # type: ignore[arg-type]
    except ValueError:
        return False
