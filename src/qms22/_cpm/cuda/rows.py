"""Rows on the GPU: the way there, checks, and scores by chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_consistent_length, column_or_1d

from qms22._runtime.arrays import as_host, is_on_gpu
from qms22._runtime.devices import need_cupy
from qms22._runtime.validation import check_finite

# Rows of the host that are on the GPU at a time, to be scored.
_ROWS_PER_CHUNK = 1 << 20


def to_device(rows: Any, device: str) -> Any:
    """Give rows where a device works on them, copied where they have to be.

    Parameters
    ----------
    rows : ndarray of NumPy or CuPy
    device : {"cpu", "cuda"}
        With "cpu" CuPy's rows are refused: whoever has them there wants them to stay.
    """
    if device == "cuda":
        return need_cupy().asarray(rows)
    if is_on_gpu(rows):
        raise ValueError(
            "these rows are CuPy's, on a GPU, and device='cpu'; take device='cuda', or hand over "
            "a copy for the CPU, rows.get()"
        )
    return rows


def check_gpu_rows(
    estimator: BaseEstimator, X: Any, *, name: str, reset: bool, **kwargs: Any
) -> Any:
    """Turn a CuPy array into finite float64 rows where it is; see `check_rows`."""
    if X.ndim != 2:
        raise ValueError(
            f"{name} has {X.ndim} dimension{'s' * (X.ndim != 1)} where 2 are expected, rows and "
            f"features; use {name}.reshape(-1, 1) or {name}.reshape(1, -1)"
        )
    if X.dtype.kind not in "buif":
        raise ValueError(f"{name} has dtype {X.dtype}; give real numbers")
    if not X.size:
        raise ValueError(f"{name} has shape {X.shape}; give at least one row and one feature")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"{name} has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    rows = X.astype(np.float64, copy=False)
    check_finite(rows, X, name)
    if "y" not in kwargs:
        return rows
    y = column_or_1d(as_host(kwargs["y"]), warn=True)
    check_consistent_length(rows, y)
    return rows, y


def score_by_chunks(rows: Any, device: str, score: Callable[[Any], Any]) -> Any:
    """Score rows on a device and give the scores, or member values, where the rows are.

    Parameters
    ----------
    rows : ndarray of shape (n, p), of NumPy or CuPy
    device : {"cpu", "cuda"}
        With "cuda" the host's rows travel to the GPU by chunks.
    score : callable
        From rows to scores.
    """
    if device == "cpu" or is_on_gpu(rows):
        return score(to_device(rows, device))
    chunks = gen_batches(len(rows), _ROWS_PER_CHUNK)
    return np.concatenate([as_host(score(to_device(rows[chunk], device))) for chunk in chunks])
