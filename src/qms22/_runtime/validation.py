"""Checks of user input; every error names the bad value and the fix."""

from __future__ import annotations

import math
import numbers
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from qms22._runtime.arrays import array_module, as_host, is_on_gpu
from qms22._runtime.chunks import VALUES_IN_CACHE, VALUES_ON_GPU, row_chunks


def is_number(value: object) -> bool:
    """Return whether a value is a real number in the range of floats; booleans do not count."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:  # a whole number too large for a float
        return False


def is_count(value: object) -> bool:
    """Return whether a value is a whole number; booleans do not count."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a value is a whole number of at least `least` and below 2⁶³."""
    if not (is_count(value) and value >= least):
        raise ValueError(f"{name} must be a whole number of at least {least}; got {value!r}")
    if value >= 2**63:
        raise ValueError(f"{name} must be below 2**63")


def check_top(k: Any, n_rows: int, rows: str) -> None:
    """Raise ValueError unless there are k rows; `rows` says of what."""
    check_count("k", k, least=0)
    if k > n_rows:
        raise ValueError(f"k={k} is more than the {n_rows} {rows} there are")


def check_share(name: str, value: Any) -> None:
    """Raise ValueError unless a value is a number in (0, 1)."""
    if not (is_number(value) and 0 < value < 1):
        raise ValueError(f"{name} must be a share in (0, 1); got {value!r}")


def check_path(name: str, value: object) -> None:
    """Raise ValueError unless a value is a path or None."""
    if not isinstance(value, str | PathLike | None):
        raise ValueError(f"{name} must be a path or None; got {value!r}")


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise ValueError unless a value is one of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_seed(name: str, value: Any) -> None:
    """Raise ValueError unless random numbers can be drawn from a value."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise ValueError(
            f"{name} must be None or a whole number from 0 to 2³² − 1; got {value!r}"
        ) from error


def check_rows(estimator: BaseEstimator, X: Any, *, name: str = "X", reset: bool = False) -> Any:
    """Convert user input to finite float64 rows; error messages call them by `name`.

    With `reset` the estimator stores the number and the names of the features; otherwise they must
    match. A CuPy array stays on its GPU.
    """
    if is_on_gpu(X):
        return _check_gpu_rows(estimator, X, name, reset)
    try:
        rows = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(_name_non_numeric(X, name)) from error
    check_finite(rows, X, name)
    return rows


def _check_gpu_rows(estimator: BaseEstimator, X: Any, name: str, reset: bool) -> Any:
    """Check a CuPy array on its GPU; see `check_rows`."""
    if X.ndim != 2:
        raise ValueError(
            f"{name} has {X.ndim} dimension{'s' * (X.ndim != 1)} where 2 are expected, rows and "
            f"features; use {name}.reshape(-1, 1) or {name}.reshape(1, -1)"
        )
    if X.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {X.dtype}; give real numbers")
    if not X.size:
        raise ValueError(f"{name} has shape {X.shape}; give at least one row and one feature")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    rows = X.astype(np.float64, copy=False)
    check_finite(rows, X, name)
    return rows


def check_part(part: Any, name: str) -> NDArray[np.float64]:
    """Convert some rows of a table, whose columns have been checked, to finite float64 rows."""
    rows: NDArray[np.float64] = check_array(
        part, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0
    )
    check_finite(rows, part, name)
    return rows


def all_finite(rows: NDArray[np.float64]) -> bool:
    """Return whether no value is NaN or infinite; takes the memory of one chunk."""
    return all(_is_finite(rows[chunk]) for chunk in _chunks_of(rows))


def _is_finite(rows: NDArray[np.float64]) -> bool:
    if not is_on_gpu(rows):
        return bool(np.isfinite(rows).all())
    # NaN and infinity times 0 are NaN. Products need no compiler; on a new machine CuPy compiles
    # `all` for four seconds.
    products = rows @ array_module(rows).zeros((rows.shape[1], 2))
    return not np.isnan(as_host(products.T @ products)).any()


def _chunks_of(rows: NDArray[np.float64]) -> list[slice]:
    return row_chunks(rows.shape, VALUES_ON_GPU if is_on_gpu(rows) else VALUES_IN_CACHE)


def check_finite(rows: NDArray[np.float64], X: Any, name: str) -> None:
    """Raise ValueError if a column holds NaN or infinity; `X` may have names of columns."""
    if all_finite(rows):
        return
    bad = np.array([as_host(~np.isfinite(rows[chunk]).all(axis=0)) for chunk in _chunks_of(rows)])
    columns = np.flatnonzero(bad.any(axis=0))
    column = int(columns[0])
    positions = np.flatnonzero(~np.isfinite(rows[:, column]))
    missing = bool(np.isnan(rows[positions, column]).any())
    what = "NaN (missing) or infinite" if missing else "infinite (inf)"
    others = f", as have {columns.size - 1} more columns" if columns.size > 1 else ""
    raise ValueError(
        f"{_describe_column(X, column)} of {name} has {positions.size} {what} value"
        f"{'s' if positions.size > 1 else ''} (first at row {positions[0]}){others}; "
        "drop or impute them"
    )


def _name_non_numeric(X: Any, name: str) -> str:
    table = np.asarray(X, dtype=object)
    for column in range(table.shape[1]):
        for row, value in enumerate(table[:, column]):
            try:
                float(value)
            except ValueError:
                return (
                    f"{_describe_column(X, column)} of {name} is not numeric (first at row {row}: "
                    f"{value!r}); encode it, for example with scikit-learn's OneHotEncoder"
                )
    return f"{name} holds values that are not numbers; encode or drop them"


def _describe_column(X: Any, column: int) -> str:
    names = getattr(X, "columns", None)
    return f"column {column}" if names is None else f"column {names[column]!r}"
