"""The encoder of tables into the matrices that detectors take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from qms22.tables.columns.arrow_columns import frame_cells
from qms22.tables.columns.cells import Cells, Columns
from qms22.tables.columns.matrix import LazyMatrix, typical_row
from qms22.tables.columns.plan import ColumnInfo, ColumnPlan
from qms22.tables.columns.planning import plan_columns
from qms22.tables.columns.refusals import (
    check_any_used,
    check_array_like,
    check_cells,
    check_columns,
    check_kinds,
    check_not_empty,
    check_parameters,
    quoted,
)


class TabularEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encodes tables as matrices, as learned from the known-normal table.

    The kind of a column is decided from its values in the normal table; texts are read as numbers
    and dates where nearly all of them are. Numbers are unchanged, and booleans become 0 and 1. A
    word in a column of numbers or dates ("-", "unknown") gets a column of 0 and 1 if normal rows
    have it; the cell has no value, as if it were missing. Every level of a category becomes a
    column of 0 and 1; rare levels share one, and so do levels that the normal table lacks: that one
    is 0 for every normal row, so that an unseen level stands out. A date becomes the days since the
    first normal one, and the hour and the weekday, if they vary, as sine and cosine; a period
    counts as its first moment, and a duration as its seconds. Identifiers, free text and columns
    with only one value are ignored, with a note in `columns_`.

    Columns are matched by name, in any order. The columns of an array are called x0, x1, … and
    matched by position.

    Parameters
    ----------
    ignore : sequence of str, default=()
        Columns to leave out; a table need not have them. Of the date "sold", "sold (days)" leaves
        out the days and keeps the hour and the weekday.
    missing : {"impute", "drop", "error"}, default="impute"
        What to do with missing values in columns that are used. "impute" replaces them by the
        median, with a column of 0 and 1 that says where, if normal rows have missing values in the
        column. Categories get a level "(missing)", or else missing values are unseen levels. "drop"
        ignores them in `fit`; `usable_rows` then returns the rows that can be transformed. "error"
        refuses them, and infinite values as well.
    kinds : mapping of str to str, optional
        What columns are, where they are to be read in another way: "number", "category", "date",
        "boolean", "text" or "ignore" by name.
    min_frequency : float or int, default=0.01
        Levels in fewer rows of the normal table than this are pooled: a share of the rows if below
        1, or else a number of rows.

    Attributes
    ----------
    columns_ : tuple of ColumnInfo
        Name, kind, note and outputs of every column.
    ignored_ : tuple of str
        Columns that were left out: those of `ignore`, and in a search those that only say when a
        row was made.
    groups_ : dict from str to tuple of int
        For each column that is used, its columns in the matrix.
    typical_ : dict from str to str
        The typical value of each column that is used: the median, or the most frequent level.
    typical_row_ : ndarray of shape (n_outputs,)
        A row of the matrix with all these values.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if it had names.

    Examples
    --------
    >>> import pandas as pd
    >>> from qms22.tables import TabularEncoder
    >>> normal = pd.DataFrame({"size": [1.5, 2.5, 2.0], "color": ["red", "blue", "red"]})
    >>> encoder = TabularEncoder().fit(normal)
    >>> encoder.get_feature_names_out().tolist()
    ['size', 'color=blue', 'color=red', 'color=(unseen)']
    >>> encoder.transform(pd.DataFrame({"color": ["green"], "size": [2.0]}))
    array([[2., 0., 0., 1.]])
    """

    def __init__(
        self,
        *,
        ignore: Sequence[str] = (),
        missing: str = "impute",
        kinds: Mapping[str, str] | None = None,
        min_frequency: float | int = 0.01,
    ) -> None:
        self.ignore = ignore
        self.missing = missing
        self.kinds = kinds
        self.min_frequency = min_frequency

    def fit(self, X: Any, y: object = None) -> TabularEncoder:
        """Learn from the known-normal table.

        Parameters
        ----------
        X : data frame or array-like of shape (n_normal, n_features)
            Known-normal rows.
        y : Ignored

        Returns
        -------
        TabularEncoder
            The fitted encoder.
        """
        self._fit_cells(X)
        return self

    def _fit_cells(self, X: Any) -> dict[str, Cells]:
        """Learn from the known-normal table, and return it as `_typed_cells` does."""
        check_parameters(self.ignore, self.missing, self.kinds, self.min_frequency)
        kinds, columns = self.kinds or {}, self._read(X, reset=True)
        check_kinds(kinds, [cells.name for cells in columns])
        n_rows = len(columns[0].values)
        planned = plan_columns(
            columns,
            self.min_frequency * (1 if self.min_frequency >= 1 else n_rows),
            ignore=self.ignore,
            kinds=kinds,
            keeps_missing=self.missing == "impute",
        )
        check_any_used([plan for plan, _ in planned], n_rows)
        if self.missing == "error":
            check_cells([typed for plan, typed in planned if plan.outputs], self.missing)
        self.ignored_ = tuple(self.ignore)
        self._plans = {plan.name: plan for plan, _ in planned}
        # Slopes and offsets that take from numbers of a batch what all of its rows have done; only
        # `_transform_part` uses them.
        self._moves: dict[str, tuple[float, float]] = {}
        return {typed.name: typed for _, typed in planned}

    def _leave_out(self, notes: Mapping[str, str], identifiers: Collection[str] = ()) -> None:
        """Stop using some columns; raise ValueError if no other is used.

        `notes` has the reasons by column, or by part of a date: "sold (days)", "sold (hour)" or
        "sold (weekday)". Some of the columns are `identifiers`, which are not ignored.
        """
        self.ignored_ = (*self.ignored_, *(name for name in notes if name not in identifiers))

        def leave_out(plan: ColumnPlan) -> ColumnPlan:
            rest = plan.leave_out(notes)
            return replace(rest, kind="identifier") if plan.name in identifiers else rest

        self._change_plans(leave_out)
        if not self.groups_:
            note = next(iter(notes.values()))
            raise ValueError(f"no column is of use but {quoted(list(notes))}: {note}")

    def _change_plans(self, change: Callable[[ColumnPlan], ColumnPlan]) -> None:
        self._plans = {name: change(plan) for name, plan in self._plans.items()}

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return a table as a matrix.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)

        Raises
        ------
        ValueError
            If a column that is used is not there, or has missing values that are not imputed.
        """
        return self._lazy_matrix(self._typed_cells(X))[:]

    def _transform_part(self, X: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the usable rows of a part of a batch, and their matrix.

        These are all rows, or those without missing values if ``missing="drop"``. A column that the
        part lacks has the typical value. If it has an index of integers, messages name rows by it.
        """
        cells = self._used_cells(self._typed_cells(X))
        if not cells:
            self._check_columns(())
        matrix = LazyMatrix(self._plans_by_name, cells, self._moves)
        if self.missing == "drop":
            usable = _complete_rows(cells)
            return usable, matrix[usable]
        check_cells(cells.values(), self.missing)
        return np.arange(len(matrix)), matrix[:]

    def _lazy_matrix(self, cells: Columns) -> LazyMatrix:
        """Return the matrix of columns that `_typed_cells` has returned; raises as `transform`."""
        check_not_empty(list(cells.values()))
        self._check_columns(cells)
        used = self._used_cells(cells)
        check_cells(used.values(), self.missing)
        return LazyMatrix(self._plans_by_name, used)

    def _check_columns(self, names: Collection[str]) -> None:
        """Raise ValueError if a table with these columns lacks some that are used."""
        check_columns(self._plans_by_name.values(), names)

    def usable_rows(self, X: Any) -> NDArray[np.intp]:
        """Return the rows without missing values in the columns that are used.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of int
            Their positions.
        """
        cells = self._typed_cells(X)
        self._check_columns(cells)
        return _complete_rows(self._used_cells(cells))

    def _typed_cells(self, X: Any) -> dict[str, Cells]:
        """Return the columns of a table as the encoder understands them, also unknown ones.

        What is a number, a boolean or a date in the normal table has that form, also if the table
        stores texts; cells that do not fit are words. A category has the form "text" or "category".
        Other columns are as stored.
        """
        plans = self._plans_by_name
        columns = self._read(X, reset=False)
        if not hasattr(self, "feature_names_in_") and len(columns) == len(plans):
            columns = [
                replace(cells, name=name) for name, cells in zip(plans, columns, strict=True)
            ]
        return {
            each.name: plans[each.name].typed(each) if each.name in plans else each
            for each in columns
        }

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Return the names of the columns of the matrix.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the table's columns; they cannot change.

        Returns
        -------
        ndarray of str
            Such as "age", "color=red", "color=(other)", "color=(unseen)" and "sold (days)".
        """
        plans = self._plans_by_name
        if input_features is not None and [*map(str, np.asarray(input_features))] != [*plans]:
            raise ValueError(
                "input_features is not equal to the names of the columns in fit; leave it out"
            )
        return np.array([name for plan in plans.values() for name in plan.outputs], dtype=object)

    @property
    def _plans_by_name(self) -> dict[str, ColumnPlan]:
        """What was learned of each column, by name."""
        check_is_fitted(self)
        return self._plans

    @property
    def columns_(self) -> tuple[ColumnInfo, ...]:
        """Name, kind, note and outputs of every column."""
        found, first = [], 0
        for plan in self._plans_by_name.values():
            last = first + len(plan.outputs)
            found.append(ColumnInfo(plan.name, plan.kind, plan.note, tuple(range(first, last))))
            first = last
        return tuple(found)

    @property
    def groups_(self) -> dict[str, tuple[int, ...]]:
        """For each column that is used, its columns in the matrix."""
        return {column.name: column.outputs for column in self.columns_ if column.outputs}

    @property
    def typical_(self) -> dict[str, str]:
        """The typical value of each column that is used, as text."""
        plans = self._plans_by_name
        return {name: plans[name].show(plans[name].typical) for name in self.groups_}

    @property
    def typical_row_(self) -> NDArray[np.float64]:
        """A row of the matrix with the typical value of each column."""
        return typical_row(self._plans_by_name)

    def _read(self, X: Any, *, reset: bool) -> list[Cells]:
        """Return the columns of a table; if `reset`, keep their number and names."""
        are_cells = isinstance(X, Mapping) and isinstance(next(iter(X.values()), None), Cells)
        columns = list(X.values()) if are_cells else frame_cells(X)
        is_frame = columns is not None
        if columns is None:
            check_array_like(X)
            # NumPy would turn the numbers of a list of mixed rows into texts.
            kind = None if hasattr(X, "dtype") else object
            rows = validate_data(self, X, reset=reset, dtype=kind, ensure_all_finite=False)
            named = None if reset else getattr(self, "feature_names_in_", None)
            names = [f"x{at}" for at in range(rows.shape[1])] if named is None else list(named)
            columns = frame_cells(pd.DataFrame(rows, columns=names)) or []
        if is_frame and reset:
            check_not_empty(columns)
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array([cells.name for cells in columns], dtype=object)
        return columns

    def _used_cells(self, cells: Columns) -> dict[str, Cells]:
        return {name: cells[name] for name in self.groups_ if name in cells}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Not `categorical`, for which scikit-learn's checks only use integers.
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags


def _complete_rows(columns: Columns) -> NDArray[np.intp]:
    return np.flatnonzero(~np.logical_or.reduce([cells.missing for cells in columns.values()]))
