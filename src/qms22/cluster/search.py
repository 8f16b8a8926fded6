"""`detect`, `fit` and `score_samples` for tables on a cluster: one code for all engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import qms22.detection
from qms22._runtime.validation import check_choice
from qms22._runtime.warn import warn_user
from qms22.cluster.cluster_rows import ClusterRows
from qms22.cluster.cluster_table import ClusterTable, numbered
from qms22.decisions.comparison import Comparison
from qms22.detection.result import Detection
from qms22.detection.scorer import TableScorer
from qms22.detection.streaming import DEFAULT_DRAW, rows_per_chunk
from qms22.estimators.base import for_workers
from qms22.estimators.batch_detector import BatchDetector
from qms22.tables.sources.frame_table import FrameTable

# The columns that `scored_batch` adds.
_RESULTS = {"score": float, "p_value": float, "flagged": bool}

# More rows than any table has; positions are 64 bits.
_ALL = 2**62

# The class for the tables of each engine, by the package that these come from.
_ENGINES = {
    "dask": ("qms22.cluster.dask_table", "DaskTable", "a Dask data frame"),
    "ray": ("qms22.cluster.ray_table", "RayTable", "a Ray dataset"),
    "pyspark": ("qms22.cluster.spark_table", "SparkTable", "a Spark data frame"),
}

DetectorT = TypeVar("DetectorT", bound=BatchDetector)


@dataclass(frozen=True, eq=False, repr=False)
class ClusterDetection(Detection):
    """What was found in a batch on a cluster: a `Detection` whose batch stays there."""

    def scored_batch(self) -> Any:
        """Return the batch with the columns "score", "p_value" and "flagged", lazily.

        Returns
        -------
        dask.dataframe.DataFrame, ray.data.Dataset or pyspark.sql.DataFrame
            The values are those of this object. The workers score the rows again when the table is
            computed, unless all rows were drawn. "p_value" is missing for the preset "paper".
        """
        source = self.source
        assert isinstance(source, ClusterTable)
        if clash := _RESULTS.keys() & set(source.own_names):
            raise ValueError(
                f"{source.name} has a column {min(clash)!r}, which is the name of a result; rename "
                "it before the search"
            )
        assert self.checks is not None
        scorer = TableScorer(self.encoder, self.detector, self.checks)
        # If all rows were drawn, scores of repeated rows depend on all of them.
        is_whole = source.most_drawn is not None and source.n_rows <= source.most_drawn
        known = self.scores if is_whole else None
        ruler = None if self.comparison is None else self.comparison.ruler
        flagged = np.flatnonzero(self.flagged)
        marked, read, starts = self._decided, source.reader(), source.starts

        def add(number: int, chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            for chunk in numbered(number, chunks, starts):
                scores = _score(scorer, read, chunk) if known is None else known[chunk.index]
                scores[np.isin(chunk.index, marked)] = np.nan
                p_values = np.nan if ruler is None else Comparison.of(ruler, scores).p_values
                is_flagged = np.isin(chunk.index, flagged)
                yield chunk.assign(score=scores, p_value=p_values, flagged=is_flagged)

        return source.extend(add, _RESULTS)


def detect(
    normal: Any, batch: Any, *, max_samples: int | str | None = "auto", **options: Any
) -> ClusterDetection:
    """Find the suspicious rows of a table on a cluster, given a table of known-normal rows.

    Rows drawn at random are brought to this process, which learns from them. The workers score all
    rows of the batch where they are, and send the scores. The flagged rows are brought to this
    process to be explained.

    Parameters
    ----------
    normal, batch : dask.dataframe.DataFrame, ray.data.Dataset or pyspark.sql.DataFrame
        The known-normal rows and the rows to search, with columns of any kind. They are read
        several times and must compute the same rows in the same order each time; keep them on the
        workers (``persist``, ``cache``) where they fit. Ray's object store keeps them in any case.
    max_samples : int, "auto" or None
        Learn from at most this many rows of each table. With "auto" up to 100,000 are brought to
        this process, and the detector decides how many of them it learns from. None brings all
        rows of both tables to this process.
    **options
        The other options of `qms22.detect`, except `history` and `accept`. With `device` this
        process learns and the workers score there.

    Returns
    -------
    ClusterDetection
        A `Detection` like that of `qms22.detect`. Its `scored_batch` is the table of the cluster
        with scores, p-values and flags, lazily. Scores, flags, reasons and verdict are those of
        `qms22.detect` for the same rows and the same `max_samples`, but a row that occurs several
        times in the batch has no higher score for that, unless all rows are drawn.
    """
    for name in ("history", "accept"):
        if options.pop(name, None):
            raise ValueError(
                f"there is no {name!r} on a cluster, as a history needs all rows of a batch in one "
                "process; use qms22.detect with a file"
            )
    is_auto = max_samples == "auto"
    drawn: Any = None if is_auto else max_samples
    most_drawn = DEFAULT_DRAW if is_auto else _ALL if drawn is None else drawn
    tables = [
        open_cluster_table(table, name, most_drawn)
        for table, name in ((normal, "the normal frame"), (batch, "the batch"))
    ]
    if max_samples is None:
        _warn_of_all(*tables)
    found = qms22.detection.detect(*tables, max_samples=drawn, **options)
    return ClusterDetection(**{each.name: getattr(found, each.name) for each in fields(found)})


def fit(detector: DetectorT, normal: Any, batch: Any, **options: Any) -> DetectorT:
    """Fit a detector to tables of numbers on a cluster.

    Rows drawn at random (`max_samples` of the detector) are brought to this process, which learns
    from them. The workers score all rows of the batch where they are, and send the scores.

    Parameters
    ----------
    detector : QMS22 or QMS22Ensemble
    normal, batch : dask.dataframe.DataFrame, ray.data.Dataset or pyspark.sql.DataFrame
        T, the known-normal rows, and S, the batch to search.
    **options
        `outliers`, `marked_normal` and `groups` of the detector's `fit`.

    Returns
    -------
    detector
        Fitted as by ``fit`` with the same rows in memory, to the bit, with all its methods.
    """
    tables = open_cluster_table(normal, "X"), open_cluster_table(batch, "unlabeled")
    detector._check_parameters()
    if detector._n_drawn is None:
        _warn_of_all(*tables)
    rows: list[Any] = [ClusterRows(table) for table in tables]
    return detector.fit(rows[0], unlabeled=rows[1], **options)


def score_samples(
    detector: BaseEstimator, table: Any, *, method: str = "score_samples", output: str = "score"
) -> Any:
    """Add a column of scores to a table on a cluster, lazily.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods. Fitted on a table with names, it takes the
        columns of those names and leaves others, such as an identifier, alone; fitted on an array,
        it takes all columns in their order.
    table : dask.dataframe.DataFrame, ray.data.Dataset or pyspark.sql.DataFrame
    method : {"score_samples", "decision_function", "predict"}
        The method that computes the scores.
    output : str
        The name of the new column.

    Returns
    -------
    dask.dataframe.DataFrame, ray.data.Dataset or pyspark.sql.DataFrame
    """
    check_is_fitted(detector)
    check_choice("method", method, ("score_samples", "decision_function", "predict"))
    source = open_cluster_table(table, "the table")
    columns = source.names
    if output in columns:
        raise ValueError(f"the table has a column {output!r} already; name another output")
    names = getattr(detector, "feature_names_in_", None)
    if names is None and len(columns) != detector.n_features_in_:
        raise ValueError(
            f"the table has {len(columns)} columns, but the detector was fitted on an array of "
            f"{detector.n_features_in_}; select those, or fit it on a data frame"
        )
    if lacking := [] if names is None else [name for name in names if name not in columns]:
        raise ValueError(f"the table has no column {lacking[0]!r}, which the detector needs")
    light = for_workers(detector)
    kind = int if method == "predict" else float

    def add(number: int, chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for chunk in chunks:
            rows = chunk.to_numpy() if names is None else chunk[list(names)]
            scores = getattr(light, method)(rows) if len(chunk) else np.empty(0, kind)
            yield chunk.assign(**{output: scores})

    return source.extend(add, {output: kind})


def open_cluster_table(table: Any, name: str, most_drawn: int | None = None) -> ClusterTable:
    """Return a table of Dask, Ray or Spark as a `ClusterTable`."""
    package = type(table).__module__.partition(".")[0]
    if package in _ENGINES and hasattr(table, "columns"):
        module, engine, _ = _ENGINES[package]
        make: type[ClusterTable] = getattr(import_module(module), engine)
        return make(table, name, most_drawn)
    kinds = ", ".join(words for *_, words in _ENGINES.values())
    raise TypeError(
        f"{name} is of type {type(table).__name__}; give one of {kinds}, or use qms22 itself for "
        "tables in memory"
    )


def _warn_of_all(*tables: ClusterTable) -> None:
    sizes = " and ".join(f"{table.n_rows:,}" for table in tables)
    warn_user(
        f"max_samples=None brings all {sizes} rows of the two tables to this process; give a "
        "number to learn from a draw"
    )


def _score(
    scorer: TableScorer, read: Callable[[pd.DataFrame], pd.DataFrame], chunk: pd.DataFrame
) -> NDArray[np.float64]:
    """Score rows of the engine's table, some at a time; NaN for those that are dropped."""
    n_rows, found = rows_per_chunk(len(scorer.encoder.typical_row_)), np.full(len(chunk), np.nan)
    for first in range(0, len(chunk), n_rows):
        rows = read(chunk.iloc[first : first + n_rows])
        positions, scores, _ = scorer.score(FrameTable(rows).columns(), is_part=True)
        found[first + positions] = scores
    return found
