"""What a detection run hands to its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from qms22._runtime.validation import check_count

# Feature, drop of the score when it is set to its typical value, value of the row, typical value.
Reason: TypeAlias = tuple[str, float, Any, Any]


@dataclass(frozen=True, eq=False)
class DetectionRun:
    """The scores of a batch of unlabeled rows, and what is needed to look into them.

    Parameters
    ----------
    title : str
        Heading of the page.
    scores : array-like of shape (n,)
        Scores of the unlabeled rows; higher is more suspicious.
    rows : DataFrame of n rows
        The unlabeled rows as the user knows them.
    normal : DataFrame
        The known-normal rows. Only distributions of its columns are drawn; a column of `rows`
        that is not there gets no picture.
    k : int
        How many rows are flagged to begin with.
    ids : sequence of length n, optional
        Names of the rows; the index of `rows` where there are none.
    reasons : sequence of sequences of tuples
        For the most suspicious rows, in the order of `ranking`, as many as there are: tuples
        (feature, drop of the score, value, typical value), such as `Explanation.top` gives.
    columns : sequence of mappings
        How each column was treated: "name", "kind" and "note".
    is_outlier : array-like of shape (n,), optional
        True labels, for evaluation only.
    facts : mapping of str to str
        Parameters, versions, seed, files, times: whatever tells how the scores were made.

    Raises
    ------
    ValueError
        If the parts do not fit together.
    """

    title: str
    scores: ArrayLike
    rows: pd.DataFrame = field(repr=False)
    normal: pd.DataFrame = field(repr=False)
    k: int
    ids: Sequence[Any] | None = field(default=None, repr=False)
    reasons: Sequence[Sequence[Reason]] = field(default=(), repr=False)
    columns: Sequence[Mapping[str, str]] = field(default=(), repr=False)
    is_outlier: ArrayLike | None = field(default=None, repr=False)
    facts: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        n_rows = len(self.rows)
        if n_rows == 0:
            raise ValueError("rows is empty; a report needs at least one unlabeled row")
        _check_shape("scores", self.scores, n_rows)
        values = np.asarray(self.scores, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise ValueError(f"scores holds {values[bad[0]]} at row {bad[0]}; it must be finite")
        check_count("k", self.k, least=0)
        if self.k > n_rows:
            raise ValueError(f"k={self.k} is more than the {n_rows} rows there are")
        for name, table in (("rows", self.rows), ("normal", self.normal)):
            twice = table.columns[table.columns.duplicated()]
            if len(twice):
                raise ValueError(f"{name} has two columns {twice[0]!r}; rename one of them")
        if self.ids is not None and len(self.ids) != n_rows:
            raise ValueError(f"there are {len(self.ids)} ids for {n_rows} rows; give one per row")
        if len(self.reasons) > n_rows:
            raise ValueError(f"reasons are given for {len(self.reasons)} rows of {n_rows}")
        if self.is_outlier is not None:
            _check_shape("is_outlier", self.is_outlier, n_rows)
            if not np.isin(np.asarray(self.is_outlier), (0, 1)).all():
                raise ValueError("is_outlier must hold only True/False or 1/0 (True for outliers)")

    @property
    def truth(self) -> NDArray[np.bool_] | None:
        """`is_outlier` as an array."""
        return None if self.is_outlier is None else np.asarray(self.is_outlier).astype(bool)


def ranking(scores: ArrayLike) -> NDArray[np.intp]:
    """Give the positions of rows by score, the most suspicious first; at ties the earlier row.

    Parameters
    ----------
    scores : array-like of shape (n,)

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from qms22.report import ranking
    >>> ranking([0.0, 2.5, 0.0, 7.0]).tolist()
    [3, 1, 0, 2]
    """
    return np.argsort(-np.asarray(scores, dtype=np.float64), kind="stable")


def _check_shape(name: str, values: ArrayLike, n_rows: int) -> None:
    shape = np.shape(values)
    if shape != (n_rows,):
        raise ValueError(f"{name} must be of shape ({n_rows},), one per row; got shape {shape}")
