"""The encoder of tables into the matrices that detectors take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from qms22._runtime.validation import check_choice, is_count, is_number
from qms22.tables.cells import Cells, array_cells, frame_cells
from qms22.tables.plan import ColumnInfo, ColumnPlan, plan_column
from qms22.tables.words import list_some

# A column: its plan, its cells, and its values as numbers.
_Converted: TypeAlias = tuple[ColumnPlan, Cells, NDArray[np.float64]]


class TabularEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encodes tables as matrices, as learned from the known-normal table.

    The kind of a column is decided from its values in the normal table. Numbers are unchanged, and
    booleans become 0 and 1. Every level of a category becomes a column of 0 and 1; rare levels
    share one, and so do levels that the normal table lacks: that one is 0 for every normal row, so
    that an unseen level stands out. A date becomes the days since the first normal one, and the
    hour and the weekday, if they vary, as sine and cosine. Identifiers, free text and columns with
    only one value are ignored, with a note in `columns_`.

    Columns are matched by name, in any order. The columns of an array are called x0, x1, … and
    matched by position.

    Parameters
    ----------
    ignore : sequence of str, default=()
        Columns to leave out; a table need not have them.
    missing : {"error", "impute", "drop"}, default="error"
        What to do with missing values in columns that are used. "impute" replaces them by the
        median, or the most frequent level, of the normal table. "drop" ignores them in `fit`;
        `usable_rows` then returns the rows that can be transformed.
    min_frequency : float or int, default=0.01
        Levels in fewer rows of the normal table than this are pooled: a share of the rows if below
        1, or else a number of rows.

    Attributes
    ----------
    columns_ : tuple of ColumnInfo
        Name, kind, note and outputs of every column.
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
        missing: str = "error",
        min_frequency: float | int = 0.01,
    ) -> None:
        self.ignore = ignore
        self.missing = missing
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
        self._check_parameters()
        columns = self._read(X, reset=True)
        n_rows = len(columns[0].values)
        least = self.min_frequency if self.min_frequency >= 1 else self.min_frequency * n_rows
        plans = [plan_column(cells, least, ignored=cells.name in self.ignore) for cells in columns]
        if not any(plan.outputs for plan in plans):
            found = ", ".join(f"{plan.name!r} is {plan.kind}" for plan in plans[:5])
            raise ValueError(
                f"no column of the {n_rows} normal rows (n_samples={n_rows}) is of use ({found}"
                f"{', …' if len(plans) > 5 else ''}); give more rows, or columns that vary"
            )
        if self.missing == "error":
            pairs = zip(plans, columns, strict=True)
            used = [(cells, cells.missing) for plan, cells in pairs if plan.outputs]
            _check_missing(used, self.missing)
        # Plain values, so that model files need no classes of this package.
        self._plans = tuple(asdict(plan) for plan in plans)
        return self

    def leave_out(self, notes: Mapping[str, str]) -> None:
        """Stop using some columns, with notes why; raise ValueError if no other is used."""
        check_is_fitted(self)
        self.ignore = (*self.ignore, *notes)
        self._plans = tuple(
            {**plan, "outputs": (), "note": notes[plan["name"]]} if plan["name"] in notes else plan
            for plan in self._plans
        )
        if not self.groups_:
            note = next(iter(notes.values()))
            raise ValueError(f"no column is of use but {_quoted(list(notes))}: {note}")

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
            If a column is missing, is not in the normal table, holds values of another kind than
            there, or has missing values that are not imputed.
        """
        found = self._convert(X)
        if self.missing != "impute":
            _check_missing([(cells, np.isnan(values)) for _, cells, values in found], self.missing)
        return _encode([(plan, values) for plan, _, values in found])

    def transform_part(self, X: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return a part of a larger table as rows of the matrix.

        Parameters
        ----------
        X : data frame
            Some of the rows, with at least the columns that are used. If it has an index of
            integers, as in pandas, messages name rows by it.

        Returns
        -------
        positions : ndarray of int
            The rows that are returned: all, or those without missing values if ``missing="drop"``.
        matrix : ndarray of shape (n_positions, n_outputs)
            These rows.
        """
        found = self._convert(X, is_part=True)
        if self.missing == "error":
            _check_missing([(cells, np.isnan(values)) for _, cells, values in found], self.missing)
        n_rows = len(found[0][2])
        usable = _complete(found) if self.missing == "drop" else np.arange(n_rows)
        return usable, _encode([(plan, values[usable]) for plan, _, values in found])

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise ValueError if a table lacks columns of the normal table, or has others.

        Parameters
        ----------
        names : iterable of str
            The columns of the table.
        """
        there = set(names)
        known = {plan.name for plan in self._all_plans()}
        faults = [
            f"{verb} {_quoted(sorted(unlike - set(self.ignore)))}"
            for verb, unlike in (("lacks", known - there), ("adds", there - known))
            if unlike - set(self.ignore)
        ]
        if faults:
            raise ValueError(
                f"the table {' and '.join(faults)} in comparison with the normal table; give both "
                "the same columns or ignore those"
            )

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
        return _complete(self._convert(X))

    def typed_cells(self, X: Any) -> dict[str, Cells]:
        """Return the columns of a table as the encoder understands them.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            Any columns of a table, also ignored ones and ones that the encoder does not know.

        Returns
        -------
        dict from str to Cells
            A column that is numeric, boolean or date in the normal table has the form "number",
            "boolean" or "date", also if the table stores texts. Other columns, and those with a
            value that does not fit, are as stored.
        """
        plans = {plan.name: plan for plan in self._all_plans()}
        return {
            cells.name: plans[cells.name].typed(cells) if cells.name in plans else cells
            for cells in self._read(X, reset=False)
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
        check_is_fitted(self)
        if input_features is not None:
            given = [str(name) for name in np.asarray(input_features, dtype=object)]
            if given != [plan.name for plan in self._all_plans()]:
                raise ValueError(
                    "input_features is not equal to the names of the columns in fit; leave it out"
                )
        names = [name for plan in self._all_plans() for name in plan.outputs]
        return np.array(names, dtype=object)

    @property
    def columns_(self) -> tuple[ColumnInfo, ...]:
        """Name, kind, note and outputs of every column."""
        infos = []
        at = 0
        for plan in self._all_plans():
            outputs = tuple(range(at, at + len(plan.outputs)))
            infos.append(ColumnInfo(plan.name, plan.kind, plan.note, outputs))
            at += len(outputs)
        return tuple(infos)

    @property
    def groups_(self) -> dict[str, tuple[int, ...]]:
        """For each column that is used, its columns in the matrix."""
        return {column.name: column.outputs for column in self.columns_ if column.outputs}

    @property
    def typical_(self) -> dict[str, str]:
        """The typical value of each column that is used, as text."""
        return {plan.name: plan.show_typical() for plan in self._all_plans() if plan.outputs}

    @property
    def typical_row_(self) -> NDArray[np.float64]:
        """A row of the matrix with the typical value of each column."""
        plans = [plan for plan in self._all_plans() if plan.outputs]
        return _encode([(plan, np.array([plan.typical])) for plan in plans]).ravel()

    def describe(self) -> list[dict[str, str]]:
        """Return a description of every column.

        Returns
        -------
        list of dict
            For every column its "column" name, "kind", "typical" value and "note".
        """
        typical = self.typical_
        return [
            {"column": name, "kind": kind, "typical": typical.get(name, ""), "note": note}
            for name, kind, note in ((info.name, info.kind, info.note) for info in self.columns_)
        ]

    def _all_plans(self) -> tuple[ColumnPlan, ...]:
        check_is_fitted(self)
        return tuple(ColumnPlan(**plan) for plan in self._plans)

    def _check_parameters(self) -> None:
        check_choice("missing", self.missing, ("error", "impute", "drop"))
        if isinstance(self.ignore, str):
            raise ValueError(
                f"ignore must be a sequence of column names; got the text {self.ignore!r}, for "
                f"which write ({self.ignore!r},)"
            )
        least = self.min_frequency
        if not (is_number(least) and least >= 0 and (least < 1 or is_count(least))):
            raise ValueError(
                f"min_frequency must be a share in [0, 1) or a whole number of rows; got {least!r}"
            )

    def _read(self, X: Any, *, reset: bool) -> list[Cells]:
        """Return the columns of a table; if `reset`, keep their number and names."""
        columns = frame_cells(X)
        is_frame = columns is not None
        if columns is None:
            # NumPy would turn the numbers of a list of mixed rows into texts.
            kind = None if hasattr(X, "dtype") else object
            rows = validate_data(self, X, reset=reset, dtype=kind, ensure_all_finite=False)
            named = None if reset else getattr(self, "feature_names_in_", None)
            names = [f"x{at}" for at in range(rows.shape[1])] if named is None else list(named)
            columns = array_cells(rows, names)
        elif not columns or not len(columns[0].values):
            n_rows = len(columns[0].values) if columns else 0
            raise ValueError(
                f"the table has {n_rows} rows of {len(columns)} columns; give at least one of each"
            )
        if is_frame and reset:
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array([cells.name for cells in columns], dtype=object)
        return columns

    def _convert(self, X: Any, *, is_part: bool = False) -> list[_Converted]:
        """Return the columns that are used, with their values as numbers.

        They are found by name, or by position if `fit` saw no names. A part of a table may lack
        columns that are not used, and have others.
        """
        plans = self._all_plans()
        columns = self._read(X, reset=False)
        if not hasattr(self, "feature_names_in_") and len(columns) == len(plans):
            there = {plan.name: cells for plan, cells in zip(plans, columns, strict=True)}
        else:
            there = {cells.name: cells for cells in columns}
            if not is_part:
                self.check_columns(there)
        return [
            (plan, there[plan.name], plan.values(there[plan.name], is_part=is_part))
            for plan in plans
            if plan.outputs
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Not `categorical`, for which scikit-learn's checks only use integers.
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing == "impute"
        return tags


def _complete(columns: list[_Converted]) -> NDArray[np.intp]:
    """Return the positions of the rows without missing values."""
    return np.flatnonzero(~np.logical_or.reduce([np.isnan(values) for _, _, values in columns]))


def _encode(columns: list[tuple[ColumnPlan, NDArray[np.float64]]]) -> NDArray[np.float64]:
    """Return the matrix; missing values are replaced by the typical one."""
    n_outputs = sum(len(plan.outputs) for plan, _ in columns)
    matrix = np.empty((len(columns[0][1]), n_outputs))
    at = 0
    for plan, values in columns:
        filled = np.where(np.isnan(values), plan.typical, values)
        plan.encode(filled, matrix[:, at : at + len(plan.outputs)])
        at += len(plan.outputs)
    return matrix


def _check_missing(columns: list[tuple[Cells, NDArray[np.bool_]]], missing: str) -> None:
    """Raise ValueError if any value is missing."""
    found = [
        f"{cells.name!r} ({int(gaps.sum())}, first at row {cells.number(int(np.argmax(gaps)))})"
        for cells, gaps in columns
        if gaps.any()
    ]
    if found:
        remedy = (
            "transform only the rows that usable_rows returns"
            if missing == "drop"
            else "choose missing='impute' or 'drop', or fill them in"
        )
        raise ValueError(
            f"{len(found)} column{'s have' if len(found) > 1 else ' has'} missing values (NaN): "
            f"{list_some(found)}; {remedy}"
        )


def _quoted(names: list[str]) -> str:
    return f"column{'s' if len(names) > 1 else ''} {list_some([repr(name) for name in names])}"
