"""Lazy scores of a Spark data frame."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, LongType, StructField, StructType
from sklearn.base import BaseEstimator

from qms22.cluster.scoring import scorer


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
