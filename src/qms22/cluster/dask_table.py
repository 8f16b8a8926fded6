"""Rows of Dask collections, part by part: drawn, scored, summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from qms22._cpm.options import SolverOptions
from qms22._runtime.chunks import draw_rows
from qms22._runtime.lazy_rows import LazyRows
from qms22._runtime.validation import check_part
from qms22.cluster.dask_scoring import Collection, share, whole_rows
from qms22.cluster.scoring import for_workers
from qms22.estimators.batch_detector import BatchDetector
from qms22.estimators.explain import TypicalValues
from qms22.estimators.learned_rows import LearnedRows, hash_rows
from qms22.estimators.thresholds import count_flagged

# Summands of one task of a sum.
_FAN_IN = 16


@dataclass(frozen=True)
class TablePart:
    """Consecutive rows of S or T, in a Dask graph.

    Parameters
    ----------
    table : Delayed
        An array or a data frame.
    name : str
        Its name in error messages.
    """

    table: Delayed
    name: str

    def apply(self, function: Any, *args: Any) -> Delayed:
        """Apply a function to the checked rows, on the worker that holds them."""
        return delayed(_apply)(self.table, self.name, function, *args)


def _apply(table: Any, name: str, function: Any, *args: Any) -> Any:
    return function(check_part(table, name), *args)


@dataclass(frozen=True, eq=False)
class DaskTable:
    """The rows of S or T.

    Parameters
    ----------
    rows : dask.array.Array or dask.dataframe.DataFrame
        An array has whole rows in its chunks.
    name : str
        Its name in error messages.
    """

    rows: Collection
    name: str

    @classmethod
    def of(cls, X: Collection, name: str) -> DaskTable:
        """Take what a user gives."""
        return cls(whole_rows(X) if isinstance(X, da.Array) else X, name)

    @cached_property
    def parts(self) -> list[TablePart]:
        """The rows in parts."""
        tables = np.ravel(self.rows.to_delayed())
        return [TablePart(table, f"part {at} of {self.name}") for at, table in enumerate(tables)]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each part; where the collection does not know them, a pass over it."""
        if isinstance(self.rows, da.Array) and not np.isnan(self.rows.shape[0]):
            return tuple(self.rows.chunks[0])
        sizes: tuple[int, ...] = dask.compute(*(delayed(len)(part.table) for part in self.parts))
        return sizes

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(self.sizes)

    def take(self, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Bring some rows into memory; positions ascend."""
        n_columns = self.rows.shape[1]
        rows: NDArray[np.float64] = np.concatenate(
            [np.empty((0, n_columns)), *dask.compute(*self._taken(positions))]
        )
        return rows

    def score_normal(
        self, detector: BatchDetector, positions: NDArray[np.int64], learned: LearnedRows
    ) -> NDArray[np.float64]:
        """Score some rows on the workers as if the detector had not learned from them.

        Parameters
        ----------
        detector : BatchDetector
            Fitted.
        positions : ndarray of int
            They ascend.
        learned : LearnedRows
            Scores of the rows that the detector has learned from; NaN for the one that any other
            row with these values gets.
        """
        shared = share((for_workers(detector), learned))
        scores = (
            delayed(_score_normal)(rows, self.name, shared) for rows in self._taken(positions)
        )
        return np.concatenate(dask.compute(*scores))

    def has(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which of some rows are in the table, given by their hashes; it takes a pass."""
        shared = delayed(keys)
        found: NDArray[np.bool_] = add_up([part.apply(_find, shared) for part in self.parts])
        return found

    def scores(self, detector: BatchDetector) -> da.Array:
        """Score all rows, lazily; higher is more suspicious."""
        shared = share(for_workers(detector))
        if isinstance(self.rows, da.Array):
            # Dask makes one task of reading and scoring a chunk if the result has columns too.
            columns = self.rows.map_blocks(
                _score_column, self.name, shared, chunks=(self.sizes, (1,)), meta=np.empty((0, 0))
            )
            return columns[:, 0]
        meta = pd.Series(np.empty(0))
        scores = self.rows.map_partitions(_score_frame, self.name, shared, meta=meta)
        return scores.to_dask_array(lengths=list(self.sizes))

    def _taken(self, positions: NDArray[np.int64]) -> list[Delayed]:
        of_parts = positions_in_parts(positions, self.sizes)
        pairs = zip(self.parts, of_parts, strict=True)
        return [part.apply(np.take, own, 0) for part, own in pairs if own.size]


def positions_in_parts(
    positions: NDArray[np.int64], sizes: Sequence[int]
) -> list[NDArray[np.int64]]:
    """Return the positions, in each part of a table, of rows given by ascending positions in it."""
    ends = np.cumsum(sizes)
    of_parts = np.split(positions, np.searchsorted(positions, ends[:-1]))
    return [own - (end - size) for own, end, size in zip(of_parts, ends, sizes, strict=True)]


def fit_on_draw(
    detector: BatchDetector,
    options: SolverOptions,
    normal: DaskTable,
    batch: DaskTable,
    groups: Sequence[Sequence[int]] = (),
) -> np.random.RandomState:
    """Fit a detector to rows drawn from T, then S, in this process, as if all were in its memory.

    Returns
    -------
    RandomState
        As it is after the fit.
    """
    check_sizes(detector, normal.n_rows, batch.n_rows)
    rng: np.random.RandomState = check_random_state(detector.random_state)
    known, searched = (
        table.take(draw_rows(table.n_rows, detector._n_drawn, rng)) for table in (normal, batch)
    )
    detector._typical = TypicalValues.learn(known)
    detector.typical_ = detector._typical.medians
    detector._learn(known, searched, rng, options, groups)
    return rng


def check_sizes(detector: BatchDetector, n_normal: int, n_unlabeled: int) -> None:
    """Raise ValueError if there are too few rows to fit a detector to."""
    for name, n_rows in (("X", n_normal), ("unlabeled", n_unlabeled)):
        if not n_rows:
            raise ValueError(f"{name} has no rows; give at least one")
    detector._check_drawn(n_normal)
    count_flagged(detector.contamination, n_unlabeled)


def add_up(results: Sequence[Delayed]) -> Any:
    """Compute the sum of results; workers add a few at a time, so that none has to hold many."""
    while len(results) > 1:
        groups = [results[at : at + _FAN_IN] for at in range(0, len(results), _FAN_IN)]
        results = [delayed(_add)(group) for group in groups]
    return results[0].compute()


def _add(results: list[Any]) -> Any:
    return reduce(add, results)


def _score(table: Any, name: str, detector: BatchDetector) -> NDArray[np.float64]:
    rows = check_part(table, name)
    return detector._scores(LazyRows(rows)) if len(rows) else np.empty(0)


def _find(rows: NDArray[np.float64], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.isin(keys, hash_rows(rows))


def _score_normal(
    rows: NDArray[np.float64], name: str, model: tuple[BatchDetector, LearnedRows]
) -> NDArray[np.float64]:
    detector, learned = model
    scores = _score(rows, name, detector)
    own = learned.replace(scores, rows)
    return np.where(np.isnan(own), scores, own)


def _score_column(table: Any, name: str, detector: BatchDetector) -> NDArray[np.float64]:
    return _score(table, name, detector)[:, np.newaxis]


def _score_frame(table: pd.DataFrame, name: str, detector: BatchDetector) -> pd.Series:
    return pd.Series(_score(table, name, detector))
