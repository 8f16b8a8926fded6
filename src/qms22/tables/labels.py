"""Which label of a label column means outlier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qms22.tables.texts.words import NO, NORMAL_WORDS, OUTLIER_WORDS, YES, canonical, list_some

# scikit-learn's pair, in which 1 means normal.
_INLIER, _OUTLIER = "1", "-1"


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
    wanted = _guess(found) if outlier is None else canonical(outlier)
    if wanted not in found:
        why = "of which none is surely the outlier" if outlier is None else f"not {outlier!r}"
        raise ValueError(f"{where} has the values {list_some(found)}, {why}; {remedy}")
    is_wanted = np.array([label == wanted for label in found])
    return is_wanted[codes]


def _guess(labels: list[str]) -> str | None:
    """Return the outliers' label of a pair whose words say so; None for other labels."""
    if sorted(labels) == sorted([_INLIER, _OUTLIER]):
        return _OUTLIER
    outliers = [label for label in labels if label.lower() in YES | OUTLIER_WORDS]
    normals = [label for label in labels if label.lower() in NO | NORMAL_WORDS]
    return outliers[0] if len(labels) == 2 and len(outliers) == len(normals) == 1 else None
