"""Lazy scores of Dask arrays and data frames."""

from __future__ import annotations

import pickle
import zlib
from typing import Any, TypeAlias

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from qms22.cluster.scoring import without_batch

Collection: TypeAlias = da.Array | dd.DataFrame


def score_samples(detector: BaseEstimator, X: Collection) -> da.Array | dd.Series:
    """Compute −η(x) of every row, lazily; higher is more normal.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods.
    X : dask.array.Array or dask.dataframe.DataFrame of shape (n_samples, n_features)

    Returns
    -------
    dask.array.Array or dask.dataframe.Series
        Chunk by chunk as `X`; a series has the index of `X`.
    """
    return score_by_part(detector, "score_samples", X)


def decision_function(detector: BaseEstimator, X: Collection) -> da.Array | dd.Series:
    """Compute ``score_samples(X) - offset_``, lazily; negative values are outliers."""
    return score_by_part(detector, "decision_function", X)


def predict(detector: BaseEstimator, X: Collection) -> da.Array | dd.Series:
    """Compute -1 for outliers and 1 for normal rows, lazily."""
    return score_by_part(detector, "predict", X)


def score_by_part(detector: BaseEstimator, method: str, X: Collection) -> da.Array | dd.Series:
    """Call a method of a fitted detector on every chunk or partition, lazily."""
    light = without_batch(detector, method)
    check_columns(detector, X, "X")
    shared = share(light)
    dtype = np.dtype(np.int64 if method == "predict" else np.float64)
    if isinstance(X, da.Array):
        rows = whole_rows(X)
        # Dask makes one task of reading and scoring a chunk if the result has columns too.
        columns = rows.map_blocks(
            _score_column,
            shared,
            method,
            dtype,
            chunks=(rows.chunks[0], (1,)),
            meta=np.empty((0, 0), dtype),
        )
        return columns[:, 0]
    meta = pd.Series(np.empty(0, dtype), index=X._meta.index, name=method)
    return X.map_partitions(_score_partition, shared, method, dtype, meta=meta)


def share(model: Any) -> Delayed:
    """Make a model one node of a graph, for all tasks that need it.

    The graph keeps the model, so that no lost worker can lose it. Trees compress to a third; Dask
    warns of graphs above ten megabytes.
    """
    return dask.delayed(_unpack)(zlib.compress(pickle.dumps(model), level=1))


def _unpack(packed: bytes) -> Any:
    return pickle.loads(zlib.decompress(packed))


def _score_block(
    block: NDArray[Any], detector: Any, method: str, dtype: np.dtype[Any]
) -> NDArray[Any]:
    scores: NDArray[Any] = getattr(detector, method)(block) if len(block) else np.empty(0, dtype)
    return scores


def _score_column(
    block: NDArray[Any], detector: Any, method: str, dtype: np.dtype[Any]
) -> NDArray[Any]:
    return _score_block(block, detector, method, dtype)[:, np.newaxis]


def _score_partition(partition: Any, detector: Any, method: str, dtype: np.dtype[Any]) -> pd.Series:
    scores = _score_block(partition, detector, method, dtype)
    return pd.Series(scores, index=partition.index, name=method)


def whole_rows(X: da.Array) -> da.Array:
    """Return the array in chunks that hold all columns of their rows."""
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def check_columns(estimator: BaseEstimator, X: Any, name: str, *, reset: bool = False) -> None:
    """Raise an error if a collection's columns do not suit a detector, without computing a row."""
    if isinstance(X, dd.DataFrame):
        for column, dtype in X.dtypes.items():
            if not pd.api.types.is_numeric_dtype(dtype):
                raise ValueError(
                    f"column {column!r} of {name} is not numeric but {dtype}; encode it, for "
                    "example with dask.dataframe.get_dummies, or drop it"
                )
        validate_data(estimator, X._meta, skip_check_array=True, reset=reset)
        return
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} must be a Dask array or data frame; got {type(X).__name__}, for which there "
            "is qms22.QMS22"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, rows and columns; it has {X.ndim}")
    if np.isnan(X.shape[1]) or (X.numblocks[1] > 1 and np.isnan(X.shape[0])):
        raise ValueError(
            f"{name} has chunks of unknown size; call {name}.compute_chunk_sizes() first"
        )
    # An array of no rows, for the number of its columns.
    validate_data(estimator, np.empty((0, X.shape[1])), skip_check_array=True, reset=reset)
