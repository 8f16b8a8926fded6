"""Lazy scores of a Spark data frame, and detection on two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType
from sklearn.base import BaseEstimator

from qms22._runtime.chunks import draw_rows
from qms22.cluster.scoring import scorer
from qms22.cluster.table_search import (
    RESULTS,
    BatchResults,
    SearchOptions,
    TableModel,
    refuse,
    search_table,
    share_to_draw,
    sparse_counts,
    sum_counts,
)
from qms22.estimators.ensemble import AUTO_SAMPLES


def score_samples(
    detector: BaseEstimator,
    frame: DataFrame,
    *,
    method: str = "score_samples",
    output: str = "score",
) -> DataFrame:
    """Add a column of scores to a data frame, lazily.

    Parameters
    ----------
    detector : fitted detector
        A `QMS22` or any other detector with its methods. Fitted on a data frame, it takes the
        columns of those names and leaves others, such as an identifier, alone; fitted on an array,
        it takes all columns in their order.
    frame : pyspark.sql.DataFrame
    method : {"score_samples", "decision_function", "predict"}
        The method that computes the scores.
    output : str
        The name of the new column.

    Returns
    -------
    pyspark.sql.DataFrame
    """
    add_scores = scorer(detector, frame.columns, method, output)
    kind = LongType() if method == "predict" else DoubleType()
    schema = StructType([*frame.schema.fields, StructField(output, kind)])

    def add_to_all(tables: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return map(add_scores, tables)

    return frame.mapInPandas(add_to_all, schema)


def detect(
    normal: DataFrame,
    batch: DataFrame,
    *,
    fdr: float = 0.1,
    ignore: Sequence[str] = (),
    missing: str = "impute",
    kinds: Mapping[str, str] | None = None,
    max_samples: int = AUTO_SAMPLES,
    seed: int | None = 0,
    n_jobs: int | None = None,
    **others: object,
) -> DataFrame:
    """Find the suspicious rows of a data frame, given one of known-normal rows.

    Rows drawn at random are brought to the driver, which learns from them; executors score all
    rows.

    Parameters
    ----------
    normal, batch : pyspark.sql.DataFrame
        The known-normal rows and the rows to search, with the same columns, of any kind.
    fdr, ignore, missing, kinds, max_samples, seed, n_jobs, **others
        As of `qms22.dask.detect`. A seed makes the result repeatable if Spark reads the rows in the
        same order each time.

    Returns
    -------
    pyspark.sql.DataFrame
        The batch with the columns "score" (higher is more suspicious), "p_value" and "flagged".
        The rows are scored twice: now, to count them, and when the result is computed.
    """
    refuse(others)
    options = SearchOptions(fdr, ignore, missing, kinds, max_samples, seed, n_jobs)
    return search_table(_SparkEngine(), normal, batch, options)


class _SparkEngine:
    """What Spark does with data frames; see `TableEngine`."""

    def columns(self, table: DataFrame) -> list[str]:
        return list(table.columns)

    def count_rows(self, table: DataFrame) -> int:
        return int(table.count())

    def draw(
        self, table: DataFrame, n_rows: int, n_drawn: int, rng: np.random.RandomState
    ) -> pd.DataFrame:
        share = share_to_draw(n_drawn, n_rows)
        if share is not None:
            table = table.sample(fraction=share, seed=int(rng.randint(2**31 - 1)))
        rows = table.toPandas()
        return rows.iloc[draw_rows(len(rows), n_drawn, rng)]

    def count_ranks(self, table: DataFrame, model: TableModel) -> NDArray[np.int64]:
        def count(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            return (sparse_counts(model.count_ranks(part)) for part in parts)

        counted = table.mapInPandas(count, "rank long, n_rows long")
        # Executors add, so that the driver gets one row per rank.
        added = counted.groupBy("rank").sum("n_rows").toDF("rank", "n_rows")
        return sum_counts([added.toPandas()], model.ruler)

    def add_results(self, table: DataFrame, results: BatchResults) -> DataFrame:
        def add(parts: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
            return map(results.add_to, parts)

        kinds = (DoubleType(), DoubleType(), BooleanType())
        added = [StructField(*pair) for pair in zip(RESULTS, kinds, strict=True)]
        return table.mapInPandas(add, StructType([*table.schema.fields, *added]))
